"""Two records of one experiment side by side: what became slower or faster, beyond the noise.

Noise is what the rounds of the records say of it. The standard deviation of a figure is estimated
from the range of its rounds, the standard error of their median from that; a change is beyond the
noise if it is more than :data:`ERRORS` standard errors of a difference and more than
:data:`~streamjoin.bench.claims.NOISE`. Rounds of the engines of a point took turns, so that a busy
moment is in the range of all. Cycles of a simulation have no noise.

Ranges do not show a machine that others use for minutes: at a point whose load says so in either
record, CPU time alone is judged.
"""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamjoin.bench.claims import NOISE
from streamjoin.errors import InputError
from streamjoin.report.stored.distil import check_right, rounded

ERRORS = 4.0
"""Standard errors of a difference that are noise."""

MIN_ROUNDS = 3
"""Rounds below which nothing is known of the noise."""

SPARE_LOAD = 0.7
"""Load beyond a point's threads from which on others count as having used the machine.

Of the points of the stored records, made on a free machine, one in twenty has more, each of one
thread; those of two threads have up to 0.4.
"""

RANGE_PER_DEVIATION = {3: 1.693, 4: 2.059, 5: 2.326, 6: 2.534, 7: 2.704, 8: 2.847, 9: 2.970}
"""Mean range of so many normal values, in standard deviations; 3.078 from ten on."""

MEDIAN_ERROR = 1.253
"""Standard error of a median by that of a mean, of normal values."""

WALL = {"whole call": "total_s", "algorithm": "wall_s"}
TIMES = {**WALL, "CPU": "cpu_s", "p99 of CPU": "p99_cpu_s"}
"""Figures in seconds by what they are called; the last is of calls of a live join alone."""

_RESULT = ("family", "settings", "pairs", "digest", "backend", "clock_hz", "clock_source")
_POINT = (
    *("family", "settings", "kind", "seed", "predicate", "window", "how", "arrival", "speedup"),
    *("n_r", "n_s", "pairs", "digest"),
)
"""What records of one result, and workloads of one point, have in common."""

SLOWER, FASTER, SAME, FEW = "slower", "faster", "within noise", "too few rounds"


@dataclass(frozen=True)
class Change:
    """One figure in both records.

    Attributes
    ----------
    point, engine, figure : str
        Whose, and which: of :data:`TIMES`, or ``cycles``.
    before, after : float
        Medians, in seconds or cycles.
    verdict : str
        ``slower``, ``faster``, ``within noise``, or ``too few rounds`` to say.
    cpu_alone : bool
        Whether it is judged and other times of its point are not, as others used the machine.
    """

    point: str
    engine: str
    figure: str
    before: float
    after: float
    verdict: str
    cpu_alone: bool = False

    @property
    def ratio(self) -> float:
        """After by before; infinite if there was nothing before, and 1 if both are nothing."""
        if self.before == 0:
            return 1.0 if self.after == 0 else math.inf
        return self.after / self.before


@dataclass
class Comparison:
    """All figures of two records of one experiment.

    Attributes
    ----------
    experiment : str
        Its name.
    changes : list of Change
        Of every figure that both have.
    notes : list of str
        What a reader should know of the records.
    gone : list of str
        Points, and engines of points, that only the earlier record has.
    """

    experiment: str
    changes: list[Change] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)

    def of(self, *verdicts: str) -> list[Change]:
        """Return the figures with one of these verdicts."""
        return [change for change in self.changes if change.verdict in verdicts]


def judge(before: Sequence[float], after: Sequence[float]) -> str:
    """Say whether rounds became slower or faster, beyond their noise.

    Examples
    --------
    >>> judge([1.0, 1.02, 1.01], [1.5, 1.51, 1.53]), judge([1.0, 1.3, 1.1], [1.2, 1.0, 1.5])
    ('slower', 'within noise')
    >>> judge([1.0], [3.0])
    'too few rounds'
    """
    if min(len(before), len(after)) < MIN_ROUNDS:
        return FEW
    middles = statistics.median(before), statistics.median(after)
    change = middles[1] - middles[0]
    noise = ERRORS * math.hypot(_error(before), _error(after))
    if abs(change) <= max(noise, NOISE * min(middles)):
        return SAME
    return SLOWER if change > 0 else FASTER


def _error(rounds: Sequence[float]) -> float:
    """Estimate the standard error of the median of rounds."""
    deviation = (max(rounds) - min(rounds)) / RANGE_PER_DEVIATION.get(len(rounds), 3.078)
    return MEDIAN_ERROR * deviation / math.sqrt(len(rounds))


def compare(
    before: Mapping[str, Any], after: Mapping[str, Any], names: tuple[str, str]
) -> Comparison:
    """Compare two records, what :func:`streamjoin.report.stored.read` returns.

    Parameters
    ----------
    before, after : mapping
        The records.
    names : tuple of str
        What they are called in messages.

    Raises
    ------
    InputError
        If they are of different experiments, sizes, machines, points or results, of an unknown
        machine, or one has a wrong or unchecked result.
    """
    _check(before, after, names)
    compared = Comparison(str(before["experiment"]["name"]))
    busy = _busy(before) | _busy(after)
    compared.notes += _others(before, after)
    later = {(record["workload"], record["engine"]): record for record in after["records"]}
    there = {workload for workload, _ in later}
    for record in before["records"]:
        other = later.pop((record["workload"], record["engine"]), None)
        if other is not None:
            compared.changes += _changes(record, other, wall=record["workload"] not in busy)
            compared.notes += _alone(record, other)
        elif record["workload"] in there:
            compared.gone.append(f"{record['engine']} on {record['workload']}")
        elif record["workload"] not in compared.gone:
            compared.gone.append(str(record["workload"]))
    compared.notes += [f"only after: {engine} on {workload}" for workload, engine in later]
    if judged := {change.point for change in compared.changes if change.cpu_alone}:
        compared.notes.append(
            f"others used the machine at {len(judged)} of {len(before['workloads'])} points, as "
            f"{min(judged)}: CPU time alone is judged there"
        )
    return compared


