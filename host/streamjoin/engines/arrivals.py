"""Input as an engine meets it: all at once, or at its arrival times."""

from collections.abc import Callable, Iterator

import numpy as np

from streamjoin.engines.base import Job
from streamjoin.metrics import Meter, arrival_clock_us
from streamjoin.tuples import Int64s, arrival_positions
from streamjoin.windows import AllWindow, CountWindow, TimeWindow, TumblingWindow, Window


def batches(
    job: Job,
    meter: Meter,
    most_tuples: int,
    sleep_until_us: Callable[[float], None] | None = None,
) -> Iterator[tuple[slice, slice]]:
    """Yield what has arrived, in arrival order, as rows of R and rows of S.

    Under ``replay`` a batch holds what has arrived since the last one; if nothing has, the
    thread sleeps until the next tuple is due (phase ``wait``). Under ``instant`` batches are
    ``most_tuples`` long.

    Parameters
    ----------
    job, meter
        What is joined.
    most_tuples : int
        Tuples of a batch at most.
    sleep_until_us : callable, optional
        Sleeps until that time after the start; :meth:`Meter.sleep_until_us` if not given.

    Yields
    ------
    r_rows, s_rows : slice
        Consecutive in each stream; together the next stretch of the total arrival order.
    """
    positions = arrival_positions(job.r.ts, job.s.ts)
    sleep = sleep_until_us or meter.sleep_until_us
    for _, r_rows, s_rows in _stretches(job, meter, most_tuples, positions, sleep):
        yield r_rows, s_rows


def _stretches(
    job: Job,
    meter: Meter,
    most_tuples: int,
    positions: tuple[Int64s, Int64s],
    sleep_until_us: Callable[[float], None],
) -> Iterator[tuple[int, slice, slice]]:
    """Yield :func:`batches` behind the place at which each begins in the arrival order."""
    total = job.tuples
    r_positions, s_positions = positions
    due_us = np.empty(0)
    if job.arrival == "replay":
        ts = np.empty(total, dtype=np.int64)
        ts[r_positions], ts[s_positions] = job.r.ts, job.s.ts
        due_us = arrival_clock_us(ts, job.start_us, job.speedup)
    done = 0
    while done < total:
        end = min(done + most_tuples, total)
        if job.arrival == "replay":
            sleep_until_us(float(due_us[done]))
            arrived = int(np.searchsorted(due_us, meter.now_us(), side="right"))
            end = min(max(arrived, done + 1), end)
        places = np.array([done, end])
        r_first, r_end = np.searchsorted(r_positions, places).tolist()
        s_first, s_end = np.searchsorted(s_positions, places).tolist()
        yield done, slice(r_first, r_end), slice(s_first, s_end)
        done = end
        meter.progress(done, total)


def numbered_batches(
    job: Job, meter: Meter, most_tuples: int
) -> Iterator[tuple[Int64s, Int64s, Int64s, Int64s]]:
    """Yield :func:`batches` tuple by tuple, the rows of both streams numbered through.

    Yields
    ------
    rows : ndarray of int64, shape (batch,)
        The tuples in arrival order; row ``i`` of S is ``i + r rows``.
    firsts, ends : ndarray of int64, shape (batch,)
        The rows of the opposite stream that each meets.
    expired : ndarray of int64, shape (batch,)
        The first row of its own stream that is live after it.
    """
    positions = arrival_positions(job.r.ts, job.s.ts)
    ts, many = (job.r.ts, job.s.ts), job.r.rows
    for done, *stretches in _stretches(job, meter, most_tuples, positions, meter.sleep_until_us):
        rows, firsts, ends, expired = np.empty((4, sum(s.stop - s.start for s in stretches)), int)
        for side, own in enumerate(stretches):
            numbers = np.arange(own.start, own.stop)
            at, met = positions[side][own] - done, positions[side][own] - numbers
            offset, other_offset = (0, many) if side == 0 else (many, 0)
            own_ts, other_ts = ts[side][own], ts[1 - side]
            rows[at], ends[at] = numbers + offset, met + other_offset
            firsts[at] = first_live(other_ts, own_ts, met, job.window, side == 1) + other_offset
            expired[at] = first_live(ts[side], own_ts, numbers + 1, job.window, side == 0) + offset
            carried = at[: max(0, job.carried[side] - own.start)]
            ends[carried] = firsts[carried]
        yield rows, firsts, ends, expired


