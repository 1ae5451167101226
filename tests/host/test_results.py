"""Joined rows: every kind of input, every kind of output, columns chosen and batches bounded."""

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.host.arrow_types import COLUMNS, ROWS

import streamjoin as sj
from streamjoin.inputs.payload import take_rows, takeable
from streamjoin.relations import relation
from streamjoin.relations.stream import StoredRelation
from streamjoin.results.lookups import InMemory, InStore, Lookup
from streamjoin.results.rows import Joined
from streamjoin.tuples import Int64s, Rows
from streamjoin_common.language.arrivals import ArrivalColumn

DATA = {"k": [3, 1, 2, 1], "v": ["c", "a", None, "d"], "x": [0.5, 1.5, 2.5, None]}
TABLE = pa.table(DATA)
S = {"k": np.array([1, 3, 9]), "w": np.array([10, 30, 90])}
RIGHT = [(1, "a", 1.5, 10), (1, "d", None, 10), (3, "c", 0.5, 30)]
COLUMNS_ASKED = ["r.k", "v", "r.x", "s.w"]


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return sorted(zip(*(column.to_pylist() for column in table.columns), strict=True), key=str)


def files(folder: Path) -> None:
    (folder / "parts").mkdir()
    pq.write_table(TABLE.slice(0, 1), folder / "parts" / "a.parquet")
    pq.write_table(TABLE.slice(1), folder / "parts" / "b.parquet")
    pq.write_table(TABLE, folder / "r.parquet")
    with pa.ipc.new_file(str(folder / "r.arrow"), TABLE.schema) as writer:
        writer.write_table(TABLE)
    pv.write_csv(TABLE.set_column(1, "v", TABLE["v"].fill_null("empty")), folder / "r.csv")
    with sqlite3.connect(folder / "r.db") as base:
        base.execute("CREATE TABLE r (k, v, x)")
        base.executemany("INSERT INTO r VALUES (?, ?, ?)", zip(*DATA.values(), strict=True))
    base.close()
    with duckdb.connect(str(folder / "r.duckdb")) as quack:
        quack.from_arrow(TABLE).create("r")


INPUTS: dict[str, Callable[[Path], Any]] = {
    "arrays": lambda _: {
        "k": np.array(DATA["k"], np.int32),
        "v": np.array(DATA["v"], object),
        "x": np.ma.MaskedArray([0.5, 1.5, 2.5, 0.0], [False, False, False, True]),
    },
    "lists": lambda _: DATA,
    "a list of rows": lambda _: TABLE.to_pylist(),
    "series": lambda _: {
        "k": pd.Series(DATA["k"], index=[4, 5, 6, 7]),
        "v": pl.Series(DATA["v"]),
        "x": pa.array(DATA["x"]),
    },
    "pandas": lambda _: pd.DataFrame(DATA, index=[5, 2, 9, 7]),
    "polars": lambda _: pl.DataFrame(DATA),
    "arrow": lambda _: pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1)]),
    "a record batch": lambda _: TABLE.to_batches()[0],
    "a reader": lambda _: TABLE.to_reader(2),
    "a dataset": lambda folder: ds.dataset(folder / "parts"),
    "a duckdb relation": lambda _: duckdb.from_arrow(TABLE),
    "a path": lambda folder: folder / "r.parquet",
    "a folder": lambda folder: str(folder / "parts"),
    "a pattern": lambda folder: str(folder / "parts" / "*.parquet"),
    "ipc": lambda folder: str(folder / "r.arrow"),
    "sqlite": lambda folder: f"sqlite:{folder / 'r.db'}",
    "duckdb": lambda folder: f"duckdb:{folder / 'r.duckdb'}",
    "parquet": lambda folder: f"parquet:{folder / 'parts'}",
    "an arrow store": lambda folder: f"arrow:{folder / 'r.arrow'}",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    files(folder)
    return folder


@pytest.mark.parametrize("kind", INPUTS)
def test_every_kind_of_input_gives_every_kind_of_output(kind: str, folder: Path) -> None:
    result = sj.join(INPUTS[kind](folder), S, on="k", engine="auto")
    assert rows_of(result.table(COLUMNS_ASKED)) == RIGHT
    both = 5
    assert len(result) == 3
    assert [batch.num_rows for batch in result.batches(2)] == [2, 1]
    assert [batch.num_rows for batch in result] == [3]
    assert pa.table(result).num_columns == pl.DataFrame(result).width == both
    assert duckdb.sql("SELECT sum(w) FROM result").fetchall() == [(50,)]
    assert result.to_pandas("s.w").w.sum() == result.to_polars("s.w")["w"].sum() == 50
    assert "3 pairs of 4 x 3 tuples" in repr(result)
    assert max(map(len, repr(result).splitlines())) <= 80
    assert "<table>" in result._repr_html_()


