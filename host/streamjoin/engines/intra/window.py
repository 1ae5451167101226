"""What all intra-window joins share: windows, encoded keys, output of matches.

A subclass joins one window, lazily (:mod:`~streamjoin.engines.intra.lazy`) or while its tuples
arrive (:mod:`~streamjoin.engines.intra.eager`).
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.arrivals import tumbling_slices
from streamjoin.engines.base import Capabilities, Engine, Report, without_numba
from streamjoin.engines.codes import Codes
from streamjoin.engines.crew import Crew
from streamjoin.engines.encode import encode_keys, encode_stream_keys, prepare_keys
from streamjoin.engines.intra.reduction import compile_filter, reduced
from streamjoin.engines.job import Job
from streamjoin.memory import prefer_huge_pages, reserved
from streamjoin.metrics import Meter
from streamjoin.tuples import Int64s
from streamjoin_common.language.kinds import R_ONLY

OUTPUT_PAIRS = 1 << 20
"""Maximum pairs of a thread's buffer: large enough for huge pages, small enough to flush often."""

RESERVED_PAIRS = 1 << 25
"""Maximum pairs that a thread of its own reserves room for: 256 MB of addresses."""

HUGE_FROM_PAIRS = 1 << 15
"""Pairs from which on a buffer's pages are huge: small results would clear more than they fill."""

MIN_SHARED = 1 << 16
"""Minimum tuples of a window at rest that threads share: fewer are joined sooner by one."""

MIN_ROOM = 1024
"""Minimum pairs that a buffer must have room for; otherwise a thread gets a new one."""

_PREPARED: set[tuple[object, ...]] = set()
"""Engines and their knobs whose kernels this process has compiled or loaded."""


@dataclass(frozen=True)
class WindowTuples:
    """One window's keys, their arrival times, and its first rows in the streams.

    Attributes
    ----------
    r_keys, s_keys : ndarray of uint32
        Views of the streams' keys.
    r_first, s_first : int
        First row of the window in R and in S.
    r_ts, s_ts : ndarray of int64 or None
        When each tuple arrives in a replay, in microseconds; None for data at rest.
    end_us : float
        When the window is complete, on the run's clock.
    r_rows, s_rows : ndarray of uint32, or None
        Which rows of the streams these are; None where they follow one another.
    """

    r_keys: Codes
    s_keys: Codes
    r_first: int = 0
    s_first: int = 0
    r_ts: Int64s | None = None
    s_ts: Int64s | None = None
    end_us: float = 0.0
    r_rows: Codes | None = None
    s_rows: Codes | None = None

    @property
    def tuples(self) -> int:
        """Tuples of both streams."""
        return len(self.r_keys) + len(self.s_keys)


class Emitter:
    """Gives one thread a buffer for matches and emits them without a copy.

    A thread that joins ``alone`` reserves room for all its matches, of which only what is written
    takes memory: they follow one another, and the result is not put together from parts.
    """

    def __init__(self, meter: Meter, window: WindowTuples, alone: bool) -> None:
        self._meter, self._window, self._alone = meter, window, alone
        self._out: Codes = np.empty((2, 0), dtype=np.uint32)
        self._huge = False
        self._emitted = 0

    def buffer(self, likely: int) -> tuple[Codes, Codes]:
        """Return a buffer for matches, of which about ``likely`` are expected in all."""
        if self._out.shape[1] < MIN_ROOM:
            self._out, self._huge = self._new(likely), False
        return self._out[0, :OUTPUT_PAIRS], self._out[1, :OUTPUT_PAIRS]

    def _new(self, likely: int) -> Codes:
        maximum = len(self._window.r_keys) * len(self._window.s_keys) + MIN_ROOM
        if self._alone and maximum > HUGE_FROM_PAIRS:
            room = min(RESERVED_PAIRS, maximum)
            try:
                return reserved(2 * room, np.uint32).reshape(2, room)
            except MemoryError:  # addresses are limited: parts, as of several threads, need fewer
                self._alone = False
        room = min(OUTPUT_PAIRS, maximum, max(MIN_ROOM, likely))
        return np.empty((2, room), dtype=np.uint32)

    def emit(
        self, r_rows: Codes, s_rows: Codes, produced_us: NDArray[np.float64] | float | None = None
    ) -> None:
        """Emit the first matches of the buffer, given by rows of the window."""
        window = self._window
        _name(r_rows, window.r_first, window.r_rows)
        _name(s_rows, window.s_first, window.s_rows)
        if self._meter.emit(r_rows, s_rows, produced_us):  # else the buffer is free again
            self._out = self._out[:, len(r_rows) :]
            self._emitted += len(r_rows)
        if self._alone and not self._huge and self._emitted >= HUGE_FROM_PAIRS:
            prefer_huge_pages(self._out)
            self._huge = True


def _name(rows: Codes, first: int, named: Codes | None) -> None:
    """Replace rows of a window by those of its stream."""
    if named is not None:
        rows[:] = named[rows]
    elif first:
        rows += np.uint32(first)


class IntraWindowEngine(Engine):
    """An equi-join of one complete window after another."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        predicates=frozenset({"equi"}),
        windows=frozenset({"all", "tumbling"}),
        order="none",
        platform="cpu",
        parallel=True,
    )

    def unusable(self) -> str | None:
        """Say so where Numba has no wheel."""
        return without_numba()

    def prepare(self, job: Job, report: Report) -> None:
        """Compile the kernels, or load them from the cache, by joining small windows."""
        prepared = (self.name, job.how in R_ONLY, *job.knobs.items())
        if prepared not in _PREPARED:
            low, high = np.zeros(2, dtype=np.uint32), np.full(1, 1 << 31, dtype=np.uint32)
            with Crew(1) as crew:
                for keys in ((low[:1], low[:1]), (low, low[:1]), (high, high)):  # S is shorter, too
                    self.join_window(WindowTuples(*keys), crew, job, Meter())
            _PREPARED.add(prepared)
        prepare_keys(job.r, job.s, job.predicate)
        compile_filter(job)

    def run(self, job: Job, prepared: None, meter: Meter) -> None:
        """Join window after window."""
        with meter.phase("partition"):
            whole, (job, *left) = job, reduced(job)
            # Values are numbered by the shorter side: its table is smaller.
            encode = encode_stream_keys if job.s.rows < job.r.rows else encode_keys
            r_keys, s_keys = encode(job.r, job.s, job.predicate)
        replayed = job.arrival == "replay"
        workers = 1
        with Crew(job.threads) as crew, Crew(1) as alone:
            for end_us, r_rows, s_rows in tumbling_slices(job):
                complete_us = (min(end_us, job.end_us) - job.start_us) / job.speedup
                window = WindowTuples(
                    r_keys[r_rows],
                    s_keys[s_rows],
                    r_rows.start,
                    s_rows.start,
                    job.r.ts[r_rows] if replayed else None,
                    job.s.ts[s_rows] if replayed else None,
                    complete_us if replayed else 0.0,
                    *left,
                )
                shares = replayed or window.tuples >= MIN_SHARED
                workers = crew.threads if shares else workers
                self.join_window(window, crew if shares else alone, job, meter)
                meter.let_go()
                dropped = whole.tuples - job.tuples
                meter.progress(r_rows.stop + s_rows.stop + dropped, whole.tuples)
            meter.workers = workers
            if replayed:  # the replay lasts until its last tuple, which may be in no joined window
                crew.sleep_until_us(meter, (job.end_us - job.start_us) / job.speedup)

    @abstractmethod
    def join_window(self, window: WindowTuples, crew: Crew, job: Job, meter: Meter) -> None:
        """Join one window and emit its matches."""
