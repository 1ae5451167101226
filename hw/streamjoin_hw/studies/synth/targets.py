"""The parts that designs are synthesised for, and what each of them has.

Sources: Xilinx DS190, Zynq-7000 overview, table 1 (XC7Z020); DS891, Zynq UltraScale+ overview,
table for EV devices (XCZU7EV); DS987, Kria K26 (XCK26); Lattice FPGA-DS-02012, ECP5 family, table
1.1 (LFE5U-85), its counts as nextpnr's chip database has them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

_XILINX_LUTS = {
    # A cell that is one or several LUTs: fractured pairs count as two, but those made by hand.
    **{f"LUT{inputs}": 1 for inputs in range(1, 7)},
    "INV": 1,
    "LUT6_2": 1,
    "SRL16E": 1,
    "SRLC16E": 1,
    "SRLC32E": 1,
    "RAM32X1S": 1,
    "RAM32X1D": 2,
    "RAM64X1S": 1,
    "RAM64X1D": 2,
    "RAM128X1S": 2,
    "RAM128X1D": 4,
    "RAM256X1S": 4,
    "RAM256X1D": 8,
    "RAM32M": 4,
    "RAM64M": 4,
    "RAM32M16": 8,
    "RAM64M8": 8,
    "RAM512X1S": 8,
}
_XILINX_CELLS = {
    "lut": _XILINX_LUTS,
    "ff": dict.fromkeys(("FDRE", "FDSE", "FDCE", "FDPE"), 1),
    # Half a block RAM each: a RAMB36 is two of them.
    "ramb18": {"RAMB18E1": 1, "RAMB18E2": 1, "RAMB36E1": 2, "RAMB36E2": 2},
    "dsp": {"DSP48E1": 1, "DSP48E2": 1},
    "uram": {"URAM288": 1},
}
_XILINX_EQUALITY = "-D GROUP=3 -D CHAIN"
_XC7_COMPARISON = "-D CHAIN=4"
_XCUP_COMPARISON = "-D CHAIN=8 -D CARRY8"
_ECP5_CELLS = {
    # A 16 x 4 memory takes four LUTs for its bits, and the two beside its write port.
    "lut": {"LUT4": 1, "CCU2C": 2, "TRELLIS_DPR16X4": 6},
    "ff": {"TRELLIS_FF": 1},
    "dp16kd": {"DP16KD": 1},
    "dsp": {"MULT18X18D": 1},
}

RESOURCE_NAMES = {
    "lut": "LUT",
    "ff": "FF",
    "ramb18": "RAMB18",
    "dp16kd": "DP16KD",
    "dsp": "DSP",
    "uram": "URAM",
}
"""What messages call each resource."""


@dataclass(frozen=True)
class Target:
    """A part and how it is synthesised for.

    Parameters
    ----------
    name : str
        As on the command line.
    part : str
        The manufacturer's name, with package and speed grade where a route depends on them.
    synthesis : str
        Yosys's command.
    available : dict of str to int
        What the part has.
    cells : dict
        For each resource the cells of a netlist that use it, and how much of it.
    equality : str
        How ``equal.v`` fills the part's LUTs.
    comparison : str
        How ``compare.v`` does; empty where it does not serve the part.
    route : tuple of str
        Options of nextpnr that name the part; empty where there is no place and route.
    """

    name: str
    part: str
    synthesis: str
    available: Mapping[str, int]
    cells: Mapping[str, Mapping[str, int]]
    equality: str
    comparison: str
    route: tuple[str, ...] = field(default=())

    @property
    def has_timing(self) -> bool:
        """Whether there is place and route for it here."""
        return bool(self.route)


TARGETS: dict[str, Target] = {
    each.name: each
    for each in (
        Target(
            "xc7z020",
            "XC7Z020",
            "synth_xilinx -family xc7",
            {"lut": 53_200, "ff": 106_400, "ramb18": 280, "dsp": 220},
            _XILINX_CELLS,
            _XILINX_EQUALITY,
            _XC7_COMPARISON,
        ),
        Target(
            "xczu7ev",
            "XCZU7EV",
            "synth_xilinx -family xcup -uram",
            {"lut": 230_400, "ff": 460_800, "ramb18": 624, "dsp": 1_728, "uram": 96},
            _XILINX_CELLS,
            _XILINX_EQUALITY,
            _XCUP_COMPARISON,
        ),
        Target(
            "xck26",
            "XCK26",
            "synth_xilinx -family xcup -uram",
            {"lut": 117_120, "ff": 234_240, "ramb18": 288, "dsp": 1_248, "uram": 64},
            _XILINX_CELLS,
            _XILINX_EQUALITY,
            _XCUP_COMPARISON,
        ),
        # The package with the most pins: every port of the design is one.
        Target(
            "ecp5-85k",
            "LFE5U-85F-6BG756",
            # Wide LUTs of pairs and fours would be taken for a little speed, and double the area.
            "synth_ecp5 -nowidelut",
            {"lut": 83_640, "ff": 83_640, "dp16kd": 208, "dsp": 156},
            _ECP5_CELLS,
            "-D GROUP=2",
            "",
            ("--85k", "--package", "CABGA756", "--speed", "6"),
        ),
    )
}
