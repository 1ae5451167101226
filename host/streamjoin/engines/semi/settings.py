"""What a semi-stream join is told: its stream, its budget, how it deals with faults."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from streamjoin.errors import InputError
from streamjoin.relations import Store

Uint64s = NDArray[np.uint64]
MIN_TABLE_BYTES = 1 << 13
MIN_TABLE_TUPLES = 17
"""Of the wider side, beside that: of eight pages each takes fewer than two."""


class Feed(Protocol):
    """A stream as it arrives.

    Attributes
    ----------
    keys : ndarray of uint64
        Join values of all that has arrived, or will.
    payload : ndarray of uint64
        What is kept of the tuples, or of each of them.
    words : int
        Payload words of a tuple.
    live : bool
        Whether tuples arrive in their own time, rather than all at once.
    """

    keys: Uint64s
    payload: Uint64s
    words: int
    live: bool

    def arrived(self) -> int:
        """Tuples that have arrived by now."""

    def wait(self, taken: int) -> None:
        """Sleep until more than these have arrived."""


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
        SSBJ, or MESHJOIN.
    switching_factor : float
        The inequality's hysteresis (sf).
    eviction_cycles : int
        Cycles between evictions.
    deadline_s : float
        How long the store may fail before the join does.
    shed_beyond : int
        Stream tuples that may wait; what is beyond is dropped and counted. 0 drops none.
    """

    memory_bytes: int | None
    partition_rows: int
    caching: bool
    switching_factor: float = 1.0
    eviction_cycles: int = 10
    deadline_s: float = 10.0
    shed_beyond: int = 0

    def table_bytes(self, store: Store, node_bytes: int) -> int | None:
        """What the budget leaves beside two disk buffers.

        Parameters
        ----------
        store : Store
            R.
        node_bytes : int
            Of a stream tuple in the tables.

        Raises
        ------
        InputError
            If that does not hold a chunk.
        """
        if self.memory_bytes is None:
            return None
        buffers = 2 * self.partition_rows * store.read_bytes
        left = self.memory_bytes - buffers
        min_bytes = MIN_TABLE_BYTES + MIN_TABLE_TUPLES * max(store.row_bytes, node_bytes)
        if left < min_bytes:
            raise InputError(
                f"a budget of {self.memory_bytes} bytes does not hold two disk buffers of "
                f"{self.partition_rows} rows ({buffers} bytes) and a chunk ({min_bytes} bytes): set "
                f"memory_kib={-(-(buffers + min_bytes) // 1024)} or more, or fewer partition_rows"
            )
        return left
