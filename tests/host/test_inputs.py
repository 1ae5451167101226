"""Inputs from Python: Arrow, data frames, NumPy; what is refused."""

import datetime
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import streamjoin as sj
from streamjoin.errors import InputError
from streamjoin.streams import as_streams
from streamjoin_common.language.predicates import Predicate

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


def test_empty_lists_are_an_empty_stream() -> None:
    found = sj.join({"k": [], "ts": []}, {"k": [1], "ts": [1]}, on="k", check=True)
    assert (found.metrics["n_r"], len(found)) == (0, 0)


def test_numbers_share_memory_with_arrow() -> None:
    column = pa.array(np.arange(1000, dtype=np.int32))
    r, _ = as_streams(pa.table({"k": column}), {"k": np.array([1])}, ON_K)
    assert np.shares_memory(r.column("k"), column.to_numpy())


@pytest.mark.parametrize(
    ("r", "sentence"),
    [
        (
            [1, 2],
            "a mapping of NumPy arrays or a file's path, not list: name its columns, as {'k': r}",
        ),
        (pl.LazyFrame({"k": [1]}), "not LazyFrame: pass r.collect()"),
        ({"j": np.array([1])}, "r: there is no column 'k'; it has j"),
        ({"k": np.array([1]), "ts": np.array([1.5])}, "r: ts must hold integer microseconds"),
        ({"k": np.array([1, 2]), "ts": np.array([1])}, "r: the columns have different lengths"),
        ({"k": np.array([[1]])}, "r: column 'k' must have one dimension, not 2"),
        ({"k": np.array([1j])}, "r: column 'k' is complex128; join columns are numbers, strings"),
        (
            {"k": np.array([True])},
            "r: 'k' is bool, s: 'k' is integer; both must be of one kind: cast",
        ),
        ({"k": np.array([1]), "ts": np.array([2**63 - 1])}, "ts at row 0 is beyond 2**62"),
        ({"k": np.array([1]), "ts": np.array([1], "M8[10ms]")}, "us or ns, not datetime64[10ms]"),
        (pa.table({"k": pa.array([[1]])}), "r: column 'k' is list<"),
        (pa.table({"k": [1], "ts": pa.array([None], pa.int64())}), "'ts' has no value at row 0"),
    ],
)
def test_what_cannot_be_joined_is_refused_in_a_sentence(r: object, sentence: str) -> None:
    with pytest.raises(sj.InputError) as refused:
        sj.join(r, {"k": np.array([1])}, on="k")
    assert sentence in str(refused.value)


def test_tables_put_small_dictionaries_of_many_values_together() -> None:
    kind, pieces = pa.dictionary(pa.int8(), pa.string()), []
    for piece in range(3):
        texts = pa.array([f"{piece}-{row}" for row in range(100)])
        coded = texts.dictionary_encode().cast(kind)
        pieces.append(pa.table({"k": coded, "v": coded}))
    r = pa.concat_tables(pieces)
    found = sj.join(r, r, on="k").table()
    assert found["v_r"].to_pylist() == found["v_s"].to_pylist() == found["k_r"].to_pylist()
    assert sorted(found["k_r"].to_pylist()) == sorted(r["k"].to_pylist())


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


def test_arrays_give_joined_rows_too() -> None:
    found = sj.join({"k": np.array([1])}, {"k": np.array([1])}, on="k")
    assert found.table().to_pydict() == {"k_r": [1], "k_s": [1]}


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


def pairs_of(r: object, s: object, **how: str) -> list[tuple[int, int]]:
    """The pairs by every software engine, which must agree."""
    found = set()
    for engine in (
        "kang",
        "duckdb",
        "oracle",
        *(("npj", "prj", "mway") if set(how) == {"on"} else ()),
    ):
        result = sj.join(r, s, engine=engine, **how)
        rows = zip(result.r_rows.tolist(), result.s_rows.tolist(), strict=True)
        found.add(tuple(sorted(rows)))
    assert len(found) == 1
    return list(found.pop())


