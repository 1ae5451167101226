"""The stored record of an experiment: of a run what verdicts, tables, charts and comparisons need.

It has the form of ``records.json`` and is read as such, so that a report can be made of it, but it
is a tenth as large: no curves but their half and their end, no paths, five significant digits.
Claims are not in it: they are judged anew by the rules as they are now.
"""

import json
import shlex
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamjoin.bench.claims import is_right
from streamjoin.errors import InputError
from streamjoin.report.records import RECORDS_FILE, STATUSES, check_experiment, read_records
from streamjoin.report.stored import others
from streamjoin_common import storage
from streamjoin_common.installed import shipped

FOLDER = shipped.EXPERIMENTS / "results"
"""Where the repository keeps them."""

DIGITS = 5
"""Significant digits of a figure."""

_RUN = ("format", "title", "created")
_EXPERIMENT = ("name", "size", "source", "limit", "baseline", "against", "limit_per_s")
_WORKLOAD = (
    *("name", "family", "settings", "kind", "seed", "predicate", "window", "how", "n_r", "n_s"),
    *("pairs", "digest", "oracle", "arrival", "speedup", "definition", "measured"),
)
_RECORD = (
    *("workload", "engine", "platform", "backend", "status", "checked", "threads", "rounds"),
    *("pairs", "total_s", "wall_s", "cpu_s", "throughput_tuples_per_s", "latency_from"),
    *("phases_ms", "structure_bytes", "peak_bytes", "cycles", "clock_hz", "clock_source"),
    "share_of_limit",
)
_ROUNDS = ("total_s", "wall_s", "cpu_s")
_SEMI_STREAM = ("store", "service_rate_tuples_per_s", "cache_share", "memory_bytes", "loop_us")
_WITHOUT_PLACE = ("--out", "--data", "--record")


