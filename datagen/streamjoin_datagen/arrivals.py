"""Arrival times: int64 microseconds from the start of the stream, never decreasing.

Regular arrivals are a function of the row number. Poisson arrivals are sums of the gaps before
a row; gaps are whole nanoseconds, so sums are exact and a range of rows needs only the sum of
the gaps before it, which :func:`gaps_ns` gives for other ranges to add up.
"""

import numpy as np

from streamjoin_datagen.seeds import Int64s, column_key, exact_log, hashes, unit


def gaps_ns(seed: int, stream: str, rate_per_s: float, first_row: int, row_count: int) -> Int64s:
    """Exponential gaps before each of a range of rows, rounded to nanoseconds.

    Parameters
    ----------
    rate_per_s : float
        Arrivals a second, above 0.

    Returns
    -------
    ndarray of int64, shape (row_count,)
    """
    values = hashes(column_key(seed, stream, "ts"), first_row, row_count)
    # 1 - u is in (0, 1], where the logarithm is finite.
    waits = -exact_log(1.0 - unit(values))
    return np.rint(waits * (1e9 / rate_per_s)).astype(np.int64)


def regular_ts_us(rate_per_s: float, first_row: int, row_count: int) -> Int64s:
    """Evenly spaced arrivals, row 0 at 0; a rate of 0 is data at rest, all at 0."""
    if rate_per_s == 0:
        return np.zeros(row_count, dtype=np.int64)
    rows = np.arange(first_row, first_row + row_count, dtype=np.float64)
    # Products are exact (below 2**53) and division is rounded in one way: still monotonic.
    return np.floor(rows * 1e6 / rate_per_s).astype(np.int64)


def poisson_ts_us(
    seed: int, stream: str, rate_per_s: float, first_row: int, row_count: int, *, start_ns: int
) -> Int64s:
    """Poisson arrivals of a range of rows, ``start_ns`` being the sum of all gaps before it."""
    times_ns = np.cumsum(gaps_ns(seed, stream, rate_per_s, first_row, row_count))
    return (times_ns + start_ns) // 1000
