"""How many pairs a join will give, about, and how many fit into memory."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from streamjoin import memory
from streamjoin.engines.base import Job
from streamjoin.errors import TooLargeError
from streamjoin.tuples import Int64s, Stream

PAIR_BYTES = 48
"""What a pair costs until it is written: its rows twice, when it was made, its time, its latency.
"""

SAMPLE_TUPLES = 1 << 11
SURE_ROWS = 64
"""Sampled rows of either side that must match for an estimate to be sure: pairs of one row are not
independent of each other."""

SURELY = 1.5


def pairs_that_fit() -> int | None:
    """Pairs for which there is memory; None where the system does not tell."""
    available = memory.available_bytes()
    return None if available is None else int(available * memory.SHARE) // PAIR_BYTES


def check_fits(job: Job) -> int | None:
    """Refuse a job whose result surely is too large, before it runs.

    Returns
    -------
    int or None
        Pairs that fit, beyond which the run has to end.

    Raises
    ------
    TooLargeError
        Naming the estimate and what fits.
    """
    most = pairs_that_fit()
    if most is None or job.r.rows * job.s.rows <= most:
        return most
    share = 1.0
    if job.r.store is not None:
        sample, share = job.r.store.sample()
        job = replace(job, r=sample.with_times_as_numbers())
    likely, sure = estimated_pairs(job)
    likely /= share
    if sure and likely > SURELY * most:
        raise TooLargeError(f"about {likely:.2g}", most)
    return most


def estimated_pairs(job: Job) -> tuple[float, bool]:
    """Join samples of both streams, all terms and the window, and scale up.

    Returns
    -------
    pairs : float
        Unbiased.
    sure : bool
        Whether so many rows of both samples matched that it is good to about a quarter.
    """
    from streamjoin.engines.arrivals import met_by_r, met_by_s
    from streamjoin.engines.encode import encode_intervals

    r_rows, s_rows = _chosen(job.r.rows), _chosen(job.s.rows)
    r, s = _rows(job.r, r_rows), _rows(job.s, s_rows)
    codes = encode_intervals(r, s, job.predicate)
    met = np.ones((len(r_rows), len(s_rows)), dtype=np.bool_)
    for r_codes, s_lo, s_hi in zip(codes.r, codes.s_lo, codes.s_hi, strict=True):
        met &= (r_codes[:, None] >= s_lo) & (r_codes[:, None] <= s_hi)
    # Rows of the whole other stream that each sampled tuple meets on its arrival.
    r_first, r_end = met_by_r(r.ts, job.s.ts, job.window)
    s_first, s_end = met_by_s(job.r.ts, s.ts, job.window)
    later_r = (s_rows >= r_first[:, None]) & (s_rows < r_end[:, None])
    later_s = (r_rows[:, None] >= s_first) & (r_rows[:, None] < s_end)
    met &= later_r | later_s
    scale = (job.r.rows / max(1, len(r_rows))) * (job.s.rows / max(1, len(s_rows)))
    least = min(_matching(met, 1), _matching(met, 0))
    return float(np.count_nonzero(met)) * scale, least >= SURE_ROWS


def _matching(met: NDArray[np.bool_], axis: int) -> int:
    return int(met.any(axis=axis).sum())


def _chosen(rows: int) -> Int64s:
    if rows <= SAMPLE_TUPLES:
        return np.arange(rows)
    return np.unique(np.random.default_rng(rows).integers(0, rows, SAMPLE_TUPLES))


def _rows(stream: Stream, rows: Int64s) -> Stream:
    columns = {name: column[rows] for name, column in stream.columns.items()}
    missing = None if stream.missing is None else stream.missing[rows]
    return replace(stream, columns=columns, ts=stream.ts[rows], table=None, missing=missing)
