"""``streamjoin join`` in a pipe: joined rows to files and standard output, tables from it."""

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest

from streamjoin.cli import main
from streamjoin.errors import InputError
from streamjoin.inputs.piped import read_piped

DEADLINE_S = 120
R = pa.table({"k": [1, 2, 3, 2], "a": ["x", "y", None, "w"], "spare": [[1], [2], [3], [4]]})
S = pa.table({"k": [2, 3, 7], "b": [0.5, 1.5, 2.5]})
ROWS = [{"a": None, "b": 1.5}, {"a": "w", "b": 0.5}, {"a": "y", "b": 0.5}]


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pq.write_table(R, "r.parquet")
    Path("s").mkdir()
    pq.write_table(S.slice(0, 1), "s/1.parquet")
    pq.write_table(S.slice(1), "s/2.parquet")
    pv.write_csv(S, "s.csv")
    return tmp_path


def join(*words: str) -> list[str]:
    return ["join", "--engine", "npj", "--on", "k", *words]


def streamjoin(*words: str, stdin: Any = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "streamjoin", *join(*words)],
        input=stdin, capture_output=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip


def read(path: Path) -> pa.Table:
    if path.suffix == ".parquet":
        return pq.read_table(path)
    if path.suffix == ".csv":
        return pv.read_csv(path, convert_options=pv.ConvertOptions(strings_can_be_null=True))
    with pa.ipc.open_file(path) as reader:
        return reader.read_all()


def in_order(table: pa.Table) -> list[dict[str, Any]]:
    return sorted(table.to_pylist(), key=lambda row: (row["a"] or "", row["b"]))


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv"])
def test_joined_rows_go_to_a_file(suffix: str, inputs: Path) -> None:
    out = inputs / f"out{suffix}"
    words = ("--r", "r.parquet", "--s", "s/*.parquet", "--columns", "r.a", "--columns", "b")
    assert main(join(*words, "--output", str(out))) == 0
    assert in_order(read(out)) == ROWS


