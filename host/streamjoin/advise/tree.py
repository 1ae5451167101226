"""The decision tree of the IaWJ study's figure 4, with measured thresholds.

A second tree covers what the study excludes: sliding windows, band predicates, orders.
"""

from dataclasses import dataclass
from html import escape
from typing import Literal, get_args

from streamjoin.advise import sliding
from streamjoin.advise import thresholds as stored
from streamjoin.advise.features import SAMPLE_TUPLES, Features, measure, sized
from streamjoin.advise.thresholds import NEVER, Thresholds
from streamjoin.engines import catalog
from streamjoin.engines.base import Engine
from streamjoin.engines.job import Job
from streamjoin.errors import InputError
from streamjoin_common.language.kinds import R_ONLY
from streamjoin_common.spelling import argument

Goal = Literal["throughput", "latency"]

GOALS: tuple[Goal, ...] = get_args(Goal)
MEDIUM_SHARE = 0.5
"""Share of SHJ-JM's sustained rate above which an arrival rate is medium; above all of it, high.

At half its capacity a queue of random arrivals is one tuple long on average."""

SEMI_STREAM = "ssbj"
"""Semi-stream engine of choice: it joins what MESHJOIN does, skewed streams faster."""

SLOW_SHARE = 0.01
"""Share of the capacity below which a stream is slow."""


@dataclass(frozen=True)
class Advice:
    """An engine, and the path through the tree that led to it.

    Attributes
    ----------
    engine : str
        The engine's name.
    reasons : tuple of str
        One for each branch taken, from the root.
    features : Features or SlidingFeatures
        What was measured.
    goal : str
        ``"throughput"`` or ``"latency"``; only the study's tree depends on it.
    """

    engine: str
    reasons: tuple[str, ...]
    features: Features | sliding.SlidingFeatures
    goal: str

    def __str__(self) -> str:
        """Return the advice in sentences: the engine, then why."""
        return "\n".join([f"{self.engine}, for {self.goal}:", *(f"- {r}" for r in self.reasons)])

    def _repr_html_(self) -> str:
        """Return the same as a notebook shows it."""
        reasons = "".join(f"<li>{escape(reason)}</li>" for reason in self.reasons)
        return f"<p><b>{escape(self.engine)}</b>, for {self.goal}:</p><ul>{reasons}</ul>"


def walk(
    features: Features, thresholds: Thresholds, threads: int, goal: str
) -> tuple[str, tuple[str, ...]]:
    """Walk from the root to a leaf.

    Parameters
    ----------
    features : Features
        The workload's.
    thresholds : Thresholds
        The branches.
    threads : int
        Threads that the engine may use.
    goal : str
        ``"throughput"``, or ``"latency"`` for the earliest matches.

    Returns
    -------
    engine : str
        The leaf's engine.
    reasons : tuple of str
        A sentence for each branch.
    """
    if features.r_rate is None or features.s_rate is None:
        leaf, reasons = _lazy(features, thresholds, threads)
        return leaf, ("all tuples are at rest, so a lazy join", *reasons)
    capacity = thresholds.eager_capacity(threads)
    rate = features.r_rate + features.s_rate
    share = f"{rate:,.3g} tuples/s arrive, {rate / capacity:.2g} of what shj-jm sustains here"
    if rate > capacity:
        leaf, reasons = _lazy(features, thresholds, threads)
        return leaf, (f"{share}: high, so a lazy join", *reasons)
    if rate <= MEDIUM_SHARE * capacity:
        return "shj-jm", (f"{share}: low, so every tuple is joined as it arrives",)
    if min(features.r_rate, features.s_rate) <= SLOW_SHARE * capacity:
        return "shj-jm", (f"{share}: medium", "one stream is slow, so shj-jm")
    if features.duplication >= thresholds.eager_high_duplication:
        reason = (
            f"{features.duplication:.1f} tuples a key, from "
            f"{thresholds.eager_high_duplication:.1f} on high: pmj-jb sorts what tables chain"
        )
        return "pmj-jb", (f"{share}: medium", reason)
    low = f"{features.duplication:.1f} tuples a key: low"
    if goal == "latency":
        return "shj-jm", (f"{share}: medium", f"{low}, so shj-jm for early matches")
    leaf, reasons = _lazy(features, thresholds, threads)
    return leaf, (f"{share}: medium", f"{low}, so a lazy join for throughput", *reasons)


