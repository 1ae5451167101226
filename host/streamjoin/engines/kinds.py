"""Kinds of join, decided on top of the inner pairs of any engine.

An engine gives the pairs of the inner join. :func:`result` adds or takes what the other kinds
differ in: which tuples are in no pair, the first pair of each tuple, and when that is certain
(``docs/semantics.md``). Beside the result it needs one byte for each tuple of a side whose tuples
without a partner are wanted, and eight for each tuple of R under ``semi`` where tuples have arrival
times; an inner join needs nothing, its pairs are the engine's own arrays. Times of rows without an
order are computed when they are looked at.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.job import Job
from streamjoin.lazy import Later
from streamjoin.relations.stream import StoredStream
from streamjoin.tuples import NO_ROW, Int64s, Pairs, Rows
from streamjoin_common.language.kinds import R_ONLY, R_UNMATCHED, S_UNMATCHED
from streamjoin_common.language.windows import CountWindow, TimeWindow, TumblingWindow, Window

NEVER = int(np.iinfo(np.int64).max)
"""After any arrival time."""

STEP_PAIRS = 1 << 20
"""Pairs looked at together: their copies stay within some megabytes."""


class Result(NamedTuple):
    """The rows of a result.

    Attributes
    ----------
    pairs : Pairs
        By position in the streams, :data:`~streamjoin.tuples.NO_ROW` for a missing side.
    ts : ndarray of int64, shape (rows,), Later or None
        The rows' times; None where they are those of the later tuples.
    """

    pairs: Pairs
    ts: Int64s | Later | None


class Alone(NamedTuple):
    """The tuples without a partner, where an engine finds them: positions that increase."""

    r_rows: Int64s
    s_rows: Int64s


def result(job: Job, pairs: Pairs, order: str = "none", alone: Alone | None = None) -> Result:
    """Return the result of a kind of join, from the pairs of the inner join.

    Parameters
    ----------
    job : Job
        The join; :attr:`Job.how` is the kind.
    pairs : Pairs
        All pairs of the inner join, by position, in the engine's order. Under ``semi`` and
        ``anti`` the first of each tuple of R are enough; with ``alone`` those that the kind needs:
        under ``semi`` the first of each tuple of R, under ``anti`` none.
    order : str
        The order that the pairs are in; but for ``"none"`` the other rows take their place in it.
    alone : Alone, optional
        The tuples without a partner that the kind asks for, if they are known.
    """
    if job.how == "inner":
        return Result(pairs, None)
    single = with_partner(job, pairs) if job.how == "semi" else _without_partner(job, pairs, alone)
    if order != "none":
        single = in_order(single)
    if job.how in R_ONLY:
        return single
    if order == "none":
        return _behind(job, pairs, single)
    return merged(Result(pairs, job.later_ts(pairs)), single, order)


def min_rows(job: Job) -> int:
    """Return the least rows that a result has, whatever matches: each tuple that is kept once."""
    keeps_r = job.how in R_UNMATCHED - R_ONLY and job.r.in_memory  # a store's rows have gaps
    return max(job.r.rows if keeps_r else 0, job.s.rows if job.how in S_UNMATCHED else 0)


def moments(ts: Int64s, rows: Int64s, window: Window, of_r: bool, last_us: int) -> Int64s:
    """Return from when on no later arrival can be a partner of some tuples of a stream.

    Parameters
    ----------
    ts : ndarray of int64
        Arrival times of the stream.
    rows : ndarray of int64
        The tuples, by position in it.
    last_us : int
        The last arrival time of both streams: when it all ends.
    """
    if isinstance(window, CountWindow):
        pushing = rows + (window.r_tuples if of_r else window.s_tuples)
        times = np.full(len(rows), last_us, dtype=np.int64)
        out = pushing < len(ts)
        times[out] = ts[pushing[out]]
        return times
    if isinstance(window, TumblingWindow):
        return np.minimum((ts[rows] // window.length_us + 1) * window.length_us, last_us)
    if isinstance(window, TimeWindow):
        return np.minimum(ts[rows] + (window.r_us if of_r else window.s_us), last_us)
    return np.full(len(rows), last_us, dtype=np.int64)


def marked(rows: Rows, bits: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Set the bits of some positions, and return all bits."""
    for start in range(0, len(rows), STEP_PAIRS):
        bits[rows[start : start + STEP_PAIRS]] = True
    return bits


def positions(bits: NDArray[np.bool_]) -> Int64s:
    """Return which bits are set; as int64 also where an index has 32 bits."""
    return np.flatnonzero(bits).astype(np.int64, copy=False)


