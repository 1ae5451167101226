"""From counts to watts: a model whose every constant is stated.

``P = 1/2 V^2 f sum(alpha C)``, where ``alpha`` is how often a thing switches in a cycle and ``C``
the capacitance that one switching charges or discharges. The model excludes static power, pins,
what a net does before it settles, and the length of wires: all nets of a kind have the same
``C``. The ratio of two designs rests on the ratios of the constants alone.

The constants are those that Actel published for its ProASIC PLUS FPGAs (data sheet, "Calculating
Typical Power Dissipation"; 0.22 um, 2.5 V). It names microwatts for each megahertz, ``p``, for
every kind of cell. A net that toggles with a frequency switches twice in a period, so that
``C = p / V^2``. Its cells have three inputs; that 6-input LUTs of another part stand to registers
and clock as those do is an assumption.
"""

from collections.abc import Mapping
from dataclasses import dataclass

MODEL = "a model, not a measurement"
"""What is said beside every power in watts."""

EXCLUDED = "Excluded: static power, pins, glitches, the lengths of wires."

VOLTS = 2.5
_DATA_SHEET = "Actel ProASIC PLUS data sheet, Calculating Typical Power Dissipation"
_CLOCK_EDGES = 2


@dataclass(frozen=True)
class Constant:
    """What one kind of net costs.

    Parameters
    ----------
    microwatts_per_mhz : float
        Power for each megahertz of a full swing up and down.
    source : str
        Where it is from, or what is assumed.
    """

    microwatts_per_mhz: float
    source: str

    @property
    def farads(self) -> float:
        """The capacitance of one of it."""
        return self.microwatts_per_mhz * 1e-12 / VOLTS**2


CONSTANTS: dict[str, Constant] = {
    "register": Constant(1.1, f"P5, a storage tile's output: {_DATA_SHEET}"),
    "lut": Constant(1.4, f"P3, a logic tile's output: {_DATA_SHEET}"),
    "lut_ram": Constant(1.1, "assumed: a bit written to LUT memory is a register's output"),
    "block_ram": Constant(
        175.0, f"P6, a block of 256 x 9 bits in every cycle that it is accessed: {_DATA_SHEET}"
    ),
    "clock": Constant(1.3, f"P2, the clock's way to a register: {_DATA_SHEET}"),
    "clock_trunk": Constant(100.0, f"P1, the clock tree without registers: {_DATA_SHEET}"),
}
"""Constants by kind. P7, some 5 % off the clock's part at 2,000 registers, is excluded."""


def switching_per_cycle(counts: Mapping[str, int], cycles: int, registers: int) -> dict[str, float]:
    """Return how often each kind of net switches in a cycle, the clock's included.

    Parameters
    ----------
    counts : dict of str to int
        Those of :class:`~streamjoin_hw.studies.power.activity.Activity`.
    cycles : int
        In how many cycles they were counted.
    registers : int
        Registers that the clock drives.
    """
    edges = {"block_ram": _CLOCK_EDGES}
    per_cycle = {kind: edges.get(kind, 1) * count / cycles for kind, count in counts.items()}
    return {
        **per_cycle,
        "clock": float(_CLOCK_EDGES * registers),
        "clock_trunk": float(_CLOCK_EDGES),
    }


def watts(switching: Mapping[str, float], clock_hz: float) -> dict[str, float]:
    """Return the dynamic power of each kind of net.

    Parameters
    ----------
    switching : dict of str to float
        What :func:`switching_per_cycle` returned.
    clock_hz : float
        The clock.
    """
    return {
        kind: 0.5 * VOLTS**2 * clock_hz * alpha * CONSTANTS[kind].farads
        for kind, alpha in switching.items()
    }
