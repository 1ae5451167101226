"""Keys of every type, against Python's own comparison of the values."""

import datetime as dt
import itertools
import math
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamjoin as sj
from streamjoin.inputs import decimals
from streamjoin_common.language.predicates import Predicate

Values = list[Any]
Make = Callable[[Values], Any]

NAN = float("nan")
FLOATS = [0.0, -0.0, 1.0, 1.5, -2.0, 0.1, math.inf, -math.inf, NAN, 2.0**53, 5e-324]
SINGLES = [0.0, -0.0, 1.0, 1.5, -2.0, float(np.float32(0.1)), math.inf, NAN, 2.0**53]
INTEGERS = [0, 1, -2, 2, 15, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]
NATURALS = [0, 1, 2, 2**53, 2**63, 2**64 - 1]
CENTS = [Decimal(each) for each in ("0", "1", "1.50", "-2", "15", "0.10", "92233720368547758.07")]
MILLS = [Decimal(each) for each in ("0", "1.500", "-2", "0.001", "0.1", "9223372036854775.807")]
WIDE = [Decimal(each) for each in ("1.5", "-2", "1e20", "9007199254740993", "18446744073709551615")]
BYTES = [b"", b"a", b"a\0", b"\xff\xfe", b"ab"]
TEXTS = ["", "a", "b", "a\0"]
DAYS = [dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(1969, 12, 31), dt.date(2100, 1, 1)]
TIMES = [dt.datetime(1970, 1, 1), dt.datetime(2024, 2, 29), dt.datetime(2024, 2, 29, 0, 0, 1)]


def arrow(kind: Any) -> Make:
    return lambda values: pa.table({"k": pa.array(values, kind)})


def encoded(kind: Any) -> Make:
    return lambda values: pa.table({"k": pa.array(values, kind).dictionary_encode()})


def listed(values: Values) -> Any:
    return {"k": values}


def numbers(kind: Any) -> Make:
    def make(values: Values) -> Any:
        missing = [value is None for value in values]
        held = np.array([0 if value is None else value for value in values], kind)
        return {"k": np.ma.masked_array(held, missing)}

    return make


def related(kind: Any) -> Make:
    return lambda values: duckdb.connect().from_arrow(arrow(kind)(values)).to_arrow_table()


COLUMNS: dict[str, list[tuple[Values, Make]]] = {
    "bool": [
        ([True, False], listed),
        ([True, False], numbers(bool)),
        ([True, False], lambda values: pl.DataFrame({"k": pl.Series(values, dtype=pl.Boolean)})),
        ([True, False], lambda values: pd.DataFrame({"k": pd.array(values, "boolean")})),
    ],
    "number": [
        (FLOATS, arrow(pa.float64())),
        (FLOATS, numbers(np.float64)),
        (SINGLES, arrow(pa.float32())),
        (SINGLES, lambda values: pl.DataFrame({"k": pl.Series(values, dtype=pl.Float32)})),
        (INTEGERS, arrow(pa.int64())),
        (INTEGERS, encoded(pa.int64())),
        (NATURALS, numbers(np.uint64)),
        (INTEGERS[:5], lambda values: pd.DataFrame({"k": pd.array(values, "Int16")})),
    ],
    "decimal": [
        (CENTS, arrow(pa.decimal128(19, 2))),
        (CENTS[:-1], arrow(pa.decimal32(9, 2))),
        (MILLS[:-1], arrow(pa.decimal64(18, 3))),
        (MILLS, lambda values: pl.DataFrame({"k": pl.Series(values, dtype=pl.Decimal(38, 3))})),
        (WIDE, arrow(pa.decimal256(76, 4))),
        (WIDE, encoded(pa.decimal128(38, 1))),
        ([*CENTS, *WIDE], listed),
        (INTEGERS, arrow(pa.int64())),
        (NATURALS, arrow(pa.uint64())),
        (INTEGERS[:5], numbers(np.int8)),
    ],
    "binary": [
        (BYTES, listed),
        (BYTES, arrow(pa.binary())),
        (BYTES, arrow(pa.large_binary())),
        (BYTES, arrow(pa.binary_view())),
        (BYTES, encoded(pa.binary())),
        ([b"ab", b"a\0"], arrow(pa.binary(2))),
        (BYTES, lambda values: {"k": np.array([*values, None], object)[:-1]}),
    ],
    "string": [
        (TEXTS, listed),
        (TEXTS[:3], lambda values: pd.DataFrame({"k": pd.Categorical(values)})),
        (TEXTS[:3], lambda values: {"k": pd.Series(pd.Categorical(values))}),
        (TEXTS, lambda values: pl.DataFrame({"k": pl.Series(values, dtype=pl.Enum(TEXTS))})),
        (TEXTS, encoded(pa.string())),
    ],
    "time": [
        (TIMES, listed),
        (TIMES, arrow(pa.timestamp("s"))),
        (TIMES, arrow(pa.timestamp("ns", "Europe/Berlin"))),
        (TIMES, numbers("M8[ms]")),
        (DAYS, arrow(pa.date32())),
        (DAYS, arrow(pa.date64())),
        (DAYS, related(pa.date32())),
    ],
}


