"""What was published of an experiment, beside what its records show: ratios of two engines.

A ``[[claim]]`` of an experiment's file says in ``text`` what was published, as a ratio in
``published``, and how it is had from the records: ``engine`` divided by ``over`` (default: the same
engine) at every point of ``workload`` with the settings ``where``, which are those that the claim
speaks of; ``over_where`` are settings in which the divisor's point is another one. ``of`` is
``throughput`` (the default), ``service_rate`` of a semi-stream join, or ``latency``, the 95th
percentile: how much shorter. ``by`` says which of several points stands for all: their ``median``
(the default), the ``max`` where "up to" was published, the ``min`` where "always" was.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamjoin.errors import InputError

MEASURES = ("throughput", "latency", "service_rate")
RULES: dict[str, Callable[[Sequence[float]], float]] = {
    "median": statistics.median,
    "max": max,
    "min": min,
}
_TEXTS = ("text", "workload", "engine")
_KEYS = (*_TEXTS, "published", "over", "where", "over_where", "of", "by")


@dataclass(frozen=True)
class Claim:
    """One published ratio.

    Attributes
    ----------
    text, published
        In words, and as a number.
    workload : str
        The family of points.
    engine, over : str
        Engines.
    where, over_where : mapping
        Settings by the path that is swept, or ``threads``.
    of : str
        One of :data:`MEASURES`.
    by : str
        One of :data:`RULES`.
    """

    text: str
    published: float
    workload: str
    engine: str
    over: str
    where: Mapping[str, Any] = field(default_factory=dict)
    over_where: Mapping[str, Any] = field(default_factory=dict)
    of: str = MEASURES[0]
    by: str = "median"

    def held(self, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Hold the claim beside records.

        Parameters
        ----------
        records : sequence of mapping
            With ``workload``, ``family`` and ``settings``.

        Returns
        -------
        dict
            ``text``, ``published``, ``of``, ``by``; ``here``, the ratio that stands for all points,
            their ``min`` and ``max`` (None where there is none); and ``points``: of each its
            ``point``, that of the divisor, ``over``, and its ``ratio``.
        """
        mine = [each for each in records if each["family"] == self.workload]
        points = []
        for record in mine:
            if record["engine"] != self.engine or not _fits(record, self.where):
                continue
            wanted = {**_settings(record), **self.over_where}
            for other in mine:
                if other["engine"] == self.over and _settings(other) == wanted:
                    ratio = self._ratio(record, other)
                    if ratio is not None:
                        at = {"point": record["workload"], "over": other["workload"]}
                        points.append({**at, "ratio": ratio})
        ratios = [point["ratio"] for point in points]
        return {
            "text": self.text,
            "published": self.published,
            "of": self.of,
            "by": self.by,
            "here": RULES[self.by](ratios) if ratios else None,
            "min": min(ratios, default=None),
            "max": max(ratios, default=None),
            "points": points,
        }

    def _ratio(self, record: Mapping[str, Any], other: Mapping[str, Any]) -> float | None:
        if not _alike(record, other, self.of):
            return None
        above, below = _measured(record, self.of), _measured(other, self.of)
        if self.of == "latency":
            above, below = below, above
        return above / below if above is not None and below else None


Entrants = Sequence[tuple[str, Sequence[str], Mapping[str, Any]]]
"""Family, engines and settings of every point."""


def read(tables: Any, path: str, points: Entrants) -> tuple[Claim, ...]:
    """Read the claims of an experiment.

    Parameters
    ----------
    tables
        What the file has at ``claim``.
    path : str
        For errors.
    points : sequence of (str, sequence of str, mapping)
        Family, engines and settings of every point.

    Raises
    ------
    InputError
        If one is not a claim, or is of a workload, an engine or a setting that is not there.
    """
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise InputError(f"{path}: claim must be [[claim]] tables")
    return tuple(
        _one(table, f"{path}: claim {number}", points)
        for number, table in enumerate(tables, start=1)
    )


def _one(table: Mapping[str, Any], where: str, points: Entrants) -> Claim:
    for key in table:
        if key not in _KEYS:
            raise InputError(f"{where}: has no key {key!r}; it takes {', '.join(_KEYS)}")
    for key in _TEXTS:
        if not isinstance(table.get(key), str):
            raise InputError(f"{where}: {key} must be a string, not {table.get(key)!r}")
    published = table.get("published")
    if isinstance(published, bool) or not isinstance(published, int | float) or published <= 0:
        raise InputError(f"{where}: published must be a ratio above 0, not {published!r}")
    of, by = table.get("of", MEASURES[0]), table.get("by", "median")
    for key, value, choices in (("of", of, MEASURES), ("by", by, tuple(RULES))):
        if value not in choices:
            raise InputError(f"{where}: {key} must be one of {', '.join(choices)}, not {value!r}")
    for key in ("where", "over_where"):
        if not isinstance(table.get(key, {}), dict):
            raise InputError(f"{where}: {key} must be a table of settings, not {table[key]!r}")
    claim = Claim(
        table["text"],
        float(published),
        table["workload"],
        table["engine"],
        table.get("over", table["engine"]),
        table.get("where", {}),
        table.get("over_where", {}),
        of,
        by,
    )
    mine = [(engines, settings) for family, engines, settings in points if family == claim.workload]
    _check_points(claim, where, mine)
    return claim


def _check_points(
    claim: Claim, where: str, mine: Sequence[tuple[Sequence[str], Mapping[str, Any]]]
) -> None:
    """Refuse a claim of engines and settings that the points of its workload do not have."""
    for engine in (claim.engine, claim.over):
        if not any(engine in engines for engines, _ in mine):
            raise InputError(f"{where}: no point of {claim.workload!r} runs {engine!r}")
    swept = {"threads", *(name for _, settings in mine for name in settings)}
    for name in (*claim.where, *claim.over_where):
        if name not in swept:
            have = ", ".join(sorted(swept))
            raise InputError(f"{where}: {claim.workload!r} has no setting {name!r}; it has {have}")


def _alike(record: Mapping[str, Any], other: Mapping[str, Any], of: str) -> bool:
    """Whether a ratio of two records says something of their engines alone.

    Measured and simulated figures, seconds by different clocks and latencies of different origins
    are different quantities.
    """
    same = ["clock_hz", "clock_source"] + (["latency_from"] if of == "latency" else [])
    simulated = [each.get("backend") == "model" for each in (record, other)]
    return simulated[0] == simulated[1] and all(record.get(n) == other.get(n) for n in same)


def _settings(record: Mapping[str, Any]) -> dict[str, Any]:
    return dict(record["settings"])


def _fits(record: Mapping[str, Any], where: Mapping[str, Any]) -> bool:
    settings = {"threads": record["threads"], **record["settings"]}
    return all(settings.get(key) == value for key, value in where.items())


def _measured(record: Mapping[str, Any], of: str) -> float | None:
    if of == "latency":
        value = (record.get("latency_us") or {}).get("p95")
    elif of == "service_rate":
        value = (record.get("semi_stream") or {}).get("service_rate_tuples_per_s")
    else:
        value = (record.get("throughput_tuples_per_s") or {}).get("median")
    return None if value is None else float(value)
