"""Experiments as files: workloads, engines and what is swept, from one TOML each.

An experiment looks like a suite, with three things more. Any value in it, also in a claim, may be a
table of ``quick`` and ``full``, one for each size. A ``[[workload]]`` may hold ``sweep``, a table
of lists by the path of what they replace (``threads``, ``"params.rate"``,
``"knobs.prj.radix_bits"``): every combination is a point; a table in a list sets several things at
once and is called by its first.
It may also name the published ``figures`` that it repeats. And an experiment says its ``title``,
``source`` and ``limit``, and ``against`` which measured limit the engines are held: ``memory`` (the
default), ``comparisons`` or ``store``, the scan of a store.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamjoin.bench import claims
from streamjoin.bench.claims import Claim
from streamjoin.bench.experiments.sweeps import Point, points_of
from streamjoin.errors import InputError
from streamjoin_common.documents import DocumentError, read_toml
from streamjoin_common.installed import shipped
from streamjoin_common.suggestions import known_names

SIZES = ("quick", "full")
KEYS = ("name", "title", "source", "limit", "against", "baseline", "workload", "claim")
LIMITS = ("memory", "comparisons", "store")
OTHERS = {
    "all": "Every experiment, and then cpu-fpga",
    "calls": "Whole calls beside DuckDB, Polars and pyarrow",
    "claims": "What was published, judged by the runs that there are",
    "cpu-fpga": "CPU engines beside designs on boards: rates and latencies",
    "list": "The list of all benchmarks",
    "live": "Live joins: rates and latencies of pushes of a few sizes",
    "regress": "Two records beside each other: what became slower or faster",
}
"""What ``streamjoin bench`` takes beside experiments, none of which has these names."""


@dataclass(frozen=True)
class Experiment:
    """A published experiment at one size.

    Attributes
    ----------
    name, title, source, limit : str
        What it is called, shows, comes from, and runs against.
    against : str
        The measured limit, one of :data:`LIMITS`.
    baseline : str
        Engine that others are divided by.
    points : tuple of Point
        In the order in which they are run.
    claims : tuple of Claim
        What was published.
    size : str
        One of :data:`SIZES`.
    """

    name: str
    title: str
    source: str
    limit: str
    against: str
    baseline: str
    points: tuple[Point, ...]
    claims: tuple[Claim, ...] = ()
    size: str = SIZES[0]


def names() -> list[str]:
    """Experiments by name."""
    return shipped.names(shipped.EXPERIMENTS)


def read(name: str, size: str) -> Experiment:
    """Read an experiment by its name, or a file by its path.

    Raises
    ------
    InputError
        If there is none or it is not one, naming what is wrong.
    """
    path = Path(name) if name.endswith(".toml") else shipped.EXPERIMENTS / f"{name}.toml"
    try:
        plain = read_toml(path)
    except FileNotFoundError:
        others = known_names(name, [*names(), *OTHERS], "type  streamjoin bench list")
        raise InputError(f"there is no benchmark {name!r}{others}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except DocumentError as error:
        raise InputError(f"{path}: is not an experiment: {error.reason}") from None
    _check_name(path)
    for key in plain:
        if key not in KEYS:
            raise InputError(f"{path}: has no key {key!r}; it takes {', '.join(KEYS)}")
    for key in ("title", "source", "limit"):
        claims.text_of(plain.get(key), f"{path}: {key}")
    against = plain.get("against", LIMITS[0])
    if against not in LIMITS:
        raise InputError(f"{path}: against must be one of {', '.join(LIMITS)}, not {against!r}")
    tables = plain.get("workload")
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise InputError(f"{path}: must hold [[workload]] tables")
    points: list[Point] = []
    for number, table in enumerate(tables, start=1):
        points += points_of(_sized(table, size), f"{path}: workload {number}")
    _check_different(points, path)
    baseline = plain.get("baseline", "duckdb")
    entrants = [
        (point.family, _engines(point.table), point.settings, point.table.get("threads"))
        for point in points
    ]
    entered = {name for _, engines, *_ in entrants for name in engines}
    if not isinstance(baseline, str) or baseline not in entered:
        raise InputError(f"{path}: baseline must be an engine of a workload, not {baseline!r}")
    return Experiment(
        path.stem,
        plain["title"],
        plain["source"],
        plain["limit"],
        against,
        baseline,
        tuple(points),
        claims.read(_claims_of(plain.get("claim", []), size), str(path), entrants),
        size,
    )


def _check_name(path: Path) -> None:
    """Refuse a file of one's own that is called as an experiment that is shipped.

    Its runs and records would lie where those of the other do.
    """
    there = shipped.EXPERIMENTS / path.name
    if path.stem in OTHERS or (path.stem in names() and path.resolve() != there.resolve()):
        raise InputError(
            f"{path}: {path.stem} is another experiment, whose runs and records have this name: "
            "rename the file"
        )


def _check_different(points: Sequence[Point], path: Path) -> None:
    """Refuse two points of one name, and two of one workload that are the same."""
    labels: set[str] = set()
    known: dict[tuple[str, str], str] = {}
    for point in points:
        if point.label in labels:
            raise InputError(
                f"{path}: two points are called {point.label!r}; give workloads other names"
            )
        labels.add(point.label)
        same = known.setdefault((point.family, point.asked()), point.label)
        if same != point.label:
            raise InputError(
                f"{path}: the points {same!r} and {point.label!r} are the same: sweep what is "
                "another run"
            )


def _engines(table: Mapping[str, Any]) -> list[str]:
    """Names among a table's engines; what else stands there is refused when it is to be run."""
    engines = table.get("engines")
    return [name for name in engines if isinstance(name, str)] if isinstance(engines, list) else []


def _claims_of(tables: Any, size: str) -> Any:
    """Return the claims of this size: one whose settings have no value at it is of another."""
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        return tables
    sized = [_sized(table, size) for table in tables]
    return [
        after
        for before, after in zip(tables, sized, strict=True)
        if all(_keeps_keys(before.get(key), after.get(key)) for key in ("where", "over_where"))
    ]


def _keeps_keys(before: Any, after: Any) -> bool:
    """Whether settings, each or all of them given by size, have a value at this one."""
    if not isinstance(before, dict):
        return True
    of_sizes = bool(before) and set(before) <= set(SIZES)
    return isinstance(after, dict) and (of_sizes or set(before) == set(after))


def _sized(value: Any, size: str) -> Any:
    """Replace every table of sizes by what it says of this one."""
    if isinstance(value, dict):
        if value and set(value) <= set(SIZES):
            if size not in value:
                return None
            return _sized(value[size], size)
        sized = {key: _sized(inner, size) for key, inner in value.items()}
        return {key: inner for key, inner in sized.items() if inner is not None}
    return [_sized(inner, size) for inner in value] if isinstance(value, list) else value


def suite_text(name: str, points: tuple[Point, ...]) -> str:
    """Write the data of points as a suite, each once: what the generator reads."""
    lines = [f"name = {_toml(name)}"]
    seen: set[str] = set()
    for point in points:
        if point.data_key in seen:
            continue
        seen.add(point.data_key)
        lines.append("[[workload]]")
        for key in ("kind", "seed"):
            if key in point.table:
                lines.append(f"{key} = {_toml(point.table[key])}")
        params = point.table.get("params", {})
        inner = ", ".join(f"{_toml(key)} = {_toml(value)}" for key, value in params.items())
        if params:
            lines.append(f"params = {{ {inner} }}")
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    """Write a number or a text; TOML takes them as JSON writes them, but for its surrogates."""
    return json.dumps(value, ensure_ascii=False)
