"""Sort-merge joins MWay and MPass: the IaWJ study, section 3.1.

Both streams are divided by key range, each thread dividing an equal part of the input. What a range
gets from a thread is cut into runs that fit a cache. Runs are sorted by the digits of their keys,
merged range by range into a global order, and joined in a single pass. The study sorts by
comparisons with vector instructions, as the knob ``sort`` can; digits are faster by a factor of
5 to 10 where those compress slowly, and as fast where they do not. MWay merges all runs of a
range at once, by a tree of merges in the cache; MPass in successive passes of two.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.base import Knob, Report
from streamjoin.engines.codes import Codes
from streamjoin.engines.crew import Crew
from streamjoin.engines.intra.lazy import LazyEngine
from streamjoin.engines.intra.window import Emitter, WindowTuples
from streamjoin.engines.job import Job
from streamjoin.metrics import Meter

Tuples = NDArray[np.uint64]
Int64s = NDArray[np.int64]
Sort = Callable[[Tuples, Tuples], object]

RANGE_TUPLES = 1 << 18
"""Target tuples of both streams in a range: two megabytes, about an L2 cache."""

RUN_TUPLES = 1 << 15
"""Maximum tuples of a run: a quarter of a megabyte, sorted within an L2 cache."""

SAMPLES_PER_RANGE = 32


@dataclass(frozen=True)
class _Runs:
    """One stream divided by range: runs that begin at ``bounds[range, thread]``, and an end."""

    tuples: Tuples
    bounds: Int64s

    def of_range(self, number: int) -> Int64s:
        """Bounds of the runs of one range, with the end of the last."""
        threads = self.bounds.shape[1]
        flat = self.bounds.ravel()
        return flat[number * threads : (number + 1) * threads + 1]


class _SortMerge(LazyEngine):
    """What MWay and MPass share: everything except merging."""

    knobs: ClassVar[tuple[Knob, ...]] = (
        Knob("ranges", 0, "Key ranges, 0 to fit the input.", 0, 1 << 16),
        Knob(
            "sort",
            "radix",
            "How runs are sorted: by digits, or by comparing with vector instructions or without.",
            choices=("radix", "simd", "scalar"),
        ),
    )

    def prepare(self, job: Job, report: Report) -> None:
        """Compile the kernels; a window of one tuple has nothing to merge."""
        super().prepare(job, report)
        self._merged(np.zeros(2, dtype=np.uint64), np.arange(3))

    def join_complete(self, window: WindowTuples, crew: Crew, job: Job, meter: Meter) -> None:
        """Divide, sort, merge, join."""
        with meter.phase("partition"):
            splitters = _splitters(window, int(job.knobs["ranges"]), crew.threads)
        sides = [_divide(keys, splitters, crew, meter) for keys in (window.r_keys, window.s_keys)]
        meter.holds(sum(side.tuples.nbytes for side in sides))
        following = itertools.count()
        sort = _sorter(job)

        def work(_thread: int) -> None:
            emitter = Emitter(meter, window, crew.threads == 1)
            spare = np.empty(RUN_TUPLES, dtype=np.uint64)
            # next() on a count is one step of the interpreter: no two threads get the same.
            while (number := next(following)) <= len(splitters):
                r, s = (
                    self._sorted(side, side.of_range(number), sort, spare, meter) for side in sides
                )
                _join_sorted(r, s, emitter, crew, meter)

        crew.each(work, range(crew.threads))

    def _sorted(
        self, side: _Runs, bounds: Int64s, sort: Sort, spare: Tuples, meter: Meter
    ) -> Tuples:
        """Sort the runs of one range and merge them."""
        bounds = cut_into_runs(bounds)
        with meter.phase("build_or_sort"):
            for first, end in itertools.pairwise(bounds.tolist()):
                sort(side.tuples[first:end], spare)
        with meter.phase("merge"):
            return self._merged(side.tuples[bounds[0] : bounds[-1]], bounds - bounds[0])

    def _merged(self, runs: Tuples, bounds: Int64s) -> Tuples:
        """Return neighbouring sorted runs as one."""
        raise AssertionError("a subclass merges")


def cut_into_runs(bounds: Int64s) -> Int64s:
    """Return bounds of runs of at most :data:`RUN_TUPLES` tuples within the given bounds."""
    parts = [
        np.arange(first, end, RUN_TUPLES, dtype=np.int64)
        for first, end in itertools.pairwise(bounds.tolist())
    ]
    return np.concatenate([*parts, bounds[-1:]])


def _sorter(job: Job) -> Sort:
    from streamjoin.engines.kernels.intra import sorting

    sorts: dict[object, Sort] = {
        "radix": sorting.sort_by_digits,
        "simd": lambda run, _: run.sort(),
        "scalar": lambda run, _: sorting.sort_scalar(run),
    }
    return sorts[job.knobs["sort"]]


def _join_sorted(r: Tuples, s: Tuples, emitter: Emitter, crew: Crew, meter: Meter) -> None:
    from streamjoin.engines.kernels.intra import merging

    state = np.array([0, 0, -1], dtype=np.int64)
    while state[1] < len(s):
        crew.check()
        with meter.phase("probe"):
            out_r, out_s = emitter.buffer(4 * len(s))
            matches = merging.merge_join(r, s, len(r), len(s), state, out_r, out_s, 0)
            emitter.emit(out_r[:matches], out_s[:matches])


class MWay(_SortMerge):
    """Multi-way sort-merge join: range partitions, SIMD sort, one merge of all runs."""

    name: ClassVar[str] = "mway"

    def _merged(self, runs: Tuples, bounds: Int64s) -> Tuples:
        from streamjoin.engines.kernels.intra import merging

        if len(bounds) <= 2:  # one run, or none
            return runs
        out = np.empty_like(runs)
        merging.merge_many(runs, bounds, out)
        return out


class MPass(_SortMerge):
    """Multi-pass sort-merge join: range partitions, SIMD sort, successive merges of two runs."""

    name: ClassVar[str] = "mpass"

    def _merged(self, runs: Tuples, bounds: Int64s) -> Tuples:
        from streamjoin.engines.kernels.intra import merging

        return merging.merge_in_passes(runs, bounds)


def _splitters(window: WindowTuples, ranges: int, threads: int) -> Codes:
    """Choose keys that divide both streams into about equal ranges, from a regular sample."""
    total = len(window.r_keys) + len(window.s_keys)
    ranges = ranges or max(threads, -(-total // RANGE_TUPLES))
    step = max(1, total // (ranges * SAMPLES_PER_RANGE))
    sample = np.sort(np.concatenate([window.r_keys[::step], window.s_keys[::step]]))
    positions = len(sample) * np.arange(1, ranges) // ranges
    return np.unique(sample[positions]) if len(sample) else sample


def _divide(keys: Codes, splitters: Codes, crew: Crew, meter: Meter) -> _Runs:
    """All threads move equal parts of the input to the ranges, each to indices of its own."""
    from streamjoin.engines.kernels.intra import merging

    lowest, highest = (keys.min(), keys.max()) if len(keys) else (np.uint32(0), np.uint32(0))
    shift = np.uint32(max(0, int(highest - lowest).bit_length() - merging.GUIDE_BITS))
    guide = np.empty((int(highest - lowest) >> int(shift)) + 1, dtype=np.int64)
    merging.make_guide(splitters, lowest, shift, guide)
    counts = np.zeros((crew.threads, len(splitters) + 1), dtype=np.int64)
    parts = [len(keys) * part // crew.threads for part in range(crew.threads + 1)]
    out = np.empty(len(keys), dtype=np.uint64)

    def count(part: int) -> None:
        for first, end in crew.pieces(parts[part], parts[part + 1]):
            with meter.phase("partition"):
                merging.range_histogram(
                    keys, first, end, splitters, lowest, shift, guide, counts[part]
                )

    def move(part: int) -> None:
        for first, end in crew.pieces(parts[part], parts[part + 1]):
            with meter.phase("partition"):
                merging.range_scatter(
                    keys, first, end, splitters, lowest, shift, guide, offsets[part], out
                )

    crew.each(count, range(crew.threads))
    ends = np.cumsum(counts.T.ravel()).reshape(counts.T.shape)
    starts = ends - counts.T
    offsets = starts.T.copy()  # advanced by the scatter
    crew.each(move, range(crew.threads))
    bounds = np.concatenate([starts, np.full((1, crew.threads), len(keys))])
    return _Runs(out, bounds)
