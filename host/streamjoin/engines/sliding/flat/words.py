"""Values of a live join as signed 64-bit words, and the opposite words that each of them meets.

Whatever the type of a term's columns, a tuple of R satisfies the term with one of S if and only if
its word is in an interval that depends on the tuple of S alone. Words of a band keep the order of
the values, so that a tuple of R meets an interval of S's words too. That one may be wider than it
must be, where bounds are rounded; then the term is checked.
"""

import functools
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.codes import HIGHEST_SIGNED, float_bits
from streamjoin.tuples import Int64s
from streamjoin_common.language.predicates import Band, Equi, Predicate

if TYPE_CHECKING:
    from streamjoin.tuples import Stream

Int64Columns = tuple[Int64s, Int64s, Int64s]

PART = 1 << 62
"""Maximum that is added to a word at once."""

UNSIGNED_OFFSET = 1 << 63
"""Distance of an unsigned 64-bit integer from its word, where order counts."""


class Words(ABC):
    """How the columns of a term become words.

    Attributes
    ----------
    equal : bool
        Whether a word meets the same word alone.
    exact : bool
        Whether the words of S that a word of R meets are exact.
    """

    equal, exact = False, True

    @abstractmethod
    def write(
        self, side: int, column: Any, into: Int64Columns, at: int
    ) -> NDArray[np.bool_] | None:
        """Write the words of tuples and what they meet; return which have no partner, if any.

        Parameters
        ----------
        side : int
            0 for R, 1 for S.
        column : ndarray
            Values, as engines compare them.
        into : tuple of ndarray of int64
            Words, and both ends of the intervals met, which may be the words' array for an
            equality. They receive the result; empty intervals have ``low > high``.
        at : int
            Position of the first.
        """


class EqualWords(Words):
    """Values that are equal where their words are."""

    equal = True

    def __init__(self, r: "np.dtype[Any]", s: "np.dtype[Any]") -> None:
        kinds = {r.kind, s.kind}
        self._real = np.dtype(np.float32 if r == s == np.float32 else np.float64)
        self._is_real = kinds == {"f"}
        wide = [each.kind == "u" and each.itemsize == 8 for each in (r, s)]
        # Values of one side that the other has not; 64 bits of one sign are not those of another.
        self._beyond = [is_wide and not all(wide) for is_wide in wide]

    def write(
        self, side: int, column: Any, into: Int64Columns, at: int
    ) -> NDArray[np.bool_] | None:
        """Write them; a value that the other type has not meets none."""
        (words, lows, highs), end = into, at + len(column)
        if self._is_real:
            column = float_bits(np.asarray(column, dtype=self._real))
        if column.dtype.kind == "u":  # the bits of high values of 64 bits
            column = column.astype(np.uint64, copy=False)
            lost = column > np.uint64(HIGHEST_SIGNED) if self._beyond[side] else None
            column = column.view(np.int64)
        else:
            lost = None
        if len(column) == 1:  # a number takes less time than an array of one
            words[at] = lows[at] = highs[at] = column[0]
        else:
            words[at:end] = column
            if lows is not words:
                lows[at:end] = column
                highs[at:end] = column
        return lost if lost is not None and lost.any() else None


class WholeBandWords(Words):
    """A band of integers of any width and sign, by widths of any size."""

    def __init__(self, term: Band, r: "np.dtype[Any]", s: "np.dtype[Any]") -> None:
        self._wide = [each.kind == "u" and each.itemsize == 8 for each in (r, s)]
        r_offset, s_offset = (UNSIGNED_OFFSET * is_wide for is_wide in self._wide)
        apart, lo, hi = r_offset - s_offset, int(term.lo), int(term.hi)
        self._shifts = (
            (_parts(apart - hi), _parts(apart + lo)),
            (_parts(-apart - lo), _parts(-apart + hi)),
        )

    def write(self, side: int, column: Any, into: Int64Columns, at: int) -> None:
        """Write them; an interval beyond 64 bits is cut."""
        (words, lows, highs), end = into, at + len(column)
        if self._wide[side]:
            column = (column ^ np.uint64(UNSIGNED_OFFSET)).view(np.int64)
        words[at:end] = column
        _kernels().shift_words(words, at, end, *self._shifts[side], lows, highs)


def _parts(distance: int) -> Int64s:
    """Return integers of 64 bits and one sign whose sum is the distance, or beyond all words."""
    distance = max(-4 * PART, min(4 * PART, distance))
    parts: list[int] = []
    while distance or not parts:
        parts.append(max(-PART, min(PART, distance)))
        distance -= parts[-1]
    return np.array(parts, dtype=np.int64)


class RealBandWords(Words):
    """A band of floating-point numbers, whose bounds are rounded; NaN meets nothing."""

    exact = False

    def __init__(self, term: Band, r: "np.dtype[Any]", s: "np.dtype[Any]") -> None:
        self._real = np.dtype(np.float32 if r == s == np.float32 else np.float64)
        with np.errstate(over="ignore"):
            self._lo, self._hi = (self._real.type(width) for width in term.real_widths)
        above = self._real.type(np.inf)
        one, zero = self._real.type(1), self._real.type(0)
        self._steps = np.nextafter(one, above) - one, np.nextafter(zero, above)

    def write(
        self, side: int, column: Any, into: Int64Columns, at: int
    ) -> NDArray[np.bool_] | None:
        """Write them."""
        values = column
        if values.dtype is not self._real or not values.flags.c_contiguous:
            values = np.ascontiguousarray(column, dtype=self._real)
        missing = _kernels().real_words(
            values, side == 1, self._lo, self._hi, *self._steps, *into, at
        )
        return np.isnan(values) if missing else None


def words_of(r: "Stream", s: "Stream", predicate: Predicate) -> list[Words]:
    """Return how each term's columns become words, by the types of both streams."""
    words: list[Words] = []
    for term in predicate.terms:
        types = r.held(term.r_column).dtype, s.held(term.s_column).dtype
        if isinstance(term, Equi):
            words.append(EqualWords(*types))
        elif types[0].kind == "f":
            words.append(RealBandWords(term, *types))
        else:
            words.append(WholeBandWords(term, *types))
    return words


@functools.cache
def _kernels() -> Any:
    """Import the kernels once: Numba takes its time, and an import statement takes some."""
    from streamjoin.engines.kernels.flat import words

    return words
