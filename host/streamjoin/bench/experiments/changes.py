"""Whether a record is of an experiment as its file is now.

A run keeps with each point a digest of what the file asked there and of what was run: data, window
and kind of join, and every engine with its threads. A point that gives another digest today was
changed, in the file or in the record. Rounds, claims and causes are no part of it.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from streamjoin.bench.experiments.reading import Experiment
from streamjoin.bench.experiments.sweeps import Point

_RUN = (
    *("family", "settings", "kind", "seed", "predicate", "window", "how", "arrival", "speedup"),
    *("n_r", "n_s"),
)
"""What a workload's entry says of what was run."""

MAX_NAMED = 3
"""Points that are named; the others are counted."""


def definition(
    point: Point, workload: Mapping[str, Any], records: Iterable[Mapping[str, Any]]
) -> str:
    """Digest of what a point asks and of what was run: 16 hexadecimal digits.

    Parameters
    ----------
    point : Point
        The point.
    workload : mapping
        Its entry among the ``workloads`` of a run.
    records : iterable of mapping
        Its records.
    """
    threads = {record["engine"]: record["threads"] for record in records}
    run = [workload.get(name) for name in _RUN]
    text = json.dumps([point.asked(without=("rounds",)), run, threads], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def changed(experiment: Experiment, run: Mapping[str, Any]) -> str:
    """Say what of an experiment, as its file is now, a run of it does not have.

    Parameters
    ----------
    experiment : Experiment
        At the size of the run.
    run : mapping
        With ``workloads`` and ``records``.

    Returns
    -------
    str
        A sentence that names points; empty where nothing was changed.
    """
    points = {point.label: point for point in experiment.points}
    had = {workload["name"]: workload for workload in run["workloads"]}
    by_point: dict[str, list[Mapping[str, Any]]] = {name: [] for name in had}
    for record in run["records"]:
        by_point[record["workload"]].append(record)
    lacking, other = [], []
    for label in points.keys() & had.keys():
        entered = {record["engine"] for record in by_point[label]}
        if missing := sorted({*points[label].table["engines"]} - entered):
            lacking.append(f"{label}, {' and '.join(missing)}")
        elif had[label].get("definition") != definition(points[label], had[label], by_point[label]):
            other.append(label)
    order = [*points, *had].index
    parts = [
        _counted([label for label in points if label not in had], "new"),
        _counted([label for label in had if label not in points], "gone"),
        _counted(sorted(other, key=order), "not what was run"),
        _counted(sorted(lacking), "without a record of an engine"),
    ]
    said = "; ".join(filter(None, parts))
    return f"The experiment was changed since: {said}." if said else ""


def _counted(labels: Sequence[str], what: str) -> str:
    """Say how many points are something, and which, the first of them by name."""
    if not labels:
        return ""
    named = "; ".join(labels[:MAX_NAMED])
    more = f" and {len(labels) - MAX_NAMED} more" if len(labels) > MAX_NAMED else ""
    return (
        f"{len(labels)} {'point is' if len(labels) == 1 else 'points are'} {what} ({named}{more})"
    )
