"""Columns that are compared for equality as unsigned 32-bit codes: equal where the values are.

Each kind takes the cheapest exact way. Integers whose values span less than 2**32 are shifted;
others, and strings, are numbered by a hash table that compares whole values. Floating-point numbers
are integers by their bits. Several columns are packed into one integer, which is numbered where it
has more than 32 bits. Codes have no order.
"""

from dataclasses import dataclass
from functools import reduce
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.numbering import (
    find_integers,
    find_strings,
    number_integers,
    number_strings,
)
from streamjoin.inputs.strings import Strings

Codes = NDArray[np.uint32]
Uint64s = NDArray[np.uint64]
Int64s = NDArray[np.int64]
Values = NDArray[Any] | Strings
Missing = NDArray[np.bool_] | None

WORDS = 1 << 32
"""Number of codes that 32 bits hold."""

R_MISSING, S_MISSING = np.uint32(WORDS - 2), np.uint32(WORDS - 1)
"""Codes of rows that lack a value: different ones, for they match nothing."""

HIGHEST_SIGNED = (1 << 63) - 1

SAMPLE = 1024
"""Values that are looked at first."""

LONG = 1 << 16
"""Rows of a column from which on a kernel that reads it once is faster than NumPy's passes."""


@dataclass(frozen=True)
class Terms:
    """Columns of an equality, of R and of S, and which of their rows lack a value."""

    r: Values
    s: Values
    r_missing: Missing = None
    s_missing: Missing = None


class Coded(NamedTuple):
    """Codes of both sides, all below ``limit``; those of R differ where its values do.

    Where values were numbered, R has not the highest code: it says that S's value has no partner.
    """

    r: Codes
    s: Codes
    limit: int


def code_columns(terms: list[Terms]) -> tuple[Codes, Codes]:
    """Make one code a row of the columns of one or several equalities.

    Parameters
    ----------
    terms : list of Terms
        At least one; all with the same missing rows.

    Returns
    -------
    r_codes, s_codes : ndarray of uint32
        Equal if and only if all columns are, and none is missing. R's differ where its values do;
        S's without a partner may share one.
    """
    first = terms[0]
    has_missing = first.r_missing is not None or first.s_missing is not None
    if len(terms) == 1 and not has_missing and _are_words(first):
        return _bits(first.r), _bits(first.s)
    coded = reduce(_packed, (_code(term) for term in terms))
    if not has_missing:
        return coded.r, coded.s
    if coded.limit > int(R_MISSING):
        coded = _numbered(coded.r.astype(np.uint64), coded.s.astype(np.uint64))
    if first.r_missing is not None:
        coded.r[first.r_missing] = R_MISSING
    if first.s_missing is not None:
        coded.s[first.s_missing] = S_MISSING
    return coded.r, coded.s


def _are_words(term: Terms) -> bool:
    """Whether both columns are integers of one type of up to 32 bits."""
    r, s = term.r.dtype, term.s.dtype
    return r == s and r.kind in "iu" and r.itemsize <= 4


def _bits(column: Any) -> Codes:
    """Return 32-bit patterns of integers of up to 32 bits."""
    kind = np.int32 if column.dtype.kind == "i" else np.uint32
    return np.asarray(column.astype(kind, copy=False).view(np.uint32))


def _code(term: Terms) -> Coded:
    if term.r.dtype.kind in "iu" and term.s.dtype.kind in "iu":
        return _code_integers(term)
    if term.r.dtype.kind == term.s.dtype.kind == "f":
        return _code_floats(term)
    if term.r.dtype.kind == term.s.dtype.kind == "O" and _has("numba") and _has("pyarrow"):
        return _number_strings(Strings.of(term.r), Strings.of(term.s))
    return _sorted(np.asarray(term.r), np.asarray(term.s))


def _code_floats(term: Terms) -> Coded:
    """Code the bits of floating-point numbers; NaN is missing already."""
    bits = bits_of_floats(np.asarray(term.r), np.asarray(term.s))
    return _code_integers(Terms(*bits, term.r_missing, term.s_missing))


