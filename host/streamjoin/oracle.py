"""The oracle: what every engine answers to, written in the plainest way.

Kang's three-step procedure (scan, insert, expire), tuple by tuple in arrival order, for sliding
windows (handshake join, section 2.2); the double loop for the others. One arriving tuple is
compared with a whole window in one NumPy expression: slow and obvious. It shares no code with
any engine: neither how keys are encoded nor how windows are bounded.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.errors import IN_PARTS, TooLargeError
from streamjoin.tuples import Int64s, Pairs, Stream, arrival_order
from streamjoin_common.language.predicates import Band, Predicate, Term
from streamjoin_common.language.windows import CountWindow, TimeWindow, TumblingWindow, Window

Progress = Callable[[int, int], None]
Column = NDArray[Any]

LONG_AGO = -(1 << 62)
"""No later than any arrival time."""

WITHOUT_CHECK = "join it without the check"
INNER_JOIN = "the inner join, which the check computes,"


def join(
    r: Stream,
    s: Stream,
    predicate: Predicate,
    window: Window,
    progress: Progress | None = None,
    *,
    max_pairs: int | None = None,
) -> Pairs:
    """Join two streams by the definition.

    Parameters
    ----------
    r, s : Stream
        The inputs.
    predicate : Predicate
        Conjunction of equi and band terms.
    window : Window
        Any window.
    progress : callable, optional
        Told ``(done, total)`` tuples now and then.
    max_pairs : int, optional
        Pairs beyond which it ends, as they do not fit into memory.

    Returns
    -------
    Pairs
        Every owed pair once, grouped by the later tuple in arrival order for sliding windows.

    Raises
    ------
    TooLargeError
        If there are more than ``max_pairs``.
    """
    compare, found = _Comparison(r, s, predicate), _Found(max_pairs, progress)
    if isinstance(window, CountWindow | TimeWindow):
        _sliding(r, s, compare, window, found)
    else:
        _double_loop(r, s, compare, window, found)
    return found.gathered()


class _Found:
    """The pairs so far, which end the join where they become too many; tells how far it is."""

    def __init__(self, max_pairs: int | None, progress: Progress | None) -> None:
        self._max_pairs, self._count, self._progress = max_pairs, 0, progress
        self._parts: list[tuple[NDArray[Any], NDArray[Any]]] = []

    def add(self, r_rows: NDArray[Any], s_rows: NDArray[Any]) -> None:
        self._parts.append((r_rows, s_rows))
        self._count += len(r_rows)
        if self._max_pairs is not None and self._count > self._max_pairs:
            much = f"more than {self._max_pairs:.2g} pairs, all that the free memory holds"
            raise TooLargeError(much, WITHOUT_CHECK, IN_PARTS, what=INNER_JOIN)

    def reached(self, done: int, total: int) -> None:
        if self._progress is not None and done % 1024 == 0:
            self._progress(done, total)

    def gathered(self) -> Pairs:
        return _gather(self._parts)


def of_kind(
    how: str, pairs: Pairs, r: Stream, s: Stream, window: Window, *, r_at_rest: bool = False
) -> tuple[Pairs, Int64s]:
    """Return the result of a kind of join and its rows' times, from the inner result.

    Parameters
    ----------
    how : str
        The kind.
    pairs : Pairs
        The inner result, complete.
    r, s : Stream
        The inputs.
    window : Window
        Any window.
    r_at_rest : bool
        Whether R lies in a store: it does not arrive, and the times are those of S.
    """
    r_times = np.full(r.rows, LONG_AGO) if r_at_rest else r.ts
    ts = np.maximum(r_times[pairs.r_rows], s.ts[pairs.s_rows])
    ends = [int(each[-1]) for each in (r_times, s.ts) if len(each)]
    last = max(ends, default=0)
    if last == LONG_AGO:
        last = 0
    # Each row as (r_row, s_row, ts), with -1 for a missing side.
    rows: list[tuple[int, int, int]] = []
    if how == "semi":
        by_time = np.lexsort((ts, pairs.r_rows))
        tuples, first = np.unique(pairs.r_rows[by_time], return_index=True)
        for row, time in zip(tuples.tolist(), ts[by_time][first].tolist(), strict=True):
            rows.append((row, -1, time))
    r_met, s_met = set(np.unique(pairs.r_rows).tolist()), set(np.unique(pairs.s_rows).tolist())
    if how in {"left", "full", "anti"}:
        for row in range(r.rows):
            if row not in r_met:
                rows.append((row, -1, _leaves(r, row, window, last, of_r=True)))
    if how in {"right", "full"}:
        for row in range(s.rows):
            if row not in s_met:
                rows.append((-1, row, _leaves(s, row, window, last, of_r=False)))
    single = np.array(rows, dtype=np.int64).reshape(-1, 3)
    if how in {"semi", "anti"}:
        return Pairs(single[:, 0], single[:, 1]), single[:, 2]
    r_rows = np.concatenate([pairs.r_rows.astype(np.int64), single[:, 0]])
    s_rows = np.concatenate([pairs.s_rows.astype(np.int64), single[:, 1]])
    return Pairs(r_rows, s_rows), np.concatenate([ts, single[:, 2]])


def _leaves(stream: Stream, row: int, window: Window, last: int, of_r: bool) -> int:
    """Return when a tuple can have no partner any more, at the latest when the input ends."""
    time = int(stream.ts[row])
    if isinstance(window, TumblingWindow):
        return min(time - time % window.length_us + window.length_us, last)
    if isinstance(window, TimeWindow):
        return min(time + (window.r_us if of_r else window.s_us), last)
    if isinstance(window, CountWindow):
        following = row + (window.r_tuples if of_r else window.s_tuples)
        return int(stream.ts[following]) if following < stream.rows else last
    return last


def _double_loop(
    r: Stream,
    s: Stream,
    compare: "_Comparison",
    window: Window,
    found: _Found,
) -> None:
    """Hold every tuple of the smaller side against every tuple of the other."""
    outer_is_s = s.rows < r.rows
    outer, inner = (s, r) if outer_is_s else (r, s)
    for row in range(outer.rows):
        meet = compare.s_with_r if outer_is_s else compare.r_with_s
        others = meet(row, slice(None))
        if isinstance(window, TumblingWindow):
            same = inner.ts[others] // window.length_us == outer.ts[row] // window.length_us
            others = others[same]
        own = np.full(len(others), row)
        found.add(*((others, own) if outer_is_s else (own, others)))
        found.reached(row, outer.rows)


def _sliding(
    r: Stream,
    s: Stream,
    compare: "_Comparison",
    window: CountWindow | TimeWindow,
    found: _Found,
) -> None:
    """Scan, insert, expire: for each tuple in arrival order."""
    r_live = _LiveWindow(r, window.r_us if isinstance(window, TimeWindow) else window.r_tuples)
    s_live = _LiveWindow(s, window.s_us if isinstance(window, TimeWindow) else window.s_tuples)
    is_s, rows = arrival_order(r.ts, s.ts)
    for place, (of_s, row) in enumerate(zip(is_s.tolist(), rows.tolist(), strict=True)):
        now = int((s if of_s else r).ts[row])
        if isinstance(window, TimeWindow):
            r_live.expire_by_time(now)
            s_live.expire_by_time(now)
        if of_s:
            hit = compare.s_with_r(row, r_live.rows) + r_live.first
            found.add(hit, np.full(len(hit), row))
            s_live.insert()
        else:
            hit = compare.r_with_s(row, s_live.rows) + s_live.first
            found.add(np.full(len(hit), row), hit)
            r_live.insert()
        if isinstance(window, CountWindow):
            (s_live if of_s else r_live).expire_by_count()
        found.reached(place, len(rows))


class _LiveWindow:
    """The tuples of one stream that are in its window: rows ``first`` to below ``end``."""

    def __init__(self, stream: Stream, length: int) -> None:
        self.stream, self.length = stream, length
        self.first = self.end = 0

    @property
    def rows(self) -> slice:
        return slice(self.first, self.end)

    def insert(self) -> None:
        self.end += 1

    def expire_by_count(self) -> None:
        while self.end - self.first > self.length:
            self.first += 1

    def expire_by_time(self, now: int) -> None:
        while self.first < self.end and now >= int(self.stream.ts[self.first]) + self.length:
            self.first += 1


class _Comparison:
    """Evaluates the predicate for one tuple of one side and many of the other."""

    def __init__(self, r: Stream, s: Stream, predicate: Predicate) -> None:
        columns = [(t, r.column(t.r_column), s.column(t.s_column)) for t in predicate.terms]
        # Numbers first: a comparison of texts is slow, and few rows are left by then.
        columns.sort(key=lambda term: term[1].dtype.kind not in "iuf")
        self.conditions = [_condition(*each) for each in columns]
        self.r_missing, self.s_missing = r.missing, s.missing

    def r_with_s(self, row: int, rows: slice) -> Int64s:
        """Places within the S ``rows`` that join with this tuple of R, ascending."""
        places = self._narrow(slice(row, row + 1), rows, False)
        return self._present(places, row, self.r_missing, rows, self.s_missing)

    def s_with_r(self, row: int, rows: slice) -> Int64s:
        """Places within the R ``rows`` that join with this tuple of S, ascending."""
        places = self._narrow(slice(row, row + 1), rows, True)
        return self._present(places, row, self.s_missing, rows, self.r_missing)

    @staticmethod
    def _present(
        places: Int64s,
        row: int,
        own: NDArray[np.bool_] | None,
        rows: slice,
        others: NDArray[np.bool_] | None,
    ) -> Int64s:
        """Leave out pairs of which a tuple lacks a value."""
        if own is not None and own[row]:
            return places[:0]
        return places if others is None else places[~others[rows][places]]

    def _narrow(self, own: slice, others: slice, many_r: bool) -> Int64s:
        """Evaluate term after term, each on what the ones before it left over."""
        places: Int64s | None = None
        for holds in self.conditions:
            left: Any = others if places is None else places + (others.start or 0)
            held = holds(left, own) if many_r else holds(own, left)
            places = np.flatnonzero(held) if places is None else places[held]
        assert places is not None, "a predicate has a term at least"
        return places


Condition = Callable[[Any, Any], NDArray[np.bool_]]
"""Whether rows of R and of S satisfy a term; one side is a single row."""


def _condition(term: Term, r: Column, s: Column) -> Condition:
    """Return a term as a function of rows. A band is an interval for each tuple of S."""
    if not isinstance(term, Band):
        return lambda r_rows, s_rows: np.asarray(r[r_rows] == s[s_rows], dtype=np.bool_)
    if r.dtype.kind in "iu":
        lo, hi = int(term.lo), int(term.hi)
        # Python integers never wrap; infinite widths become bounds no 64-bit value passes.
        if r.dtype.itemsize < 8 and s.dtype.itemsize < 8 and max(abs(lo), abs(hi)) < 1 << 62:
            wide_s = s.astype(np.int64)
            return _within(r.astype(np.int64), wide_s - lo, wide_s + hi)

        def exactly(r_rows: Any, s_rows: Any) -> NDArray[np.bool_]:
            exact_r, exact_s = r[r_rows].astype(object), s[s_rows].astype(object)
            low, high = exact_r >= exact_s - lo, exact_r <= exact_s + hi
            return np.asarray(low & high, dtype=np.bool_)

        return exactly
    real = np.dtype(np.float32 if r.dtype == s.dtype == np.float32 else np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        below, above = term.real_widths
        low_bound = s.astype(real) - np.asarray(below, real)
        high_bound = s.astype(real) + np.asarray(above, real)
    return _within(r, low_bound, high_bound)


def _within(r: Column, low: Column, high: Column) -> Condition:
    """Return whether tuples of R lie in intervals of S."""

    def holds(r_rows: Any, s_rows: Any) -> NDArray[np.bool_]:
        values = r[r_rows]
        return np.asarray((values >= low[s_rows]) & (values <= high[s_rows]), dtype=np.bool_)

    return holds


def _gather(found: list[tuple[NDArray[Any], NDArray[Any]]]) -> Pairs:
    empty = [np.empty(0, dtype=np.int64)]
    r_rows = np.concatenate([r for r, _ in found] or empty).astype(np.int64)
    s_rows = np.concatenate([s for _, s in found] or empty).astype(np.int64)
    return Pairs(r_rows, s_rows)
