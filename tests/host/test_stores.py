"""Every store gives the rows of a relation by their place, and refuses what it cannot keep."""

import contextlib
import gc
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from tests.host.postgres import server

import streamjoin as sj
from streamjoin.errors import InputError, StoreError, UnavailableError
from streamjoin.relations import KINDS, Projection, Store, open_store, write_store
from streamjoin.relations.catalog import SUFFIXES, store_class

COLUMNAR = ("arrow", "parquet", "duckdb", "postgres")


def relation(kind: str, folder: Path, columns: dict[str, Any]) -> Path:
    """Write columns as a relation of that kind."""
    table = pa.table(columns)
    place = folder / f"own{SUFFIXES[kind]}"
    store_class(kind).write(place, iter(table.to_batches(max_chunksize=7)), table.schema)
    return place


def rows_of(store: Store, step: int) -> tuple[list[int], list[int], list[tuple[Any, ...]]]:
    """All keys, row numbers and kept columns, read in steps."""
    keys: list[int] = []
    rows: list[int] = []
    kept: list[tuple[Any, ...]] = []
    for first in range(0, store.positions, step):
        part = store.read(first, min(first + step, store.positions))
        keys += part.keys.view(np.int64).tolist()
        rows += part.rows.tolist()
        places = part.first + np.arange(len(part))[:, None] * part.stride
        words = part.payload[places + np.arange(store.payload_words)]
        if store.payload_words:
            kept += np.ascontiguousarray(words).view(store.dtype).reshape(-1).tolist()
    return keys, rows, kept


@pytest.mark.parametrize("row_bytes", [16, 24, 120])
@pytest.mark.parametrize("kind", KINDS, indirect=True)
def test_what_was_written_is_read_whatever_the_partitions(
    kind: str, row_bytes: int, tmp_path: Path
) -> None:
    keys = np.random.default_rng(3).integers(0, 1 << 63, 1000, dtype=np.uint64)
    store = write_store(kind, tmp_path, keys, row_bytes)
    assert store.row_bytes == row_bytes
    for step in (1000, 333, 64):
        read, rows, kept = rows_of(store, step)
        assert rows == list(range(1000))
        assert read == keys.view(np.int64).tolist()
        if row_bytes > 16:
            assert [int.from_bytes(bytes(row[0])[:8], "little") for row in kept] == rows
    store.close()


@pytest.mark.parametrize("kept_bytes", [16, 32])
@pytest.mark.parametrize("kind", KINDS, indirect=True)
def test_rows_are_kept_in_part_and_read_whole_only_where_they_must_be(
    kind: str, kept_bytes: int, tmp_path: Path
) -> None:
    keys = np.random.default_rng(4).integers(0, 1 << 63, 500, dtype=np.uint64)
    store = write_store(kind, tmp_path, keys, 64, kept_bytes)
    assert store.row_bytes == kept_bytes
    assert store.read_bytes == (64 if kind == "raw" else kept_bytes)
    read, rows, kept = rows_of(store, 77)
    assert (read, rows) == (keys.view(np.int64).tolist(), list(range(500)))
    if kept_bytes > 16:
        assert [int.from_bytes(bytes(row[0])[:8], "little") for row in kept] == rows
    store.close()


@pytest.mark.parametrize("kind", KINDS, indirect=True)
def test_only_the_columns_of_the_projection_are_kept_in_its_order(
    kind: str, tmp_path: Path
) -> None:
    columns = {
        "a": np.arange(50, dtype=np.int64) * 3,
        "k": np.arange(50, dtype=np.int64) - 25,
        "b": np.arange(50) / 4,
        "c": np.arange(50, dtype=np.int64) + 7,
    }
    place = relation(kind, tmp_path, columns)
    store = open_store(kind, place, Projection("k", ("b", "a"), row="c"))
    keys, rows, kept = rows_of(store, 16)
    assert keys == columns["k"].tolist()
    assert rows == columns["c"].tolist()
    assert kept == list(zip(columns["b"].tolist(), columns["a"].tolist(), strict=True))
    store.close()
    bare = open_store(kind, place, Projection("k"))
    assert (bare.payload_words, bare.row_bytes) == (0, 16)
    assert rows_of(bare, 50)[1] == list(range(50))
    bare.close()


