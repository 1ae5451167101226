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

from streamjoin import run
from streamjoin.engines import catalog
from streamjoin.errors import DeadlineError, InputError, MismatchError, StreamJoinError
from streamjoin.sequence import Request
from streamjoin_common.documents import DocumentError, read_json, read_toml
from streamjoin_common.language.arrivals import Arrivals
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import Window, parse_window

GENERATION_DEADLINE_S = 3600
DEFAULT_ROUNDS = 5
MOST_ROUNDS = 1000
FORMAT = 1


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
    rows : tuple of int, optional
        Rows of R and S that the files must have.
    expected : tuple of str and int, optional
        A window and the pairs that the generator counted for it.
    max_pairs : int, optional
        Pairs beyond which a run ends; given, no estimate refuses it.

    Raises
    ------
    InputError
        If engines, rounds, threads, speedup or arrival are not what they must be.
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
    rows: tuple[int, int] | None = None
    expected: tuple[str, int] | None = None
    max_pairs: int | None = None

    def __post_init__(self) -> None:
        if not self.engines or len(set(self.engines)) < len(self.engines):
            raise InputError(f"{self.name}: engines must be different names, not {self.engines}")
        if not 1 <= self.rounds <= MOST_ROUNDS:
            raise InputError(f"{self.name}: rounds must be 1 to {MOST_ROUNDS}, not {self.rounds}")
        _ = self.request  # checks its options

    @property
    def request(self) -> Request:
        """What is asked of every engine."""
        return Request(
            predicate=self.predicate,
            window=self.window,
            arrivals=Arrivals.parse(window=self.window),
            threads=self.threads,
            arrival=self.arrival,
            speedup=self.speedup,
            max_pairs=self.max_pairs,
        )

    def check_rows(self, r_rows: int, s_rows: int) -> None:
        """Refuse files that have not the rows that the description says.

        Raises
        ------
        InputError
            Naming both counts.
        """
        if self.rows is not None and self.rows != (r_rows, s_rows):
            raise InputError(
                f"{self.folder}: workload.json says {self.rows[0]} x {self.rows[1]} rows, the "
                f"files have {r_rows} x {s_rows}"
            )

    def check_pairs(self, pairs: int) -> None:
        """Hold the oracle's count against the one that the generator wrote down.

        Raises
        ------
        MismatchError
            If they differ.
        """
        window, counted = self.expected or ("", 0)
        if window == self.window.text and counted != pairs:
            raise MismatchError(
                f"{self.folder}: workload.json expects {counted} pairs, the oracle finds {pairs}"
            )


def read_workload(folder: Path, engines: tuple[str, ...], threads: int) -> Comparison:
    """Read a workload folder, to be compared as it says itself.

    Raises
    ------
    InputError
        If it is no workload folder.
    """
    path = folder / "workload.json"
    if folder.is_file():
        raise InputError(f"{folder}: is a file; make a workload of it with  streamjoin data import")
    try:
        plain = read_json(path)
    except FileNotFoundError:
        raise InputError(
            f"{folder}: there is no workload.json; make one with  streamjoin data"
        ) from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except DocumentError as error:
        raise InputError(str(error)) from None
    try:
        if plain["format"] != FORMAT:
            raise ValueError(f"format must be {FORMAT}, not {plain['format']!r}")
        predicate = Predicate.parse(plain["predicate"].get("on"), plain["predicate"].get("band"))
        expected = plain.get("expected")
        return Comparison(
            folder,
            str(plain["name"]),
            str(plain["kind"]),
            inside(folder, plain["r"]["path"]),
            inside(folder, plain["s"]["path"]),
            predicate,
            parse_window(plain["window"]),
            engines,
            threads=threads,
            rows=(int(plain["r"]["rows"]), int(plain["s"]["rows"])),
            expected=(str(expected["window"]), int(expected["pairs"])) if expected else None,
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"{path}: is not a workload's description: {error}") from None


MAX_NAME_CHARACTERS = 1024
"""Maximum length of the name of a workload's file, below its folder."""


def inside(folder: Path, name: str) -> Path:
    """Return a file or folder of a workload.

    A description may come from elsewhere: it must not lead to files beside the workload.

    Raises
    ------
    ValueError
        If it lies outside of the workload's folder, by its name or through a symbolic link.
    """
    if len(name) > MAX_NAME_CHARACTERS:
        raise ValueError(f"{name[:40]!r}... is too long for the name of a file")
    path, root = folder / name, folder.resolve()
    for each in (path, *(sorted(path.rglob("*")) if path.is_dir() else ())):
        if not each.resolve().is_relative_to(root):
            raise ValueError(
                f"{name!r} leads out of the folder, to {each.resolve()}: join that file with  "
                "streamjoin join, which names it"
            )
    return path


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
        raise InputError(f"{path}: there is no such suite") from None
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
    )


_TABLE_TYPES: dict[str, tuple[type | tuple[type, ...], str]] = {
    "name": (str, "a text"),
    "kind": (str, "a text"),
    "seed": (int, "a whole number"),
    "params": (dict, "a table"),
    "engines": (list, "a list of names"),
    "window": (str, "a text"),
    "rounds": (int, "a whole number"),
    "threads": (int, "a whole number"),
    "arrival": (str, "a text"),
    "speedup": ((int, float), "a number"),
    "knobs": (dict, "a table for each engine"),
}


def check_table(table: Mapping[str, Any], place: str) -> None:
    """Refuse a suite's table before anything is generated for it."""
    for name, value in table.items():
        if name not in _TABLE_TYPES:
            raise InputError(f"{place}: has no key {name!r}; it takes {', '.join(_TABLE_TYPES)}")
        types, what = _TABLE_TYPES[name]
        if not isinstance(value, types) or isinstance(value, bool):
            raise InputError(f"{place}: {name} must be {what}, not {value!r}")
    for name, value in table.get("params", {}).items():
        if not isinstance(value, int | float | str):
            raise InputError(f"{place}: params.{name} must be a number or a text, not {value!r}")
    engines = table.get("engines")
    if not engines or not all(isinstance(name, str) for name in engines):
        raise InputError(f"{place}: engines must be a list of names, as ['kang']")
    if len(set(engines)) < len(engines):
        raise InputError(f"{place}: engines must be different names, not {engines}")
    for name in engines:
        catalog.get(name)
    _check_values(table, place)
    for name, knobs in table.get("knobs", {}).items():
        if not isinstance(knobs, dict):
            raise InputError(f"{place}: knobs.{name} must be a table, not {knobs!r}")
        catalog.get(name).settle(knobs)


def _check_values(table: Mapping[str, Any], place: str) -> None:
    """Refuse values of the right type that no run takes."""
    rounds = table.get("rounds", DEFAULT_ROUNDS)
    if not 1 <= rounds <= MOST_ROUNDS:
        raise InputError(f"{place}: rounds must be 1 to {MOST_ROUNDS}, not {rounds}")
    try:
        if "window" in table:
            parse_window(table["window"])
        run.check_options(
            threads=table.get("threads", 1),
            speedup=table.get("speedup", 1.0),
            order="none",
            arrival=table.get("arrival", "instant"),
        )
    except InputError as error:
        raise InputError(f"{place}: {error}") from None


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
