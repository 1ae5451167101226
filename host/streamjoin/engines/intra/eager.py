"""Eager joins: the shared part, which pulls tuples as they arrive.

The IaWJ study, section 3.2. Every worker pulls from both streams in turn: it reads the clock,
selects its own tuples of those that have arrived and joins them; if neither stream has any, it
sleeps until the next one is due. The clock is read once for a batch of arrivals, not for every
tuple, and matches are stamped when their batch is done.

Distribution (section 3.2.2, figure 2) is one mechanism. Workers form groups of ``group`` members;
a key is routed to a group, R is replicated within it, S is divided among its members in turn.
Join-matrix (JM) is one group of all workers, join-biclique (JB) smaller ones; a group of one is
hash partitioning. A remainder of workers forms a smaller group, to which fewer keys are routed.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.codes import Codes
from streamjoin.engines.crew import Crew
from streamjoin.engines.intra.window import (
    MIN_ROOM,
    Emitter,
    IntraWindowEngine,
    WindowTuples,
)
from streamjoin.engines.job import Job
from streamjoin.metrics import Meter
from streamjoin.tuples import Int64s
from streamjoin_common.language.durations import MAX_US

Tuples = NDArray[np.uint64]

BATCH_ROWS = 1 << 14
"""Maximum rows that a worker pulls from a stream before it turns to the other one."""


@dataclass(frozen=True)
class Share:
    """A worker's share of the tuples: keys of slots ``first`` to below ``end`` of ``slots``.

    It gets all of these tuples of R, and of S every ``members``-th, starting with ``member``.
    """

    first: int
    end: int
    slots: int
    member: int
    members: int

    @property
    def of_keys(self) -> float:
        """The share of the keys."""
        return (self.end - self.first) / self.slots


def shares(threads: int, group: int) -> list[Share]:
    """Give every worker its share; groups have ``group`` members, the last one the remainder."""
    assigned = []
    for worker in range(threads):
        first = worker // group * group
        end = min(first + group, threads)
        assigned.append(Share(first, end, threads, worker - first, end - first))
    return assigned


class Side:
    """One stream as one worker sees it."""

    def __init__(self, keys: Codes, ts: Int64s | None, share: Share, divided: bool) -> None:
        self.keys, self._ts, self._share = keys, ts, share
        self.rows, self.at, self._pulled = len(keys), 0, 0
        self._turn = (share.member, share.members) if divided else (0, 1)
        self.max_pulled = BATCH_ROWS

    @property
    def expected(self) -> float:
        """Expected tuples of the worker's share."""
        return self.rows * self._share.of_keys / self._turn[1]

    @property
    def ended(self) -> bool:
        """Whether all rows were pulled."""
        return self.at == self.rows

    def arrived(self, now_us: int) -> int:
        """Return the rows that have arrived by a time, at most a batch more than were pulled."""
        end = min(self.at + self.max_pulled, self.rows)
        if self._ts is None or end == self.at:
            return end
        return self.at + int(np.searchsorted(self._ts[self.at : end], now_us, side="right"))

    @property
    def behind(self) -> bool:
        """Whether more rows may have arrived than the last pull took."""
        return not self.ended and (self._ts is None or self._pulled == self.max_pulled)

    def next_us(self) -> int | None:
        """Return when the next tuple arrives; None if there is none."""
        return None if self._ts is None or self.ended else int(self._ts[self.at])

    def take(self, upto: int, out: Tuples, start: int) -> int:
        """Pack the worker's tuples of the rows below ``upto`` at ``start``; return the end."""
        from streamjoin.engines.kernels.intra import symmetric

        share = self._share
        end = symmetric.take(
            self.keys, self.at, upto, share.first, share.end, share.slots, *self._turn, out, start
        )
        self._pulled, self.at = upto - self.at, upto
        return int(end)


class StampedEmitter:
    """Collects one worker's matches of many batches, each with the time of its batch."""

    def __init__(self, meter: Meter, window: WindowTuples, alone: bool) -> None:
        self.meter = meter
        self._emitter = Emitter(meter, window, alone)
        self._likely = 4 * window.tuples
        self._renew()

    def _renew(self) -> None:
        self.out_r, self.out_s = self._emitter.buffer(self._likely)
        self.at = 0
        self._stamps: list[tuple[int, float]] = []

    def done(self, upto: int) -> None:
        """Stamp the matches below an index."""
        if upto > self.at:
            self.at = upto
            self._stamps.append((upto, self.meter.now_us()))
            if len(self.out_r) - upto < MIN_ROOM:
                self.flush()

    def flush(self) -> None:
        """Emit all matches, each with its batch's stamp."""
        if self._stamps:
            stamps = [stamp for _, stamp in self._stamps]
            counts = np.diff([end for end, _ in self._stamps], prepend=0)
            produced_us = stamps[0] if len(stamps) == 1 else np.repeat(stamps, counts)
            self._emitter.emit(self.out_r[: self.at], self.out_s[: self.at], produced_us)
        self._renew()


class Worker(ABC):
    """Joins one worker's share.

    Attributes
    ----------
    pause_us : float
        Microseconds for which it may let arrived tuples wait, if it buffers them anyway.
    """

    pause_us = 0.0

    @abstractmethod
    def consume(self, number: int, upto: int) -> None:
        """Join the rows of stream ``number`` (0 is R, 1 is S) below ``upto``."""

    @abstractmethod
    def finish(self) -> None:
        """Complete the join when all tuples were consumed."""


class EagerEngine(IntraWindowEngine):
    """A join that works while tuples arrive."""

    def join_window(self, window: WindowTuples, crew: Crew, job: Job, meter: Meter) -> None:
        """Let every worker pull its share."""
        group = min(int(job.knobs.get("group", crew.threads)), crew.threads)  # JM: one group

        def work(share: Share) -> None:
            sides = (
                Side(window.r_keys, window.r_ts, share, divided=False),
                Side(window.s_keys, window.s_ts, share, divided=True),
            )
            emitter = StampedEmitter(meter, window, crew.threads == 1)
            with meter.phase("build_or_sort"):
                worker = self.worker(sides, emitter, crew, job)
            _pull(sides, worker, crew, job, meter)
            worker.finish()
            emitter.flush()

        crew.each(work, shares(crew.threads, group))

    @abstractmethod
    def worker(
        self, sides: tuple[Side, Side], emitter: StampedEmitter, crew: Crew, job: Job
    ) -> Worker:
        """Make one worker."""


def _pull(sides: tuple[Side, Side], worker: Worker, crew: Crew, job: Job, meter: Meter) -> None:
    start_us, speedup = job.start_us, job.speedup
    while not (sides[0].ended and sides[1].ended):
        crew.check()
        pulled = False
        for number, side in enumerate(sides):
            upto = side.arrived(start_us + _replayed_us(meter.now_us(), speedup))
            if upto > side.at:
                worker.consume(number, upto)
                pulled = True
        if not pulled:
            nexts = [due for due in (side.next_us() for side in sides) if due is not None]
            crew.sleep_until_us(meter, (min(nexts) - start_us) / speedup)
        elif sides[0].ended and sides[1].ended:
            return
        elif worker.pause_us and not any(side.behind for side in sides):
            crew.sleep_until_us(meter, meter.now_us() + worker.pause_us)


def _replayed_us(elapsed_us: float, speedup: float) -> int:
    """Return the arrival time that a replay has reached, at most MAX_US."""
    return int(min(elapsed_us * speedup, float(MAX_US)))
