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

import itertools
import json
import math
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamjoin.bench import claims
from streamjoin.bench.claims import Claim
from streamjoin.errors import InputError
from streamjoin_common.documents import DocumentError, read_toml
from streamjoin_common.installed import shipped
from streamjoin_common.suggestions import did_you_mean

SIZES = ("quick", "full")
KEYS = ("name", "title", "source", "limit", "against", "baseline", "workload", "claim")
MAX_LABEL_BYTES = 200
"""Maximum length of a point's name, which is a part of the name of its file."""
LIMITS = ("memory", "comparisons", "store")


@dataclass(frozen=True)
class Point:
    """One workload under one setting.

    Attributes
    ----------
    label : str
        Name in tables, different for every point.
    family : str
        The workload table that it comes from.
    settings : mapping
        What was swept, with this point's values.
    table : mapping
        The complete workload table, as a suite has it.
    figures : tuple of str
        Published figures that it repeats, as ``"ssbj 5a"``.
    """

    label: str
    family: str
    settings: Mapping[str, Any]
    table: Mapping[str, Any]
    figures: tuple[str, ...] = ()

    @property
    def data_key(self) -> str:
        """Equal for points on the same data."""
        return json.dumps([self.table.get(key) for key in ("kind", "seed", "params")])


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
        near = did_you_mean(name, names()) or f"; there is {', '.join(names())}"
        raise InputError(f"there is no experiment {name!r}{near}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except DocumentError as error:
        raise InputError(f"{path}: is not an experiment: {error.reason}") from None
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
        points += _points(_sized(table, size), f"{path}: workload {number}")
    labels = [point.label for point in points]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None:
        raise InputError(f"{path}: two points are called {twice!r}; give workloads other names")
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


def _points(table: Any, where: str) -> list[Point]:
    if not isinstance(table, dict):
        raise InputError(f"{where}: must be a table at each size, not {table!r:.40}")
    sweep = table.pop("sweep", {})
    family = claims.text_of(table.pop("name", None), f"{where}: name")
    cited = claims.names_of(table.pop("figures", []), f"{where}: figures", "a list as ['ssbj 5a']")
    if not isinstance(sweep, dict) or not all(
        isinstance(values, list) and values for values in sweep.values()
    ):
        raise InputError(f"{where}: sweep must be a table of lists, not {sweep!r}")
    points = []
    for values in itertools.product(*sweep.values()):
        settings = dict(zip(sweep, values, strict=True))
        completed = deepcopy(table)
        for setting, value in settings.items():
            together = value if isinstance(value, dict) and value else {setting: value}
            for path, one in together.items():
                _put(completed, path.split("."), one, f"{where}: sweep {path}")
            settings[setting] = _called(next(iter(together.values())), f"{where}: sweep {setting}")
        short = [f"{setting.rpartition('.')[2]}={value}" for setting, value in settings.items()]
        label = " ".join([family, *short])
        if len(label.encode()) > MAX_LABEL_BYTES:
            raise InputError(
                f"{where}: the point {label[:40]!r}... has a name of more than {MAX_LABEL_BYTES} "
                "bytes; shorten the workload's name, or name what is swept together"
            )
        points.append(Point(label, family, settings, completed, cited))
    return points


def _called(value: Any, where: str) -> Any:
    """Return the value of a setting that a point is called by; refuse what is no plain one."""
    plain = isinstance(value, bool | int | float | str)
    if not plain or (isinstance(value, float) and not math.isfinite(value)):
        raise InputError(
            f"{where}: a point is called by a string or a finite number, not {value!r:.40}; put it "
            "in a table behind one"
        )
    return value


def _put(table: dict[str, Any], path: list[str], value: Any, where: str) -> None:
    for step in path[:-1]:
        inner = table.setdefault(step, {})
        if not isinstance(inner, dict):
            raise InputError(f"{where}: {step} is not a table")
        table = inner
    table[path[-1]] = value


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
