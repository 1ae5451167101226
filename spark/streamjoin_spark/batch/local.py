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
from streamjoin.tuples import Int64s, Stream
from streamjoin_common.language.predicates import Equi, Predicate
from streamjoin_common.language.windows import TimeWindow, TumblingWindow, Window

Codes = NDArray[np.uint32]
RowPairs = tuple[Codes, Codes]

OUTPUT_PAIRS = 1 << 20
"""Maximum pairs that are handed over at once."""

SAMPLE_ROWS = 1 << 12
"""Rows of the sample that ranks conditions by their selectivity."""

MIN_CELL_ROWS = 1 << 15
"""Minimum rows of R that are put into cells at once."""

NO_TIME = -(1 << 63)


def join_rows(
    r: Stream, s: Stream, predicate: Predicate, window: Window, later_from_us: int = NO_TIME
) -> Iterator[RowPairs]:
    """Join two streams, or consecutive parts of them.

    Parameters
    ----------
    r, s : Stream
        Comparable, as :func:`streamjoin.streams.as_streams` makes them.
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
        firsts, ends = _rows_before(ts, starts), _rows_before(ts, starts + window.length_us)
    elif isinstance(window, TimeWindow):
        back, on = (window.s_us, window.r_us) if of_r else (window.r_us, window.s_us)
        firsts, ends = _rows_before(ts, now - back + 1), _rows_before(ts, now + on)
    else:
        firsts, ends = np.zeros(len(now), np.int64), np.full(len(now), len(ts))
    if later_from_us != NO_TIME:
        early = now < later_from_us
        firsts[early] = np.maximum(firsts[early], np.searchsorted(ts, later_from_us))
    return firsts, np.maximum(firsts, ends)


def _rows_before(ts: Int64s, times: Int64s) -> Int64s:
    """How many of ``ts`` are below each of ``times``; both ascend."""
    from streamjoin.engines.kernels import ranged

    out = np.empty(len(times), dtype=np.int64)
    ranged.counts_below(np.ascontiguousarray(ts), times, out)
    return out


def narrowed(r: Stream, s: Stream, predicate: Predicate) -> tuple[Stream, Stream]:
    """Shift 64-bit columns of equi terms to 32 bits where their values lie close enough."""
    for term in predicate.terms:
        r_column, s_column = r.column(term.r_column), s.column(term.s_column)
        wide = {column.dtype for column in (r_column, s_column)} == {np.dtype(np.int64)}
        once = sum(term.r_column == other.r_column for other in predicate.terms) == 1
        once &= sum(term.s_column == other.s_column for other in predicate.terms) == 1
        if not (isinstance(term, Equi) and wide and once):
            continue
        low = min(int(r_column.min()), int(s_column.min()))
        high = max(int(r_column.max()), int(s_column.max()))
        if high - low < 1 << 32:
            r = _with(r, term.r_column, (r_column - np.int64(low)).astype(np.uint32))
            s = _with(s, term.s_column, (s_column - np.int64(low)).astype(np.uint32))
    return r, s


def _with(stream: Stream, name: str, column: NDArray[Any]) -> Stream:
    return replace(stream, columns={**stream.columns, name: column})


def _by_key(
    r: Stream, s: Stream, predicate: Predicate, window: Window, later_from_us: int
) -> Iterator[RowPairs]:
    """Build a hash table of the shorter side, probe with the longer one."""
    from streamjoin.engines.kernels import hashing, ranged

    hashed = _is_hashed(r, s, predicate)
    if hashed:
        r_keys = hashed_keys([r.column(term.r_column) for term in predicate.terms])
        s_keys = hashed_keys([s.column(term.s_column) for term in predicate.terms])
    else:
        r_keys, s_keys = encode_keys(r, s, predicate)
    swapped = s.rows < r.rows
    build, probe = (s_keys, r_keys) if swapped else (r_keys, s_keys)
    streams = (r, s) if swapped else (s, r)
    firsts, ends = met_rows(*streams, of_r=swapped, window=window, later_from_us=later_from_us)
    bits = max(1, len(build).bit_length())
    bounds = np.zeros((1 << bits) + 1, dtype=np.uint32)
    table = np.empty(len(build), dtype=np.uint64)
    hashing.count(build, 0, len(build), hashing.FIBONACCI, 64 - bits, bounds, True)
    np.cumsum(bounds, out=bounds)
    hashing.fill(build, 0, len(build), hashing.FIBONACCI, 64 - bits, bounds, table, True)
    state = np.zeros(2, dtype=np.int64)
    while state[0] < len(probe):
        out = np.empty((2, OUTPUT_PAIRS), dtype=np.uint32)
        count = ranged.probe_ranged(
            probe, firsts, ends, state, 64 - bits, bounds, table, out[0], out[1]
        )
        r_rows, s_rows = (out[1], out[0]) if swapped else (out[0], out[1])
        some = (r_rows[:count], s_rows[:count])
        yield _equal(r, s, predicate, *some) if hashed else some


def _is_hashed(r: Stream, s: Stream, predicate: Predicate) -> bool:
    """Whether keys have to be hashed to 32 bits: several columns, or wide ones, of integers.

    Dictionaries, which are exact for any value, encode what is missing or no integer.
    """
    columns = [r.column(term.r_column) for term in predicate.terms]
    columns += [s.column(term.s_column) for term in predicate.terms]
    narrow = len(columns) == 2 and columns[0].dtype == columns[1].dtype
    narrow &= columns[0].dtype.itemsize <= 4
    integers = all(column.dtype.kind in "iu" for column in columns)
    signs = {column.dtype.kind for column in columns if column.dtype.itemsize == 8}
    return integers and not narrow and len(signs) < 2 and r.missing is None and s.missing is None


def hashed_keys(columns: list[NDArray[Any]]) -> Codes:
    """Hash columns of integers to 32 bits: equal rows have equal hashes.

    SplitMix64's finaliser over the sum of the hash so far and the next column.
    """
    mixed = np.zeros(len(columns[0]), dtype=np.uint64)
    for column in columns:
        wide = column.astype(np.int64, copy=False) if column.dtype.kind == "i" else column
        mixed = mix64(mixed + wide.astype(np.uint64, copy=False))
    return (mixed >> np.uint64(32)).astype(np.uint32)


def mix64(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix 64 bits (SplitMix64's increment and finaliser)."""
    mixed = values + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _equal(r: Stream, s: Stream, predicate: Predicate, r_rows: Codes, s_rows: Codes) -> RowPairs:
    """Drop pairs of which only the hashes are equal."""
    equal = np.ones(len(r_rows), dtype=np.bool_)
    for term in predicate.terms:
        equal &= r.column(term.r_column)[r_rows] == s.column(term.s_column)[s_rows]
    return r_rows[equal], s_rows[equal]


