"""Words of a live join's values: each pair of edge values under widths of any size."""

import itertools
from typing import Any

import numpy as np
import pytest

from streamjoin.engines.sliding.flat.words import EqualWords, RealBandWords, WholeBandWords, Words
from streamjoin_common.language.predicates import Band

WIDTHS = [0, 1, -1, 1 << 62, -(1 << 62), (1 << 63) - 1, 1 << 63, -(1 << 63), (1 << 64) - 1]
WIDTHS += [1 - (1 << 64), 1 << 64, -(1 << 64), 10**30, -(10**30)]
WHOLE = ["int64", "uint64", "int8"]
REAL_WIDTHS = [0.0, 1.0, -1.0, 0.1, 5e-324, 1e-320, 1e300, 1.7e308, np.inf, -np.inf]


def edges(dtype: str) -> Any:
    """Integers at the ends of a type, and in its middle."""
    ends = np.iinfo(dtype)
    near = {ends.min, ends.min + 1, ends.max - 1, ends.max, ends.max // 2, ends.max // 2 + 1, 0, 1}
    return np.array(sorted(near | ({-1, -2} if ends.min else set())), dtype=dtype)


def written(words: Words, side: int, column: Any) -> tuple[Any, Any, Any, Any]:
    """Return words, both ends of what they meet, and which meet none."""
    held, lows, highs = (np.zeros(len(column) + 3, dtype=np.int64) for _ in range(3))
    lost = words.write(side, column, (held, lows, highs), 3)
    none = np.zeros(len(column), dtype=bool) if lost is None else lost
    return held[3:], lows[3:], highs[3:], none


def met(words: Words, r: Any, s: Any) -> tuple[Any, Any]:
    """Return which tuples of R those of S meet, and the other way, shape (r, s)."""
    r_words, r_lows, r_highs, r_lost = written(words, 0, r)
    s_words, s_lows, s_highs, s_lost = written(words, 1, s)
    some = ~r_lost[:, None] & ~s_lost
    by_s = (s_lows <= r_words[:, None]) & (r_words[:, None] <= s_highs) & some
    by_r = (r_lows[:, None] <= s_words) & (s_words <= r_highs[:, None]) & some
    return by_s, by_r


@pytest.mark.parametrize("types", list(itertools.product(WHOLE, WHOLE)))
def test_bands_of_integers_never_wrap(types: tuple[str, str]) -> None:
    r, s = (edges(dtype) for dtype in types)
    for lo, hi in itertools.product(WIDTHS, WIDTHS):
        words = WholeBandWords(Band("x", "x", lo, hi), r.dtype, s.dtype)
        right = [[b - lo <= a <= b + hi for b in s.tolist()] for a in r.tolist()]
        for by in met(words, r, s):
            assert by.tolist() == right, (lo, hi)


@pytest.mark.parametrize("types", list(itertools.product(WHOLE, WHOLE)))
def test_integers_are_equal_where_their_numbers_are(types: tuple[str, str]) -> None:
    r, s = (edges(dtype) for dtype in types)
    right = [[a == b for b in s.tolist()] for a in r.tolist()]
    for by in met(EqualWords(r.dtype, s.dtype), r, s):
        assert by.tolist() == right


@pytest.mark.parametrize("types", [("f8", "f8"), ("f4", "f4"), ("f4", "f8"), ("f8", "f4")])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_bands_of_floating_point_numbers_are_exact_for_s_and_miss_none_for_r(
    types: tuple[str, str],
) -> None:
    real: Any = np.float32 if types == ("f4", "f4") else np.float64
    tiny, top = np.finfo(real).smallest_subnormal, np.finfo(real).max
    edge = np.array([0.0, tiny, tiny * 3, 0.1, 0.3, 1.0, 1.0 / 3, 2.0**24, top, np.inf, np.nan])
    edge = np.concatenate([edge, -edge])
    for lo, hi in itertools.product(REAL_WIDTHS, REAL_WIDTHS):
        down, up = real(lo), real(hi)
        s = edge.astype(types[1])
        bounds = np.concatenate([s.astype(real) - down, s.astype(real) + up, s])
        near = [np.nextafter(bounds, real(np.inf)), np.nextafter(bounds, real(-np.inf))]
        r = np.concatenate([bounds, *near]).astype(types[0])
        a, b = r.astype(real)[:, None], s.astype(real)
        by_s, by_r = met(RealBandWords(Band("x", "x", lo, hi), r.dtype, s.dtype), r, s)
        right = (b - down <= a) & (a <= b + up)
        assert by_s.tolist() == right.tolist(), (lo, hi)
        assert not (right & ~by_r).any(), (lo, hi)


def test_floating_point_numbers_are_equal_where_their_bits_are_and_nan_to_none() -> None:
    r = np.array([0.0, -0.0, 0.1, np.inf, -np.inf])
    s = r.astype(np.float32)
    right = [[float(a) == float(b) for b in s] for a in r]
    for by in met(EqualWords(r.dtype, s.dtype), r, s):
        assert by.tolist() == right
