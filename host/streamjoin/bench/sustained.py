"""The highest arrival rate that an engine sustains: no queue grows.

The arrival times of an input are stretched or squeezed until the engine just keeps up. It does if
it is done soon after the last arrival: what it is behind by then is what its queue has grown.

Whoever else uses the machine for a moment makes an engine fall behind, and never makes it keep up.
So the rate that ends a search is replayed again; if that is kept up with, a third decides, and the
search may go on above it.

An input of few tuples is over too soon to show a queue at a high rate. No rate is tried above that
at which it lasts :data:`MIN_REPLAY_S`; an engine that keeps up there sustains that rate at least.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from streamjoin.errors import InputError
from streamjoin.run import Outcome
from streamjoin.sequence import ResolvedJoin

GROWTH = 0.02
"""Share of the arrivals by which the queue may have grown at the end."""

GRACE_S = 0.02
"""Seconds that any engine may be behind: a batch, a slice of the scheduler."""

MIN_REPLAY_S = 0.5
"""Minimum length of a replay in seconds: a shorter one says little about a queue."""

MAX_RATES = 8
"""Maximum rates that are tried while all of them, or none, were kept up with."""

LOADS = (0.1, 0.5, 0.9)
"""Shares of the sustained rate at which latencies are measured, the same for every engine."""

AGREEING = 2
"""Replays that agree on the rate that ends a search."""

NO_BOUND = float("inf")
"""Lowest rate that was not kept up with, before there is one."""

CLIMB = 1.25
"""Next rate by the last where the engine has kept up with every one."""

SPARE = 2.0
"""Tuples that are advised, by those of the shortest replay at the fastest rate that is known."""


@dataclass(frozen=True)
class Attempt:
    """One replay.

    Attributes
    ----------
    rate_tuples_per_s : float
        Arrivals of both streams together.
    arriving_s : float
        How long they took.
    behind_s : float
        How much later the engine was done.
    p95_us : float or None
        Latency of the results; None without any.
    kept_up : bool
        Whether the queue grew by no more than :data:`GROWTH`.
    """

    rate_tuples_per_s: float
    arriving_s: float
    behind_s: float
    p95_us: float | None
    kept_up: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class Loaded:
    """Latencies of the replay at a share of the sustained rate.

    Attributes
    ----------
    load : float
        The share.
    rate_tuples_per_s : float
        Arrivals of both streams together.
    latency_us : dict of str to float
        Quantiles in microseconds, from the arrival of the later tuple to the match: ``p50``,
        ``p95``, ``p99``, ``max``; None without matches. A design's are cycles of its clock.
    latency_from : str
        ``"arrival"``; ``"file"`` for an engine that is given files.
    """

    load: float
    rate_tuples_per_s: float
    latency_us: dict[str, float | None]
    latency_from: str

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class Sustained:
    """Result of a search.

    Attributes
    ----------
    engine : str
        Its name.
    threads : int
        As many as it took.
    at_rest_tuples_per_s : float
        Its throughput when everything has arrived before.
    attempts : tuple of Attempt
        In the order in which they were made.
    loaded : tuple of Loaded
        Latencies below the sustained rate, where they were asked for.
    at_least : bool
        Whether it keeps up with the highest rate that the input's tuples allow.
    clock_hz : float or None
        Clock of a device, by which its cycles are seconds; None for a CPU engine.
    clock_source : str
        Who says so; that of a model says that it is simulated.
    """

    engine: str
    threads: int
    at_rest_tuples_per_s: float
    attempts: tuple[Attempt, ...]
    loaded: tuple["Loaded", ...] = ()
    at_least: bool = False
    clock_hz: float | None = None
    clock_source: str = ""

    @property
    def best(self) -> Attempt | None:
        """The fastest replay that was kept up with, as most at its rate were."""
        kept_up = [each for each in self.attempts if each.kept_up and self._holds(each)]
        return max(kept_up, key=lambda each: each.rate_tuples_per_s, default=None)

    def _holds(self, attempt: Attempt) -> bool:
        """Whether most replays at the rate of this one were kept up with."""
        return is_kept_up(_at(self.attempts, attempt.rate_tuples_per_s))

    @property
    def wanted(self) -> int:
        """Tuples with which a search beyond the input's highest rate can be expected to end."""
        fastest = max([self.at_rest_tuples_per_s, *(e.rate_tuples_per_s for e in self.attempts)])
        return math.ceil(SPARE * fastest * MIN_REPLAY_S)


def is_kept_up(attempts: Sequence[Attempt]) -> bool:
    """Whether an engine keeps up with a rate: it did in most of its replays."""
    return 2 * sum(each.kept_up for each in attempts) > len(attempts)


