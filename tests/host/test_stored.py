"""A relation that is in a store already is joined there, like one in memory."""

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.host.relations import database, pairs, written
from tests.host.semistream import ListStore

import streamjoin as sj
from streamjoin.cli import main
from streamjoin.engines.semi.keys import CodedStore
from streamjoin.errors import InputError, UnsupportedError
from streamjoin.relations import KINDS, Projection, open_store, relation

ENGINES = ("meshjoin", "ssbj")
TYPED = ("arrow", "parquet", "duckdb", "postgres")
"""Kinds whose columns have types of their own."""

SMALL = {"memory_kib": 96, "partition_rows": 64}


def right(r: Any, s: Any, **asked: Any) -> list[tuple[int, int]]:
    return pairs(sj.join(r, s, engine="oracle", **asked))


def keys_of(rng: np.random.Generator, what: str, count: int) -> pa.Array:
    """Keys of few values, many of them twice, some on one side only."""
    numbers = rng.zipf(1.4, count) % 60 + int(rng.integers(0, 20))
    if what == "text":
        return pa.array([f"tail {number}" for number in numbers])
    if what == "unsigned":
        return pa.array(numbers.astype(np.uint64) + np.uint64((1 << 64) - 70))
    if what == "time":
        return pa.array((numbers * 10**6).astype("datetime64[us]"))
    return pa.array((numbers - 30).astype({"narrow": np.int32, "wide": np.int64}[what]))


def with_gaps(rng: np.random.Generator, column: pa.Array) -> pa.Array:
    return pa.array(column.to_pylist(), column.type, mask=rng.random(len(column)) < 0.1)


CASES = {
    "arrow": ("narrow", "wide", "unsigned", "text", "time"),
    "parquet": ("narrow", "wide", "unsigned", "text", "time"),
    "duckdb": ("narrow", "wide", "unsigned", "text", "time"),
    "postgres": ("narrow", "wide", "text", "time"),
    "sqlite": ("wide", "text"),
    "raw": ("narrow", "wide", "unsigned"),
}


WINDOWS = ["all", "tumbling:1ms"]


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS, indirect=True)
def test_every_store_and_type_of_key_gives_the_oracles_pairs(
    kind: str, engine: str, window: str, tmp_path: Path
) -> None:
    turn = ENGINES.index(engine) + WINDOWS.index(window)  # types meet each engine, each window
    for seed, what in list(enumerate(CASES[kind]))[turn % 2 :: 2]:
        rng = np.random.default_rng(seed)
        (folder := tmp_path / what).mkdir()
        r = {"k": keys_of(rng, what, 300), "ts": pa.array(np.sort(rng.integers(0, 5000, 300)))}
        s = {"k": keys_of(rng, what, 4000), "ts": pa.array(np.sort(rng.integers(0, 5000, 4000)))}
        if kind != "raw":
            r["k"], s["k"] = with_gaps(rng, r["k"]), with_gaps(rng, s["k"])
        asked = {"on": "k", "window": window}
        found = sj.join(
            written(kind, folder, r), pa.table(s), engine=engine, knobs=SMALL, check=True, **asked
        )
        assert pairs(found) == right(pa.table(r), pa.table(s), **asked), (seed, what)
        assert len(found) > 100, (seed, what)
        assert found.metrics["semi_stream"]["store"] == kind