def _busy(run: Mapping[str, Any]) -> set[str]:
    """Name the points at which more than their threads and :data:`SPARE_LOAD` wanted to run."""
    threads: dict[str, int] = {}
    for record in run["records"]:
        name = record["workload"]
        threads[name] = max(threads.get(name, 1), record["threads"])
    whole = (run.get("environment") or {}).get("load_average")
    loads = {
        workload["name"]: (workload.get("measured") or {}).get("load_average", whole)
        for workload in run["workloads"]
    }
    return {
        name
        for name, load in loads.items()
        if load is not None and round(load - threads.get(name, 1), 2) > SPARE_LOAD
    }


def _check(before: Mapping[str, Any], after: Mapping[str, Any], names: tuple[str, str]) -> None:
    def refuse(what: str, there: Any, here: Any) -> None:
        raise InputError(
            f"{names[0]} and {names[1]} are not comparable: {what}, {there} and {here}"
        )

    for run, name in zip((before, after), names, strict=True):
        check_right(run, f"{names[0]} and {names[1]} are not comparable because of {name}")
    for key, what in (("name", "they are of different experiments"), ("size", "of two sizes")):
        pair = before["experiment"].get(key), after["experiment"].get(key)
        if pair[0] != pair[1]:
            refuse(what, *pair)
    machines = [run.get("environment") or {} for run in (before, after)]
    for key, what in (("cpu", "they were made on different machines"), ("cores", "of processors")):
        pair = machines[0].get(key), machines[1].get(key)
        if pair[0] != pair[1] or pair[0] is None:
            refuse(what, *(f"unknown {key}" if each is None else each for each in pair))
    later = {workload["name"]: workload for workload in after["workloads"]}
    for workload in before["workloads"]:
        other = later.get(workload["name"])
        for key in _POINT if other else ():
            assert other is not None
            if workload.get(key) != other.get(key):
                what = f"{key} of {workload['name']} is another"
                refuse(what, workload.get(key), other.get(key))
    found = {(each["workload"], each["engine"]): each for each in after["records"]}
    for record in before["records"]:
        same = found.get((record["workload"], record["engine"]))
        for key in ("threads", *_RESULT) if same else ():
            assert same is not None
            if rounded(record.get(key)) != rounded(same.get(key)):
                what = f"{record['engine']} on {record['workload']} had other {key}"
                refuse(what, record.get(key), same.get(key))
    if not {workload["name"] for workload in before["workloads"]} & set(later):
        raise InputError(f"{names[0]} and {names[1]} are not comparable: they share no point")


def _others(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Say which versions differ: that may be what is compared."""
    environments = [run.get("environment") or {} for run in (before, after)]
    versions = [
        {"python": each.get("python"), **(each.get("packages") or {})} for each in environments
    ]
    return [
        f"{name}: {versions[0].get(name)} before, {versions[1].get(name)} after"
        for name in dict.fromkeys((*versions[0], *versions[1]))
        if versions[0].get(name) != versions[1].get(name)
    ]


def _changes(before: Mapping[str, Any], after: Mapping[str, Any], *, wall: bool) -> list[Change]:
    where = str(before["workload"]), str(before["engine"])
    if before.get("cycles") is not None and after.get("cycles") is not None:
        cycles = float(before["cycles"]), float(after["cycles"])
        verdict = SAME if cycles[0] == cycles[1] else SLOWER if cycles[1] > cycles[0] else FASTER
        return [Change(*where, "cycles", *cycles, verdict)]
    changes = []
    for figure, key in TIMES.items():
        rounds = [_rounds(record, key) for record in (before, after)]
        if not all(rounds) or (figure in WALL and not wall):
            continue
        middles = statistics.median(rounds[0]), statistics.median(rounds[1])
        verdict = judge(*rounds)
        changes.append(Change(*where, figure, *middles, verdict, cpu_alone=not wall))
    return changes


def _alone(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Name the figures that one of two records has and the other has not."""
    notes = []
    for figure, key in {**TIMES, "cycles": "cycles"}.items():
        has = [
            record.get(key) is not None if key == "cycles" else bool(_rounds(record, key))
            for record in (before, after)
        ]
        if has[0] != has[1]:
            side = "before" if has[0] else "after"
            notes.append(f"only {side}: {figure} of {before['engine']} on {before['workload']}")
    return notes


def _rounds(record: Mapping[str, Any], key: str) -> list[float]:
    """Return the rounds of a figure; its median alone where a record does not have them."""
    rounds = (record.get("each_round") or {}).get(key) or []
    spread = record.get(key) or {}
    known = [float(value) for value in rounds if value is not None]
    return known or ([float(spread["median"])] if spread else [])
