"""Parallel radix join (PRJ): the IaWJ study, section 3.1.

Both streams are divided by radix bits until a partition of R fits the cache, with histograms, in
one or two passes of all threads; then each partition is joined by a cache-resident hash join.
Beyond the study: a partition that a heavy key makes large is split on both sides into several
tasks, so that no thread is idle, and a table keeps equal keys side by side, so that
duplicates are not chained.
"""

import itertools
import math
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.base import Knob
from streamjoin.engines.codes import Codes
from streamjoin.engines.crew import Crew
from streamjoin.engines.intra.lazy import LazyEngine
from streamjoin.engines.intra.window import Emitter, WindowTuples
from streamjoin.engines.job import Job
from streamjoin.metrics import Meter

Tuples = NDArray[np.uint64]
Int64s = NDArray[np.int64]

PASS_BITS = 10
"""Maximum radix bits of one pass: partitions written at once stay within cache and TLB."""

PARTITION_TUPLES = 2048
"""Target R tuples of a partition for the default radix bits: 16 KiB, half of an L1 cache."""

LARGEST_TUPLES = 1 << 14
"""R tuples of a partition up to which one pass does: 128 KiB and as much for its table are in an L2
cache. A second pass costs more than it gains."""

BATCH_TUPLES = 1 << 15
"""Target tuples of R or of S in a batch, which a thread takes at once."""


class Prj(LazyEngine):
    """Parallel radix join: partition by radix bits, then cache-resident hash joins."""

    name: ClassVar[str] = "prj"
    knobs: ClassVar[tuple[Knob, ...]] = (
        Knob("radix_bits", 0, "Radix bits, 0 to fit the input; above 10 in two passes.", 0, 18),
    )

    def join_complete(self, window: WindowTuples, crew: Crew, job: Job, meter: Meter) -> None:
        """Partition both sides, then join partition by partition."""
        bits = int(job.knobs["radix_bits"]) or _fitting_bits(len(window.r_keys))
        partitioner = _Partitioner(crew, meter)
        r, r_bounds = partitioner.divide(window.r_keys, bits)
        s, s_bounds = partitioner.divide(window.s_keys, bits)
        # In a second pass, a side is scattered from one array into another.
        spare_bytes = max(r.nbytes, s.nbytes) if bits > PASS_BITS else 0
        meter.holds(r.nbytes + s.nbytes + spare_bytes)
        with meter.phase("partition"):
            batches = _Batches(split_tasks(r_bounds, s_bounds, crew.threads))
        joiner = _Joiner(r, s, bits, batches, window, crew, meter)
        crew.each(joiner.work, range(crew.threads))


def _fitting_bits(r_tuples: int) -> int:
    wanted = math.ceil(math.log2(max(2, r_tuples / PARTITION_TUPLES)))
    if r_tuples <= LARGEST_TUPLES << PASS_BITS:
        wanted = min(wanted, PASS_BITS)
    return min(max(wanted, 1), 18)


