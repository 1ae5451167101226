"""Workloads and suites as files: where the inputs lie and what is asked of them.

A workload is a folder with ``workload.json``; a suite is a TOML file whose ``[[workload]]``
tables name workloads and say how each is compared.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from streamjoin.errors import DeadlineError, InputError, StreamJoinError
from streamjoin.predicates import Predicate
from streamjoin.windows import Window, parse_window

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

GENERATION_DEADLINE_S = 3600
DEFAULT_ROUNDS = 5


@dataclass(frozen=True)
class Comparison:
    """One workload and how engines are compared on it.

    Attributes
    ----------
    folder : Path
        Holds ``workload.json`` and both inputs.
    engines : tuple of str
        Names of engines.
    rounds : int
        Measured rounds of each software engine, after one that is not counted.
    threads : int
        Threads for parallel engines.
    knobs : mapping of str to mapping
        Tuning parameters by engine.
    """

    folder: Path
    name: str
    kind: str
    r: Path
    s: Path
    predicate: Predicate
    window: Window
    engines: tuple[str, ...]
    rounds: int = DEFAULT_ROUNDS
    threads: int = 1
    arrival: str = "instant"
    speedup: float = 1.0
    knobs: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def read_workload(folder: Path, engines: tuple[str, ...], threads: int) -> Comparison:
    """Read a workload folder, to be compared as it says itself.

    Raises
    ------
    InputError
        If it is no workload folder.
    """
    path = folder / "workload.json"
    try:
        plain = json.loads(path.read_text())
    except FileNotFoundError:
        raise InputError(
            f"{folder}: there is no workload.json; make one with  streamjoin data"
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}") from None
    try:
        predicate = Predicate.parse(plain["predicate"].get("on"), plain["predicate"].get("band"))
        return Comparison(
            folder,
            str(plain["name"]),
            str(plain["kind"]),
            folder / plain["r"]["path"],
            folder / plain["s"]["path"],
            predicate,
            parse_window(plain["window"]),
            engines,
            threads=threads,
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: is not a workload's description: {error}") from None


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
        plain = tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such suite") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: is not a suite in TOML: {error}") from None
    tables = plain.get("workload", [])
    for number, table in enumerate(tables, start=1):
        if not isinstance(table, dict) or not table.get("engines"):
            raise InputError(f"{path}: workload {number} names no engines to compare")
    folders = _generate(path, data)
    comparisons = []
    for table, folder in zip(tables, folders, strict=True):
        known = read_workload(folder, tuple(table["engines"]), int(table.get("threads", threads)))
        window = table.get("window")
        comparisons.append(
            replace(
                known,
                window=parse_window(window) if window else known.window,
                rounds=int(table.get("rounds", DEFAULT_ROUNDS)),
                arrival=str(table.get("arrival", "instant")),
                speedup=float(table.get("speedup", 1.0)),
                knobs=table.get("knobs", {}),
            )
        )
    return str(plain.get("name", path.stem)), comparisons


def _generate(path: Path, data: Path) -> list[Path]:
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
