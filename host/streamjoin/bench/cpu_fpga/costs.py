"""What a run does not show: the transfer to a board, energy, area. Models, with their sources.

No board has run here, so that every figure of a transfer or of a power is assumed and says so.
"""

import json
from typing import Any

from streamjoin.bench.cpu_fpga.contestants import Contestant
from streamjoin_common.contract import beat_bits, tuple_layout
from streamjoin_common.installed import shipped

PORT_BYTES = 8
"""Bytes a clock cycle through a Zynq's high-performance port of 64 bits (Xilinx UG585, AXI_HP)."""

TRANSFER_US = 20.0
"""Assumed microseconds in which a driver hands over a piece of a stream and hears of its end."""

CPU_CORE_W = 3.75
"""Watts of one core, 1/96 of the 360 W that AMD names for an EPYC 9654; nothing for memory."""

BOARD_W = {"pynq-z2": 5.0, "kv260": 10.0}
"""Assumed watts of a whole board at work."""

ASSUMED = (
    f"Assumed: {PORT_BYTES} bytes a cycle to the board, {TRANSFER_US:.0f} us for a transfer each "
    f"way; {CPU_CORE_W} W a CPU core, "
    + ", ".join(f"{watts:.0f} W a {board}" for board, watts in BOARD_W.items())
    + "; the clocks of designs."
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
        and ``added_us``), ``comparisons_per_cycle`` where it scans, and ``area``, shares of the
        part by its stored synthesis.
    """
    rate = found["rate_tuples_per_s"]
    watts = BOARD_W[contestant.board] if contestant.is_fpga else CPU_CORE_W
    costs: dict[str, Any] = {"joules_per_million": watts / rate * 1e6 if rate else None}
    if contestant.design is not None:
        tuple_bytes = beat_bits(tuple_layout(contestant.design)) // 8
        port = contestant.clock_mhz * 1e6 * PORT_BYTES / tuple_bytes
        costs["transfer"] = {
            "rate_tuples_per_s": min(rate, port),
            "added_us": 2 * TRANSFER_US,
        }
        if contestant.how == "scan":
            costs["comparisons_per_cycle"] = window / found["cycles_per_tuple"]
        costs["area"] = _area(contestant.preset)
    return {**found, **costs}


def _area(preset: str) -> dict[str, float] | None:
    """Return the shares of a part that a stored synthesis says; None without one."""
    record = shipped.EXPERIMENTS / "synth" / f"{preset}.json"
    if not preset or not record.is_file():
        return None
    resources = json.loads(record.read_text())["resources"]
    return {name: resources[name]["share"] for name in ("lut", "ramb18")}