def test_texts_are_compared_to_the_last_character() -> None:
    r = {"k": np.array(["a\0", "b", "", "\0"], object)}
    s = {"k": np.array(["a", "b", "\0"], object)}
    assert pairs_of(r, s, on="k") == [(1, 1), (3, 2)]
    assert pairs_of(pa.table(r), pa.table(s), on="k") == [(1, 1), (3, 2)]


def test_one_long_text_does_not_make_all_texts_long() -> None:
    texts = np.array(["x" * 3_000_000, *map(str, range(100_000))], object)
    assert len(sj.join({"k": texts}, {"k": texts[:10]}, on="k")) == 10


def test_times_are_compared_in_one_unit() -> None:
    millis = pa.table({"k": pa.array([1000, 1], pa.timestamp("ms"))})
    micros = pa.table({"k": pa.array([1000, 1_000_000], pa.timestamp("us"))})
    assert pairs_of(millis, micros, on="k") == [(0, 1), (1, 0)]
    spans = pa.table({"k": pa.array([1000, 1], pa.duration("ms"))})
    with pytest.raises(sj.InputError, match="'k' is timestamp, s: 'k' is duration"):
        sj.join(millis, spans, on="k")
    far = pa.table({"k": pa.array([10**13], pa.timestamp("s"))})
    assert pairs_of(far, far, on="k") == [(0, 0)]
    with pytest.raises(sj.InputError, match="at row 0 is no timestamp that fits in nanoseconds"):
        sj.join(far, millis, on="k")


@pytest.mark.parametrize(
    ("column", "sentence"),
    [
        (np.array(["a", np.nan], object), "holds nan at row 1, which is no string"),
        (np.array([1, 2], object), "holds 1 at row 0, which is no string; give numbers as a"),
        (np.array([b"a"]), "'k' is binary, s: 'k' is string; both must be of one kind: cast the b"),
        ([[1, 2], [3]], "column 'k' is list<item: int64>; join columns are"),
        (5, "column 'k' must have one dimension, not 0"),
    ],
)
def test_a_column_that_holds_no_keys_is_refused(column: object, sentence: str) -> None:
    with pytest.raises(sj.InputError) as refused:
        sj.join({"k": column}, {"k": np.array(["a"])}, on="k")
    assert sentence in str(refused.value)


def test_byte_order_does_not_matter() -> None:
    big = {"k": np.array([16777220], ">f4")}
    little = {"k": np.array([16777216], "<f4")}
    assert pairs_of(big, little, band="k=k:0:3") == [(0, 0)]
    assert pairs_of({"k": np.array([7], ">i4")}, {"k": np.array([7], "<i4")}, on="k") == [(0, 0)]


def test_a_missing_real_number_matches_nothing() -> None:
    r = pa.table({"k": pa.array([1.0, None])})
    assert pairs_of(r, r, band="k=k:inf:inf") == [(0, 0)]
    masked = {"k": np.ma.array([1.0, 2.0], mask=[0, 1])}
    assert pairs_of(masked, masked, band="k=k:inf:inf") == [(0, 0)]


@pytest.mark.parametrize(
    "keys",
    [
        pa.array([0, None, 7], pa.int32()),
        pa.array([0, None, 7], pa.uint64()),
        pa.array(["", None, "7"]),
        pa.array([0, None, 7], pa.timestamp("us")),
        pa.array([0, None, 7], pa.duration("s")),
        pa.array([0, None, 7], pa.date32()),
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array(["", None, "7"])),
        pa.DictionaryArray.from_arrays(pa.array([0, None, 1]), pa.array([0, 7])),
        np.ma.array([0, 0, 7], mask=[0, 1, 0]),
        np.array(["", None, "7"], object),
        np.array([0, "NaT", 7], "M8[us]"),
    ],
    ids=lambda keys: str(getattr(keys, "type", getattr(keys, "dtype", ""))),
)
def test_a_null_matches_nothing_not_even_a_null(keys: object) -> None:
    given = {"k": keys} if isinstance(keys, np.ndarray) else pa.table({"k": keys})
    assert pairs_of(given, given, on="k") == [(0, 0), (2, 2)]


