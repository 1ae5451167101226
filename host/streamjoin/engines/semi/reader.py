"""Reads a relation in a cycle, one partition ahead, in a thread of its own."""

import threading
import time
from dataclasses import dataclass

from streamjoin.errors import DeadlineError, InputError, StoreError, StreamJoinError
from streamjoin.relations import Partition, Store

FIRST_PAUSE_S = 0.02
LONGEST_PAUSE_S = 1.0
POLL_S = 0.2
PAUSE_S = 0.05
"""Seconds between interruptions of a read that nothing waits for."""

GRACE_S = 2.0
"""Seconds that the waiting thread waits beyond the reader's deadline: the reader's error says
more."""


@dataclass(frozen=True)
class CyclePartition:
    """One partition of a cycle.

    Attributes
    ----------
    index, partitions : int
        Its number, from 0, and the partitions of this cycle.
    rows : Partition
        What was read.
    read_ns : int
        Nanoseconds that it took, retries included.
    """

    index: int
    partitions: int
    rows: Partition
    read_ns: int


class Reader:
    """The scan of a store: :meth:`next` returns its partitions in a cycle, without end.

    At most two partitions are in memory, the one returned last and the one read ahead: the caller
    drops the last one before it asks for the next. A read that fails is repeated on a reopened
    store until the deadline: its rows have not been joined yet, so none is lost or joined twice.

    Parameters
    ----------
    store : Store
        Read by this reader only, as long as it runs.
    partition_rows : int
        Positions of a partition.
    deadline_s : float
        Maximum seconds for which a partition may fail, or a read hang.
    """

    def __init__(self, store: Store, partition_rows: int, deadline_s: float) -> None:
        self.retries = 0
        self._store, self._rows, self._deadline_s = store, partition_rows, deadline_s
        self._changed = threading.Condition()
        self._ready: CyclePartition | None = None
        self._asked = False
        self._error: StreamJoinError | None = None
        self._stopping = threading.Event()
        self._at = "partition 0"
        self._trouble = ""
        self._thread = threading.Thread(target=self._run, name="read-ahead", daemon=True)
        self._thread.start()

    def next(self) -> CyclePartition:
        """Wait for the next partition, and start reading the one after it.

        Raises
        ------
        StoreError
            If the store fails until the deadline, naming the partition.
        DeadlineError
            If a read hangs until the deadline.
        InputError
            If the relation has changed, such as the type of a column.
        """
        patient_until = time.monotonic() + self._deadline_s + GRACE_S
        with self._changed:
            self._asked = True
            while self._ready is None and self._error is None:
                if time.monotonic() > patient_until:
                    self._store.interrupt()
                    raise DeadlineError(
                        f"{self._store.location}: {self._at} could not be read within "
                        f"{self._deadline_s:g} s{self._trouble}"
                    )
                self._changed.wait(POLL_S)
            if self._ready is None and self._error is not None:
                raise self._error
            partition, self._ready, self._asked = self._ready, None, False
            assert partition is not None
            self._changed.notify_all()
        return partition

    def close(self) -> None:
        """End the thread; a read that hangs is interrupted, or abandoned."""
        self._stopping.set()
        with self._changed:
            self._changed.notify_all()
        until = time.monotonic() + GRACE_S
        while self._thread.is_alive() and time.monotonic() < until:
            self._store.interrupt()  # once is not enough: the next read may not have begun
            self._thread.join(PAUSE_S)

    def _run(self) -> None:
        index, partitions = 0, 1
        try:
            while not self._stopping.is_set():
                began = time.perf_counter_ns()
                rows, positions = self._read(index)
                if index == 0:
                    partitions = max(1, -(-positions // self._rows))
                partition = CyclePartition(index, partitions, rows, time.perf_counter_ns() - began)
                self._hand_over(partition)
                del partition, rows
                index = (index + 1) % partitions
        except StreamJoinError as error:
            self._fail(error)
        except Exception as error:  # a thread must not die in silence
            self._fail(
                StoreError(f"{self._store.location}: {self._at} could not be read: {error!r}")
            )

    def _hand_over(self, partition: CyclePartition) -> None:
        """Wait until the last partition was taken, and this one is asked for or taken."""
        with self._changed:
            while self._ready is not None and not self._stopping.is_set():
                self._changed.wait(POLL_S)
            self._ready = partition
            self._changed.notify_all()
            # If a caller waits for it, the next partition is read at once.
            while not self._asked and self._ready is not None and not self._stopping.is_set():
                self._changed.wait(POLL_S)

    def _fail(self, error: StreamJoinError) -> None:
        with self._changed:
            self._error = error
            self._changed.notify_all()

    def _read(self, index: int) -> tuple[Partition, int]:
        """Read a partition and the number of positions, with retries until the deadline."""
        first = index * self._rows
        self._trouble = ""
        self._at = f"partition {index} (rows {first} to {first + self._rows - 1})"
        give_up = time.monotonic() + self._deadline_s
        pause_s = FIRST_PAUSE_S
        broken = False
        while True:
            try:
                if broken:
                    self._store.reopen()
                positions = self._store.positions
                end = max(first, min(first + self._rows, positions))
                return self._store.read(first, end), positions
            except InputError as error:
                if not broken or time.monotonic() > give_up:  # a missing relation may return
                    raise InputError(f"{error} (at {self._at})") from None
                reason: Exception = error
            except (StoreError, OSError) as error:
                reason = error
            broken, self._trouble = True, f": {reason}"
            self.retries += 1
            if self._stopping.is_set() or time.monotonic() > give_up:
                raise StoreError(
                    f"{self._store.location}: {self._at} could not be read for "
                    f"{self._deadline_s:g} s: {reason}"
                ) from None
            self._stopping.wait(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