def test_csv_gives_joined_rows(folder: Path) -> None:
    result = sj.join(folder / "r.csv", S, on="k")
    assert rows_of(result.table("v,w")) == [("a", 10), ("c", 30), ("d", 10)]


@pytest.mark.parametrize("kind", ["arrays", "polars", "arrow", "a path"])
def test_rows_that_were_put_in_order_are_looked_up_where_they_were(kind: str, folder: Path) -> None:
    late = {"k": [3, 1, 2, 1], "ts": [30, 10, 20, 5], "v": ["c", "a", "b", "late"]}
    path = folder / "late.parquet"
    pq.write_table(pa.table(late), path)
    forms = {
        "arrays": {name: np.array(values) for name, values in late.items()},
        "polars": pl.DataFrame(late),
        "arrow": pa.table(late),
        "a path": path,
    }
    s = {"k": np.array([1, 3]), "ts": np.array([40, 41])}
    result = sj.join(forms[kind], s, on="k", window="all", lateness="20us")
    assert result.metrics["late"] == [1, 0]
    assert rows_of(result.table("v,s.ts")) == [("a", 40), ("c", 41)]


@pytest.mark.parametrize("form", [dict, pa.table, pl.DataFrame, pd.DataFrame])
def test_live_rounds_give_rows_of_whatever_was_pushed(form: Callable[[Any], Any]) -> None:
    rows: list[tuple[Any, ...]] = []
    with sj.StreamJoiner(on="k", window="count:2") as joiner:
        for first in range(0, 6, 2):
            keys = np.array([first, first + 1])
            joiner.push_r(form({"k": keys, "v": np.array([f"v{key}" for key in keys])}))
            joiner.push_s(form({"k": keys, "w": keys * 10}))
            keys[:] = -1  # what was pushed is a copy
            for matches in joiner.results():
                assert pl.DataFrame(matches).width == 4
                rows += rows_of(matches.table("v,w"))
    assert rows == [(f"v{key}", key * 10) for key in range(6)]


CHUNKS = st.lists(st.lists(st.integers(0, 9) | st.none(), max_size=4), max_size=5)


@given(chunks=CHUNKS, asked=st.lists(st.integers(-1, 19), max_size=12))
def test_rows_are_taken_as_a_plain_lookup_takes_them(
    chunks: list[list[int | None]], asked: list[int]
) -> None:
    values = [value for chunk in chunks for value in chunk]
    rows = np.array([row for row in asked if row < len(values)], dtype=np.int64)
    plain = [None if row < 0 else values[row] for row in rows]
    column = pa.chunked_array([pa.array(chunk, pa.int64()) for chunk in chunks], pa.int64())
    taken = take_rows(takeable(column), rows)
    taken.validate(full=True)
    assert taken.to_pylist() == plain
    coded = pa.chunked_array([pa.array(c, pa.int64()).dictionary_encode() for c in chunks] or [[]])
    assert take_rows(takeable(coded), rows).to_pylist() == plain


@pytest.mark.parametrize("name", COLUMNS)
def test_a_missing_side_is_null_whatever_the_type(name: str) -> None:
    whole = pa.chunked_array([COLUMNS[name].slice(0, 1), COLUMNS[name].slice(1)])
    rows = np.array([2, -1, 0], dtype=np.int64)
    expected = [whole[2].as_py(), None, whole[0].as_py()]
    taken = take_rows(takeable(whole), rows)
    taken.validate(full=True)
    assert taken.to_pylist() == expected
    assert len(whole) == ROWS
    nothing = take_rows(takeable(pa.chunked_array([], whole.type)), np.array([-1, -1]))
    nothing.validate(full=True)
    assert nothing.to_pylist() == [None, None]
    assert nothing.type == take_rows(takeable(whole.slice(0, 1)), rows[:0]).type


class Of(Joined):
    """A result that is made by hand."""

    def __init__(self, r: Lookup, s: Lookup, pairs: list[tuple[int, int]], how: str) -> None:
        both = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        self.r_rows: Rows = both[:, 0]
        self.s_rows: Rows = both[:, 1]
        self._by_side, self._kind = {"r": r, "s": s}, how

    @property
    def _ts(self) -> Int64s:
        return np.zeros(len(self), dtype=np.int64)

    @property
    def _how(self) -> str:
        return self._kind

    @property
    def _title(self) -> str:
        return "Of"

    def _lookup(self, side: str) -> Lookup:
        return self._by_side[side]


