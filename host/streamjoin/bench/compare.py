"""Engines side by side: rounds interleaved, every result checked, one record each.

A figure is a record only if its result agreed with the oracle in the same run. Rounds of
different engines take turns (A B A B ...) after one round that is not counted, so that a busy
machine is busy for all. A simulated design is run once: its cycles are exact.
"""

import datetime
import statistics
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamjoin import run, verify
from streamjoin.bench.workloads import Comparison
from streamjoin.engines import catalog
from streamjoin.engines.base import Engine
from streamjoin.engines.job import Job
from streamjoin.errors import MismatchError, StreamJoinError
from streamjoin.inputs.batches import read_streams
from streamjoin.metrics import ProgressCallback
from streamjoin.tuples import Pairs
from streamjoin_common.language.arrivals import Arrivals

RECORDS = "records.json"
SHOWN = (
    "latency_us",
    "latency_from",
    "progress",
    "phases_ms",
    "memory",
    "structure_bytes",
    "counters",
    "counters_note",
    "prepare_s",
    "cycles",
    "clock_hz",
    "clock_source",
    "results_backpressure_cycles",
    "input_stall_cycles",
    "semi_stream",
)

ShowProgress = Callable[[str], AbstractContextManager[ProgressCallback]]


@dataclass
class _Entrant:
    """One engine on one workload, with what its rounds gave."""

    name: str
    engine: Engine
    job: Job
    prepared: run.Prepared | None = None
    error: str | None = None
    status: str = "ok"
    rounds: list[dict[str, Any]] = field(default_factory=list)


def compare(
    comparisons: list[Comparison],
    title: str,
    command: str,
    show: ShowProgress,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Run every comparison.

    Parameters
    ----------
    comparisons : list of Comparison
        What to run.
    title, command : str
        For the record: what it is called and how to repeat it.
    show : callable
        Makes a progress bar for a piece of work.
    say : callable
        Told what goes on, a line each.

    Returns
    -------
    dict
        The content of ``records.json``.
    """
    workloads, records = [], []
    for comparison in comparisons:
        say(f"{comparison.name}: {comparison.predicate.text}, window {comparison.window.text}")
        workload, found = compare_one(comparison, show, say)
        workloads.append(workload)
        records += found
    return document(title, command, workloads, records)


def document(
    title: str, command: str, workloads: list[dict[str, Any]], records: list[dict[str, Any]]
) -> dict[str, Any]:
    """Put together the content of ``records.json``."""
    return {
        "format": 1,
        "title": title,
        "created": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "command": command,
        "environment": {**run.environment(), "revision": _revision()},
        "workloads": workloads,
        "records": records,
    }


def compare_one(
    comparison: Comparison, show: ShowProgress, say: Callable[[str], None]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Run every engine on one workload; return the workload's entry and the engines' records."""
    arrivals = Arrivals.parse(window=comparison.window)
    r, s = read_streams(comparison.r, comparison.s, comparison.predicate, arrivals)
    comparison.check_rows(r.rows, s.rows)
    asked = Job(
        r,
        s,
        comparison.predicate,
        comparison.window,
        threads=comparison.threads,
        arrival=comparison.arrival,
        speedup=comparison.speedup,
        max_pairs=comparison.max_pairs,
    )
    # Whoever cannot do it at all is refused before anything runs.
    jobs = [
        (name, run.settle(catalog.get(name), asked, comparison.knobs.get(name, {})))
        for name in comparison.engines
    ]
    with show(f"{comparison.name}: oracle") as told:
        began = time.perf_counter()
        right, oracle = verify.expected(asked, told)
        oracle_s = time.perf_counter() - began
    comparison.check_pairs(len(right))
    entrants = [_enter(name, job, say) for name, job in jobs]
    for number in range(comparison.rounds + 1):
        for entrant in entrants:
            _one_round(entrant, number, comparison.name, right, show)
    workload = {
        "name": comparison.name,
        "kind": comparison.kind,
        "predicate": comparison.predicate.text,
        "window": comparison.window.text,
        "n_r": r.rows,
        "n_s": s.rows,
        "pairs": len(right),
        "comparisons": verify.comparisons(asked),
        "digest": right.digest,
        "oracle": oracle,
        "oracle_s": oracle_s,
        "arrival": comparison.arrival,
        "speedup": comparison.speedup,
        "path": str(comparison.folder),
    }
    return workload, [_record(entrant, comparison.name) for entrant in entrants]


def _enter(name: str, job: Job, say: Callable[[str], None]) -> _Entrant:
    engine = catalog.get(name)
    entrant = _Entrant(name, engine, job)
    try:
        entrant.prepared = run.prepare(engine, job, say)
    except (StreamJoinError, RuntimeError, ValueError, OSError) as error:
        entrant.status, entrant.error = "failed", str(error)
    return entrant


def _one_round(
    entrant: _Entrant, number: int, workload: str, right: Pairs, show: ShowProgress
) -> None:
    engine, job = entrant.engine, entrant.job
    if entrant.status != "ok":
        return
    exact = engine.capabilities.platform == "fpga"
    if exact and number > 0:
        return
    try:
        with show(f"{workload}: {entrant.name}, round {number}") as told:
            outcome = run.run(engine, job, told, prepared=entrant.prepared)
        verify.check(outcome.pairs, right, entrant.name)
        verify.check_order(outcome.pairs, job, engine.promise(job))
    except MismatchError as error:
        entrant.status, entrant.error = "wrong", str(error)
        return
    except StreamJoinError as error:
        entrant.status, entrant.error = "failed", str(error)
        return
    if exact or number > 0:  # round 0 warms caches and is not counted
        entrant.rounds.append(outcome.metrics)


def _record(entrant: _Entrant, workload: str) -> dict[str, Any]:
    engine, job = entrant.engine, entrant.job
    record: dict[str, Any] = {
        "workload": workload,
        "engine": entrant.name,
        "platform": engine.capabilities.platform,
        "backend": job.backend,
        "status": entrant.status,
        "error": entrant.error,
        "checked": entrant.status == "ok",
        "order": engine.promise(job),
        "threads": job.threads,
        "knobs": dict(job.knobs),
        "rounds": len(entrant.rounds),
    }
    if entrant.status != "ok" or not entrant.rounds:
        return record
    rounds = sorted(
        entrant.rounds, key=lambda metrics: float(metrics["throughput_tuples_per_s"] or 0)
    )
    middle = rounds[len(rounds) // 2]
    record.update({name: middle.get(name) for name in SHOWN})
    for name in ("wall_s", "cpu_s", "throughput_tuples_per_s"):
        record[name] = _spread([metrics[name] for metrics in rounds])
    peaks = [metrics["peak_bytes"] for metrics in rounds if metrics["peak_bytes"] is not None]
    record["peak_bytes"] = max(peaks, default=None)
    record["pairs"], record["digest"] = middle["pairs"], middle["digest"]
    return record


def _spread(values: list[float | None]) -> dict[str, float] | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    return {"median": statistics.median(known), "min": min(known), "max": max(known)}


def _revision() -> str:
    """Revision of the source where it is a checkout, with a plus where it was changed."""
    here = Path(__file__).parent
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty=+"],
            cwd=here,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return found.stdout.strip()