@st.composite
def sides(draw: st.DrawFn) -> list[tuple[Values, Any]]:
    columns = COLUMNS[draw(st.sampled_from(sorted(COLUMNS)))]
    made = []
    for _ in range(2):
        domain, make = draw(st.sampled_from(columns))
        values = draw(st.lists(st.sampled_from([*domain, None]), max_size=12))
        made.append((values, make(values)))
    return made


def is_equal(one: Any, other: Any) -> bool:
    """Say whether two values are equal; a date is its midnight, NaN and None are equal to none."""
    if one is None or other is None:
        return False
    one, other = (
        dt.datetime.combine(each, dt.time()) if type(each) is dt.date else each
        for each in (one, other)
    )
    return bool(one == other)


def matches(r: Values, s: Values, holds: Callable[[Any, Any], bool]) -> list[tuple[int, int]]:
    return [(i, j) for i, one in enumerate(r) for j, other in enumerate(s) if holds(one, other)]


def rows(result: Any) -> list[tuple[int, int]]:
    return sorted(zip(result.r_rows.tolist(), result.s_rows.tolist(), strict=True))


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_live_join_compares_whole_numbers_with_decimals(order: tuple[int, int]) -> None:
    keys = [
        pa.table({"k": pa.array([Decimal("1.00"), Decimal("2.50")], pa.decimal128(19, 2))}),
        pa.table({"k": pa.array([100, 1, 250, 2])}),
    ]
    with sj.StreamJoiner(on="k", window="all") as joiner:
        joiner.push_r(keys[order[0]])
        joiner.push_s(keys[order[1]])
        joiner.end()
        met = [rows(each) for each in joiner.results()]
    assert met == [[(0, 1) if order[0] == 0 else (1, 0)]]


@settings(max_examples=25, deadline=None)
@given(both=sides(), engine=st.sampled_from(["npj", "prj", "mpass", "oracle", "duckdb", "kang"]))
def test_keys_of_every_type_are_equal_as_in_python(
    both: list[tuple[Values, Any]], engine: str
) -> None:
    (r_values, r), (s_values, s) = both
    expected = matches(r_values, s_values, is_equal)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sj.InputWarning)
        assert rows(sj.join(r, s, on="k", engine=engine)) == expected
        met = {row for row, _ in expected}
        alone = [(row, -1) for row in range(len(r_values)) if row not in met]
        anti = sj.join(r, s, on="k", engine=engine, how="anti")
        assert rows(anti) == alone
        with sj.StreamJoiner(on="k", window="all") as joiner:
            joiner.push_r(r)
            joiner.push_s(s)
            joiner.end()
            live = [rows(each) for each in joiner.results()]
        assert sorted(itertools.chain(*live)) == expected


EPOCH = dt.datetime(1970, 1, 1)
SPAN = st.integers(-4, 4)


