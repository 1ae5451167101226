"""Runs an experiment point by point; what was finished before an interrupt is not run again."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from streamjoin.bench import experiments, limits, points
from streamjoin.bench.compare import (
    RightResults,
    ShowProgress,
    compare_one,
    document,
    now,
    revision,
)
from streamjoin.bench.experiments import Experiment, Point
from streamjoin.bench.suites import as_table, check_table, generate
from streamjoin.bench.workloads import Comparison
from streamjoin.errors import InputError
from streamjoin.relations.catalog import MIN_ROW_BYTES
from streamjoin_common import storage
from streamjoin_common.documents import read_json
from streamjoin_common.installed.environment import environment, load_average


@dataclass(frozen=True)
class RunFolders:
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


class Limit:
    """The rate that bounds engines, measured when it is first asked for.

    Parameters
    ----------
    against : str
        One of :data:`streamjoin.bench.experiments.LIMITS`.

    Attributes
    ----------
    rates : dict of str to float
        What was measured, a second: bytes copied, comparisons of one thread by terms, bytes read
        by store.
    """

    def __init__(self, against: str) -> None:
        self.against = against
        self.rates: dict[str, float] = {}

    def min_s(self, workload: Mapping[str, Any], record: Mapping[str, Any], terms: int) -> float:
        """Return the seconds below which no engine can do what a record says that it did."""
        if self.against == "comparisons":
            rate = self._rate(f"comparisons, terms={terms}", lambda: limits.comparison_rate(terms))
            return float(workload["comparisons"] / rate / record["threads"])
        if self.against == "store" and "semi_stream" in record:
            metrics, knobs = record["semi_stream"], record["knobs"]
            row_bytes = int(knobs["r_bytes"])
            how = metrics["store"], row_bytes, int(knobs["kept_bytes"]) or MIN_ROW_BYTES
            rate = self._rate(
                "bytes read of {}, rows={}, kept={}".format(*how), lambda: limits.store_rate(*how)
            )
            work = metrics["work"]
            return float(metrics["loops"] * work["rows"] * work["row_bytes"] / rate)
        least = limits.least_bytes(workload["n_r"] + workload["n_s"], workload["pairs"])
        return least / self._rate("bytes copied", limits.copy_bandwidth)

    def _rate(self, name: str, measure: Callable[[], float]) -> float:
        if name not in self.rates:
            self.rates[name] = measure()
        return self.rates[name]


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


def generate_all(every: Sequence[Experiment], folder: Path, data: Path) -> None:
    """Make the workloads of several experiments in one session of Spark.

    Each of them then finds what it needs, and starts none.

    Parameters
    ----------
    every : sequence of Experiment
        Whose workloads are made, those that are missing.
    folder : Path
        Where the list of workloads is written.
    data : Path
        Where the workloads are made.

    Raises
    ------
    StreamJoinError
        If the generation fails; its own sentence is on stderr by then.
    """
    suite = folder / "workloads.toml"
    points = tuple(point for experiment in every for point in experiment.points)
    storage.write_text(suite, experiments.suite_text("all", points), parents=True)
    generate(suite, data)


def run_experiment(
    experiment: Experiment,
    run_at: RunFolders,
    command: str,
    show: ShowProgress,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Run what is not finished.

    Parameters
    ----------
    experiment : Experiment
        What to run.
    run_at : RunFolders
        Where.
    command : str
        How to repeat it.
    show, say : callable
        As for :func:`streamjoin.bench.compare.compare`.

    Returns
    -------
    dict
        The content of ``records.json``.
    """
    done = run_at.out / points.FOLDER
    done.mkdir(parents=True, exist_ok=True)
    for folder in (run_at.out, done):
        storage.tidy(folder)
    suite = run_at.out / "suite.toml"
    storage.write_text(suite, experiments.suite_text(experiment.name, experiment.points))
    keys = list(dict.fromkeys(point.data_key for point in experiment.points))
    folders = dict(zip(keys, generate(suite, run_at.data), strict=True))
    limit, right = Limit(experiment.against), RightResults()
    workloads, records = [], []
    said: set[str] = set()

    def once(text: str) -> None:
        if text not in said:
            said.add(text)
            say(text)

    described = {key: read_json(folder / "workload.json") for key, folder in folders.items()}
    kept = [
        points.kept(done, experiment, point, described[point.data_key], run_at.threads)
        for point in experiment.points
    ]
    contents = [points.read_or_say(each, say) for each in kept]
    if there := sum(content is not None for content in contents):
        say(f"{experiment.name}: {there} of {len(contents)} points are there already")
    for number, (point, at) in enumerate(zip(experiment.points, kept, strict=True)):
        content = contents[number]
        if content is None:
            say(f"{number + 1} of {len(contents)}: {point.label}")
            folder = folders[point.data_key]
            comparison = replace(as_table(point.table, folder, run_at.threads), name=point.label)
            content = _measure(comparison, point, (limit, right), show, once)
            if all(record["status"] == "ok" for record in content["records"]):
                at.write(content)
        workload = {**content["workload"], "seed": point.table.get("seed")}
        defined = experiments.definition(point, workload, content["records"])
        workloads.append({**workload, "definition": defined})
        records += content["records"]
    points.say_unused(done, {each.path for each in kept}, say)
    whole = document(experiment.title, command, workloads, records)
    whole["experiment"] = {
        "name": experiment.name,
        "size": experiment.size,
        "source": experiment.source,
        "limit": experiment.limit,
        "baseline": experiment.baseline,
        "against": limit.against,
        "claims": [claim.held(records) for claim in experiment.claims],
        "limit_per_s": limit.rates,
    }
    return whole


def _measure(
    comparison: Comparison,
    point: Point,
    known: tuple[Limit, RightResults],
    show: ShowProgress,
    say: Callable[[str], None],
) -> dict[str, Any]:
    limit, right = known
    began, began_cpu = time.perf_counter(), time.process_time()
    workload, records = compare_one(comparison, show, say, right)
    workload |= {"family": point.family, "settings": dict(point.settings)}
    workload["measured"] = {
        "at": now(),
        "revision": revision(),
        "cpu": environment()["cpu"],
        "took_s": round(time.perf_counter() - began, 3),
        "took_cpu_s": round(time.process_time() - began_cpu, 3),
        "load_average": load_average(),
    }
    for record in records:
        record |= {"family": point.family, "settings": dict(point.settings)}
        wall_s = (record.get("wall_s") or {}).get("median")
        if wall_s and comparison.arrival == "instant" and record["platform"] != "fpga":
            least_s = limit.min_s(workload, record, len(comparison.predicate.terms))
            record["share_of_limit"] = least_s / wall_s
    return {"workload": workload, "records": records}
