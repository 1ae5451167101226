"""How a join is divided into tasks, and why every pair is then produced exactly once.

A task is a slice of time, a class of keys and a share of each side's rows.

- *Slices* cut time. A pair belongs to the slice that holds the arrival of its later tuple, and it
  has one. Under ``time:T_R,T_S`` the earlier tuple arrived less than its T before, so a slice is
  given the tuples that arrived in it and those whose T reaches into it; tumbling windows are never
  cut, so nothing reaches over. A task drops pairs whose later tuple arrived before its slice.
- *Classes* cut the predicate. Equi: by a hash of all equi columns; tuples that join have equal
  keys, so one class. Band: R by ranges of one column, each R tuple in one class, and an S tuple in
  every class that its interval touches; a pair belongs to the class of its R tuple.
- *Shares* cut a class that is too large, such as that of a heavy key: R rows into ``m`` shares, S
  rows into ``n``, by a hash of the row number; there are ``m * n`` tasks, and a pair belongs to
  the one of its two shares.

Each of the three assigns a pair once, and each task is given both tuples of its pairs: so every
pair is produced by one task and by no other.
"""

import bisect
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.tuples import Int64s, Stream
from streamjoin_common.language.windows import TimeWindow, TumblingWindow, Window
from streamjoin_spark.batch.classes import Classes, OneClass
from streamjoin_spark.batch.local import NO_TIME, mix64

LAST_TIME = (1 << 63) - 1


class Task(NamedTuple):
    """One piece of a join.

    Attributes
    ----------
    number : int
        Its number among all tasks, from 0.
    from_us, to_us : int
        Its slice: pairs whose later tuple arrives from the one to before the other.
    key_class : int
        Its class.
    r_share, s_share : int
        Its shares of the class.
    """

    number: int
    from_us: int
    to_us: int
    key_class: int
    r_share: int
    s_share: int


def reaches_us(window: Window) -> tuple[int, int]:
    """How long after its arrival a tuple of R, and one of S, may be met by a later one."""
    if isinstance(window, TimeWindow):
        return window.r_us - 1, window.s_us - 1
    return 0, 0


