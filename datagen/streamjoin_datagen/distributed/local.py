"""The join of one task, in memory: streamjoin's kernels on the task's rows of R and S.

Whatever the window, the rows of a stream that a row of the other may meet are consecutive. So a
window is a range of rows, and one kernel serves all windows: a hash table whose buckets lie in
arrival order for equi predicates, cells for the others.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.encode import IntervalCodes, encode_intervals, encode_keys
from streamjoin.predicates import Equi, Predicate
from streamjoin.tuples import Int64s, Stream
from streamjoin.windows import TimeWindow, TumblingWindow, Window

Codes = NDArray[np.uint32]
Found = tuple[Codes, Codes]

OUTPUT_PAIRS = 1 << 20
"""Pairs that are handed over at once."""

SAMPLE_ROWS = 1 << 12
"""Rows from which the most selective conditions are told."""

NO_TIME = -(1 << 63)


def join_rows(
    r: Stream, s: Stream, predicate: Predicate, window: Window, later_from_us: int = NO_TIME
) -> Iterator[Found]:
    """Join two streams, or consecutive parts of them.

    Parameters
    ----------
    r, s : Stream
        Comparable, as :func:`streamjoin.inputs.as_streams` makes them.
    predicate : Predicate
        Equi and band terms.
    window : Window
        ``all``, ``tumbling`` or ``time``.
    later_from_us : int
        Only pairs whose later tuple arrives then or after.

    Yields
    ------
    r_rows, s_rows : ndarray of uint32, shape (pairs,)
        Rows of the given streams; every pair once.
    """
    if not r.rows or not s.rows:
        return
    r, s = narrowed(r, s, predicate)
    if predicate.kind == "equi":
        yield from _by_key(r, s, predicate, window, later_from_us)
    else:
        yield from _by_cells(r, s, predicate, window, later_from_us)


def met_rows(
    own: Stream, other: Stream, of_r: bool, window: Window, later_from_us: int = NO_TIME
) -> tuple[Int64s, Int64s]:
    """Return the rows of the other stream that each row may meet, before or after it.

    Parameters
    ----------
    own, other : Stream
        R and S, or S and R.
    of_r : bool
        Whether ``own`` is R.

    Returns
    -------
    firsts, ends : ndarray of int64, shape (own rows,)
        Rows ``first`` to below ``end``.

    Notes
    -----
    A time window lets an R tuple meet S tuples with ``r.ts - T_S < s.ts < r.ts + T_R``: of an
    earlier one, ``r.ts < s.ts + T_S`` is asked; of a later one, ``s.ts < r.ts + T_R``; of one with
    the same time, which counts as later, ``0 < T_R``. For S tuples the same reads
    ``s.ts - T_R < r.ts < s.ts + T_S``.
    """
    now, ts = own.ts, other.ts
    if isinstance(window, TumblingWindow):
        starts = now // window.length_us * window.length_us
        firsts, ends = np.searchsorted(ts, starts), np.searchsorted(ts, starts + window.length_us)
    elif isinstance(window, TimeWindow):
        back, on = (window.s_us, window.r_us) if of_r else (window.r_us, window.s_us)
        firsts = np.searchsorted(ts, now - back, side="right")
        ends = np.searchsorted(ts, now + on, side="left")
    else:
        firsts, ends = np.zeros(len(now), np.int64), np.full(len(now), len(ts))
    if later_from_us != NO_TIME:
        early = now < later_from_us
        firsts[early] = np.maximum(firsts[early], np.searchsorted(ts, later_from_us))
    return firsts, np.maximum(firsts, ends)


def narrowed(r: Stream, s: Stream, predicate: Predicate) -> tuple[Stream, Stream]:
    """Shift 64-bit columns of equi terms to 32 bits where their values lie close enough."""
    for term in predicate.terms:
        r_column, s_column = r.column(term.r_column), s.column(term.s_column)
        wide = {column.dtype for column in (r_column, s_column)} == {np.dtype(np.int64)}
        once = sum(term.r_column == other.r_column for other in predicate.terms) == 1
        once &= sum(term.s_column == other.s_column for other in predicate.terms) == 1
        if not (isinstance(term, Equi) and wide and once):
            continue
        least = min(int(r_column.min()), int(s_column.min()))
        most = max(int(r_column.max()), int(s_column.max()))
        if most - least < 1 << 32:
            r = _with(r, term.r_column, (r_column - np.int64(least)).astype(np.uint32))
            s = _with(s, term.s_column, (s_column - np.int64(least)).astype(np.uint32))
    return r, s


def _with(stream: Stream, name: str, column: NDArray[Any]) -> Stream:
    return replace(stream, columns={**stream.columns, name: column})


def _by_key(
    r: Stream, s: Stream, predicate: Predicate, window: Window, later_from_us: int
) -> Iterator[Found]:
    """Build a hash table of the shorter side, probe with the longer one."""
    from streamjoin.engines.kernels import hashing, ranged

    r_keys, s_keys = encode_keys(r, s, predicate)
    swapped = s.rows < r.rows
    build, probe = (s_keys, r_keys) if swapped else (r_keys, s_keys)
    streams = (r, s) if swapped else (s, r)
    firsts, ends = met_rows(*streams, of_r=swapped, window=window, later_from_us=later_from_us)
    bits = max(1, len(build).bit_length())
    bounds = np.zeros((1 << bits) + 1, dtype=np.uint32)
    table = np.empty(len(build), dtype=np.uint64)
    hashing.count(build, 0, len(build), 64 - bits, bounds)
    np.cumsum(bounds, out=bounds)
    hashing.place(build, 0, len(build), 64 - bits, bounds, table)
    state = np.zeros(2, dtype=np.int64)
    while state[0] < len(probe):
        out = np.empty((2, OUTPUT_PAIRS), dtype=np.uint32)
        found = ranged.probe_ranged(
            probe, firsts, ends, state, 64 - bits, bounds, table, out[0], out[1]
        )
        yield (out[1, :found], out[0, :found]) if swapped else (out[0, :found], out[1, :found])


def _by_cells(
    r: Stream, s: Stream, predicate: Predicate, window: Window, later_from_us: int
) -> Iterator[Found]:
    """Put R into cells by the two most selective conditions, look S's intervals up."""
    from streamjoin.engines.kernels import cells

    codes = _conditions(r, s, predicate, window, later_from_us)
    rows = np.arange(r.rows, dtype=np.uint64)
    points = [np.sort(codes.r[place].astype(np.uint64) << np.uint64(32) | rows) for place in (0, 1)]
    firsts, ends = np.empty((2, s.rows), dtype=np.int64)
    cells.ranks(points[0], codes.s_lo[0], codes.s_hi[0], firsts, ends)
    # Cells as wide as a usual interval: most intervals then touch two.
    asked = np.maximum(ends - firsts, 0)
    each = max(int(asked[asked > 0].mean()) if asked.any() else 1, 8)
    places = np.empty(r.rows, dtype=np.uint32)
    filled = np.empty(r.rows, dtype=np.uint64)
    cells.fill(points[0], each, places, points[1], filled)
    state = np.array([0, -1], dtype=np.int64)
    while state[0] < s.rows:
        out = np.empty((2, OUTPUT_PAIRS), dtype=np.uint32)
        found = cells.probe_cells(
            filled,
            each,
            places,
            firsts,
            ends,
            codes.s_lo[1],
            codes.s_hi[1],
            codes.r[2:],
            codes.s_lo[2:],
            codes.s_hi[2:],
            state,
            out[0],
            out[1],
        )
        yield out[0, :found], out[1, :found]


