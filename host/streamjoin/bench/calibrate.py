"""Measures where the engines overtake each other on this machine, and fits the tree to it.

Points of sizes, duplications and skews are joined by every lazy engine, rounds interleaved; the
thresholds are those with which the tree's choice loses least against the best engine of each
point. What was measured stays beside them.
"""

import datetime
import itertools
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streamjoin import run
from streamjoin.advise.features import Features, measure
from streamjoin.advise.thresholds import NEVER, Thresholds
from streamjoin.advise.tree import walk
from streamjoin.engines import catalog
from streamjoin.engines.job import Job
from streamjoin.errors import MismatchError
from streamjoin.tuples import Stream
from streamjoin_common.installed.environment import environment
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import AllWindow

LAZY = ("npj", "prj", "mway", "mpass")
EAGER = ("shj-jm", "pmj-jb")
TUPLES = (2_000, 20_000, 200_000, 2_000_000)
DUPLICATIONS = (1, 4, 10, 40, 100)
SKEWS = (0.6, 1.0, 1.4)
EAGER_TUPLES = 200_000
MAX_PAIRS = 20_000_000
"""Maximum pairs of a join that is measured."""
ROUNDS = 3
LONGEST_ROUND_TUPLES = 100_000
MAX_REPEATS = 5
"""Maximum times that a small input is joined in a round of the measurement."""

ProgressCallback = Callable[[int, int], None]


@dataclass(frozen=True)
class Point:
    """One measured workload.

    Attributes
    ----------
    features : Features
        As the tree will see it.
    threads : int
        Threads that joined.
    seconds : mapping of str to float
        Median time of each engine.
    """

    features: Features
    threads: int
    seconds: dict[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "features": self.features.to_dict(),
            "threads": self.threads,
            "seconds": self.seconds,
        }


def calibrate(threads: int, on_progress: ProgressCallback) -> dict[str, Any]:
    """Measure and fit.

    Parameters
    ----------
    threads : int
        Maximum threads; one is measured too.
    on_progress : callable
        Told ``(done, total)`` points.

    Returns
    -------
    dict
        ``thresholds``, ``regret`` (max and mean of the choice's time over the best one's),
        ``evidence`` (the points), ``environment``, ``created``.
    """
    counts = sorted({1, threads})
    inputs = [*_lazy_inputs()]
    eager_inputs = [*_eager_inputs()]
    total = len(counts) * (len(inputs) + len(eager_inputs))
    lazy, eager = [], []
    for done, (job, count) in enumerate(itertools.product(inputs, counts)):
        on_progress(done, total)
        lazy.append(_measure(replace(job, threads=count), LAZY))
    for done, (job, count) in enumerate(itertools.product(eager_inputs, counts)):
        on_progress(len(lazy) + done, total)
        eager.append(_measure(replace(job, threads=count), EAGER))
    on_progress(total, total)
    fitted = fit(lazy, eager)
    worst, mean = regret(lazy, fitted)
    return {
        "created": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "environment": environment(),
        "thresholds": fitted.to_dict(),
        "regret": {"max": worst, "mean": mean},
        "evidence": [point.to_dict() for point in [*lazy, *eager]],
    }