def test_a_null_takes_its_place_in_a_count_window() -> None:
    r = pa.table({"k": pa.array([1, None], pa.int32()), "ts": [0, 1]})
    s = pa.table({"k": pa.array([1], pa.int32()), "ts": [2]})
    assert pairs_of(r, s, on="k", window="count:2") == [(0, 0)]
    assert pairs_of(r, s, on="k", window="count:1") == []


def test_one_null_in_a_conjunction_is_enough() -> None:
    r = pa.table({"a": pa.array([1, None, 3]), "b": pa.array([1.0, 1.0, None])})
    assert pairs_of(r, r, on="a", band="b=b:inf:inf") == [(0, 0)]
    assert pairs_of(r, r, band=["b=b:inf:inf", "a=a:9:9"]) == [(0, 0)]


def test_a_column_of_nothing_but_nulls_joins_with_any_type() -> None:
    nothing = pa.table({"k": pa.nulls(2)})
    for keys in (pa.array(["a"]), pa.array([1]), pa.array([0], pa.timestamp("s"))):
        other = pa.table({"k": keys})
        assert pairs_of(nothing, other, on="k") == pairs_of(other, nothing, on="k") == []
    reals = pa.table({"k": pa.array([0.0])})
    assert pairs_of(nothing, reals, band="k=k:inf:inf") == []
    assert pairs_of(nothing, nothing, on="k") == []


def test_texts_in_views_and_categories_are_texts() -> None:
    texts = pa.array(["a", None, "b"], pa.string_view())
    plain = pa.table({"k": pa.array(["b", "a"])})
    viewed = pa.table({"k": texts})
    indices = pa.array([0, 2, 1], pa.uint32())
    coded = pa.table({"k": pa.DictionaryArray.from_arrays(indices, texts)})
    assert pairs_of(viewed, plain, on="k") == [(0, 1), (2, 0)]
    assert pairs_of(coded, plain, on="k") == [(0, 1), (1, 0)]


def test_data_frames_of_polars_join_on_text_and_categories() -> None:
    r = pl.DataFrame({"k": ["a", None, "b"]})
    s = pl.DataFrame({"k": ["b", "a"]})
    assert pairs_of(r, s, on="k") == [(0, 1), (2, 0)]
    coded = r.with_columns(pl.col("k").cast(pl.Categorical))
    assert pairs_of(coded, s, on="k") == [(0, 1), (2, 0)]


@pytest.mark.parametrize(
    "ts", [np.ma.array([5, 6, 7], mask=[0, 1, 0]), np.array([5, "NaT", 7], "M8[us]")]
)
def test_a_missing_arrival_time_is_refused_with_its_row(ts: object) -> None:
    keys = np.array([1, 2, 3])
    with pytest.raises(sj.InputError, match="r: ts has no value at row 1: remove such rows"):
        sj.join({"k": keys, "ts": ts}, {"k": keys}, on="k")


def test_dates_join_with_dates_and_instants() -> None:
    dates = pa.table({"k": pa.array([0, 1], pa.date32())})
    instants = pa.table({"k": pa.array([86400, 5], pa.timestamp("s"))})
    assert pairs_of(dates, instants, on="k") == [(1, 0)]


def test_nanoseconds_of_arrival_are_cut_off() -> None:
    r = pa.table({"k": [1, 2], "ts": pa.array([1500, 2999], pa.timestamp("ns"))})
    assert as_streams(r, r, ON_K)[0].ts.tolist() == [1, 2]
    late = pa.table({"k": [1], "ts": pa.array([2**60], pa.timestamp("s"))})
    with pytest.raises(sj.InputError, match="ts at row 0 is beyond 2"):
        sj.join(late, late, on="k")


