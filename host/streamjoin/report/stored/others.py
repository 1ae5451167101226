"""Records of ``bench calls`` and ``bench live`` in the form of an experiment's run.

So they are compared as those are. A case is a point; a system, or the engine of a live join, is an
engine there. All their results were checked: a wrong one ends the benchmark without a record.
"""

import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from streamjoin.errors import InputError
from streamjoin.report.records import FORMAT, check_experiment, check_run
from streamjoin_common.documents import DocumentError, read_json

FILES = ("calls.json", "live.json")
"""Files in the folders of their runs."""


def is_one(path: Path) -> bool:
    """Whether a file holds cases of whole calls or of live joins."""
    try:
        found = read_json(path)
    except (DocumentError, OSError):
        return False
    return isinstance(found, dict) and "cases" in found and "format" not in found


def read(path: Path) -> dict[str, Any]:
    """Read a record of ``bench calls`` or ``bench live``.

    Returns
    -------
    dict
        A run of the experiment ``calls`` or ``live``, as :func:`streamjoin.report.stored.read`
        returns it.

    Raises
    ------
    InputError
        If it is none, or lacks what is compared.
    """
    found = read_json(path)
    try:
        cases = list(found["cases"])
        is_live = any("predicate" in case for case in cases)
        made = [_of_live(case, found) if is_live else _of_calls(case, found) for case in cases]
        name = "live" if is_live else "calls"
        run = {
            "format": FORMAT,
            "title": f"bench {name}",
            "environment": found["environment"],
            "experiment": {"name": name, "size": found["size"], "source": "-", "limit": "-"},
            "workloads": [workload for workload, _ in made],
            "records": [record for _, records in made for record in records],
        }
    except KeyError as error:
        raise InputError(f"{path}: is no record of bench calls or live: it lacks {error}") from None
    except (TypeError, AttributeError, ValueError, statistics.StatisticsError) as error:
        raise InputError(f"{path}: is no record of bench calls or live: {error}") from None
    check_run(run, str(path))
    check_experiment(run, str(path))
    return run


Made = tuple[dict[str, Any], list[dict[str, Any]]]
"""A workload, and the records of its engines."""


def _of_calls(case: Mapping[str, Any], found: Mapping[str, Any]) -> Made:
    name = case["case"]
    workload = _workload(name, case)
    records = []
    for system, times in case["systems"].items():
        figures = _figures({"total_s": times["wall_s"], "cpu_s": times["cpu_s"]})
        rounds = {"total_s": times.get("wall_rounds_s"), "cpu_s": times.get("cpu_rounds_s")}
        records.append(_record(name, system, workload, found) | figures | _rounds(rounds))
    return workload, records


def _of_live(case: Mapping[str, Any], found: Mapping[str, Any]) -> Made:
    name = f"{case['predicate']}, {case['tuples']:,} tuples a call"
    workload = _workload(name, case) | {"predicate": case["predicate"]}
    if case.get("window") is not None:
        workload["window"] = case["window"]
    figures = _figures({"cpu_s": case["tuples"] / case["tuples_per_s"]})
    rounds = _rounds(case.get("each_round") or {})
    return workload, [
        _record(name, str(case.get("engine", "auto")), workload, found) | figures | rounds
    ]


def _workload(name: str, case: Mapping[str, Any]) -> dict[str, Any]:
    counts = {side: case.get(side, 0) for side in ("n_r", "n_s")}
    result = {"pairs": case["pairs"], "digest": case["digest"], "oracle": "another engine"}
    return {"name": name, "family": name, "settings": {}, "measured": case.get("measured")} | (
        counts | result
    )


def _record(
    name: str, engine: str, workload: Mapping[str, Any], found: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "workload": name,
        "engine": engine,
        "platform": "cpu",
        "status": "ok",
        "checked": True,
        "threads": found["threads"],
        "rounds": found["rounds"],
        **{key: workload[key] for key in ("family", "settings", "pairs", "digest")},
    }


def _figures(medians: Mapping[str, float]) -> dict[str, Any]:
    return {
        name: {"median": median, "min": median, "max": median} for name, median in medians.items()
    }


def _rounds(rounds: Mapping[str, Sequence[float] | None]) -> dict[str, Any]:
    """Return the rounds of figures, and their spread in place of the median alone."""
    known = {name: list(each) for name, each in rounds.items() if each}
    spreads = {
        name: {"median": statistics.median(each), "min": min(each), "max": max(each)}
        for name, each in known.items()
    }
    return {**spreads, "each_round": known}
