"""Columns that pass through a join: every Arrow type, at rest and live, in order and late."""

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from tests.host.arrow_types import COLUMNS, ROWS

import streamjoin as sj
from streamjoin.inputs import payload
from streamjoin.live import side as live_side

ORDERS = {"in order": [0, 1, 2, 3], "late": [1, 0, 3, 2]}


def table_of(column: Any, order: list[int]) -> pa.Table:
    """Rows in the order of their keys, with arrival times in the order given; two chunks."""
    keys = {"k": np.arange(ROWS), "ts": np.argsort(order) * 10}
    whole = pa.table({**keys, "p": column})
    return pa.concat_tables([whole.slice(0, 1), whole.slice(1)])


def expected(column: Any) -> list[tuple[int, Any, Any]]:
    """What each key's pair shows of both sides."""
    return [(key, value, value) for key, value in enumerate(column.to_pylist())]


def shown(tables: list[pa.Table]) -> list[tuple[int, Any, Any]]:
    for table in tables:
        table.validate(full=True)
    rows = [row for table in tables for row in table.to_pylist()]
    return sorted(((row["k_r"], row["p_r"], row["p_s"]) for row in rows), key=lambda row: row[0])


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_of_any_type_passes_through_a_join_at_rest(name: str, order: str) -> None:
    table = table_of(COLUMNS[name], ORDERS[order])
    found = sj.join(table, table, on="k", engine="kang", lateness="20us")
    assert shown([found.table()]) == expected(COLUMNS[name])


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_of_any_type_passes_through_a_live_join(
    name: str, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_side, "MAX_WINDOW_CHUNKS", 2)
    table = table_of(COLUMNS[name], ORDERS[order])
    lateness = None if order == "in order" else "20us"
    with sj.StreamJoiner(on="k", window="count:100", lateness=lateness) as joiner:
        tables = []
        for row in range(ROWS):
            joiner.push_r(table.slice(row, 1))
            joiner.push_s(table.slice(row, 1))
            tables += [matches.table() for matches in joiner.results()]
        joiner.end()
        tables += [matches.table() for matches in joiner.results()]
    assert shown(tables) == expected(COLUMNS[name])


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_of_any_type_is_missing_while_no_row_of_its_side_was_joined(name: str) -> None:
    r, s = pa.table({"k": [1], "ts": [0]}), pa.table({"k": [1], "ts": [99], "p": COLUMNS[name][:1]})
    with sj.StreamJoiner(on="k", window="time:10us", how="left") as joiner:
        joiner.push_r(r)
        joiner.push_s(s)
        joiner.advance(50)
        (matches,) = joiner.results()
        joiner.close()
    assert matches.table("p").to_pylist() == [{"p": None}]


@pytest.mark.parametrize("name", COLUMNS)
def test_a_row_too_late_is_counted_and_its_batch_kept(name: str) -> None:
    table = table_of(COLUMNS[name], [2, 0, 1, 3])  # times 10, 20, 0, 30: the third is too late
    with sj.StreamJoiner(on="k", window="all", lateness="10us") as joiner:
        for push in (joiner.push_r, joiner.push_s):
            push(table)
        joiner.end()
        tables = [matches.table() for matches in joiner.results()]
        assert joiner.metrics["late"] == [1, 1]
        assert joiner.metrics["n_r"] == ROWS
    right = [row for row in expected(COLUMNS[name]) if row[0] != 2]
    assert shown(tables) == right


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_without_values_takes_the_type_of_one_with_values(name: str) -> None:
    column = COLUMNS[name]
    with sj.StreamJoiner(on="k", window="all") as joiner:
        for number, values in enumerate((pa.nulls(ROWS), column, pa.nulls(ROWS))):
            batch = pa.table({"k": np.arange(ROWS) + 10 * number, "p": values})
            joiner.push_r(batch)
            joiner.push_s(batch)
        (matches,) = joiner.results()
        values = matches.table().column("p_r").to_pylist()
    assert values == [None] * ROWS + column.to_pylist() + [None] * ROWS


@pytest.mark.parametrize("name", COLUMNS)
def test_what_is_written_out_has_the_same_values_in_any_slice(name: str) -> None:
    whole = pa.table({"p": COLUMNS[name]})
    nothing = pa.table({"p": pa.chunked_array([], COLUMNS[name].type)})
    slices = [whole.slice(start, rows) for start in range(ROWS) for rows in (0, 1, 2, 4)]
    for part in [*slices, pa.concat_tables([whole.slice(1), whole]), nothing]:
        for dictionaries in (False, True):
            plain = payload.written_out(part, dictionaries)
            plain.validate(full=True)
            assert plain.column("p").to_pylist() == part.column("p").to_pylist()
    shared = payload.written_out(whole)
    assert shared.column("p").to_pylist() == payload.take(whole, np.arange(ROWS))["p"].to_pylist()


