"""What the threads of a flat index share, and how they end together."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

import numpy as np

from streamjoin.engines.codes import Codes
from streamjoin.engines.crew import Crew
from streamjoin.tuples import Rows

PART = 1 << 15
"""Maximum arrivals between two barriers: what is planned of them, 40 bytes each, fits a cache."""

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

    Attributes
    ----------
    states : ndarray of uint64, shape (threads, STATE_WORDS)
    matches : ndarray of uint32
        Each thread's pairs, in equal shares: rows of R, then as many of S.
    is_full : bool
        Whether a thread had no room for its matches in the first part that is not done.
    """

    def __init__(self, threads: int) -> None:
        from streamjoin.engines.kernels.flat import joining, plans, ranges, sharing

        self._threads = threads
        self.states = np.zeros((threads, joining.STATE_WORDS), dtype=np.uint64)
        square, room = threads * threads, -(-PART // threads)
        self._share = sharing.Share(
            lists=(
                np.empty((square * room, plans.PLAN_WORDS), dtype=np.uint32),
                np.empty((square * room, plans.PLAN_WORDS), dtype=np.uint32),
            ),
            listed=np.zeros(2 * square * ranges.LINE_WORDS, dtype=np.uint64),
            owned=ranges.Owned(
                np.zeros(2 * threads + 2, dtype=np.uint64),
                np.zeros(2 * threads + 2, dtype=np.uint64),
            ),
            barriers=np.zeros(sharing.BARRIERS, dtype=np.uint64),
            states=self.states.reshape(-1),
            counts=np.zeros((threads, PART), dtype=np.uint32),
            sums=np.zeros((threads, threads), dtype=np.uint64),
            cursors=np.zeros((threads, max(8, threads)), dtype=np.uint64),
        )
        self.matches = np.empty(2 * threads * MATCH_PAIRS, dtype=np.uint32)
        self._used = np.zeros(threads, dtype=np.int64)
        self.is_full = False

    def begin_output(self) -> None:
        """Use the buffer again: what was handed over has been copied."""
        self._used[:] = 0

    def begin(self, flat: Any, keys: Any, rows: tuple[tuple[int, int], tuple[int, int]]) -> None:
        """Begin a batch of rows of R and of S: cut the ranges of blocks that the threads own."""
        from streamjoin.engines.kernels.flat import ranges

        self.states[:] = 0
        self.is_full = False
        ranges.cut_ranges(flat, keys, *rows, self._share.owned)

    def join(
        self, given: tuple[Any, ...], output: tuple[Codes, int], meter: Output, crew: Crew
    ) -> int:
        """Call :func:`~.sharing.join_shared` in each thread, once the other steps are done.

        Parameters
        ----------
        given : tuple
            Its parameters from ``times`` to ``arrivals``.
        output : tuple
            Its last ones, ``out`` and ``first``.
        meter : Output
        crew : Crew

        Returns
        -------
        int
            Where the output ends.
        """
        from streamjoin.engines.kernels.flat import sharing

        barriers = self._share.barriers
        settings = (
            *given, self.parts_done, self.is_full, self._share, self.matches, self._used, *output,
        )  # fmt: skip

        def work(thread: int) -> None:
            with self._ends_together(), meter.phase("probe"):
                sharing.join_shared(thread, *settings)

        barriers[:] = 0
        barriers[sharing.FULL_AT] = sharing.NEVER
        barriers[sharing.OUT_AT] = output[1]
        with self._ends_together():  # an interrupt may leave a thread without work
            crew.each(work, range(self._threads))
        self.is_full = bool(barriers[sharing.FULL_AT] != sharing.NEVER)
        return int(barriers[sharing.OUT_AT])

    @property
    def parts_done(self) -> int:
        """Parts that all threads have joined."""
        from streamjoin.engines.kernels.flat import joining

        return int(self.states[:, joining.DONE].min())

    @contextmanager
    def _ends_together(self) -> Iterator[None]:
        """When this fails or is interrupted, end the threads that wait at a barrier."""
        from streamjoin.engines.kernels.flat import sharing

        try:
            yield
        except BaseException:
            self._share.barriers[sharing.FAILED] = 1
            raise

    def make_room(self, pairs: int, share: int) -> None:
        """Take a new buffer, of ``share`` pairs a thread, if a thread has room for fewer pairs."""
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

    @property
    def is_stuck(self) -> bool:
        """Whether a thread that had no room has written nothing: an arrival needs all its room."""
        from streamjoin.engines.kernels.flat import joining

        waits = self.states[:, joining.DONE] == self.parts_done
        return self.is_full and bool((self.states[waits, joining.WRITTEN] == 0).any())
