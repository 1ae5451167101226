"""Claims as an experiment's file has them: read, and refused where they are none."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from streamjoin.bench.claims.measures import MEASURES, SHARES
from streamjoin.bench.claims.rules import RULES, SAYS, Claim, fits
from streamjoin.errors import InputError

_NEEDED = ("text", "published", "workload", "engine")
KEYS = (*_NEEDED, "figures", "says", "over", "where", "over_where", "of", "by", "why")

Entrants = Sequence[tuple[str, Sequence[str], Mapping[str, Any], int | None]]
"""Family, engines, settings and threads of every point; None where the file does not say them."""

_Points = Sequence[tuple[Sequence[str], Mapping[str, Any], int | None]]
"""Engines, settings and threads of every point of a family."""


def read(tables: Any, path: str, points: Entrants) -> tuple[Claim, ...]:
    """Read the claims of an experiment.

    Parameters
    ----------
    tables
        What the file has at ``claim``.
    path : str
        For errors.
    points : sequence of (str, sequence of str, mapping, int or None)
        Family, engines, settings and threads of every point.

    Raises
    ------
    InputError
        If one is not a claim, or is of a workload, an engine, a setting or a point that is not
        there.
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
    for key in ("text", "workload"):
        text_of(table.get(key), f"{where}: {key}")
    if not isinstance(table.get("why", ""), str):
        raise InputError(f"{where}: why must be a string, not {table['why']!r}")
    published = table.get("published")
    is_number = isinstance(published, int | float) and not isinstance(published, bool)
    if published is None or not is_number or not 0 < published <= sys.float_info.max:
        raise InputError(f"{where}: published must be a ratio above 0, not {published!r:.40}")
    of, by = table.get("of", "throughput"), table.get("by", "median")
    said = ("says", table.get("says", SAYS[0]), SAYS)
    for key, value, choices in (("of", of, tuple(MEASURES)), ("by", by, tuple(RULES)), said):
        if value not in choices:
            raise InputError(f"{where}: {key} must be one of {', '.join(choices)}, not {value!r}")
    for key in ("where", "over_where"):
        if not isinstance(table.get(key, {}), dict):
            raise InputError(f"{where}: {key} must be a table of settings, not {table[key]!r}")
    engines = _engines(table.get("engine"), f"{where}: engine")
    divided = "over" in table or "over_where" in table
    if not divided and of not in SHARES:
        raise InputError(
            f"{where}: {of} is divided: add over, another engine, or over_where, other settings"
        )
    over = _engines(table.get("over", list(engines)), f"{where}: over")
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
    mine = [each[1:] for each in points if each[0] == claim.workload]
    _check_points(claim, where, mine)
    return replace(claim, asked=_asked(claim, where, mine))


def _engines(value: Any, what: str) -> tuple[str, ...]:
    must = "the name of an engine, or several"
    names = names_of(value, what, must)
    if not names:
        raise InputError(f"{what} must be {must}, not {value!r}")
    return names


def text_of(value: Any, what: str) -> str:
    """Return a string that says something.

    Raises
    ------
    InputError
        If it is none, or empty.
    """
    if not isinstance(value, str):
        raise InputError(f"{what} must be a string, not {value!r}")
    if not value.strip():
        raise InputError(f"{what} must not be empty")
    return value


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


def _asked(claim: Claim, where: str, mine: _Points) -> int:
    """Return the number of points that a claim is of; refuse a figure divided by itself."""
    asked = 0
    for engines, settings, threads in mine:
        at = _at(settings, threads)
        if not {*engines} & {*claim.engines} or not _can_be(at, claim.where):
            continue
        other = {**settings, **claim.over_where}
        beside = {name for names, there, _ in mine if dict(there) == other for name in names}
        asked += fits(at, claim.where) and (not claim.over or bool(beside & {*claim.over}))
        itself = sorted({*engines} & {*claim.engines} & {*claim.over})
        if itself and other == dict(settings):
            raise InputError(
                f"{where}: {itself[0]} with {_said(settings)} is divided by itself: name other "
                "engines in over, or other settings in where than in over_where"
            )
    return asked


def _check_points(claim: Claim, where: str, mine: _Points) -> None:
    """Refuse a claim of engines and settings that the points of its workload do not have."""
    for engine in (*claim.engines, *claim.over):
        if not any(engine in engines for engines, *_ in mine):
            raise InputError(f"{where}: no point of {claim.workload!r} runs {engine!r}")
    swept = {"threads", *(name for _, settings, _ in mine for name in settings)}
    for name in (*claim.where, *claim.over_where):
        if name not in swept:
            have = ", ".join(sorted(swept))
            raise InputError(f"{where}: {claim.workload!r} has no setting {name!r}; it has {have}")
    found = [_at(settings, threads) for _, settings, threads in mine]
    for name, value in claim.where.items():
        for one in value if isinstance(value, list) else [value]:
            if not any(_can_be(at, {name: one}) for at in found):
                raise InputError(f"{where}: no point of {claim.workload!r} has {name} = {one!r}")
        if value == []:
            raise InputError(f"{where}: {name} must have a value in where, not []")
    above = [
        settings
        for engines, settings, threads in mine
        if _can_be(_at(settings, threads), claim.where) and {*engines} & {*claim.engines}
    ]
    if not above:
        raise InputError(
            f"{where}: no point of {claim.workload!r} with {_said(claim.where)} runs "
            f"{' or '.join(claim.engines)}"
        )
    below = [dict(settings) for engines, settings, _ in mine if {*engines} & {*claim.over}]
    if claim.over and not any({**settings, **claim.over_where} in below for settings in above):
        raise InputError(
            f"{where}: no point of {claim.workload!r} with {_said(claim.where)} has one beside it "
            f"with {_said(claim.over_where)} that runs {' or '.join(claim.over)}"
        )


def _at(settings: Mapping[str, Any], threads: int | None) -> dict[str, Any]:
    """Return the settings of a point with its threads, where the file says how many."""
    return {**({} if threads is None else {"threads": threads}), **settings}


def _can_be(at: Mapping[str, Any], where: Mapping[str, Any]) -> bool:
    """Whether a point has settings; threads that the file does not say may be any."""
    asked = {name: value for name, value in where.items() if name != "threads" or name in at}
    return fits(at, asked)


def _said(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {value!r}" for name, value in settings.items()) or "any settings"