@pytest.mark.parametrize(
    "kind", ["arrow", "parquet", "sqlite", "duckdb", "postgres"], indirect=True
)
def test_rows_without_a_key_join_with_nothing_and_keep_the_numbers_of_others(
    kind: str, tmp_path: Path
) -> None:
    place = relation(kind, tmp_path, {"k": pa.array([5, None, 6, None], pa.int64())})
    store = open_store(kind, place, Projection("k"))
    assert rows_of(store, 2)[:2] == ([5, 6], [0, 2])
    store.close()


@pytest.mark.parametrize("kind", KINDS, indirect=True)
def test_a_column_that_is_missing_is_named_with_what_there_is(kind: str, tmp_path: Path) -> None:
    place = relation(kind, tmp_path, {"k": np.arange(4), "a": np.arange(4)})
    with pytest.raises(InputError, match=r"there is no column 'x'; it has k, a$"):
        open_store(kind, place, Projection("k", ("x",)))


@pytest.mark.parametrize("kind", KINDS, indirect=True)
def test_a_key_that_is_no_whole_number_is_refused(kind: str, tmp_path: Path) -> None:
    place = relation(kind, tmp_path, {"k": np.arange(4) / 2})
    with pytest.raises(InputError, match=r"column 'k' is \w+; it must hold integers"):
        open_store(kind, place, Projection("k"))


@pytest.mark.parametrize(
    "kind", ["arrow", "parquet", "sqlite", "duckdb", "postgres"], indirect=True
)
def test_text_cannot_be_kept(kind: str, tmp_path: Path) -> None:
    place = relation(kind, tmp_path, {"k": np.arange(2), "t": ["a", "bcd"]})
    with pytest.raises(InputError, match=r"'t' .*drop it from the projection$"):
        open_store(kind, place, Projection("k", ("t",)))


@pytest.mark.parametrize("kind", COLUMNAR, indirect=True)
def test_a_missing_value_cannot_be_kept(kind: str, tmp_path: Path) -> None:
    columns = {"k": np.arange(3), "a": pa.array([1, None, 3], pa.int64())}
    store = open_store(kind, relation(kind, tmp_path, columns), Projection("k", ("a",)))
    with pytest.raises(InputError, match=r"column 'a' has a missing value, which cannot be kept"):
        store.read(0, 3)
    store.close()


@pytest.mark.parametrize("kind", KINDS, indirect=True)
def test_what_is_not_there_or_damaged_is_said(kind: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nowhere"):
        open_store(kind, tmp_path / f"nowhere{SUFFIXES[kind] or '.parquet'}", Projection("k"))
    damaged = tmp_path / "damaged"
    damaged.write_bytes(b"no relation" * 400)
    with pytest.raises((InputError, StoreError), match="damaged"):
        open_store(kind, damaged, Projection("k"))


def test_sqlite_rows_of_another_type_than_the_first_are_refused(tmp_path: Path) -> None:
    import sqlite3

    place = relation("sqlite", tmp_path, {"k": np.arange(3), "a": np.arange(3)})
    with sqlite3.connect(place) as connection:
        connection.execute("UPDATE r SET a = 'x' WHERE k = 1")
    connection.close()
    store = open_store("sqlite", place, Projection("k", ("a",)))
    with pytest.raises(InputError, match=r"column 'a' holds 'x' where int was expected"):
        store.read(0, 3)
    store.close()


def test_a_parquet_folder_is_read_file_by_file(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    for number in range(3):
        table = pa.table({"k": np.arange(number * 10, number * 10 + 10)})
        pq.write_table(table, tmp_path / f"part-{number}.parquet", row_group_size=4)
    store = open_store("parquet", tmp_path, Projection("k"))
    assert rows_of(store, 7)[0] == list(range(30))
    store.close()


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ([pa.array([1, 2]), pa.array([3], pa.int32()), pa.array([4], pa.uint16())], [1, 2, 3, 4]),
        ([pa.array([1, 2]), pa.array([None, None]), pa.array([3])], [1, 2, 3]),
        ([pa.array([1]), pa.array(["a"])], "its files do not go together: .*int64 vs string"),
        ([pa.array([1]), pa.array([1 << 63], pa.uint64())], "out of bounds|not in range"),
    ],
)
def test_parquet_files_of_several_types_are_read_as_one_or_refused(
    columns: list[pa.Array], expected: list[int] | str, tmp_path: Path
) -> None:
    import pyarrow.parquet as pq

    for number, keys in enumerate(columns):
        named = {"k": keys, "x": pa.array(range(len(keys)))}
        names = ["k", "x"] if number % 2 else ["x", "k"]
        pq.write_table(pa.table(named).select(names), tmp_path / f"part-{number}.parquet")
    with contextlib.ExitStack() as opened:

        def keys_read() -> list[int]:
            store = open_store("parquet", tmp_path, Projection("k", ("x",)))
            opened.callback(store.close)
            return rows_of(store, 3)[0]

        if isinstance(expected, list):
            assert keys_read() == expected
        else:
            with pytest.raises(InputError, match=expected):
                keys_read()


