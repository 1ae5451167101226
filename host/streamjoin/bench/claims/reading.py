"""Claims as an experiment's file has them: read, and refused where they are none."""

from collections.abc import Mapping, Sequence
from typing import Any

from streamjoin.bench.claims.measures import MEASURES, SHARES
from streamjoin.bench.claims.rules import RULES, SAYS, Claim
from streamjoin.errors import InputError

_NEEDED = ("text", "published", "workload", "engine")
KEYS = (*_NEEDED, "figures", "says", "over", "where", "over_where", "of", "by", "why")

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
        if key not in KEYS:
            raise InputError(f"{where}: has no key {key!r}; it takes {', '.join(KEYS)}")
    for key in ("text", "workload", "why"):
        if not isinstance(table.get(key, "" if key == "why" else None), str):
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
        table.get("why", ""),
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
