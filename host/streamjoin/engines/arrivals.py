"""An engine's input: all at once, or at its arrival times."""

from bisect import bisect_left
from collections.abc import Callable, Iterator

import numpy as np

from streamjoin.engines.job import Job
from streamjoin.metrics import Meter, arrival_clock_us
from streamjoin.tuples import Int64s
from streamjoin_common.language.windows import (
    AllWindow,
    CountWindow,
    TimeWindow,
    TumblingWindow,
    Window,
)


def batches(
    job: Job,
    meter: Meter,
    max_tuples: int,
    sleep_until_us: Callable[[float], None] | None = None,
) -> Iterator[tuple[slice, slice]]:
    """Yield batches of arrivals, in arrival order, as rows of R and rows of S.

    Under ``replay`` a batch holds what has arrived since the last one; if nothing has, the thread
    sleeps until the next tuple is due (phase ``wait``). Under ``instant`` batches have
    ``max_tuples`` tuples.

    Parameters
    ----------
    job, meter
        What is joined.
    most_tuples : int
        Maximum tuples of a batch.
    sleep_until_us : callable, optional
        Sleeps until a time after the start; :meth:`Meter.sleep_until_us` by default.

    Yields
    ------
    r_rows, s_rows : slice
        Consecutive in each stream; together the next range of the total arrival order.
    """
    total, r_end, s_end = job.tuples, 0, 0
    replayed = job.arrival == "replay"
    sleep = sleep_until_us or meter.sleep_until_us
    due_us = [
        arrival_clock_us(stream.ts, job.start_us, job.speedup) if replayed else np.empty(0)
        for stream in (job.r, job.s)
    ]
    while (done := r_end + s_end) < total:
        end = min(done + max_tuples, total)
        if replayed:
            heads = zip(due_us, (r_end, s_end), strict=True)
            sleep(min(float(due[at]) for due, at in heads if at < len(due)))
            now_us = meter.now_us()
            arrived = sum(int(np.searchsorted(due, now_us, side="right")) for due in due_us)
            end = min(max(arrived, done + 1), end)
        r_first, s_first = r_end, s_end
        r_end = _r_rows_before(end, job.r.ts, job.s.ts, r_first)
        s_end = end - r_end
        yield slice(r_first, r_end), slice(s_first, s_end)
        meter.progress(end, total)


def _r_rows_before(arrivals: int, r_ts: Int64s, s_ts: Int64s, min_rows: int) -> int:
    """Return how many of the first ``arrivals`` tuples in arrival order are of R."""

    def position(row: int) -> int:
        return row + int(np.searchsorted(s_ts, r_ts[row], side="left"))

    rows = range(min_rows, min(arrivals, len(r_ts)))
    return min_rows + bisect_left(rows, arrivals, key=position)


def numbered_batches(
    job: Job, meter: Meter, max_tuples: int
) -> Iterator[tuple[Int64s, Int64s, Int64s, Int64s]]:
    """Yield :func:`batches` as arrays, with one numbering for the rows of both streams.

    Yields
    ------
    rows : ndarray of int64, shape (batch,)
        The tuples in arrival order; row ``i`` of S is ``i + r rows``.
    firsts, ends : ndarray of int64, shape (batch,)
        Range of opposite rows that each meets.
    expired : ndarray of int64, shape (batch,)
        First row of its own stream that is live after it.
    """
    live = np.zeros(2, dtype=np.int64)
    for r_rows, s_rows in batches(job, meter, max_tuples):
        tuples = r_rows.stop - r_rows.start + s_rows.stop - s_rows.start
        begin = (r_rows.start, s_rows.start)
        numbered = number_arrivals((job.r.ts, job.s.ts), begin, tuples, job.window, live)
        rows, firsts, ends, _ = numbered
        for before, first in zip(job.carried, (0, job.r.rows), strict=True):
            if before:
                carried = (first <= rows) & (rows < first + before)
                ends[carried] = firsts[carried]
        yield numbered


def number_arrivals(
    ts: tuple[Int64s, Int64s], begin: tuple[int, int], tuples: int, window: Window, live: Int64s
) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """Number ``tuples`` arrivals from two rows on, as :func:`numbered_batches` yields them.

    ``live`` holds the first live rows of R and of S so far, and is advanced.
    """
    from streamjoin.engines.kernels.sliding import numbering

    kind, lengths = numbering.ALL, (0, 0)
    if isinstance(window, CountWindow):
        kind, lengths = numbering.COUNT, (window.r_tuples, window.s_tuples)
    elif isinstance(window, TimeWindow):
        kind, lengths = numbering.TIME, (window.r_us, window.s_us)
    elif isinstance(window, TumblingWindow):
        kind, lengths = numbering.TUMBLING, (window.length_us, window.length_us)
    rows, firsts, ends, expired = np.empty((4, tuples), dtype=np.int64)
    times = (ts[0].view(), ts[1].view())
    for each in times:
        each.flags.writeable = False  # or Numba compiles a second kernel
    numbering.number(*times, *begin, kind, *lengths, live, rows, firsts, ends, expired)
    return rows, firsts, ends, expired


def live_rows(ts: Int64s, window: Window, of_r: bool) -> Int64s:
    """Return, for each tuple of a stream, the first row that is live once it has arrived."""
    return first_live(ts, ts, np.arange(1, len(ts) + 1), window, of_r)


def max_live(ts: Int64s, window: Window, of_r: bool) -> int:
    """Return the maximum tuples of a stream that its window holds."""
    ends = np.arange(1, len(ts) + 1)
    return int((ends - live_rows(ts, window, of_r)).max(initial=0))


def scan_ranges(
    r_ts: Int64s, s_ts: Int64s, window: Window
) -> tuple[Int64s, Int64s, Int64s, Int64s]:
    """Return the range of opposite rows that each arriving tuple meets.

    This is expiry and insertion as arithmetic: when R tuple ``i`` arrives, the live window of S is
    rows ``r_first[i]`` to below ``r_end[i]``, and the other way round.

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
    """Return the first live row of a stream, R or S, at times when ``end`` rows have arrived."""
    if isinstance(window, TumblingWindow):
        return np.searchsorted(ts, _window_start(now, window), side="left")
    if isinstance(window, CountWindow):
        return np.maximum(end - (window.r_tuples if of_r else window.s_tuples), 0)
    if isinstance(window, TimeWindow):
        # A tuple is live while ts_later < ts_earlier + T: the first live one has ts > ts_later - T.
        length_us = window.r_us if of_r else window.s_us
        return np.searchsorted(ts, now - length_us, side="right")
    return np.zeros_like(end)


def _window_start(ts: Int64s, window: TumblingWindow) -> Int64s:
    return np.asarray(ts // window.length_us * window.length_us)


def tumbling_slices(job: Job) -> Iterator[tuple[int, slice, slice]]:
    """Yield each intra-window join: when its window is complete, its rows of R and of S.

    Yields
    ------
    end_us : int
        Arrival time at which the window is complete.
    r_rows, s_rows : slice
        The window's rows; windows in which a stream has none are skipped.
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
    for index, number in enumerate(numbers.tolist()):
        yield (
            (number + 1) * length_us,
            slice(*r_bounds[:, index].tolist()),
            slice(*s_bounds[:, index].tolist()),
        )
