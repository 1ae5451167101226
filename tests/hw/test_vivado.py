"""The Vivado scripts against a library of Vivado's commands: order, names, widths, what is left.

There is no Vivado here: what is checked is that every command, property, pin and port that the
scripts use is one that the table in tests/vivado knows, that all is connected, and what a build
leaves. That Vivado itself takes them is not.
"""

import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from streamjoin.cli import main
from streamjoin_common.contract import DesignParams
from streamjoin_common.contract.presets import PRESETS
from streamjoin_common.errors import UsageError
from streamjoin_common.storage import cache
from streamjoin_hw.flow.emit import emit_verilog
from streamjoin_hw.flow.toolchain import ToolError
from streamjoin_hw.flow.vivado import BOARDS, WRITTEN, tcl_quoted, used, vivado_bitstream
from streamjoin_hw.formal.tools import yosys

ROOT = Path(__file__).resolve().parents[2]
STUBS = ROOT / "tests" / "vivado" / "stubs.tcl"

Build = Callable[..., Path]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "commands.log"


@pytest.fixture
def build(tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch) -> Build:
    """Build with the library of commands instead of Vivado."""
    tclsh = shutil.which("tclsh")
    assert tclsh is not None, "tclsh is missing: make setup installs it"
    folder = tmp_path / "bin"
    folder.mkdir()
    vivado = folder / "vivado"
    vivado.write_text(f'#!/bin/sh\nexec "{tclsh}" "{STUBS}" "$@"\n')
    vivado.chmod(vivado.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("STUB_LOG", str(log))

    def run(
        board: str = "pynq-z2",
        params: DesignParams = PRESETS["tiny"],
        out: str = "out",
        clock_mhz: float = 100.0,
        **how: str,
    ) -> Path:
        for name, value in how.items():
            monkeypatch.setenv(f"STUB_{name.upper()}", value)
        return vivado_bitstream(params, board, tmp_path / out, lambda _: None, clock_mhz)

    return run


@pytest.mark.parametrize("board", BOARDS)
@pytest.mark.parametrize("preset", ["tiny", "tiny-band"])
def test_a_build_leaves_all_of_it_with_the_clock_that_was_met(
    build: Build, log: Path, board: str, preset: str
) -> None:
    bitstream = build(board, PRESETS[preset])
    assert {path.name for path in bitstream.parent.iterdir()} == set(WRITTEN)
    manifest = json.loads((bitstream.parent / "manifest.json").read_text())
    assert manifest["digest"] == PRESETS[preset].digest
    assert manifest["clock"]["hz"] == pytest.approx(100e6, rel=1e-4)
    assert "Vivado 2023.2, after routing: met with 0.412 ns" in manifest["clock"]["source"]
    assert manifest["board"] == board
    assert manifest["resources"]["part"] == BOARDS[board].part
    assert 0 < manifest["resources"]["lut"]["used"] < manifest["resources"]["lut"]["available"]
    commands = [line.split()[0] for line in log.read_text().splitlines()]
    order = ["ipx::save_core", "update_ip_catalog", "create_bd_design", "validate_bd_design"]
    order += ["generate_target", "make_wrapper", "open_run", "report_timing_summary"]
    positions = [commands.index(each) for each in order]
    assert positions == sorted(positions)
    commands_run = log.read_text()
    assert BOARDS[board].part in commands_run
    assert PRESETS[preset].digest in commands_run
    assert "CONFIG.c_sg_length_width 26" in commands_run
    words = {"tiny": 64, "tiny-band": 128}[preset]
    assert f"CONFIG.c_m_axis_mm2s_tdata_width {words}" in commands_run


@pytest.mark.parametrize(
    ("board", "clock_mhz", "given_hz"),
    [
        ("pynq-z2", 50, 50e6),
        ("pynq-z2", 62.5, 62.5e6),
        ("pynq-z2", 120, 111_111_111),
        ("zcu104", 200, 187_498_125),
        ("kv260", 75, 74_999_250),
    ],
)
def test_the_clock_that_is_asked_for_is_built_and_the_one_that_is_given_is_kept(
    build: Build, log: Path, board: str, clock_mhz: float, given_hz: float
) -> None:
    bitstream = build(board, clock_mhz=clock_mhz)
    manifest = json.loads((bitstream.parent / "manifest.json").read_text())
    assert manifest["clock"]["hz"] == given_hz
    commands = log.read_text()
    assert f"FREQMHZ {clock_mhz:g}" in commands
    assert f"create_clock -name aclk -period {1e3 / clock_mhz:.3f}" in commands


@pytest.mark.parametrize(
    ("board", "clock_mhz", "sentence"),
    [
        ("pynq-z2", 251, "--clock must be from 10 to 250 MHz on pynq-z2, not 251"),
        ("kv260", 9.5, "--clock must be from 10 to 500 MHz on kv260, not 9.5"),
        ("zcu104", float("nan"), "--clock must be from 10 to 500 MHz on zcu104, not nan"),
    ],
)
def test_clocks_that_no_processor_gives_are_refused(
    build: Build, board: str, clock_mhz: float, sentence: str
) -> None:
    with pytest.raises(UsageError, match=f"^{sentence}$"):
        build(board, clock_mhz=clock_mhz)


def test_a_build_that_misses_its_timing_says_which_clock_would_do(build: Build) -> None:
    would = r"for hold; by that path 44 MHz would do: --clock, or fewer cores$"
    with pytest.raises(ToolError, match=would):
        build(clock_mhz=50, wns="-2.500")
    with pytest.raises(ToolError, match=r"0.412 ns for setup, -0.002 ns for hold$"):
        build(clock_mhz=50, wns="0.412", whs="-0.002")


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"wns": "-0.100"}, "timing is missed: worst slack -0.100 ns for setup, 0.031 ns for hold"),
        ({"whs": "-0.002"}, "timing is missed"),
        ({"wns": ""}, "timing is missed"),
        ({"version": "2021.2"}, "Vivado 2021.2 is too old: 2022.1 or newer is needed"),
        ({"version": "2020.1.1"}, "Vivado 2020.1.1 is too old"),
        ({"fails": "synth_design"}, "synth_1 ended as: synth_design ERROR"),
        ({"fails": "route_design"}, "impl_1 ended as: route_design ERROR"),
        ({"fails": "write_bitstream"}, "impl_1 ended as: write_bitstream ERROR"),
    ],
)
def test_a_build_that_fails_leaves_nothing(
    build: Build, tmp_path: Path, how: dict[str, str], sentence: str
) -> None:
    with pytest.raises(ToolError, match=f"Vivado failed: .*{sentence}"):
        build(**how)
    assert {path.name for path in tmp_path.iterdir()} <= {"bin", "commands.log"}


