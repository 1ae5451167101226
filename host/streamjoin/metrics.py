"""The one module that reads clocks: the time, memory and matches of a run.

Definitions: the IaWJ study, section 4.1, and SplitJoin, section 6 (``docs/semantics.md``).
"""

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.counters import Counters
from streamjoin.errors import check_room
from streamjoin.memory import ResidentSet, follows, joined, own
from streamjoin.tuples import Int64s, Pairs, Rows

if TYPE_CHECKING:
    from streamjoin.engines.job import Job

PHASES = ("wait", "partition", "build_or_sort", "merge", "probe", "other")
LATENCY_FROM = ("run start", "arrival", "file", "acceptance")
"""Start of a match's latency.

``run start``: the input is there when the run starts. ``arrival``: the later tuple's arrival in a
replay. ``file``: the moment in which the file that holds the later tuple appears. ``acceptance``:
the cycle in which the hardware takes the later tuple. Latencies of different origins are different
quantities.
"""

CURVE_SHARES = 20
"""Points of the progressiveness curve above zero."""

LONGEST_SLEEP_S = 3600.0

UNWATCHED_NS = 5_000_000
"""Nanoseconds of a run before its memory is sampled: a small join is over by then."""

ProgressCallback = Callable[[int, int], None]


@dataclass
class _Batch:
    r_rows: Rows
    s_rows: Rows
    produced_us: NDArray[np.float64] | float
    latency_us: NDArray[np.float64] | None


SMALL_PAIRS = 1024
"""Minimum pairs of a batch that is kept as it is; smaller batches are copied into a block, so that
many small batches cost no more than their pairs."""

BLOCK_PAIRS = 4096

MAX_SMALL_KEPT = 64
"""Maximum small batches that are kept as they are, as they follow the ones before in memory."""


class _Block:
    """Small batches, one after another."""

    def __init__(self) -> None:
        self.rows = np.empty((2, BLOCK_PAIRS), dtype=np.int64)
        self.produced_us = np.empty(BLOCK_PAIRS)
        self.used = 0

    def add(self, batch: "_Batch") -> bool:
        """Append a batch; return False if it does not fit or has latencies."""
        end = self.used + len(batch.r_rows)
        if end > BLOCK_PAIRS or batch.latency_us is not None:
            return False
        self.rows[0, self.used : end], self.rows[1, self.used : end] = batch.r_rows, batch.s_rows
        self.produced_us[self.used : end] = batch.produced_us
        self.used = end
        return True

    def batch(self) -> "_Batch":
        """Return all appended batches as one, without spare room."""
        rows = self.rows[:, : self.used].astype(np.uint32)
        return _Batch(rows[0], rows[1], self.produced_us[: self.used].copy(), None)


