"""Memory for a service rate and rate for a memory, of MESHJOIN and SSBJ with a workload.

The join values' frequencies in S and their rows in R give the share of the stream that the cache
would join (theorems 1 and 2: each value is stored where it needs less memory); the cost model gives
the time of a loop.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.encode import encode_stream_keys
from streamjoin.engines.job import Job
from streamjoin.engines.semi.cost import Costs, Loop

if TYPE_CHECKING:
    from streamjoin.engines.semi.layout import Sizes

SAMPLE_TUPLES = 1 << 20
STEPS = 50
MAX_LOOP_TUPLES = 1e13
"""Maximum stream tuples in the queue that the search tries."""
FILTER_BITS = 4
"""Bits of SSBJ's filter for a row of R: the default of knob ``filter_bits``."""

FALSE_POSITIVES = 0.16
"""Share of the tuples without a row in R that such a filter keeps, if R's keys are unique."""

NEARLY = 0.999
"""Share of a budget's maximum rate that is enough: longer queues are not worth their latency."""


@dataclass(frozen=True)
class Values:
    """Join values of a workload.

    Attributes
    ----------
    shares : ndarray of float64
        Share of the stream's tuples, for each value.
    rows : ndarray of float64
        Rows of R, for each value.
    r_rows : int
        Rows of R.
    """

    shares: NDArray[np.float64]
    rows: NDArray[np.float64]
    r_rows: int


@dataclass(frozen=True)
class Forecast:
    """Predicted memory and rate of a join.

    Attributes
    ----------
    memory_bytes, rate : float
        The budget and the service rate in tuples a second.
    cache_share : float
        Share of the stream that is joined in the cache.
    loop_us : float
        Cost of a loop.
    """

    memory_bytes: float
    rate: float
    cache_share: float
    loop_us: float


def values_of(job: Job) -> Values:
    """Count the join values of a job, in R and in a sample of S."""
    r_keys, s_keys = encode_stream_keys(job.r, job.s, job.predicate)
    if len(s_keys) > SAMPLE_TUPLES:
        s_keys = np.random.default_rng(0).choice(s_keys, SAMPLE_TUPLES, replace=False)
    keys, counts = np.unique(s_keys, return_counts=True)
    r_values, r_counts = np.unique(r_keys, return_counts=True)
    positions = np.minimum(np.searchsorted(r_values, keys), max(0, len(r_values) - 1))
    rows = np.zeros(len(keys))
    if len(r_values):
        known = r_values[positions] == keys
        rows[known] = r_counts[positions[known]]
    return Values(counts / max(1, counts.sum()), rows, len(r_keys))


@dataclass(frozen=True)
class Model:
    """A cost model of one join.

    Attributes
    ----------
    values, sizes, costs
        Workload, layout, constants.
    partition_rows : int
        Rows of the disk buffer (b).
    caching : bool
        True for SSBJ, False for MESHJOIN.
    """

    values: Values
    sizes: "Sizes"
    costs: Costs
    partition_rows: int
    caching: bool

    def rate_for(self, memory_bytes: float) -> Forecast | None:
        """Return the service rate for a budget (equations 1, 2 and 3); None if it holds no chunk.

        If the cache holds all values, a longer queue does not raise the rate: the shortest is used.
        """
        if self.with_tuples(1.0).memory_bytes > memory_bytes:
            return None
        best = self._search(lambda forecast: forecast.memory_bytes < memory_bytes)
        enough = self._search(lambda forecast: forecast.rate < NEARLY * best.rate)
        return enough if 2 * enough.loop_us < best.loop_us else best

    def memory_for(self, rate: float) -> Forecast | None:
        """Return the minimum memory for a rate (equations 5 and 6); None if none is enough."""
        if self.with_tuples(MAX_LOOP_TUPLES).rate < rate:
            return None
        return self._search(lambda forecast: forecast.rate < rate)

    def with_tuples(self, tuples: float) -> Forecast:
        """Return the forecast for a number of stream tuples in a cycle through R."""
        values, sizes = self.values, self.sizes
        disk = tuples * values.shares * (sizes.node + sizes.entry)
        cache = values.rows * sizes.record + sizes.value + sizes.entry
        cached = (cache < disk) & self.caching
        held = np.where(cached, cache, disk)
        memory = float(held.sum())
        absent = values.rows == 0
        filter_bytes = values.r_rows * FILTER_BITS / 8
        spared = float(held[absent].sum()) * (1 - FALSE_POSITIVES)
        filtered = self.caching and spared > filter_bytes
        if filtered:
            memory -= spared - filter_bytes
        partitions = max(1, -(-values.r_rows // self.partition_rows))
        share = float(values.shares[cached].sum())
        if filtered:
            share += float(values.shares[absent & ~cached].sum()) * (1 - FALSE_POSITIVES)
        matches = values.shares * values.rows
        a_loop = tuples / partitions
        work = Loop(
            min(self.partition_rows, values.r_rows),
            sizes.row,
            a_loop * share,
            a_loop * (1 - share),
            a_loop * float(matches[~cached].sum()),
            a_loop * float(matches[cached].sum()),
        )
        loop_ns = self.costs.loop_ns(work)
        buffers = 2 * self.partition_rows * sizes.row
        return Forecast(memory + buffers, a_loop / loop_ns * 1e9, share, loop_ns / 1e3)

    def _search(self, too_few: Callable[[Forecast], bool]) -> Forecast:
        low, high = 1.0, MAX_LOOP_TUPLES
        for _ in range(STEPS):
            middle = (low * high) ** 0.5
            if too_few(self.with_tuples(middle)):
                low = middle
            else:
                high = middle
        return self.with_tuples(high)
