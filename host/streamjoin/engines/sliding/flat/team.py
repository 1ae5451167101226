"""What the threads of a flat index share, and how they end together."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

import numpy as np

from streamjoin.engines.codes import Codes
from streamjoin.engines.crew import Crew
from streamjoin.tuples import Int64s, Rows

MATCH_PAIRS = 1 << 14
"""Initial pairs of a thread's buffer; it grows if a batch has more."""


class Output(Protocol):
    """Takes pairs, as :class:`~streamjoin.metrics.Meter`."""

    def phase(self, name: str) -> AbstractContextManager[None]:
        """Count the time inside."""
        ...

    def emit(self, r_rows: Rows, s_rows: Rows) -> object:
        """Add pairs."""
        ...


class Shares:
    """An output buffer of which each thread fills its own share, from batch to batch.

    Parameters
    ----------
    threads : int

    Attributes
    ----------
    out : ndarray of uint32, shape (2 * room,)
        Rows of R, and ``room`` words later those of S.
    """

    def __init__(self, threads: int) -> None:
        self.out = np.empty(0, dtype=np.uint32)
        self._share, self._used = 0, np.zeros(threads, dtype=np.int64)

    def begin(self) -> None:
        """Use the buffer again: what was handed over has been copied."""
        self._used[:] = 0

    def make_room(self, pairs: int, share: int) -> Int64s:
        """Return where each thread's share is free, in a new buffer if one has less room."""
        if self._share - int(self._used.max()) < pairs:
            self._share = max(share, pairs)
            self.out = np.empty(2 * len(self._used) * self._share, dtype=np.uint32)
            self._used[:] = 0
        return self._used

    def filled(self, written: Int64s) -> Iterator[tuple[Codes, Codes]]:
        """Yield the pairs that each thread has written, rows of R and of S; they are used."""
        room = len(self.out) // 2
        for thread, pairs in enumerate(written.tolist()):
            first = thread * self._share + int(self._used[thread])
            self._used[thread] += pairs
            if pairs:
                rows = slice(first, first + pairs), slice(room + first, room + first + pairs)
                yield self.out[rows[0]], self.out[rows[1]]


class Team:
    """What threads share during a batch.

    Parameters
    ----------
    threads : int
    batch : int
        Maximum arrivals of a batch.
    """

    def __init__(self, threads: int, batch: int) -> None:
        from streamjoin.engines.kernels.flat import sharing

        self._threads = threads
        wide = max(8, threads)
        self.barriers = np.zeros(sharing.BARRIERS, dtype=np.uint64)
        self.bins = np.zeros(sharing.BINS, dtype=np.uint64)
        self.owners = np.zeros((2, threads + 1), dtype=np.uint32)
        self.counts = np.zeros((threads, batch), dtype=np.uint32)
        self.sums = np.zeros((threads, threads), dtype=np.uint64)
        self.cursors = np.zeros((threads, wide), dtype=np.uint64)
        self.items = np.zeros(threads * sharing.LISTED, dtype=np.uint32)
        self.matches = np.empty(threads * MATCH_PAIRS, dtype=np.uint32)
        self.shares = Shares(threads)

    def join(self, settings: tuple[Any, ...], meter: Output, crew: Crew) -> None:
        """Call :func:`~.sharing.join_shared` in each thread."""
        from streamjoin.engines.kernels.flat import sharing

        def work(thread: int) -> None:
            with self._ends_together(), meter.phase("probe"):
                sharing.join_shared(thread, *settings)

        self.barriers[:] = 0
        with self._ends_together():  # an interrupt may leave a thread without work
            crew.each(work, range(self._threads))

    @contextmanager
    def _ends_together(self) -> Iterator[None]:
        """When this fails or is interrupted, end the threads that wait at a barrier."""
        from streamjoin.engines.kernels.flat import sharing

        try:
            yield
        except BaseException:
            self.barriers[sharing.FAILED * sharing.BARRIER_WORDS] = 1
            raise

    def grow(self, written: Any) -> None:
        """Double each thread's share of the buffer, and keep what it holds."""
        old = self.matches.reshape(self._threads, -1)
        new = np.empty((self._threads, 2 * old.shape[1]), dtype=np.uint32)
        for thread in range(self._threads):
            new[thread, : int(written[thread])] = old[thread, : int(written[thread])]
        self.matches = new.reshape(-1)
