"""The persistent form of an engine: it keeps its windows from one call to the next."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

from numpy.typing import NDArray

from streamjoin.tuples import Int64s, Rows


class Kept(NamedTuple):
    """What the windows hold, by serial number: the tuples of a stream that were joined before.

    Attributes
    ----------
    first, end : tuple of int
        Serial numbers of the first live tuples of R and of S, and of the next ones.
    """

    first: tuple[int, int]
    end: tuple[int, int]


class Arriving(NamedTuple):
    """Arriving tuples of one stream, in order, as engines compare them.

    Attributes
    ----------
    columns : mapping of str to ndarray
        The join columns.
    ts : ndarray of int64
        Arrival times in microseconds.
    numbers : ndarray of int64
        What each tuple is called in results.
    missing : ndarray of bool, or None
        Which lack a join column's value.
    """

    columns: Mapping[str, Any]
    ts: Int64s
    numbers: Int64s
    missing: NDArray[Any] | None


class Fits(NamedTuple):
    """Maximum pairs of a call, as of :class:`~streamjoin.metrics.Meter`."""

    max_pairs: int | None
    fitting_pairs: int | None


class NumberedPairs(NamedTuple):
    """Pairs of a call.

    Attributes
    ----------
    r_rows, s_rows : ndarray, shape (pairs,)
        Positions of the tuples.
    base : tuple of int
        Serial numbers of position 0 of R and of S.
    named : ndarray of int64, shape (3, pairs)
        Numbers of R's and S's tuples (:attr:`~streamjoin.tuples.Stream.numbers`), and the later
        arrival times.
    digest : int
        Of the numbers, modulo 2**64.
    """

    r_rows: Rows
    s_rows: Rows
    base: tuple[int, int]
    named: Int64s
    digest: int


class Session(ABC):
    """An engine that was opened for a live join.

    The caller holds what the windows hold (:class:`Kept`), and replaces it when all that follows a
    call has been done. So a call that fails or is interrupted has changed nothing: the next one
    begins with the same ``Kept``, and the engine restores its indexes by it.

    Attributes
    ----------
    kept : Kept
        What the windows hold at the beginning.
    """

    kept: Kept

    @abstractmethod
    def join(
        self, kept: Kept, r: Arriving | None, s: Arriving | None, fits: Fits
    ) -> tuple[NumberedPairs, Kept]:
        """Join arriving tuples, and return their pairs and what the windows then hold.

        Parameters
        ----------
        kept : Kept
            What this returned last, or before, if the calls since were in vain.
        r, s : Arriving or None
            The next tuples in arrival order; none arrives before an earlier one.
        fits : Fits
            Maximum pairs.

        Raises
        ------
        TooLargeError
            If there are more pairs.
        """
