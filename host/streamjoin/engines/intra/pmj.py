"""Progressive merge joins PMJ-JM and PMJ-JB: the IaWJ study, section 3.2.1.

A worker buffers tuples of both streams until they are ``delta`` percent of its expected share of
the window, sorts both subsets into a pair of runs, and joins the pair at once. When the window has
ended, the runs of each stream are merged and the two results joined. Tuples whose runs were made
together are skipped, as their pairs were emitted then; the row numbers identify them, since a run
holds consecutive rows. Runs are merged in passes that merge two each.

Memory, each worker: 16 bytes for every tuple of its share, R's share being replicated in a group.
"""

import math
from typing import ClassVar

import numpy as np

from streamjoin.engines.base import Knob, Report
from streamjoin.engines.crew import Crew
from streamjoin.engines.intra.eager import (
    EagerEngine,
    Side,
    StampedEmitter,
    Tuples,
    Worker,
)
from streamjoin.engines.job import Job

_DELTA = Knob("delta", 20, "Percent of the expected tuples that make a pair of runs.", 1, 100)


class _ProgressiveMerge(Worker):
    pause_us = 1000.0  # it buffers a share of the window anyway

    def __init__(
        self, sides: tuple[Side, Side], emitter: StampedEmitter, crew: Crew, job: Job
    ) -> None:
        self._sides, self._emitter, self._crew, self._meter = sides, emitter, crew, emitter.meter
        # A tuple is written before the kernel knows whether it is the worker's: one more element.
        self._tuples = [np.empty(side.rows + 1, dtype=np.uint64) for side in sides]
        self._spare = np.empty(0, dtype=np.uint64)
        self._used = [0, 0]
        self._run_first = [0, 0]
        self._cuts: list[list[int]] = [[0], [0]]  # first rows of the runs, by stream
        self._bounds: list[list[int]] = [[0], [0]]  # and their first tuples
        expected = sum(side.expected for side in sides)
        self._step = max(1, math.ceil(expected * int(job.knobs["delta"]) / 100))

    def consume(self, number: int, upto: int) -> None:
        """Buffer tuples; sort and join a pair of runs when there are enough."""
        with self._meter.phase("partition"):
            self._used[number] = self._sides[number].take(
                upto, self._tuples[number], self._used[number]
            )
        if sum(self._used) - sum(self._run_first) >= self._step:
            self._make_runs()

    def finish(self) -> None:
        """Make the last pair of runs, merge all, and join across."""
        if self._run_first != self._used:
            self._make_runs()
        self._spare = np.empty(0, dtype=np.uint64)
        self._meter.holds(2 * sum(self._used) * self._tuples[0].itemsize)
        if len(self._cuts[0]) <= 2:  # one pair of runs, or none
            return
        from streamjoin.engines.kernels.intra import merging

        merged: list[Tuples] = []
        for number in (0, 1):
            self._crew.check()
            with self._meter.phase("merge"):
                tuples = self._tuples[number][: self._used[number]]
                merged.append(merging.merge_in_passes(tuples, np.array(self._bounds[number])))
        (r, s), (r_cuts, s_cuts) = merged, (np.array(rows) for rows in self._cuts)
        state = np.array([0, 0, -1], dtype=np.int64)
        emitter = self._emitter
        while state[1] < len(s):
            self._crew.check()
            with self._meter.phase("probe"):
                filled = merging.merge_join_across(
                    r, s, r_cuts, s_cuts, state, emitter.out_r, emitter.out_s, emitter.at
                )
            emitter.done(filled)

    def _make_runs(self) -> None:
        from streamjoin.engines.kernels.intra import merging, sorting

        runs = []
        for number in (0, 1):
            with self._meter.phase("build_or_sort"):
                run = self._tuples[number][self._run_first[number] : self._used[number]]
                if len(self._spare) < len(run):
                    self._spare = np.empty(len(run), dtype=np.uint64)
                sorting.sort_by_digits(run, self._spare)
                runs.append(run)
            self._run_first[number] = self._used[number]
            self._bounds[number].append(self._used[number])
            self._cuts[number].append(self._sides[number].at)
        r, s = runs
        state = np.array([0, 0, -1], dtype=np.int64)
        emitter = self._emitter
        while state[1] < len(s):
            self._crew.check()
            with self._meter.phase("probe"):
                filled = merging.merge_join(
                    r, s, len(r), len(s), state, emitter.out_r, emitter.out_s, emitter.at
                )
            emitter.done(filled)


class PmjJm(EagerEngine):
    """Progressive merge join, join-matrix: R replicated to all workers, S divided among them."""

    name: ClassVar[str] = "pmj-jm"
    knobs: ClassVar[tuple[Knob, ...]] = (_DELTA,)

    def prepare(self, job: Job, report: Report) -> None:
        """Compile the kernels; a window of one tuple has no runs to merge."""
        from streamjoin.engines.kernels.intra import merging

        super().prepare(job, report)
        merging.merge_in_passes(np.zeros(2, dtype=np.uint64), np.arange(3))

    def worker(
        self, sides: tuple[Side, Side], emitter: StampedEmitter, crew: Crew, job: Job
    ) -> Worker:
        """Make one worker."""
        return _ProgressiveMerge(sides, emitter, crew, job)


class PmjJb(PmjJm):
    """Progressive merge join, join-biclique: keys routed to groups of workers."""

    name: ClassVar[str] = "pmj-jb"
    knobs: ClassVar[tuple[Knob, ...]] = (
        Knob("group", 1, "Workers in a group, which shares its keys.", 1, 1024),
        _DELTA,
    )