def search(
    join: ResolvedJoin,
    precision: float,
    check: Callable[[Outcome], None],
    heard: Callable[[Attempt], None],
) -> Sustained:
    """Search the rate that an engine sustains.

    Parameters
    ----------
    join : ResolvedJoin
        An engine that can replay, and a job with arrival times that are not all the same.
    precision : float
        The rates that were and were not kept up with end no further apart than this share.
    check : callable taking Outcome
        Compares every replay's result with the right one.
    heard : callable taking Attempt
        Told of every replay.

    Raises
    ------
    InputError
        If the input has no arrival times.
    """
    job = join.job
    span_s = (job.end_us - job.start_us) / 1e6
    if not span_s:
        raise InputError(
            f"{job.r.source}: all tuples arrive at once, so there is no rate to search"
        )
    natural = job.tuples / span_s
    # At rest first, which is where to begin: the first run compiles, the second says how fast.
    resting = join.arriving("instant")
    prepared = resting.prepare()  # kept: a replay reads R from the same store
    at_rest = resting.run(prepared=prepared)
    highest = float("inf")
    if not _is_simulated(at_rest):
        at_rest = resting.run(prepared=prepared)
        if MIN_REPLAY_S:
            highest = job.tuples / MIN_REPLAY_S
    throughput = float(at_rest.metrics["throughput_tuples_per_s"])
    attempts: list[Attempt] = []
    rate = min(throughput, highest)
    while rate:
        outcome = join.arriving("replay", rate / natural).run()
        check(outcome)
        attempts.append(_attempt(outcome, rate))
        heard(attempts[-1])
        low, high = _bounds(attempts)
        rate = 0.0
        if low < highest and (high == NO_BOUND or high - low > precision * high):
            tried = len({each.rate_tuples_per_s for each in attempts})
            if tried < MAX_RATES or len({each.kept_up for each in attempts}) == 2:
                rate = min(CLIMB * low, highest) if high == NO_BOUND else (low + high) / 2
        elif low < highest and not _is_simulated(at_rest) and _is_open(_at(attempts, high)):
            rate = high
    return Sustained(
        join.engine.name,
        job.threads,
        throughput,
        tuple(attempts),
        at_least=low >= highest,
        clock_hz=at_rest.metrics.get("clock_hz"),
        clock_source=at_rest.metrics.get("clock_source") or "",
    )


def under_loads(
    join: ResolvedJoin,
    found: Sustained,
    loads: Sequence[float],
    check: Callable[[Outcome], None],
) -> Sustained:
    """Replay the input at shares of the rate that was found, and add the latencies.

    Parameters
    ----------
    join : ResolvedJoin
        What was searched.
    found : Sustained
        What :func:`search` returned; without a sustained rate it stays as it is.
    loads : sequence of float
        Shares of its rate.
    check : callable taking Outcome
        Compares every replay's result with the right one.
    """
    if found.best is None:
        return found
    natural = join.job.tuples / ((join.job.end_us - join.job.start_us) / 1e6)
    loaded = []
    for load in loads:
        rate = load * found.best.rate_tuples_per_s
        outcome = join.arriving("replay", rate / natural).run()
        check(outcome)
        metrics = outcome.metrics
        loaded.append(Loaded(load, rate, dict(metrics["latency_us"]), metrics["latency_from"]))
    return replace(found, loaded=tuple(loaded))


def _at(attempts: Sequence[Attempt], rate: float) -> list[Attempt]:
    return [each for each in attempts if each.rate_tuples_per_s == rate]


def _bounds(attempts: Sequence[Attempt]) -> tuple[float, float]:
    """Return the highest rate that was kept up with, and the lowest above it that was not."""
    kept = {
        each.rate_tuples_per_s: is_kept_up(_at(attempts, each.rate_tuples_per_s))
        for each in attempts
    }
    low = max((rate for rate, is_kept in kept.items() if is_kept), default=0.0)
    refused = (rate for rate, is_kept in kept.items() if not is_kept and rate > low)
    return low, min(refused, default=NO_BOUND)


def _is_open(here: Sequence[Attempt]) -> bool:
    """Whether another replay at a rate may still turn the majority."""
    behind = sum(not each.kept_up for each in here)
    return max(behind, len(here) - behind) < AGREEING


def _is_simulated(outcome: Outcome) -> bool:
    """Whether a run's time is a device's cycles: no scheduler delays it."""
    return "cycles" in outcome.metrics


def _attempt(outcome: Outcome, rate: float) -> Attempt:
    arriving_s = outcome.job.tuples / rate
    metrics, is_simulated = outcome.metrics, _is_simulated(outcome)
    took_s = metrics["cycles"] / metrics["clock_hz"] if is_simulated else metrics["wall_s"]
    behind_s = took_s - arriving_s
    latency = metrics["latency_us"] or {}
    allowed_s = max(0.0 if is_simulated else GRACE_S, GROWTH * arriving_s)
    return Attempt(rate, arriving_s, behind_s, latency.get("p95"), behind_s <= allowed_s)
