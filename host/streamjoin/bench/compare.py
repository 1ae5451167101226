"""Engines side by side: rounds interleaved, every result checked, one record each.

A figure is a record only if its result agreed with the oracle in the same run. A round
is a whole call, with the inputs in hand as tables, and the algorithm's part is measured within it;
of another system, whose part joins native tables, a round is one of each; DuckDB's connection is
open before. Rounds of different engines take turns (A B A B ...) after one round that is not
counted, so that a busy machine is busy for all. A simulated design is run once: its cycles are
exact.
"""

import datetime
import functools
import gc
import statistics
import subprocess
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamjoin import run, verify
from streamjoin.bench.workloads import Comparison
from streamjoin.engines.job import Job
from streamjoin.errors import MismatchError, StreamJoinError
from streamjoin.inputs.sources import Later
from streamjoin.memory import give_back_freed_memory
from streamjoin.metrics import ProgressCallback
from streamjoin.run import Outcome, Prepared
from streamjoin.sequence import Request, ResolvedJoin
from streamjoin_common.installed.environment import environment

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
    "stages_us",
    "processing_latency_us",
)

MAX_KEPT_PAIRS = 1 << 24
"""Maximum pairs of the right results that are kept for points on the same data and window."""

SPREADS = ("total_s", "total_cpu_s", "wall_s", "cpu_s", "throughput_tuples_per_s")

ShowProgress = Callable[[str], AbstractContextManager[ProgressCallback]]


class RightResults:
    """Right results, computed once for all points of a run that ask for the same join."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, ...], tuple[verify.Expected, float]] = {}

    def of(
        self, comparison: Comparison, job: Job, on_progress: ProgressCallback
    ) -> tuple[verify.Expected, float]:
        """Return the right result of a job, and the seconds that it took to compute."""
        asked = comparison.request
        key = tuple(
            str(each)
            for each in (comparison.folder, asked.predicate.text, asked.window.text, asked.how)
        )
        if comparison.folder is not None and key in self._kept:
            return self._kept[key]
        began = time.perf_counter()
        expected = verify.expected(job, on_progress)
        right = expected, time.perf_counter() - began
        if len(expected.rows) <= MAX_KEPT_PAIRS:
            while self._kept and self._pairs + len(expected.rows) > MAX_KEPT_PAIRS:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = right
        return right

    @property
    def _pairs(self) -> int:
        return sum(len(expected.rows) for expected, _ in self._kept.values())


@dataclass(frozen=True)
class _Call:
    """What a whole call of an engine takes: inputs in hand, and what is asked."""

    request: Request
    r: Any
    s: Any
    knobs: Mapping[str, Any]

    def resolve(self, name: str) -> ResolvedJoin:
        """Take the inputs, and check and complete what is asked."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they were given when the inputs were taken first
            job = self.request.take(self.r, self.s)
        return self.request.resolve(name, job, self.knobs)


