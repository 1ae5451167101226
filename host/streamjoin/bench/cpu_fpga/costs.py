"""What a run does not show: the transfer to a board, energy. Models, with their sources.

No board has run here, so that every figure of a transfer or of a power is assumed and says so.
"""

from typing import Any

from streamjoin.bench.cpu_fpga.boards import BOARDS
from streamjoin.bench.cpu_fpga.contestants import Contestant
from streamjoin_common.contract import beat_bits, tuple_layout

PORT_BYTES = 8
"""Bytes a clock cycle through a Zynq's high-performance port of 64 bits (Xilinx UG585, AXI_HP)."""

TRANSFER_US = 20.0
"""Assumed microseconds in which a driver hands over a piece of a stream and hears of its end."""

CPU_CORE_W = 3.75
"""Watts of one core, 1/96 of the 360 W that AMD names for an EPYC 9654; nothing for memory."""

CLOCKS = (
    ", ".join(f"{board.clock_mhz:.0f} MHz on a {board.name}" for board in BOARDS)
    + ", as no open tool routes these parts; on an ECP5-85 smaller designs route at 103 to 106 MHz "
    "(ordered index) and at 192 to 210 MHz (SplitJoin, 4 and 16 cores of 16 tuples)"
)

ASSUMED = (
    f"Assumed clocks: {CLOCKS}. Transfer: {PORT_BYTES} bytes a cycle to the board, "
    f"{TRANSFER_US:.0f} us each way; results on their way back take no bandwidth in this "
    "model, which is too good where they are many. Power: "
    f"{CPU_CORE_W} W a CPU core (1/96 of the 360 W of an EPYC 9654, without memory), "
    + ", ".join(f"{board.watts:g} W a {board.name} ({board.watts_source})" for board in BOARDS)
    + ". Area: cells by Yosys before placement, of the stored synthesis as it is now, which may be "
    "of a later revision than the rates; those of a design that was synthesised for the XC7Z020 "
    "alone are divided by what the larger part offers. The 2-D scan, not synthesised, fits by its "
    "block RAM (decision 13)."
)


def add_costs(contestant: Contestant, window: int, found: dict[str, Any]) -> dict[str, Any]:
    """Return a contestant's measurements with what follows from them.

    Parameters
    ----------
    contestant : Contestant
        Who was measured, on one thread.
    window : int
        Window of each stream in tuples.
    found : dict
        What :func:`~streamjoin.bench.cpu_fpga.measure.measure` returned.

    Returns
    -------
    dict
        ``found`` with ``joules_per_million``, and for a design ``transfer`` (``rate_tuples_per_s``
        and ``added_us``) and ``comparisons_per_cycle`` where it scans.
    """
    rate, board = found["rate_tuples_per_s"], contestant.board
    if contestant.design is None or board is None:
        return {**found, "joules_per_million": CPU_CORE_W / rate * 1e6 if rate else None}
    tuple_bytes = beat_bits(tuple_layout(contestant.design)) // 8
    through = min(rate, board.clock_mhz * 1e6 * PORT_BYTES / tuple_bytes)
    costs: dict[str, Any] = {
        "transfer": {"rate_tuples_per_s": through, "added_us": 2 * TRANSFER_US},
        "joules_per_million": board.watts / through * 1e6 if through else None,
    }
    if contestant.how == "scan":
        costs["comparisons_per_cycle"] = window / found["cycles_per_tuple"]
    return {**found, **costs}
