"""One engine on one input: check, prepare, run, and report metrics.

Two times are measured. The algorithm's part begins after the inputs are read and the engine is
prepared, and ends when the last pair is in memory. The whole call begins with the input in hand and
ends with the result in hand.
"""

import functools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamjoin import estimate
from streamjoin.engines import catalog, compiling, kinds
from streamjoin.engines.base import Engine
from streamjoin.engines.job import ARRIVALS, Job
from streamjoin.errors import InputError, UnavailableError
from streamjoin.lazy import Later, Metrics
from streamjoin.metrics import Meter, ProgressCallback, arrival_clock_us
from streamjoin.tuples import Int64s, Pairs
from streamjoin_common.installed.environment import environment
from streamjoin_common.language.order import check_order
from streamjoin_common.spelling import argument
from streamjoin_common.suggestions import did_you_mean

MAX_THREADS = 1024
"""Maximum threads that a user may ask for."""

SMALL_TUPLES = 1 << 20
"""Tuples of both streams below which a run neither returns freed memory nor samples at once."""

OUTSIDE = ("sql", "dataframe")
"""Platforms of other systems, whose whole calls do not pay for checks of this project's."""


@dataclass(frozen=True)
class Moment:
    """A moment on the wall clock and on the CPU clock of all threads, in nanoseconds."""

    wall_ns: int
    cpu_ns: int

    @classmethod
    def now(cls) -> "Moment":
        """Return this moment."""
        return cls(time.perf_counter_ns(), time.process_time_ns())

    def without(self, since: "Moment") -> "Moment":
        """Return this moment, moved so that the time since another one does not count."""
        now = Moment.now()
        return Moment(
            self.wall_ns + now.wall_ns - since.wall_ns, self.cpu_ns + now.cpu_ns - since.cpu_ns
        )

    @property
    def total(self) -> dict[str, float]:
        """Wall and CPU seconds since then."""
        now = Moment.now()
        return {
            "total_s": (now.wall_ns - self.wall_ns) / 1e9,
            "total_cpu_s": (now.cpu_ns - self.cpu_ns) / 1e9,
        }


@dataclass(frozen=True)
class Prepared:
    """An engine's preparation for a job.

    Attributes
    ----------
    state : object
        What :meth:`Engine.prepare` returned.
    prepare_s : float
        Its time in seconds.
    pairs : int
        The result's pairs, where the engine counts them beforehand; else 0.
    """

    state: Any
    prepare_s: float
    pairs: int = 0


NOT_PREPARED = Prepared(None, 0.0)


@dataclass(frozen=True)
class Outcome:
    """A run's result and the metrics of :doc:`docs/metrics`.

    Attributes
    ----------
    pairs : Pairs
        By position in the job's streams, which are in arrival order;
        :data:`~streamjoin.tuples.NO_ROW` for a missing side.
    metrics : Metrics
        The run's metrics; digest, latencies and progress are computed when they are looked at.
    given_times : ndarray of int64, shape (rows,), Later or None
        The rows' times where the run gave them.
    """

    job: Job
    pairs: Pairs
    metrics: Metrics
    given_times: Int64s | Later | None = None

    @property
    def rows(self) -> Pairs:
        """The pairs by row of the input."""
        return self.job.named(self.pairs)

    @functools.cached_property
    def times(self) -> Int64s | None:
        """The rows' times where the run gave them; None where they are the later tuples'."""
        given = self.given_times
        return given.compute() if isinstance(given, Later) else given

    @property
    def ts(self) -> Int64s:
        """Each row's time: that of its later tuple, unless the run gave ``times``."""
        return self.job.later_ts(self.pairs) if self.times is None else self.times


def check_options(
    *, threads: int, speedup: float, order: str, arrival: str, max_pairs: int | None = None
) -> None:
    """Refuse options that no engine takes.

    Raises
    ------
    InputError
        Naming the option and what it takes.
    """
    if not _is_whole(threads) or not 1 <= threads <= MAX_THREADS:
        raise InputError(f"threads must be an integer from 1 to {MAX_THREADS}, not {threads!r}")
    is_number = isinstance(speedup, int | float | np.number) and not isinstance(speedup, bool)
    if not is_number or not 0 < speedup < float("inf"):
        raise InputError(f"speedup must be a number above 0, not {speedup!r}")
    check_order(order)
    if arrival not in ARRIVALS:
        near = did_you_mean(arrival, ARRIVALS)
        raise InputError(f"arrival must be one of {', '.join(ARRIVALS)}, not {arrival!r}{near}")
    if max_pairs is not None and (not _is_whole(max_pairs) or max_pairs < 1):
        raise InputError(
            f"{argument('max_pairs')} must be an integer of at least 1, not {max_pairs!r}"
        )


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def complete(engine: Engine, job: Job, knobs: Mapping[str, Any] | None) -> Job:
    """Complete a job for an engine and refuse what it cannot do.

    Raises
    ------
    InputError, UnsupportedError, UnavailableError
        If a knob, the predicate, the window, the order or the machine does not fit.
    """
    check_options(
        threads=job.threads,
        speedup=job.speedup,
        order=job.order,
        arrival=job.arrival,
        max_pairs=job.max_pairs,
    )
    catalog.check_store(engine, job.r)
    reason = engine.unusable()
    if reason is not None:
        raise UnavailableError(f"{engine.name} cannot run here: {reason}")
    can = engine.capabilities
    if knobs is not None and not isinstance(knobs, Mapping):
        raise InputError(f"knobs must be a mapping of names to values, not {knobs!r}")
    completed = replace(
        job,
        knobs=engine.resolve_knobs(knobs or {}),
        threads=engine.threads_for(int(job.threads)),
    )
    engine.check(completed)
    if job.backend is None and can.backends:
        return replace(completed, backend=can.backends[0])
    return completed


