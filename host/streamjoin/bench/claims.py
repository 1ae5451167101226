"""What was published of an experiment, and whether it holds here: figures at named points.

A ``[[claim]]`` of an experiment's file says in ``text`` what was published, as a number in
``published``, in which ``figures`` it stands, and how it is had from the records: ``engine``
divided by ``over`` (default: the same engine) at every point of ``workload`` with the settings
``where``, which are those that the claim speaks of; ``over_where`` are settings in which the
divisor's point is another one. A list of engines is the best of them at each point, a list of a
setting's values any of them. ``of`` is one of :data:`MEASURES`; where less is better, the ratio
says how much less. One of :data:`SHARES` with neither ``over`` nor ``over_where`` is not divided.

``by`` says which of several points stands for all: their ``median`` (the default), the ``max``
where "up to" was published, the ``min`` where "always" was. ``says`` is ``at least`` (the default),
``at most`` or ``about``. The verdict follows from these:

- ``holds``: the figure that stands for all points reaches ``published``, less :data:`NOISE`; for
  ``about``, within the factor :data:`ABOUT`.
- ``holds in part``: it does not, but some point does, or the ratio lies on the published side of 1,
  by more than :data:`NOISE`.
- ``does not hold here``: neither.
- ``not measured``: no point has both figures.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamjoin.errors import InputError

NOISE = 0.1
"""Share of a published ratio by which runs differ on a shared machine."""

ABOUT = 1.25
"""Factor within which two ratios are about equal."""

RULES: dict[str, Callable[[Sequence[float]], float]] = {
    "median": statistics.median,
    "max": max,
    "min": min,
}
SAYS = ("at least", "at most", "about")
VERDICTS = HOLDS, IN_PART, NOT_HERE, NOT_MEASURED = (
    *("holds", "holds in part"),
    *("does not hold here", "not measured"),
)

Record = Mapping[str, Any]


def _at(*path: str) -> Callable[[Record], float | None]:
    """Return what reads a number at a path of a record, or None where it is not."""

    def get(record: Record) -> float | None:
        value: Any = record
        for name in path:
            value = value.get(name) if isinstance(value, Mapping) else None
        return None if value is None else float(value)

    return get


def _reached(share: float) -> Callable[[Record], float | None]:
    """Return what reads the milliseconds after which a share of all matches was produced."""

    def get(record: Record) -> float | None:
        curve = record.get("progress") or []
        return next((float(ms) for done, ms in curve if done >= share - 1e-9), None)

    return get


def _cpu_share(record: Record) -> float | None:
    cpu_s, wall_s = _at("cpu_s", "median")(record), _at("wall_s", "median")(record)
    return cpu_s / wall_s / record["threads"] if cpu_s is not None and wall_s else None


def _phase_share(name: str) -> Callable[[Record], float | None]:
    def get(record: Record) -> float | None:
        phases = record.get("phases_ms") or {}
        whole = sum(phases.values())
        return phases[name] / whole if whole and name in phases else None

    return get


def _memory(record: Record) -> float | None:
    """Bytes of an algorithm's own structures; of a semi-stream join without what is free."""
    held = (record.get("semi_stream") or {}).get("memory_bytes")
    if not held:
        return _at("structure_bytes")(record)
    return float(sum(value for name, value in held.items() if name != "free"))


def _model_share(record: Record) -> float | None:
    """Smaller by larger of the time of a loop as computed and as measured."""
    semi = record.get("semi_stream") or {}
    model, steps = (semi.get("cost_model") or {}).get("loop_us"), semi.get("loop_us")
    took = sum(steps.values()) if steps else None
    return min(model, took) / max(model, took) if model and took else None


@dataclass(frozen=True)
class Measure:
    """A figure of a record.

    ``get`` reads it, None where the record does not have it; where ``less_is_better``, a ratio says
    how much less the first one is.
    """

    get: Callable[[Record], float | None]
    less_is_better: bool = True


MEASURES = {
    "throughput": Measure(_at("throughput_tuples_per_s", "median"), less_is_better=False),
    "latency": Measure(_at("latency_us", "p95")),
    "median_latency": Measure(_at("latency_us", "p50")),
    "half": Measure(_reached(0.5)),
    "service_rate": Measure(_at("semi_stream", "service_rate_tuples_per_s"), less_is_better=False),
    "cpu": Measure(_at("cpu_s", "median")),
    "memory": Measure(_memory),
    "peak": Measure(_at("peak_bytes")),
    "l1d_misses": Measure(_at("counters", "l1d_read_misses")),
    "partition": Measure(_at("phases_ms", "partition")),
    "build": Measure(_at("phases_ms", "build_or_sort")),
    "merge": Measure(_at("phases_ms", "merge")),
    "probe": Measure(_at("phases_ms", "probe")),
    "wait_share": Measure(_phase_share("wait")),
    "merge_share": Measure(_phase_share("merge")),
    "cpu_share": Measure(_cpu_share),
    "cache_share": Measure(_at("semi_stream", "cache_share"), less_is_better=False),
    "model_share": Measure(_model_share, less_is_better=False),
}
"""What claims are of, by name."""