def _by_cells(
    r: Stream, s: Stream, predicate: Predicate, window: Window, later_from_us: int
) -> Iterator[RowPairs]:
    """Encode once, then join span by span: rows of S with the rows of R that they meet."""
    terms = encode_intervals(r, s, predicate)
    firsts, ends = met_rows(s, r, of_r=False, window=window, later_from_us=later_from_us)
    for s_first, s_end in _spans(firsts, ends):
        own = slice(s_first, s_end)
        r_first, r_end = int(firsts[own].min()), int(ends[own].max())
        some = IntervalCodes(terms.r[:, r_first:r_end], terms.s_lo[:, own], terms.s_hi[:, own])
        conditions = _conditions(some, firsts[own] - r_first, ends[own] - r_first)
        for r_rows, s_rows in _in_cells(conditions):
            yield r_rows + np.uint32(r_first), s_rows + np.uint32(s_first)


def _spans(firsts: Int64s, ends: Int64s) -> Iterator[tuple[int, int]]:
    """Cut S so that the rows of R that a span meets are about twice what one row meets."""
    meet = np.flatnonzero(ends > firsts)
    start = 0
    while start < len(meet):
        row = meet[start]
        room = max(2 * int(ends[row] - firsts[row]), MIN_CELL_ROWS)
        # Both bounds ascend but where a row meets none; those rows are not in `meet`.
        stop = int(np.searchsorted(ends[meet], firsts[row] + room, side="right"))
        stop = max(stop, start + 1)
        yield int(row), int(meet[stop - 1]) + 1
        start = stop


def _in_cells(codes: IntervalCodes) -> Iterator[RowPairs]:
    """Put R into cells by the two most selective conditions, look S's intervals up."""
    from streamjoin.engines.kernels import cells

    r_count, s_count = codes.r.shape[1], codes.s_lo.shape[1]
    rows = np.arange(r_count, dtype=np.uint64)
    points = [np.sort(codes.r[axis].astype(np.uint64) << np.uint64(32) | rows) for axis in (0, 1)]
    firsts, ends = np.empty((2, s_count), dtype=np.int64)
    cells.ranks(points[0], codes.s_lo[0], codes.s_hi[0], firsts, ends)
    # Cells as wide as a usual interval: most intervals then touch two.
    asked = np.maximum(ends - firsts, 0)
    each = max(int(asked[asked > 0].mean()) if asked.any() else 1, 8)
    ranks = np.empty(r_count, dtype=np.uint32)
    filled = np.empty(r_count, dtype=np.uint64)
    cells.fill(points[0], each, ranks, points[1], filled)
    state = np.array([0, -1], dtype=np.int64)
    while state[0] < s_count:
        out = np.empty((2, OUTPUT_PAIRS), dtype=np.uint32)
        count = cells.probe_cells(
            filled,
            each,
            ranks,
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
        yield out[0, :count], out[1, :count]


def _conditions(terms: IntervalCodes, firsts: Int64s, ends: Int64s) -> IntervalCodes:
    """Add the window, an interval of rows, to the terms; the most selective come first."""
    r_count, s_count = terms.r.shape[1], terms.s_lo.shape[1]
    never = firsts >= ends
    lows = np.where(never, 1, firsts).astype(np.uint32)
    highs = np.where(never, 0, ends - 1).astype(np.uint32)
    points = np.vstack([terms.r, np.arange(r_count, dtype=np.uint32)])
    all_lows, all_highs = np.vstack([terms.s_lo, lows]), np.vstack([terms.s_hi, highs])
    step = max(1, s_count // SAMPLE_ROWS)
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