def stored(path: Path, row: str | None = None) -> InStore:
    where = relation(f"parquet:{path}")
    named = type(where)(where.kind, where.location, where.table, row)
    return InStore(StoredRelation.of(named, ["k"], ArrivalColumn()))


def test_a_missing_side_gives_nulls_in_rows_and_pairs(folder: Path) -> None:
    strict = pa.table(S, schema=pa.schema([pa.field(n, pa.int64(), nullable=False) for n in S]))
    for r in (InMemory(TABLE), stored(folder / "r.parquet")):
        full = Of(r, InMemory(strict), [(0, 1), (3, -1), (-1, 2)], "full")
        table = full.table("v,w")
        table.validate(full=True)
        assert table.to_pydict() == {"v": ["c", "d", None], "w": [30, None, 90]}
        assert table.schema.field("w").nullable
        assert full.pairs.to_pydict()["r_row"] == [0, 3, None]
        assert full.pairs.to_pydict()["s_row"] == [1, None, 2]
        nothing = Of(r, InMemory(strict), [(-1, -1)], "full")
        assert nothing.table("v,w").to_pylist() == [{"v": None, "w": None}]
        assert len(repr(full).splitlines()) == 5


@pytest.mark.parametrize("how", ["semi", "anti"])
def test_semi_and_anti_joins_have_columns_of_r_alone(how: str) -> None:
    result = Of(InMemory(TABLE), InMemory(pa.table(S)), [(1, -1)], how)
    assert result.table().to_pylist() == [{"k": 1, "v": "a", "x": 1.5}]
    assert "w" not in repr(result)
    with pytest.raises(sj.InputError, match=f"s.w: a join of kind {how} has R's columns only"):
        result.table("s.w")
    with pytest.raises(sj.InputError, match="there is no column 'w': r has k, v, x"):
        result.table("w")


