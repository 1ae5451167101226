"""The verb ``streamjoin data``."""

import argparse
import dataclasses
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from streamjoin_datagen.cli import VERB
from streamjoin_datagen.cli.usage import WIDTH, first_sentences
from streamjoin_datagen.errors import SpecError
from streamjoin_datagen.params import SPECS
from streamjoin_datagen.session import Session
from streamjoin_datagen.suites import read_suite

ROOT = Path(__file__).resolve().parents[2]
SUITES = sorted((ROOT / "benchmarks" / "workloads").glob("*.toml"))

SUITE = """
name = "tiny"
[[workload]]
kind = "equi"
seed = 3
params = { r_tuples = 30, s_tuples = 20, keys = "zipf", skew = 0.5 }
window = "all"
engines = ["npj"]
[[workload]]
name = "second"
kind = "band"
seed = 4
params = { duration_s = 0.01 }
rounds = 3
threads = 2
arrival = "paced"
speedup = 10
knobs = { kang = { batch_tuples = 8 } }
"""


def run(*words: object) -> int:
    parser = argparse.ArgumentParser()
    VERB.configure(parser)
    return VERB.run(parser.parse_args([str(word) for word in words]))


@pytest.fixture
def one_session(session: Session, monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """Hand out the tests' session, and note the threads of each time it is asked for."""
    asked: list[int | None] = []

    @contextmanager
    def shared(threads: int | None = None, **_: object) -> Iterator[Session]:
        asked.append(threads)
        yield session

    monkeypatch.setattr("streamjoin_datagen.session.spark_session", shared)
    return asked


def test_a_workload_is_generated_and_shown(
    one_session: list[int | None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    out = tmp_path / "w"
    words = ["band", "--param", "duration_s=0.1", "rate_s=100", "--param", "lo=3", "--seed", "1"]
    assert run(*words, "--out", out, "--threads", "2", "--partitions", "3") == 0
    shown = capsys.readouterr()
    header, _, line = shown.out.splitlines()
    assert header.split() == ["workload", "status", "rows", "bytes", "seconds"]
    assert line.split()[:3] == ["band-s100-t0.1-lo3-seed1", "generated", "210"]
    assert shown.err == "generating band-s100-t0.1-lo3-seed1 with Spark\n"
    assert one_session == [2]


def test_a_terminal_gets_a_bar_in_place_of_the_line(
    one_session: list[int | None],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")
    words = ["equi", "--param", "r_tuples=10", "s_tuples=10", "--seed", "1"]
    assert run(*words, "--out", tmp_path / "w") == 0
    shown = capsys.readouterr().err
    assert "1/1 equi-r10-s10-seed1" in shown
    assert "with Spark" not in shown


def test_an_interrupt_while_spark_ends_does_not_disown_what_is_made(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @contextmanager
    def interrupted_at_its_end(*_: object, **__: object) -> Iterator[Session]:
        yield session
        raise KeyboardInterrupt

    monkeypatch.setattr("streamjoin_datagen.session.spark_session", interrupted_at_its_end)
    words = ["equi", "--param", "r_tuples=10", "s_tuples=10", "--seed", "1"]
    assert run(*words, "--out", tmp_path / "w") == 0
    assert (tmp_path / "w" / "workload.json").is_file()


def test_an_interrupt_before_all_is_made_is_passed_on(
    one_session: list[int | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("streamjoin_datagen.generate.generate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run("band", "--seed", "1", "--out", tmp_path / "w")
    assert list(tmp_path.iterdir()) == []


def test_an_identical_workload_is_left_and_said_so(
    one_session: list[int | None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "w"
    words = ["equi", "--param", "r_tuples=10", "s_tuples=10", "--seed", "1", "--out", out]
    assert run(*words) == 0
    written = (out / "workload.json").stat().st_mtime_ns
    capsys.readouterr()
    assert run(*words, "--json") == 0
    shown = capsys.readouterr()
    assert shown.err == f"{out} already holds equi-r10-s10-seed1: unchanged\n"
    (line,) = json.loads(shown.out)
    assert (line["status"], line["rows"], line["path"]) == ("unchanged", 20, str(out))
    assert (out / "workload.json").stat().st_mtime_ns == written
    assert len(one_session) == 1


def test_that_another_workload_is_replaced_is_said(
    one_session: list[int | None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["equi", "--param", "r_tuples=10", "s_tuples=10", "--out", tmp_path, "--seed"]
    assert run(*words, "1") == 0
    capsys.readouterr()
    assert run(*words, "2") == 0
    first, second = (f"equi-r10-s10-seed{seed}" for seed in (1, 2))
    said = capsys.readouterr().err.splitlines()[0]
    assert said == f"{tmp_path} holds {first}: {second} replaces it"


def test_a_suite_is_generated_in_one_session(
    one_session: list[int | None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = tmp_path / "tiny.toml"
    suite.write_text(SUITE)
    assert run(suite, "--out", tmp_path / "out", "--json") == 0
    lines = json.loads(capsys.readouterr().out)
    assert [(line["workload"], line["rows"]) for line in lines] == [
        ("equi-r30-s20-zipf-z0.5-seed3", 50),
        ("second", 40),
    ]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "equi-r30-s20-zipf-z0.5-seed3",
        "second",
    ]
    assert len(one_session) == 1


def test_tables_are_imported_without_spark(
    one_session: list[int | None], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("r", "s"):
        (tmp_path / f"{name}.csv").write_text("k,ts\n1,0\n")
    files = [tmp_path / "r.csv", tmp_path / "s.csv"]
    assert run("import", "csv", *files, "--on", "k", "--out", tmp_path / "w") == 0
    shown = capsys.readouterr()
    assert "imported" in shown.out
    assert shown.err == "importing r-s\n"
    assert one_session == []


@pytest.mark.parametrize("column", ["when", "ts"])
def test_a_renamed_arrival_column_is_said_so(
    column: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("r", "s"):
        (tmp_path / f"{name}.csv").write_text(f"k,{column}\n1,0\n")
    files = [tmp_path / "r.csv", tmp_path / "s.csv"]
    words = ["import", "csv", *files, "--on", "k", "--ts", column, "--out", tmp_path / "w"]
    said = "the arrival column 'when' is named ts in the workload"
    assert run(*words) == 0
    assert (said in capsys.readouterr().err.splitlines()) == (column == "when")
    assert run(*words) == 0
    assert said not in capsys.readouterr().err


MISTAKES = [
    (["band"], "workload band needs a seed: give --seed N, or seed = N in a suite"),
    (["theta", "--seed", "1"], f"workload must be one of {', '.join(SPECS)}, not 'theta'"),
    (["band", "equi"], "one workload at a time: band is followed by equi"),
    (["band", "--on", "k"], "--on does not go with band: remove it"),
    (["band", "--threads", "0"], "--threads must be at least 1, not 0"),
    (["nowhere.toml"], "there is no suite nowhere.toml"),
    (["nowhere.toml", "--seed", "1"], "--seed does not go with a suite: remove it"),
    (["import"], "import takes flights, csv, parquet, alliancedb or tpch, not ''"),
    (["import", "xml"], "import takes flights, csv, parquet, alliancedb or tpch, not 'xml'"),
    (["import", "csv", "r.csv"], "import csv takes the file of R and that of S, not 1 files"),
    (["import", "csv", "r.csv", "s.csv", "--on", "k"], "there is no file r.csv"),
    (["import", "flights", "--on", "k"], "--on does not go with import flights: remove it"),
    (["import", "flights", "--seed", "1"], "--seed does not go with import: remove it"),
]


@pytest.mark.parametrize(("words", "sentence"), MISTAKES)
def test_a_mistake_is_one_sentence(words: list[str], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=f"^{re.escape(sentence)}$"):
        run(*words, "--out", tmp_path / "w")
    assert not (tmp_path / "w").exists()


SUITE_MISTAKES = [
    ('name = "a"', "workload must be [[workload]] tables, not None"),
    ('[[workload]]\nkind = "band"', "name must be the suite's name, not None"),
    ('name = "a"\nsize = 3', "suite key must be name or workload, not 'size'"),
    (
        'name = "a"\n[[workload]]\nkind = "join"',
        "workload 1: kind must be one of " + ", ".join(SPECS) + ", flights, not 'join'",
    ),
    (
        'name = "a"\n[[workload]]\nkind = "band"',
        "workload 1: workload band needs a seed: give --seed N, or seed = N in a suite",
    ),
    (
        'name = "a"\n[[workload]]\nkind = "band"\nseed = 1\nspeed = 1',
        "workload 1: key must be one of kind, seed, name, params, window, how, order, engines, "
        "rounds, threads, arrival, speedup, knobs, not 'speed'",
    ),
    (
        'name = "a"\n[[workload]]\nkind = "flights"\n[[workload]]\nkind = "flights"',
        "workload 2: name must be different for each workload, not 'flights'",
    ),
    (
        'name = "a"\n[[workload]]\nkind = "flights"\nname = "../up"',
        "workload 1: name must be letters, digits, dots, dashes and underscores, not '../up'",
    ),
]


@pytest.mark.parametrize(("text", "sentence"), SUITE_MISTAKES)
def test_a_wrong_suite_names_its_file(text: str, sentence: str, tmp_path: Path) -> None:
    suite = tmp_path / "suite.toml"
    suite.write_text(text)
    with pytest.raises(SpecError, match=f"^{re.escape(f'{suite}: {sentence}')}$"):
        read_suite(suite)


def test_a_suite_that_is_no_toml_is_one_sentence(tmp_path: Path) -> None:
    suite = tmp_path / "suite.toml"
    suite.write_text("name = ")
    with pytest.raises(
        SpecError, match=f"^{re.escape(str(suite))} is not a suite: it is not TOML: "
    ):
        read_suite(suite)


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.stem)
def test_every_suite_of_the_project_is_right(path: Path) -> None:
    suite = read_suite(path)
    assert suite.name == path.stem
    assert "flights" in [entry.kind for entry in suite.entries]


def test_there_are_three_suites() -> None:
    assert [path.stem for path in SUITES] == ["large", "medium", "small"]


def test_heavy_libraries_are_imported_only_when_needed() -> None:
    code = (
        "import sys, argparse\n"
        "from streamjoin_datagen.cli import VERB\n"
        "VERB.configure(argparse.ArgumentParser())\n"
        "heavy = {'numpy', 'pyarrow', 'pyspark', 'rich', 'pandas'} & set(sys.modules)\n"
        "print(sorted(heavy))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


def shown_help(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    with pytest.raises(SystemExit) as ended:
        run("--help")
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_help_shows_examples_in_a_folder_that_is_ignored(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = shown_help(capsys, monkeypatch)
    assert "streamjoin data band --param" in shown
    written = re.findall(r"--out (\S+/\S*)", shown)
    assert len(written) == 5
    assert all(folder.startswith("runs/workloads/") for folder in written)
    assert "/runs/" in (ROOT / ".gitignore").read_text().splitlines()


@pytest.mark.parametrize("kind", list(SPECS))
def test_help_lists_every_parameter_with_default_and_meaning(
    kind: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = shown_help(capsys, monkeypatch)
    _, _, section = shown.partition(f"parameters of {kind}")
    listed = " ".join(section.partition("\n\n")[0].split())
    fields = [field for field in dataclasses.fields(SPECS[kind]) if field.name != "seed"]
    meanings = first_sentences(SPECS[kind])
    assert sorted(meanings) == sorted(field.name for field in fields)
    for field in fields:
        default = f"{field.default:g}" if isinstance(field.default, float) else field.default
        assert f"{field.name}={default} {meanings[field.name]}" in listed


def test_help_fits_a_terminal_and_says_when_a_seed_is_required(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = shown_help(capsys, monkeypatch)
    assert max(map(len, shown.splitlines())) <= WIDTH
    assert re.search(r"--seed N +seed; required for every generated\s+workload\n", shown)
    assert "already sorted by arrival" in shown


@pytest.mark.parametrize("kind", list(SPECS))
def test_the_page_of_workloads_names_every_kind_and_parameter(kind: str) -> None:
    page = (ROOT / "docs" / "workloads.md").read_text().partition("\n## Real data")[0]
    (row,) = [line for line in page.splitlines() if line.startswith(f"| `{kind}` |")]
    same = {
        "gaussian": ["uniform"],
        "gamma": ["uniform"],
        "shifting-gaussian": ["uniform", "gaussian"],
    }
    rows = [line for line in page.splitlines() for k in same.get(kind, []) if f"| `{k}` |" in line]
    named = re.findall(r"`(\w+)`", " ".join([row, *rows]))
    fields = [field.name for field in dataclasses.fields(SPECS[kind]) if field.name != "seed"]
    assert set(fields) <= set(named)