def test_only_the_columns_that_are_needed_are_read(
    inputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    original = pq.read_table

    def noted(path: Any, columns: list[str], **named: Any) -> pa.Table:
        read.extend(columns)
        return original(path, columns=columns, **named)

    monkeypatch.setattr(pq, "read_table", noted)
    words = ("--r", "r.parquet", "--s", "s", "--columns", "a,b", "--output", str(inputs / "o.csv"))
    assert main(join(*words)) == 0
    assert sorted(read) == ["a", "b", "k", "k"]


def test_commands_stand_in_a_pipe(inputs: Path) -> None:
    first = streamjoin("--r", "r.parquet", "--s", "s", "--columns", "*", "--output", "-")
    assert first.returncode == 0
    assert b"metric" in first.stderr
    table = pa.ipc.open_stream(first.stdout).read_all()
    assert table.column_names == ["k_r", "a", "spare", "k_s", "b"]
    words = ("--r", "-", "--s", "s.csv", "--on", "k_r=k", "--columns", "a,r.b")
    second = subprocess.run(
        [sys.executable, "-m", "streamjoin", "join", *words, "--output", "-", "--format", "csv"],
        input=first.stdout, capture_output=True, timeout=DEADLINE_S, check=False,
    )  # fmt: skip
    assert second.returncode == 0, second.stderr
    lines = second.stdout.decode().splitlines()
    assert (lines[0], sorted(lines[1:])) == ('"a","b"', ['"w",0.5', '"y",0.5', ",1.5"])


def test_a_closed_pipe_ends_quietly(inputs: Path) -> None:
    many = pa.table({"k": [1] * 700})
    pq.write_table(many, inputs / "many.parquet")
    command = [sys.executable, "-m", "streamjoin", *join("--r", "many.parquet")]
    with subprocess.Popen(
        [*command, "--s", "many.parquet", "--output", "-", "--format", "csv", "--columns", "*"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b'"k_r","k_s"\n'
        process.stdout.close()
        said = process.stderr.read()
        assert process.wait(DEADLINE_S) == 0, said
    assert b"Traceback" not in said
    assert b"rror" not in said


def as_stream(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    return sink.getvalue()


def as_file(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def as_csv(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pv.write_csv(table, sink)
    return sink.getvalue()


@pytest.mark.parametrize("form", [as_stream, as_file, as_csv])
def test_what_is_piped_shows_what_it_is(form: Any) -> None:
    table = read_piped(io.BytesIO(form(S)), lambda names: names[1:], ["b"])
    assert table.to_pydict() == {"b": [0.5, 1.5, 2.5]}


def test_a_pipe_that_cannot_be_read_is_a_sentence() -> None:
    whole = as_stream(S)
    wrong = {
        b"": "standard input: is empty: pipe an Arrow IPC stream or CSV into it",
        b"PAR1....": "standard input: is a Parquet file, which cannot be piped: give its path",
        whole[:80]: "standard input: cannot be read as Arrow IPC or CSV: ",
        b"k,k\n1,2\n": "standard input: the column 'k' occurs 2 times",
        b"k\n9007199254740993\n1.5\n": "standard input: column 'k' holds numbers from 2**53 on",
    }
    for given, sentence in wrong.items():
        with pytest.raises(InputError) as refused:
            read_piped(io.BytesIO(given), lambda _: ["k"], ["k"])
        assert str(refused.value).startswith(sentence)


FILES = ("--r", "r.parquet", "--s", "s/*.parquet")
MISTAKES = {
    ("--columns", "a"): "--columns says what --output holds: give --output FILE, or -",
    ("--output", "-", "--json"): "--output - and --json both write to standard output: write the",
    ("--quiet", "--json"): "--quiet and --json contradict each other: drop one of them",
    ("--output", "o.csv", "--format", "csv"): "--format is that of --output -; a file's ending",
    ("--output", "o.csv", "--columns", "r.z"): "r: there is no column 'z'; it has k, a, spare",
    ("--output", "o.csv", "--columns", "k"): "the column 'k' is in both r and s: write r.k or s.k",
    ("--output", "o.csv", "--columns", "*"): ".csv cannot hold these columns (",
    ("--output", "o.txt"): "--output o.txt: must end in .parquet or .arrow or .csv",
    ("--output", "s/3.parquet"): "s/3.parquet: matches the input s/*.parquet; choose another name",
    ("--output", "s/1.parquet"): "s/1.parquet: is an input; it would be overwritten",
    ("--r", "-", "--s", "-"): "--r - and --s -: only one of them can be standard input",
    ("--r", "no/*.csv"): "no/*.csv: no file matches",
}


@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_is_one_sentence_before_anything_is_joined(
    words: tuple[str, ...], inputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(join(*FILES, *words)) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"streamjoin: {MISTAKES[words]}")
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert sorted(path.name for path in inputs.iterdir()) == ["r.parquet", "s", "s.csv"]


def test_no_metrics_follow_the_rows_on_a_terminal(
    inputs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = join(*FILES, "--output", "-", "--format", "csv", "--columns", "a,b")
    assert main(asked) == 0
    assert "throughput" in capsys.readouterr().err
    assert main([*asked, "--quiet"]) == 0
    assert "throughput" not in "".join(capsys.readouterr())
    assert main(join(*FILES, "--output", "o.csv", "--quiet")) == 0
    assert capsys.readouterr().out == ""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(asked) == 0
    assert "throughput" not in "".join(capsys.readouterr())
    assert (inputs / "o.csv").is_file()


def test_arrow_is_not_written_to_a_terminal(
    inputs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(join(*FILES, "--output", "-")) == 2
    assert "standard output is a terminal, and Arrow is bytes: add --format csv" in (
        capsys.readouterr().err
    )
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    assert main(join("--r", "-", "--s", "s")) == 2
    assert "--r -: standard input is a terminal: pipe a table into it" in capsys.readouterr().err
    assert inputs.is_dir()