def _conditions(
    r: Stream, s: Stream, predicate: Predicate, window: Window, later_from_us: int
) -> IntervalCodes:
    """Encode the terms and the window as intervals, the most selective first."""
    terms = encode_intervals(r, s, predicate)
    firsts, ends = met_rows(s, r, of_r=False, window=window, later_from_us=later_from_us)
    never = firsts >= ends
    lows = np.where(never, 1, firsts).astype(np.uint32)
    highs = np.where(never, 0, ends - 1).astype(np.uint32)
    points = np.vstack([terms.r, np.arange(r.rows, dtype=np.uint32)])
    all_lows, all_highs = np.vstack([terms.s_lo, lows]), np.vstack([terms.s_hi, highs])
    step = max(1, s.rows // SAMPLE_ROWS)
    met = [
        _mean_met(point, low[::step], high[::step])
        for point, low, high in zip(points, all_lows, all_highs, strict=True)
    ]
    order = np.argsort(met, kind="stable")
    return IntervalCodes(
        *(np.ascontiguousarray(part[order]) for part in (points, all_lows, all_highs))
    )


def _mean_met(points: Codes, lows: Codes, highs: Codes) -> float:
    """Points that an interval holds, on average."""
    sample = np.sort(points[:: max(1, len(points) // SAMPLE_ROWS)])
    first, end = np.searchsorted(sample, lows), np.searchsorted(sample, highs, side="right")
    return float(np.maximum(end - first, 0).mean())
