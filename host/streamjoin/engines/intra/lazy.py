"""What the lazy joins share: wait until a window is complete, then join it with all threads.

The IaWJ study, section 3.1: a lazy join buffers both streams until the window's end and then runs
a relational join. A subclass joins one window; here are the windows, the waiting, the packing of
keys and the threads.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from streamjoin.engines.arrivals import tumbling_slices
from streamjoin.engines.base import Capabilities, Engine, Job, Report, without_numba
from streamjoin.engines.encode import Codes, encode_keys
from streamjoin.metrics import Meter

OUTPUT_PAIRS = 1 << 18
"""Pairs that a thread hands over at once."""


class Crew:
    """The threads of a run: each call is a step with a barrier at its end."""

    def __init__(self, pool: ThreadPoolExecutor, threads: int) -> None:
        self._pool = pool
        self.threads = threads

    def each(self, work: Callable[..., None], *arguments: Iterable[Any]) -> None:
        """Call ``work`` for every element of the arguments; return when all are done."""
        for _ in self._pool.map(work, *arguments):
            pass

    def on_parts(self, work: Callable[[int, int], None], rows: int) -> None:
        """Call ``work(first, end)`` on equal parts of the rows, one for each thread."""
        bounds = [rows * part // self.threads for part in range(self.threads + 1)]
        self.each(work, bounds[:-1], bounds[1:])


@dataclass(frozen=True)
class WindowTuples:
    """One window's keys and where its rows begin in the streams.

    Attributes
    ----------
    r_keys, s_keys : ndarray of uint32
        Views of the streams' keys.
    r_first, s_first : int
        First row of the window in R and in S.
    """

    r_keys: Codes
    s_keys: Codes
    r_first: int
    s_first: int


class Emitter:
    """Collects one thread's matches in a buffer and hands it over when it is full."""

    def __init__(self, meter: Meter, window: WindowTuples) -> None:
        self._meter, self._window = meter, window

    def buffer(self, likely: int) -> tuple[Codes, Codes]:
        """Give buffers for about that many matches."""
        room = min(OUTPUT_PAIRS, max(1024, likely))
        out = np.empty((2, room), dtype=np.uint32)
        return out[0], out[1]

    def emit(self, r_rows: Codes, s_rows: Codes) -> None:
        """Hand over matches by rows of the window."""
        r_rows += np.uint32(self._window.r_first)
        s_rows += np.uint32(self._window.s_first)
        self._meter.emit(r_rows, s_rows)


class LazyEngine(Engine):
    """A join that runs when its window is complete."""

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
        """Compile the kernels, or load them from the cache, by joining a window of one."""
        report("compiling kernels")
        one = np.zeros(1, dtype=np.uint32)
        with ThreadPoolExecutor(1) as pool:
            self.join_window(WindowTuples(one, one, 0, 0), Crew(pool, 1), job, Meter())

    def run(self, job: Job, meter: Meter) -> None:
        """Join window after window as each becomes complete."""
        with meter.phase("partition"):
            r_keys, s_keys = encode_keys(job.r, job.s, job.predicate)
        with ThreadPoolExecutor(job.threads) as pool:
            crew = Crew(pool, job.threads)
            for end_us, r_rows, s_rows in tumbling_slices(job):
                if job.arrival == "replay":
                    due_us = (min(end_us, job.end_us) - job.start_us) / job.speedup
                    crew.each(meter.sleep_until_us, [due_us] * job.threads)
                window = WindowTuples(r_keys[r_rows], s_keys[s_rows], r_rows.start, s_rows.start)
                self.join_window(window, crew, job, meter)
                meter.progress(r_rows.stop + s_rows.stop, job.tuples)

    @abstractmethod
    def join_window(self, window: WindowTuples, crew: Crew, job: Job, meter: Meter) -> None:
        """Join one complete window and emit its matches."""
