"""Arguments that a function does not have: an error that says what was probably meant."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from streamjoin_common.errors import ArgumentError
from streamjoin_common.suggestions import nearest

P = ParamSpec("P")
T = TypeVar("T")

ELSEWHERE = {
    "by": "on='COL' or on='RCOL=SCOL'",
    "key": "on='COL' or on='RCOL=SCOL'",
    "keys": "on='COL' or on='RCOL=SCOL'",
    "left": "r=",
    "right": "s=",
    "tolerance": "band='RCOL=SCOL:LO:HI'",
    "predicate": "on= or band=",
    "condition": "on= or band=",
    "columns": "result.table(columns)",
    "select": "result.table(columns)",
    "suffixes": "result.table(r_suffix='_r', s_suffix='_s')",
    "join_type": "how=",
    "kind": "how=",
    "type": "how=",
    "algorithm": "engine=",
    "method": "engine=",
    "validate": "check=True",
    "verify": "check=True",
    "time": "ts='COL'",
    "timestamp": "ts='COL'",
    "time_column": "ts='COL'",
    "unit": "ts_unit=",
    "n_jobs": "threads=",
    "workers": "threads=",
    "limit": "max_pairs=",
}
"""What is written instead of arguments that other libraries have."""


def with_hints(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function answer an argument that it does not have with what was probably meant.

    Raises
    ------
    ArgumentError
        When the function is called with such an argument.
    """
    known = [
        name
        for name, each in inspect.signature(function).parameters.items()
        if each.kind is not each.POSITIONAL_ONLY and name != "self"
    ]
    accepted = frozenset(known)
    unnamed = [
        name
        for name, each in inspect.signature(function).parameters.items()
        if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    ]
    shown = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def called(*args: P.args, **named: P.kwargs) -> T:
        if not named.keys() <= accepted:
            unknown = next(name for name in named if name not in accepted)
            raise ArgumentError(
                f"{shown} has no argument {unknown}={_meant(unknown, named, known)}"
            )
        if len(args) > len(unnamed):
            given = args[len(unnamed)]
            names = ", ".join(name for name in unnamed if name != "self")
            raise ArgumentError(
                f"{shown} takes {names or 'nothing'} without a name, not {given!r} too: write "
                f"{'on=' if 'on' in accepted else 'the name of the argument'} before it"
            )
        return function(*args, **named)

    return called


def _meant(unknown: str, named: Mapping[str, Any], known: list[str]) -> str:
    if unknown in {"left_on", "right_on"} and "on" in known:
        left, right = named.get("left_on", "RCOL"), named.get("right_on", "SCOL")
        return f": write {_equal_columns(left, right)}"
    instead = ELSEWHERE.get(unknown)
    if instead and (instead.startswith("result.") or instead.partition("=")[0] in known):
        return f": write {instead}"
    near = nearest(unknown, known)
    return f": did you mean {near}=?" if near else f"; it has {', '.join(known)}"


def _equal_columns(left: object, right: object) -> str:
    sides = [[each] if isinstance(each, str) else each for each in (left, right)]
    if all(isinstance(side, list | tuple) for side in sides):
        pairs = list(zip(*sides, strict=False))
        if pairs and all(isinstance(name, str) for pair in pairs for name in pair):
            return f"on={','.join(r if r == s else f'{r}={s}' for r, s in pairs)!r}"
    return "on='RCOL=SCOL'"
