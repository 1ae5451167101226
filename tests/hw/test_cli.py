"""``streamjoin hw`` as a user types it."""

import dataclasses
import json
import re
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from tests.hw.commands import run

from streamjoin_common.contract import DesignParams, ParameterError
from streamjoin_common.contract.presets import PRESETS
from streamjoin_common.errors import UsageError
from streamjoin_common.storage import StorageError
from streamjoin_hw.cli import terminal


def test_simulate_prints_a_table_with_a_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("simulate", "--preset", "tiny", "--tuples", "300") == 0
    heading, rule, *rows = capsys.readouterr().out.splitlines()
    assert heading.split() == ["metric", "value"]
    assert set(rule) == {"─"}
    assert dict(row.rsplit(maxsplit=1) for row in rows).items() >= {"tuples": "300"}.items()
    assert rows[-1].split() == ["verdict", "exact"]
    assert all(line == line.rstrip() for line in (heading, *rows))


def test_simulate_prints_json(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--tuples", "400", "--seed", "3", "--idle", "300", "--stall", "300", "--json")
    assert run("simulate", "--preset", "tiny", "--window-r", "3", "--window-s", "9", *words) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["verdict"] == "exact"
    assert (figures["window_r"], figures["window_s"], figures["tuples"]) == (3, 9, 400)
    assert figures["results_backpressure_cycles"] > 0


def test_a_wrong_result_is_exit_status_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from streamjoin_hw.sim.bulk import SlidingJoin

    join = SlidingJoin.join
    surplus = np.array([123456 << 32 | 654321], np.uint64)
    monkeypatch.setattr(SlidingJoin, "join", lambda *given: np.append(join(*given), surplus))
    assert run("simulate", "--preset", "tiny", "--tuples", "50", "--json") == 1
    verdict = json.loads(capsys.readouterr().out)["verdict"]
    assert verdict == "1 pairs missing, 0 surplus: first missing (123456, 654321)"


def test_manifest_describes_the_parameters_given(capsys: pytest.CaptureFixture[str]) -> None:
    terms = "terms=band:int32,equi:uint32"
    words = ("--param", "cores=3", "segment_tuples=8", "--param", terms)
    assert run("manifest", *words) == 0
    params = DesignParams.from_dict(json.loads(capsys.readouterr().out)["params"])
    assert (params.cores, [term.text for term in params.terms]) == (
        3,
        ["band:int32", "equi:uint32"],
    )


def test_a_parameter_goes_over_the_preset(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "deep" / "m.json"
    assert run("manifest", "--preset", "tiny", "--param", "lanes=2", "--out", str(file)) == 0
    assert capsys.readouterr() == ("", f"wrote {file}\n")
    plain = json.loads(file.read_text())["params"]
    assert DesignParams.from_dict(plain) != PRESETS["tiny"]
    assert plain["lanes"] == 2


def test_verilog_writes_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("verilog", "--preset", "tiny", "--out", str(tmp_path / "v")) == 0
    verilog, header = tmp_path / "v" / "streamjoin_top.v", tmp_path / "v" / "streamjoin.h"
    beside = "manifest.json, streamjoin.h and streamjoin.core"
    written = f"wrote {verilog}, and beside it {beside}\n"
    assert capsys.readouterr() == (f"{verilog}\n", written)
    assert header.read_text().startswith("/* Registers and layouts of one design")


def test_registers_says_what_it_wrote(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "registers.md"
    assert run("registers", "--preset", "tiny", "--out", str(file)) == 0
    assert capsys.readouterr() == ("", f"wrote {file}\n")
    assert file.read_text().startswith("# Registers and layouts\n")


@pytest.mark.parametrize("below", ["below", "far/below"])
@pytest.mark.parametrize("action", ["verilog", "manifest", "registers", "model"])
def test_a_place_that_cannot_be_written_to_is_one_sentence(
    action: str, below: str, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("in the way")
    out = tmp_path / "file" / below
    with pytest.raises(
        StorageError, match=rf"^{tmp_path}/file/\S+ cannot be written \(.+\): name a"
    ):
        run(action, "--preset", "tiny", "--out", str(out))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_simulate_writes_nothing_and_takes_no_out(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run("simulate", "--preset", "tiny", "--out", "figures.json")
    assert ended.value.code == 2
    assert "unrecognized arguments: --out figures.json" in capsys.readouterr().err


def test_model_copies_to_a_folder_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "model"
    assert run("model", "--preset", "tiny", "--json", "--out", str(target)) == 0
    assert json.loads(capsys.readouterr().out) == {
        "folder": str(target),
        "digest": PRESETS["tiny"].digest,
    }
    assert (target / "model.so").is_file()
    with pytest.raises(UsageError, match=r"^--out must name a folder that is not there yet, not "):
        run("model", "--preset", "tiny", "--out", str(target))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("manifest",), "give --preset NAME, or --param cores=COUNT"),
        (
            ("manifest", "--preset", "huge"),
            f"--preset must be one of {', '.join(PRESETS)}, not 'huge'",
        ),
        (
            ("manifest", "--preset", "tiny", "--param", "lanes=two"),
            "--param lanes must be an integer, not 'two'",
        ),
        (
            ("manifest", "--preset", "tiny", "--param", "lanes"),
            "--param takes NAME=VALUE, as cores=16, not 'lanes'",
        ),
        (
            ("manifest", "--preset", "tiny", "--param", "cores=2", "laens=2"),
            "--param laens: a design has no such parameter: did you mean lanes?",
        ),
        (
            ("manifest", "--preset", "tiny", "--param", "zzz=2"),
            "--param zzz: a design has no such parameter: there are design, cores, "
            "segment_tuples, lanes, "
            "terms, payload_bits, merge_arity, result_fifo_words, forward, probes, order, "
            "timestamp_bits, window_memory, theta, buckets, ways, lead_tuples, comparators, "
            "kinds, stars, own_buckets, beat_results",
        ),
        (
            ("verilog", "--preset", "tiny"),
            "--out must name the folder that the Verilog is written to",
        ),
        (
            ("simulate", "--preset", "tiny", "--tuples", "0"),
            "--tuples must be at least 1, not 0",
        ),
        (
            ("simulate", "--preset", "tiny", "--stall", "1024"),
            "--stall must be from 0 to 1000 (of 1024 cycles), not 1024",
        ),
        (
            ("simulate", "--preset", "tiny-split", "--group", "3"),
            "groups of 3 arrivals need --param stars=grouped",
        ),
        (
            (
                "rate",
                "--preset",
                "tiny-split",
                "--param",
                "stars=grouped",
                "--groups",
                "4294967296",
            ),
            "a group must have from 0 to 4294967295 arrivals, not 4294967296",
        ),
    ],
)
def test_a_mistake_is_one_sentence(words: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(sentence)}$") as caught:
        run(*words)
    assert caught.value.exit_status == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("simulate", "--preset", "tiny", "--window-r", "33"),
            "--window-r must be an integer from 1 to 32, not 33",
        ),
        (
            ("simulate", "--preset", "tiny", "--window-r", "9", "--window-s", "1"),
            "--window-r must be at most 8 while --window-s is 1 (a segment holds 8 tuples), not 9",
        ),
        (
            ("manifest", "--preset", "tiny", "--param", "lanes=65"),
            "--param lanes must be an integer from 1 to 64, not 65",
        ),
        (
            ("latency", "--param", "segment_tuples=16", "--cores", "2000"),
            "--cores must be an integer from 1 to 1024, not 2000",
        ),
        (
            ("manifest", "--param", "forward=slow"),
            "--param forward must be one of step, fast, not 'slow'",
        ),
    ],
)
def test_a_design_input_that_does_not_fit_is_named_as_it_is_typed(
    words: tuple[str, ...], sentence: str
) -> None:
    with pytest.raises(ParameterError, match=f"^{re.escape(sentence)}$") as caught:
        run(*words)
    assert caught.value.exit_status == 2


