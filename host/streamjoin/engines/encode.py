"""Join columns as unsigned 32-bit codes that compare like the values they stand for.

Every term becomes an interval test on codes: ``lo <= r and r <= hi`` with ``lo``, ``hi``
computed once for each S tuple, so that kernels know one comparison and four bytes a key.
Integers of up to 32 bits are shifted, float32 is mapped by its order-preserving bit pattern;
wider and text columns are replaced by their rank among the values of R (a dictionary), which is
exact for any type. A tuple that lacks a value gets a code, or an interval, that meets none.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.tuples import Stream
from streamjoin_common.language.predicates import Band, Equi, Predicate

Codes = NDArray[np.uint32]
Values = NDArray[Any]
Missing = NDArray[np.bool_] | None

NEVER_LO, NEVER_HI = np.uint32(0xFFFFFFFF), np.uint32(0)
"""The interval that holds nothing."""


@dataclass(frozen=True)
class IntervalCodes:
    """Both sides of a predicate, a row for each term.

    Attributes
    ----------
    r : ndarray of uint32, shape (terms, r rows)
        Codes of R's columns.
    s_lo, s_hi : ndarray of uint32, shape (terms, s rows)
        The interval of codes that joins with each S tuple, both ends included.
    """

    r: Codes
    s_lo: Codes
    s_hi: Codes


class OffsetCodes(NamedTuple):
    """Both sides of a predicate for scans, a row for each term: ``r - s_lo <= s_width``.

    The subtraction wraps, as that of unsigned numbers does, so that one comparison tells what
    takes two with an interval's ends.

    Attributes
    ----------
    r : ndarray of uint32, shape (terms, r rows + padding)
        Codes of R's columns.
    s_lo, s_width : ndarray of uint32, shape (terms, s rows + padding)
        The interval of codes that joins with each S tuple: its lower end, and how far up it goes.
    """

    r: Codes
    s_lo: Codes
    s_width: Codes


def encode_offsets(r: Stream, s: Stream, predicate: Predicate, padding: int) -> OffsetCodes:
    """Encode a predicate of any terms for scans that read up to ``padding`` tuples too many."""
    codes = encode_intervals(r, s, predicate)
    behind = ((0, 0), (0, padding))
    r_codes, s_lo, s_hi = (np.pad(part, behind) for part in (codes.r, codes.s_lo, codes.s_hi))
    width = s_hi - s_lo
    # An offset cannot say "nothing": such a tuple asks for a code that R does not have.
    nothing = (s_lo > s_hi).any(axis=0)
    if nothing.any():
        s_lo[0, nothing], width[0, nothing] = _unused(codes.r[0]), 0
    return OffsetCodes(r_codes, s_lo, width)


def _unused(codes: Codes) -> np.uint32:
    """Return a code that does not occur: among one more than there are, one is free."""
    used = np.zeros(len(codes) + 1, dtype=np.bool_)
    used[codes[codes <= len(codes)]] = True
    return np.uint32(np.argmin(used))


def encode_intervals(r: Stream, s: Stream, predicate: Predicate) -> IntervalCodes:
    """Encode a predicate of any terms for engines that compare."""
    shape = len(predicate.terms)
    r_codes = np.empty((shape, r.rows), dtype=np.uint32)
    s_lo = np.empty((shape, s.rows), dtype=np.uint32)
    s_hi = np.empty((shape, s.rows), dtype=np.uint32)
    for place, term in enumerate(predicate.terms):
        r_column, s_column = r.column(term.r_column), s.column(term.s_column)
        if isinstance(term, Equi):
            r_codes[place], s_lo[place] = equi_codes(r_column, s_column, r.missing, s.missing)
            s_hi[place] = s_lo[place]
        elif r_column.dtype.kind == "f":
            if r.missing is not None:
                r_column = np.where(r.missing, r_column.dtype.type(np.nan), r_column)
            r_codes[place], s_lo[place], s_hi[place] = _band_real(r_column, s_column, term)
        else:
            by_rank = r.missing is not None
            codes = _band_whole(r_column, s_column, term, by_rank)
            r_codes[place], s_lo[place], s_hi[place] = codes
            if r.missing is not None:
                r_codes[place, r.missing] = NEVER_LO  # no rank is as high
    if s.missing is not None:
        s_lo[:, s.missing], s_hi[:, s.missing] = NEVER_LO, NEVER_HI
    return IntervalCodes(r_codes, s_lo, s_hi)


def encode_keys(r: Stream, s: Stream, predicate: Predicate) -> tuple[Codes, Codes]:
    """Encode a predicate of equi terms as one key column for engines that hash or sort.

    Returns
    -------
    r_keys, s_keys : ndarray of uint32
        Equal if and only if all terms' columns are.
    """
    pairs = [
        equi_codes(r.column(term.r_column), s.column(term.s_column), r.missing, s.missing)
        for term in predicate.terms
    ]
    r_keys, s_keys = pairs[0]
    for r_more, s_more in pairs[1:]:
        wide_r = r_keys.astype(np.uint64) << np.uint64(32) | r_more
        wide_s = s_keys.astype(np.uint64) << np.uint64(32) | s_more
        r_keys, s_keys = _ranks(wide_r, wide_s)
    return r_keys, s_keys


def encode_stream_keys(r: Stream, s: Stream, predicate: Predicate) -> tuple[Codes, Codes]:
    """As :func:`encode_keys`, for engines whose work depends on how often a key of S comes.

    S's tuples without a partner keep keys of their own; R's share one that S does not have.
    """
    terms = [Equi(term.s_column, term.r_column) for term in predicate.terms]
    s_keys, r_keys = encode_keys(s, r, Predicate(tuple(terms)))
    return r_keys, s_keys


def equi_codes(
    r: Values, s: Values, r_missing: Missing = None, s_missing: Missing = None
) -> tuple[Codes, Codes]:
    """Codes of two columns that are equal if and only if the values are, and are not missing."""
    if r_missing is not None or s_missing is not None:
        r_codes, s_codes = _ranks(*(_common_whole(r, s) if r.dtype != s.dtype else (r, s)))
        # Ranks and numbers of texts are below the number of rows of both sides.
        if r_missing is not None:
            r_codes[r_missing] = len(r) + len(s)
        if s_missing is not None:
            s_codes[s_missing] = NEVER_LO
        return r_codes, s_codes
    if r.dtype.kind in "iu" and r.dtype == s.dtype and r.dtype.itemsize <= 4:
        return _as_bits(r), _as_bits(s)
    if r.dtype.kind in "iu" and s.dtype.kind in "iu" and r.dtype != s.dtype:
        # uint64 against int64: negative values have no partner there, and numpy would round.
        r, s = _common_whole(r, s)
    return _ranks(r, s)


def _as_bits(column: Values) -> Codes:
    wide = column.astype(np.int32 if column.dtype.kind == "i" else np.uint32, copy=False)
    return np.asarray(wide.view(np.uint32))


def _common_whole(r: Values, s: Values) -> tuple[Values, Values]:
    if "u" in r.dtype.kind + s.dtype.kind and 8 in {r.dtype.itemsize, s.dtype.itemsize}:
        return r.astype(object), s.astype(object)
    return r.astype(np.int64), s.astype(np.int64)


def _ranks(r: Values, s: Values) -> tuple[Codes, Codes]:
    """Replace values by their rank among R's distinct ones; S values without partner stand out."""
    if r.dtype.kind == "O" and s.dtype.kind == "O" and find_spec("pyarrow"):
        return _text_codes(r, s)
    values, r_ranks = np.unique(r, return_inverse=True)
    places = np.searchsorted(values, s)
    if len(values):
        known = values[np.minimum(places, len(values) - 1)] == s
    else:
        known = np.zeros(len(s), dtype=np.bool_)
    s_ranks = np.where(known, places, NEVER_LO).astype(np.uint32)
    return r_ranks.astype(np.uint32), s_ranks


