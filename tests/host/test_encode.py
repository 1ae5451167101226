"""Codes compare as the values they stand for: on every type, at every end."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.host import cases
from tests.host.cases import EDGE_FLOATS

from streamjoin import oracle
from streamjoin.engines.encode import encode_intervals, encode_keys, encode_offsets, float32_codes
from streamjoin.tuples import Stream
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import AllWindow

WHOLE = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
REAL = ["float32", "float64", "float16"]


def stream(column: NDArray[Any], source: str) -> Stream:
    return Stream({"c": column}, np.zeros(len(column), np.int64), source)


def matched(r: NDArray[Any], s: NDArray[Any], predicate: Predicate) -> set[tuple[int, int]]:
    codes = encode_intervals(stream(r, "r"), stream(s, "s"), predicate)
    hit = (codes.s_lo[0][None, :] <= codes.r[0][:, None]) & (
        codes.r[0][:, None] <= codes.s_hi[0][None, :]
    )
    assert np.array_equal(by_offsets(stream(r, "r"), stream(s, "s"), predicate), hit)
    return {(int(i), int(j)) for i, j in zip(*np.nonzero(hit), strict=True)}


def by_offsets(r: Stream, s: Stream, predicate: Predicate) -> NDArray[np.bool_]:
    codes = encode_offsets(r, s, predicate, padding=3)
    assert all(
        part.shape[1] == rows + 3
        for part, rows in zip(codes, (r.rows, s.rows, s.rows), strict=True)
    )
    r_codes, s_lo, s_width = (part[:, :-3, None] for part in codes)
    away = r_codes - np.swapaxes(s_lo, 1, 2)
    return np.asarray((away <= np.swapaxes(s_width, 1, 2)).all(axis=0))


def right(r: NDArray[Any], s: NDArray[Any], predicate: Predicate) -> set[tuple[int, int]]:
    found = oracle.join(stream(r, "r"), stream(s, "s"), predicate, AllWindow())
    return set(zip(found.r_rows.tolist(), found.s_rows.tolist(), strict=True))


def edges(dtype: str) -> NDArray[Any]:
    if dtype in REAL:
        with np.errstate(over="ignore"):
            return np.array(EDGE_FLOATS).astype(dtype)
    info = np.iinfo(dtype)
    low, high = int(info.min), int(info.max)
    values = [low, low + 1, low // 2, 0, 1, 2, 7, high // 2, high - 1, high]
    return np.array(sorted(set(values)), dtype=dtype)


WHOLE_WIDTHS = ["0:0", "1:2", "-1:3", "3:-1", "-5:-5", "2147483648:4294967296", f"{10**20}:1"]


@pytest.mark.filterwarnings("ignore:band .* is empty:streamjoin.InputWarning")
@pytest.mark.parametrize("lo_hi", [*WHOLE_WIDTHS, f"-{10**20}:5"])
@pytest.mark.parametrize("s_type", WHOLE)
@pytest.mark.parametrize("r_type", WHOLE)
def test_whole_bands_are_exact_at_the_ends(r_type: str, s_type: str, lo_hi: str) -> None:
    predicate = Predicate.parse(band=f"c=c:{lo_hi}")
    r, s = edges(r_type), edges(s_type)
    assert matched(r, s, predicate) == right(r, s, predicate)


@st.composite
def integers_and_missing(draw: st.DrawFn) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Integers of any type that lie near one another anywhere in its range."""
    limits = np.iinfo(draw(st.sampled_from(WHOLE)))
    base = draw(st.integers(int(limits.min), int(limits.max)))
    base = draw(st.sampled_from([base, int(limits.min), int(limits.max), 0]))
    span = draw(st.sampled_from([3, 1 << 20, (1 << 32) - 2, (1 << 32) - 1, 1 << 32, 1 << 40]))
    low, high = max(base - span, int(limits.min)), base
    near = st.integers(low, high) | st.sampled_from([low, high])
    rows = draw(st.lists(st.tuples(near, st.booleans()), max_size=8))
    values = np.array([value for value, _ in rows], dtype=limits.dtype)
    return values, np.array([missing for _, missing in rows], dtype=np.bool_)


WIDTHS = st.sampled_from([0, 1, 5, -3, 1 << 31, 1 << 32, (1 << 63) - 1, 1 << 63, 10**20])


HIGHEST = (1 << 32) - 1