def test_a_stage_that_lasts_is_reported_again(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said, again = terminal.say, threading.Event()

    def noted(message: str) -> None:
        said(message)
        if "still after" in message:
            again.set()

    monkeypatch.setattr(terminal, "say", noted)
    monkeypatch.setattr(terminal, "REPEATED_S", 0.01)
    with terminal.stages("two placements") as report:
        report("1 of 2, route")
        assert again.wait(60)
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "two placements: 1 of 2, route"
    assert re.fullmatch(r"two placements: 1 of 2, route, still after \d+ s", told[1])


def test_importing_the_verb_imports_nothing_heavy() -> None:
    code = (
        "import sys, streamjoin_hw.cli; "
        "print([m for m in ('amaranth', 'numpy', 'rich') if m in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_help_of_the_other_actions_shows_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    for action in ("prove", "animate", "simulate"):
        with pytest.raises(SystemExit):
            run(action, "--help")
        assert f"example:\n  streamjoin hw {action} " in capsys.readouterr().out


@pytest.mark.parametrize("action", ["verilog", "manifest", "model", "simulate"])
def test_help_shows_an_example(action: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(action, "--help")
    assert f"streamjoin hw {action} --p" in capsys.readouterr().out


@pytest.mark.parametrize("action", ["", "registers", "simulate"])
def test_help_lists_every_design_parameter(
    action: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        run(*action.split(), "--help")
    shown = capsys.readouterr().out
    for field in dataclasses.fields(DesignParams):
        assert re.search(rf"^  {field.name}=\S+ +[A-Z]\w+ ", shown, flags=re.MULTILINE)
    plain = " ".join(shown.split())
    assert "cores=COUNT Join cores, 1 to 1024 segment_tuples=COUNT" in plain
    assert "lanes=1 Stored tuples that one core compares in one cycle, 1 to 64" in plain
    listed = shown[shown.index("design parameters") :].partition("\n\n")[0]
    assert max(map(len, listed.splitlines())) <= 80


def test_a_folder_is_no_file_to_write(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"cannot be written .*: name a file in a folder"):
        run("animate", "--preset", "tiny", "--out", str(tmp_path))


@pytest.mark.parametrize("action", ["verilog", "manifest", "registers"])
def test_no_path_is_no_place_to_write_to(action: str) -> None:
    with pytest.raises(UsageError, match=r"^--out needs a path$"):
        run(action, "--preset", "tiny", "--out", "")


@pytest.mark.parametrize(
    "words",
    [
        ("verilog", "--preset", "tiny", "--out"),
        ("animate", "--preset", "tiny", "--out"),
        ("model", "--preset", "tiny", "--out"),
        ("simulate", "--preset", "tiny", "--waves"),
        ("synth", "--preset", "tiny", "--target", "ecp5-85k", "--out"),
        ("synth", "--preset", "tiny", "--target", "ecp5-85k", "--record"),
        ("bitstream", "--board", "ulx3s-85f", "--out"),
    ],
)
def test_an_output_that_cannot_be_written_is_refused_before_the_work(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("streamjoin_hw.cli.design_from", lambda *_: pytest.fail("worked"))
    with pytest.raises(StorageError, match="Not a directory"):
        run(*words, str(tmp_path / "file" / "out"))
    with pytest.raises(UsageError, match=f"^{words[-1]} needs a path$"):
        run(*words, "")
