"""Joins on Spark against the oracle: both paths, files and DataFrames, and what is refused."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.host import cases
from tests.spark.samples import Here, pairs_of, table_of, window_of, write_files

from streamjoin import oracle, verify
from streamjoin.errors import InputError, UnsupportedError
from streamjoin.streams import as_streams
from streamjoin.tuples import Pairs, Stream
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import Window, parse_window
from streamjoin_datagen.session import Session
from streamjoin_spark.batch.join import SparkJoin, distributed_join

SEED = int(os.environ.get("SEED", "0"))
PATHS = ("files", "shuffle")
pytestmark = pytest.mark.timeout(600)  # the first job starts Spark's workers


def on_files(
    spark: Any,
    folder: Path,
    r: pa.Table,
    s: pa.Table,
    predicate: Predicate,
    window: Window | str,
    **how: Any,
) -> SparkJoin:
    paths = [
        write_files(folder / side, table, 3, 17) if not (folder / side).exists() else folder / side
        for side, table in (("r", r), ("s", s))
    ]
    return distributed_join(
        spark, *paths, on=predicate.on, band=predicate.band, window=window, **how
    )


def written(join: SparkJoin, out: Path) -> Pairs:
    manifest = join.write(out, force=True)
    found = pairs_of(pq.read_table(out))
    assert (manifest["pairs"], manifest["digest"]) == (len(found), found.digest)
    return found


@pytest.mark.parametrize(
    ("partitions", "path"),
    [
        (7, "files"),
        (2, "shuffle"),
        # test_tasks.py and test_rows.py divide joins of files at random without Spark.
        *(pytest.param(count, "files", marks=pytest.mark.slow) for count in (1, 2)),
        *(pytest.param(count, "shuffle", marks=pytest.mark.slow) for count in (1, 7)),
    ],
)
def test_random_joins_give_the_oracles_result(
    partitions: int, path: str, session: Session, tmp_path: Path
) -> None:
    seed = SEED * 100 + partitions
    print(f"SEED={seed}")  # noqa: T201  (shown with a failure)
    rng = np.random.default_rng(seed)
    for number, predicate in enumerate(cases.PREDICATES.values()):
        r, s = (cases.stream_of(rng, side, int(rng.integers(1, 300))) for side in ("r", "s"))
        window = window_of(rng, 300)
        tuples = max(1, (r.rows + s.rows) // partitions)
        join = on_files(
            session.spark,
            tmp_path / str(number),
            table_of(r),
            table_of(s),
            predicate,
            window,
            path=path,
            slots=partitions,
            partition_tuples=tuples,
        )
        assert join.path == path
        right = oracle.join(r, s, predicate, window)
        verify.check(written(join, tmp_path / "out"), right, path)


def test_data_frames_with_rows_in_any_order_give_the_oracles_result(session: Session) -> None:
    rng = np.random.default_rng(SEED)
    r, s = (cases.stream_of(rng, side, 250) for side in ("r", "s"))
    frames, names = [], []
    for stream in (r, s):
        numbers = np.cumsum(rng.integers(1, 1 << 33, stream.rows))  # ascending, not dense
        table = table_of(stream).append_column("row", pa.array(numbers))
        shuffled = table.take(pa.array(rng.permutation(stream.rows)))
        frames.append(session.spark.createDataFrame(shuffled).repartition(3))
        names.append(numbers)
    windows = ("time:30us,9us", "all", "tumbling:40us")
    for predicate, window in zip(cases.PREDICATES.values(), windows, strict=True):
        join = distributed_join(
            session.spark,
            *frames,
            on=predicate.on,
            band=predicate.band,
            window=window,
            partition_tuples=90,
        )
        assert (join.path, len(join.partitioning) > 3) == ("shuffle", True)
        found = join.frame().toArrow()
        right = oracle.join(r, s, predicate, parse_window(window))
        named = Pairs(names[0][right.r_rows], names[1][right.s_rows])
        verify.check(pairs_of(found), named, "shuffle")
        ts = np.maximum(r.ts[right.r_rows], s.ts[right.s_rows])
        assert sorted(found.column("ts").to_pylist()) == sorted(ts.tolist())


def test_pairs_come_as_a_data_frame_as_well(session: Session, tmp_path: Path) -> None:
    inputs = next(case for case in cases.hard_cases() if case.name == "bursts")
    tables = [table_of(stream) for stream in (inputs.r, inputs.s)]
    join = on_files(
        session.spark, tmp_path, *tables, cases.EQUI, "tumbling:7us", partition_tuples=9
    )
    right = oracle.join(inputs.r, inputs.s, cases.EQUI, parse_window("tumbling:7us"))
    verify.check(pairs_of(join.frame().toArrow()), right, "files")
    by_slice = join.frame().groupBy("ts").count().toArrow()
    assert sum(by_slice.column("count").to_pylist()) == len(right)


@pytest.mark.parametrize("path", PATHS)
def test_columns_of_any_type_are_joined(
    path: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    on_spark: Any = Here() if path == "files" else request.getfixturevalue("session").spark
    rng = np.random.default_rng(SEED)
    small = rng.integers(0, 6, 120)
    strings = pa.array(np.array(["a", "b", "ä", "", "e", "ff"], dtype=object)[small])
    columns: dict[str, tuple[pa.Array, pa.Array]] = {
        "strings": (strings.dictionary_encode(), strings),
        "wide": (pa.array(small << 40), pa.array(small[::-1] << 40)),
        "unsigned": (pa.array(small.astype(np.uint32)), pa.array(small.astype(np.int64))),
        "times": (
            pa.array(small.astype("M8[s]")),
            pa.array(small.astype("M8[s]").astype("M8[ns]")),
        ),
        "with nulls": (
            pa.array([None if k == 3 else k for k in small.tolist()]),
            pa.array([None if k == 2 else k for k in small.tolist()]),
        ),
    }
    r = pa.table({**{name: of_r for name, (of_r, _) in columns.items()}, "ts": np.arange(120)})
    s = pa.table({**{name: of_s for name, (_, of_s) in columns.items()}, "ts": np.arange(120)})
    for name in (*columns,) if path == "files" else ("strings,with nulls", "wide,unsigned,times"):
        predicate = Predicate.parse(on=name)
        join = on_files(
            on_spark, tmp_path, r, s, predicate, "all", path=path, partition_tuples=60, slots=2
        )
        right = oracle.join(*as_streams(r, s, predicate), predicate, parse_window("all"))
        assert len(right) > 0
        verify.check(written(join, tmp_path / "out"), right, name)


def test_a_mistake_in_the_data_is_one_sentence_and_leaves_nothing(
    session: Session, tmp_path: Path
) -> None:
    keys = np.arange(700) % 5
    back = np.arange(700)
    back[[20, 21]] = 21, 20  # in the second row group, which the plan's sample leaves out
    tables = pa.table({"k": keys, "ts": back}), pa.table({"k": keys, "ts": np.arange(700)})
    for path in PATHS:
        join = on_files(session.spark, tmp_path, *tables, Predicate.parse(on="k"), "all", path=path)
        message = (
            r"r(: ts goes back at row 21| from row 17 on: ts goes back at row 4), from 21 to 20"
        )
        with pytest.raises(InputError, match=message) as caught:
            join.write(tmp_path / "out")
        assert "\n" not in str(caught.value)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["r", "s"]


def test_what_cannot_be_joined_is_refused_before_anything_runs(
    session: Session, tmp_path: Path
) -> None:
    table = pa.table(
        {"k": [1, 2], "f": [0.5, 1.0], "ts": [0, 1], "u": pa.array([1, 2], pa.uint64())}
    )
    files = write_files(tmp_path / "r", table, 1, 9)
    frame = session.spark.createDataFrame(table.select(["k", "ts"]))
    for r, s, how, error, message in (
        (files, files, {"on": "k", "window": "count:4"}, UnsupportedError, "under window count:4"),
        (files, files, {"on": "f"}, UnsupportedError, "do not take under equi"),
        (files, files, {"on": "k", "path": "net"}, InputError, "path must be one of auto, files"),
        (files, files, {"on": "k", "partition_tuples": 0}, InputError, "must be at least 1, not 0"),
        (
            files,
            7,
            {"on": "k"},
            InputError,
            "s must be a path or a DataFrame of Spark's, not a builtins.int",
        ),
        (frame, files, {"on": "k"}, InputError, "r: needs a column 'row' of integers"),
        (frame, files, {"on": "k", "row": "ts", "path": "files"}, UnsupportedError, "give paths"),
        (frame, files, {"on": "x", "row": "ts"}, InputError, "r: there is no column 'x'"),
        (files, files, {"on": "u", "path": "shuffle"}, UnsupportedError, "no unsigned 64-bit"),
    ):
        with pytest.raises(error, match=message):
            distributed_join(session.spark, r, s, **how).reports(tmp_path)  # type: ignore[arg-type]


def test_frames_may_have_dots_in_their_columns_names(session: Session) -> None:
    rng = np.random.default_rng(SEED)
    names = {"id.row": np.arange(90), "a.b": rng.integers(0, 9, 90), "a s.ts": np.arange(90)}
    frame = session.spark.createDataFrame(pa.table(names))
    join = distributed_join(
        session.spark, frame, frame, on="a.b", window="time:9us", row="id.row", ts="a s.ts"
    )
    stream = Stream({"k": names["a.b"]}, names["a s.ts"], "x")
    right = oracle.join(stream, stream, Predicate.parse("k"), parse_window("time:9us"))
    verify.check(pairs_of(join.frame().toArrow()), right, "shuffle")


def test_a_key_that_the_shuffle_has_no_type_for_is_left_to_the_files(tmp_path: Path) -> None:
    keys = np.arange(300, dtype=np.uint64) % 40 + np.uint64((1 << 64) - 40)
    stream = Stream({"k": keys}, np.zeros(300, np.int64), "x")
    how = {"partition_tuples": 10, "slots": 2}
    predicate = Predicate.parse("k")
    join = on_files(Here(), tmp_path, *[table_of(stream)] * 2, predicate, "all", **how)
    assert (join.path, join.partitioning.tasks_a_slice > 8) == ("files", True)
    right = oracle.join(stream, stream, predicate, parse_window("all"))
    verify.check(written(join, tmp_path / "out"), right, "files")


def test_a_heavy_key_comes_out_of_several_tasks(session: Session, tmp_path: Path) -> None:
    rng = np.random.default_rng(SEED)
    keys = [np.where(rng.random(1500) < 0.4, 7, rng.integers(0, 1500, 1500)) for _ in range(2)]
    r, s = (Stream({"k": k}, np.arange(1500), "x") for k in keys)
    predicate = Predicate.parse(on="k")
    for path in PATHS:
        join = on_files(
            Here() if path == "files" else session.spark,
            tmp_path,
            table_of(r),
            table_of(s),
            predicate,
            "all",
            path=path,
            slots=4,
            partition_tuples=300,
        )
        assert max(join.partitioning.s_shares + join.partitioning.r_shares) > 2
        right = oracle.join(r, s, predicate, parse_window("all"))
        verify.check(written(join, tmp_path / "out"), right, path)
