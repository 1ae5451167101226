"""What the threads of a flat index share, and how they end together."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

import numpy as np

from streamjoin.engines.codes import Codes
from streamjoin.engines.crew import Crew
from streamjoin.tuples import Rows

STAGGER = 80
"""Spare words between the rows of a plan, so that they do not share sets of the caches."""

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


class Team:
    """What threads share during a batch.

    Parameters
    ----------
    threads : int
    batch : int
        Maximum arrivals of a batch.

    Attributes
    ----------
    states : ndarray of uint64, shape (threads, STATE_WORDS)
    matches : ndarray of uint32
        Each thread's pairs, in equal shares: rows of R, then as many of S.
    """

    def __init__(self, threads: int, batch: int) -> None:
        from streamjoin.engines.kernels.flat import joining, plans, sharing

        self._threads = threads
        self._plans = [
            np.empty((plans.OWN_ROWS, sharing.PLANNED + STAGGER), dtype=np.uint32)
            for _ in range(threads)
        ]
        self._owned = plans.Owned(*(np.zeros(2 * threads + 2, dtype=np.uint64) for _ in range(2)))
        self._barriers = np.zeros(sharing.BARRIERS, dtype=np.uint64)
        self.states = np.zeros((threads, joining.STATE_WORDS), dtype=np.uint64)
        self._counts = np.zeros((threads, batch), dtype=np.uint32)
        self._sums = np.zeros((threads, threads), dtype=np.uint64)
        self._cursors = np.zeros((threads, max(8, threads)), dtype=np.uint64)
        self.matches = np.empty(2 * threads * MATCH_PAIRS, dtype=np.uint32)
        self._used = np.zeros(threads, dtype=np.int64)

    def begin_output(self) -> None:
        """Use the buffer again: what was handed over has been copied."""
        self._used[:] = 0

    def begin(
        self, flat: Any, keys: Any, rows: tuple[tuple[int, int], tuple[int, int]], *, ordered: bool
    ) -> None:
        """Begin a batch of rows of R and of S: cut the ranges of blocks that the threads own."""
        from streamjoin.engines.kernels.flat import sharing

        self.states[:] = 0
        if ordered:
            self._counts[:, : sum(end - first for first, end in rows)] = 0
            self._used[:] = 0
        sharing.cut_ranges(flat, keys, *rows, self._owned)

    def join(
        self, given: tuple[Any, ...], output: tuple[Codes, int], meter: Output, crew: Crew
    ) -> bool:
        """Call :func:`~.sharing.join_shared` in each thread; return whether all have joined all.

        Parameters
        ----------
        given : tuple
            Its parameters from ``times`` to ``arrivals``.
        output : tuple
            Its last ones, ``out`` and ``first``.
        meter : Output
        crew : Crew
        """
        from streamjoin.engines.kernels.flat import joining, sharing

        used = self._used.tolist()

        def work(thread: int) -> None:
            with self._ends_together(), meter.phase("probe"):
                sharing.join_shared(
                    thread, self._plans[thread], *given, self._owned, self._barriers,
                    self.states.reshape(-1), self._counts, self._sums, self._cursors, self.matches,
                    used[thread], *output,
                )  # fmt: skip

        self._barriers[:] = 0
        with self._ends_together():  # an interrupt may leave a thread without work
            crew.each(work, range(self._threads))
        return bool((self.states[:, joining.DONE] == given[-1]).all())

    @contextmanager
    def _ends_together(self) -> Iterator[None]:
        """When this fails or is interrupted, end the threads that wait at a barrier."""
        from streamjoin.engines.kernels.flat import sharing

        try:
            yield
        except BaseException:
            self._barriers[sharing.FAILED * sharing.BARRIER_WORDS] = 1
            raise

    def make_room(self, pairs: int, share: int) -> None:
        """Take a new buffer, of ``share`` pairs for each thread, if one has less room than pairs."""
        room = len(self.matches) // (2 * self._threads)
        if room - int(self._used.max()) < pairs:
            self.matches = np.empty(2 * self._threads * max(share, pairs), dtype=np.uint32)
            self._used[:] = 0

    def filled(self) -> Iterator[tuple[Codes, Codes]]:
        """Yield the pairs that each thread has written, rows of R and of S; they are used."""
        from streamjoin.engines.kernels.flat import joining

        shares = self.matches.reshape(self._threads, 2, -1)
        for thread, pairs in enumerate(self.states[:, joining.WRITTEN].tolist()):
            first = int(self._used[thread])
            self._used[thread] += pairs
            if pairs:
                r_rows, s_rows = shares[thread, :, first : first + pairs]
                yield r_rows, s_rows
        self.states[:, joining.WRITTEN] = 0

    def grow(self) -> None:
        """Double each thread's share of the buffer, and keep what it holds."""
        from streamjoin.engines.kernels.flat import joining

        old = self.matches.reshape(self._threads, 2, -1)
        new = np.empty((self._threads, 2, 2 * old.shape[2]), dtype=np.uint32)
        for thread, held in enumerate(self.states[:, joining.WRITTEN].tolist()):
            new[thread, :, :held] = old[thread, :, :held]
        self.matches = new.reshape(-1)

    def is_stuck(self, arrivals: int) -> bool:
        """Whether a thread that is not done has written nothing: an arrival needs all its room."""
        from streamjoin.engines.kernels.flat import joining

        waits = self.states[:, joining.DONE] < arrivals
        return bool((self.states[waits, joining.WRITTEN] == 0).any())