@dataclass
class _Entrant:
    """One engine on one workload, with what its rounds gave."""

    join: ResolvedJoin
    call: _Call
    prepared: Prepared | None = None
    error: str | None = None
    status: str = "ok"
    rounds: list[dict[str, Any]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The engine's name."""
        return self.join.engine.name


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
        how = "" if comparison.how == "inner" else f", {comparison.how}"
        window = comparison.window.text
        say(f"{comparison.name}: {comparison.predicate.text}, window {window}{how}")
        workload, its_records = compare_one(comparison, show, say)
        workloads.append(workload)
        records += its_records
    return document(title, command, workloads, records)


def document(
    title: str, command: str, workloads: list[dict[str, Any]], records: list[dict[str, Any]]
) -> dict[str, Any]:
    """Put together the content of ``records.json``."""
    return {
        "format": 1,
        "title": title,
        "created": now(),
        "command": command,
        "environment": {**environment(), "revision": revision()},
        "workloads": workloads,
        "records": records,
    }


def compare_one(
    comparison: Comparison,
    show: ShowProgress,
    say: Callable[[str], None],
    right: RightResults | None = None,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Run every engine on one workload; return the workload's entry and the engines' records."""
    request = comparison.request
    job = request.take(comparison.r, comparison.s)
    comparison.check_rows(job.r.rows, job.s.rows)
    # An engine that cannot do it at all is refused before anything runs.
    joins = [
        request.resolve(name, job, comparison.knobs.get(name, {})) for name in comparison.engines
    ]
    with show(f"{comparison.name}: oracle") as on_progress:
        expected, oracle_s = (right or RightResults()).of(comparison, job, on_progress)
    comparison.check_pairs(len(expected.rows))
    in_hand = (_in_hand(job.r, comparison.r), _in_hand(job.s, comparison.s))
    entrants = [
        _enter(join, _Call(request, *in_hand, comparison.knobs.get(name, {})), say)
        for name, join in zip(comparison.engines, joins, strict=True)
    ]
    try:
        for number in range(comparison.rounds + 1):
            gc.collect()
            gc.freeze()  # what is there already is not looked through again before each run
            for entrant in entrants:
                _one_round(entrant, number, comparison.name, expected, show)
    finally:
        gc.unfreeze()
    workload = {
        "name": comparison.name,
        "kind": comparison.kind,
        "predicate": comparison.predicate.text,
        "window": comparison.window.text,
        "how": comparison.how,
        "n_r": job.r.rows,
        "n_s": job.s.rows,
        "pairs": len(expected.rows),
        "comparisons": verify.comparisons(job),
        "digest": expected.rows.digest,
        "oracle": expected.oracle,
        "oracle_s": oracle_s,
        "arrival": comparison.arrival,
        "speedup": comparison.speedup,
        "path": None if comparison.folder is None else str(comparison.folder),
    }
    return workload, [_record(entrant, comparison.name) for entrant in entrants]


def _in_hand(stream: Any, given: Any) -> Any:
    """Return an input as a table in memory; a relation in a store as it was given."""
    if not stream.in_memory:
        return given
    if isinstance(stream.table, Later):
        return stream.table.held
    if isinstance(given, str | Path) or hasattr(given, "read_next_batch"):
        return stream.table
    return given


def _enter(join: ResolvedJoin, call: _Call, say: Callable[[str], None]) -> _Entrant:
    entrant = _Entrant(join, call)
    try:
        entrant.prepared = join.prepare(say)
    except (StreamJoinError, RuntimeError, ValueError, OSError) as error:
        entrant.status, entrant.error = "failed", str(error)
    return entrant


def _one_round(
    entrant: _Entrant, number: int, workload: str, expected: verify.Expected, show: ShowProgress
) -> None:
    if entrant.status != "ok":
        return
    exact = entrant.join.engine.capabilities.platform == "fpga"
    if exact and number > 0:
        return
    try:
        gc.collect()  # or it might run within the measured time, and keep memory of the last round
        give_back_freed_memory()  # or a small run would show a smaller peak
        with show(f"{workload}: {entrant.name}, round {number}") as on_progress:
            outcome, total = _run(entrant, expected, on_progress)
        entrant.join.verify(outcome, expected)
    except StreamJoinError as error:
        entrant.status = "wrong" if isinstance(error, MismatchError) else "failed"
        entrant.error = str(error)
        entrant.rounds.clear()  # no figure is of an engine that was wrong in any round
        return
    if exact or number > 0:  # round 0 warms caches and is not counted
        # Computed now: the pairs are freed.
        entrant.rounds.append(outcome.metrics.copy() | total)


def _run(
    entrant: _Entrant, expected: verify.Expected, on_progress: ProgressCallback
) -> tuple[Outcome, dict[str, float | None]]:
    """Run an engine; return the algorithm's part, and wall and CPU seconds of the whole call.

    There is no whole call of a simulation, nor of a replay, whose input is not in hand.
    """
    can, job, prepared = entrant.join.engine.capabilities, entrant.join.job, entrant.prepared
    if job.backend == "model" or job.arrival == "replay":
        no_total: dict[str, float | None] = {"total_s": None, "total_cpu_s": None}
        return entrant.join.run(on_progress, prepared=prepared), no_total
    if can.platform in run.OUTSIDE:
        assert prepared is not None  # its status is "ok"
        began = run.Moment.now()
        handed = entrant.join.hand_over(prepared)
        outcome = entrant.join.run(prepared=handed, began=began)
        total = _total(outcome)
        entrant.join.verify(outcome, expected)
        del handed, outcome
        return entrant.join.run(on_progress, prepared=prepared), total
    began = run.Moment.now()
    join = entrant.call.resolve(entrant.name)
    # R lies in its store before a semi-stream join.
    outcome = join.run(on_progress, prepared=prepared if can.stores else None, began=began)
    return outcome, _total(outcome)


def _total(outcome: Outcome) -> dict[str, float | None]:
    return {name: outcome.metrics[name] for name in ("total_s", "total_cpu_s")}


def _record(entrant: _Entrant, workload: str) -> dict[str, Any]:
    engine, job = entrant.join.engine, entrant.join.job
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
    for name in SPREADS:
        record[name] = _spread([metrics[name] for metrics in rounds])
    record["each_round"] = {
        name: [metrics[name] for metrics in entrant.rounds] for name in SPREADS if record[name]
    }
    peaks = [metrics["peak_bytes"] for metrics in rounds if metrics["peak_bytes"] is not None]
    record["peak_bytes"] = max(peaks, default=None)
    record["threads"] = middle["threads"]
    record["pairs"], record["digest"] = middle["pairs"], middle["digest"]
    return record


def _spread(values: list[float | None]) -> dict[str, float] | None:
    known = [value for value in values if value is not None]
    if not known:
        return None
    return {"median": statistics.median(known), "min": min(known), "max": max(known)}


def now() -> str:
    """Return the time in UTC, to the second."""
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


@functools.cache
def revision() -> str:
    """Revision of the source where it is a checkout, with a plus where it was changed."""
    here = Path(__file__).parent
    try:
        done = subprocess.run(
            ["git", "describe", "--always", "--dirty=+"],
            cwd=here,
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()