def figures(used: float, available: float, share: float) -> dict[str, float]:
    return {"used": used, "available": available, "share": share}


def test_what_a_design_uses_is_read_from_either_familys_report() -> None:
    """The samples are written by hand in the known format; no Vivado has."""
    assert used((STUBS.with_name("utilization-zynq-7000.rpt")).read_text()) == {
        "lut": figures(31_500, 53_200, 0.5921),
        "ff": figures(40_100, 106_400, 0.3769),
        "ramb36": figures(70.5, 140, 0.5036),
        "dsp": figures(0, 220, 0),
    }
    resources = used((STUBS.with_name("utilization-ultrascale.rpt")).read_text())
    assert resources["lut"] == figures(90_000, 230_400, 0.3906)
    assert resources["uram"] == figures(0, 96, 0)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("| Slice LUTs* ", "| Slice Things", "has no row for lut"),
        ("| DSPs      |    0 ", "| DSPs      |    ? ", r"has a row like no other: '\| DSPs"),
        (
            "| Available | Util% |\n+-----------+",
            "| Room | Util% |\n+-----------+",
            "like no other",
        ),
    ],
)
def test_a_report_of_another_form_is_refused(old: str, new: str, sentence: str) -> None:
    report = STUBS.with_name("utilization-zynq-7000.rpt").read_text()
    assert old in report
    with pytest.raises(ToolError, match=sentence):
        used(report.replace(old, new))


@pytest.mark.parametrize(
    "script",
    [
        "echo begun; exec sleep 60",
        "echo begun; setsid sleep 3 & exec sleep 60",
        "echo begun; exec >/dev/null 2>&1; exec sleep 60",
    ],
    ids=["output open", "a child that left holds it", "output closed"],
)
def test_a_vivado_that_does_not_end_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    vivado = tmp_path / "bin" / "vivado"
    vivado.parent.mkdir()
    vivado.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\n{script}\n")
    vivado.chmod(0o755)
    monkeypatch.setenv("PATH", f"{vivado.parent}:/usr/bin:/bin")
    monkeypatch.setattr("streamjoin_hw.flow.vivado.DEADLINE_S", 1)
    heard: list[str] = []
    with pytest.raises(ToolError, match="Vivado did not end within 1 s"):
        vivado_bitstream(PRESETS["tiny"], "kv260", tmp_path / "out", heard.append)
    assert heard == ["begun"]
    assert {path.name for path in tmp_path.iterdir()} == {"bin", "pid"}
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_vivado_that_does_nothing_has_built_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vivado = tmp_path / "vivado"
    vivado.write_text("#!/bin/sh\n")
    vivado.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(ToolError, match="Vivado ended well and has built nothing"):
        vivado_bitstream(PRESETS["tiny"], "kv260", tmp_path / "out", lambda _: None)
    assert [path.name for path in tmp_path.iterdir()] == ["vivado"]


@pytest.mark.parametrize("version", ["2022.1", "2023.2.1", "2026.1"])
def test_vivados_that_are_new_enough_are_taken(build: Build, version: str) -> None:
    assert build(version=version).is_file()