def test_widths_beyond_real_numbers_are_infinite() -> None:
    r = {"k": np.array([1.5, -1e38], np.float32)}
    for width in ("1" + "0" * 320, "1e300"):
        assert len(pairs_of(r, r, band=f"k=k:{width}:{width}")) == 4
    whole = {"k": np.array([1, -5], np.int64)}
    assert len(pairs_of(whole, whole, band=f"k=k:{2**127}:{2**127}")) == 4
    assert pairs_of(whole, whole, band=f"k=k:-{2**127}:{2**127}") == []


def test_table_never_loses_a_column() -> None:
    r = pa.table({"k": [1], "k_r": [2], "k_s": [3]})
    s = pa.table({"k": [1]})
    found = sj.join(r, s, on="k")
    with pytest.raises(sj.InputError, match="two columns would be called 'k_r': choose other"):
        found.table()
    assert found.table(r_suffix="_left", s_suffix="_right").column_names == [
        "k_left",
        "k_r",
        "k_s",
        "k_right",
    ]


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ({"window": 2}, "window must be a window such as sj.CountWindow(2) or a string, not 2"),
        ({"order": "foo"}, "order must be one of none, outer, inner, not 'foo'"),
        ({"threads": "2"}, "threads must be an integer from 1 to 1024, not '2'"),
        ({"threads": 10**9}, "threads must be an integer from 1 to 1024, not 1000000000"),
        ({"threads": 1.5}, "threads must be an integer from 1 to 1024, not 1.5"),
        ({"speedup": "2"}, "speedup must be a number above 0, not '2'"),
        ({"arrival": "later"}, "arrival must be one of instant, replay, not 'later'"),
        ({"on": 1}, "on must be a string or a list of strings, for example 'rk=sk', not 1"),
        ({"knobs": ["batch"]}, "knobs must be a mapping of names to values, not ['batch']"),
        ({"engine": "fpga-handshake", "on": "k,k,k,k,k"}, "takes at most 4 terms, not 5"),
        ({"engine": "fpga-handshake", "window": "count:1,900"}, "count:1,900 is too uneven: "),
    ],
)
def test_a_wrong_argument_is_refused_in_a_sentence(how: dict[str, object], sentence: str) -> None:
    r = {"k": np.array([1])}
    with pytest.raises(sj.StreamJoinError) as refused:
        sj.join(r, r, **{"on": "k", **how})  # type: ignore[arg-type]
    assert sentence in str(refused.value)


def test_auto_keeps_to_the_order_that_is_asked_for() -> None:
    r = {"k": np.array([1, 1])}
    assert sj.join(r, r, on="k", order="inner").metrics["engine"] == "kang"


def test_integers_of_a_list_or_series_stay_integers_where_one_is_missing() -> None:
    big = 2**53 + 1  # no floating-point number
    for keys in ([big, None], pl.Series([big, None]), pa.array([big, None])):
        result = sj.join({"k": keys}, {"k": np.array([big - 1, big])}, on="k")
        assert result.table("r.k,s.k").to_pylist() == [{"k_r": big, "k_s": big}]


def test_a_list_of_numbers_and_strings_is_refused() -> None:
    with pytest.raises(sj.InputError, match="r: column 'k' holds 1 at row 0, which is no string"):
        sj.join({"k": [1, "1"]}, {"k": ["1"]}, on="k")


def test_times_of_lists_and_series_are_times() -> None:
    day = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
    s = {"k": [1], "ts": pd.Series([day])}
    result = sj.join({"k": [1], "ts": [day]}, s, on="k", window="time:1s")
    assert result.table("r.ts")["ts"].to_pylist() == [day]


@pytest.mark.parametrize("names", [["a"], np.array(["a"]), np.arange(3)])
def test_a_column_of_another_length_is_refused_though_nothing_is_joined_on_it(names: Any) -> None:
    with pytest.raises(InputError, match=r"column 'name' has \d rows and the join columns 2"):
        sj.join({"k": [2, 1], "name": names}, {"k": [1, 1, 3]}, on="k")