@settings(max_examples=25, deadline=None)
@given(asked=st.lists(st.integers(-1, 299), max_size=40), size=st.integers(1, 50))
def test_rows_of_a_store_are_those_of_a_plain_lookup(
    asked: list[int], size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "stored.parquet"
    if not path.exists():
        numbers = np.arange(300)
        table = pa.table({"k": numbers, "id": numbers[::-1] * 7, "v": numbers.astype(str)})
        pq.write_table(table, path, row_group_size=64)
    pairs = [(row, 0) for row in asked]
    plain = [None if row < 0 else str(row) for row in asked]
    s = InMemory(pa.table({"w": [1]}))
    batches = list(Of(stored(path), s, pairs, "full").batches(size, "r.v"))
    assert [value for batch in batches for value in batch["v"].to_pylist()] == plain
    assert all(batch.num_rows <= size for batch in batches)
    by_id = [((299 - row) * 7 if row >= 0 else -1, 0) for row in asked]
    named = Of(stored(path, "id"), s, by_id, "full")
    assert named.table("v")["v"].to_pylist() == plain


def test_batches_are_made_when_they_are_asked_for() -> None:
    taken: list[int] = []

    class Counted(InMemory):
        def take(self, name: str, rows: Int64s) -> Any:
            taken.append(len(rows))
            return super().take(name, rows)

    table = pa.table({"k": np.arange(1000)})
    result = Of(Counted(table), InMemory(table), [(row, row) for row in range(1000)], "inner")
    batches = iter(result.batches(100, "r.k"))
    assert taken == []
    assert next(batches).num_rows == 100
    assert taken == [100]
    reader = pa.RecordBatchReader.from_stream(result)
    assert taken == [100]
    assert reader.read_next_batch().num_rows == 1000


def test_rows_are_bounded_in_memory() -> None:
    n = 200_000
    keys = {"k": np.arange(n), **{f"c{i}": np.arange(n) for i in range(4)}}
    result = sj.join(keys, keys, on="k", engine="npj")
    before = pa.total_allocated_bytes()
    peak = 0
    for batch in result.batches(1000):
        peak = max(peak, pa.total_allocated_bytes() - before)
        assert batch.num_rows == 1000
    assert 0 < peak < 10 * 1000 * 10 * 8


WRONG_COLUMNS: list[tuple[Any, str]] = [
    ("r.z", "r: there is no column 'z'; it has k, v, x"),
    ("z", "there is no column 'z': r has k, v, x; s has k, w"),
    ("k", "the column 'k' is in both r and s: write r.k or s.k"),
    (["r.v", "v"], "the column r.v is named twice"),
    ([], "columns: a name is missing: write r.a, s.b, r.*, s.* or *"),
    ("r.v,,w", "columns: a name is missing"),
    (7, "columns must be names such as r.a, s.b, r.*, s.* or *, not 7"),
    ([7], "columns must be names such as"),
    (b"r.v", "columns must be names such as"),
]


@pytest.mark.parametrize(("columns", "sentence"), WRONG_COLUMNS)
def test_a_mistake_in_columns_is_a_sentence(columns: Any, sentence: str) -> None:
    result = sj.join(TABLE, S, on="k")
    with pytest.raises(sj.InputError) as refused:
        result.table(columns)
    assert str(refused.value).startswith(sentence)


@pytest.mark.parametrize("rows", [0, -1, 1.5, "9", None])
def test_a_batch_has_at_least_one_row(rows: Any) -> None:
    with pytest.raises(sj.InputError, match="rows must be an integer of at least 1, not"):
        sj.join(TABLE, S, on="k").batches(rows)


WRONG_PAYLOAD: list[tuple[Any, str]] = [
    ({"k": [1], "z": np.array([1j])}, "r: column 'z' is complex128, of which no Arrow column"),
    ({"k": [1], "z": "text"}, "r: column 'z' is one value: give an array with a value for"),
    ({"k": [1], "z": 5}, "r: column 'z' is one value"),
    ({"k": [1], "z": [object()]}, "r: column 'z' is list, of which no Arrow column"),
]


@pytest.mark.parametrize(("r", "sentence"), WRONG_PAYLOAD)
def test_a_column_that_cannot_be_shown_is_refused_only_if_asked_for(r: Any, sentence: str) -> None:
    result = sj.join(r, S, on="k")
    assert result.table("r.k")["k"].to_pylist() == [1]
    with pytest.raises(sj.InputError) as refused:
        result.table()
    assert str(refused.value).startswith(sentence)


def test_a_file_that_has_changed_since_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    pq.write_table(TABLE, path)
    result = sj.join(path, S, on="k")
    assert result.table("r.k").num_rows == 3
    pq.write_table(TABLE.slice(1), path)
    with pytest.raises(sj.InputError, match=r"r.parquet: has changed since it was joined"):
        result.table("v")


def test_a_row_that_has_left_its_store_is_pointed_out(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "r.db"
    path.write_bytes((folder / "r.db").read_bytes())
    result = sj.join(f"sqlite:{path}", S, on="k")
    with sqlite3.connect(path) as base:
        base.execute("DELETE FROM r WHERE k = 1 AND v = 'd'")
    base.close()
    with pytest.raises(sj.InputError, match="row 3 is no longer there: join it again"):
        result.table("v")


def test_files_of_a_pattern_have_the_same_columns(tmp_path: Path) -> None:
    pq.write_table(pa.table({"k": [1]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"k": ["1"]}), tmp_path / "b.parquet")
    with pytest.raises(sj.InputError, match=r"b.parquet: has not the columns of .*a.parquet: 'k'"):
        sj.join(str(tmp_path / "*.parquet"), S, on="k")
    with pytest.raises(sj.InputError, match=r"none-\*.parquet: no file matches"):
        sj.join(str(tmp_path / "none-*.parquet"), S, on="k")


def test_a_reader_that_is_both_inputs_is_read_once() -> None:
    reader = TABLE.to_reader()
    assert len(sj.join(reader, reader, on="k")) == 6


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_of_any_type_is_read_from_files_when_asked_for(name: str, tmp_path: Path) -> None:
    table = pa.table({"k": np.arange(ROWS), "p": COLUMNS[name]})
    paths = [tmp_path / "t.arrow"]
    with pa.ipc.new_file(paths[0], table.schema) as writer:
        writer.write_table(table)
    try:
        pq.write_table(table, tmp_path / "t.parquet")
        paths.append(tmp_path / "t.parquet")
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        pass  # no column of Parquet
    for path in paths:
        found = sj.join(path, {"k": np.arange(ROWS)}, on="k", engine="kang").table("r.k,p")
        values = [row["p"] for row in sorted(found.to_pylist(), key=lambda row: int(row["k"]))]
        assert values == COLUMNS[name].to_pylist()
