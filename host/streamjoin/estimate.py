"""How many pairs a join will give, about, and how many fit into memory."""

import numpy as np

from streamjoin import memory
from streamjoin.engines.base import Job
from streamjoin.errors import TooLargeError
from streamjoin.tuples import Int64s, Stream
from streamjoin.windows import CountWindow, TimeWindow, TumblingWindow

PAIR_BYTES = 48
"""What a pair costs until it is written: its rows twice, when it was made, its time, its latency.
"""

SAMPLE_TUPLES = 1 << 14
SURE_MATCHES = 64
"""Matches within the samples from which an estimate is good to about a quarter."""

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
    compared = comparisons(job)
    if compared > most:
        matches, sampled = sampled_matches(job)
        likely = compared * matches / sampled
        if matches >= SURE_MATCHES and likely > SURELY * most:
            raise TooLargeError(f"about {likely:.2g}", most)
    return most


def comparisons(job: Job) -> float:
    """Pairs of tuples that share a window, about: counted for a sample of the tuples."""
    r_ts, s_ts = job.r.ts, job.s.ts
    window = job.window
    if isinstance(window, TumblingWindow):
        first_us = _sample(r_ts) // window.length_us * window.length_us
        return _scaled(s_ts, first_us, first_us + window.length_us, len(r_ts))
    if isinstance(window, TimeWindow):
        r_some, s_some = _sample(r_ts), _sample(s_ts)
        earlier_s = _scaled(s_ts, r_some - window.s_us + 1, r_some, len(r_ts))
        return earlier_s + _scaled(r_ts, s_some - window.r_us + 1, s_some + 1, len(s_ts))
    if isinstance(window, CountWindow):
        return float(
            min(len(s_ts), window.s_tuples) * len(r_ts)
            + min(len(r_ts), window.r_tuples) * len(s_ts)
        )
    return float(len(r_ts)) * len(s_ts)


def sampled_matches(job: Job) -> tuple[int, float]:
    """Pairs that meet the predicate among samples of both streams, and how many were held.

    Of a conjunction the term that fewest pairs meet is taken: an upper bound.
    """
    from streamjoin.engines.encode import encode_intervals

    r, s = (_rows(stream, _chosen(stream.rows)) for stream in (job.r, job.s))
    codes = encode_intervals(r, s, job.predicate)
    fewest = r.rows * s.rows
    for r_codes, s_lo, s_hi in zip(codes.r, codes.s_lo, codes.s_hi, strict=True):
        ordered = np.sort(r_codes)
        met = np.searchsorted(ordered, s_hi, "right") - np.searchsorted(ordered, s_lo, "left")
        fewest = min(fewest, int(met[s_lo <= s_hi].sum()))
    return fewest, float(r.rows) * s.rows


def _chosen(rows: int) -> Int64s:
    if rows <= SAMPLE_TUPLES:
        return np.arange(rows)
    return np.sort(np.random.default_rng(rows).integers(0, rows, SAMPLE_TUPLES))


def _rows(stream: Stream, rows: Int64s) -> Stream:
    columns = {name: column[rows] for name, column in stream.columns.items()}
    missing = None if stream.missing is None else stream.missing[rows]
    return Stream(columns, stream.ts[rows], stream.source, missing=missing)


def _sample(ts: Int64s) -> Int64s:
    return ts[_chosen(len(ts))]


def _scaled(ts: Int64s, first_us: Int64s, end_us: Int64s, tuples: int) -> float:
    """Tuples from each first to below each end, on average, for that many."""
    within = np.searchsorted(ts, end_us) - np.searchsorted(ts, first_us)
    return float(within.mean()) * tuples if len(within) else 0.0