def with_partner(job: Job, pairs: Pairs) -> Result:
    """Return each tuple of R that is in a pair, with the time of its first one."""
    r_rows, numbers = pairs.r_rows, None
    tuples = job.r.rows
    if isinstance(job.r, StoredStream):  # rows are called by numbers of any size
        numbers, r_rows = np.unique(r_rows, return_inverse=True)
        tuples = len(numbers)
    rows = positions(marked(r_rows, np.zeros(tuples, dtype=np.bool_)))
    named = rows if numbers is None else numbers[rows].astype(np.int64)
    if job.at_rest:  # all pairs have one time
        return of_r(named, Later(lambda: np.full(len(rows), job.end_us, dtype=np.int64)))
    first_us = np.full(tuples, NEVER, dtype=np.int64)
    for start in range(0, len(pairs), STEP_PAIRS):
        step = slice(start, start + STEP_PAIRS)
        later_us = job.later_ts(Pairs(pairs.r_rows[step], pairs.s_rows[step]))
        np.minimum.at(first_us, r_rows[step], later_us)
    return of_r(named, first_us[rows])


def of_r(rows: Int64s, ts: Int64s | Later) -> Result:
    """Return tuples of R without one of S."""
    return Result(Pairs(rows, np.full(len(rows), NO_ROW, dtype=np.int64)), ts)


def of_s(rows: Int64s, ts: Int64s) -> Result:
    """Return tuples of S without one of R."""
    return Result(Pairs(np.full(len(rows), NO_ROW, dtype=np.int64), rows), ts)


def _without_partner(job: Job, pairs: Pairs, alone: Alone | None) -> Result:
    """Return the tuples that are in no pair: those of R, then those of S, by position."""
    parts = []
    if job.how in R_UNMATCHED:
        if isinstance(job.r, StoredStream):
            parts.append(_stored_without_partner(job, job.r, pairs.r_rows))
        else:
            rows = alone.r_rows if alone else _unmet(pairs.r_rows, job.r.rows)
            parts.append(of_r(rows, moments(job.r.ts, rows, job.window, True, job.end_us)))
    if job.how in S_UNMATCHED:
        rows = alone.s_rows if alone else _unmet(pairs.s_rows, job.s.rows)
        parts.append(of_s(rows, moments(job.s.ts, rows, job.window, False, job.end_us)))
    return joined(parts)


def _unmet(met: Rows, tuples: int) -> Int64s:
    """Return the positions of a stream's tuples that are in no pair."""
    return positions(~marked(met, np.zeros(tuples, dtype=np.bool_)))


def _stored_without_partner(job: Job, r: StoredStream, met: Rows) -> Result:
    """Return the rows of a store that are in no pair: their numbers are read once more."""
    numbers, ts = r.store.numbers(with_ts=isinstance(job.window, TumblingWindow))
    alone = positions(~np.isin(numbers, np.unique(met)))
    return of_r(numbers[alone], moments(ts, alone, job.window, True, job.end_us))


def joined(parts: list[Result]) -> Result:
    """Concatenate rows that all have times."""
    if len(parts) == 1:
        return parts[0]
    return Result(
        Pairs(
            np.concatenate([part.pairs.r_rows for part in parts]),
            np.concatenate([part.pairs.s_rows for part in parts]),
        ),
        np.concatenate([times_of(part) for part in parts]),
    )


def in_order(rows: Result) -> Result:
    """Order rows by time; those of the same time stay as they are."""
    return taken(rows, np.argsort(times_of(rows), kind="stable"))


def taken(rows: Result, at: Int64s) -> Result:
    """Take rows by index."""
    return Result(Pairs(rows.pairs.r_rows[at], rows.pairs.s_rows[at]), times_of(rows)[at])


def merged(pairs: Result, single: Result, order: str) -> Result:
    """Put single rows behind the pairs, or in an order behind those of the same time."""
    ts, single_ts = times_of(pairs), times_of(single)
    at = np.full(len(single_ts), len(ts))
    if order != "none":
        at = np.searchsorted(ts, single_ts, side="right")
    r_rows, s_rows = (each.astype(np.int64) for each in (pairs.pairs.r_rows, pairs.pairs.s_rows))
    return Result(
        Pairs(
            np.insert(r_rows, at, single.pairs.r_rows), np.insert(s_rows, at, single.pairs.s_rows)
        ),
        np.insert(ts, at, single_ts),
    )


def _behind(job: Job, pairs: Pairs, single: Result) -> Result:
    """Put single rows behind the pairs."""
    count = len(pairs)
    r_rows, s_rows = (np.empty(count + len(single.pairs), dtype=np.int64) for _ in range(2))
    r_rows[:count], s_rows[:count] = pairs.r_rows, pairs.s_rows
    r_rows[count:], s_rows[count:] = single.pairs.r_rows, single.pairs.s_rows
    rows, matched = Pairs(r_rows, s_rows), Pairs(r_rows[:count], s_rows[:count])
    if job.at_rest and job.r.in_memory:  # all have one time; a store's rows have windows
        return Result(rows, Later(lambda: job.later_ts(rows)))
    return Result(rows, Later(lambda: np.concatenate([job.later_ts(matched), times_of(single)])))


def times_of(rows: Result) -> Int64s:
    """Return the times of rows that have times of their own."""
    assert rows.ts is not None
    return rows.ts.compute() if isinstance(rows.ts, Later) else rows.ts
