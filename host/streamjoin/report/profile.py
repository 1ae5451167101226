"""What a workload's data are like: rates over time, how keys repeat, how values are spread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.encode import encode_keys
from streamjoin_common.language.predicates import Equi, Predicate

if TYPE_CHECKING:
    from streamjoin.tuples import Stream

Counts = NDArray[np.int64]
Floats = NDArray[np.float64]

SLOTS = 200
"""Points of a curve over time, and bars of a histogram of values."""

MAX_SKEW_KEYS = 1000
"""Maximum keys from which a Zipf exponent is estimated, the most frequent ones."""

MIN_KEY_COUNT = 20
"""Minimum tuples of each of these keys."""


@dataclass(frozen=True)
class StreamProfile:
    """One stream.

    Attributes
    ----------
    name : str
        ``"R"`` or ``"S"``.
    column : str
        The compared columns.
    rows, keys : int
        Tuples, and different values of the compared columns.
    duplication : float
        Tuples a key, in the mean over the keys.
    most_frequent : float
        Share of the tuples that have the most frequent key.
    skew : float or None
        Zipf exponent of the frequent keys; None where no five keys are frequent.
    partnered : float or None
        Share of the tuples whose key the other stream has, for equi-joins.
    span_s : float
        Time from the first arrival of either stream to the last; 0 is data at rest.
    rate_per_s : float or None
        Mean arrivals a second; None at rest.
    busiest_per_ms : float or None
        Most arrivals in a millisecond.
    instants : int
        Different arrival times.
    slot_rates_per_s : ndarray of float64, shape (SLOTS,)
        Arrivals a second in equal slots of the span; empty at rest.
    frequencies : ndarray of int64
        Tuples of each key, the most frequent first.
    histogram : ndarray of int64, shape (SLOTS,)
        Tuples by value of the first compared column, in bins that both streams share; empty
        where it is not a number.
    """

    name: str
    column: str
    rows: int
    keys: int
    duplication: float
    most_frequent: float
    skew: float | None
    partnered: float | None
    span_s: float
    rate_per_s: float | None
    busiest_per_ms: float | None
    instants: int
    slot_rates_per_s: Floats
    frequencies: Counts
    histogram: Counts

    def plain(self) -> dict[str, Any]:
        """Single figures as JSON values, without the curves."""
        curves = ("slot_rates_per_s", "frequencies", "histogram")
        return {name: value for name, value in vars(self).items() if name not in curves}


@dataclass(frozen=True)
class Profile:
    """Both streams; ``edges`` are the lowest and highest value of the histograms, where any."""

    streams: tuple[StreamProfile, StreamProfile]
    is_equi: bool
    start_us: int
    edges: tuple[float, float] | None


def profile(r: Stream, s: Stream, predicate: Predicate) -> Profile:
    """Describe both inputs of a join."""
    is_equi = all(isinstance(term, Equi) for term in predicate.terms)
    columns = (
        [term.r_column for term in predicate.terms],
        [term.s_column for term in predicate.terms],
    )
    values = [stream.columns[names[0]] for stream, names in zip((r, s), columns, strict=True)]
    # Bands of several columns have no keys: their first column is described.
    codes = encode_keys(r, s, predicate) if is_equi else values
    times = [stream.ts for stream in (r, s) if stream.rows]
    start = min((int(ts[0]) for ts in times), default=0)
    end = max((int(ts[-1]) for ts in times), default=0)
    edges = _edges(values)
    profiles = []
    for index, stream in enumerate((r, s)):
        counts = np.sort(np.unique(codes[index], return_counts=True)[1])[::-1]
        partnered = None
        if is_equi and stream.rows:
            partnered = float(np.isin(codes[index], codes[1 - index]).mean())
        profiles.append(
            StreamProfile(
                name="RS"[index],
                column=", ".join(columns[index] if is_equi else columns[index][:1]),
                rows=stream.rows,
                keys=len(counts),
                duplication=stream.rows / max(1, len(counts)),
                most_frequent=float(counts[0] / stream.rows) if stream.rows else 0.0,
                skew=zipf_exponent(counts),
                partnered=partnered,
                span_s=(end - start) / 1e6,
                instants=int(np.count_nonzero(np.diff(stream.ts)) + 1) if stream.rows else 0,
                frequencies=counts,
                histogram=_histogram(values[index], edges),
                **_rates(stream, start, end),
            )
        )
    return Profile((profiles[0], profiles[1]), is_equi, start, edges)


def _rates(stream: Stream, start: int, end: int) -> dict[str, Any]:
    """Arrivals over time, from the first to the last of either stream."""
    if end == start or not stream.rows:
        return {"rate_per_s": None, "busiest_per_ms": None, "slot_rates_per_s": np.zeros(0)}
    edges = np.linspace(start, end + 1, SLOTS + 1)
    arrived = np.diff(np.searchsorted(stream.ts, edges))
    return {
        "rate_per_s": stream.rows / ((end - start) / 1e6),
        "busiest_per_ms": float(np.unique(stream.ts // 1000, return_counts=True)[1].max()),
        "slot_rates_per_s": arrived / ((end + 1 - start) / SLOTS / 1e6),
    }


def zipf_exponent(counts: Counts) -> float | None:
    """Estimate the exponent that makes the counts of the frequent keys most likely.

    Parameters
    ----------
    counts : ndarray of int64
        In descending order.

    Returns
    -------
    float or None
        0 to 4; None where fewer than five keys occur often enough.
    """
    head = counts[:MAX_SKEW_KEYS]
    head = head[head >= MIN_KEY_COUNT].astype(np.float64)
    if len(head) < 5:
        return None
    log_ranks = np.log(np.arange(1, len(head) + 1))
    mean = float(np.dot(head, log_ranks) / head.sum())
    low, high = 0.0, 4.0
    for _ in range(40):
        middle = (low + high) / 2
        weights = np.exp(-middle * log_ranks)
        # At the likeliest exponent the law's mean logarithm of the rank is the sample's.
        if float(np.dot(weights, log_ranks) / weights.sum()) > mean:
            low = middle
        else:
            high = middle
    return low


def _edges(values: list[NDArray[Any]]) -> tuple[float, float] | None:
    """Lowest and highest finite value of both streams, where they are numbers."""
    if not all(np.issubdtype(column.dtype, np.number) for column in values):
        return None
    finite = [column[np.isfinite(column)] for column in values]
    ends = [(float(column.min()), float(column.max())) for column in finite if column.size]
    if not ends:
        return None
    low, high = min(low for low, _ in ends), max(high for _, high in ends)
    return low, high if high > low else low + 1


def _histogram(values: NDArray[Any], edges: tuple[float, float] | None) -> Counts:
    if edges is None:
        return np.zeros(0, dtype=np.int64)
    return np.histogram(values[np.isfinite(values)], bins=SLOTS, range=edges)[0].astype(np.int64)