def _text_codes(r: Values, s: Values) -> tuple[Codes, Codes]:
    """Number texts, or whole numbers of any size, as they first occur: a hash, not a sort."""
    import pyarrow as pa

    both: Any
    try:
        both = pa.concat_arrays([pa.array(r), pa.array(s)])
    except (pa.ArrowException, OverflowError, UnicodeError):
        both = pa.array([repr(value) for column in (r, s) for value in column.tolist()])
    codes = both.dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.uint32)
    return codes[: len(r)], codes[len(r) :]


def _band_whole(r: Values, s: Values, term: Band, by_rank: bool) -> tuple[Codes, Codes, Codes]:
    if max(r.dtype.itemsize, s.dtype.itemsize) <= 4 and max(abs(term.lo), abs(term.hi)) < 1 << 40:
        low, high = s.astype(np.int64) - int(term.lo), s.astype(np.int64) + int(term.hi)
        if by_rank:
            return _rank_band(r, low, high)
        offset = int(np.iinfo(r.dtype).min) if r.dtype.kind == "i" else 0
        codes = (r.astype(np.int64) - offset).astype(np.uint32)
        limit = (1 << 32) - 1
        return codes, *_clamp(low - offset, high - offset, limit)
    # Python integers: 64-bit bounds must not wrap.
    exact = s.astype(object)
    return _rank_band(r, exact - int(term.lo), exact + int(term.hi))