@pytest.mark.filterwarnings("ignore:band .* is empty:streamjoin.InputWarning")
@settings(max_examples=25, deadline=None)
@given(
    r=st.lists(st.one_of(st.none(), SPAN), max_size=9),
    s=st.lists(st.one_of(st.none(), SPAN), max_size=9),
    kind=st.sampled_from(["timestamp", "duration", "date"]),
    units=st.tuples(*[st.sampled_from(["s", "ms", "us", "ns"])] * 2),
    lo=SPAN,
    hi=SPAN,
    engine=st.sampled_from(["ibwj-im", "kang", "oracle", "duckdb"]),
)
def test_bands_on_times_count_durations_and_units(
    r: Values, s: Values, kind: str, units: tuple[str, str], lo: int, hi: int, engine: str
) -> None:
    tables = []
    for values, unit in zip((r, s), units, strict=True):
        if kind == "date":
            tables.append(pa.table({"t": pa.array(values, pa.int32()).cast(pa.date32())}))
            continue
        steps = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]
        scaled = pa.array([None if each is None else each * steps for each in values], pa.int64())
        tables.append(pa.table({"t": scaled.cast(getattr(pa, kind)(unit))}))
    expected = matches(
        r, s, lambda one, other: None not in {one, other} and other - lo <= one <= other + hi
    )
    unit = "d" if kind == "date" else "s"
    given_ = {"engine": engine, "window": "count:99"}
    assert rows(sj.join(*tables, band=f"t=t:{lo}{unit}:{hi}{unit}", **given_)) == expected
    if kind == "date":
        assert rows(sj.join(*tables, band=f"t=t:{lo}:{hi}", **given_)) == expected
    elif units[0] != units[1] and {*r} - {None} and {*s} - {None}:
        with pytest.raises(sj.InputError, match="write the widths as durations, such as 5s"):
            sj.join(*tables, band="t=t:1:1", **given_)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".arrow"])
def test_files_have_keys_of_every_type(suffix: str, tmp_path: Path) -> None:
    table = pa.table(
        {
            "flag": [True, False, True],
            "amount": [1.5, -0.0, 2.0],
            "day": pa.array([0, 1, 9], pa.int32()).cast(pa.date32()),
            "price": pa.array([Decimal("1.50"), Decimal("2.00"), None], pa.decimal128(9, 2)),
        }
    )
    path = tmp_path / f"r{suffix}"
    if suffix == ".parquet":
        pq.write_table(table, path)
    elif suffix == ".csv":
        pv.write_csv(table, path)
    else:
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    assert len(sj.join(path, path, on="flag")) == 5
    assert rows(sj.join(path, path, on="flag,amount")) == [(0, 0), (1, 1), (2, 2)]
    assert len(sj.join(path, path, band="day=day within 1d")) == 5
    assert rows(sj.join(path, path, on="price")) == [(0, 0), (1, 1)]


REFUSED = [
    ([True], [1], {"on": "k"}, "cast the bool column to int8"),
    (["a"], [b"a"], {"on": "k"}, "cast the binary column to string"),
    ([Decimal(1)], [1.0], {"on": "k"}, "cast one column to the other's type"),
    ([1], ["1"], {"on": "k"}, "cast one of them to the other's type"),
    ([Decimal(1)], [Decimal(1)], {"band": "k=k:1:1"}, "cast it to double, or to an integer"),
    ([1], [1], {"band": "k=k within 5s"}, "write the widths without a unit"),
    (TIMES, TIMES, {"band": "k=k within 0.5"}, "must be durations such as 5s"),
    (TIMES, TIMES, {"band": "k=k:5s:5"}, "has no unit and the other width has one"),
    (TIMES, TIMES, {"band": "k=k within 0.1ns"}, "an integer number of nanoseconds"),
    ([2**63 + 1, -1], [1], {"on": "k"}, "holds 9223372036854775809 at row 0, which"),
    ([0.5, 2**53 + 1], [1], {"on": "k"}, "holds 9007199254740993 at row 1, which the other num"),
    (np.array([1], "m8[M]"), [dt.timedelta(1)], {"on": "k"}, "give days or a finer unit"),
    (np.zeros(1, [("scale", "i8")]), [1], {"on": "k"}, "join columns are numbers, strings, bytes"),
    (pa.array([5]).view(pa.date64()), DAYS, {"on": "k"}, "holds times of day: cast it to a times"),
    ([dt.time()], [dt.time()], {"on": "k"}, "join columns are numbers, strings, bytes, bools"),
]


