"""The C header says what the register map says, and is enough for a driver in C++."""

import hashlib
import re
import subprocess
from functools import partial
from pathlib import Path

import pytest

from streamjoin_common.contract import (
    HEADER_NAME,
    DesignParams,
    c_header,
    manifest,
    parse_term,
    registers,
    tuple_layout,
)
from streamjoin_common.storage import cache
from streamjoin_hw.flow import build, emit, toolchain

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "verilated_driver.cpp"
PARAMS = DesignParams(cores=1, segment_tuples=4)
PAIRS = DesignParams(
    design="splitjoin-hash",
    cores=1,
    segment_tuples=32,
    lanes=2,
    buckets=8,
    ways=3,
    lead_tuples=8,
    beat_results=2,
)
"""A beat of its output may have two results."""


def test_the_header_and_the_manifest_name_every_register_and_field_once() -> None:
    terms = (parse_term("equi:int32"), parse_term("band:float32"), parse_term("band:uint32"))
    params = DesignParams(
        design="splitjoin", cores=2, segment_tuples=4, terms=terms, timestamp_bits=32, order="inner"
    )
    defined = re.findall(r"^#define (\w+) (\S+)", c_header(params), flags=re.MULTILINE)
    values = dict(defined)
    assert len(values) == len(defined)
    described = {row["name"]: row for row in manifest(params)["registers"]}
    for register in registers(params):
        offset = values[f"STREAMJOIN_REG_{register.name.upper()}"]
        assert int(offset, 0) == described[register.name]["offset"] == register.offset
    for field in tuple_layout(params):
        assert int(values[f"STREAMJOIN_TUPLE_{field.name.upper()}_OFFSET"]) == field.offset
    types = {name: row["type"] for name, row in described.items() if row["type"] != "uint32"}
    # Widths of unsigned keys are signed too.
    assert types == {
        **dict.fromkeys(("band_lo1", "band_hi1"), "float32"),
        **dict.fromkeys(("band_lo2", "band_hi2"), "int32"),
    }


@pytest.mark.parametrize("params", [PARAMS, PAIRS], ids=["one", "two"])
def test_the_manifest_describes_the_ports_of_the_verilog(params: DesignParams) -> None:
    verilog = emit.verilog_source(params)
    top = verilog[verilog.index("module streamjoin_top(") :]
    for port in manifest(params)["ports"]:
        bits = "" if port["bits"] == 1 else f"[{port['bits'] - 1}:0] "
        assert f"  {port['direction']}put {bits}{port['name']};" in top


def _executable(made: Path, params: DesignParams) -> None:
    """Compile the example against the Verilated design; Verilator's own library is kept."""
    tool, cxx = toolchain.verilator(), toolchain.compiler()
    verilog = emit.emit_verilog(params, made / "design")
    objects = made / "obj"
    # The flags of all models: what is kept of Verilator's library is linked with them too.
    flags = [*build.VERILATOR_FLAGS, "--exe", "--Mdir", str(objects), "-CFLAGS"]
    flags.append(" ".join((*build.CXX_FLAGS, f"-I{verilog.parent}")))
    command = [str(tool.path), *flags, str(verilog), str(EXAMPLE)]
    toolchain.run(command, tool.env(), 120, "Verilator")
    # OPT_GLOBAL is for Verilator's library alone; few tuples pass through the design.
    optimise = ["OPT_FAST=-O0", "OPT_SLOW=-O0", f"OPT_GLOBAL={build._optimisation()}"]
    make = ["make", "-s", build.ONE_FILE, *optimise, f"CXX={cxx}", f"LINK={cxx}", "-C"]
    make += [str(objects), "-f", "Vstreamjoin_top.mk"]

    def runtime(kept: Path) -> None:
        toolchain.run([*make, build._RUNTIME], tool.env(), 300, "compiling the model")
        (kept / build._RUNTIME).write_bytes((objects / build._RUNTIME).read_bytes())

    kept = cache.entry("verilator", f"runtime-{build._tools_key(tool, cxx)}", runtime)
    (objects / build._RUNTIME).write_bytes((kept / build._RUNTIME).read_bytes())
    # make takes the library for built already.
    toolchain.run([*make, "-o", build._RUNTIME, "Vstreamjoin_top"], tool.env(), 300, "linking")


@pytest.mark.parametrize("params", [PARAMS, PAIRS], ids=["one", "two"])
def test_a_driver_made_of_the_header_alone_joins_on_the_verilated_design(
    params: DesignParams,
) -> None:
    sources = [emit.verilog_source(params), c_header(params), EXAMPLE.read_text(), HEADER_NAME]
    key = hashlib.sha256("".join(sources).encode()).hexdigest()[:16]
    made = cache.entry("examples", key, partial(_executable, params=params), max_entries=4)
    done = subprocess.run(
        [made / "obj" / "Vstreamjoin_top"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"\d{2,} pairs, all as expected\n", done.stdout)
