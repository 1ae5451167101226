"""``streamjoin hw`` as a user types it."""

import argparse
import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from streamjoin_common.contract import DesignParams, ParameterError
from streamjoin_common.contract.presets import PRESETS
from streamjoin_common.errors import UsageError
from streamjoin_common.storage import StorageError
from streamjoin_hw.cli import VERB
from streamjoin_hw.formal import prove


def run(*words: str) -> int:
    """Run the verb with these words."""
    parser = argparse.ArgumentParser(prog="streamjoin hw")
    VERB.configure(parser)
    return VERB.run(parser.parse_args(words))


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
    words = ("--param", "cores=3", "--param", "segment_tuples=8", "--param", terms)
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
    verilog, manifest = tmp_path / "v" / "streamjoin_top.v", tmp_path / "v" / "manifest.json"
    header = tmp_path / "v" / "streamjoin.h"
    written = f"wrote {verilog}, {manifest} and {header}\n"
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
            "--param must be NAME=VALUE with NAME one of design, cores, segment_tuples, lanes, "
            "terms, payload_bits, merge_arity, result_fifo_words, forward, probes, order, "
            "timestamp_bits, window_memory, theta, buckets, ways, lead_tuples, not 'lanes'",
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
    ],
)
def test_a_mistake_is_one_sentence(words: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(sentence)}$") as caught:
        run(*words)
    assert caught.value.exit_status == 2


def test_a_window_that_does_not_fit_is_named() -> None:
    with pytest.raises(ParameterError, match=r"^window_r must be an integer from 1 to 32, not 33$"):
        run("simulate", "--preset", "tiny", "--window-r", "33")


def test_importing_the_verb_imports_nothing_heavy() -> None:
    code = (
        "import sys, streamjoin_hw.cli; "
        "print([m for m in ('amaranth', 'numpy', 'rich') if m in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_prove_prints_a_table_of_what_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("pipe-reg-paths", "merger-passage")
    monkeypatch.setenv("COLUMNS", "200")  # seconds of two digits would leave no room for methods
    assert run("prove", *names, "--quick", "--out", str(tmp_path)) == 0
    printed = capsys.readouterr()
    assert printed.err == "proving pipe-reg-paths\nproving merger-passage\n"
    heading, _, *rows = (line.split() for line in printed.out.splitlines())
    assert heading[:2] == ["proof", "what"]
    assert [row[0] for row in rows] == list(names)
    assert [row[-5:-3] + row[-2:] for row in rows] == [
        ["structure", "any", "yes", "found"],
        ["induction", "any", "yes", "found"],
    ]


def test_a_proof_that_does_not_hold_is_exit_status_1_and_names_its_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = prove.Verdict(
        *("p", "a proof", 3, "bounded", 5, 1.0, None, None, "a fault", True, "a claim")
    )
    broken = dataclasses.replace(sound, failed="all is well", trace="p.vcd", fault_found=False)
    verdicts = [sound]
    monkeypatch.setattr(prove, "run_all", lambda *_, **__: verdicts)
    assert run("prove", "--out", str(tmp_path), "--json") == 0
    verdicts[0] = broken
    assert run("prove", "--out", str(tmp_path), "--json") == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out.splitlines()[1])[0]["holds"] is False
    assert printed.err == (
        "p does not hold, 'all is well' fails: see p.vcd\np does not find its fault (a fault)\n"
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("prove", "nothing"), f"NAME must be among {', '.join(prove.names())}, not 'nothing'"),
        (("prove", "--depth", "0"), "--depth must be at least 1, not 0"),
    ],
)
def test_a_mistake_about_proofs_is_one_sentence(words: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(sentence)}$"):
        run(*words)


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