def distilled(run: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is stored of a run.

    Parameters
    ----------
    run : mapping
        The content of ``records.json``.

    Raises
    ------
    InputError
        If it is no run of an experiment, or a result in it is wrong or missing.
    """
    experiment = run.get("experiment")
    if not experiment:
        raise InputError("only the run of an experiment is stored; this one is of no experiment")
    check_right(run, f"{experiment['name']} is not stored")
    workloads = [_picked(workload, _WORKLOAD) for workload in run["workloads"]]
    environment = dict(run.get("environment") or {})
    measured = [workload.get("measured") or {} for workload in workloads]
    revisions = dict.fromkeys(at["revision"] for at in measured if at.get("revision"))
    if revisions:
        environment["revision"] = ", ".join(revisions)
    environment["load_average"] = load_average(run)
    return {
        **_picked(run, _RUN),
        "command": _command(str(run.get("command") or "")),
        "environment": environment,
        "experiment": _picked(experiment, _EXPERIMENT),
        "workloads": workloads,
        "records": [_record(record) for record in run["records"]],
    }


def wrong_results(run: Mapping[str, Any]) -> list[str]:
    """Say of each wrong or unchecked result of a run whose it is, and what it is."""
    return [
        f"{record['engine']} on {record['workload']} is "
        f"{'unchecked' if record['status'] == STATUSES[0] else record['status']}"
        for record in run["records"]
        if not is_right(record)
    ]


def check_right(run: Mapping[str, Any], what: str) -> None:
    """Refuse a run with a wrong or unchecked result.

    Raises
    ------
    InputError
        Beginning with ``what``, naming the first of them.
    """
    if wrong := wrong_results(run):
        raise InputError(f"{what}: {wrong[0]}")


def load_average(run: Mapping[str, Any]) -> float | None:
    """Return the median of the machine's load over the points of a run, where they have it."""
    measured = [workload.get("measured") or {} for workload in run["workloads"]]
    loads = [at["load_average"] for at in measured if at.get("load_average") is not None]
    known = (run.get("environment") or {}).get("load_average")
    return statistics.median(loads) if loads else known


def _command(command: str) -> str:
    """Return a command without the folders of one machine."""
    words = shlex.split(command)
    kept = [
        word
        for before, word in zip(["", *words], words, strict=False)
        if word not in _WITHOUT_PLACE and before not in _WITHOUT_PLACE
    ]
    return shlex.join(kept)


def _record(record: Mapping[str, Any]) -> dict[str, Any]:
    small = _picked(record, _RECORD)
    rounds = record.get("each_round") or {}
    small["each_round"] = {name: rounds[name] for name in _ROUNDS if name in rounds}
    small["latency_us"] = _picked(record.get("latency_us") or {}, ("p50", "p95"))
    small["counters"] = _picked(record.get("counters") or {}, ("l1d_read_misses",))
    curve = record.get("progress") or []
    half = next((point for point in curve if point[0] >= 0.5 - 1e-9), None)
    small["progress"] = [half, curve[-1]] if half and half != curve[-1] else curve[-1:]
    semi = record.get("semi_stream") or {}
    small["semi_stream"] = _picked(semi, _SEMI_STREAM)
    if semi.get("cost_model"):
        small["semi_stream"]["cost_model"] = _picked(semi["cost_model"], ("loop_us",))
    return {name: rounded(value) for name, value in small.items() if value not in ({}, [])}


def _picked(values: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: values[name] for name in names if values.get(name) is not None}


def rounded(value: Any) -> Any:
    """Round every figure to :data:`DIGITS` significant digits."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {name: rounded(inner) for name, inner in value.items()}
    return [rounded(inner) for inner in value] if isinstance(value, list) else value


def store(run: Mapping[str, Any], folder: Path) -> Path:
    """Write the stored record of a run, ``NAME-SIZE.json``; return its path.

    Raises
    ------
    InputError
        As :func:`distilled`.
    StorageError
        If the folder cannot be written.
    """
    small = distilled(run)
    path = folder / f"{small['experiment']['name']}-{small['experiment'].get('size', 'quick')}.json"
    storage.write_text(path, text_of(small), parents=True)
    return path


def text_of(small: Mapping[str, Any]) -> str:
    """Write one line for each workload and record: differences of two files can be read."""
    parts = []
    for name, value in small.items():
        if isinstance(value, list):
            lines = ",\n".join(f"  {json.dumps(each)}" for each in value)
            parts.append(f" {json.dumps(name)}: [\n{lines}\n ]")
        else:
            parts.append(f" {json.dumps(name)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def read(path: Path) -> dict[str, Any]:
    """Read a stored record or the ``records.json`` of a run of an experiment.

    Returns
    -------
    dict
        A run; its records have ``family``, ``settings`` and ``digest`` of their workload.

    Raises
    ------
    RecordsError
        If it is neither, or lacks what comparisons and verdicts need; the message names the field.
    InputError
        If it is of no experiment.
    """
    run = read_records(path)
    if not run.get("experiment"):
        raise InputError(f"{path}: is the record of no experiment")
    workloads = {workload["name"]: workload for workload in run["workloads"]}
    for record in run["records"]:
        workload = workloads[record["workload"]]
        for name in ("family", "settings", "digest"):
            record.setdefault(name, workload.get(name))
    check_experiment(run, str(path))
    return run


def find(path: Path) -> list[Path]:
    """Return the records that a path names: a file, a run's folder, or a folder of either.

    Raises
    ------
    InputError
        If there is none.
    """
    if path.is_file() or (path / RECORDS_FILE).is_file():
        return [path]
    found = experiments_in(path) or [
        *sorted(file.parent for file in path.glob(f"*/{RECORDS_FILE}")),
        *sorted(file for name in others.FILES for file in path.glob(f"*/{name}")),
    ]
    if not found:
        raise InputError(
            f"{path}: has no records: give a record, a run's folder or a folder of them"
        )
    return found


def experiments_in(folder: Path) -> list[Path]:
    """Return the stored records in a folder but those of ``bench cpu-fpga``, another kind."""
    return sorted(set(folder.glob("*.json")) - set(folder.glob("cpu-fpga-*.json")))