def _clamp(low: NDArray[np.int64], high: NDArray[np.int64], limit: int) -> tuple[Codes, Codes]:
    """Cut an interval to 0..limit, keeping one that misses it empty."""
    nothing = (low > high) | (low > limit) | (high < 0)
    lo = np.where(nothing, NEVER_LO, np.clip(low, 0, limit)).astype(np.uint32)
    hi = np.where(nothing, NEVER_HI, np.clip(high, 0, limit)).astype(np.uint32)
    return lo, hi


def _band_real(r: Values, s: Values, term: Band) -> tuple[Codes, Codes, Codes]:
    single = r.dtype == s.dtype == np.float32
    real = np.dtype(np.float32 if single else np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        lo, hi = (np.asarray(width, real) for width in term.real_widths)
        low, high = s.astype(real) - lo, s.astype(real) + hi
    if not single:
        return _rank_band(r.astype(np.float64), low, high)
    nothing = np.isnan(low) | np.isnan(high)
    s_lo = np.where(nothing, NEVER_LO, float32_codes(low))
    s_hi = np.where(nothing, NEVER_HI, float32_codes(high))
    return float32_codes(r), s_lo, s_hi


def float32_codes(values: NDArray[np.float32]) -> Codes:
    """Map float32 to uint32 in the same order; -0 and +0 are one code, NaN is above all."""
    bits = (values + np.float32(0)).view(np.uint32)  # adding +0 turns -0 into +0
    negative = bits >> np.uint32(31) == 1
    codes = np.where(negative, ~bits, bits | np.uint32(0x80000000))
    return np.where(np.isnan(values), np.uint32(0xFFFFFFFF), codes)


def _rank_band(r: Values, low: Values, high: Values) -> tuple[Codes, Codes, Codes]:
    """Express bounds of any type as ranks among R's distinct values."""
    values, r_ranks = np.unique(r, return_inverse=True)
    if values.dtype.kind == "f":
        values = values[: len(values) - int(np.isnan(values).sum())]  # NaN sorts last, joins never
    if low.dtype.kind == "O":
        values = values.astype(object)
    first = np.searchsorted(values, low, side="left").astype(np.int64)
    last = np.searchsorted(values, high, side="right").astype(np.int64) - 1
    if low.dtype.kind == "f":
        last = np.where(np.isnan(low) | np.isnan(high), -1, last)
    return r_ranks.astype(np.uint32), *_clamp(first, last, max(len(values) - 1, 0))
