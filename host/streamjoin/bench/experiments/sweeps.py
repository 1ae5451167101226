"""Points of an experiment: one workload table for each combination of what is swept."""

import itertools
import json
import math
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from streamjoin.bench import claims
from streamjoin.bench.workloads import DEFAULT_ROUNDS
from streamjoin.errors import InputError

MAX_LABEL_BYTES = 200
"""Maximum length of a point's name, which is a part of the name of its file."""

DEFAULTS: Mapping[str, Any] = {
    "params": {},
    "how": "inner",
    "rounds": DEFAULT_ROUNDS,
    "arrival": "instant",
    "speedup": 1.0,
    "knobs": {},
    "order": "none",
}
"""Values of keys that a workload table does not have."""


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

    def asked(self, *, without: tuple[str, ...] = ()) -> str:
        """Say in canonical JSON what is run: equal for points that differ in spelling alone.

        Parameters
        ----------
        without : tuple of str
            Keys of the table that do not matter.
        """
        table = {**DEFAULTS, **self.table}
        kept = {key: table[key] for key in table if key not in {"name", *without}}
        if isinstance(table.get("engines"), list):
            kept["engines"] = sorted(map(str, table["engines"]))
        return json.dumps(_spelt(kept), sort_keys=True, default=str)


def points_of(table: Any, where: str) -> list[Point]:
    """Return the points of a workload table at one size.

    Raises
    ------
    InputError
        If it is none, or its sweep is wrong, beginning with ``where``.
    """
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
        paths: list[str] = []
        for setting, value in settings.items():
            together = value if isinstance(value, dict) and value else {setting: value}
            for path, one in together.items():
                _check_apart(path, paths, where)
                paths.append(path)
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


def _check_apart(path: str, others: list[str], where: str) -> None:
    """Refuse to sweep what another setting of the same point sets: the last would win."""
    for other in others:
        if f"{path}.".startswith(f"{other}.") or f"{other}.".startswith(f"{path}."):
            both = path if path == other else f"{other} and {path}"
            raise InputError(f"{where}: sweep sets {both} twice at one point; sweep it once")


def _spelt(value: Any) -> Any:
    """Return a value as it is however it is spelt: 64.0 is 64."""
    if isinstance(value, dict):
        return {key: _spelt(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_spelt(inner) for inner in value]
    whole = isinstance(value, float) and value.is_integer()
    return int(value) if whole else value


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