SHARES = tuple(name for name in MEASURES if name.endswith("_share"))

_NEEDED = ("text", "published", "workload", "engine")
_KEYS = (*_NEEDED, "figures", "says", "over", "where", "over_where", "of", "by")


@dataclass(frozen=True)
class Claim:
    """One published figure.

    Attributes
    ----------
    text, published
        In words, and as a number.
    workload : str
        The family of points.
    engines, over : tuple of str
        Engines, the best of which counts; nothing in ``over`` where the figure is not divided.
    where, over_where : mapping
        Settings by the path that is swept, or ``threads``.
    of : str
        One of :data:`MEASURES`.
    by : str
        One of :data:`RULES`.
    says : str
        One of :data:`SAYS`.
    figures : tuple of str
        Where it stands, as ``"ssbj 5a"``.
    """

    text: str
    published: float
    workload: str
    engines: tuple[str, ...]
    over: tuple[str, ...]
    where: Mapping[str, Any] = field(default_factory=dict)
    over_where: Mapping[str, Any] = field(default_factory=dict)
    of: str = "throughput"
    by: str = "median"
    says: str = SAYS[0]
    figures: tuple[str, ...] = ()

    def held(self, records: Sequence[Record]) -> dict[str, Any]:
        """Hold the claim beside records.

        Parameters
        ----------
        records : sequence of mapping
            With ``workload``, ``family`` and ``settings``.

        Returns
        -------
        dict
            ``text``, ``figures``, ``published``, ``says``, ``of``, ``by``, ``divided``;
            ``verdict``; ``here``, the figure that stands for all points, their ``min`` and ``max``
            (None where there is none); and ``points``: of each its ``point``, that of the divisor,
            ``over``, its ``ratio``, whether it ``holds`` there, and the ``best`` of several.
        """
        mine = [each for each in records if each["family"] == self.workload]
        groups: dict[str, list[Record]] = {}
        for record in mine:
            if record["engine"] in self.engines and _fits(record, self.where):
                groups.setdefault(record["workload"], []).append(record)
        points = [point for group in groups.values() if (point := self._point(group, mine))]
        ratios = [point["ratio"] for point in points]
        return {
            "text": self.text,
            "figures": list(self.figures),
            "published": self.published,
            "says": self.says,
            "of": self.of,
            "by": self.by,
            "divided": bool(self.over),
            "verdict": self.verdict(ratios),
            "here": RULES[self.by](ratios) if ratios else None,
            "min": min(ratios, default=None),
            "max": max(ratios, default=None),
            "points": points,
        }

    def reached(self, ratio: float) -> bool:
        """Whether a figure is the published one."""
        if self.says == "about":
            return self.published / ABOUT <= ratio <= self.published * ABOUT
        if self.says == "at most":
            return ratio <= self.published * (1 + NOISE)
        return ratio >= self.published * (1 - NOISE)

    def verdict(self, ratios: Sequence[float]) -> str:
        """Decide by the rule of the module's docstring.

        Examples
        --------
        >>> claim = Claim("twice", 2.0, "pairs", ("npj",), ("prj",))
        >>> [claim.verdict(ratios) for ratios in ([1.9], [1.2, 1.3], [0.9], [])]
        ['holds', 'holds in part', 'does not hold here', 'not measured']
        """
        if not ratios:
            return NOT_MEASURED
        here = RULES[self.by](ratios)
        if self.reached(here):
            return HOLDS
        more = self.published > 1 and self.says != "at most" and here > 1 + NOISE
        less = self.published < 1 and self.says != "at least" and here < 1 - NOISE
        same_side = bool(self.over) and (more or less)
        return IN_PART if same_side or any(map(self.reached, ratios)) else NOT_HERE

    def _point(self, group: Sequence[Record], mine: Sequence[Record]) -> dict[str, Any] | None:
        """Return the figure at one point, None where a record of it does not have it."""
        above = self._best(group)
        if above is None:
            return None
        record, ratio, over = *above, str(above[0]["workload"])
        best = [record["engine"]] * (len(self.engines) > 1)
        if self.over:
            wanted = {**record["settings"], **self.over_where}
            others = [
                each
                for each in mine
                if each["engine"] in self.over
                and dict(each["settings"]) == wanted
                and _alike(record, each, self.of)
            ]
            below = self._best(others)
            if below is None or not below[1] or not ratio:
                return None
            less = MEASURES[self.of].less_is_better
            ratio = below[1] / ratio if less else ratio / below[1]
            over = str(below[0]["workload"])
            best += [below[0]["engine"]] * (len(self.over) > 1)
        return {
            "point": str(record["workload"]),
            "over": over,
            "ratio": ratio,
            "holds": self.reached(ratio),
            "best": best,
        }

    def _best(self, records: Sequence[Record]) -> tuple[Record, float] | None:
        measure = MEASURES[self.of]
        known = [(each, value) for each in records if (value := measure.get(each)) is not None]
        order = min if measure.less_is_better else max
        return order(known, key=lambda each: each[1], default=None)


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
    for key in ("text", "workload"):
        if not isinstance(table.get(key), str):
            raise InputError(f"{where}: {key} must be a string, not {table.get(key)!r}")
    published = table.get("published")
    if isinstance(published, bool) or not isinstance(published, int | float) or published <= 0:
        raise InputError(f"{where}: published must be a ratio above 0, not {published!r}")
    of, by = table.get("of", "throughput"), table.get("by", "median")
    said = ("says", table.get("says", SAYS[0]), SAYS)
    for key, value, choices in (("of", of, tuple(MEASURES)), ("by", by, tuple(RULES)), said):
        if value not in choices:
            raise InputError(f"{where}: {key} must be one of {', '.join(choices)}, not {value!r}")
    for key in ("where", "over_where"):
        if not isinstance(table.get(key, {}), dict):
            raise InputError(f"{where}: {key} must be a table of settings, not {table[key]!r}")
    engines = names_of(table.get("engine"), f"{where}: engine", "the name of an engine, or several")
    divided = "over" in table or "over_where" in table
    if not divided and of not in SHARES:
        raise InputError(
            f"{where}: {of} is divided: add over, another engine, or over_where, other settings"
        )
    over = names_of(table.get("over", list(engines)), f"{where}: over", "the name of an engine")
    figures = names_of(table.get("figures", []), f"{where}: figures", "a list as ['ssbj 5a']")
    claim = Claim(
        table["text"],
        float(published),
        table["workload"],
        engines,
        over if divided else (),
        table.get("where", {}),
        table.get("over_where", {}),
        of,
        by,
        said[1],
        figures,
    )
    mine = [(engines, settings) for family, engines, settings in points if family == claim.workload]
    _check_points(claim, where, mine)
    return claim