@dataclass
class Meter:
    """Collects what an engine emits and where its threads spend their time.

    An engine calls :meth:`phase` around its work, :meth:`emit` with pairs as they are produced, and
    :meth:`progress` at intervals.

    Parameters
    ----------
    on_progress : callable, optional
        Called with ``(done, total)`` input tuples.
    fitting_pairs : int, optional
        Maximum pairs that fit into memory; the run ends with an error beyond them.
    max_pairs : int, optional
        Maximum pairs asked for; the run ends with an error beyond them.
    latency_from : str, optional
        Start of the latencies that an engine emits itself, one of :data:`LATENCY_FROM`; set before
        the first :meth:`emit`.
    workers : int, optional
        Threads that worked; an engine that uses fewer than the job has sets it.
    """

    on_progress: ProgressCallback | None = None
    device: dict[str, Any] = field(default_factory=dict)
    _batches: list[_Batch] = field(default_factory=list)
    _phase_ns: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PHASES, 0))
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _started_ns: int = 0
    _ended_ns: int = 0
    _cpu_started_ns: int = 0
    _cpu_ended_ns: int = 0
    fitting_pairs: int | None = None
    max_pairs: int | None = None
    latency_from: str | None = None
    workers: int | None = None
    _block: _Block = field(default_factory=_Block)
    _pairs: int = 0
    _held_bytes: int = 0
    _peak_held_bytes: int = 0
    _memory: ResidentSet | None = None
    _unwatched: bool = False
    _small_kept: int = 0
    _counters: Counters | None = None

    def start(self, small: bool = False) -> None:
        """Start the run's clock; arrival time 0 is now.

        Parameters
        ----------
        small : bool
            Whether the run is likely to end before its memory can be sampled.
        """
        self._memory, self._unwatched = ResidentSet(small), True
        if not small:
            self._watch()
        self._counters = Counters()
        self._cpu_started_ns = time.process_time_ns()
        self._started_ns = time.perf_counter_ns()

    def stop(self) -> None:
        """Stop the run's clock."""
        self._ended_ns = time.perf_counter_ns()
        with self._lock:
            self._close_block()
        self._cpu_ended_ns = time.process_time_ns()
        if self._counters is not None:
            self._counters.stop()
        if self._memory is not None:
            self._memory.stop()

    def now_us(self) -> float:
        """Microseconds since the start."""
        return (time.perf_counter_ns() - self._started_ns) / 1e3

    def sleep_until_us(self, due_us: float) -> None:
        """Sleep until a time after the start, in phase ``wait``."""
        with self.phase("wait"):
            while (left_us := due_us - self.now_us()) > 0:
                time.sleep(min(left_us / 1e6, LONGEST_SLEEP_S))

    def sleep_until_arrived(self, job: "Job") -> None:
        """Sleep until the last tuple of a replay has arrived; at once for data at rest."""
        if job.arrival == "replay":
            self.sleep_until_us((job.end_us - job.start_us) / job.speedup)

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Count the calling thread's time inside in one of :data:`PHASES`."""
        began = time.perf_counter_ns()
        try:
            yield
        finally:
            ended = time.perf_counter_ns()
            with self._lock:
                self._phase_ns[name] += ended - began
                if self._unwatched and ended - self._started_ns > UNWATCHED_NS:
                    self._watch()

    def _watch(self) -> None:
        self._unwatched = False
        if self._memory is not None:
            self._memory.watch()

    @property
    def phase_ns(self) -> dict[str, int]:
        """Nanoseconds spent in each phase so far."""
        with self._lock:
            return dict(self._phase_ns)

    def spend(self, name: str, spent_ns: int) -> None:
        """Count time that a thread of another process spent in a phase."""
        with self._lock:
            self._phase_ns[name] += spent_ns

    def emit(
        self,
        r_rows: Rows,
        s_rows: Rows,
        produced_us: NDArray[np.float64] | float | None = None,
        latency_us: NDArray[np.float64] | None = None,
    ) -> bool:
        """Add pairs, stamped now unless the engine gives their times.

        Parameters
        ----------
        r_rows, s_rows : ndarray, shape (pairs,)
            Row numbers; a batch of fewer than :data:`SMALL_PAIRS` may be copied.
        produced_us : float or ndarray of float64, shape (pairs,), optional
            When they, or each of them, were produced, in microseconds since the start, on the
            run's own clock (a device's is its cycles).
        latency_us : ndarray of float64, shape (pairs,), optional
            Each match's latency since ``latency_from``, if the engine measures it itself.

        Returns
        -------
        bool
            Whether the row numbers were kept, not copied.

        Raises
        ------
        TooLargeError
            If there are more pairs than ``fitting_pairs`` or ``max_pairs``.
        ValueError
            If there are latencies without ``latency_from``, or the other way round.
        """
        if (latency_us is None) != (self.latency_from is None):
            raise ValueError(
                "latency_us must be given if and only if latency_from says from when it is "
                f"counted, not {self.latency_from!r}"
            )
        if not len(r_rows):
            return False
        stamp = self.now_us() if produced_us is None else produced_us
        batch = _Batch(r_rows, s_rows, stamp, latency_us)
        with self._lock:
            self._pairs += len(r_rows)
            kept = len(r_rows) >= SMALL_PAIRS or self._goes_on(r_rows)
            if kept or not self._block.add(batch):
                self._close_block()
                kept = kept or not self._block.add(batch)
                if kept:
                    self._batches.append(batch)
        self.check_room(0)
        return kept

    def _goes_on(self, r_rows: Rows) -> bool:
        """Whether rows lie behind the last batch's: then few of them are kept, too."""
        if not self._batches or self._block.used or self._small_kept == MAX_SMALL_KEPT:
            return False
        goes_on = follows(self._batches[-1].r_rows, r_rows)
        self._small_kept += goes_on
        return goes_on

    def check_room(self, pairs: int) -> None:
        """Refuse pairs that an engine still holds, if they would be too many.

        Raises
        ------
        TooLargeError
            If there are more pairs than ``fitting_pairs`` or ``max_pairs``.
        """
        check_room(self._pairs + pairs, self.max_pairs, self.fitting_pairs)

    def _close_block(self) -> None:
        """Append the small batches so far to the others."""
        if self._block.used:
            self._batches.append(self._block.batch())
            self._block.used = 0

    def holds(self, count: int) -> None:
        """Count bytes of the algorithm's own structures, until :meth:`let_go`."""
        with self._lock:
            self._held_bytes += count
            self._peak_held_bytes = max(self._peak_held_bytes, self._held_bytes)

    def let_go(self) -> None:
        """Note that all counted structures were freed."""
        with self._lock:
            self._held_bytes = 0

    def progress(self, done: int, total: int) -> None:
        """Report how many input tuples are done."""
        if self.on_progress is not None:
            self.on_progress(done, total)

    @property
    def wall_s(self) -> float:
        """Seconds from start to stop."""
        return (self._ended_ns - self._started_ns) / 1e9

    @property
    def cpu_s(self) -> float:
        """CPU seconds of all threads from start to stop."""
        return (self._cpu_ended_ns - self._cpu_started_ns) / 1e9

    @property
    def elapsed_s(self) -> float:
        """Seconds on the run's own clock: a device's cycles by its clock, else wall time."""
        if "cycles" in self.device:
            return float(self.device["cycles"] / self.device["clock_hz"])
        return self.wall_s

    @property
    def resources(self) -> dict[str, Any]:
        """Resources of the run: memory, its own structures, hardware counters."""
        memory, counters = self._memory, self._counters
        return {
            "peak_bytes": memory.peak_bytes if memory else None,
            "memory": memory.curve if memory else [],
            "structure_bytes": self._peak_held_bytes or None,
            "counters": counters.found if counters else None,
            "counters_note": counters.note if counters else None,
        }

    def pairs(self) -> Pairs:
        """Everything emitted, in the order of emission."""
        with self._lock:
            self._close_block()
        pairs = Pairs(
            own(joined([b.r_rows for b in self._batches])),
            own(joined([b.s_rows for b in self._batches])),
        )
        start = 0
        for batch in self._batches:  # views: the rows are held once, not twice
            rows = slice(start, start + len(batch.r_rows))
            batch.r_rows, batch.s_rows, start = pairs.r_rows[rows], pairs.s_rows[rows], rows.stop
        return pairs

    def phases_ms(self, threads: int) -> dict[str, float]:
        """Return thread-milliseconds by phase; ``other`` is the rest of threads x wall time."""
        total_ns = threads * (self._ended_ns - self._started_ns)
        spent = {name: self._phase_ns[name] for name in PHASES if name != "other"}
        spent["other"] = max(0, total_ns - sum(spent.values()))
        return {name: spent[name] / 1e6 for name in PHASES}

    def latency_us(self, arrived_us: NDArray[np.float64] | None) -> dict[str, float | None]:
        """Return quantiles of the matches' latency in microseconds.

        Parameters
        ----------
        arrived_us : ndarray of float64, shape (pairs,), optional
            When each pair's later tuple arrived, on the run's clock; 0 for data at rest.
        """
        names, shares = ("p50", "p95", "p99", "max"), (0.5, 0.95, 0.99, 1.0)
        if not self._batches:
            return dict.fromkeys(names)
        if self.latency_from is not None:
            latency = np.concatenate([np.asarray(b.latency_us) for b in self._batches])
        elif arrived_us is None:
            times_us, counts = self._stamps()
            ranks = [max(1, math.ceil(int(counts[-1]) * share)) for share in shares]
            at = np.searchsorted(counts, ranks)
            return {name: float(times_us[i]) for name, i in zip(names, at, strict=True)}
        else:
            latency = np.maximum(self._produced_us() - arrived_us, 0.0)
        # Quantiles that are values (inverse of the empirical distribution); NumPy has this method
        # from 1.22 on, and boards have 1.21.
        indices = [max(0, math.ceil(len(latency) * share) - 1) for share in shares]
        latency.partition(indices)
        return {name: float(latency[at]) for name, at in zip(names, indices, strict=True)}

    def progress_curve(self) -> list[list[float]]:
        """Return points ``[share of all matches, milliseconds]``, from share 0 to 1."""
        if not self._batches:
            return []
        times_us, counts = self._stamps()
        shares = np.linspace(0, 1, CURVE_SHARES + 1)[1:]
        ranks = np.ceil(shares * int(counts[-1])).astype(np.int64)
        times_ms = times_us[np.searchsorted(counts, ranks)] / 1e3
        curve = [[float(s), float(t)] for s, t in zip(shares, times_ms, strict=True)]
        return [[0.0, float(times_us[0] / 1e3)], *curve]

    def _stamps(self) -> tuple[NDArray[np.float64], Int64s]:
        """Return the times of production in order, and the pairs up to each."""
        times = [np.atleast_1d(np.asarray(b.produced_us, np.float64)) for b in self._batches]
        # A batch is stamped once, or each of its pairs is.
        counts = [
            np.full(len(own), len(b.r_rows) // len(own), dtype=np.int64)
            for own, b in zip(times, self._batches, strict=True)
        ]
        times_us, per_time = np.concatenate(times), np.concatenate(counts)
        order = np.argsort(times_us, kind="stable")
        return times_us[order], np.cumsum(per_time[order])

    def _produced_us(self) -> NDArray[np.float64]:
        return np.concatenate(
            [np.broadcast_to(b.produced_us, len(b.r_rows)) for b in self._batches]
        ).astype(np.float64)


def arrival_clock_us(ts: Int64s, start_us: int, speedup: float) -> NDArray[np.float64]:
    """Return when tuples arrive in a replay, in microseconds after its start."""
    return (ts - start_us) / speedup
