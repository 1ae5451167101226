"""Kinds of join beside an engine's session: who has met whom, without reading the windows.

A stream whose tuples may get a row of their own has, for each tuple that is not decided yet, its
time, its number and the round in which it was first in a pair. A round reads and writes as many of
them as it has arrivals, pairs, and tuples whose window is over. What a round decides is a
:class:`Settled`, which the join keeps when all has been done; marks of a later round than the
kept one's are of a call that failed, and are removed by the next.
"""

from typing import NamedTuple

import numpy as np

from streamjoin.engines import kinds
from streamjoin.engines.arrivals import first_live
from streamjoin.engines.kinds import NEVER
from streamjoin.engines.session import NumberedPairs
from streamjoin.live.held import NOTHING, Alone, Held, Settled
from streamjoin.live.undecided import Limits
from streamjoin.tuples import NO_ROW, Int64s
from streamjoin_common.language.kinds import R_ONLY, R_UNMATCHED, S_UNMATCHED
from streamjoin_common.language.windows import Window

MIN_ROOM = 1 << 10
"""Minimum tuples for which there is room."""

ROOM = 2
"""Room for each tuple that is not decided."""


class Joined(NamedTuple):
    """A round's rows.

    Attributes
    ----------
    serials, named : tuple of ndarray
        Of R and of S, :data:`~streamjoin.tuples.NO_ROW` for a missing side.
    ts : ndarray of int64
        The rows' times.
    """

    serials: tuple[Int64s, Int64s]
    named: tuple[Int64s, Int64s]
    ts: Int64s


class _Entries:
    """Tuples of a stream, and room behind them; ``base`` is the serial number of the first."""

    def __init__(self, base: int, room: int) -> None:
        self.base, self.room = base, room
        self.ts, self.numbers, self.met = (np.zeros(room, dtype=np.int64) for _ in range(3))

    def moved(self, first: int, end: int, room: int) -> "_Entries":
        new, rows = _Entries(first, room), slice(first - self.base, end - self.base)
        for name in ("ts", "numbers", "met"):
            getattr(new, name)[: end - first] = getattr(self, name)[rows]
        return new

    def append(self, at: int, held: Held) -> None:
        rows = slice(at - self.base, at - self.base + len(held.ts))
        self.ts[rows], self.numbers[rows], self.met[rows] = held.ts, held.numbers, held.bits


class Ledger:
    """Who has met whom.

    Parameters
    ----------
    how : str
        The kind of join.
    window : Window
        The window.
    held : tuple of Held
        Tuples of R and of S that the windows hold, and whether each was in a pair.
    """

    def __init__(self, how: str, window: Window, held: tuple[Held, Held]) -> None:
        self.how, self._window, self._last = how, window, 1
        needed = (how in R_UNMATCHED | {"semi"}, how in S_UNMATCHED)
        self._sides = [_Entries(0, 0) if each else None for each in needed]
        self.begun = Settled((0, 0), (0, 0), 1)
        self._append(self.begun, held)
        self.begun = Settled((0, 0), (len(held[0].ts), len(held[1].ts)), 1)

    def owes(self, settled: Settled) -> bool:
        """Whether rows of one side alone are still to come."""
        if any(len(owed.serials) for owed in settled.owed):
            return True
        parts = zip(self._sides, settled.first, settled.end, strict=True)
        return self.how != "semi" and any(
            not entries.met[first - entries.base : end - entries.base].all()
            for entries, first, end in parts
            if entries is not None
        )

    def settle(
        self,
        before: Settled,
        ready: tuple[Held | None, Held | None],
        pairs: NumberedPairs | None,
        limits: Limits,
    ) -> tuple[Joined, Settled]:
        """Decide what a round decides.

        Parameters
        ----------
        before : Settled
            What the last round that counts has decided.
        ready : tuple of Held or None
            The round's arrivals.
        pairs : NumberedPairs or None
            Its pairs.
        limits : Limits
            What has passed.
        """
        self._begin(before)
        self._append(before, ready)
        ends = [
            end + (0 if held is None else len(held.ts))
            for end, held in zip(before.end, ready, strict=True)
        ]
        firsts, rows = list(before.first), []
        for side in range(2):
            new, firsts[side] = self._alone(side, before.first[side], ends[side], pairs, limits)
            rows.append(_both(before.owed[side], new))
        (r, r_owed), (s, s_owed) = (_divided(each, limits.rows_us) for each in rows)
        alone = _in_place(r, s)
        joined = alone if self.how in R_ONLY else _merged(pairs, alone, limits.order)
        after = Settled((firsts[0], firsts[1]), (ends[0], ends[1]), self._last, (r_owed, s_owed))
        return joined, after

    def _begin(self, before: Settled) -> None:
        """Remove the marks of rounds that failed, and begin a new one."""
        if self._last != before.last:
            for entries in self._sides:
                if entries is not None:
                    entries.met[entries.met > before.last] = 0
        self._last += 1

    def _append(self, before: Settled, held: tuple[Held | None, Held | None]) -> None:
        for side, arriving in enumerate(held):
            entries = self._sides[side]
            if entries is None or arriving is None:
                continue
            first, end = before.first[side], before.end[side]
            if end + len(arriving.ts) - entries.base > entries.room:
                room = max(MIN_ROOM, ROOM * (end - first + len(arriving.ts)))
                entries = self._sides[side] = entries.moved(first, end, room)
            entries.append(end, arriving)

    def _alone(
        self, side: int, first: int, end: int, pairs: NumberedPairs | None, limits: Limits
    ) -> tuple[Alone, int]:
        """Mark pairs; return the rows that are certain now, and the first tuple to decide."""
        entries = self._sides[side]
        if entries is None:
            return NOTHING, end
        held = slice(first - entries.base, end - entries.base)
        ts, numbers, met = entries.ts[held], entries.numbers[held], entries.met[held]
        new = times = np.empty(0, dtype=np.int64)
        if pairs is not None and len(pairs.named[0]):
            in_pairs = (pairs.s_rows if side else pairs.r_rows).astype(np.int64)
            in_pairs += pairs.base[side] - first
            fresh = met[in_pairs] == 0
            new, which = np.unique(in_pairs[fresh], return_inverse=True)
            if self.how == "semi":
                times = np.full(len(new), NEVER, dtype=np.int64)
                np.minimum.at(times, which, pairs.named[2][fresh])
            met[new] = self._last
        gone = len(ts)
        if limits.done_us < NEVER and gone:
            now = np.array([max(limits.reached_us, limits.done_us)])
            gone = int(first_live(ts, now, np.array([gone]), self._window, not side).item())
        if self.how != "semi":
            new = kinds.positions(met[:gone] == 0)
            times = kinds.moments(ts, new, self._window, not side, limits.last_us)
        return Alone(first + new, numbers[new], ts[new], times), first + gone


