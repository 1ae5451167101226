"""Runs an experiment point by point; what was finished before an interrupt is not run again."""

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from streamjoin.bench import experiments, limits
from streamjoin.bench.compare import ShowProgress, compare_one, document, write_run
from streamjoin.bench.experiments import Experiment, Point
from streamjoin.bench.workloads import Comparison, as_table, check_table, generate
from streamjoin.errors import InputError

POINTS = "points"


@dataclass(frozen=True)
class Place:
    """Where a run keeps its things.

    Attributes
    ----------
    out : Path
        The run's folder.
    data : Path
        Where workloads are generated, shared by all runs.
    threads : int
        Threads where the experiment names none.
    """

    out: Path
    data: Path
    threads: int


def check(experiment: Experiment, size: str) -> None:
    """Refuse an experiment that cannot be run, before anything is generated.

    Raises
    ------
    InputError
        Naming the point, and what is wrong with it.
    """
    if not experiment.points:
        raise InputError(f"{experiment.name} has no points at size {size}")
    for point in experiment.points:
        check_table(point.table, f"{experiment.name}: {point.label}")


def run_experiment(
    experiment: Experiment,
    place: Place,
    command: str,
    show: ShowProgress,
    say: Callable[[str], None],
) -> tuple[dict[str, Any], Path]:
    """Run what is not finished, write records and page.

    Parameters
    ----------
    experiment : Experiment
        What to run.
    place : Place
        Where.
    command : str
        How to repeat it.
    show, say : callable
        As for :func:`streamjoin.bench.compare.compare`.

    Returns
    -------
    records : dict
        The content of ``records.json``.
    page : Path
        The report.
    """
    done = place.out / POINTS
    done.mkdir(parents=True, exist_ok=True)
    suite = place.out / "suite.toml"
    suite.write_text(experiments.suite_text(experiment.name, experiment.points))
    keys = list(dict.fromkeys(point.data_key for point in experiment.points))
    folders = dict(zip(keys, generate(suite, place.data), strict=True))
    bandwidth = limits.copy_bandwidth()
    workloads, records = [], []
    told: set[str] = set()

    def once(text: str) -> None:
        if text not in told:
            told.add(text)
            say(text)

    for number, point in enumerate(experiment.points, start=1):
        folder = folders[point.data_key]
        described = json.loads((folder / "workload.json").read_text())
        digest = experiments.definition(point, described)
        kept = done / f"{_slug(point.label)}-{digest}.json"
        progress = f"{number} of {len(experiment.points)}: {point.label}"
        found = _read(kept)
        if found is None:
            say(progress)
            comparison = replace(as_table(point.table, folder, place.threads), name=point.label)
            found = _measure(comparison, point, bandwidth, show, once)
            if all(record["status"] == "ok" for record in found["records"]):
                _write(kept, found)
        else:
            say(f"{progress} (done before)")
        workloads.append(found["workload"])
        records += found["records"]
    whole = document(experiment.title, command, workloads, records)
    whole["experiment"] = {
        "name": experiment.name,
        "source": experiment.source,
        "limit": experiment.limit,
        "baseline": experiment.baseline,
        "copy_bytes_per_s": bandwidth,
    }
    return whole, write_run(whole, place.out)


def _measure(
    comparison: Comparison,
    point: Point,
    bandwidth: float,
    show: ShowProgress,
    say: Callable[[str], None],
) -> dict[str, Any]:
    workload, records = compare_one(comparison, show, say)
    workload |= {"family": point.family, "settings": dict(point.settings)}
    tuples = workload["n_r"] + workload["n_s"]
    for record in records:
        record |= {"family": point.family, "settings": dict(point.settings)}
        wall_s = (record.get("wall_s") or {}).get("median")
        if wall_s and comparison.arrival == "instant" and record["platform"] != "fpga":
            least = limits.least_bytes(tuples, workload["pairs"])
            record["share_of_limit"] = least / bandwidth / wall_s
    return {"workload": workload, "records": records}


def _slug(label: str) -> str:
    return re.sub(r"[^0-9A-Za-z.]+", "-", label).strip("-")


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) and {"workload", "records"} <= set(found) else None


def _write(path: Path, found: Mapping[str, Any]) -> None:
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(json.dumps(found, indent=1) + "\n")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
