"""Arrival times: int64 microseconds from the start of the stream, never decreasing.

Regular arrivals are a function of the row number. Slotted arrivals give every slot of time an
exact number of rows, so a row's slot is a function of its number too. Poisson arrivals are sums
of the gaps before a row; gaps are integer nanoseconds, so sums are exact and a range of rows needs
only the sum of the gaps before it, which :meth:`Poisson.gaps_ns` gives for other ranges to add up.
"""

import functools
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from streamjoin_datagen.rows.ranks import zipf_weights
from streamjoin_datagen.rows.seeds import Float64s, Int64s, column_key, exact_log, hashes, unit

US_A_MS = 1000


@dataclass(frozen=True)
class Regular:
    """Evenly spaced arrivals, row 0 at 0; a rate of 0 is data at rest, all at 0."""

    rate_per_s: float

    def ts_us(self, first_row: int, row_count: int) -> Int64s:
        """Arrival times of a range of rows."""
        if self.rate_per_s == 0:
            return np.zeros(row_count, dtype=np.int64)
        rows = np.arange(first_row, first_row + row_count, dtype=np.float64)
        # Products are exact (below 2**53) and division is rounded in one way: still monotonic.
        rows *= 1e6
        rows /= self.rate_per_s
        return rows.astype(np.int64)


@dataclass(frozen=True)
class Poisson:
    """Independent exponential gaps, of a stream that is named by its seed and letter."""

    seed: int
    stream: str
    rate_per_s: float

    def gaps_ns(self, first_row: int, row_count: int) -> Int64s:
        """Exponential gaps before each of a range of rows, rounded to nanoseconds."""
        values = hashes(column_key(self.seed, self.stream, "ts"), first_row, row_count)
        # 1 - u is in (0, 1], where the logarithm is finite.
        waits = -exact_log(1.0 - unit(values))
        return np.rint(waits * (1e9 / self.rate_per_s)).astype(np.int64)

    def ts_us(self, first_row: int, row_count: int, *, start_ns: int) -> Int64s:
        """Arrival times of a range of rows, ``start_ns`` being the sum of all gaps before it."""
        times_ns = np.cumsum(self.gaps_ns(first_row, row_count))
        return (times_ns + start_ns) // 1000


@dataclass(frozen=True, eq=False)
class Slots:
    """Given numbers of rows at given times.

    Attributes
    ----------
    times_us : ndarray of int64, shape (slots,)
        When the rows of a slot arrive, ascending.
    ends : ndarray of int64, shape (slots,)
        Rows that have arrived by then.
    """

    times_us: Int64s
    ends: Int64s

    def ts_us(self, first_row: int, row_count: int) -> Int64s:
        """Arrival times of a range of rows."""
        last_row = first_row + row_count
        first, last = np.searchsorted(self.ends, [first_row, last_row], side="right")
        ends = np.clip(self.ends[first : last + 1], first_row, last_row)
        return np.repeat(self.times_us[first : last + 1], np.diff(ends, prepend=first_row))


Timing: TypeAlias = Regular | Poisson | Slots


def paced(arrivals: str, seed: int, stream: str, rate_per_s: float) -> Timing:
    """Regular or Poisson arrivals at a rate; a rate of 0 is data at rest."""
    if arrivals == "poisson" and rate_per_s > 0:
        return Poisson(seed, stream, rate_per_s)
    return Regular(rate_per_s)


def slots(times_us: Int64s, weights: Float64s, rows: int) -> Slots:
    """Deal rows to slots in proportion to their weights, each to less than a row's error."""
    # cumsum adds from left to right on every machine; sum does not promise an order.
    summed = np.cumsum(weights)
    ends = np.rint(summed * (rows / summed[-1])).astype(np.int64)
    ends[-1] = rows
    return Slots(times_us, ends)


@functools.lru_cache(maxsize=4)
def zipf_slots(window_rows: int, window_ms: int, skew: float, windows: int) -> Slots:
    """Deal the rows of each window to its milliseconds by Zipf's law, the first having the most."""
    one = slots(_ms(window_ms), zipf_weights(window_ms, skew), window_rows)
    starts = np.arange(windows, dtype=np.int64)[:, None]
    times_us = one.times_us + starts * (window_ms * US_A_MS)
    return Slots(times_us.ravel(), (one.ends + starts * window_rows).ravel())


@functools.lru_cache(maxsize=4)
def burst_slots(seed: int, rows: int, duration_ms: int, active: float) -> Slots:
    """Deal rows to a random share of all milliseconds, with exponentially distributed weights.

    Streams of one seed and duration have their bursts at the same times.

    Parameters
    ----------
    active : float
        Share of the milliseconds at which anything arrives, above 0.
    """
    chosen = unit(hashes(column_key(seed, "both", "slot"), 0, duration_ms)) < active
    chosen[0] = True  # the streams start at 0
    times_us = _ms(duration_ms)[chosen]
    values = hashes(column_key(seed, "both", "burst"), 0, duration_ms)[chosen]
    return slots(times_us, -exact_log(1.0 - unit(values)), rows)


@functools.lru_cache(maxsize=4)
def batch_slots(rows: int, rate_per_ms: float, batch_rows: int) -> Slots:
    """Batches that arrive evenly spaced, at integer milliseconds."""
    numbers = np.arange(-(-rows // batch_rows), dtype=np.int64)
    times_ms = (numbers * (batch_rows / rate_per_ms)).astype(np.int64)
    return Slots(times_ms * US_A_MS, np.minimum((numbers + 1) * batch_rows, rows))


def _ms(count: int) -> Int64s:
    return np.arange(count, dtype=np.int64) * US_A_MS