@pytest.mark.parametrize(
    ("file", "old", "new", "sentence"),
    [
        ("hw/boards/system.tcl", "c_sg_length_width 26", "c_sg_length_width 27", "cannot be 27"),
        ("hw/boards/system.tcl", "CONFIG.c_addr_width", "CONFIG.c_adr_width", "has no property"),
        ("hw/boards/system.tcl", "/M_AXIS_MM2S", "/M_AXIS_MM2", "dma has no M_AXIS_MM2"),
        ("hw/boards/system.tcl", "dma/s_axi_lite_aclk ", "", "dma/s_axi_lite_aclk is not conn"),
        ("hw/boards/system.tcl", "width $in_bits", "width 32", "stream of another width"),
        ("hw/boards/system.tcl", "assign_bd_address", "", "addresses are not assigned"),
        ("hw/boards/build.tcl", "validate_bd_design", "validate_design", "invalid command name"),
        ("hw/ip/package_ip.tcl", "s_axis_words", "s_axis_tuples", "no interface s_axis_tuples"),
        ("hw/boards/build.tcl", "bd_pins streamjoin/aclk", "bd_pins dma/aclk", "dma has no aclk"),
        ("constraints/ip/streamjoin_ooc.xdc", "ports aclk", "ports clk", "names the port clk"),
        ("constraints/ip/streamjoin_ooc.xdc", "10.000", "10", "no '-period 10.000' to set the"),
        ("constraints/pynq-z2/streamjoin.xdc", "COMPRESS", "COMPRES", "has no property"),
    ],
)
def test_the_library_of_commands_finds_faults(
    build: Build,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    file: str,
    old: str,
    new: str,
    sentence: str,
) -> None:
    copied = tmp_path / "root"
    for name in ("hw/ip", "hw/boards", "constraints"):
        shutil.copytree(ROOT / name, copied / name)
    source = (copied / file).read_text()
    assert old in source
    (copied / file).write_text(source.replace(old, new))
    monkeypatch.setattr("streamjoin_hw.flow.vivado._ROOT", copied)
    with pytest.raises(ToolError, match=sentence):
        build()


def test_without_vivado_one_sentence_says_what_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolError, match=r"needs Vivado 2022.1 or newer on the path, from AMD"):
        vivado_bitstream(PRESETS["tiny"], "kv260", tmp_path / "out", lambda _: None)
    assert list(tmp_path.iterdir()) == []


def test_what_is_asked_for_is_checked_first(build: Build, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--board must be one of pynq-z2, zcu104, kv260, not 'x'"):
        build("x")
    (tmp_path / "there").mkdir()
    with pytest.raises(UsageError, match="must name a folder that is not there yet"):
        build(out="there")


def test_paths_with_anything_in_them_are_one_word_of_tcl(build: Build) -> None:
    assert build(out='a b [x] $y {z "q"').is_file()
    assert tcl_quoted('$a [b] "c" \\') == '"\\$a \\[b\\] \\"c\\" \\\\"'


def test_every_board_has_scripts_and_a_preset() -> None:
    for board in BOARDS:
        assert (ROOT / "hw" / "boards" / board / "block_design.tcl").is_file()
        assert (ROOT / "constraints" / board / "streamjoin.xdc").is_file()
        assert board in PRESETS


@pytest.mark.slow  # test_synth.py counts a preset of each part
def test_the_verilog_that_is_handed_over_fits_the_smallest_part() -> None:
    """Yosys's counts for a 7-series part, the whole top level for boards; no timing."""
    parent = cache.folder("check")
    parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent) as folder:
        verilog = emit_verilog(PRESETS["tiny"], Path(folder), board=True)
        commands = [
            f"read_verilog {verilog.name}",
            "synth_xilinx -family xc7 -flatten -top streamjoin_board",
            "tee -o counts.json stat -json",
        ]
        yosys(commands, Path(folder), "Yosys")
        counts = json.loads((Path(folder) / "counts.json").read_text())
    cells = counts["design"]["num_cells_by_type"]
    luts = sum(count for name, count in cells.items() if name.startswith("LUT"))
    flops = sum(count for name, count in cells.items() if name.startswith("FD"))
    assert 500 < luts < 53_200
    assert 500 < flops < 106_400


def test_the_verb_builds_and_says_in_a_sentence_what_is_missing(
    build: Build,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["hw", "bitstream", "--board", "pynq-z2", "--preset", "tiny", "--out"]
    assert main([*words, str(tmp_path / "made")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'made' / 'streamjoin.bit'}\n"
    assert main([*words, str(tmp_path / "made")]) == 2
    monkeypatch.setenv("PATH", "/nowhere")
    assert main([*words, str(tmp_path / "other")]) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.endswith("install it and source its settings64.sh")
    assert main(["hw", "bitstream", "--board", "x", "--out", str(tmp_path / "other")]) == 2


def test_the_verb_takes_a_clock(
    build: Build, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["hw", "bitstream", "--preset", "tiny", "--out", str(tmp_path / "made"), "--clock"]
    assert main([*words, "40", "--board", "pynq-z2"]) == 0
    manifest = json.loads((tmp_path / "made" / "manifest.json").read_text())
    assert manifest["clock"]["hz"] == 40e6
    capsys.readouterr()
    assert main([*words, "40", "--board", "ulx3s-85f"]) == 2
    assert "--clock is for the boards that Vivado builds for: drop it" in capsys.readouterr().err