def prepare(engine: Engine, job: Job, report: Callable[[str], None] | None = None) -> Prepared:
    """Do what must not be timed, once for any number of runs of a completed job."""
    began = time.perf_counter()
    say = report or (lambda _: None)
    with compiling.reported(say):
        state = engine.prepare(job, say)
    return Prepared(state, time.perf_counter() - began, engine.pairs_beforehand(job))


def hand_over(
    engine: Engine,
    job: Job,
    report: Callable[[str], None] | None = None,
    prepared: Prepared = NOT_PREPARED,
) -> Prepared:
    """Do what a single call of the engine takes before the join; ``prepared`` once before."""
    began = time.perf_counter()
    say = report or (lambda _: None)
    with compiling.reported(say):
        state = engine.hand_over(job, say, prepared.state)
    return Prepared(state, time.perf_counter() - began, prepared.pairs)


def run(
    engine: Engine,
    job: Job,
    on_progress: ProgressCallback | None = None,
    report: Callable[[str], None] | None = None,
    prepared: Prepared | None = None,
    *,
    began: Moment | None = None,
) -> Outcome:
    """Run an engine on a job that :func:`complete` has returned.

    Parameters
    ----------
    engine : Engine
        The engine.
    job : Job
        What to join.
    on_progress : callable, optional
        Called with ``(done, total)`` input tuples.
    report : callable, optional
        Called with a line for each slow step of the preparation.
    prepared : Prepared, optional
        What :func:`prepare` returned for this job; by default :func:`hand_over` is called.
    began : Moment, optional
        When the whole call began, with the input in hand; by default now.

    Returns
    -------
    Outcome
        Pairs and metrics.
    """
    compiled_before = compiling.total()
    checking = Moment.now()
    began = began or checking
    fitting_pairs = estimate.check_fits(job, engine.capabilities.first_pairs)
    if engine.capabilities.platform in OUTSIDE:
        began = began.without(checking)
    if prepared is None:
        prepared = hand_over(engine, job, report)
        checking = Moment.now()
        prepared = replace(prepared, pairs=engine.pairs_beforehand(job))
        began = began.without(checking)
    meter = Meter(on_progress, fitting_pairs=fitting_pairs, max_pairs=job.max_pairs)
    meter.check_room(prepared.pairs)
    prepared_with = compiling.total()
    meter.start(small=job.tuples < SMALL_TUPLES)
    pairs = result = None
    try:
        alone = engine.run(job, prepared.state, meter)
        if job.how != "inner":  # deciding it is a part of the join, and of its time
            pairs = meter.pairs()
            result = kinds.result(job, pairs, engine.promise(job), alone)
            meter.check_room(max(0, len(result.pairs) - len(pairs)))
    finally:
        meter.stop()
    if report is not None and compiling.total() > prepared_with:
        report("kernels were compiled during the run, within its time: the next run is faster")
    if pairs is None or result is None:
        pairs = meter.pairs()
        result = kinds.Result(pairs, None)
    total = began.total
    metrics = _metrics(engine, job, meter, pairs, result.pairs)
    metrics["prepare_s"] = prepared.prepare_s
    metrics["kernels_compiled"] = compiling.total() - compiled_before
    metrics.update(total)
    return Outcome(job, result.pairs, metrics, result.ts)


def _metrics(engine: Engine, job: Job, meter: Meter, pairs: Pairs, rows: Pairs) -> Metrics:
    elapsed_s = meter.elapsed_s
    return Metrics(
        {
            "engine": engine.name,
            "backend": job.backend,
            "n_r": job.r.rows,
            "n_s": job.s.rows,
            "late": [job.r.late, job.s.late],
            "pairs": len(rows),
            "digest": Later(lambda: job.named(rows).digest),
            "threads": meter.workers or job.threads,
            "total_s": None,
            "total_cpu_s": None,
            "wall_s": meter.wall_s,
            "cpu_s": meter.cpu_s,
            "throughput_tuples_per_s": job.tuples / elapsed_s if elapsed_s else None,
            "latency_us": Later(lambda: meter.latency_us(_arrived_us(job, pairs))),
            "latency_from": meter.latency_from
            or ("arrival" if job.arrival == "replay" else "run start"),
            "progress": Later(meter.progress_curve),
            "phases_ms": meter.phases_ms(meter.workers or job.threads),
            **meter.resources,
            "window": job.window.text,
            "predicate": job.predicate.text,
            "how": job.how,
            "arrival": job.arrival,
            "speedup": job.speedup,
            "order": engine.promise(job),
            "knobs": dict(job.knobs),
            "environment": environment(),
            **meter.device,
        }
    )


def _arrived_us(job: Job, pairs: Pairs) -> NDArray[np.float64] | None:
    """Return when each pair's later tuple arrived, on the run's clock."""
    if job.arrival != "replay":
        return None
    return arrival_clock_us(job.later_ts(pairs), job.start_us, job.speedup)
