"""``sj.advise``: which engine suits a workload, and why."""

import os
from dataclasses import replace
from pathlib import Path
from typing import overload

from streamjoin.advise import GOALS, Advice, Goal
from streamjoin.advise import advise as advise_job
from streamjoin.api import as_window
from streamjoin.bench.workloads import Comparison, read_workload
from streamjoin.engines.job import Arrival, Job
from streamjoin.errors import InputError
from streamjoin.sequence import Request
from streamjoin.verbs.workload import Columns, changed, listed
from streamjoin_common.arguments import with_hints
from streamjoin_common.language.arrivals import Arrivals, Unit
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import Window
from streamjoin_common.spelling import argument
from streamjoin_common.suggestions import did_you_mean


@overload
def advise(
    workload: str | Path,
    /,
    *,
    on: Columns | None = None,
    band: Columns | None = None,
    window: Window | str | None = None,
    threads: int | None = None,
    arrival: Arrival | None = None,
    speedup: float = 1.0,
    goal: Goal | None = None,
) -> Advice: ...


@overload
def advise(
    r: object,
    s: object,
    /,
    *,
    on: Columns | None = None,
    band: Columns | None = None,
    window: Window | str | None = None,
    threads: int | None = None,
    arrival: Arrival | None = None,
    speedup: float = 1.0,
    goal: Goal | None = None,
    ts: str | None = None,
    ts_unit: Unit | None = None,
) -> Advice: ...


@with_hints
def advise(
    r: object,
    s: object = None,
    /,
    *,
    on: Columns | None = None,
    band: Columns | None = None,
    window: Window | str | None = None,
    threads: int | None = None,
    arrival: Arrival | None = None,
    speedup: float = 1.0,
    goal: Goal | None = None,
    ts: str | None = None,
    ts_unit: Unit | None = None,
) -> Advice:
    """Name the engine that suits a workload, with the reasons.

    Parameters
    ----------
    r, s
        Both inputs, as ``sj.join`` takes them; or a workload's folder alone.
    on, band, window
        As ``sj.join`` takes them; by default a workload folder's own.
    threads : int, optional
        Threads that an engine may use; by default all cores.
    arrival : str, optional
        ``"instant"`` or ``"replay"``; by default a replay where there are arrival times.
    speedup : float
        Of the replay.
    goal : str, optional
        ``"throughput"`` or ``"latency"``; by default latency for a replay of an
        equality under the windows ``all`` and tumbling; other joins know throughput alone.
    ts, ts_unit : str, optional
        Of both inputs, as ``sj.join`` takes them; a workload has its own.

    Returns
    -------
    Advice
        ``engine``, ``reasons`` and the ``features`` that were measured.

    Raises
    ------
    InputError
        If inputs and options do not fit together.

    Examples
    --------
    >>> import numpy as np
    >>> import streamjoin as sj
    >>> keys = {"k": np.arange(1000)}
    >>> sj.advise(keys, keys, on="k", threads=1).engine in [e.engine for e in sj.engines()]
    True
    """
    if goal is not None and goal not in GOALS:
        near = did_you_mean(goal, GOALS)
        raise InputError(f"goal must be one of {', '.join(GOALS)}, not {goal!r}{near}")
    cores = os.cpu_count() or 1 if threads is None else threads
    if s is None:
        if not isinstance(r, str | Path):
            raise InputError("advise takes a workload's folder, or both inputs, r and s")
        if ts is not None or ts_unit is not None:
            name = "ts" if ts is not None else "ts_unit"
            raise InputError(f"{argument(name)} is of both inputs; a workload has its own: drop it")
        workload = read_workload(Path(r), ("oracle",), cores)
        return advise_job(job_of(changed(workload, on, band, window), arrival, speedup), goal)
    predicate = Predicate.parse(listed(on), listed(band))
    inputs = job_between(
        r, s, predicate, as_window(window),
        ts=ts, ts_unit=ts_unit, threads=cores, arrival=arrival, speedup=speedup,
    )  # fmt: skip
    return advise_job(inputs, goal)


def job_between(
    r: object,
    s: object,
    predicate: Predicate,
    window: Window,
    *,
    ts: str | None,
    ts_unit: str | None,
    threads: int,
    arrival: Arrival | None,
    speedup: float,
) -> Job:
    """Read two inputs, to be asked about."""
    request = Request(
        predicate=predicate,
        window=window,
        arrivals=Arrivals.parse(ts, ts_unit, window),
        threads=threads,
        arrival=arrival,
        speedup=speedup,
    )
    return _at_rest(request.take(r, s), arrival)


def job_of(workload: Comparison, arrival: Arrival | None, speedup: float) -> Job:
    """Read a workload's inputs, to be asked about."""
    request = replace(workload.request, arrival=arrival, speedup=speedup)
    return _at_rest(request.read(workload.r, workload.s), arrival)


def _at_rest(job: Job, arrival: Arrival | None) -> Job:
    if arrival is None and job.start_us == job.end_us:
        return replace(job, arrival="instant")
    return job