def live_rows(ts: Int64s, window: Window, of_r: bool) -> Int64s:
    """Return, for each tuple of a stream, the first row that is live once it has arrived."""
    return first_live(ts, ts, np.arange(1, len(ts) + 1), window, of_r)


def most_live(ts: Int64s, window: Window, of_r: bool) -> int:
    """Return how many tuples of a stream its window ever holds."""
    ends = np.arange(1, len(ts) + 1)
    return int((ends - live_rows(ts, window, of_r)).max(initial=0))


def scan_ranges(
    r_ts: Int64s, s_ts: Int64s, window: Window
) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """Which stretch of the opposite stream each arriving tuple has to meet.

    Expiry and insertion as arithmetic: the live window of S when R tuple ``i`` arrives is rows
    ``r_first[i]`` to below ``r_end[i]`` of S, and the other way round.

    Parameters
    ----------
    r_ts, s_ts : ndarray of int64
        Arrival times in microseconds.
    window : Window
        Any window.

    Returns
    -------
    r_first, r_end : ndarray of int64, shape (r rows,)
        Rows of S that each R tuple meets on its arrival.
    s_first, s_end : ndarray of int64, shape (s rows,)
        Rows of R that each S tuple meets on its arrival.
    """
    return (*met_by_r(r_ts, s_ts, window), *met_by_s(r_ts, s_ts, window))


def met_by_r(r_ts: Int64s, s_ts: Int64s, window: Window) -> tuple[Int64s, Int64s]:
    """Return the first half of :func:`scan_ranges`; ``r_ts`` may be a part of R."""
    end = np.searchsorted(s_ts, r_ts, side="left")
    return first_live(s_ts, r_ts, end, window, of_r=False), end


def met_by_s(r_ts: Int64s, s_ts: Int64s, window: Window) -> tuple[Int64s, Int64s]:
    """Return the second half of :func:`scan_ranges`; ``s_ts`` may be a part of S."""
    end = np.searchsorted(r_ts, s_ts, side="right")
    return first_live(r_ts, s_ts, end, window, of_r=True), end


def first_live(ts: Int64s, now: Int64s, end: Int64s, window: Window, of_r: bool) -> Int64s:
    """Return the first live row of a stream, R or S, at times when ``end`` rows have come."""
    if isinstance(window, TumblingWindow):
        return np.searchsorted(ts, _window_start(now, window), side="left")
    if isinstance(window, CountWindow):
        return np.maximum(end - (window.r_tuples if of_r else window.s_tuples), 0)
    if isinstance(window, TimeWindow):
        # Live while ts_later < ts_earlier + T, so the first live one has ts > ts_later - T.
        length_us = window.r_us if of_r else window.s_us
        return np.searchsorted(ts, now - length_us, side="right")
    return np.zeros_like(end)


def _window_start(ts: Int64s, window: TumblingWindow) -> Int64s:
    return np.asarray(ts // window.length_us * window.length_us)


def tumbling_slices(job: Job) -> Iterator[tuple[int, slice, slice]]:
    """Yield each intra-window join: when its last tuple can come, its rows of R and of S.

    Yields
    ------
    end_us : int
        Arrival time at which the window is complete.
    r_rows, s_rows : slice
        The window's rows; windows in which a stream has none are left out.
    """
    if isinstance(job.window, AllWindow):
        yield job.end_us, slice(0, job.r.rows), slice(0, job.s.rows)
        return
    if not isinstance(job.window, TumblingWindow):
        raise AssertionError(f"{job.window.text} is not made of separate windows")
    length_us = job.window.length_us
    numbers = np.intersect1d(job.r.ts // length_us, job.s.ts // length_us)
    r_bounds = np.searchsorted(job.r.ts // length_us, [numbers, numbers + 1])
    s_bounds = np.searchsorted(job.s.ts // length_us, [numbers, numbers + 1])
    for place, number in enumerate(numbers.tolist()):
        yield (
            (number + 1) * length_us,
            slice(*r_bounds[:, place].tolist()),
            slice(*s_bounds[:, place].tolist()),
        )
