"""A replay: files appear as tuples arrive, and streaming queries give the oracle's result."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import streamjoin as sj
from streamjoin import oracle, run, verify
from streamjoin.engines.job import Job
from streamjoin.tuples import Stream
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import parse_window
from streamjoin_datagen.session import Session
from streamjoin_spark import engine as engine_module
from streamjoin_spark.engine import Spark, SparkEngine
from streamjoin_spark.yardstick import SparkSql

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("session")]
ROWS = 300


def streams(seed: int, from_us: int = 0) -> tuple[Stream, Stream]:
    rng = np.random.default_rng(seed)
    found = []
    for side in ("r", "s"):
        ts = from_us + np.sort(rng.integers(0, ROWS, ROWS))
        columns = {
            "k": rng.integers(-20, 20, ROWS).astype(np.int32),
            "f": rng.uniform(-9, 9, ROWS).astype(np.float32),
        }
        columns["f"][rng.random(ROWS) < 0.1] = np.nan
        found.append(Stream(columns, ts, side, missing=rng.random(ROWS) < 0.1))
    return found[0], found[1]


slow = pytest.mark.slow
ASKED = (
    ("k", None, "time:90us,7us", 0),
    ("k", "f=f:1:2", "tumbling:70us", -1000),
    (None, ["k=k:1:2", "f=f:3:3"], "time:50us,80us", 123_456_789),
    (None, "k=k:-3:4", "time:1us,1us", 5),
)


@pytest.mark.parametrize(
    ("on", "band", "window", "from_us", "engine"),
    [
        *(
            pytest.param(*asked, Spark(), id=f"spark-{number}")
            for number, asked in enumerate(ASKED)
        ),
        *(
            pytest.param(*asked, SparkSql(), id=f"spark-sql-{number}", marks=marks)
            for (number, asked), marks in zip(enumerate(ASKED), (slow, (), slow, slow), strict=True)
        ),
    ],
)
def test_a_replay_gives_the_oracles_result(
    engine: SparkEngine, on: str | None, band: str | list[str] | None, window: str, from_us: int
) -> None:
    r, s = streams(11, from_us)
    asked = Job(r, s, Predicate.parse(on, band), parse_window(window), threads=2, arrival="replay")
    # Not one file at a time: a few batches of Spark's own join take seconds.
    job = run.complete(engine, asked, {"file_tuples": 150})
    outcome = run.run(engine, job)
    verify.check(outcome.pairs, oracle.join(r, s, asked.predicate, asked.window), engine.name)
    assert outcome.metrics["latency_from"] == "file"
    latency = outcome.metrics["latency_us"]
    assert 0 < latency["p50"] <= latency["max"] < outcome.metrics["wall_s"] * 1e6


def test_sparks_own_join_gives_the_oracles_result_from_rocksdb_too() -> None:
    r, s = streams(12)
    window = parse_window("time:50us,80us")
    asked = Job(r, s, Predicate.parse("k"), window, threads=2, arrival="replay")
    job = run.complete(SparkSql(), asked, {"file_tuples": 300, "state": "rocksdb"})
    outcome = run.run(SparkSql(), job)
    verify.check(outcome.pairs, oracle.join(r, s, asked.predicate, window), "spark-sql")


@pytest.mark.parametrize(
    ("engine", "arrival"),
    [
        pytest.param(Spark(), "instant", id="spark-instant"),
        pytest.param(Spark(), "replay", id="spark-replay"),
        pytest.param(SparkSql(), "instant", id="spark-sql-instant"),
        pytest.param(SparkSql(), "replay", id="spark-sql-replay", marks=pytest.mark.slow),
    ],
)
def test_join_columns_may_be_called_as_the_files_own(engine: SparkEngine, arrival: str) -> None:
    r, s = (
        Stream({name: x.column("k") for name in ("row", "ts", "TS", "a `b")}, x.ts, x.source)
        for x in streams(12)
    )
    for on in ("row", "ts", "ts=row,TS,a `b"):
        asked = Job(r, s, Predicate.parse(on), parse_window("time:90us"), 2, arrival=arrival)
        job = run.complete(engine, asked, {"file_tuples": 300})
        right = oracle.join(r, s, asked.predicate, asked.window)
        assert len(right) > 0
        verify.check(run.run(engine, job).pairs, right, engine.name)


def test_a_folder_that_moves_while_it_is_watched_costs_no_pair(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked, looks = engine_module._batches, 0

    def moved_at_first(out: Path, known: set[str]) -> list[Path]:
        nonlocal looks
        looks += 1
        if looks == 1:
            raise FileNotFoundError(out)
        return asked(out, known)

    monkeypatch.setattr(engine_module, "_batches", moved_at_first)
    r, s = streams(3)
    predicate, window = Predicate.parse(on="k"), parse_window("time:90us")
    asked_for = run.complete(Spark(), Job(r, s, predicate, window, arrival="replay"), {})
    outcome = run.run(Spark(), asked_for)
    assert looks > 1, "it went on looking"
    verify.check(outcome.pairs, oracle.join(r, s, predicate, window), "spark")


def test_files_appear_when_their_tuples_have_arrived(session: Session) -> None:
    del session
    ts = np.array([0, 400_000])
    r, s = (Stream({"k": np.array([1, 2])}, ts, side) for side in ("r", "s"))
    asked = Job(r, s, Predicate.parse("k"), parse_window("time:1us"), arrival="replay")
    outcome = run.run(Spark(), run.complete(Spark(), asked, {"file_tuples": 2}))
    assert sorted(zip(outcome.pairs.r_rows, outcome.pairs.s_rows, strict=True)) == [(0, 0), (1, 1)]
    last_ms = outcome.metrics["progress"][-1][1]
    assert last_ms >= 400  # replayed at its own speed


@pytest.mark.parametrize("engine", ["spark", "spark-sql"])
def test_16_bit_numbers_and_columns_without_any_value_are_joined(engine: str) -> None:
    quarters = {"k": (np.arange(50) / 4).astype(np.float16)}
    eighths = {"k": (np.arange(60) / 8).astype(np.float32)}
    found = sj.join(quarters, eighths, band="k=k:0.3:0.1", engine=engine, threads=2, check=True)
    assert len(found) == 89
    strings = pa.table({"k": ["1", "b", None]})
    nothing = pa.table({"k": pa.array([None, None], pa.int64())})
    for r, s in ((strings, nothing), (nothing, strings)):
        assert len(sj.join(r, s, on="k", engine=engine, threads=2, check=True)) == 0