@pytest.mark.parametrize(("r", "s", "how", "sentence"), REFUSED)
def test_types_that_do_not_compare_are_refused(
    r: Values, s: Values, how: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(sj.InputError, match=sentence):
        sj.join({"k": r}, {"k": s}, **how)


def test_large_integers_of_a_list_are_not_rounded() -> None:
    large = [2**63, 1, 2**53 + 1]
    assert rows(sj.join({"k": large}, {"k": [2**63 + 1, 2**53, 1]}, on="k")) == [(1, 2)]
    assert rows(sj.join({"k": (*large, True)}, {"k": [0.5, 2**63]}, on="k")) == [(0, 1)]
    with pytest.raises(
        sj.InputError, match="holds 2361183241434822606848, which does not fit into 64"
    ):
        sj.join({"k": [1, 2**71]}, {"k": [1]}, on="k")
    held = sj.join({"k": [2**64 - 1, None, 1]}, {"k": [2**64 - 1]}, on="k").table(["r.k"])
    assert held.column(0).to_pylist() == [2**64 - 1]


def test_integers_that_pandas_made_floating_point_get_a_hint() -> None:
    holed = pd.DataFrame({"k": [1, None, 3]})
    assert len(sj.join(holed, {"k": [3, 1]}, on="k")) == 2  # no digit can be lost: no warning
    holed = pd.DataFrame({"k": [1, None, 3, 2**53 + 1]})
    with pytest.warns(sj.InputWarning, match=r'pass .astype\({\'k\': "Int64"}\)'):
        assert rows(sj.join(holed, {"k": [3, 1]}, on="k")) == [(0, 1), (2, 0)]
    whole = holed.astype({"k": "Int64"})
    assert rows(sj.join(whole, {"k": [3, 1]}, on="k")) == [(0, 1), (2, 0)]


def test_a_column_of_two_types_is_refused_and_times_agree_on_nanoseconds() -> None:
    s = {"a": [Decimal("1.0"), Decimal("2.5")]}
    with pytest.raises(sj.InputError, match="'a' is compared with columns of several types"):
        sj.join({"x": [1], "y": [Decimal("1.00")]}, s, on="x=a,y=a")
    seconds, millis = np.array([1], "M8[s]"), np.array([1000], "M8[ms]")
    both = {"x": seconds, "y": millis}
    assert len(sj.join(both, {"a": seconds}, on="x=a,y=a")) == 1
    nothing = {"k": [None], "t": [None]}
    assert not len(sj.join(nothing, nothing, on="t=k", band="t=t within 5s"))


def test_live_batches_may_have_decimals_of_different_scales() -> None:
    with sj.StreamJoiner(on="k") as joiner:
        joiner.push_r({"k": [Decimal("1.5"), Decimal(2)]})
        joiner.push_r({"k": [Decimal("2.25"), Decimal("1e20")]})
        joiner.push_s({"k": [Decimal("1.500"), 10**20 + Decimal("0.0")]})
        joiner.push_s({"k": [Decimal("2.250")]})
        joiner.end()
        assert sorted(itertools.chain(*(rows(each) for each in joiner.results()))) == [
            (0, 0),
            (2, 2),
            (3, 1),
        ]


@settings(max_examples=60, deadline=None)
@given(
    value=st.integers(-(10**60), 10**60),
    scales=st.tuples(st.integers(-3, 20), st.integers(-3, 20)),
    wide=st.tuples(st.booleans(), st.booleans()),
)
def test_decimals_are_rescaled_exactly_or_not_at_all(
    value: int, scales: tuple[int, int], wide: tuple[bool, bool]
) -> None:
    if not wide[0]:
        value %= 1 << 62
    held = pa.chunked_array([pa.array([Decimal(value)], pa.decimal256(76, 0))])
    digits = decimals.digits(decimals.decimals_of_arrow(held, None)).reshape(1, -1)
    own = decimals.decimal_type(scales[0], is_wide=digits.shape[1] == 4)
    target = decimals.decimal_type(scales[1], is_wide=wide[1])
    scaled, lost = decimals.rescaled(np.ascontiguousarray(digits).view(own).reshape(1), target)
    right, rest = divmod(value * 10 ** max(0, scales[1] - scales[0]),
                         10 ** max(0, scales[0] - scales[1]))  # fmt: skip
    fits = not rest and -(1 << (255 if wide[1] else 63)) < right < 1 << (255 if wide[1] else 63)
    assert bool(lost[0]) == (not fits)
    if fits:
        bits = decimals.digits(scaled).tobytes()
        assert int.from_bytes(bits, "little", signed=True) == right


def test_band_widths_are_read_back_as_they_are_written() -> None:
    for text in ("t=u:5s:1500ms", "t=u:-250ns:1us", "t=u:7h:0s"):
        assert Predicate.parse(band=text).text == text
        again = Predicate.parse(band=Predicate.parse(band=text).text)
        assert again == Predicate.parse(band=text)
    assert Predicate.parse(band="a=b within 3").text == "a=b:3:3"
