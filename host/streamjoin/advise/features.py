"""Features of a workload, estimated from a sample of one of its windows.

The features of the IaWJ study's table 3. Every estimate comes from coincidences of
keys within a sorted sample of each stream.
"""

from dataclasses import asdict, dataclass

import numpy as np

from streamjoin.engines.encode import encode_keys
from streamjoin.engines.job import Job
from streamjoin.tuples import Int64s, Stream
from streamjoin_common.language.predicates import Equi, Predicate
from streamjoin_common.language.windows import TumblingWindow

SAMPLE_TUPLES = 1 << 16
"""Maximum tuples of a stream's sample."""

SLOTS = 100
"""Equal spans of time in which arrivals are counted for the time skew."""


@dataclass(frozen=True)
class Features:
    """A workload's features, for one window of it.

    Attributes
    ----------
    r_tuples, s_tuples : int
        Tuples of the sampled window.
    r_rate, s_rate : float or None
        Mean arrival rate in tuples a second of the replay; None for data at rest.
    r_duplication, s_duplication : float
        Mean number of tuples of its own stream and window that share a tuple's key, itself
        included: 1 if keys are unique.
    key_skew : float
        Share of the most frequent key in a stream's tuples, maximum of both streams.
    time_skew : float
        Arrivals in the busiest hundredth of the time over the mean, maximum of both streams; 1 for
        data at rest.
    pairs : float
        Expected result of the window.
    """

    r_tuples: int
    s_tuples: int
    r_rate: float | None
    s_rate: float | None
    r_duplication: float
    s_duplication: float
    key_skew: float
    time_skew: float
    pairs: float

    @property
    def tuples(self) -> int:
        """Tuples of both streams in the window."""
        return self.r_tuples + self.s_tuples

    @property
    def duplication(self) -> float:
        """Minimum of both streams: a key has many matches only if both repeat it."""
        return min(self.r_duplication, self.s_duplication)

    def to_dict(self) -> dict[str, float | int | None]:
        """Plain JSON values."""
        return asdict(self)

    def table_rows(self) -> list[tuple[str, str]]:
        """Names and values, for a table."""
        rate = "at rest"
        if self.r_rate is not None and self.s_rate is not None:
            rate = f"{self.r_rate:,.4g} tuples/s, {self.s_rate:,.4g} tuples/s"
        return [
            ("tuples in a window, R and S", f"{self.r_tuples:,}, {self.s_tuples:,}"),
            ("arrival rate, R and S", rate),
            (
                "tuples a key (mean over tuples)",
                f"{self.r_duplication:.2f}, {self.s_duplication:.2f}",
            ),
            ("share of the heaviest key", f"{self.key_skew:.3%}"),
            ("busiest hundredth of time", f"{self.time_skew:.2f} x the mean"),
            ("expected pairs in a window", f"{self.pairs:,.4g}"),
        ]


def measure(job: Job, sample_tuples: int = SAMPLE_TUPLES) -> Features:
    """Measure a workload on a sample.

    Parameters
    ----------
    job : Job
        Inputs, an equi predicate, and window ``all`` or ``tumbling``.
    sample_tuples : int
        Maximum tuples of each stream's sample.

    Returns
    -------
    Features
        Estimates; exact where a window has at most as many tuples of each stream.
    """
    r, s = _window_of(job)
    r_sample, s_sample = _sample(r, sample_tuples, 0), _sample(s, sample_tuples, 1)
    r_keys, s_keys = encode_keys(r_sample, s_sample, job.predicate)
    r_values, r_counts = np.unique(r_keys, return_counts=True)
    s_values, s_counts = np.unique(s_keys, return_counts=True)
    _, r_matched, s_matched = np.intersect1d(
        r_values, s_values, assume_unique=True, return_indices=True
    )
    met = float(np.dot(r_counts[r_matched].astype(np.float64), s_counts[s_matched]))
    scale = (r.rows / max(1, len(r_keys))) * (s.rows / max(1, len(s_keys)))
    r_own = _key_counts(r_sample, [term.r_column for term in job.predicate.terms])
    s_own = _key_counts(s_sample, [term.s_column for term in job.predicate.terms])
    replayed = job.arrival == "replay"
    return Features(
        r_tuples=r.rows,
        s_tuples=s.rows,
        r_rate=_rate(job.r, job) if replayed else None,
        s_rate=_rate(job.s, job) if replayed else None,
        r_duplication=_duplication(r_own, r.rows),
        s_duplication=_duplication(s_own, s.rows),
        key_skew=max(_heaviest(r_own), _heaviest(s_own)),
        time_skew=max(_time_skew(job.r.ts), _time_skew(job.s.ts)) if replayed else 1.0,
        pairs=met * scale,
    )


