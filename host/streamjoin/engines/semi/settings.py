"""Settings of a semi-stream join: its stream, its budget, its handling of faults."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from streamjoin.errors import InputError
from streamjoin.relations import Store

Uint64s = NDArray[np.uint64]
MIN_TABLE_BYTES = 1 << 13
MIN_TABLE_TUPLES = 17
"""Minimum tuples of the wider side beyond MIN_TABLE_BYTES: two for each of eight pages, and one."""


class Feed(Protocol):
    """A stream as it arrives.

    Attributes
    ----------
    keys : ndarray of uint64
        Join values of all tuples that have arrived or will.
    payload : ndarray of uint64
        Payload of all tuples, or one for each of them.
    words : int
        Payload words of a tuple.
    live : bool
        Whether tuples arrive at their own times, not all at once.
    """

    keys: Uint64s
    payload: Uint64s
    words: int
    live: bool

    def arrived(self) -> int:
        """Tuples that have arrived by now."""

    def wait(self, taken: int) -> None:
        """Sleep until more than ``taken`` tuples have arrived."""


@dataclass(frozen=True)
class Settings:
    """How a semi-stream join runs.

    Attributes
    ----------
    memory_bytes : int or None
        Budget of both hash tables, queue and disk buffers; None takes what the stream needs.
    partition_rows : int
        Rows of the disk buffer (b).
    caching : bool
        True for SSBJ, False for MESHJOIN.
    switching_factor : float
        The inequality's hysteresis (sf).
    eviction_cycles : int
        Cycles of which the uses of a cached value are averaged.
    deadline_s : float
        Maximum seconds for which the store may fail.
    shed_beyond : int
        Maximum waiting stream tuples; more are dropped and counted. 0 drops none.
    filter_rows, filter_bits : int
        Rows of R that SSBJ's filter over R's keys is made for, and its bits for each of them; 0: no
        filter.
    """

    memory_bytes: int | None
    partition_rows: int
    caching: bool
    switching_factor: float = 1.0
    eviction_cycles: int = 4
    deadline_s: float = 10.0
    shed_beyond: int = 0
    filter_rows: int = 0
    filter_bits: int = 4

    def table_bytes(self, store: Store, node_bytes: int) -> int | None:
        """Return the bytes that the budget leaves beside two disk buffers.

        Parameters
        ----------
        store : Store
            R.
        node_bytes : int
            Bytes of a stream tuple in the tables.

        Raises
        ------
        InputError
            If they do not hold a chunk.
        """
        if self.memory_bytes is None:
            return None
        buffers = 2 * self.partition_rows * store.read_bytes
        left = self.memory_bytes - buffers
        min_bytes = MIN_TABLE_BYTES + MIN_TABLE_TUPLES * max(store.row_bytes, node_bytes)
        if left < min_bytes:
            raise InputError(
                f"a budget of {self.memory_bytes} bytes does not hold two disk buffers of "
                f"{self.partition_rows} rows ({buffers} bytes) and a chunk ({min_bytes} bytes): "
                f"set memory_kib={-(-(buffers + min_bytes) // 1024)} or more, "
                "or fewer partition_rows"
            )
        return left
