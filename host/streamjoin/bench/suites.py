"""Suites: TOML files whose ``[[workload]]`` tables say what to generate and how to compare it."""

import json
import math
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from streamjoin import run
from streamjoin.bench.workloads import DEFAULT_ROUNDS, MAX_ROUNDS, Comparison, read_workload
from streamjoin.engines import catalog
from streamjoin.errors import DeadlineError, InputError, StreamJoinError
from streamjoin_common.documents import DocumentError, read_toml
from streamjoin_common.installed import shipped
from streamjoin_common.language.kinds import parse_how
from streamjoin_common.language.windows import parse_window
from streamjoin_common.suggestions import did_you_mean

GENERATION_DEADLINE_S = 3600


def read_suite(path: Path, data: Path, threads: int) -> tuple[str, list[Comparison]]:
    """Generate what is missing of a suite's workloads and say how each is compared.

    Parameters
    ----------
    path : Path
        The suite.
    data : Path
        Folder for the workloads.
    threads : int
        Threads where a table names none.

    Returns
    -------
    name : str
        The suite's.
    comparisons : list of Comparison

    Raises
    ------
    InputError
        If the file is no suite.
    StreamJoinError
        If the generation fails; its own sentence is on stderr by then.
    """
    try:
        plain = read_toml(path)
    except FileNotFoundError:
        near = did_you_mean(path.stem, shipped.names(shipped.SUITES))
        raise InputError(f"{path}: there is no such suite{near}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except DocumentError as error:
        raise InputError(f"{path}: is not a suite: {error.reason}") from None
    tables = plain.get("workload")
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise InputError(f"{path}: must hold [[workload]] tables")
    for number, table in enumerate(tables, start=1):
        check_table(table, f"{path}: workload {number}")
    comparisons = [
        as_table(table, folder, threads)
        for table, folder in zip(tables, generate(path, data), strict=True)
    ]
    return str(plain.get("name", path.stem)), comparisons


def as_table(table: Mapping[str, Any], folder: Path, threads: int) -> Comparison:
    """Make a comparison of a generated folder as a suite's table says."""
    known = read_workload(folder, tuple(table["engines"]), table.get("threads", threads))
    window = table.get("window")
    return replace(
        known,
        window=parse_window(window) if window else known.window,
        rounds=table.get("rounds", DEFAULT_ROUNDS),
        arrival=table.get("arrival", "instant"),
        speedup=table.get("speedup", 1.0),
        knobs=table.get("knobs", {}),
        how=table.get("how", "inner"),
        order=table.get("order", "none"),
    )


_TABLE_TYPES: dict[str, tuple[type | tuple[type, ...], str]] = {
    "name": (str, "a string"),
    "kind": (str, "a string"),
    "seed": (int, "an integer"),
    "params": (dict, "a table"),
    "engines": (list, "a list of names"),
    "window": (str, "a string"),
    "how": (str, "a string"),
    "order": (str, "a string"),
    "rounds": (int, "an integer"),
    "threads": (int, "an integer"),
    "arrival": (str, "a string"),
    "speedup": ((int, float), "a number"),
    "knobs": (dict, "a table for each engine"),
}


def check_table(table: Mapping[str, Any], where: str) -> None:
    """Refuse a suite's table before anything is generated for it."""
    for name, value in table.items():
        if name not in _TABLE_TYPES:
            raise InputError(f"{where}: has no key {name!r}; it takes {', '.join(_TABLE_TYPES)}")
        types, what = _TABLE_TYPES[name]
        if not isinstance(value, types) or isinstance(value, bool):
            raise InputError(f"{where}: {name} must be {what}, not {value!r}")
    for name, value in table.get("params", {}).items():
        if isinstance(value, float) and not math.isfinite(value):
            raise InputError(f"{where}: params.{name} must be a finite number, not {value}")
        if not isinstance(value, int | float | str) or isinstance(value, bool):
            raise InputError(f"{where}: params.{name} must be a number or a string, not {value!r}")
    engines = table.get("engines")
    if not engines or not all(isinstance(name, str) for name in engines):
        raise InputError(f"{where}: engines must be a list of names, as ['kang']")
    if len(set(engines)) < len(engines):
        raise InputError(f"{where}: engines must be different names, not {engines}")
    for name in engines:
        catalog.get(name)
    _check_values(table, where)
    for name, knobs in table.get("knobs", {}).items():
        if not isinstance(knobs, dict):
            raise InputError(f"{where}: knobs.{name} must be a table, not {knobs!r}")
        if name not in engines:
            raise InputError(f"{where}: has knobs of {name}, which is not among its engines")
        catalog.get(name).resolve_knobs(knobs)


def _check_values(table: Mapping[str, Any], where: str) -> None:
    """Refuse values of the right type that no run takes."""
    rounds = table.get("rounds", DEFAULT_ROUNDS)
    if not 1 <= rounds <= MAX_ROUNDS:
        raise InputError(f"{where}: rounds must be 1 to {MAX_ROUNDS}, not {rounds}")
    try:
        if "window" in table:
            parse_window(table["window"])
        parse_how(table.get("how", "inner"))
        run.check_options(
            threads=table.get("threads", 1),
            speedup=table.get("speedup", 1.0),
            order=table.get("order", "none"),
            arrival=table.get("arrival", "instant"),
        )
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def generate(path: Path, data: Path) -> list[Path]:
    """Make the workloads in a process of their own: Spark's memory is gone before we measure."""
    command = [sys.executable, "-m", "streamjoin", "data", str(path), "--out", str(data), "--json"]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            timeout=GENERATION_DEADLINE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise DeadlineError(f"{path}: generation took over {GENERATION_DEADLINE_S} s") from None
    if done.returncode:
        error = StreamJoinError(f"{path}: its workloads could not be made")
        error.exit_status = done.returncode if done.returncode in {1, 2} else 1
        raise error
    return [Path(row["path"]) for row in json.loads(done.stdout)]
