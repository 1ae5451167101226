"""Which columns of both sides a joined row has.

Written ``r.COL`` and ``s.COL``; ``r.*`` and ``s.*`` for all of a side, ``*`` for all of both. A
column keeps its name unless the other side gives one of the same name: then it ends in ``_r`` or
``_s``. Results of ``semi`` and ``anti`` have columns of R alone.
"""

from collections.abc import Sequence
from typing import NamedTuple

from streamjoin_common.errors import InputError

SUFFIXES = {"r": "_r", "s": "_s"}
"""What a column's name ends in where both sides give one of that name."""

ALL = "*"


class OutputColumn(NamedTuple):
    """One column of a joined row.

    Attributes
    ----------
    side : str
        ``"r"`` or ``"s"``.
    name : str
        Its name in the input.
    output : str
        Its name in the result.
    """

    side: str
    name: str
    output: str


def output_columns(
    columns: str | Sequence[str],
    r_names: Sequence[str],
    s_names: Sequence[str],
    *,
    r_only: str = "",
) -> list[OutputColumn]:
    """Read a list of columns.

    Parameters
    ----------
    columns : str or sequence of str
        ``"r.a,s.b"``, or ``["r.a", "s.b"]``, where a name may hold a comma.
    r_names, s_names : sequence of str
        The columns that there are.
    r_only : str
        A kind of join whose results have columns of R alone, such as ``semi``; empty for others.

    Raises
    ------
    InputError
        If a column cannot be read, is not there or is named twice, or two get the same name.

    Examples
    --------
    >>> [column.output for column in output_columns("*", ["k", "a"], ["k", "b"])]
    ['k_r', 'a', 'k_s', 'b']
    """
    if not isinstance(columns, str | Sequence) or not all(isinstance(one, str) for one in columns):
        raise InputError(f"columns must be a string such as 'r.a,s.b' or strings, not {columns!r}")
    have = {"r": list(r_names), "s": list(s_names)}
    chosen: list[tuple[str, str]] = []
    for item in columns.split(",") if isinstance(columns, str) else columns:
        for column in _named(item.strip(), have, r_only):
            if column in chosen:
                raise InputError(f"columns name {'.'.join(column)!r} twice: name it once")
            chosen.append(column)
    if not chosen:
        raise InputError(f"columns name none: name some of {_listed(have, r_only)}")
    clashing = {name for side, name in chosen if side == "r" and ("s", name) in chosen}
    outputs = [name + SUFFIXES[side] if name in clashing else name for side, name in chosen]
    twice = next((name for name in outputs if outputs.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"two columns would be called {twice!r}: choose one of them")
    return [OutputColumn(*column, output) for column, output in zip(chosen, outputs, strict=True)]


def _named(item: str, have: dict[str, list[str]], r_only: str) -> list[tuple[str, str]]:
    if item == ALL:
        sides = ("r",) if r_only else ("r", "s")
        return [(side, name) for side in sides for name in have[side]]
    side, _, name = item.partition(".")
    if side not in have or not name:
        raise InputError(
            f"a column is r.COL or s.COL, or * for all, not {item!r}; there are "
            f"{_listed(have, r_only)}"
        )
    if side == "s" and r_only:
        raise InputError(
            f"{r_only} joins give rows of R alone, not {item!r}; there are {_listed(have, r_only)}"
        )
    if name in have[side]:
        if have[side].count(name) > 1:
            raise InputError(f"{side} has {have[side].count(name)} columns {name!r}")
        return [(side, name)]
    if name == ALL:
        return [(side, name) for name in have[side]]
    raise InputError(f"there is no column {item!r}; there are {_listed(have, r_only)}")


def _listed(have: dict[str, list[str]], r_only: str) -> str:
    sides = ("r",) if r_only else ("r", "s")
    return ", ".join(f"{side}.{name}" for side in sides for name in have[side]) or "none"
