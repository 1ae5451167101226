"""A workload: a folder with ``workload.json`` and both inputs, and how engines compare on it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamjoin.errors import InputError, MismatchError
from streamjoin.sequence import Request
from streamjoin_common.documents import DocumentError, read_json
from streamjoin_common.installed import shipped
from streamjoin_common.language.arrivals import Arrivals
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import Window, parse_window
from streamjoin_common.suggestions import did_you_mean

DEFAULT_ROUNDS = 5
MAX_ROUNDS = 1000
"""Measured rounds of an engine on one workload."""
FORMAT = 1


@dataclass(frozen=True)
class Comparison:
    """One workload and how engines are compared on it.

    Attributes
    ----------
    folder : Path or None
        Holds ``workload.json`` and both inputs; None for inputs that were given in Python.
    r, s : Path, or what ``sj.join`` takes
        Both inputs.
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
    seed : int, optional
        Seed of generated data.
    params : mapping of str to number or str
        Parameters of generated data.
    how : str
        The kind of join.
    order : str
        The order of the results.
    arrivals : Arrivals, optional
        The arrival columns; by default ``ts``.
    lateness_us : int, optional
        Maximum lateness of tuples that are put in order.

    Raises
    ------
    InputError
        If engines, rounds, threads, speedup or arrival are not what they must be.
    """

    folder: Path | None
    name: str
    kind: str
    r: Any
    s: Any
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
    seed: int | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    how: str = "inner"
    order: str = "none"
    arrivals: Arrivals | None = None
    lateness_us: int | None = None

    def __post_init__(self) -> None:
        if not self.engines or len(set(self.engines)) < len(self.engines):
            raise InputError(f"{self.name}: engines must be different names, not {self.engines}")
        check_rounds(self.rounds)
        _ = self.request  # checks its options

    @property
    def request(self) -> Request:
        """What is asked of every engine."""
        return Request(
            predicate=self.predicate,
            window=self.window,
            arrivals=self.arrivals or Arrivals.parse(window=self.window),
            lateness_us=self.lateness_us,
            threads=self.threads,
            arrival=self.arrival,
            speedup=self.speedup,
            max_pairs=self.max_pairs,
            how=self.how,
            order=self.order,
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
        if window == self.window.text and self.how == "inner" and counted != pairs:
            raise MismatchError(
                f"{self.folder}: workload.json expects {counted} pairs, the oracle finds {pairs}"
            )


def check_rounds(rounds: object) -> None:
    """Refuse what is no number of rounds.

    Raises
    ------
    InputError
        Naming the range.
    """
    if not (isinstance(rounds, int) and not isinstance(rounds, bool) and 1 <= rounds <= MAX_ROUNDS):
        raise InputError(f"rounds must be 1 to {MAX_ROUNDS}, not {rounds!r}")


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
        near = "" if folder.exists() else did_you_mean(str(folder), shipped.names(shipped.SUITES))
        raise InputError(
            f"{folder}: there is no workload.json{near or '; make one with  streamjoin data'}"
        ) from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except DocumentError as error:
        raise InputError(str(error)) from None
    try:
        if plain["format"] != FORMAT:
            raise ValueError(f"format must be {FORMAT}, not {plain['format']!r}")
        seed, params = plain.get("seed"), plain.get("params") or {}
        if not isinstance(seed, int | None) or isinstance(seed, bool):
            raise ValueError(f"seed must be an integer, not {seed!r:.40}")
        if not isinstance(params, dict):
            raise ValueError(f"params must be a table, not {params!r:.40}")
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
            seed=seed,
            params=params,
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(f"{path}: is not a workload's description: {error}") from None


MAX_NAME_CHARACTERS = 255
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
    path = folder / name
    try:
        root = folder.resolve()
        held = [path, *(sorted(path.rglob("*")) if path.is_dir() else ())]
        ends = [each.resolve() for each in held]
    except (OSError, RuntimeError) as error:  # a loop of symbolic links is a RuntimeError
        raise ValueError(f"{name!r} cannot be followed: {error}") from None
    for end in ends:
        if not end.is_relative_to(root):
            raise ValueError(
                f"{name!r} leads out of the folder, to {end}: join that file with  "
                "streamjoin join, which names it"
            )
    return path