def bits_of_floats(r: NDArray[Any], s: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the bits of two columns of floating-point numbers, as the wider of both types."""
    kind = np.float32 if r.dtype == s.dtype == np.float32 else np.float64
    return float_bits(r.astype(kind)), float_bits(s.astype(kind))


def float_bits(values: NDArray[Any]) -> NDArray[Any]:
    """Return the bits of float32 or float64 as signed integers; -0.0 has those of 0.0."""
    kind = np.int32 if values.dtype == np.float32 else np.int64
    return np.asarray((values + values.dtype.type(0)).view(kind))


def _code_integers(term: Terms) -> Coded:
    r, s = np.asarray(term.r), np.asarray(term.s)
    if term.r_missing is None and _is_far_apart(r):
        return _numbered_integers(r, s)
    # What lies beneath missing values counts only where it matters.
    r_codes, (r_low, r_high) = _cut(r)
    s_codes, (s_low, s_high) = _cut(s)
    low = min(r_low, s_low)
    limit = max(r_high, s_high) - low + 1
    if limit > WORDS:
        if term.r_missing is not None:
            r_low, r_high = ends(r, term.r_missing)
        if term.s_missing is not None:
            s_low, s_high = ends(s, term.s_missing)
        low = min(r_low, s_low)
        limit = max(r_high, s_high) - low + 1
    if limit <= WORDS:
        return Coded(_shifted(r_codes, low), _shifted(s_codes, low), limit)
    span = r_high - r_low + 1
    if span < WORDS:
        _shifted(s_codes, r_low)[(s < r_low) | (s > r_high)] = span
        return Coded(_shifted(r_codes, r_low), s_codes, span + 1)
    return _numbered_integers(r, s)


def _is_far_apart(column: NDArray[Any]) -> bool:
    """Whether some values are known to lie so far apart that 32 bits do not tell them apart."""
    low, high = ends(column[:: max(1, len(column) // SAMPLE)], None)
    return high - low >= WORDS


def _numbered_integers(r: NDArray[Any], s: NDArray[Any]) -> Coded:
    coded = _numbered(wide_bits(r), wide_bits(s))
    if r.dtype.kind != s.dtype.kind:
        # 64 bits of one sign are not the same value as those of another.
        coded.s[s < 0 if s.dtype.kind == "i" else s > HIGHEST_SIGNED] = coded.limit - 1
    return coded


def _cut(column: NDArray[Any]) -> tuple[Codes, tuple[int, int]]:
    """Return integers modulo 2**32, and the lowest and the highest."""
    if len(column) < LONG or not _is_wide(column):
        return column.astype(np.uint32), ends(column, None)
    from streamjoin.engines.kernels import integers

    codes, limits = np.empty(len(column), dtype=np.uint32), np.empty(2, dtype=column.dtype)
    integers.cut_integers(column, codes, limits)
    return codes, (int(limits[0]), int(limits[1]))


def _is_wide(column: NDArray[Any]) -> bool:
    """Whether a kernel can read integers that have more bits than codes."""
    wide = column.dtype in (np.int64, np.uint64)
    return wide and column.flags.c_contiguous and _has("numba")


def ends(column: NDArray[Any], missing: Missing) -> tuple[int, int]:
    """Return the lowest and the highest value that is not missing; 0 and 0 where there is none."""
    present = column if missing is None else column[~missing]
    return (int(present.min()), int(present.max())) if len(present) else (0, 0)


def _shifted(codes: Codes, low: int) -> Codes:
    """Make integers modulo 2**32 distances from ``low``: equal, where those are less."""
    if low % WORDS:
        codes -= np.uint32(low % WORDS)
    return codes


def wide_bits(column: NDArray[Any]) -> Uint64s:
    """Return integers of any type modulo 2**64."""
    kind = np.int64 if column.dtype.kind == "i" else np.uint64
    return np.ascontiguousarray(column, dtype=kind).view(np.uint64)


def _packed(left: Coded, right: Coded) -> Coded:
    """Pack two codes into one."""
    limit = left.limit * right.limit
    if limit <= WORDS:
        factor = np.uint32(right.limit % WORDS)  # 2**32 only beside a limit of 1: codes are 0
        return Coded(left.r * factor + right.r, left.s * factor + right.s, limit)
    wide = np.uint64(right.limit)
    r = left.r.astype(np.uint64) * wide + right.r
    return _numbered(r, left.s.astype(np.uint64) * wide + right.s)


def _numbered(r: Uint64s, s: Uint64s) -> Coded:
    """Number 64-bit values by the rows of R that hold them first."""
    if not _has("numba"):
        return _sorted(r, s)
    r_codes, s_codes = np.empty(len(r), dtype=np.uint32), np.empty(len(s), dtype=np.uint32)
    find_integers(s, r, number_integers(r, r_codes), s_codes, len(r))
    return Coded(r_codes, s_codes, len(r) + 1)


def _number_strings(r: Strings, s: Strings) -> Coded:
    r_codes, s_codes = np.empty(len(r), dtype=np.uint32), np.empty(len(s), dtype=np.uint32)
    find_strings(s, r, number_strings(r, r_codes), s_codes, len(r))
    return Coded(r_codes, s_codes, len(r) + 1)


def _sorted(r: NDArray[Any], s: NDArray[Any]) -> Coded:
    """Number values by sorting them: of any type, where nothing is compiled."""
    distinct, numbers = np.unique(np.concatenate([r, s]), return_inverse=True)
    codes: Codes = numbers.astype(np.uint32)
    return Coded(codes[: len(r)], codes[len(r) :], len(distinct) + 1)


def _has(package: str) -> bool:
    return find_spec(package) is not None


def compile_kernels(terms: list[Terms]) -> None:
    """Compile what numbering the values of such columns may take, or load it from the cache."""
    if any(term.r.dtype.kind == "O" for term in terms):
        one = Strings(np.array([0, 1]), np.zeros(1, dtype=np.uint8))
        _number_strings(one, one)
    integers = [term for term in terms if term.r.dtype.kind in "iu" and term.s.dtype.kind in "iu"]
    has_missing = terms[0].r_missing is not None or terms[0].s_missing is not None
    if has_missing or len(terms) > 1 or not integers:
        zero = np.zeros(1, dtype=np.uint64)
        _numbered(zero, zero)
    for term in integers:
        if not _are_words(term):
            _compile_integers(np.asarray(term.r)[:1], np.asarray(term.s)[:1])


def _compile_integers(r: NDArray[Any], s: NDArray[Any]) -> None:
    """Compile for such arrays: to Numba one that cannot be written is of another type."""
    from streamjoin.engines.kernels import integers

    _numbered(wide_bits(r), wide_bits(s))
    for side in (r, s):
        if len(side) and _is_wide(side):
            integers.cut_integers(side, np.empty(1, dtype=np.uint32), np.empty(2, side.dtype))
