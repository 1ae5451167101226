"""What was published of an experiment, beside what its records show: ratios of two engines.

A ``[[claim]]`` of an experiment's file says in ``text`` what was published, as a ratio in
``published``, and how it is had from the records: ``engine`` divided by ``over`` (the same engine
where it is left out) at every point of ``workload`` with the settings ``where``; ``over_where``
are settings in which the divisor's point is another one. ``of`` is ``throughput`` (the default),
``service_rate`` of a semi-stream join, or ``latency``, the 95th percentile: how much shorter.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamjoin.errors import InputError

MEASURES = ("throughput", "latency", "service_rate")
_TEXTS = ("text", "workload", "engine")
_KEYS = (*_TEXTS, "published", "over", "where", "over_where", "of")


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
    """

    text: str
    published: float
    workload: str
    engine: str
    over: str
    where: Mapping[str, Any] = field(default_factory=dict)
    over_where: Mapping[str, Any] = field(default_factory=dict)
    of: str = MEASURES[0]

    def held(self, records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Hold the claim beside records.

        Parameters
        ----------
        records : sequence of mapping
            With ``family`` and ``settings``.

        Returns
        -------
        dict
            ``text``, ``published``, ``of``, and of the ratios found at all points ``median``,
            ``min``, ``max`` (None where there is none) and ``points``.
        """
        mine = [each for each in records if each["family"] == self.workload]
        ratios = []
        for record in mine:
            if record["engine"] != self.engine or not _fits(record, self.where):
                continue
            wanted = {**_settings(record), **self.over_where}
            for other in mine:
                if other["engine"] == self.over and _settings(other) == wanted:
                    ratio = self._ratio(record, other)
                    ratios += [] if ratio is None else [ratio]
        return {
            "text": self.text,
            "published": self.published,
            "of": self.of,
            "median": statistics.median(ratios) if ratios else None,
            "min": min(ratios, default=None),
            "max": max(ratios, default=None),
            "points": len(ratios),
        }

    def _ratio(self, record: Mapping[str, Any], other: Mapping[str, Any]) -> float | None:
        above, below = _measured(record, self.of), _measured(other, self.of)
        if self.of == "latency":
            above, below = below, above
        return above / below if above is not None and below else None


def read(tables: Any, path: str, points: Sequence[tuple[str, Sequence[str]]]) -> tuple[Claim, ...]:
    """Read the claims of an experiment.

    Parameters
    ----------
    tables
        What the file has at ``claim``.
    path : str
        For errors.
    points : sequence of (str, sequence of str)
        Family and engines of every point.

    Raises
    ------
    InputError
        If one is not a claim, or is of a workload or an engine that is not there.
    """
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise InputError(f"{path}: claim must be [[claim]] tables")
    return tuple(
        _one(table, f"{path}: claim {number}", points)
        for number, table in enumerate(tables, start=1)
    )


def _one(
    table: Mapping[str, Any], place: str, points: Sequence[tuple[str, Sequence[str]]]
) -> Claim:
    for key in table:
        if key not in _KEYS:
            raise InputError(f"{place}: has no key {key!r}; it takes {', '.join(_KEYS)}")
    for key in _TEXTS:
        if not isinstance(table.get(key), str):
            raise InputError(f"{place}: {key} must be a text, not {table.get(key)!r}")
    published = table.get("published")
    if isinstance(published, bool) or not isinstance(published, int | float) or published <= 0:
        raise InputError(f"{place}: published must be a ratio above 0, not {published!r}")
    of = table.get("of", MEASURES[0])
    if of not in MEASURES:
        raise InputError(f"{place}: of must be one of {', '.join(MEASURES)}, not {of!r}")
    for key in ("where", "over_where"):
        if not isinstance(table.get(key, {}), dict):
            raise InputError(f"{place}: {key} must be a table of settings, not {table[key]!r}")
    claim = Claim(
        table["text"],
        float(published),
        table["workload"],
        table["engine"],
        table.get("over", table["engine"]),
        table.get("where", {}),
        table.get("over_where", {}),
        of,
    )
    for engine in (claim.engine, claim.over):
        if not any(claim.workload == family and engine in engines for family, engines in points):
            raise InputError(f"{place}: no point of {claim.workload!r} runs {engine!r}")
    return claim


def _settings(record: Mapping[str, Any]) -> dict[str, Any]:
    return dict(record["settings"])


def _fits(record: Mapping[str, Any], where: Mapping[str, Any]) -> bool:
    settings = {"threads": record["threads"], **record["settings"]}
    return all(settings.get(key) == value for key, value in where.items())


def _measured(record: Mapping[str, Any], of: str) -> float | None:
    if of == "latency":
        found = (record.get("latency_us") or {}).get("p95")
    elif of == "service_rate":
        found = (record.get("semi_stream") or {}).get("service_rate_tuples_per_s")
    else:
        found = (record.get("throughput_tuples_per_s") or {}).get("median")
    return None if found is None else float(found)
