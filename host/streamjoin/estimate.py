"""The minimum number of pairs of a join, by samples, and the maximum that fits into memory.

The lower bound holds for every input, however its keys and times are distributed. Rows are drawn
:data:`SAMPLES` times, those of R and of S independent of each other. The matches within one sample,
scaled up, are an estimate that is never negative and whose mean is the number of pairs. By Markov's
inequality it reaches ``c`` times that number with a probability of at most ``1 / c``, and all of
``k`` independent estimates do with at most ``c ** -k``. The minimum of the estimates divided by ``c
= ERROR ** (-1 / k)`` therefore exceeds the number of pairs in at most a share :data:`ERROR` of the
draws: a lower bound with 99.9 % confidence. One heavy row cannot distort it, because all samples
would have to draw that row.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from streamjoin import memory
from streamjoin.engines import kinds
from streamjoin.engines.job import Job
from streamjoin.errors import IN_PARTS, NARROWER, TooLargeError
from streamjoin.inputs.conversion import stored_as_compared
from streamjoin.relations.stream import StoredStream
from streamjoin.tuples import Int64s, Stream
from streamjoin_common.language.kinds import R_ONLY
from streamjoin_common.language.predicates import Equi
from streamjoin_common.language.windows import AllWindow
from streamjoin_common.spelling import option

PAIR_BYTES = 48
"""Bytes of a pair until it is written: its rows twice, its production time, its timestamp, its
latency.
"""

SAMPLES = 16
"""Independent samples of rows of both streams."""

SAMPLE_ROWS = 512
"""Rows of either stream in a sample."""

ERROR = 1e-3
"""Maximum share of draws in which the lower bound may be above the number of pairs."""


class Estimate(NamedTuple):
    """Pairs of a join.

    Attributes
    ----------
    likely : float
        Unbiased estimate.
    minimum : float
        Lower bound; it exceeds the number of pairs with a probability of at most :data:`ERROR`.
    """

    likely: float
    minimum: float


def pairs_that_fit() -> int | None:
    """Return the pairs that fit into memory; None if the system does not report its free memory."""
    available = memory.available_bytes()
    return None if available is None else int(available * memory.SHARE) // PAIR_BYTES


def check_fits(job: Job, first_pairs: bool = False) -> int | None:
    """Refuse a job whose result is almost certainly too large, before it runs.

    A job with a maximum of its own (:attr:`Job.max_pairs`) is not refused by an estimate, nor one
    whose engine gives only the first pair of each tuple of R, under kinds that need no more.

    Returns
    -------
    int or None
        Maximum pairs that fit into memory, beyond which the run has to end.

    Raises
    ------
    TooLargeError
        Naming the estimate and the pairs that fit.
    """
    fitting_pairs = pairs_that_fit()
    at_least, alone = kinds.min_rows(job), job.tuples if job.how != "inner" else 0
    if (
        fitting_pairs is None
        or job.max_pairs is not None
        or (first_pairs and job.how in R_ONLY)
        or job.r.rows * job.s.rows + alone <= fitting_pairs
    ):
        return fitting_pairs
    likely, minimum = estimated_pairs(job, limit=fitting_pairs)
    likely, minimum = max(likely, at_least), max(minimum, at_least)
    if minimum > fitting_pairs:
        raise TooLargeError(
            f"about {likely:.2g} pairs, at least {minimum:.2g} with {1 - ERROR:.1%} confidence, "
            f"and the free memory holds {fitting_pairs:.2g}",
            NARROWER,
            IN_PARTS,
            *_without_pairs(job),
            f"run it all the same with {option('max_pairs', ...)}",
        )
    return fitting_pairs


def _without_pairs(job: Job) -> list[str]:
    """Name the engine that needs no pairs but the first of each tuple, where it can do the job."""
    by_keys = all(isinstance(term, Equi) for term in job.predicate.terms)
    serves = job.how in R_ONLY and by_keys and job.window.kind in ("all", "tumbling")
    return [f"take {option('engine', 'npj')}, which needs few of them"] if serves else []


def estimated_pairs(job: Job, seed: int = 0, limit: float = 0.0) -> Estimate:
    """Join samples of both streams, all terms and the window, and scale up.

    Parameters
    ----------
    seed : int
        Seed of the draw.
    limit : float
        No further sample is drawn once the lower bound cannot exceed it: the minimum only falls.
    """
    estimates, samples, share = [], _samples(job), ERROR ** (1 / SAMPLES)
    for estimate in _estimates(job, np.random.default_rng(seed)):
        estimates.append(estimate)
        if samples > 1 and estimate * share <= limit:
            break
    likely = sum(estimates) / len(estimates)
    return Estimate(likely, likely if samples == 1 else min(estimates) * share)


def _samples(job: Job) -> int:
    """Return the number of estimates; a single one is exact."""
    if isinstance(job.r, StoredStream):
        return SAMPLES
    return 1 if max(job.r.rows, job.s.rows) <= SAMPLE_ROWS else SAMPLES


def _estimates(job: Job, rng: np.random.Generator) -> Iterator[float]:
    """Yield unbiased, independent estimates; a single one if it is exact."""
    if isinstance(job.r, StoredStream):
        blocks, samples = job.r.store.samples(rng, SAMPLES)
        for sample in samples:
            rows = np.arange(sample.rows)
            there = replace(job, r=stored_as_compared(sample, job.predicate))
            yield _matches(there, rows, _drawn(job.s.rows, rng)) * blocks * _scale(job.s)
        return
    for _ in range(_samples(job)):
        matches = _matches(job, _drawn(job.r.rows, rng), _drawn(job.s.rows, rng))
        yield matches * _scale(job.r) * _scale(job.s)


def _matches(job: Job, r_rows: Int64s, s_rows: Int64s) -> int:
    """Count the pairs between rows of R and rows of S."""
    from streamjoin.engines.arrivals import met_by_r, met_by_s
    from streamjoin.engines.encode import encode_intervals

    r, s = _rows(job.r, r_rows), _rows(job.s, s_rows)
    codes = encode_intervals(r, s, job.predicate)
    # A code is in an interval if it is no farther from the lower end than the upper one is: the
    # distances wrap. An interval that holds nothing has its ends the other way round.
    met = np.asarray((codes.s_lo <= codes.s_hi).all(axis=0))[None, :]
    for r_codes, s_lo, s_hi in zip(codes.r, codes.s_lo, codes.s_hi, strict=True):
        met = met & (r_codes[:, None] - s_lo <= s_hi - s_lo)
    if isinstance(job.window, AllWindow):  # each meets all
        return int(np.count_nonzero(met))
    # Rows of the whole other stream that each sampled tuple meets on its arrival.
    r_first, r_end = met_by_r(r.ts, job.s.ts, job.window)
    s_first, s_end = met_by_s(job.r.ts, s.ts, job.window)
    meets = (s_rows >= r_first[:, None]) & (s_rows < r_end[:, None])
    meets |= (r_rows[:, None] >= s_first) & (r_rows[:, None] < s_end)
    return int(np.count_nonzero(met & meets))


def _drawn(rows: int, rng: np.random.Generator) -> Int64s:
    """Draw rows of a stream with replacement, or take all if they are few."""
    if rows <= SAMPLE_ROWS:
        return np.arange(rows)
    return np.sort(rng.integers(0, rows, SAMPLE_ROWS))


def _scale(stream: Stream) -> float:
    """Return the rows of a stream for each drawn row."""
    return max(1.0, stream.rows / SAMPLE_ROWS)


def _rows(stream: Stream, rows: Int64s) -> Stream:
    columns = {name: column[rows] for name, column in stream.columns.items()}
    missing = None if stream.missing is None else stream.missing[rows]
    return replace(stream, columns=columns, ts=stream.ts[rows], table=None, missing=missing)
