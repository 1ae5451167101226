"""What the threads of a flat index share, and how they end together."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from streamjoin.engines.codes import Codes
from streamjoin.engines.crew import Crew
from streamjoin.engines.sliding.flat.output import Output, Room

PART = 1 << 14
"""Maximum arrivals that are planned at once: the plan, 48 bytes each, stays in a thread's cache."""

MATCH_PAIRS = 1 << 14
"""Initial pairs of a thread's buffer; it grows if an arrival, or in order a part, has more."""

CHUNK_PAIRS = 1 << 16
"""Pairs of the output that a thread claims at once, if they are wanted in no order."""


class Team:
    """What threads share during a batch.

    Parameters
    ----------
    threads : int

    Attributes
    ----------
    states : ndarray of uint64, shape (threads, STATE_WORDS)
    matches : ndarray of uint32
        Room for pairs: a buffer for each thread, twice, each of rows of R, then as many of S.
    """

    def __init__(self, threads: int) -> None:
        from streamjoin.engines.kernels.flat import blocks, joining, plans, ranges, sharing

        self._threads, self._recuts = threads, -1
        self.states = np.zeros((threads, joining.STATE_WORDS), dtype=np.uint64)
        self._share = sharing.Share(
            work=ranges.Work(
                np.zeros(2 * threads * (PART + blocks.LANES), dtype=np.uint8),
                np.zeros(2 * threads * (PART + blocks.LANES), dtype=np.uint32),
                np.zeros(2 * threads * (PART + blocks.LANES), dtype=np.uint32),
                np.zeros(2 * threads * (PART // blocks.LANES + 2), dtype=np.uint64),
                np.empty((threads * PART, plans.PLAN_WORDS), dtype=np.uint32),
            ),
            owned=ranges.Owned(
                np.zeros(2 * threads + 2, dtype=np.uint64),
                np.zeros(2 * threads + 2, dtype=np.uint64),
                np.zeros((2, ranges.BINS), dtype=np.uint64),
            ),
            barriers=np.zeros(sharing.BARRIERS, dtype=np.uint64),
            states=self.states.reshape(-1),
            counts=np.zeros(2 * threads * PART, dtype=np.uint32),
            sums=np.zeros((2 * threads, threads), dtype=np.uint64),
            cursors=np.zeros((threads, max(8, threads)), dtype=np.uint64),
        )
        self.matches = _buffers(threads, MATCH_PAIRS).reshape(-1)

    def begin(
        self,
        flat: Any,
        keys: Any,
        rows: tuple[tuple[int, int], tuple[int, int]],
        recuts: int,
    ) -> None:
        """Begin a batch of rows of R and of S: cut the ranges of blocks that the threads own.

        Work that was sampled before a map was cut again, as ``recuts`` counts, is forgotten.
        """
        from streamjoin.engines.kernels.flat import ranges

        self.states[:] = 0
        if recuts != self._recuts:
            self._share.owned.bins[:] = 0
            self._recuts = recuts
        ranges.cut_ranges(flat, keys, *rows, self._share.owned)

    def join(
        self,
        given: tuple[Any, ...],
        order: str,
        output: Room,
        meter: Output,
        crew: Crew,
    ) -> int:
        """Join what is not done in each thread, until all is or something has no room.

        Parameters
        ----------
        given : tuple
            Parameters of the kernels from ``times`` to ``arrivals``.
        order : str
            The order asked for.
        output : Room
        meter : Output
        crew : Crew

        Returns
        -------
        int
            Where the output ends.
        """
        from streamjoin.engines.kernels.flat import ordering, sharing

        barriers, (out, first, stop, *untouched) = self._share.barriers, output
        settings: tuple[Any, ...] = (*given, self._share, self.matches, out)
        join: Callable[..., None]
        if order == "none":
            join, settings = sharing.join_apart, (*settings, stop, CHUNK_PAIRS)
        else:
            settings = (*settings, first, self.parts_done, order == "inner")
            join = ordering.join_in_order

        def work(thread: int) -> None:
            with self._ends_together(), meter.phase("probe"):
                sharing.touch(thread, self._threads, out, *untouched)
                join(thread, *settings)

        barriers[:] = 0
        barriers[sharing.FULL_AT] = sharing.NEVER
        barriers[sharing.OUT_AT] = first
        crew.together(work, self._give_up)
        return self._without_gaps(out, int(barriers[sharing.OUT_AT]))

    def _without_gaps(self, out: Codes, end: int) -> int:
        """Move the last pairs to where chunks have room, and return where the output ends then."""
        from streamjoin.engines.kernels.flat import joining

        chunks = self.states[:, joining.CHUNK_AT : joining.CHUNK_END + 1]
        for gap, after in sorted(chunks.tolist(), reverse=True):
            moved = min(after - gap, end - after)
            for side in (0, len(out) >> 1):
                to = side + gap
                out[to : to + moved] = out[side + end - moved : side + end]
            end -= after - gap
        chunks[:] = 0
        return end

    @property
    def parts_done(self) -> int:
        """Parts that all threads have joined."""
        from streamjoin.engines.kernels.flat import joining

        return int(self.states[:, joining.DONE].min())

    @property
    def holds_pairs(self) -> bool:
        """Whether a thread has pairs that it has not handed over."""
        from streamjoin.engines.kernels.flat import joining

        return bool(self.states[:, joining.WRITTEN].any())

    def _give_up(self) -> None:
        """End the threads that wait at a barrier: one has failed, or an interrupt kept it away."""
        from streamjoin.engines.kernels.flat import sharing

        self._share.barriers[sharing.FAILED] = 1

    @contextmanager
    def _ends_together(self) -> Iterator[None]:
        """When this fails or is interrupted, end the others too."""
        try:
            yield
        except BaseException:
            self._give_up()
            raise

    def is_short(self, order: str) -> bool:
        """Whether a thread's buffer has no room for a part's matches, or for those of an arrival.

        A thread that could only not hand over its matches has some.
        """
        from streamjoin.engines.kernels.flat import joining

        waits = self.states[:, joining.PLANNED] > 0
        if order == "none":
            waits &= self.states[:, joining.WRITTEN] == 0
        return bool(waits.any())

    def grow(self) -> None:
        """Double the buffers, and keep what they hold."""
        old = self.matches.reshape(4 * self._threads, -1)
        new = _buffers(self._threads, 2 * old.shape[1])
        new[:, : old.shape[1]] = old
        self.matches = new.reshape(-1)


def _buffers(threads: int, pairs: int) -> Codes:
    """Return buffers of so many pairs; a vector may be read across the end of the last one."""
    from streamjoin.engines.kernels.flat import blocks

    words = 4 * threads * pairs
    return np.empty(words + blocks.LANES, dtype=np.uint32)[:words].reshape(-1, pairs)