def sized(job: Job) -> Features:
    """Return features of a workload at rest by the tuples of a window, as if keys were unique."""
    r, s = _window_of(job)
    return Features(r.rows, s.rows, None, None, 1.0, 1.0, 0.0, 1.0, 0.0)


def _window_of(job: Job) -> tuple[Stream, Stream]:
    """Return the window that holds the middle tuple of the longer stream, or everything."""
    if not isinstance(job.window, TumblingWindow) or not job.tuples:
        return job.r, job.s
    longer = job.r if job.r.rows > job.s.rows else job.s
    length_us = job.window.length_us
    first_us = int(longer.ts[longer.rows // 2]) // length_us * length_us
    edges = [first_us, first_us + length_us]
    r_rows, s_rows = (np.searchsorted(stream.ts, edges).tolist() for stream in (job.r, job.s))
    return job.r.slice(*r_rows), job.s.slice(*s_rows)


def _sample(stream: Stream, tuples: int, seed: int) -> Stream:
    """Return distinct sampled rows of a stream, in its order."""
    if stream.rows <= tuples:
        return stream
    rows = np.sort(np.random.default_rng(seed).integers(0, stream.rows, tuples))
    return stream.take(rows[np.append(True, rows[1:] != rows[:-1])])  # np.unique hashes: slower


def _rate(stream: Stream, job: Job) -> float | None:
    """Return tuples a second over the whole replay; None if all tuples arrive at once."""
    span_s = (job.end_us - job.start_us) / 1e6 / job.speedup
    return stream.rows / span_s if span_s else None


def _key_counts(stream: Stream, columns: list[str]) -> Int64s:
    """Count each key; codes against the other stream would merge keys without a match."""
    own = Predicate(tuple(Equi(name, name) for name in columns))
    if stream.missing is not None:  # a tuple without a value matches nothing
        present = np.flatnonzero(~stream.missing)
        columns_there = {name: column[present] for name, column in stream.columns.items()}
        stream = Stream(columns_there, stream.ts[present], stream.source)
    _, counts = np.unique(encode_keys(stream, stream, own)[0], return_counts=True)
    return counts


def _duplication(counts: Int64s, rows: int) -> float:
    """Estimate the tuples that share a tuple's key, from pairs of equal keys in a sample."""
    sampled = int(counts.sum())
    if sampled < 2:
        return 1.0
    coincidences = float(np.dot(counts.astype(np.float64), counts - 1))
    return 1.0 + coincidences * (rows - 1) / (sampled * (sampled - 1.0))


def _heaviest(counts: Int64s) -> float:
    return float(counts.max() / counts.sum()) if len(counts) else 0.0


def _time_skew(ts: Int64s) -> float:
    if len(ts) < 2 or ts[0] == ts[-1]:
        return 1.0
    edges = np.linspace(float(ts[0]), float(ts[-1]), SLOTS + 1)
    arrivals = np.diff(np.searchsorted(ts, edges[:-1]), append=len(ts))
    return float(arrivals.max() * SLOTS / len(ts))