@pytest.mark.parametrize("kind", KINDS, indirect=True)
def test_several_columns_together_are_one_key(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    r = {name: rng.integers(0, 6, 200) for name in ("a", "b", "c")}
    s = {name: rng.integers(-1, 7, 2000) for name in ("x", "b", "z")}
    where = written(kind, tmp_path, {name: pa.array(column) for name, column in r.items()})
    found = sj.join(where, s, on="a=x,b,c=z", engine="ssbj", knobs=SMALL)
    assert pairs(found) == right(r, s, on="a=x,b,c=z")
    assert len(found) > 500


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", KINDS, indirect=True)
def test_the_command_line_joins_where_the_relation_lies(
    kind: str, engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(6)
    r, s = {"k": rng.integers(0, 90, 400)}, {"sk": rng.integers(0, 99, 3000)}
    where = written(kind, tmp_path, {"k": pa.array(r["k"])})
    pq.write_table(pa.table(s), tmp_path / "s.parquet")
    output, metrics = tmp_path / "pairs.parquet", tmp_path / "metrics.json"
    given = ["join", "--engine", engine, "--r", where, "--s", str(tmp_path / "s.parquet")]
    given += ["--on", "k=sk", "--set", "memory_kib=96", "--set", "partition_rows=64", "--verify"]
    assert main([*given, "--output", str(output), "--metrics", str(metrics)]) == 0
    shown = capsys.readouterr().out
    for what in ("memory budget", "H_S", "disk buffers", "served by the cache", "equal to"):
        assert what in shown
    table = pq.read_table(output)
    found = sorted(zip(table["r_row"].to_pylist(), table["s_row"].to_pylist(), strict=True))
    assert found == right(r, s, on="k=sk")
    assert json.loads(metrics.read_text())["semi_stream"]["store"] == kind


def test_an_engine_is_chosen_that_reads_stores(tmp_path: Path) -> None:
    where = written("arrow", tmp_path, {"k": pa.array([1, 2, 3])})
    result = sj.join(where, {"k": np.array([3, 3, 9])}, on="k")
    assert result.metrics["engine"] == "ssbj"
    assert pairs(result) == [(2, 0), (2, 1)]


def test_an_open_store_is_joined_with_the_row_numbers_of_its_projection(tmp_path: Path) -> None:
    columns = {"k": pa.array([5, 6, 7]), "id": pa.array([70, 60, 50])}
    where = relation(written("parquet", tmp_path, columns))
    store = open_store("parquet", Path(where.location), Projection("k", row="id"))
    for given in (store, relation(store)):
        result = sj.join(given, {"k": np.array([7, 5])}, on="k", check=True)
        assert pairs(result) == [(50, 0), (70, 1)]
    assert rows_left(store) == 3
    store.close()


def rows_left(store: Any) -> int:
    return len(store.read(0, store.positions))


def test_a_row_number_beyond_32_bits_is_refused(tmp_path: Path) -> None:
    columns = {"k": pa.array([5, 6]), "id": pa.array([1, 1 << 33])}
    place = Path(relation(written("arrow", tmp_path, columns)).location)
    store = open_store("arrow", place, Projection("k", row="id"))
    with pytest.raises(InputError, match=f"row number {1 << 33} does not fit into 32 bits"):
        sj.join(store, {"k": np.array([5])}, on="k")
    store.close()


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("kind", KINDS, indirect=True)
def test_relations_of_no_row_and_of_one_are_joined(kind: str, rows: int, tmp_path: Path) -> None:
    where = written(kind, tmp_path, {"k": pa.array([4] * rows, pa.int64())})
    for window in ("all", "tumbling:1s"):
        for s in ([], [4, 5, 4]):
            stream = {"k": np.array(s, dtype=np.int64), "ts": np.zeros(len(s), dtype=np.int64)}
            result = sj.join(where, stream, on="k", window=window, engine="ssbj", check=True)
            assert len(result) == rows * s.count(4)


@pytest.mark.parametrize("kind", TYPED, indirect=True)
def test_a_column_without_any_value_joins_with_nothing(kind: str, tmp_path: Path) -> None:
    where = written(kind, tmp_path, {"k": pa.array([None, None], pa.int64())})
    assert len(sj.join(where, {"k": np.array([0, -1])}, on="k", engine="ssbj", check=True)) == 0


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("how", ["inner", "left"])
def test_a_table_of_sqlite_without_any_value_joins_with_no_string(
    how: Any, engine: str, tmp_path: Path
) -> None:
    for rows in (0, 2):
        (folder := tmp_path / str(rows)).mkdir()
        nulls = ", ".join(["(NULL)"] * rows)
        filled = [f"INSERT INTO t VALUES {nulls}"] if rows else []
        with database(folder / "r.db", "CREATE TABLE t (k TEXT)", *filled):
            where = f"sqlite:{folder / 'r.db'}:t"
        found = pairs(sj.join(where, {"k": ["a", "b"]}, on="k", how=how, engine=engine))
        assert found == ([] if how == "inner" else [(row, -1) for row in range(rows)])


@pytest.mark.parametrize("kind", TYPED, indirect=True)
def test_floats_of_a_store_meet_a_stream_without_any_value(kind: str, tmp_path: Path) -> None:
    stream = {"k": np.array([np.nan])}
    for number, values in enumerate(([], [None], [float("nan")], [1.5])):
        (folder := tmp_path / str(number)).mkdir()
        where = written(kind, folder, {"k": pa.array(values, pa.float64())})
        assert len(sj.join(where, stream, on="k", engine="meshjoin", check=True)) == 0
        found = pairs(sj.join(where, stream, on="k", how="full", engine="meshjoin"))
        assert found == [(-1, 0), *((row, -1) for row in range(len(values)))]


def test_keys_of_other_signs_are_never_taken_for_each_other(tmp_path: Path) -> None:
    high = np.array([(1 << 64) - 1, 1 << 63, 5], dtype=np.uint64)
    low = np.array([-1, -(1 << 63), 5], dtype=np.int64)
    for number, (r, s) in enumerate([(high, low), (low, high)]):
        (folder := tmp_path / str(number)).mkdir()
        where = written("arrow", folder, {"k": pa.array(r)})
        assert pairs(sj.join(where, {"k": s}, on="k", check=True)) == [(2, 2)]


def test_rows_without_a_value_meet_no_tuple_whatever_stands_in_their_place(tmp_path: Path) -> None:
    r = {"k": pa.array([None, 0, -1, 2, None])}
    for number, s in enumerate(([0, 1, 2, 3, 4, 5, 6, -1], [None, 0, -1])):
        (folder := tmp_path / str(number)).mkdir()
        stream = pa.table({"k": pa.array(s, pa.int64())})
        found = pairs(sj.join(written("arrow", folder, r), stream, on="k", engine="ssbj"))
        assert found == right(pa.table(r), stream, on="k")


def test_a_window_counts_from_the_arrival_column_that_is_named(tmp_path: Path) -> None:
    r = {"k": pa.array([1, 1, 1]), "at": pa.array([2500, 100, 1100])}
    s = pa.table({"k": [1, 1], "at": [50, 2100]})
    where = written("parquet", tmp_path, r)
    asked = {"on": "k", "window": "tumbling:1ms", "ts": "at", "engine": "ssbj", "check": True}
    result = sj.join(where, s, **asked)
    assert pairs(result) == [(0, 1), (1, 0)]
    assert sorted(result.pairs["ts"].to_pylist()) == [50, 2100]


def test_the_windows_that_a_relation_takes_are_named(tmp_path: Path) -> None:
    where = written("arrow", tmp_path, {"k": pa.array([1])})
    with pytest.raises(UnsupportedError, match="cannot join under window count:5"):
        sj.join(where, {"k": np.array([1])}, on="k", window="count:5")


def test_times_of_a_stream_long_after_1970_are_not_waited_for(tmp_path: Path) -> None:
    where = written("arrow", tmp_path, {"k": pa.array([1])})
    s = {"k": np.array([1, 1]), "ts": np.array([1_700_000_000_000_000, 1_700_000_000_001_000])}
    assert len(sj.join(where, s, on="k", engine="ssbj", arrival="replay")) == 2


def test_rows_of_a_stored_relation_are_looked_up_where_it_lies(tmp_path: Path) -> None:
    where = written("arrow", tmp_path, {"k": pa.array([1]), "v": pa.array([["any", "type"]])})
    result = sj.join(where, pa.table({"k": [1]}), on="k")
    assert result.table("r.*").to_pydict() == {"k": [1], "v": [["any", "type"]]}


# What is wrong is said in a sentence.


def test_rows_that_come_between_two_cycles_are_joined_from_then_on(tmp_path: Path) -> None:
    place = tmp_path / "grows.db"
    with database(place, "CREATE TABLE r (k TEXT)", "INSERT INTO r VALUES ('a'), (NULL), ('b')"):
        pass
    s = pa.table({"k": ["a", "late", "b"]})
    from streamjoin.engines.job import Job
    from streamjoin.streams import as_streams
    from streamjoin_common.language.predicates import Predicate
    from streamjoin_common.language.windows import AllWindow

    predicate = Predicate.parse("k", None)
    job = Job(*as_streams(f"sqlite:{place}:r", s, predicate), predicate, AllWindow())
    store = CodedStore(job, job.r.store)
    before = store.read(0, store.positions)
    with database(place, "INSERT INTO r VALUES ('late')", "DELETE FROM r WHERE k = 'a'"):
        pass
    after = store.read(0, store.positions)
    store.close()
    words = store.s_words.tolist()
    assert [words.index(word) for word in before.keys if word in words] == [0, 2]
    found = [
        (words.index(word), row)
        for word, row in zip(after.keys, after.rows, strict=True)
        if word in words
    ]
    assert found == [(2, 2), (1, 3)]


def test_a_column_that_becomes_another_type_ends_the_join_with_a_sentence(tmp_path: Path) -> None:
    place = tmp_path / "turns.db"
    with (
        database(place, "CREATE TABLE r (k)", "INSERT INTO r VALUES (1), (2), ('three')"),
        pytest.raises(InputError, match="column 'k' holds 'three' where int was expected"),
    ):
        sj.join(f"sqlite:{place}", {"k": np.array([1])}, on="k", engine="ssbj")


@pytest.mark.parametrize("engine", ENGINES)
def test_rows_that_stay_are_joined_once_while_others_come_and_go(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "busy.db"
    with contextlib.closing(sqlite3.connect(place)) as connection, connection:
        connection.execute("CREATE TABLE r (k TEXT)")
        names = [(f"stays {number % 40}",) for number in range(200)]
        connection.executemany("INSERT INTO r VALUES (?)", names)
        connection.executemany("INSERT INTO r VALUES (?)", [("goes",)] * 50)
    rng = np.random.default_rng(12)
    asked = [f"stays {number}" for number in rng.zipf(1.5, 20_000) % 45]
    asked[::50] = ["goes"] * len(asked[::50])
    reads = []
    plain = CodedStore.read

    def read(self: CodedStore, first: int, end: int) -> Any:
        reads.append(first)
        if len(reads) % 7 == 3:
            with contextlib.closing(sqlite3.connect(place)) as connection, connection:
                connection.execute("DELETE FROM r WHERE k = 'goes' AND rowid % 3 = 0")
                connection.execute("INSERT INTO r VALUES ('goes')")
        return plain(self, first, end)

    monkeypatch.setattr(CodedStore, "read", read)
    knobs = {"memory_kib": 48, "partition_rows": 32}
    result = sj.join(f"sqlite:{place}", {"k": np.array(asked)}, on="k", engine=engine, knobs=knobs)
    assert len(reads) > 30
    found = [(r, s) for r, s in pairs(result) if asked[s] != "goes"]
    stays = {f"stays {number}": range(number, 200, 40) for number in range(40)}
    assert found == sorted((r, s) for s, key in enumerate(asked) for r in stays.get(key, ()))


def test_a_store_of_keys_alone_says_that_it_has_no_columns_to_compare() -> None:
    with pytest.raises(UnsupportedError, match="reads keys alone"):
        ListStore([1, 2, 3]).columns(0, 3)


def test_a_result_is_not_written_into_the_folder_of_its_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where the next join would read it as a part of R."""
    folder = tmp_path / "r"
    folder.mkdir()
    for path in (folder / "part-0.parquet", tmp_path / "s.parquet"):
        pq.write_table(pa.table({"k": [1, 2]}), path)
    out = folder / "pairs.parquet"
    words = ["join", "--engine", "ssbj", "--s", str(tmp_path / "s.parquet"), "--on", "k"]
    words += ["--window", "all", "--output", str(out)]
    assert main([*words, "--r", f"parquet:{folder}"]) == 2
    assert "is in the folder of an input; choose another folder" in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize("kind", ["postgres"], indirect=True)
def test_a_query_that_has_ended_is_not_cancelled(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that stops a reader may do so in the very moment in which a cursor closes."""
    from adbc_driver_manager.dbapi import Cursor

    where = relation(written(kind, tmp_path, {"k": pa.array([4, 5], pa.int64())}))
    closed, interrupted = Cursor.close, []
    with contextlib.closing(open_store(kind, Path(where.location), Projection("k"))) as store:

        def close(cursor: Any) -> None:
            closed(cursor)
            store.interrupt()
            interrupted.append(cursor)

        monkeypatch.setattr(Cursor, "close", close)
        assert store.rows(0, 9)[0].num_rows == 2
        monkeypatch.undo()
    assert interrupted
