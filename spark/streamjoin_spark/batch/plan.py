"""Chooses slices, classes and shares, from footers and a sample.

Only balance depends on what is chosen here: any partitioning gives the same pairs. The sample is
the same for the same files, and so are the tasks.
"""

import math
from dataclasses import dataclass

import numpy as np

from streamjoin.errors import InputError
from streamjoin.tuples import Int64s, Stream
from streamjoin_common.language.predicates import Band, Predicate
from streamjoin_common.language.windows import AllWindow, TimeWindow, TumblingWindow, Window
from streamjoin_spark.batch.classes import (
    Classes,
    Float64s,
    OneClass,
    Radix,
    Ranges,
    class_of_hashes,
    interval,
    key_hashes,
)
from streamjoin_spark.batch.partition import Partitioning, reaches_us

PARTITION_TUPLES = 1 << 21
"""Default tuples of both sides in a task: some 200 MB while it joins them."""

MIN_TASK_TUPLES = 1 << 17
"""Minimum tuples of a task that is made for an idle core."""

MAX_CLASSES = 1 << 14
"""Maximum classes of keys in a join."""

LARGE = 2.0
"""Ratio of a class's tuples to those it should have, above which it is cut into shares."""

MAX_TASKS = 1 << 20
"""Maximum tasks of a join: each takes some milliseconds at least, so many take hours."""

MAX_SHARES = 1 << 10
"""Maximum shares that one side of a class is cut into for its pairs."""

PAIR_WORK = 0.25
"""Cost of a pair, in tuples."""


@dataclass(frozen=True)
class Side:
    """What is known of a stream before it is read.

    Attributes
    ----------
    rows : int
        Its tuples.
    times_us : ndarray of int64, shape (points,)
        Arrival times, ascending, with about equally many tuples from one to the next.
    sample : Stream
        Some of its tuples.
    """

    rows: int
    times_us: Int64s
    sample: Stream


