"""Reading ``records.json`` and checking its form before anything is drawn from it.

A run folder holds one ``records.json``: what was run, on what, and one record for each engine
and workload. What a run could not measure is null or absent; what is there has the right type
and range, or one sentence names the file, the field and what would be right.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NoReturn

from streamjoin.errors import InputError
from streamjoin.metrics import LATENCY_FROM, PHASES
from streamjoin.report.sentences import CLAIM_MEASURES, CLAIM_RULES
from streamjoin_common.documents import DocumentError, read_json
from streamjoin_common.language.kinds import KINDS

FORMAT = 1
RECORDS_FILE = "records.json"
SIZES = ("quick", "full")
STATUSES = ("ok", "wrong", "failed")
ARRIVALS = ("instant", "replay")
PERCENTILES = ("p50", "p95", "p99", "max")


class RecordsError(InputError):
    """A records file is missing or not of the stated form; the message names the field."""


def _count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _number(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return 0 <= value <= sys.float_info.max


class _Fields:
    """One JSON object with its path in a file, for checks that name what they refuse."""

    def __init__(self, source: str, path: str, value: object) -> None:
        self.source, self.path = source, path
        if not isinstance(value, dict):
            self.refuse("", "an object", value)
        self.values: dict[str, Any] = value

    def refuse(self, name: str, requirement: str, value: object) -> NoReturn:
        """Raise the one sentence."""
        where = ".".join(part for part in (self.path, name) if part) or "the top level"
        shown = json.dumps(value, default=str)
        shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
        raise RecordsError(f"{self.source}: {where} must be {requirement}, not {shown}")

    def _found(self, name: str, requirement: str, required: bool) -> Any:
        value = self.values.get(name)
        if value is None and required:
            self.refuse(name, requirement, value)
        return value

    def text(self, name: str, *, required: bool = False) -> None:
        """Require a string; an empty one counts as absent."""
        value = self._found(name, "a string", required)
        if value is not None and (not isinstance(value, str) or (required and not value)):
            self.refuse(name, "a string", value)

    def choice(self, name: str, choices: tuple[str, ...], *, required: bool = False) -> None:
        """Require one of a few words."""
        value = self._found(name, f"one of {', '.join(choices)}", required)
        if value is not None and value not in choices:
            self.refuse(name, f"one of {', '.join(choices)}", value)

    def counts(self, *names: str, required: bool = False) -> None:
        """Require integers from 0."""
        for name in names:
            value = self._found(name, "an integer from 0", required)
            if value is not None and not _count(value):
                self.refuse(name, "an integer from 0", value)

    def numbers(self, *names: str, required: bool = False) -> None:
        """Require finite numbers from 0."""
        for name in names:
            value = self._found(name, "a finite number from 0", required)
            if value is not None and not _number(value):
                self.refuse(name, "a finite number from 0", value)

    def inner(self, name: str, *, required: bool = False) -> _Fields | None:
        """Return the object inside this one, or None where it is null."""
        value = self._found(name, "an object", required)
        if value is None:
            return None
        return _Fields(self.source, f"{self.path}.{name}" if self.path else name, value)

    def list(self, name: str, *, required: bool = False) -> list[Any]:
        """Return the list inside this object, an empty one where it is null."""
        value = self._found(name, "a list", required)
        if value is None:
            return []
        if not isinstance(value, list):
            self.refuse(name, "a list", value)
        return list(value)


def _check_environment(fields: _Fields | None) -> None:
    if fields is None:
        return
    for name in ("cpu", "system", "python", "java", "revision"):
        fields.text(name)
    fields.counts("cores", "memory_bytes")
    fields.numbers("load_average")
    packages = fields.inner("packages")
    for name in packages.values if packages else ():
        assert packages is not None
        packages.text(name)


def _check_workload(fields: _Fields) -> str:
    fields.text("name", required=True)
    for name in ("kind", "predicate", "window", "digest", "oracle", "path", "family", "definition"):
        fields.text(name)
    fields.counts("n_r", "n_s", required=True)
    fields.counts("pairs")
    fields.numbers("oracle_s", "speedup")
    measured = fields.inner("measured")
    if measured:
        measured.numbers("took_s", "took_cpu_s", "load_average")
        measured.text("revision")
    fields.choice("arrival", ARRIVALS)
    fields.choice("how", KINDS)
    fields.inner("settings")
    return str(fields.values["name"])


def _check_progress(fields: _Fields) -> None:
    requirement = "[share from 0 to 1, milliseconds from 0]"
    for index, point in enumerate(fields.list("progress")):
        pair = isinstance(point, list) and len(point) == 2 and all(map(_number, point))
        if not pair or point[0] > 1:
            fields.refuse(f"progress[{index}]", requirement, point)


def _check_rounds(fields: _Fields | None) -> None:
    for name in fields.values if fields else ():
        assert fields is not None
        for index, value in enumerate(fields.list(name)):
            if value is not None and not _number(value):
                fields.refuse(f"{name}[{index}]", "a finite number from 0", value)


def _check_record(fields: _Fields, workloads: set[str]) -> None:
    for name in ("workload", "engine", "platform"):
        fields.text(name, required=True)
    if fields.values["workload"] not in workloads:
        fields.refuse("workload", "the name of one of the workloads", fields.values["workload"])
    fields.choice("status", STATUSES, required=True)
    fields.text("error", required=fields.values["status"] != "ok")
    for name in ("backend", "digest", "order", "clock_source", "family"):
        fields.text(name)
    fields.inner("settings")
    if not isinstance(fields.values.get("checked"), (bool, type(None))):
        fields.refuse("checked", "true or false", fields.values["checked"])
    fields.counts("pairs", "threads", "rounds", "peak_bytes", "structure_bytes", "cycles")
    fields.counts("results_backpressure_cycles", "input_stall_cycles")
    fields.numbers("clock_hz")
    for name in ("total_s", "total_cpu_s", "wall_s", "cpu_s", "throughput_tuples_per_s"):
        spread = fields.inner(name)
        if spread:
            spread.numbers("median", "min", "max", required=True)
    _check_rounds(fields.inner("each_round"))
    fields.choice("latency_from", LATENCY_FROM)
    latency = fields.inner("latency_us")
    if latency:
        latency.numbers(*PERCENTILES)
    phases = fields.inner("phases_ms")
    if phases:
        phases.numbers(*{**dict.fromkeys(PHASES), **phases.values})
    counters = fields.inner("counters")
    if counters:
        counters.numbers("l1d_read_misses")
    fields.inner("knobs")
    semi_stream = fields.inner("semi_stream")
    if semi_stream:
        _check_semi_stream(semi_stream)
    _check_progress(fields)
    # A figure in seconds that comes from cycles is printed with its clock or not at all.
    if fields.values.get("clock_hz") is not None:
        if fields.values["clock_hz"] == 0:
            fields.refuse("clock_hz", "above 0", 0)
        fields.text("clock_source", required=True)


def _check_semi_stream(fields: _Fields) -> None:
    fields.numbers("service_rate_tuples_per_s", "cache_share", "budget_bytes")
    for name in ("memory_bytes", "loop_us"):
        inner = fields.inner(name)
        if inner:
            inner.numbers(*inner.values, required=True)
    model = fields.inner("cost_model")
    if model:
        model.numbers("loop_us", required=True)


def check_run(run: object, source: str) -> dict[str, Any]:
    """Check the form of one run and return it.

    Parameters
    ----------
    run : object
        What ``records.json`` holds.
    source : str
        What to call it in a message, usually the file's path.

    Raises
    ------
    RecordsError
        If a field is missing, of the wrong type or out of its range.
    """
    fields = _Fields(source, "", run)
    if fields.values.get("format") != FORMAT:
        fields.refuse("format", str(FORMAT), fields.values.get("format"))
    fields.text("title", required=True)
    fields.text("created")
    fields.text("command")
    experiment = fields.inner("experiment")
    for name in ("name", "source", "limit") if experiment else ():
        assert experiment is not None
        experiment.text(name, required=True)
    for index, value in enumerate(experiment.list("claims") if experiment else ()):
        claim = _Fields(source, f"experiment.claims[{index}]", value)
        claim.text("text", required=True)
        claim.choice("of", tuple(CLAIM_MEASURES), required=True)
        claim.numbers("published", required=True)
        claim.choice("by", tuple(CLAIM_RULES), required=True)
        claim.text("says")
        claim.text("verdict")
        claim.text("why")
        claim.counts("asked")
        claim.numbers("here", "min", "max")
        for number, point in enumerate(claim.list("points", required=True)):
            at = _Fields(source, f"{claim.path}.points[{number}]", point)
            at.text("point", required=True)
            at.text("over", required=True)
            at.numbers("ratio", required=True)
    _check_environment(fields.inner("environment"))
    names: set[str] = set()
    for index, value in enumerate(fields.list("workloads", required=True)):
        path = f"workloads[{index}]"
        name = _check_workload(_Fields(source, path, value))
        if name in names:
            fields.refuse(f"{path}.name", "a name that no other workload has", name)
        names.add(name)
    for index, value in enumerate(fields.list("records", required=True)):
        _check_record(_Fields(source, f"records[{index}]", value), names)
    return fields.values


def check_experiment(run: dict[str, Any], source: str) -> None:
    """Check that the records of an experiment's run say of which point and threads they are.

    Parameters
    ----------
    run : dict
        What :func:`check_run` returned.
    source : str
        What to call it in a message, usually the file's path.

    Raises
    ------
    RecordsError
        If a field is missing or not what it must be, or two records are of one engine on one
        workload.
    """
    about = _Fields(source, "experiment", run.get("experiment"))
    about.choice("size", SIZES, required=True)
    seen: set[tuple[str, str]] = set()
    for index, record in enumerate(run["records"]):
        fields = _Fields(source, f"records[{index}]", record)
        fields.text("family", required=True)
        fields.inner("settings", required=True)
        fields.counts("threads", required=True)
        if record["threads"] == 0:
            fields.refuse("threads", "an integer from 1", 0)
        fields.text("digest")
        whose = record["workload"], record["engine"]
        if whose in seen:
            other = "an engine that no other record of its workload has"
            fields.refuse("engine", other, record["engine"])
        seen.add(whose)


def read_records(path: Path) -> dict[str, Any]:
    """Read the records of one run.

    Parameters
    ----------
    path : Path
        A run folder, or the ``records.json`` in it.

    Raises
    ------
    RecordsError
        If there is no such file, it is not JSON, or a field is not of the stated form.
    """
    path = Path(path)
    file = path / RECORDS_FILE if path.is_dir() else path
    if not file.is_file():
        raise RecordsError(f"{file}: no such file; give a run folder that holds {RECORDS_FILE}")
    try:
        run = read_json(file)
    except OSError as error:
        reason = error.strerror or error
        raise RecordsError(f"{file}: must be a readable file ({reason})") from error
    except DocumentError as error:
        raise RecordsError(f"{file}: must be JSON in UTF-8 (it {error.reason})") from error
    return check_run(run, str(file))