@pytest.mark.parametrize(
    "described", ['[["k", "O"]]', '[["k", "V0"]]', '[["k", "<i8"], ["x", "V2147483647"]]']
)
def test_rows_of_no_possible_width_are_refused(described: str, tmp_path: Path) -> None:
    (tmp_path / "r.raw").write_bytes(bytes(80))
    (tmp_path / "r.raw.json").write_text(described)
    with pytest.raises(InputError, match="a row takes 1 to"):
        open_store("raw", tmp_path / "r.raw", Projection("k"))


def test_a_folder_is_no_raw_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="does not describe the columns"):
        open_store("raw", Path(), Projection("k"))


def test_two_columns_of_the_keys_name_are_refused(tmp_path: Path) -> None:
    table = pa.table([pa.array([1]), pa.array([2])], names=["k", "k"])
    with pa.OSFile(str(tmp_path / "r"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as out:
        out.write_table(table)
    with pytest.raises(InputError, match="the column 'k' occurs 2 times"):
        open_store("arrow", tmp_path / "r", Projection("k"))


def test_a_raw_file_that_shrinks_is_an_error_and_not_a_short_answer(tmp_path: Path) -> None:
    store = write_store("raw", tmp_path, np.arange(5000, dtype=np.uint64), 24)
    with (tmp_path / "r.raw").open("r+b") as file:
        file.truncate(24 * 100)
    with pytest.raises(StoreError, match="ends before row 4999"):
        store.read(4000, 5000)
    store.close()


def test_an_arrow_file_that_is_cut_short_is_an_error_and_costs_nothing_that_was_read(
    tmp_path: Path,
) -> None:
    place = relation("arrow", tmp_path, {"k": np.arange(50_000)})
    store = open_store("arrow", place, Projection(compared=("k",)))
    _, columns = store.columns(40_000, 41_000)
    os.truncate(place, 5000)
    with pytest.raises(StoreError, match="has been cut short since it was opened"):
        store.columns(41_000, 42_000)
    assert columns["k"][0].tolist() == list(range(40_000, 41_000))
    store.close()


def test_what_was_read_stays_as_it_is_while_more_is_read(tmp_path: Path) -> None:
    keys = np.arange(5000, dtype=np.uint64)
    store = write_store("raw", tmp_path, keys, 24)
    parts = [store.read(first, first + 500) for first in range(0, 5000, 500)]
    for round_ in range(3):
        for first, part in zip(range(0, 5000, 500), parts, strict=True):
            words = part.payload[part.first : part.first + 500 * part.stride : part.stride]
            assert words.tolist() == list(range(first, first + 500)), round_
        for first in range(0, 5000, 50):
            store.read(first, first + 50)
    store.close()


def test_rows_that_are_gone_leave_the_numbers_of_others(tmp_path: Path, postgres: str) -> None:
    import adbc_driver_postgresql.dbapi
    import duckdb

    with duckdb.connect(str(tmp_path / "r.db")) as connection:
        connection.execute("CREATE TABLE r AS SELECT range AS k FROM range(10)")
        connection.execute("DELETE FROM r WHERE k IN (0, 4)")
    store = open_store("duckdb", tmp_path / "r.db", Projection("k"))
    keys, rows, _ = rows_of(store, 3)
    assert keys == rows == [1, 2, 3, 5, 6, 7, 8, 9]
    store.close()
    with adbc_driver_postgresql.dbapi.connect(postgres, autocommit=True) as connection:
        cursor = connection.cursor()
        cursor.execute("CREATE TABLE gone AS SELECT g AS k FROM generate_series(0, 9) g")
        cursor.execute("ALTER TABLE gone ADD PRIMARY KEY (k)")
        cursor.execute("DELETE FROM gone WHERE k IN (0, 4)")
        cursor.execute("UPDATE gone SET k = k WHERE k = 2")
        cursor.close()
    (tmp_path / "gone.toml").write_text(f'uri = "{postgres}"\ntable = "gone"\n')
    store = open_store("postgres", tmp_path / "gone.toml", Projection("k"))
    keys, rows, _ = rows_of(store, 3)
    assert keys == rows == [1, 2, 3, 5, 6, 7, 8, 9]
    store.close()
    store.discard()
    open_store("postgres", tmp_path / "gone.toml", Projection("k")).close()


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ('table = "r"', r'must say uri = "postgresql://..." and table = "..."$'),
        ("=", "does not say where a table is"),
        ('uri = "{}"\ntable = "nowhere"', "nowhere"),
        ('uri = "{}"\ntable = "plain"', "has no primary key of one integer: type ALTER TABLE"),
        ('uri = "postgresql://postgres@127.0.0.1:1/x"\ntable = "r"', "(?i)connect"),
    ],
)
def test_a_table_that_cannot_be_used_is_told_in_a_sentence(
    said: str, sentence: str, tmp_path: Path, postgres: str
) -> None:
    import adbc_driver_postgresql.dbapi

    with (
        adbc_driver_postgresql.dbapi.connect(postgres, autocommit=True) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("CREATE TABLE IF NOT EXISTS plain (k bigint)")
    (tmp_path / "t.toml").write_text(said.replace("{}", postgres))
    with pytest.raises((InputError, StoreError), match=sentence) as raised:
        open_store("postgres", tmp_path / "t.toml", Projection("k"))
    assert str(raised.value).count("\n") == 0


def test_postgres_without_a_server_says_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("STREAMJOIN_POSTGRES", raising=False)
    with pytest.raises(UnavailableError, match="set STREAMJOIN_POSTGRES, as postgresql://"):
        write_store("postgres", tmp_path, np.arange(3, dtype=np.uint64), 16)


def tables(address: str) -> int:
    import adbc_driver_postgresql.dbapi

    with (
        adbc_driver_postgresql.dbapi.connect(address) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT count(*) FROM pg_tables WHERE tablename LIKE 'streamjoin%'")
        return int(cursor.fetchone()[0])


def test_what_was_written_into_a_server_is_dropped_with_its_join(
    postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STREAMJOIN_POSTGRES", postgres)
    before = tables(postgres)
    keys = {"k": np.arange(100)}
    result = sj.join(keys, keys, on="k", engine="ssbj", knobs={"store": "postgres"}, check=True)
    assert len(result) == 100
    assert result.metrics["semi_stream"]["store"] == "postgres"
    gc.collect()
    assert tables(postgres) == before


def test_a_server_that_goes_away_ends_the_join_with_its_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with server() as address:
        monkeypatch.setenv("STREAMJOIN_POSTGRES", address)
        store = write_store("postgres", tmp_path, np.arange(9, dtype="u8"), 16)
        assert len(store.read(0, 9)) == 9
    with pytest.raises(StoreError) as raised:
        store.read(0, 9)
    assert str(raised.value).count("\n") == 0
    with pytest.raises(StoreError, match=r"(?i)connect"):
        store.reopen()
    store.close()
