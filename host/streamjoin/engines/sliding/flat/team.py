"""What the threads of a flat index share, and how they end together."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

MATCH_PAIRS = 1 << 14
"""Initial pairs of a thread's buffer; it grows if a batch has more."""


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

    @contextmanager
    def ends_together(self) -> Iterator[None]:
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
