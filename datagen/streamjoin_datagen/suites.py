"""Suites: TOML files that name several workloads.

``name = "small"`` and one ``[[workload]]`` table each, with ``kind``, ``seed``, ``params`` and
optionally ``name``. The comparison reads further keys from the same tables (``window``,
``engines``, ``rounds``, ``threads``, ``arrival``, ``speedup``, ``knobs``); the generator leaves
them alone.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamjoin_common.documents import DocumentError, read_toml
from streamjoin_common.installed import shipped
from streamjoin_common.suggestions import did_you_mean
from streamjoin_datagen.errors import SpecError, require
from streamjoin_datagen.imports.flight_dimensions import DIMENSIONS
from streamjoin_datagen.params import SPECS, make_spec, require_types
from streamjoin_datagen.spec import WorkloadSpec

_OURS = ("kind", "seed", "name", "params")
_COMPARISON = (
    *("window", "how", "order", "engines", "rounds"),
    *("threads", "arrival", "speedup", "knobs"),
)
_NAME = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]*")


@dataclass(frozen=True)
class Entry:
    """One workload of a suite; ``spec`` is None for the flights, which are imported.

    ``dimension`` names the dimension table that is joined with the flights as the stream.
    """

    name: str
    kind: str
    spec: WorkloadSpec | None
    dimension: str | None = None


@dataclass(frozen=True)
class Suite:
    """A named list of workloads."""

    name: str
    entries: tuple[Entry, ...]


def read_suite(path: Path) -> Suite:
    """Read a suite.

    Raises
    ------
    SpecError
        Naming the file and the workload, if anything in it is not as it must be.
    """
    try:
        plain = read_toml(path)
    except FileNotFoundError as error:
        near = did_you_mean(path.stem, shipped.names(shipped.SUITES))
        raise SpecError(f"there is no suite {path}{near}") from error
    except OSError as error:
        raise SpecError(f"{path} cannot be read: {error.strerror}") from error
    except DocumentError as error:
        raise SpecError(f"{path} is not a suite: it {error.reason}") from error
    try:
        return _suite(plain)
    except SpecError as error:
        raise SpecError(f"{path}: {error}") from error


def _suite(plain: Mapping[str, Any]) -> Suite:
    for key in plain:
        require(key in ("name", "workload"), "suite key", "name or workload", key)
    name, tables = plain.get("name"), plain.get("workload")
    require(isinstance(name, str) and bool(name), "name", "the suite's name", name)
    require(isinstance(tables, list) and bool(tables), "workload", "[[workload]] tables", tables)
    entries: list[Entry] = []
    for number, table in enumerate(tables or [], start=1):
        try:
            entry = _entry(table)
            others = [earlier.name for earlier in entries]
            require(entry.name not in others, "name", "different for each workload", entry.name)
        except SpecError as error:
            raise SpecError(f"workload {number}: {error}") from error
        entries.append(entry)
    return Suite(str(name), tuple(entries))


def _entry(table: object) -> Entry:
    if not isinstance(table, dict):
        raise SpecError(f"workload must be a [[workload]] table, not {table!r}")
    allowed = (*_OURS, *_COMPARISON)
    for key in table:
        require(key in allowed, "key", f"one of {', '.join(allowed)}", key)
    kind, params = table.get("kind"), table.get("params", {})
    require(kind in (*SPECS, "flights"), "kind", f"one of {', '.join(SPECS)}, flights", kind)
    require(isinstance(params, dict), "params", "a table of parameters", params)
    spec = dimension = None
    if kind == "flights":
        alone = set(params) <= {"master"} and "seed" not in table
        require(alone, "flights", "without seed, and without params but master", table)
        dimension = params.get("master")
        if dimension is not None:
            require(dimension in DIMENSIONS, "master", f"one of {', '.join(DIMENSIONS)}", dimension)
    else:
        require_types(str(kind), params)
        spec = make_spec(str(kind), table.get("seed"), params)
    usual = spec.name if spec else "-".join(filter(None, ("flights", dimension)))
    name = table.get("name", usual)
    ok = isinstance(name, str) and _NAME.fullmatch(name) is not None
    require(ok, "name", "letters, digits, dots, dashes and underscores", name)
    return Entry(name, str(kind), spec, dimension)
