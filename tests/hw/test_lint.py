"""Verilator's lint and Yosys's structural check find nothing in the emitted Verilog."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamjoin_common.storage import cache
from streamjoin_hw import emit, toolchain
from streamjoin_hw.board import BOARD_MODULE
from streamjoin_hw.contract import DesignParams
from streamjoin_hw.presets import PRESETS, REFERENCE_BAND
from streamjoin_hw.top import TOP_MODULE
from streamjoin_hw.yowasp import yosys

DESIGNS = {
    "tiny": PRESETS["tiny"],
    "tiny-band": PRESETS["tiny-band"],
    "tiny-hash": PRESETS["tiny-hash"],
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
    "splitjoin, smallest": DesignParams(design="splitjoin", cores=1, segment_tuples=1),
    "one core": DesignParams(cores=1, segment_tuples=1),
    "one word": DesignParams(cores=3, segment_tuples=5, lanes=5, terms=REFERENCE_BAND),
    "long segments": DesignParams(cores=2, segment_tuples=300, lanes=7, payload_bits=11),
}

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


BOARDS = ("tiny", "tiny-band", "tiny-hash")
"""Designs that are looked at also with the top level for boards."""

EVERY = pytest.mark.parametrize(
    ("name", "top"),
    [(name, TOP_MODULE) for name in DESIGNS] + [(name, BOARD_MODULE) for name in BOARDS],
)


@EVERY
def test_verilator_finds_nothing_to_complain_of(name: str, top: str, tmp_path: Path) -> None:
    """Among others no latch, no combinational loop, nothing undriven or driven twice."""
    path = emit.emit_verilog(DESIGNS[name], tmp_path, board=top == BOARD_MODULE)
    tool = toolchain.verilator()
    flags = ["--lint-only", "-Wall", *(f"-Wno-{each}" for each in SILENCED)]
    command = [str(tool.path), *flags, "--top-module", top, str(path)]
    toolchain.run(command, tool.env(), 60, "Verilator's lint")


CHECK = [
    "proc",
    # Across the modules: a loop may run through several.
    "flatten",
    "check -assert",
    "select -assert-none t:$dlatch t:$adlatch t:$sr t:$dlatchsr",
]
"""Yosys commands that fail for loops, for wires driven by two or by none, and for latches."""


def checked_by_yosys(verilog: Path, top: str) -> None:
    """Read a file with Yosys and look for faults of structure."""
    commands = [f"read_verilog -sv {verilog.name}", f"hierarchy -check -top {top}", *CHECK]
    yosys(commands, verilog.parent, "Yosys's check")


@pytest.fixture
def yosys_folder() -> Iterator[Path]:
    """A folder that Yosys can see: its sandbox has a temporary folder of its own."""
    place = cache.folder("check")
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place) as folder:
        yield Path(folder)


@EVERY
def test_yosys_finds_nothing_to_complain_of(name: str, top: str, yosys_folder: Path) -> None:
    """No combinational loop, nothing driven twice or by nothing, no latch."""
    verilog = emit.emit_verilog(DESIGNS[name], yosys_folder, board=top == BOARD_MODULE)
    checked_by_yosys(verilog, top)


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