def names_of(value: Any, what: str, must: str) -> tuple[str, ...]:
    """Return one string, or a list of several, as a tuple.

    Raises
    ------
    InputError
        If it is neither.
    """
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{what} must be {must}, not {value!r}")
    return tuple(names)


def _check_points(
    claim: Claim, where: str, mine: Sequence[tuple[Sequence[str], Mapping[str, Any]]]
) -> None:
    """Refuse a claim of engines and settings that the points of its workload do not have."""
    for engine in (*claim.engines, *claim.over):
        if not any(engine in engines for engines, _ in mine):
            raise InputError(f"{where}: no point of {claim.workload!r} runs {engine!r}")
    swept = {"threads", *(name for _, settings in mine for name in settings)}
    for name in (*claim.where, *claim.over_where):
        if name not in swept:
            have = ", ".join(sorted(swept))
            raise InputError(f"{where}: {claim.workload!r} has no setting {name!r}; it has {have}")


def _alike(record: Record, other: Record, of: str) -> bool:
    """Whether a ratio of two records says something of their engines alone.

    Measured and simulated figures, seconds by different clocks and latencies of different origins
    are different quantities.
    """
    same = ["clock_hz", "clock_source"] + (["latency_from"] if "latency" in of else [])
    simulated = [each.get("backend") == "model" for each in (record, other)]
    return simulated[0] == simulated[1] and all(record.get(n) == other.get(n) for n in same)


def _fits(record: Record, where: Mapping[str, Any]) -> bool:
    settings = {"threads": record["threads"], **record["settings"]}
    return all(
        settings.get(key) in value if isinstance(value, list) else settings.get(key) == value
        for key, value in where.items()
    )