def _both(first: Alone, second: Alone) -> Alone:
    if not len(first.serials) or not len(second.serials):
        return first if len(first.serials) else second
    return Alone(*map(np.concatenate, zip(first, second, strict=True)))


def _divided(rows: Alone, until_us: int) -> tuple[Alone, Alone]:
    """Return the rows of up to a time, and the others."""
    out = rows.times <= until_us
    return (rows, NOTHING) if out.all() else (rows.take(out), rows.take(~out))


def _in_place(r: Alone, s: Alone) -> Joined:
    """Order rows of one side alone by time, R before S, then by arrival."""
    if len(r.serials) + len(s.serials) < 2:
        one, no_row = (r, s)[len(s.serials)], np.full(len(r.serials) + len(s.serials), NO_ROW)
        if one is r:
            return Joined((r.serials, no_row), (r.numbers, no_row), r.times)
        return Joined((no_row, s.serials), (no_row, s.numbers), s.times)
    of_s = np.repeat([False, True], [len(r.serials), len(s.serials)])
    both = _both(r, s)
    order = np.lexsort((both.numbers, both.ts, of_s, both.times))
    both, of_s = both.take(order), of_s[order]
    return Joined(
        (np.where(of_s, NO_ROW, both.serials), np.where(of_s, both.serials, NO_ROW)),
        (np.where(of_s, NO_ROW, both.numbers), np.where(of_s, both.numbers, NO_ROW)),
        both.times,
    )


def _merged(pairs: NumberedPairs | None, alone: Joined, order: str) -> Joined:
    """Put rows behind the pairs, or in an order behind those of the same time."""
    if pairs is None or not len(pairs.named[0]):
        return alone
    r, s = (
        rows.astype(np.int64) + base
        for rows, base in zip((pairs.r_rows, pairs.s_rows), pairs.base, strict=True)
    )
    if not len(alone.ts):
        return Joined((r, s), (pairs.named[0], pairs.named[1]), pairs.named[2])
    at = np.full(len(alone.ts), len(r))
    if order != "none":
        at = np.searchsorted(pairs.named[2], alone.ts, side="right")
    return Joined(
        (np.insert(r, at, alone.serials[0]), np.insert(s, at, alone.serials[1])),
        (
            np.insert(pairs.named[0], at, alone.named[0]),
            np.insert(pairs.named[1], at, alone.named[1]),
        ),
        np.insert(pairs.named[2], at, alone.ts),
    )
