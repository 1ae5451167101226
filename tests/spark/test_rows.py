"""Joined rows and kinds of join on Spark, against their definition written out."""

import os
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.host import cases
from tests.spark.samples import (
    Here,
    Row,
    defined,
    digest_of,
    read_rows,
    table_of,
    window_of,
    write_files,
)

from streamjoin import oracle
from streamjoin.errors import InputError, UnsupportedError
from streamjoin.tuples import Stream
from streamjoin_common.language.kinds import KINDS
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import parse_window
from streamjoin_datagen.session import Session
from streamjoin_spark.batch import lone, parts, rows
from streamjoin_spark.batch.join import distributed_join

SEED = int(os.environ.get("SEED", "0"))
pytestmark = pytest.mark.timeout(600)


@pytest.mark.parametrize("seed", range(SEED, SEED + 5))
def test_every_kind_gives_the_rows_of_its_definition(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    print(f"SEED={seed}")  # noqa: T201  (shown with a failure)
    rng = np.random.default_rng(seed)
    monkeypatch.setattr(os, "fsync", lambda _: None)  # many small files, and no power is lost
    monkeypatch.setattr(lone, "RANGE_ROWS", int(rng.choice([1, 40, 1 << 20])))
    for name, predicate in cases.PREDICATES.items():
        r, s = (cases.stream_of(rng, side, int(rng.integers(0, 90))) for side in ("r", "s"))
        window = window_of(rng, 90)
        paths = [
            write_files(tmp_path / name / side, table_of(stream), 2, 13)
            for side, stream in (("r", r), ("s", s))
        ]
        pairs = oracle.join(r, s, predicate, window)
        tuples = int(rng.choice([20, 60, 1000]))
        for how in KINDS:
            join = distributed_join(
                Here(),  # type: ignore[arg-type]
                *paths,
                on=predicate.on,
                band=predicate.band,
                window=window,
                path="files",
                partition_tuples=tuples,
                slots=2,
                how=how,
            )
            manifest = join.write(tmp_path / "out", force=True)
            right = defined(r, s, pairs, window, how)
            assert read_rows(tmp_path / "out") == right, (how, window.text, name)
            assert (manifest["how"], manifest["pairs"]) == (how, right.total())
            assert manifest["digest"] == digest_of(right)
            left = {path.name for path in (tmp_path / "out").iterdir()}
            assert all(one.startswith("part-") or one == parts.MANIFEST for one in left)


def test_a_partner_in_a_later_slice_of_time_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(lone, "RANGE_ROWS", 1)
    count, ts = 200, np.arange(200)
    r, s = (Stream({"k": ts - behind}, ts, "x") for behind in (0, 3))
    paths = [
        write_files(tmp_path / side, table_of(stream), 2, 7)
        for side, stream in (("r", r), ("s", s))
    ]
    here: Any = Here()
    window = parse_window("time:5us,1us")
    join = distributed_join(
        here, *paths, on="k", window=window, partition_tuples=20, slots=2, how="full"
    )
    assert join.partitioning.slices > 10
    join.write(tmp_path / "out", force=True)
    predicate = Predicate.parse(on="k")
    right = defined(r, s, oracle.join(r, s, predicate, window), window, "full")
    assert right.total() == count + 3
    assert read_rows(tmp_path / "out") == right


COUNT = 150
RNG = np.random.default_rng(5)


def wide(columns: dict[str, Any]) -> pa.Table:
    """A side whose columns are of many types, with keys and values missing."""
    keys = [None if k == 3 else k for k in RNG.integers(0, 40, COUNT).tolist()]
    ts = np.sort(RNG.integers(0, 400, COUNT))
    return pa.table({"row": np.arange(COUNT), "k": keys, "ts": ts, **columns})


WORDS = ["", "a", None, "of some length " * 9]
R = wide(
    {
        "word": pa.array([WORDS[n % 4] for n in range(COUNT)]),
        "time": pa.array(np.arange(COUNT) * 1001, pa.timestamp("us", "UTC")),
        "list": [[n, None] if n % 3 else None for n in range(COUNT)],
        "both": np.arange(COUNT) * 0.5,
    }
)
S = wide(
    {
        "both": [n % 2 == 0 for n in range(COUNT)],
        "money": pa.array(np.arange(COUNT)).cast(pa.decimal128(21, 2)),
        "a.b": pa.array([timedelta(seconds=n) for n in range(COUNT)], pa.duration("us")),
    }
)
ODD = {
    "runs": pa.array([f"w{n % 5}" for n in range(COUNT)]).dictionary_encode(),
    "nano": pa.array(np.arange(COUNT) * 7 + 1, pa.timestamp("ns")),
    "big": pa.array(np.arange(COUNT, dtype=np.uint64) + np.uint64((1 << 64) - COUNT)),
    "day": pa.array(np.arange(COUNT, dtype=np.int32), pa.date32()),
    "clock": pa.array(np.arange(COUNT, dtype=np.int32), pa.time32("s")),
    "two": pa.array([b"ab"] * COUNT, pa.binary(2)),
}
WINDOW = "time:50us,90us"


def keyed(table: pa.Table) -> Stream:
    keys = table.column("k")
    missing = keys.is_null().to_numpy()
    return Stream({"k": keys.fill_null(0).to_numpy()}, table["ts"].to_numpy(), "x", missing=missing)


def right_rows(how: str) -> Counter[Row]:
    r, s = keyed(R), keyed(S)
    window = parse_window(WINDOW)
    return defined(r, s, oracle.join(r, s, Predicate.parse(on="k"), window), window, how)


def looked_up(r: pa.Table, s: pa.Table, how: str, names: list[tuple[str, str]]) -> list[str]:
    """The columns of the rows of the definition, as Python's values, in any order."""
    found = right_rows(how)
    columns = []
    for side, name in names:
        values = (r if side == "r" else s).column(name).to_pylist()
        at = [row[0 if side == "r" else 1] for row in found.elements()]
        columns.append([None if n < 0 else values[n] for n in at])
    return sorted(map(repr, zip(*columns, strict=True)))


def rows_in(table: pa.Table) -> list[str]:
    return sorted(map(repr, zip(*(c.to_pylist() for c in table.columns), strict=True)))


ALL = [*(("r", name) for name in R.column_names), *(("s", name) for name in S.column_names)]


@pytest.mark.parametrize("how", ["inner", "full", "semi"])
def test_files_give_rows_of_columns_of_any_type(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "STEP_BYTES", 300)
    monkeypatch.setattr(parts, "ROW_GROUP_BYTES", 900)
    r = R
    for name, column in ODD.items():
        r = r.append_column(name, column)
    paths = write_files(tmp_path / "r", r, 3, 17), write_files(tmp_path / "s", S, 2, 11)
    join = distributed_join(
        Here(),  # type: ignore[arg-type]
        *paths,
        on="k",
        window=WINDOW,
        partition_tuples=90,
        slots=2,
        how=how,
        columns="*",
    )
    assert join.path == "files"
    manifest = join.write(tmp_path / "out", force=True)
    table = pq.read_table(tmp_path / "out")
    names = [("r", name) for name in r.column_names]
    names += [("s", name) for name in S.column_names if how != "semi"]
    assert rows_in(table) == looked_up(r, S, how, names)
    clashing = {"row", "k", "ts", "both"} if how != "semi" else set()
    expected = [f"{name}_{side}" if name in clashing else name for side, name in names]
    assert table.column_names == expected == manifest["columns"]
    assert manifest["digest"] == digest_of(right_rows(how))
    kinds = dict(zip(table.schema.names, table.schema.types, strict=True))
    assert kinds["nano"] == pa.timestamp("ns")
    assert (kinds["big"], kinds["runs"]) == (pa.uint64(), pa.string())
    part = next((tmp_path / "out").glob("part-*.parquet"))
    assert pq.ParquetFile(part).metadata.num_row_groups >= 1


def test_rows_may_have_columns_of_one_side_alone(tmp_path: Path) -> None:
    r, s = write_files(tmp_path / "r", R, 1, 40), write_files(tmp_path / "s", S, 1, 40)
    here: Any = Here()
    for name in (("r", "word"), ("s", "money")):
        join = distributed_join(
            here, r, s, on="k", window=WINDOW, slots=2, how="full", columns=".".join(name)
        )
        join.write(tmp_path / "out", force=True)
        assert rows_in(pq.read_table(tmp_path / "out")) == looked_up(R, S, "full", [name])


def test_the_shuffle_gives_the_same_rows_of_files_and_data_frames(
    session: Session, tmp_path: Path
) -> None:
    r = R.select(["row", "k", "ts", "word"])
    for name, column in ODD.items():
        r = r.append_column(name, column)
    r_files, s_files = write_files(tmp_path / "r", r, 3, 17), write_files(tmp_path / "s", S, 2, 11)
    r_frame, s_frame = (
        session.spark.createDataFrame(table.take(pa.array(RNG.permutation(COUNT))))
        for table in (R, S)
    )
    asked: dict[str, Any] = {"on": "k", "window": WINDOW, "path": "shuffle", "slots": 2}
    asked["partition_tuples"] = 150

    names = [("r", name) for name in ("word", *ODD)] + [("s", "a.b"), ("s", "k"), ("s", "both")]
    columns = [f"{side}.{name}" for side, name in names]
    join = distributed_join(session.spark, r_files, s_frame, how="full", columns=columns, **asked)
    manifest = join.write(tmp_path / "out", force=True)
    table = pq.read_table(tmp_path / "out")
    assert rows_in(table) == looked_up(r, S, "full", names)
    assert table.schema.field("big").type == pa.uint64()
    assert manifest["digest"] == digest_of(right_rows("full"))

    join = distributed_join(session.spark, r_frame, s_files, how="semi", **asked)
    join.write(tmp_path / "out", force=True)
    assert read_rows(tmp_path / "out") == right_rows("semi")

    join = distributed_join(session.spark, r_frame, s_files, columns="s.a.b,r.list,r.time", **asked)
    names = [("s", "a.b"), ("r", "list"), ("r", "time")]
    assert rows_in(join.frame().toArrow()) == looked_up(R, S, "inner", names)


def test_what_cannot_be_given_as_rows_is_refused(tmp_path: Path) -> None:
    pq.write_table(R, tmp_path / "r.parquet")
    pq.write_table(S, tmp_path / "s.parquet")
    r, s = tmp_path / "r.parquet", tmp_path / "s.parquet"
    for how, columns, message in (
        ("outer", None, "how is one of inner, left, right, full, semi, anti, not 'outer'"),
        ("inner", "r.x", "r: there is no column 'x'; it has row, k, "),
        ("anti", "s.money", r"s\.money: a join of kind anti has R's columns only"),
    ):
        with pytest.raises(InputError, match=message):
            distributed_join(None, r, s, on="k", how=how, columns=columns)  # type: ignore[arg-type]
    join = distributed_join(Here(), r, s, on="k", how="left", slots=1)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match=r"frame\(\) gives inner joins, not left: write"):
        join.frame()
