"""Join columns as unsigned 32-bit codes that compare like the values they stand for.

Every term becomes an interval test on codes: ``lo <= r and r <= hi`` with ``lo``, ``hi``
computed once for each S tuple, so that kernels know one comparison and four bytes a key.
Columns of a band keep their order: integers are shifted where R's span less than 32 bits, float32
is mapped by its order-preserving bit pattern, others are replaced by their rank among R's. Columns
of an equality only differ where their values do (:mod:`~streamjoin.engines.codes`). A tuple that
lacks a value gets a code, or an interval, that meets none.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.codes import (
    Codes,
    Missing,
    Terms,
    Uint64s,
    code_columns,
    compile_kernels,
    ends,
    wide_bits,
)
from streamjoin.tuples import Stream
from streamjoin_common.language.predicates import Band, Equi, Predicate

Values = NDArray[Any]
Bools = NDArray[np.bool_]

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
    for index, term in enumerate(predicate.terms):
        r_column, s_column = r.held(term.r_column), s.held(term.s_column)
        if isinstance(term, Equi):
            r_codes[index], s_lo[index] = equi_codes(r_column, s_column, r.missing, s.missing)
            s_hi[index] = s_lo[index]
        elif r_column.dtype.kind == "f":
            if r.missing is not None:
                r_column = np.where(r.missing, r_column.dtype.type(np.nan), r_column)
            r_codes[index], s_lo[index], s_hi[index] = _band_real(r_column, s_column, term)
        else:
            codes = _band_integers(r_column, s_column, term, r.missing)
            r_codes[index], s_lo[index], s_hi[index] = codes
            if r.missing is not None:
                r_codes[index, r.missing] = NEVER_LO  # no other code is as high
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


def _band_integers(
    r: Values, s: Values, term: Band, missing: Missing
) -> tuple[Codes, Codes, Codes]:
    """Codes of integers of any width: distances from R's lowest value, or their ranks."""
    low, high = ends(r, missing)
    span = high - low
    distances = wide_bits(r) - np.uint64(low % (1 << 64))
    first, below, nothing = _distances(s, -int(term.lo) - low, span)
    first[below] = 0
    last, below, above = _distances(s, int(term.hi) - low, span)
    last[above] = span
    nothing |= below | (first > last)
    if span + (missing is not None) <= int(NEVER_LO):  # missing values have the highest code
        return _closed(distances, first, last, nothing)
    values, ranks = np.unique(distances, return_inverse=True)
    first_rank = np.searchsorted(values, first, side="left")
    end_rank = np.searchsorted(values, last, side="right")
    return _closed(ranks, first_rank, end_rank - 1, nothing | (first_rank >= end_rank))


def _closed(r: Values, first: Values, last: Values, nothing: Bools) -> tuple[Codes, Codes, Codes]:
    """Make codes of numbers and of the intervals among them, some of which hold nothing."""
    lo, hi = first.astype(np.uint32), last.astype(np.uint32)
    lo[nothing], hi[nothing] = NEVER_LO, NEVER_HI
    return r.astype(np.uint32), lo, hi


def _distances(s: Values, offset: int, span: int) -> tuple[Uint64s, Bools, Bools]:
    """Return ``s + offset``, and where it is below 0 and above ``span``; there it has wrapped."""
    return (
        wide_bits(s) + np.uint64(offset % (1 << 64)),
        _is_below(s, -offset),
        ~_is_below(s, span - offset + 1),
    )


def _is_below(column: Values, bound: int) -> Bools:
    """Compare integers with one of any size."""
    limits = np.iinfo(column.dtype)
    if limits.min < bound <= limits.max:
        return np.asarray(column < column.dtype.type(bound))
    return np.full(len(column), bound > limits.max)


def _band_real(r: Values, s: Values, term: Band) -> tuple[Codes, Codes, Codes]:
    single = r.dtype == s.dtype == np.float32
    real = np.dtype(np.float32 if single else np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        lo, hi = (np.asarray(width, real) for width in term.real_widths)
        low, high = s.astype(real) - lo, s.astype(real) + hi
    if not single:
        return _rank_band(r.astype(np.float64), low, high)
    nothing = np.isnan(low) | np.isnan(high)
    return _closed(float32_codes(r), float32_codes(low), float32_codes(high), nothing)


def float32_codes(values: NDArray[np.float32]) -> Codes:
    """Map float32 to uint32 in the same order; -0 and +0 are one code, NaN is above all."""
    bits = (values + np.float32(0)).view(np.uint32)  # adding +0 turns -0 into +0
    negative = bits >> np.uint32(31) == 1
    codes = np.where(negative, ~bits, bits | np.uint32(0x80000000))
    return np.where(np.isnan(values), np.uint32(0xFFFFFFFF), codes)


def _rank_band(r: Values, low: Values, high: Values) -> tuple[Codes, Codes, Codes]:
    """Express floating-point bounds as ranks among R's distinct values."""
    values, ranks = np.unique(r, return_inverse=True)
    values = values[: len(values) - int(np.isnan(values).sum())]  # NaN sorts last, joins never
    first = np.searchsorted(values, low, side="left")
    end = np.searchsorted(values, high, side="right")
    nothing = (first >= end) | np.isnan(low) | np.isnan(high)
    return _closed(ranks, first, end - 1, nothing)
