"""The parts that designs are synthesised for, and what each of them has.

Sources: Xilinx DS190, Zynq-7000 overview, table 1 (XC7Z020); DS891, Zynq UltraScale+ overview,
table for EV devices (XCZU7EV); DS987, Kria K26 (XCK26); Lattice FPGA-DS-02012, ECP5 family, table
1.1 (LFE5U-85); FPGA-DS-02049, CrossLink-NX family, table 1.1 (LIFCL-40), its counts and those of
the ECP5 as nextpnr's chip databases have them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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

_NEXUS_CELLS = {
    # The LUTs beside a memory's write port are not counted by nextpnr either.
    "lut": {"LUT4": 1, "INV": 1, "CCU2": 2, "DPR16X4": 4},
    "ff": dict.fromkeys(("FD1P3IX", "FD1P3JX", "FD1P3BX", "FD1P3DX"), 1),
    "ebr": {"PDPSC16K": 1, "PDP16K": 1, "DP16K": 1, "SP16K": 1},
    "dsp": {"MULT18X18": 1},
}

RESOURCE_NAMES = {
    "lut": "LUT",
    "ff": "FF",
    "ramb18": "RAMB18",
    "dp16kd": "DP16KD",
    "ebr": "EBR",
    "dsp": "DSP",
    "uram": "URAM",
}
"""What messages call each resource."""


def share_in_words(use: dict[str, Any]) -> str:
    """Return what part of a resource is in use, in percent; a record's ``share`` is rounded."""
    return f"{use['used'] / use['available']:.1%}".replace("%", " %")


@dataclass(frozen=True)
class Router:
    """How a netlist is placed and routed.

    Parameters
    ----------
    program : str
        Which nextpnr, as ``nextpnr-ecp5``.
    options : tuple of str
        Those that name the part.
    cells : dict of str to str
        What its report calls each resource.
    speed : str
        The part's speed grade, as the manufacturer counts.
    pins : str
        Option of nextpnr before the name of a file with constraints of pins.
    places : str
        Such constraints for the three pins of :class:`~.harness.Harness`; empty: any pins do.
    written : tuple of str
        Options that write the routed design.
    algorithm : str
        Which of nextpnr's routers; empty: its default.
    fixes_registers : bool
        Whether :func:`~.gather.gather` knows its tiles.
    takes_constant_carries : bool
        Whether it takes a carry chain that begins with a constant, as Yosys writes it.
    """

    program: str
    options: tuple[str, ...]
    cells: Mapping[str, str]
    speed: str
    pins: str
    places: str = ""
    written: tuple[str, ...] = ()
    algorithm: str = ""
    fixes_registers: bool = False
    takes_constant_carries: bool = True


CONFIG_NAME = "routed.config"
"""The routed design, from which a bitstream is packed."""

ECP5 = Router(
    "nextpnr-ecp5",
    # The package with the most pins: every port of the design is one.
    ("--85k", "--package", "CABGA756", "--speed", "6"),
    {"lut": "TRELLIS_COMB", "ff": "TRELLIS_FF", "dp16kd": "DP16KD", "dsp": "MULT18X18D"},
    "6",
    "--lpf",
    written=("--textcfg", CONFIG_NAME),
    fixes_registers=True,
)

_NEXUS_SITES = {"clk": "K1", "serial_in": "N14", "serial_out": "M14"}
"""Balls of the package BG400."""

NEXUS = Router(
    "nextpnr-nexus",
    ("--device", "LIFCL-40-9BG400C"),
    {"lut": "OXIDE_COMB", "ff": "OXIDE_FF", "ebr": "OXIDE_EBR", "dsp": "MULT18_CORE"},
    "9",
    "--pdc",
    places="".join(
        f"ldc_set_location -site {{{site}}} [get_ports {port}]\n"
        f"ldc_set_port -iobuf {{IO_TYPE=LVCMOS33}} [get_ports {port}]\n"
        for port, site in _NEXUS_SITES.items()
    ),
    # The default one does not always find a way from a pin to the global clocks.
    algorithm="router1",
    takes_constant_carries=False,
)


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
    router : Router, optional
        How it is placed and routed, if open tools can.
    """

    name: str
    part: str
    synthesis: str
    available: Mapping[str, int]
    cells: Mapping[str, Mapping[str, int]]
    equality: str
    comparison: str
    router: Router | None = None

    @property
    def has_timing(self) -> bool:
        """Whether there is place and route for it here."""
        return self.router is not None


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
        Target(
            "ecp5-85k",
            "LFE5U-85F-6BG756",
            # Wide LUTs of pairs and fours would be taken for a little speed, and double the area.
            "synth_ecp5 -nowidelut",
            {"lut": 83_640, "ff": 83_640, "dp16kd": 208, "dsp": 156},
            _ECP5_CELLS,
            "-D GROUP=2",
            "",
            ECP5,
        ),
        Target(
            "lifcl-40",
            "LIFCL-40-9BG400C",
            "synth_nexus -nowidelut",
            {"lut": 32_256, "ff": 32_256, "ebr": 84, "dsp": 56},
            _NEXUS_CELLS,
            "-D GROUP=2",
            "",
            NEXUS,
        ),
    )
}