def plan(
    r: Side,
    s: Side,
    predicate: Predicate,
    window: Window,
    *,
    slots: int,
    partition_tuples: int = PARTITION_TUPLES,
) -> Partitioning:
    """Divide a join into tasks.

    Parameters
    ----------
    r, s : Side
        The inputs.
    predicate, window
        What joins.
    slots : int
        Tasks that run at the same time.
    partition_tuples : int
        Tuples of both sides that a task should have.

    Raises
    ------
    InputError
        If so small tasks would be too many.
    """
    tuples = max(r.rows + s.rows, 1)
    idle = min(2 * slots, tuples // min(MIN_TASK_TUPLES, partition_tuples))
    wanted = max(math.ceil(tuples / partition_tuples), idle, 1)
    starts = _starts(r, s, window, wanted)
    slices = len(starts) + 1
    # Each slice holds its share of the tuples, and those whose window reaches into it.
    copies = 1.0
    if slices > 1 and isinstance(window, TimeWindow):
        length_us = max(1.0, _span_us(r, s) / slices)
        copies += max(reaches_us(window)) / length_us
    count = min(round(wanted * min(copies, 2.0) / slices), MAX_CLASSES)
    classes = choose_classes(r, s, predicate, count) if count > 1 else OneClass()
    work = _work(r, s, predicate, classes, slices)
    if work.pairs is not None and not isinstance(window, AllWindow):
        work.pairs *= _met_share(r, s, window, slices)
    tasks = Partitioning(window, starts, classes, *_shares(work, slots, slices, partition_tuples))
    if len(tasks) > MAX_TASKS:
        raise InputError(
            f"partition_tuples {partition_tuples} would make {len(tasks):,} tasks, and at most "
            f"{MAX_TASKS:,} are sensible: give more"
        )
    return tasks


def _span_us(r: Side, s: Side) -> int:
    ends = [int(t) for side in (r, s) if side.rows for t in side.times_us[[0, -1]]]
    return max(ends, default=0) - min(ends, default=0) + 1


def _starts(r: Side, s: Side, window: Window, wanted: int) -> tuple[int, ...]:
    """Starts of slices: equally many tuples in each, at the bounds of tumbling windows."""
    if isinstance(window, AllWindow) or wanted == 1:
        return ()
    times = np.concatenate([side.times_us for side in (r, s) if side.rows])
    weights = np.concatenate(
        [
            np.full(len(side.times_us), side.rows / len(side.times_us))
            for side in (r, s)
            if side.rows
        ]
    )
    order = np.argsort(times, kind="stable")
    times, passed = times[order], np.cumsum(weights[order])
    steps = passed[-1] * np.arange(1, wanted) / wanted
    # Between two known times tuples are assumed to arrive evenly.
    starts = np.interp(steps, passed, times.astype(np.float64)).astype(np.int64)
    if isinstance(window, TumblingWindow):
        length_us = window.length_us
        starts = (starts + length_us // 2) // length_us * length_us
    starts = np.unique(starts)
    starts = starts[(starts > times[0]) & (starts <= times[-1])]
    if isinstance(window, TimeWindow):
        return _spaced(starts.tolist(), int(times[0]), max(reaches_us(window)))
    return tuple(starts.tolist())


def _spaced(starts: list[int], first_us: int, min_us: int) -> tuple[int, ...]:
    """Drop starts that follow closer than a window: a tuple then has few copies."""
    kept, before = [], first_us
    for start in starts:
        if start - before >= min_us:
            kept.append(start)
            before = start
    return tuple(kept)


def choose_classes(r: Side, s: Side, predicate: Predicate, count: int) -> Classes:
    """Hash where there is an equi term, else take ranges of the most selective band term."""
    if "equi" in predicate.kinds:
        return Radix(predicate, count)
    candidates: list[tuple[float, int, Float64s]] = []
    for term in predicate.terms:
        assert isinstance(term, Band)
        values = np.sort(r.sample.column(term.r_column).astype(np.float64))
        values = values[~np.isnan(values)]
        low, high = interval(s.sample.column(term.s_column), term)
        met = np.searchsorted(values, high, side="right") - np.searchsorted(values, low)
        candidates.append(
            (float(np.maximum(met, 0).mean()) if len(met) else 0.0, len(candidates), values)
        )
    _, number, values = min(candidates, key=lambda one: one[:2])
    term = predicate.terms[number]
    assert isinstance(term, Band)
    if not len(values):
        return OneClass()
    indices = np.arange(1, count) * len(values) // count
    return Ranges(term, tuple(np.unique(values[indices]).tolist()))


@dataclass
class _Work:
    """Tuples of each class in a slice, and the pairs that they give where that is known."""

    r: Float64s
    s: Float64s
    pairs: Float64s | None


def _work(r: Side, s: Side, predicate: Predicate, classes: Classes, slices: int) -> _Work:
    loads, keys = [], []
    for side, of_r in ((r, True), (s, False)):
        first, last = classes.of(side.sample, of_r)
        ends = np.zeros(classes.count + 1)
        kept = last >= first
        np.add.at(ends, first[kept], 1)
        np.add.at(ends, last[kept] + 1, -1)
        scale = side.rows / max(side.sample.rows, 1) / slices
        loads.append(np.cumsum(ends)[:-1] * scale)
        if predicate.kind == "equi":
            hashes, counts = np.unique(key_hashes(side.sample, predicate, of_r), return_counts=True)
            keys.append((hashes, counts * scale))
    if not keys:
        return _Work(loads[0], loads[1], None)
    (r_keys, r_counts), (s_keys, s_counts) = keys
    common, r_at, s_at = np.intersect1d(r_keys, s_keys, return_indices=True)
    pairs = np.zeros(classes.count)
    np.add.at(pairs, class_of_hashes(common, classes.count), r_counts[r_at] * s_counts[s_at])
    return _Work(loads[0], loads[1], pairs)


def _met_share(r: Side, s: Side, window: Window, slices: int) -> float:
    """Share of a slice's tuples that a tuple meets in its window."""
    slice_us = max(_span_us(r, s) / slices, 1.0)
    length_us = 0
    if isinstance(window, TumblingWindow):
        length_us = window.length_us
    elif isinstance(window, TimeWindow):
        length_us = window.r_us + window.s_us
    return min(1.0, length_us / slice_us)


def _shares(
    work: _Work, slots: int, slices: int, partition_tuples: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Cut classes that are too much work into shares, the longer side alone if that will do.

    ``m`` shares of R and ``n`` of S read R ``n`` times and S ``m`` times.
    """
    weights = work.r + work.s
    if work.pairs is not None:
        weights = weights + work.pairs * PAIR_WORK
    fair = max(partition_tuples, float(weights.sum()) * slices / (4 * slots))
    shares = []
    for r_load, s_load, weight in zip(work.r, work.s, weights, strict=True):
        m, n = (math.ceil(load / (LARGE * partition_tuples)) for load in (r_load, s_load))
        m, n = max(m, 1), max(n, 1)
        if weight > LARGE * fair:
            pieces = min(math.ceil(weight / fair), MAX_SHARES)
            m, n = (max(m, pieces), n) if r_load > s_load else (m, max(n, pieces))
        shares.append((m, n))
    return tuple(m for m, _ in shares), tuple(n for _, n in shares)
