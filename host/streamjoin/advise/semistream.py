"""Memory for a rate and rate for a memory: what MESHJOIN and SSBJ would do with a workload.

The join values' frequencies in S and their rows in R say how much of the stream the cache would
take (theorems 1 and 2: each value lies where it needs less), the cost model how long a loop takes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.base import Job
from streamjoin.engines.encode import encode_keys
from streamjoin.engines.semi.cost import Costs, Loop

SAMPLE_TUPLES = 1 << 20
STEPS = 60
MOST_BYTES = 1 << 44


@dataclass(frozen=True)
class Sizes:
    """Bytes of what the tables hold.

    Attributes
    ----------
    node, entry, record, value : float
        A stream tuple, a join value's entry, a cached master row, a cached join value.
    row : int
        A master row in the disk buffer.
    """

    node: float
    entry: float
    record: float
    value: float
    row: int


@dataclass(frozen=True)
class Values:
    """Join values of a workload.

    Attributes
    ----------
    shares : ndarray of float64
        Of the stream's tuples, for each value.
    rows : ndarray of float64
        Rows of R with it.
    r_rows : int
        Rows of R.
    """

    shares: NDArray[np.float64]
    rows: NDArray[np.float64]
    r_rows: int


@dataclass(frozen=True)
class Forecast:
    """What a join would need and give.

    Attributes
    ----------
    memory_bytes, rate : float
        The budget and the service rate in tuples a second.
    cache_share : float
        Of the stream, joined in the cache.
    loop_us : float
        Cost of a loop.
    """

    memory_bytes: float
    rate: float
    cache_share: float
    loop_us: float


def values_of(job: Job) -> Values:
    """Count the join values of a job; of S, a sample."""
    r_keys, s_keys = encode_keys(job.r, job.s, job.predicate)
    if len(s_keys) > SAMPLE_TUPLES:
        s_keys = np.random.default_rng(0).choice(s_keys, SAMPLE_TUPLES, replace=False)
    keys, counts = np.unique(s_keys, return_counts=True)
    r_values, r_counts = np.unique(r_keys, return_counts=True)
    places = np.minimum(np.searchsorted(r_values, keys), max(0, len(r_values) - 1))
    rows = np.zeros(len(keys))
    if len(r_values):
        known = r_values[places] == keys
        rows[known] = r_counts[places[known]]
    return Values(counts / max(1, counts.sum()), rows, len(r_keys))


def rate_for(
    memory_bytes: float, values: Values, sizes: Sizes, costs: Costs, rows: int, caching: bool
) -> Forecast:
    """Service rate with a budget (equations 1, 2 and 3).

    Parameters
    ----------
    memory_bytes : float
        The budget M.
    values, sizes, costs
        Workload, layout, constants.
    rows : int
        Rows of the disk buffer (b).
    caching : bool
        SSBJ, or MESHJOIN.
    """
    tables = memory_bytes - 2 * rows * sizes.row
    low, high = 1.0, 1e13
    for _ in range(STEPS):  # tuples of a cycle that fill the memory
        middle = (low * high) ** 0.5
        if _bytes(middle, values, sizes, caching)[0] < tables:
            low = middle
        else:
            high = middle
    tuples = low
    _, cached = _bytes(tuples, values, sizes, caching)
    partitions = max(1, -(-values.r_rows // rows))
    share = float(values.shares[cached].sum())
    matches = values.shares * values.rows
    a_loop = tuples / partitions
    work = Loop(
        min(rows, values.r_rows),
        sizes.row,
        a_loop * share,
        a_loop * (1 - share),
        a_loop * float(matches[~cached].sum()),
        a_loop * float(matches[cached].sum()),
    )
    loop_ns = costs.loop_ns(work)
    return Forecast(memory_bytes, a_loop / loop_ns * 1e9, share, loop_ns / 1e3)


def memory_for(
    rate: float, values: Values, sizes: Sizes, costs: Costs, rows: int, caching: bool
) -> Forecast | None:
    """Least memory for a rate (equations 5 and 6); None if no memory is enough."""
    low, high = 2.0 * rows * sizes.row, float(MOST_BYTES)
    if rate_for(high, values, sizes, costs, rows, caching).rate < rate:
        return None
    for _ in range(STEPS):
        middle = (low * high) ** 0.5
        if rate_for(middle, values, sizes, costs, rows, caching).rate < rate:
            low = middle
        else:
            high = middle
    return rate_for(high, values, sizes, costs, rows, caching)


def _bytes(
    tuples: float, values: Values, sizes: Sizes, caching: bool
) -> tuple[float, NDArray[np.bool_]]:
    """Memory of both hash tables with so many tuples a cycle, and which values are cached."""
    waiting = tuples * values.shares
    disk = waiting * (sizes.node + sizes.entry)
    if not caching:
        return float(disk.sum()), np.zeros(len(disk), dtype=np.bool_)
    cache = values.rows * sizes.record + sizes.value + sizes.entry
    cached = cache < disk
    return float(np.minimum(disk, cache).sum()), cached
