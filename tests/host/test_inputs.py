"""Inputs from Python: Arrow, data frames, NumPy; what is refused."""

import datetime

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import streamjoin as sj
from streamjoin.inputs import as_streams
from streamjoin.predicates import Predicate

ON_K = Predicate.parse(on="k")


def test_every_kind_of_table_gives_the_same_result() -> None:
    columns = {"k": [1, 2, 3, 2], "ts": [0, 1, 2, 3]}
    arrays = {name: np.array(values) for name, values in columns.items()}
    relation = duckdb.sql("SELECT unnest([1, 2, 3, 2]) AS k, unnest([0, 1, 2, 3]) AS ts")
    inputs = [arrays, pa.table(columns), pd.DataFrame(columns), relation]
    digests = {sj.join(r, s, on="k").metrics["digest"] for r in inputs for s in inputs}
    assert len(digests) == 1


def test_timestamps_and_durations_become_microseconds() -> None:
    start = datetime.datetime(2026, 1, 1)
    stamps = pa.array([start, start + datetime.timedelta(milliseconds=3)], pa.timestamp("ms"))
    spans = pa.array([datetime.timedelta(0), datetime.timedelta(seconds=2)], pa.duration("s"))
    r = pa.table({"k": [1, 2], "ts": stamps})
    s = pa.table({"k": [1, 2], "ts": spans})
    r_stream, s_stream = as_streams(r, s, ON_K)
    assert np.diff(r_stream.ts).tolist() == [3000]
    assert s_stream.ts.tolist() == [0, 2_000_000]


def test_numpy_times_become_microseconds() -> None:
    r = {"k": np.array([1]), "ts": np.array(["1970-01-01T00:00:01"], "datetime64[ms]")}
    assert as_streams(r, {"k": np.array([1])}, ON_K)[0].ts.tolist() == [1_000_000]


def test_a_stream_without_ts_is_at_rest() -> None:
    r, _ = as_streams({"k": np.array([3, 4])}, {"k": np.array([1])}, ON_K)
    assert r.ts.tolist() == [0, 0]


def test_numbers_share_memory_with_arrow() -> None:
    column = pa.array(np.arange(1000, dtype=np.int32))
    r, _ = as_streams(pa.table({"k": column}), {"k": np.array([1])}, ON_K)
    assert np.shares_memory(r.column("k"), column.to_numpy())


@pytest.mark.parametrize(
    ("r", "sentence"),
    [
        ([1, 2], "r must be Arrow data, a data frame or a mapping of NumPy arrays, not list"),
        ({"j": np.array([1])}, "r: there is no column 'k'; it has j"),
        ({"k": np.array([1]), "ts": np.array([1.5])}, "r: ts must hold whole microseconds"),
        ({"k": np.array([1, 2]), "ts": np.array([1])}, "r: the columns have different lengths"),
        ({"k": np.array([[1]])}, "r: column 'k' must have one dimension, not 2"),
        ({"k": np.array([1j])}, "r: column 'k' is complex128; join columns are numbers or text"),
        ({"k": np.array([True])}, "r: column 'k' is bool; join columns are numbers or text"),
        ({"k": np.array([1]), "ts": np.array([2**63 - 1])}, "ts at row 0 is beyond 2**62"),
        (pa.table({"k": pa.array([1, None])}), "r: column 'k' has no value at row 1"),
        (pa.table({"k": pa.array([[1]])}), "r: column 'k' is list<"),
        (pa.table({"k": [1], "ts": pa.array([None], pa.int64())}), "'ts' has no value at row 0"),
    ],
)
def test_what_cannot_be_joined_is_refused_in_a_sentence(r: object, sentence: str) -> None:
    with pytest.raises(sj.InputError) as refused:
        sj.join(r, {"k": np.array([1])}, on="k")
    assert sentence in str(refused.value)


def test_table_gives_both_sides_columns_with_suffixes_where_names_clash() -> None:
    r = pa.table({"k": [1, 2], "v": ["a", "b"]})
    s = pa.table({"k": [2, 2], "w": [0.5, 1.5]})
    found = sj.join(r, s, on="k", check=True)
    assert len(found) == 2
    assert found.table().to_pydict() == {
        "k_r": [2, 2],
        "v": ["b", "b"],
        "k_s": [2, 2],
        "w": found.table()["w"].to_pylist(),
    }
    assert sorted(found.table()["w"].to_pylist()) == [0.5, 1.5]
    assert found.pairs.column_names == ["r_row", "s_row", "ts"]


def test_table_needs_arrow_inputs() -> None:
    found = sj.join({"k": np.array([1])}, {"k": np.array([1])}, on="k")
    with pytest.raises(sj.InputError, match="table\\(\\) needs Arrow inputs"):
        found.table()


def test_auto_chooses_an_engine_that_fits() -> None:
    r = s = {"k": np.array([1, 2]), "ts": np.array([0, 1])}
    assert sj.join(r, s, on="k").metrics["engine"] == "npj"
    assert sj.join(r, s, on="k", window="count:1").metrics["engine"] == "kang"
    assert sj.join(r, s, band="k=k:1:1", window=sj.TimeWindow(5)).metrics["engine"] == "kang"


def test_every_public_name_is_there() -> None:
    for name in sj.__all__:
        assert getattr(sj, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = sj.nothing
