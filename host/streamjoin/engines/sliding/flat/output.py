"""Where pairs are written and handed over from."""

from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

import numpy as np

from streamjoin.engines.codes import Codes
from streamjoin.memory import prefer_huge_pages, reserved
from streamjoin.tuples import Rows

OUTPUT_PAIRS = 1 << 20
"""Pairs of a buffer, which is handed over as it is filled."""

RESERVED_PAIRS = 1 << 25
"""Pairs for which addresses are reserved where a whole result is kept: pairs then lie side by side,
and the result is not put together from parts."""

HUGE_FROM_PAIRS = 1 << 15
"""Pairs from which on a reserved buffer's pages are huge: small results would clear more than they
fill."""


class Output(Protocol):
    """Takes pairs, as :class:`~streamjoin.metrics.Meter`."""

    def phase(self, name: str) -> AbstractContextManager[None]:
        """Count the time inside."""
        ...

    def emit(self, r_rows: Rows, s_rows: Rows) -> object:
        """Add pairs."""
        ...


class Room(NamedTuple):
    """Where threads write pairs.

    Attributes
    ----------
    words : ndarray of uint32, shape (2 * room,)
        Rows of R, then as many of S.
    first, stop : int
        The first of R's words to write to, and the one at which pairs in no order end.
    untouched, pages : int
        First word and number of the huge pages that are likely to be needed and have not been named
        before: none where pages are small.
    """

    words: Codes
    first: int
    stop: int
    untouched: int
    pages: int


class Buffer:
    """A buffer for pairs: rows of R, then as many of S.

    Parameters
    ----------
    keeps : bool
        Whether all pairs are kept where they are emitted, as the result of a join is.

    Attributes
    ----------
    words : ndarray of uint32, shape (2 * room,)
    used : int
        Pairs that have been emitted from it.
    """

    def __init__(self, keeps: bool) -> None:
        self._keeps, self._is_huge = keeps, False
        self._touched = 0
        self.words = np.empty(0, dtype=np.uint32)
        self.used = 0

    @property
    def room(self) -> int:
        """Pairs for which it has room, used or not."""
        return len(self.words) >> 1

    def begin(self) -> None:
        """Use it again: what was handed over has been copied."""
        self.used = 0
        if self.room > OUTPUT_PAIRS:
            self.words = np.empty(0, dtype=np.uint32)

    def make_room(self, pairs: int) -> None:
        """Begin a new one if there is not room for so many more pairs."""
        if self.room - self.used < pairs:
            self.words, self._is_huge, self.used = self._new(pairs), False, 0
            self._touched = 0

    def room_for(self, stop: int, pairs: int, page_words: int) -> "Room":
        """Return where the next pairs are written, of which there are about so many."""
        if not self._is_huge:
            return Room(self.words, self.used, stop, 0, 0)
        first = max(self._touched, self.used)
        pages = max(0, -(-(min(self.used + pairs, stop) - first) // page_words))
        self._touched = first + pages * page_words
        return Room(self.words, self.used, stop, first, pages)

    def _new(self, pairs: int) -> Codes:
        if self._keeps:
            try:
                return reserved(2 * max(RESERVED_PAIRS, pairs), np.uint32)
            except MemoryError:  # addresses are limited: parts need fewer
                self._keeps = False
        return np.empty(2 * max(OUTPUT_PAIRS, pairs), dtype=np.uint32)

    def emit(self, pairs: int, meter: Output) -> None:
        """Hand over pairs that have been written behind those that were used."""
        if not pairs:
            return
        first, s_first = self.used, self.room + self.used
        self.used += pairs
        meter.emit(self.words[first : first + pairs], self.words[s_first : s_first + pairs])
        if self._keeps and not self._is_huge and self.used >= HUGE_FROM_PAIRS:
            prefer_huge_pages(self.words)
            self._is_huge = True
