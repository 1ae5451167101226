"""Classes of keys: which tuples may join at all, by their join columns."""

import zlib
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streamjoin.tuples import Int64s, Stream
from streamjoin_common.language.predicates import Band, Equi, Predicate
from streamjoin_spark.batch.local import mix64

Float64s = NDArray[np.float64]

NONE = -1
"""Last class of a tuple that joins with nothing."""


class Classes(Protocol):
    """A way to class tuples: R tuples to one class each, S tuples to consecutive ones."""

    @property
    def count(self) -> int:
        """Classes there are."""

    def of(self, stream: Stream, of_r: bool) -> tuple[Int64s, Int64s]:
        """First and last class of every tuple; ``last < first`` for one that joins with nothing."""


@dataclass(frozen=True)
class OneClass:
    """Everything in one class."""

    @property
    def count(self) -> int:
        """One."""
        return 1

    def of(self, stream: Stream, of_r: bool) -> tuple[Int64s, Int64s]:
        """Zero for every tuple."""
        nought = np.zeros(stream.rows, dtype=np.int64)
        return nought, nought


@dataclass(frozen=True)
class Radix:
    """Classes by a hash of all columns of equi terms: a function of the values alone.

    Attributes
    ----------
    predicate : Predicate
        At least one term must be an equi term.
    count : int
        Classes.
    """

    predicate: Predicate
    count: int

    def of(self, stream: Stream, of_r: bool) -> tuple[Int64s, Int64s]:
        """Class of every tuple."""
        first = class_of_hashes(key_hashes(stream, self.predicate, of_r), self.count)
        return _without_missing(first, first, stream)


@dataclass(frozen=True)
class WithEvery:
    """Classes where tuples that join with nothing have one too, their first.

    Attributes
    ----------
    classes : Classes
        The classes of all others.
    sides : tuple of str
        Sides, ``"r"`` and ``"s"``, whose tuples without a partner are asked for.
    """

    classes: Classes
    sides: tuple[str, ...]

    @property
    def count(self) -> int:
        """As many."""
        return self.classes.count

    def of(self, stream: Stream, of_r: bool) -> tuple[Int64s, Int64s]:
        """First and last class of every tuple."""
        first, last = self.classes.of(stream, of_r)
        asked = ("r" if of_r else "s") in self.sides
        return first, np.maximum(first, last) if asked else last


def key_hashes(stream: Stream, predicate: Predicate, of_r: bool) -> NDArray[np.uint64]:
    """Hash all columns of equi terms: equal keys have equal hashes, whatever their widths."""
    mixed = np.zeros(stream.rows, dtype=np.uint64)
    for term in predicate.terms:
        if isinstance(term, Equi):
            mixed = mix64(mixed + _as_bits(stream.column(term.r_column if of_r else term.s_column)))
    return mixed


def class_of_hashes(hashes: NDArray[np.uint64], count: int) -> Int64s:
    """Class of each hash, of so many: by the upper bits, as the number of classes may be any."""
    upper = hashes >> np.uint64(32)
    classes: Int64s = ((upper * np.uint64(count)) >> np.uint64(32)).astype(np.int64)
    return classes


@dataclass(frozen=True)
class Ranges:
    """Classes by ranges of the R column of a band term.

    Attributes
    ----------
    term : Band
        The term.
    bounds : tuple of float
        Where each class but the first begins, ascending.
    """

    term: Band
    bounds: tuple[float, ...]

    @property
    def count(self) -> int:
        """One more than there are bounds."""
        return len(self.bounds) + 1

    def of(self, stream: Stream, of_r: bool) -> tuple[Int64s, Int64s]:
        """The class of an R tuple, the classes that the interval of an S tuple touches."""
        bounds = np.array(self.bounds)
        if of_r:
            values = stream.column(self.term.r_column).astype(np.float64)
            first = np.searchsorted(bounds, values, side="right")
            return _without_missing(first, np.where(np.isnan(values), NONE, first), stream)
        low, high = interval(stream.column(self.term.s_column), self.term)
        first = np.searchsorted(bounds, low, side="right")
        last = np.searchsorted(bounds, high, side="right")
        nothing = np.isnan(low) | np.isnan(high) | (low > high)
        return _without_missing(first, np.where(nothing, NONE, last), stream)


def interval(s: NDArray[Any], term: Band) -> tuple[Float64s, Float64s]:
    """Bounds, for every S tuple, outside of which no R value joins: never too narrow.

    The predicate's own bounds are one operation in float32, float64 or on integers of any size;
    here they are rounded, which keeps the order, and widened by more than rounding can take.
    """
    values = s.astype(np.float64)
    below, above = term.real_widths
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = values - below, values + above
        low_slack = (np.abs(values) + abs(below)) * 2.0**-50
        high_slack = (np.abs(values) + abs(above)) * 2.0**-50
        low = np.where(np.isfinite(low), low - low_slack, low)
        high = np.where(np.isfinite(high), high + high_slack, high)
        if s.dtype == np.float32:  # the predicate is computed so where R is float32 too
            low = np.fmin(low, s - np.float32(below))
            high = np.fmax(high, s + np.float32(above))
    return low, high


def _as_bits(column: NDArray[Any]) -> NDArray[np.uint64]:
    """Return the same 64 bits for equal values, whatever their width; strings by their bytes."""
    if column.dtype.kind == "O":
        import pyarrow as pa

        coded: Any = pa.array(column).dictionary_encode()
        hashes = [zlib.crc32(string) for string in coded.dictionary.cast("binary").to_pylist()]
        return np.asarray(np.array([*hashes, 0], dtype=np.uint64)[coded.indices.to_numpy()])
    if column.dtype.kind in "mM":
        return np.asarray(column.view(np.uint64))
    if column.dtype.kind == "i":
        return np.asarray(column.astype(np.int64, copy=False).view(np.uint64))
    return np.asarray(column.astype(np.uint64, copy=False))


def _without_missing(first: Int64s, last: Int64s, stream: Stream) -> tuple[Int64s, Int64s]:
    if stream.missing is None:
        return first, last
    return first, np.where(stream.missing, NONE, last)