def _lazy_inputs() -> Iterator[Job]:
    rng = np.random.default_rng(1)
    for tuples in TUPLES:
        for duplication in DUPLICATIONS:
            if tuples // 2 * duplication <= MAX_PAIRS:
                yield _job(*(_duplicated(rng, tuples // 2, duplication) for _ in range(2)))
        for skew in SKEWS:
            foreign = _zipf(rng, tuples // 2, skew)
            yield _job(rng.permutation(tuples // 2), foreign)


def _eager_inputs() -> Iterator[Job]:
    rng = np.random.default_rng(2)
    for duplication in DUPLICATIONS:
        yield _job(*(_duplicated(rng, EAGER_TUPLES // 2, duplication) for _ in range(2)))


def _duplicated(rng: np.random.Generator, tuples: int, duplication: int) -> Any:
    return rng.permutation(np.arange(tuples) // duplication)


def _zipf(rng: np.random.Generator, tuples: int, skew: float) -> Any:
    shares = np.cumsum(np.arange(1, tuples + 1) ** -skew)
    return np.searchsorted(shares, rng.random(tuples) * shares[-1])


def _job(r_keys: Any, s_keys: Any) -> Job:
    streams = [
        Stream({"k": keys.astype(np.int32)}, np.zeros(len(keys), dtype=np.int64), name)
        for keys, name in ((r_keys, "r"), (s_keys, "s"))
    ]
    return Job(streams[0], streams[1], Predicate.parse(on="k"), AllWindow())


def _measure(asked: Job, engines: tuple[str, ...]) -> Point:
    """Time the engines in turns; a result that differs from the others is an error."""
    jobs = {name: run.complete(catalog.get(name), asked, {}) for name in engines}
    repeats = max(1, min(MAX_REPEATS, LONGEST_ROUND_TUPLES // max(1, asked.tuples)))
    seconds: dict[str, list[float]] = {name: [] for name in engines}
    digests: dict[str, str] = {}
    for number in range(ROUNDS + 1):
        for name, job in jobs.items():
            outcomes = [run.run(catalog.get(name), job) for _ in range(repeats)]
            digests[name] = f"{outcomes[0].metrics['pairs']} {outcomes[0].metrics['digest']}"
            if number:  # the first round warms up
                seconds[name].append(statistics.median(o.metrics["wall_s"] for o in outcomes))
    if len(set(digests.values())) > 1:
        raise MismatchError(f"engines differ while calibrating: {digests}")
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    return Point(measure(asked), asked.threads, medians)


def fit(lazy: list[Point], eager: list[Point]) -> Thresholds:
    """Choose the thresholds that lose least: first at the worst point, then on average.

    Parameters
    ----------
    lazy : list of Point
        Measured with :data:`LAZY`.
    eager : list of Point
        Measured with :data:`EAGER`, duplication rising.
    """
    capacity: dict[int, float] = {}
    for point in eager:  # the rate with unique keys, the first of each number of threads
        rate = point.features.tuples / point.seconds["shj-jm"]
        capacity.setdefault(point.threads, rate)
    sorts = [p.features.duplication for p in eager if p.seconds["pmj-jb"] < p.seconds["shj-jm"]]
    stays = [p.features.duplication for p in eager if p.seconds["pmj-jb"] >= p.seconds["shj-jm"]]
    above = [value for value in sorts if value > max(stays, default=0.0)]
    base = Thresholds(NEVER, 1, 0, NEVER, min(above, default=NEVER), capacity)
    candidates = (
        replace(
            base,
            high_duplication=duplication,
            many_threads=threads,
            large_tuples=large,
            high_key_skew=skew,
        )
        for duplication in _between([p.features.duplication for p in lazy])
        for threads in sorted({1, *(p.threads for p in lazy), 1 << 30})
        for large in _whole(_between([float(p.features.tuples) for p in lazy]))
        for skew in _between([p.features.key_skew for p in lazy])
    )
    return min(candidates, key=lambda each: regret(lazy, each))


def _between(values: list[float]) -> list[float]:
    """Branches between clearly different values, one below all and one above all."""
    clear: list[float] = []
    for value in sorted(values):
        if not clear or value > 1.5 * clear[-1]:
            clear.append(value)
    return [0.0, *(float(np.sqrt(a * b)) for a, b in itertools.pairwise(clear)), NEVER]


def _whole(values: list[float]) -> list[int]:
    return [int(value) for value in values]


def regret(points: list[Point], thresholds: Thresholds) -> tuple[float, float]:
    """How much longer the tree's choice takes than the best engine: at most, on average."""
    ratios = []
    for point in points:
        choice, _ = walk(point.features, thresholds, point.threads, "throughput")
        ratios.append(point.seconds[choice] / min(point.seconds.values()))
    return max(ratios), statistics.fmean(ratios)