def test_latency_prints_measurements_beside_closed_forms(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("latency", "--cores", "3", "--param", "segment_tuples=4", "--param", "lanes=2")
    assert run(*words, "--param", "payload_bits=16", "--json") == 0
    step, fast, split = json.loads(capsys.readouterr().out)
    assert [row["variant"] for row in (step, fast, split)] == ["step", "fast", "splitjoin"]
    assert split["last_match_cycles"] == split["last_formula"]
    assert step["last_match_cycles"] > fast["last_match_cycles"] == fast["last_formula"]
    assert run(*words, "--param", "payload_bits=16", "--variant", "fast") == 0
    _, heading, _, row = capsys.readouterr().out.splitlines()
    assert heading.startswith("variant")
    assert row.split()[:3] == ["fast", "3", "12"]


def test_latency_that_differs_from_its_closed_form_is_exit_status_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from streamjoin_hw.studies.latency import cases

    right = cases.latency_cycles
    monkeypatch.setattr(cases, "latency_cycles", lambda params, age: right(params, age) + 1)
    words = ("--param", "segment_tuples=4", "--param", "lanes=2", "--param", "payload_bits=16")
    assert run("latency", "--cores", "3", "--variant", "fast", *words) == 1
    assert capsys.readouterr().err.splitlines()[-1] == (
        "fast cores=3 does not agree with its closed forms"
    )


@pytest.mark.parametrize("counts", ["", "0", "1,,2", "x", "2;3"])
def test_counts_of_cores_that_are_none_are_refused(counts: str) -> None:
    sentence = f"--cores must be counts from 1 up, as in 1,2,4,8, not {counts!r}"
    with pytest.raises(UsageError, match=f"^{re.escape(sentence)}$"):
        run("latency", "--cores", counts)


@pytest.mark.parametrize("action", ["simulate", "animate"])
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--window-r", "0"), "window_r must be an integer from 1 to 32, not 0"),
        (("--window-s", "0"), "window_s must be an integer from 1 to 32, not 0"),
        (("--seed", "-1"), "--seed must be 0 or more, not -1"),
    ],
)
def test_a_window_or_seed_that_is_none_is_refused(
    tmp_path: Path, action: str, words: tuple[str, ...], sentence: str
) -> None:
    out = ("--out", str(tmp_path / "walk.html")) if action == "animate" else ()
    with pytest.raises((UsageError, ParameterError), match=f"^{re.escape(sentence)}$"):
        run(action, "--preset", "tiny", *words, *out)
    assert not list(tmp_path.iterdir())


def test_a_folder_is_no_file_to_write(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"cannot be written .*: name a file in a folder"):
        run("animate", "--preset", "tiny", "--out", str(tmp_path))


@pytest.mark.parametrize("action", ["verilog", "manifest", "registers"])
def test_no_path_is_no_place_to_write_to(action: str) -> None:
    with pytest.raises(UsageError, match=r"^--out must name a path, not nothing$"):
        run(action, "--preset", "tiny", "--out", "")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--windows", "49"), "--windows must be at most 48, which the design holds, not 49"),
        (("--windows", "8,x"), "--windows must be integers from 1 up, as in 1,2,4, not 'x'"),
        (("--rates", "-1"), "--rates must be numbers from 0 up, as in 1,2,4, not '-1'"),
        (("--keys", "some"), "--keys must be among uniform, zipf, zipf-both, not 'some'"),
        (("--windows", "8", "--tuples", "0"), "--tuples must be at least 1, not 0"),
        (
            ("--param", "terms=equi:int32,band:int32"),
            "--param terms must be one equi term, without timestamps and theta",
        ),
    ],
)
def test_a_mistake_about_rates_is_one_sentence(words: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(sentence)}$"):
        run("rate", "--preset", "tiny-hash", "--windows", "8", *words)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("animate", "--preset", "tiny-hash", "--out", "x.html"),
            "hw animate is about the array of cores: the design must be handshake, not "
            "splitjoin-hash",
        ),
        (
            ("latency", "--preset", "tiny-hash"),
            "hw latency is about arrays of cores: the design must not be splitjoin-hash",
        ),
        (
            ("latency", "--variant", "slow"),
            "--variant must be one of step, fast, splitjoin, not slow",
        ),
        (
            ("latency", "--param", "design=splitjoin", "--param", "order=inner"),
            "under the inner order a match waits for others: --param order=outer",
        ),
    ],
)
def test_what_shows_an_array_wants_one(words: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(sentence)}$"):
        run(*words)


def test_rates_are_a_row_for_each_load(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--windows", "6,48", "--rates", "0,2", "--keys", "uniform,zipf-both")
    assert run("rate", "--preset", "tiny-hash", *words, "--tuples", "3000", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["window"], row["keys"], row["match_rate"]) for row in rows] == [
        (window, keys, rate)
        for window in (6, 48)
        for keys in ("uniform", "zipf-both")
        for rate in (0.0, 2.0)
    ]
    assert all(row["cycles_per_tuple"] >= max(1, row["owed_per_tuple"]) for row in rows)
    assert {row["verdict"] for row in rows} == {"exact"}


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
    with pytest.raises(UsageError, match=f"^{words[-1]} must name a path, not nothing$"):
        run(*words, "")
