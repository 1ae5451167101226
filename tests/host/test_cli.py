"""The command line: exit codes, one sentence for a mistake, outputs whole or absent."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.host.commands import words

from streamjoin.cli import main
from streamjoin.engines import catalog
from streamjoin.inputs.files import read_table


def test_late_rows_are_joined_within_a_lateness_and_counted_beyond(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [*words(files, r="unsorted.parquet"), "--on", "k", "--window", "count:9", "--verify"]
    counts = []
    for lateness, told in (("57us", ""), ("56us", "unsorted.parquet: 1 tuples arrived too late")):
        assert main([*given, "--arrival", "instant", "--lateness", lateness, "--json"]) == 0
        printed = capsys.readouterr()
        metrics = json.loads(printed.out)
        counts.append((metrics["n_r"], metrics["late"]))
        assert told in printed.err
    assert counts == [(500, [0, 0]), (499, [1, 0])]
    assert main([*given, "--lateness", "soon"]) == 2
    assert (
        "--lateness: a duration is a number with us, ms, s, min, h or d, for example 1.5s, not "
        "'soon'" in capsys.readouterr().err
    )


def test_an_empty_band_is_joined_and_named_once(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [*words(files), "--band", "x=a:-1:-2", "--arrival", "instant", "--json"]
    assert main(given) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["pairs"] == 0
    assert printed.err.count("is empty") == 1
    assert "warning: band 'x=a:-1:-2' is empty: its lower bound a + 1 lies above its" in printed.err


MISTAKES = {
    "a missing column": (["--on", "nothere"], {}, "there is no column 'nothere'; it has k"),
    "a column that both lack": (
        ["--on", "nothere"],
        {},
        "s.parquet: there is no column 'nothere'; it has k",
    ),
    "a misspelt column": (["--on", "K"], {}, "no column 'K'; it has k, x, y, z, ts: did you mean"),
    "a misspelt ts": (["--on", "k", "--ts", "Ts"], {}, "no arrival column 'Ts'; it has k, x, y, z"),
    "a misspelt flag": (["--on", "k", "--ouput", "p"], {}, "did you mean --output?; see streamjo"),
    "a misspelt order": (["--on", "k", "--order", "iner"], {}, "did you mean inner?"),
    "a misspelt knob": (["--on", "k", "--set", "bach=7"], {}, "simd: did you mean batch?"),
    "an empty folder": (["--on", "k"], {"r": "folder"}, "folder: the folder holds no Parquet file"),
    "a CSV of semicolons": (["--on", "k"], {"r": "semicolons.csv"}, "are separated by ';' and mus"),
    "a missing S column": (["--on", "x=nothere"], {}, "no column 'nothere'"),
    "a text band column": (
        ["--band", "z=a:1:1"],
        {},
        "column 'z' is string; a band needs numbers or times",
    ),
    "unsorted ts": (
        ["--on", "k"],
        {"r": "unsorted.parquet"},
        "ts goes back at row 7, from 60 to 3: sort the input by ts",
    ),
    "a truncated file": (["--on", "k"], {"r": "cut.parquet"}, "cut.parquet: cannot be read"),
    "a file to write anew": (
        ["--on", "k"],
        {"r": "cut.parquet"},
        ": write it anew, or give",
    ),
    "an empty file": (["--on", "k"], {"r": "empty.parquet"}, "empty.parquet: cannot be read"),
    "a missing file": (["--on", "k"], {"s": "no.parquet"}, "no.parquet: there is no such file"),
    "an unknown engine": (
        ["--on", "k"],
        {"engine": "warp"},
        "no engine 'warp': choose one of npj",
    ),
    "a misspelt engine": (
        ["--on", "k"],
        {"engine": "splitjion"},
        "did you mean splitjoin? To list all, type  streamjoin engines",
    ),
    "an impossible window": (["--on", "k", "--window", "count:0"], {}, "for example 1024, not '0'"),
    "a negative window": (["--on", "k", "--window", "count:-5"], {}, "for example 1024, not '-5'"),
    "a window that is too long": (
        ["--on", "k", "--window", "time:2305843009214d"],
        {},
        "a duration is at most 4611686018427387903us, not '2305843009214d'",
    ),
    "a huge window": (
        ["--on", "k", "--window", f"count:{10**30}"],
        {},
        "the count window of R must be an integer from 1 to below 2**62",
    ),
    "an unknown window": (["--on", "k", "--window", "week"], {}, "a window is all, tumbling"),
    "a window without unit": (
        ["--on", "k", "--window", "time:5"],
        {},
        "with us, ms, s, min, h or d",
    ),
    "a window the engine lacks": (
        ["--on", "k", "--window", "count:5"],
        {"engine": "npj"},
        "npj cannot join under window count:5, only all, tumbling",
    ),
    "a predicate the engine lacks": (
        ["--band", "x=a:1:1"],
        {"engine": "npj"},
        "npj cannot join with a band predicate, only equi",
    ),
    "a window larger than the design": (
        ["--on", "k", "--window", "count:5000"],
        {"engine": "fpga-handshake"},
        "needs 5000 tuples of a stream and the design holds 1024",
    ),
    "no predicate": ([], {}, "a predicate is needed: --on COL"),
    "a band without widths": (["--band", "x=a"], {}, "band takes RCOL=SCOL:LO:HI"),
    "a width that is no number": (["--band", "x=a:q:1"], {}, "the width 'q' is not a number"),
    "a fraction on whole numbers": (
        ["--band", "x=a:0.5:1"],
        {},
        "so the widths must be integers too",
    ),
    "a band of two kinds": (["--band", "x=b:1:1"], {}, "two columns of the same kind"),
    "a duration for numbers": (["--band", "x=a:5s:5s"], {}, "write the widths without a unit"),
    "equality of text and number": (
        ["--on", "z=a"],
        {},
        "both must be of one kind",
    ),
    "a missing ts column": (["--on", "k", "--ts", "when"], {}, "there is no arrival column 'when'"),
    "a ts that is text": (["--on", "k", "--ts", "z"], {}, "it must be int64 microseconds"),
    "an unknown knob": (["--on", "k", "--set", "speed=9"], {}, "kang has no knob 'speed'; it has"),
    "the second of two knobs": (
        ["--on", "k", "--set", "batch=7", "speed=9"],
        {},
        "kang has no knob 'speed'; it has",
    ),
    "a knob without value": (["--on", "k", "--set", "batch"], {}, "--set takes KNOB=VALUE"),
    "a bad knob value": (["--on", "k", "--set", "batch=0"], {}, "from 1 to 1048576, not '0'"),
    "no threads": (
        ["--on", "k", "--threads", "0"],
        {},
        "integer from 1 to 1024, not 0",
    ),
    "no speed": (["--on", "k", "--speedup", "0"], {}, "speedup must be a number above 0, not 0.0"),
    "a speed of no replay": (["--on", "k", "--speedup", "2"], {}, "add --arrival replay, or drop"),
    "a backend of another kind": (["--on", "k", "--backend", "model"], {}, "has no backend"),
    "an unknown flag": (["--on", "k", "--colour"], {}, "unrecognized arguments: --colour"),
    "a flag that begins like others": (
        ["--on", "k", "--th", "1"],
        {},
        "unrecognized arguments: --th",
    ),
    "a threads that is no number": (["--threads", "two"], {}, "invalid int value: 'two'"),
    "a promise beyond the engine's": (
        ["--on", "k", "--order", "outer"],
        {"engine": "npj"},
        "npj promises order none, not outer",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_one_sentence_exit_2_and_no_file(
    files: Path, capsys: pytest.CaptureFixture[str], mistake: str
) -> None:
    flags, inputs, sentence = MISTAKES[mistake]
    before = sorted(path.name for path in files.iterdir())
    output = ["--output", str(files / "pairs.parquet"), "--metrics", str(files / "m.json")]
    try:
        status = main([*words(files, **inputs), *flags, *output])
    except SystemExit as exit_by_argparse:
        status = exit_by_argparse.code
    printed = capsys.readouterr()
    assert status == 2
    assert sentence in printed.err
    assert printed.err.strip().count("\n") == 0
    assert printed.out == ""
    assert sorted(path.name for path in files.iterdir()) == before


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--output", "pairs.xlsx"], "must end in .parquet or .arrow or .csv"),
        (["--output", "r.parquet/pairs.parquet"], "name a path whose folders are folders"),
        (["--metrics", "metrics.txt"], "must end in .json"),
    ],
)
def test_an_impossible_output_is_refused_before_the_work(
    files: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    flags: list[str],
    sentence: str,
) -> None:
    monkeypatch.chdir(files)
    assert main([*words(files), "--on", "k", *flags]) == 2
    assert sentence in capsys.readouterr().err


def test_folders_of_an_output_are_made_when_it_is_written_and_not_before(files: Path) -> None:
    target = files / "no" / "where" / "pairs.csv"
    given = ["--on", "k", "--output", str(target)]
    assert main([*words(files, engine="npj"), *given, "--window", "count:5"]) == 2
    assert not (files / "no").exists()
    assert main([*words(files), *given]) == 0
    assert target.is_file()


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv"])
def test_join_writes_pairs_and_metrics_and_verifies(files: Path, suffix: str) -> None:
    pairs, metrics = files / f"pairs{suffix}", files / "m.json"
    flags = ["--band", "x=a:3:3", "--window", "count:40", "--arrival", "instant", "--verify"]
    assert main([*words(files), *flags, "--output", str(pairs), "--metrics", str(metrics)]) == 0
    table, said = read_table(pairs), json.loads(metrics.read_text())
    assert table.column_names == ["r_row", "s_row", "ts"]
    assert table.num_rows == said["pairs"] > 100
    assert said["verified_by"] == "oracle"
    r, s = (pq.read_table(files / f"{name}.parquet") for name in ("r", "s"))
    ts = np.maximum(
        r["ts"].to_numpy()[table["r_row"].to_numpy()], s["ts"].to_numpy()[table["s_row"].to_numpy()]
    )
    assert table["ts"].to_numpy().tolist() == ts.tolist()
    assert not [path for path in files.iterdir() if path.name.startswith(".")]


def test_every_input_format_gives_the_same_digest(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    digests = set()
    for r, s in (("r.parquet", "s.parquet"), ("r.csv", "s.arrow")):
        assert main([*words(files, r=r, s=s, engine="npj"), "--on", "k", "--json"]) == 0
        digests.add(json.loads(capsys.readouterr().out)["digest"])
    assert len(digests) == 1


def test_text_keys_join_on_every_engine(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    digests = set()
    for engine in ("npj", "kang", "duckdb", "oracle"):
        assert main([*words(files, engine=engine), "--on", "z=c", "--json"]) == 0
        digests.add(json.loads(capsys.readouterr().out)["digest"])
    assert len(digests) == 1


def test_engines_lists_every_engine(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["engines", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["engine"] for row in rows] == catalog.names()
    assert {row["usable"] for row in rows} == {"yes"}
    assert main(["engines"]) == 0
    assert "fpga-handshake" in capsys.readouterr().out


def test_an_engine_is_explained_with_all_its_knobs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["engines", "ssbj"]) == 0
    shown = capsys.readouterr().out
    for knob in catalog.get("ssbj").knobs:
        assert re.search(rf"^{knob.name} +{knob.default} ", shown, flags=re.MULTILINE)
    assert "1 to 3600" in shown
    assert main(["engines", "npj", "--json"]) == 0
    plain = json.loads(capsys.readouterr().out)
    assert plain["knobs"]["load"]["range"] == "1 to 64"
    assert main(["engines", "ssbi"]) == 2
    assert "did you mean ssbj? To list all, type  streamjoin engines" in capsys.readouterr().err


def test_an_engine_that_cannot_run_here_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("streamjoin.engines.base.find_spec", lambda _: None)
    assert main(["engines", "kang"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert (
        "usable here no: Numba is not installed, which every compiled engine needs: type pip"
        in shown
    )


@pytest.mark.parametrize(
    "verb", [[], ["join"], ["compare"], ["engines"], ["report"], ["data"], ["hw"]]
)
def test_every_verb_explains_itself(verb: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([*verb, "--help"])
    assert stopped.value.code == 0
    assert "example" in capsys.readouterr().out


def test_an_unknown_verb_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["joyn"])
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert "invalid choice: 'joyn'" in said
    assert "did you mean join?" in said


def test_flags_of_join_are_named_where_a_verb_takes_folders(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["compare", "--r", "a", "--s", "b"])
    assert stopped.value.code == 2
    assert "--r: --r and --s are flags of join and advise; see" in capsys.readouterr().err


def test_the_bare_command_shows_its_help(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([])
    assert stopped.value.code == 0
    assert "example" in capsys.readouterr().out


def test_an_input_is_never_overwritten(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (files / "r.parquet").read_bytes()
    assert main([*words(files), "--on", "k", "--output", str(files / "r.parquet")]) == 2
    assert "is an input; it would be overwritten" in capsys.readouterr().err
    assert (files / "r.parquet").read_bytes() == before


def test_tuples_are_joined_at_once_unless_a_replay_is_asked_for(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [*words(files), "--on", "k", "--json"]
    assert main(given) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["arrival"] == "instant"
    assert "replay" not in printed.err
    assert main([*given, "--arrival", "replay"]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["arrival"] == "replay"
    assert re.search(
        r"the replay takes [\d.]+ \w+; --speedup X makes it X times faster", printed.err
    )


def test_a_table_that_cannot_be_printed_leaves_no_file(files: Path) -> None:
    target = files / "pairs.parquet"
    command = [sys.executable, "-m", "streamjoin", *words(files), "--on", "k", "--output"]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*command, str(target)], stdout=full, stderr=subprocess.PIPE, timeout=120, check=False
        )
    assert done.returncode == 1
    assert not [path for path in files.iterdir() if "pairs" in path.name]


@pytest.mark.parametrize(
    "raised",
    [
        MemoryError(),
        pa.ArrowMemoryError("malloc of size 64 failed"),
        MemoryError("Unable to allocate 7.28 TiB for an array"),
    ],
)
def test_memory_that_is_exhausted_while_reading_is_one_sentence(
    raised: Exception, files: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    def read(*_: object, **__: object) -> None:
        raise raised

    monkeypatch.setattr("streamjoin.inputs.files._read_parquet", read)
    assert main([*words(files), "--on", "k"]) == 1
    said = capfd.readouterr().err
    assert said.startswith("streamjoin: the memory is exhausted")
    assert said.count("\n") == 1


def test_a_long_value_is_not_repeated_whole(capsys: pytest.CaptureFixture[str]) -> None:
    for name, sentence in (("x" * 5_000, "(5005 characters)"), ("x" * 100_000, "... (100")):
        assert main(["join", "--r", f"{name}.csv", "--s", "s.csv", "--on", "k"]) == 2
        said = capsys.readouterr().err
        assert len(said) < 700
        assert sentence in said