def ends_us(ts: Int64s, of_r: bool, window: Window) -> Int64s:
    """When each tuple's window ends: what arrives then or after does not meet it any more."""
    if isinstance(window, TumblingWindow):
        return np.asarray((ts // window.length_us + 1) * window.length_us)
    if isinstance(window, TimeWindow):
        return np.asarray(ts + (window.r_us if of_r else window.s_us))
    return np.full_like(ts, LAST_TIME)


@dataclass(frozen=True)
class Partitioning:
    """All tasks of a join.

    Attributes
    ----------
    window : Window
        ``all``, ``tumbling`` or ``time``.
    starts_us : tuple of int
        Where each slice but the first begins, ascending; whole tumbling windows lie between.
    classes : Classes
        How keys are classed.
    r_shares, s_shares : tuple of int
        Into how many shares each class is cut.
    """

    window: Window
    starts_us: tuple[int, ...] = ()
    classes: Classes = field(default_factory=OneClass)
    r_shares: tuple[int, ...] = (1,)
    s_shares: tuple[int, ...] = (1,)

    @property
    def slices(self) -> int:
        """Slices of time."""
        return len(self.starts_us) + 1

    @property
    def tasks_a_slice(self) -> int:
        """Tasks of each slice."""
        return sum(m * n for m, n in zip(self.r_shares, self.s_shares, strict=True))

    def __len__(self) -> int:
        return self.slices * self.tasks_a_slice

    def task(self, number: int) -> Task:
        """Return a task by its number."""
        slice_number, within = divmod(number, self.tasks_a_slice)
        bounds = (NO_TIME, *self.starts_us, LAST_TIME)
        for key_class, (m, n) in enumerate(zip(self.r_shares, self.s_shares, strict=True)):
            if within < m * n:
                r_share, s_share = divmod(within, n)
                from_us, to_us = bounds[slice_number], bounds[slice_number + 1]
                return Task(number, from_us, to_us, key_class, r_share, s_share)
            within -= m * n
        raise IndexError(f"there is no task {number}")

    def arrivals(self, task: Task, of_r: bool) -> tuple[int, int]:
        """Arrival times that a task needs of a side: from the one to before the other."""
        reach_us = reaches_us(self.window)[0 if of_r else 1]
        return max(task.from_us, NO_TIME + reach_us) - reach_us, task.to_us

    def numbers_between(self, from_us: int, to_us: int, of_r: bool) -> range:
        """Numbers of the tasks that may be given tuples of a side that arrive from then to then."""
        reach_us = reaches_us(self.window)[0 if of_r else 1]
        first = bisect.bisect_right(self.starts_us, from_us)
        last = bisect.bisect_right(self.starts_us, to_us + reach_us)
        return range(first * self.tasks_a_slice, (last + 1) * self.tasks_a_slice)

    def keeps(
        self, task: Task, stream: Stream, rows: Int64s, of_r: bool
    ) -> NDArray[np.bool_] | None:
        """Which rows of its slice a task needs; None for all.

        Parameters
        ----------
        stream : Stream
            Tuples of one side.
        rows : ndarray of int64, shape (rows,)
            Their row numbers in the whole input.
        """
        shares = (self.r_shares if of_r else self.s_shares)[task.key_class]
        kept = None
        if self.classes.count > 1:
            first, last = self.classes.of(stream, of_r)
            kept = (first <= task.key_class) & (task.key_class <= last)
        if shares > 1:
            own = share_of(rows, shares) == (task.r_share if of_r else task.s_share)
            kept = own if kept is None else kept & own
        return kept

    def assigned(self, stream: Stream, rows: Int64s, of_r: bool) -> tuple[Int64s, Int64s]:
        """Send every row to the tasks that need it.

        Returns
        -------
        at : ndarray of int64, shape (copies,)
            Which row of ``stream`` each copy is of.
        tasks : ndarray of int64, shape (copies,)
            The number of the task that it is sent to.
        """
        first, last = self.classes.of(stream, of_r)
        at, key_class = _each(np.arange(stream.rows), first, last)
        starts = np.array(self.starts_us, dtype=np.int64)
        reach_us = reaches_us(self.window)[0 if of_r else 1]
        ts = stream.ts[at]
        first_slice = np.searchsorted(starts, ts, side="right")
        last_slice = np.searchsorted(starts, ts + reach_us, side="right")
        copy, slices = _each(np.arange(len(at)), first_slice, last_slice)
        at, key_class = at[copy], key_class[copy]
        m, n = (np.array(shares)[key_class] for shares in (self.r_shares, self.s_shares))
        own = share_of(rows[at], m if of_r else n)
        copy, other = _each(np.arange(len(at)), np.zeros_like(at), (n if of_r else m) - 1)
        at, key_class, slices = at[copy], key_class[copy], slices[copy]
        own, n = own[copy], n[copy]
        offsets = np.cumsum(
            [0, *(m * n for m, n in zip(self.r_shares, self.s_shares, strict=True))]
        )
        within = own * n + other if of_r else other * n + own
        return at, slices * self.tasks_a_slice + offsets[key_class] + within


def share_of(rows: Int64s, shares: int | Int64s) -> Int64s:
    """Share of each row number, of so many."""
    mixed = mix64(rows.astype(np.uint64)) >> np.uint64(33)
    return mixed.astype(np.int64) % shares


def _each(items: Int64s, first: Int64s, last: Int64s) -> tuple[Int64s, Int64s]:
    """Repeat items for every number from ``first`` to ``last``; return items and numbers."""
    times = np.maximum(last - first + 1, 0)
    if (times == 1).all():
        return items, first
    repeated = np.repeat(np.arange(len(items)), times)
    within = np.arange(len(repeated)) - np.repeat(np.cumsum(times) - times, times)
    return items[repeated], first[repeated] + within
