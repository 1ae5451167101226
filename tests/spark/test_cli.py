"""The verbs on Spark, and what is shipped to a cluster."""

import contextlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from tests.spark.samples import pairs_of, write_files

from streamjoin import oracle, verify
from streamjoin.cli import main
from streamjoin.streams import as_streams
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import parse_window
from streamjoin_datagen.session import Session
from streamjoin_datagen.session.java import find_java
from streamjoin_spark import cli, submit

pytestmark = pytest.mark.timeout(600)
DEADLINE_S = 400
ROWS = 500
RNG = np.random.default_rng(9)
R, S = (
    pa.table(
        {"row": np.arange(ROWS), "k": RNG.integers(0, 50, ROWS), "ts": 10**6 + np.arange(ROWS)}
    )
    for _ in range(2)
)
RIGHT = oracle.join(
    *as_streams(R, S, Predicate.parse("k")), Predicate.parse("k"), parse_window("tumbling:90us")
)


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    write_files(tmp_path / "r", R, 2, 100)
    write_files(tmp_path / "s", S, 2, 100)
    return tmp_path


@pytest.fixture
def one_session(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextlib.contextmanager
    def given(args: object) -> Iterator[Session]:
        yield session

    monkeypatch.setattr(cli, "_session", given)


@pytest.fixture
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    def given(args: object) -> None:
        raise AssertionError("Spark takes ten seconds to start: what is wrong is told before")

    monkeypatch.setattr(cli, "_session", given)


def flags(folder: Path, *more: str) -> list[str]:
    places = [f"--{name}={folder / name}" for name in ("r", "s", "out")]
    return [*places, "--on=k", "--window=tumbling:90us", *more]


@pytest.mark.usefixtures("one_session")
@pytest.mark.parametrize("path", ["files", "shuffle"])
def test_files_are_joined_from_the_command_line(
    path: str, inputs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(inputs)  # Spark's processes have a working folder of their own
    how = (f"--path={path}", "--partition-tuples=200", "--json")
    if path == "shuffle":
        how = (*how, "--columns=r.row,s.*", "--how=left")
    assert main(["spark-join", *flags(Path(), *how)]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["tasks"] > 2
    table = pq.read_table(inputs / "out")
    if path == "files":
        verify.check(pairs_of(table), RIGHT, "spark-join")
        assert (told["pairs"], told["digest"], told["how"]) == (len(RIGHT), RIGHT.digest, "inner")
        return
    assert table.column_names == ["row_r", "row_s", "k", "ts"] == told["columns"]
    rows = Counter(zip(table["row_r"].to_pylist(), table["row_s"].to_pylist(), strict=True))
    alone = set(range(ROWS)) - set(RIGHT.r_rows.tolist())
    pairs = zip(RIGHT.r_rows.tolist(), RIGHT.s_rows.tolist(), strict=True)
    assert rows == Counter([*pairs, *((row, None) for row in alone)])
    assert (told["pairs"], told["how"], len(alone) > 0) == (rows.total(), "left", True)


@pytest.mark.usefixtures("one_session")
def test_folders_are_joined_as_streams_from_the_command_line(
    inputs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(inputs)
    more = ("--checkpoint=checkpoint", "--max-files=1", "--classes=2", "--delay=1ms", "--how=left")
    assert main(["spark-stream", *flags(Path(), *more, "--end")]) == 0
    told = capsys.readouterr()
    assert "pairs_so_far" in told.out
    batches = [line for line in told.err.splitlines() if line.startswith("batch ")]
    assert [line.partition(":")[0] for line in batches[:2]] == ["batch 0", "batch 1"]
    alone = ROWS - len(set(RIGHT.r_rows.tolist()))
    assert f"{len(RIGHT) + alone:,} so far; 0 tuples kept" in batches[-1]
    table = pq.read_table(inputs / "out")
    assert (table["s_row"].null_count, alone > 0) == (alone, True)
    verify.check(pairs_of(table.filter(pc.is_valid(table["s_row"]))), RIGHT, "spark-stream")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("--r=nothing", "nothing: there is no such file"),
        ("--on=key", "there is no column 'key'; it has row, k, ts"),
        ("--window=count:4", "spark cannot join under window count:4, only all, tumbling, time"),
        ("--out=r", "holds something else than a result"),
        ("--r=r/*.csv", "r/*.csv: no file matches"),
        ("--how=outer", "how is one of inner, left, right, full, semi, anti, not 'outer'"),
        ("--columns=r.k,s.x", "s: there is no column 'x'; it has row, k"),
        ("--columns=k", "the column 'k' is in both r and s: write r.k or s.k"),
        ("--partition-tuples=0", "partition_tuples must be at least 1, not 0"),
    ],
)
@pytest.mark.usefixtures("no_session")
def test_a_mistake_is_one_sentence(
    change: str,
    message: str,
    inputs: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(inputs)
    given = [
        flag for flag in flags(inputs) if flag.split("=")[0] != change.split("=", maxsplit=1)[0]
    ]
    assert main(["spark-join", *given, change]) == 2
    told = capsys.readouterr()
    assert message in told.err
    assert (told.err.count("\n"), told.out) == (1, "")
    assert sorted(entry.name for entry in inputs.iterdir()) == ["r", "s"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("--r=nothing", "--r nothing: must be a folder with at least one Parquet file"),
        ("--delay=soon", "--delay: a duration is a number with us, ms, s, min, h or d, for"),
        ("--window=count:4", "a streaming join needs a window that time ends, tumbling or time"),
        ("--how=outer", "how is one of inner, left, right, full, semi, anti, not 'outer'"),
        ("--how=semi --columns=s.k", "s.k: a join of kind semi has R's columns only"),
        ("--end --follow", "--end is for complete folders, --follow waits for more: drop one"),
        ("--columns=s.x", "s: there is no column 'x'; it has row, k"),
        ("--ts=sent", "there is no arrival column 'sent'; it has row, k, ts"),
        ("--classes=0", "--classes must be at least 1, not 0"),
        ("--max-files=-1", "--max-files must be at least 1, not -1"),
        ("--row=x", "part-000.parquet: needs a column 'x' of integers that number its rows"),
    ],
)
@pytest.mark.usefixtures("no_session")
def test_a_mistake_in_a_stream_is_one_sentence(
    change: str, message: str, inputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = flags(inputs, f"--checkpoint={inputs / 'checkpoint'}")
    assert main(["spark-stream", *given, *change.split()]) == 2
    told = capsys.readouterr()
    assert message in told.err
    assert told.err.count("\n") == 1


def test_settings_are_checked_before_spark_starts(
    inputs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for flag, message in (
        ("--conf=x", "--conf takes KEY=VALUE, not 'x'"),
        ("--threads=0", "--threads must be at least 1, not 0"),
    ):
        assert main(["spark-join", *flags(inputs, flag)]) == 2
        assert capsys.readouterr().err == f"streamjoin: {message}\n"


FROM_THE_PACKAGE = """
import sys
sys.path.insert(0, sys.argv[1])
from streamjoin_spark.batch import worker
import streamjoin
assert all(module.__file__.startswith(sys.argv[1]) for module in (worker, streamjoin))
worker.prepare_worker()
needless = {"streamjoin_datagen", "streamjoin_hw", "amaranth", "pyspark"}
assert not needless & set(sys.modules), needless & set(sys.modules)
"""


def test_kernels_run_from_the_shipped_package_and_leave_nothing_at_home(tmp_path: Path) -> None:
    package, home = tmp_path / "streamjoin.zip", tmp_path / "home"
    home.mkdir()
    submit.package(package)
    done = subprocess.run(
        [sys.executable, "-c", FROM_THE_PACKAGE, str(package)],
        env={**os.environ, "HOME": str(home), "XDG_CACHE_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert list(home.rglob("*")) == []


@pytest.mark.slow
def test_a_cluster_of_executors_joins_what_is_submitted(inputs: Path) -> None:
    package = inputs / "streamjoin.zip"
    submit.package(package)
    import pyspark

    home = Path(pyspark.__file__).parent
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(inputs / "local"),
    }
    command = [str(home / "bin" / "spark-submit"), "--master", "local-cluster[2,1,1024]"]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    environment = {
        **os.environ,
        "JAVA_HOME": str(find_java().home),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_WORKER_DIR": str(inputs / "work"),
    }
    done = subprocess.run(
        [
            *command,
            *("--py-files", str(package), str(submit.__file__)),
            *flags(inputs, "--partition-tuples=200"),
        ],
        cwd=inputs,
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    told = json.loads(done.stdout.strip().splitlines()[-1])
    assert (told["pairs"], told["digest"]) == (len(RIGHT), RIGHT.digest)
    verify.check(pairs_of(pq.read_table(inputs / "out")), RIGHT, "a cluster")