def _lazy(features: Features, thresholds: Thresholds, threads: int) -> tuple[str, tuple[str, ...]]:
    duplication, limit = features.duplication, thresholds.high_duplication
    if duplication >= limit:
        high = f"{duplication:.1f} tuples a key, from {limit:.1f} on high: sort, then merge"
        many = thresholds.many_threads
        if threads >= many:
            return "mpass", (high, f"{threads} threads, from {many} on many: mpass")
        return "mway", (high, f"{threads} threads, below {many}: mway")
    low = f"{duplication:.1f} tuples a key, below {limit:.1f}: hash"
    if limit >= NEVER:
        low = f"{duplication:.1f} tuples a key: hash, as sorting was faster at no duplication"
    # A hash join builds its table over the shorter stream; thresholds are of streams as long.
    size, least = 2 * min(features.r_tuples, features.s_tuples), thresholds.large_tuples
    if size < least:
        return "npj", (low, f"twice the shorter stream is {size:,} tuples, below {least:,}: npj")
    large = f"twice the shorter stream is {size:,} tuples, from {least:,} on large"
    heavy, limit_share = features.key_skew, thresholds.high_key_skew
    if heavy >= limit_share:
        return "npj", (
            low,
            large,
            f"one key is {heavy:.1%} of a stream, from {limit_share:.1%} on: npj",
        )
    return "prj", (low, large, f"no key is more than {heavy:.2%} of a stream: prj")


CHOOSING_TUPLES = (1 << 9, 1 << 13)
"""Tuples of a stream's sample where the join follows at once, at least and at most."""

CHOOSING_SHARE = 32
"""One in so many tuples of both streams is the sample between these: a small part of the time."""

FEW_TUPLES = 1 << 15
"""Tuples at rest below which equalities are joined by a hash table at once: to measure them would
take as long as the join."""


def advise(job: Job, goal: str | None = None, sample_tuples: int = SAMPLE_TUPLES) -> Advice:
    """Measure a workload and name the engine that suits it.

    Parameters
    ----------
    job : Job
        Inputs, predicate, window, threads, arrival and speedup.
    goal : str, optional
        ``"throughput"`` or ``"latency"``; by default latency for a replay that the study's tree
        covers.
    sample_tuples : int
        Maximum tuples of each stream's sample.

    Returns
    -------
    Advice
        The engine, reasons and features.

    Raises
    ------
    InputError
        If the goal is latency and the tree is the second one, which knows throughput alone.
    """
    if not covers(job):
        if goal == "latency":
            raise InputError(
                f"{argument('goal')} latency has an effect on equalities under windows all and "
                "tumbling whose results have no order; other joins are advised for throughput "
                f"alone: drop {argument('goal')}"
            )
        met = sliding.measure(job, min(sliding.SAMPLE_TUPLES, sample_tuples // 2))
        engine, reasons = sliding.walk(met, job.threads)
        return Advice(engine, reasons, met, "throughput")
    features = measure(job, sample_tuples)
    aim = goal or ("latency" if job.arrival == "replay" else "throughput")
    thresholds, _ = stored.load()
    engine, reasons = walk(features, thresholds, job.threads, aim)
    return Advice(engine, reasons, features, aim)


def covers(job: Job) -> bool:
    """Whether the study's tree has a leaf for such a job."""
    return (
        job.predicate.kind == "equi"
        and job.window.kind in {"all", "tumbling"}
        and job.order == "none"
    )


def _chosen_by_size(job: Job) -> str | None:
    """Choose for equalities at rest without a sample, where none can change the choice."""
    if job.tuples < FEW_TUPLES or job.how in R_ONLY:
        return "npj"
    thresholds, _ = stored.load()
    if min(thresholds.high_duplication, thresholds.high_key_skew) < NEVER:
        return None
    return walk(sized(job), thresholds, job.threads, "throughput")[0]


def choose(job: Job) -> Engine:
    """Choose for ``engine="auto"``: the advised engine if it runs here, else the first that fits.

    A relation in a store is read by a semi-stream join. Kinds that need only the first pair of each
    tuple of R are joined by the engine that gives no more.
    """
    if not job.r.in_memory:
        return catalog.get(SEMI_STREAM)
    by_size = _chosen_by_size(job) if covers(job) and job.arrival == "instant" else None
    least, most = CHOOSING_TUPLES
    sample_tuples = min(max(least, job.tuples // CHOOSING_SHARE), most)
    engine = catalog.get(by_size or advise(job, sample_tuples=sample_tuples).engine)
    if engine.unusable() is None:
        return engine
    return catalog.choose(job.predicate, job.window, job.order)