def test_a_field_keeps_what_is_said_of_it() -> None:
    field = pa.field("p", pa.string_view(), nullable=False, metadata={"unit": "m"})
    table = pa.table({"p": pa.array(["a"], pa.string_view())}, schema=pa.schema([field]))
    plain = payload.written_out(table).schema.field("p")
    assert plain.equals(field.with_type(pa.large_string()), check_metadata=True)


KEYS = {
    "views": pa.array(["a", "b", None, "c"], pa.string_view()),
    "coded views": pa.DictionaryArray.from_arrays(
        pa.array([0, 1, None, 2], pa.int8()), pa.array(["a", "b", "c"], pa.string_view())
    ),
    "runs": pa.RunEndEncodedArray.from_arrays(
        pa.array([1, 2, 3, 4], pa.int32()), pa.array(["a", "b", None, "c"])
    ),
    "coded": pa.array(["a", "b", None, "c"]).dictionary_encode(),
}


@pytest.mark.parametrize("other", KEYS)
@pytest.mark.parametrize("one", KEYS)
def test_strings_of_any_encoding_are_keys(one: str, other: str) -> None:
    r, s = pa.table({"k": KEYS[one]}), pa.table({"k": KEYS[other]})
    found = sj.join(r, s, on="k", check=True)
    assert sorted(found.table().column("k_r").to_pylist()) == ["a", "b", "c"]
    with sj.StreamJoiner(on="k") as joiner:
        joiner.push_r(r)
        joiner.push_s(s)
        assert [sorted(m.table()["k_s"].to_pylist()) for m in joiner.results()] == [["a", "b", "c"]]


@pytest.mark.parametrize("lateness", [None, "10us"])
def test_polars_frames_pass_through(lateness: str | None) -> None:
    late = lateness is not None
    frame = pl.DataFrame(
        {
            "k": ["ant", "bee", "a long name of an animal"],
            "text": ["x", None, "a string beyond twelve bytes"],
            "lists": [["a", "b"], [], None],
            "groups": pl.Series(["u", "v", "u"], dtype=pl.Categorical),
            "things": [{"a": "x", "b": 1}, {"a": None, "b": 2}, {"a": "y", "b": None}],
            "ts": [5, 0, 9] if late else [0, 5, 9],
        }
    )
    whole = sj.join(frame, frame, on="k", engine="npj", lateness=lateness).table()
    with sj.StreamJoiner(on="k", lateness=lateness) as joiner:
        joiner.push_r(frame)
        joiner.push_s(frame)
        joiner.end()
        (matches,) = joiner.results()
        live = matches.table()
    for found in (whole, live):
        rows = {row["k_r"]: row for row in found.to_pylist()}
        for row in frame.to_dicts():
            for name, value in row.items():
                assert rows[row["k"]][f"{name}_s"] == value


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_in_many_chunks_passes_through_a_join(name: str) -> None:
    """Few rows are taken chunk by chunk, many of all chunks together; empty chunks are skipped."""
    column = pa.chunked_array([COLUMNS[name]] * 3 + [COLUMNS[name].slice(0, 0), COLUMNS[name]])
    rows = len(column)
    given = pa.table({"k": np.arange(rows), "value": column})
    for keys in (np.arange(rows)[::-1], [rows - 1, 0]):
        result = sj.join(given, pa.table({"k": keys}), on="k").table(["r.k", "r.value"])
        values = given["value"].to_pylist()
        found = dict(zip(result["k"].to_pylist(), result["value"].to_pylist(), strict=True))
        assert str(found) == str({key: values[key] for key in found})
        assert len(found) == len(keys)


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_parts_of_lists_of_a_fixed_size_give_their_own_rows(levels: int) -> None:
    """Arrow's own take gives others of them, and memory behind them."""
    kind, rows = pa.int64(), np.arange(8 * 2**levels)
    for _ in range(levels):
        kind = pa.list_(kind, 2)
    values = rows.reshape(8, *[2] * levels).tolist()
    within = pa.struct([("in", kind), ("text", pa.string())])
    structs = [{"in": value, "text": str(row)} for row, value in enumerate(values)]
    for given, of in ((values, kind), (structs, within), ([[value] for value in values], None)):
        whole = pa.array(given, of or pa.list_(kind))
        part = pa.chunked_array([whole.slice(3, 4), whole])
        taken = payload.take_rows(payload.takeable(part), np.array([1, 3, 0, 11, -1]))
        assert taken.to_pylist() == [given[4], given[6], given[3], given[7], None]
