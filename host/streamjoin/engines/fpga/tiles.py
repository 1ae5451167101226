"""How a job becomes inputs of a device: one for a sliding window, tiles for the others.

Count and time windows are set in the design's registers, and the whole job is one input. Under
``all`` and ``tumbling`` windows a block of the smaller stream is held in the array while all of
the other streams past, so that each pair meets once whatever the inputs' size.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from streamjoin.engines.arrivals import tumbling_slices
from streamjoin.engines.job import Job
from streamjoin.tuples import Int64s, arrival_positions
from streamjoin_common.contract import DesignParams
from streamjoin_common.language.windows import CountWindow, TimeWindow


@dataclass(frozen=True)
class Input:
    """One input to the device: which rows, in which order, under which windows.

    Attributes
    ----------
    r_rows, s_rows : ndarray of int64
        Consecutive row numbers.
    r_beats, s_beats : ndarray of int64
        In which beat of the input each row is sent.
    window_r, window_s : int
        Windows in tuples.
    ts : tuple of ndarray of int64, or None
        Timestamps of all rows of R and of S, in microseconds from the first arrival.
    """

    r_rows: Int64s
    s_rows: Int64s
    r_beats: Int64s
    s_beats: Int64s
    window_r: int
    window_s: int
    ts: tuple[Int64s, Int64s] | None = None

    @property
    def tuples(self) -> int:
        """Tuples of both sides."""
        return len(self.r_rows) + len(self.s_rows)


def is_tiled(job: Job) -> bool:
    """Whether a job is cut into tiles."""
    return not isinstance(job.window, CountWindow | TimeWindow)


def inputs_of(job: Job, params: DesignParams) -> Iterator[Input]:
    """Cut a job into inputs for a design."""
    if not is_tiled(job):
        yield _whole(job, params)
        return
    for _, r_rows, s_rows in tumbling_slices(job):
        yield from _tiles(
            np.arange(r_rows.start, r_rows.stop), np.arange(s_rows.start, s_rows.stop), params
        )


def _whole(job: Job, params: DesignParams) -> Input:
    """Return all tuples in arrival order, as one input."""
    rows = (np.arange(job.r.rows), np.arange(job.s.rows))
    beats = arrival_positions(job.r.ts, job.s.ts)
    if isinstance(job.window, CountWindow):
        return Input(*rows, *beats, job.window.r_tuples, job.window.s_tuples)
    capacity = params.window_capacity
    ts = (job.r.ts - job.start_us, job.s.ts - job.start_us)
    return Input(*rows, *beats, capacity, capacity, ts)


def _tiles(r_rows: Int64s, s_rows: Int64s, params: DesignParams) -> Iterator[Input]:
    """Hold blocks of the smaller side while all of the other streams past.

    The streaming side's window is one tuple a core: nothing arrives after it that it could join.
    """
    hold_s = len(s_rows) < len(r_rows)
    held, past = (s_rows, r_rows) if hold_s else (r_rows, s_rows)
    if not len(past):
        return
    for first in range(0, len(held), params.window_capacity):
        block = held[first : first + params.window_capacity]
        block_beats = np.arange(len(block))
        past_beats = len(block) + np.arange(len(past))
        narrow = min(params.cores, len(block))
        if hold_s:
            yield Input(past, block, past_beats, block_beats, narrow, len(block))
        else:
            yield Input(block, past, block_beats, past_beats, len(block), narrow)