class _Partitioner:
    """Divides tuples by the upper bits of their hash, with all threads."""

    def __init__(self, crew: Crew, meter: Meter) -> None:
        self._crew, self._meter = crew, meter

    def divide(self, keys: Codes, bits: int) -> tuple[Tuples, Int64s]:
        """Return the packed tuples by partition, and the partitions' bounds."""
        first_bits = bits if bits <= PASS_BITS else bits // 2
        tuples, bounds = self._first_pass(keys, first_bits)
        if first_bits == bits:
            return tuples, bounds
        return self._second_pass(tuples, bounds, first_bits, bits - first_bits)

    def _first_pass(self, keys: Codes, bits: int) -> tuple[Tuples, Int64s]:
        """All threads pack and scatter equal parts of the input, each to indices of its own."""
        from streamjoin.engines.kernels.intra import radix

        threads = self._crew.threads
        counts = np.zeros((threads, 1 << bits), dtype=np.int64)
        parts = [len(keys) * part // threads for part in range(threads + 1)]
        out = np.empty(len(keys), dtype=np.uint64)

        def count(part: int) -> None:
            for first, end in self._crew.pieces(parts[part], parts[part + 1]):
                with self._meter.phase("partition"):
                    radix.key_histogram(keys, first, end, bits, counts[part])

        def move(part: int) -> None:
            for first, end in self._crew.pieces(parts[part], parts[part + 1]):
                with self._meter.phase("partition"):
                    radix.key_scatter(keys, first, end, bits, offsets[part], out)

        self._crew.each(count, range(threads))
        # By partition, and within it by thread.
        ends = np.cumsum(counts.T.ravel()).reshape(counts.T.shape)
        offsets = np.ascontiguousarray((ends - counts.T).T, dtype=np.uint32)
        self._crew.each(move, range(threads))
        return out, np.concatenate([[0], ends[:, -1]])

    def _second_pass(
        self, tuples: Tuples, bounds: Int64s, used: int, bits: int
    ) -> tuple[Tuples, Int64s]:
        """One thread divides a partition further, then takes the next one."""
        from streamjoin.engines.kernels.intra import radix

        out = np.empty_like(tuples)
        finer = np.zeros((len(bounds) - 1, 1 << bits), dtype=np.int64)
        following = itertools.count()

        def divide(_: int) -> None:
            with self._meter.phase("partition"):
                # next() on a count is one step of the interpreter: no two threads get the same.
                while (part := next(following)) < len(finer):
                    first, end = int(bounds[part]), int(bounds[part + 1])
                    radix.histogram(tuples, first, end, used, bits, finer[part])
                    offsets = first + np.cumsum(finer[part]) - finer[part]
                    radix.scatter(tuples, first, end, used, bits, offsets, out)

        self._crew.each(divide, range(self._crew.threads))
        return out, np.concatenate([[0], np.cumsum(finer.ravel())])


def split_tasks(r_bounds: Int64s, s_bounds: Int64s, threads: int) -> Int64s:
    """Make the tasks: a partition each, large ones cut on both sides.

    Parameters
    ----------
    r_bounds, s_bounds : ndarray of int64, shape (partitions + 1,)
        Where partitions begin and end.
    threads : int
        Threads that share the work.

    Returns
    -------
    ndarray of int64, shape (tasks, 4)
        First and end in R, first and end in S; every pair of a partition in exactly one task.
    """
    tasks = np.stack([r_bounds[:-1], r_bounds[1:], s_bounds[:-1], s_bounds[1:]], axis=1)
    sizes = tasks[:, 1::2] - tasks[:, ::2]
    # A part is cut only if it is large for a cache and for the share of one thread.
    limits = [
        max(BATCH_TUPLES, int(bounds[-1]) // (8 * threads)) for bounds in (r_bounds, s_bounds)
    ]
    both, large = (sizes > 0).all(axis=1), (sizes > limits).any(axis=1)
    cut = [_cut(task, limits) for task in tasks[both & large]]
    return np.concatenate([tasks[both & ~large], *cut])


def _cut(task: Int64s, limits: list[int]) -> Int64s:
    r_first, r_end, s_first, s_end = task.tolist()
    return np.array(
        [
            (r, min(r + limits[0], r_end), s, min(s + limits[1], s_end))
            for r in range(r_first, r_end, limits[0])
            for s in range(s_first, s_end, limits[1])
        ],
        dtype=np.int64,
    )


class _Batches:
    """Hands the tasks out in batches of about equal work, to whichever thread asks next."""

    def __init__(self, tasks: Int64s) -> None:
        self._tasks = tasks
        weights = np.cumsum(np.maximum(tasks[:, 1] - tasks[:, 0], tasks[:, 3] - tasks[:, 2]))
        steps = np.arange(BATCH_TUPLES, int(weights[-1]) if len(weights) else 0, BATCH_TUPLES)
        cuts = {0, *np.searchsorted(weights, steps).tolist(), len(tasks)}
        self._bounds = itertools.pairwise(sorted(cuts))
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[Int64s]:
        while True:
            with self._lock:
                bounds = next(self._bounds, None)
            if bounds is None:
                return
            yield self._tasks[bounds[0] : bounds[1]]


@dataclass(frozen=True)
class _Joiner:
    """Joins batches of tasks, in any number of threads."""

    r: Tuples
    s: Tuples
    bits: int
    batches: _Batches
    window: WindowTuples
    crew: Crew
    meter: Meter

    def work(self, _thread: int) -> None:
        """Take batches until there are none."""
        from streamjoin.engines.kernels.intra import radix

        emitter = Emitter(self.meter, self.window, self.crew.threads == 1)
        for tasks in self.batches:
            with self.meter.phase("build_or_sort"):
                tuples, bounds_room = radix.table_room(tasks)
                bounds = np.empty(bounds_room, dtype=np.uint32)
                table = np.empty(tuples, dtype=np.uint64)
                radix.build_tables(self.r, tasks, self.bits, bounds, table)
            state = np.array([0, 0, -1, 0, 0], dtype=np.int64)
            likely = int((tasks[:, 3] - tasks[:, 2]).sum())
            while state[0] < len(tasks):
                self.crew.check()
                with self.meter.phase("probe"):
                    out_r, out_s = emitter.buffer(likely)
                    matches = radix.probe_tables(
                        self.s, tasks, self.bits, bounds, table, state, out_r, out_s
                    )
                    emitter.emit(out_r[:matches], out_s[:matches])
