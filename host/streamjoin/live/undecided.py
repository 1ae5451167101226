"""Kinds of join, live: which tuples a round has decided, and which still have to wait.

Beside its window a stream keeps one bit for each tuple, whether it was in a pair, and the tuples
whose row is certain and whose time other rows may still precede (:class:`Owed`).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from streamjoin.engines import kinds
from streamjoin.engines.job import Job
from streamjoin.engines.kinds import NEVER
from streamjoin.live.held import Held, Owed
from streamjoin.live.matches import Matches
from streamjoin.live.side import Side, first_in_window
from streamjoin.tuples import Pairs, named_or_none
from streamjoin_common.language.kinds import R_ONLY, R_UNMATCHED, S_UNMATCHED


@dataclass(frozen=True)
class Limits:
    """What has passed.

    Attributes
    ----------
    done_us : int
        Time before which all is joined; :data:`NEVER` once all is.
    rows_us : int
        Rows of up to this time come out.
    last_us : int
        The last time of the input where it has ended, otherwise :data:`NEVER`.
    reached_us : int
        The last arrival so far.
    order : str
        The order that the pairs are in.
    """

    done_us: int
    rows_us: int
    last_us: int
    reached_us: int
    order: str


@dataclass(frozen=True)
class Round:
    """A round's rows, by position in the tuples that it held, and what both streams keep."""

    how: str
    rows: kinds.Result
    held: tuple[Held, Held]
    windows: tuple[Held | None, Held | None]
    owed: tuple[Owed | None, Owed | None]

    def matches(self, max_pairs: int | None) -> tuple[Matches, ...]:
        """Return its rows, at most so many together."""
        (pairs, _), ts, (r, s) = self.rows, kinds.times_of(self.rows), self.held
        matches, step = [], max_pairs or len(pairs) or 1
        tables = (r.batch.table, s.batch.table)
        for start in range(0, len(pairs) or 1, step):
            part = slice(start, start + step)
            rows = (pairs.r_rows[part], pairs.s_rows[part])
            if self.how == "inner":
                named = (r.numbers[rows[0]], s.numbers[rows[1]])
            else:
                named = (named_or_none(r.numbers, rows[0]), named_or_none(s.numbers, rows[1]))
            matches.append(Matches(self.how, tables, rows, named, ts[part]))
        return tuple(matches)


def passed_us(sides: tuple[Side, Side], ready: tuple[Held | None, Held | None], ended: bool) -> int:
    """Return the time before which all is joined once these are; :data:`NEVER` once all is."""
    waiting = [side.next_us(held) for side, held in zip(sides, ready, strict=True)]
    return min(waiting if ended else [*waiting, *(side.frontier_us for side in sides)])


def decided_by(
    job: Job, sides: tuple[Side, Side], joining: tuple[Held, Held], pairs: Pairs, limits: Limits
) -> Round:
    """Decide what a round's pairs and the time that has passed decide.

    Parameters
    ----------
    job : Job
        The tuples of the windows and the arrivals, and the kind.
    sides : tuple of Side
        R and S before the round.
    joining : tuple of Held
        The job's tuples.
    pairs : Pairs
        The round's pairs, by position.
    limits : Limits
        What has passed.
    """
    single = [
        _of_side(job, side, tuples, pairs, limits)
        for side, tuples in zip(sides, joining, strict=True)
    ]
    r, s = single
    rows = kinds.Result(pairs, job.later_ts(pairs))
    if job.how != "inner":
        alone = _in_place([r.rows, s.rows], [r.held, s.held])
        rows = alone if job.how in R_ONLY else kinds.merged(rows, alone, limits.order)
    return Round(job.how, rows, (r.held, s.held), (r.window, s.window), (r.owed, s.owed))


class _OfSide(NamedTuple):
    """Rows of one side alone, by position in ``held``, and what the side keeps."""

    rows: kinds.Result
    held: Held
    window: Held | None
    owed: Owed | None


def _of_side(job: Job, side: Side, tuples: Held, pairs: Pairs, limits: Limits) -> _OfSide:
    of_r = side.name == "r"
    alone, end = kinds.of_r if of_r else kinds.of_s, len(tuples.ts)
    if job.how == "inner":
        first = first_in_window(tuples, job.end_us, job.window, of_r)
    elif limits.done_us < NEVER:
        first = first_in_window(tuples, max(job.end_us, limits.done_us), job.window, of_r)
    else:
        first = end
    if job.how not in (R_UNMATCHED | {"semi"} if of_r else S_UNMATCHED):
        window = tuples.take(slice(first, end)) if end else None
        nothing = np.empty(0, dtype=np.int64)
        return _OfSide(alone(nothing, nothing), tuples, window, None)
    before = tuples.bits
    met_rows = pairs.r_rows if of_r else pairs.s_rows
    tuples = tuples._replace(met=kinds.marked(met_rows, before.copy()))
    if job.how == "semi":
        met = kinds.with_partner(job, pairs)
        new = ~before[met.pairs.r_rows]
        positions, times = kinds.positions(tuples.bits & ~before), kinds.times_of(met)[new]
    else:
        positions = kinds.positions(~tuples.bits[:first])
        times = kinds.moments(tuples.ts, positions, job.window, of_r, limits.last_us)
    window = tuples.take(slice(first, end)) if end else None
    held, positions, times = side.with_owed(tuples, positions, times)
    out = times <= limits.rows_us
    owed = None if out.all() else Owed(held.take(positions[~out]), times[~out])
    return _OfSide(alone(positions[out], times[out]), held, window, owed)


def _in_place(rows: list[kinds.Result], held: list[Held]) -> kinds.Result:
    """Order rows by time, R before S, then by arrival."""
    r, s = rows[0].pairs.r_rows, rows[1].pairs.s_rows
    side = np.repeat([0, 1], [len(r), len(s)])
    ts = np.concatenate([held[0].ts[r], held[1].ts[s]])
    numbers = np.concatenate([held[0].numbers[r], held[1].numbers[s]])
    together = kinds.joined(rows)
    return kinds.taken(together, np.lexsort((numbers, ts, side, kinds.times_of(together))))
