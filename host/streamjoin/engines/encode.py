"""Join columns as unsigned 32-bit codes that compare like the values they stand for.

Every term becomes an interval test on codes: ``lo <= r and r <= hi`` with ``lo``, ``hi``
computed once for each S tuple, so that kernels know one comparison and four bytes a key.
Columns of a band keep their order: integers of up to 32 bits are shifted, float32 is mapped by its
order-preserving bit pattern, wider ones are replaced by their rank among the values of R. Columns
of an equality only differ where their values do (:mod:`~streamjoin.engines.codes`). A tuple that
lacks a value gets a code, or an interval, that meets none.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.codes import Codes, Missing, Terms, code_columns, compile_kernels
from streamjoin.tuples import Stream
from streamjoin_common.language.predicates import Band, Equi, Predicate

Values = NDArray[Any]

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
        r_column, s_column = r.held(term.r_column), s.held(term.s_column)
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
    return code_columns(_terms(r, s, predicate))


def prepare_keys(r: Stream, s: Stream, predicate: Predicate) -> None:
    """Compile what :func:`encode_keys` may take for such columns."""
    compile_kernels(_terms(r, s, predicate))


def _terms(r: Stream, s: Stream, predicate: Predicate) -> list[Terms]:
    return [
        Terms(r.held(term.r_column), s.held(term.s_column), r.missing, s.missing)
        for term in predicate.terms
    ]


def encode_stream_keys(r: Stream, s: Stream, predicate: Predicate) -> tuple[Codes, Codes]:
    """As :func:`encode_keys`, for engines whose work depends on how often a key of S comes.

    S's tuples without a partner keep keys of their own; R's may share one that S does not have.
    """
    terms = [Equi(term.s_column, term.r_column) for term in predicate.terms]
    s_keys, r_keys = encode_keys(s, r, Predicate(tuple(terms)))
    return r_keys, s_keys


def equi_codes(
    r: Any, s: Any, r_missing: Missing = None, s_missing: Missing = None
) -> tuple[Codes, Codes]:
    """Codes of two columns that are equal if and only if the values are, and are not missing."""
    return code_columns([Terms(r, s, r_missing, s_missing)])


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