@example(
    (np.array([0, HIGHEST, 5], np.uint32), np.array([False, False, True])),
    (np.array([HIGHEST], np.uint32), np.array([False])),
    0,
    0,
    True,
)
@pytest.mark.filterwarnings("ignore:band .* is empty:streamjoin.InputWarning")
@settings(max_examples=300)
@given(integers_and_missing(), integers_and_missing(), WIDTHS, WIDTHS, st.booleans())
def test_integer_bands_are_exact_wherever_values_lie(
    r: tuple[NDArray[Any], NDArray[np.bool_]],
    s: tuple[NDArray[Any], NDArray[np.bool_]],
    lo: int,
    hi: int,
    with_missing: bool,
) -> None:
    (r_values, r_missing), (s_values, s_missing) = r, s
    if not with_missing:
        r_missing, s_missing = np.zeros_like(r_missing), np.zeros_like(s_missing)
    sides = [
        replace(stream(values, "x"), missing=missing if with_missing else None)
        for values, missing in ((r_values, r_missing), (s_values, s_missing))
    ]
    codes = encode_intervals(sides[0], sides[1], Predicate.parse(band=f"c=c:{lo}:{hi}"))
    hits = (codes.s_lo[0] <= codes.r[0][:, None]) & (codes.r[0][:, None] <= codes.s_hi[0])
    right = [
        [
            x - lo <= y <= x + hi and not y_missing and not x_missing
            for x, x_missing in zip(s_values.tolist(), s_missing, strict=True)
        ]
        for y, y_missing in zip(r_values.tolist(), r_missing, strict=True)
    ]
    assert hits.tolist() == right


@pytest.mark.filterwarnings("ignore:band .* is empty:streamjoin.InputWarning")
@pytest.mark.parametrize(
    "lo_hi", ["0:0", "1:2.5", "-1:3", "1e-45:1e38", "inf:inf", "-inf:1", "1e40:0"]
)
@pytest.mark.parametrize("s_type", REAL)
@pytest.mark.parametrize("r_type", REAL)
def test_real_bands_are_exact_at_the_ends(r_type: str, s_type: str, lo_hi: str) -> None:
    predicate = Predicate.parse(band=f"c=c:{lo_hi}")
    r, s = edges(r_type), edges(s_type)
    with np.errstate(over="ignore"):
        assert matched(r, s, predicate) == right(r, s, predicate)


@pytest.mark.parametrize("s_type", WHOLE)
@pytest.mark.parametrize("r_type", WHOLE)
def test_equal_keys_of_any_width_meet(r_type: str, s_type: str) -> None:
    predicate = Predicate.parse(on="c")
    r, s = edges(r_type), edges(s_type)
    plain = {(i, j) for i, x in enumerate(r) for j, y in enumerate(s) if int(x) == int(y)}
    assert matched(r, s, predicate) == plain
    r_keys, s_keys = encode_keys(stream(r, "r"), stream(s, "s"), predicate)
    assert {(i, j) for i, x in enumerate(r_keys) for j, y in enumerate(s_keys) if x == y} == plain


@settings(deadline=None)
@given(
    r=st.lists(st.tuples(st.integers(-2, 2), st.sampled_from("ab")), max_size=12),
    s=st.lists(st.tuples(st.integers(-2, 2), st.sampled_from("abc")), max_size=12),
)
def test_keys_of_several_columns_are_equal_together(
    r: list[tuple[int, str]], s: list[tuple[int, str]]
) -> None:
    streams = [
        Stream(
            {
                "k": np.array([k for k, _ in rows], np.int32),
                "t": np.array([t for _, t in rows], np.str_),
            },
            np.zeros(len(rows), np.int64),
            name,
        )
        for name, rows in (("r", r), ("s", s))
    ]
    r_keys, s_keys = encode_keys(*streams, Predicate.parse(on="k,t"))
    for i, left in enumerate(r):
        for j, other in enumerate(s):
            assert (r_keys[i] == s_keys[j]) == (left == other)


@given(st.lists(st.floats(width=32, allow_nan=False), min_size=2, max_size=50))
def test_float_codes_keep_the_order(values: list[float]) -> None:
    column = np.array(values, np.float32)
    codes = float32_codes(column)
    for i in range(len(values) - 1):
        assert (column[i] < column[i + 1]) == (codes[i] < codes[i + 1])
        assert (column[i] == column[i + 1]) == (codes[i] == codes[i + 1])


@settings(deadline=None)
@given(streams=cases.random_streams(), name=st.sampled_from(sorted(cases.PREDICATES)))
def test_offsets_say_the_same_as_intervals_of_several_terms_and_missing_values(
    streams: tuple[Stream, Stream], name: str
) -> None:
    predicate = cases.PREDICATES[name]
    intervals = encode_intervals(*streams, predicate)
    inside = np.ones((streams[0].rows, streams[1].rows), dtype=np.bool_)
    for r, lo, hi in zip(*intervals.__dict__.values(), strict=True):
        inside &= (r[:, None] >= lo) & (r[:, None] <= hi)
    assert np.array_equal(by_offsets(*streams, predicate), inside)
