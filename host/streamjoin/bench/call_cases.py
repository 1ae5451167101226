"""The joins that whole calls are measured on."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np

from streamjoin_common.language.kinds import How

Columns = dict[str, Any]
Generator = np.random.Generator
Make = Callable[[Generator, int], tuple[Columns, Columns]]
FEW = 100
"""The longer side has so many times the rows of a short one."""

Taken = Literal["rows", "values", "keys and values"]


class Case(NamedTuple):
    """One join.

    Attributes
    ----------
    name : str
        With ``{rows}`` for the rows of the longer side, or of R, ``{twice}`` for twice as many, and
        ``{few}`` for one in a hundred.
    quick, full : int
        Rows of R at each size.
    make : callable
        Makes the columns of R and of S.
    taken : str
        What is taken: row numbers, a float64 column of each side, whose values are the row numbers,
        or these and R's keys.
    how : str
        Kind of join.
    """

    name: str
    quick: int
    full: int
    make: Make
    taken: Taken = "rows"
    how: How = "inner"

    @property
    def column(self) -> str:
        """The column of row numbers."""
        return "row" if self.taken == "rows" else "value"


def _unique(kind: str, rng: Generator, rows: int) -> tuple[Columns, Columns]:
    r, s = ({"k": rng.permutation(rows).astype(kind)} for _ in range(2))
    return r, s


def _spread(rng: Generator, rows: int) -> tuple[Columns, Columns]:
    """64-bit keys that do not lie near one another."""
    r, s = ({"k": rng.permutation(rows).astype(np.int64) * 2_654_435_761} for _ in range(2))
    return r, s


def _repeated(a_key: int, rng: Generator, rows: int) -> tuple[Columns, Columns]:
    r, s = ({"k": rng.integers(0, rows // a_key, rows, dtype=np.int32)} for _ in range(2))
    return r, s


def _half(rng: Generator, rows: int) -> tuple[Columns, Columns]:
    """Unique keys, half of which the other side has too."""
    r, s = ({"k": rng.permutation(rows) + first} for first in (0, rows // 2))
    return r, s


def _facts(rng: Generator, rows: int) -> tuple[Columns, Columns]:
    """64-bit keys, and one in a hundred of them."""
    keys = rng.integers(0, 1 << 62, rows)
    return {"k": keys}, {"k": rng.permutation(keys)[: rows // FEW]}


def _dimensions(rng: Generator, rows: int) -> tuple[Columns, Columns]:
    """The same, the other way round."""
    r, s = _facts(rng, rows)
    return s, r


def _skewed(rng: Generator, rows: int) -> tuple[Columns, Columns]:
    """Unique keys of R; twice as many of S, by Zipf's law with exponent 1."""
    ends = np.cumsum(1 / np.arange(1, rows + 1))
    ranks = np.minimum(np.searchsorted(ends, rng.random(2 * rows) * ends[-1]), rows - 1)
    keys = rng.permutation(rows).astype(np.int32)
    return {"k": keys}, {"k": rng.permutation(keys)[ranks]}


def _two_columns(rng: Generator, rows: int) -> tuple[Columns, Columns]:
    def side() -> Columns:
        high, low = np.divmod(rng.permutation(rows).astype(np.int32), np.int32(1000))
        return {"k": high, "l": low}

    return side(), side()


def _strings(rng: Generator, rows: int) -> tuple[Columns, Columns]:
    r, s = ({"k": [f"key-{i}" for i in rng.permutation(rows).tolist()]} for _ in range(2))
    return r, s


_CASES = (
    Case("{rows} int32", 10_000, 10_000, partial(_unique, "int32")),
    Case("{rows} int32", 200_000, 2_000_000, partial(_unique, "int32")),
    Case("{rows} int64", 200_000, 2_000_000, partial(_unique, "int64")),
    Case("{rows} int64 far apart", 200_000, 2_000_000, _spread),
    Case("{rows}, 10 a key", 100_000, 1_000_000, partial(_repeated, 10)),
    Case("{rows}, 100 a key", 20_000, 200_000, partial(_repeated, 100)),
    Case("{rows} and {twice}, Zipf 1", 100_000, 1_000_000, _skewed),
    Case("{rows} and {few} int64", 200_000, 2_000_000, _facts),
    Case("{few} and {rows} int64", 200_000, 2_000_000, _dimensions),
    Case("{rows}, two int32", 100_000, 1_000_000, _two_columns),
    Case("{rows} strings", 100_000, 1_000_000, _strings),
    Case("columns, {rows} int64", 200_000, 2_000_000, partial(_unique, "int64"), "values"),
    Case("columns, far apart", 200_000, 2_000_000, _spread, "values"),
    Case("columns, strings", 100_000, 1_000_000, _strings, "values"),
    Case("with keys, far apart", 200_000, 2_000_000, _spread, "keys and values"),
    Case("with keys, strings", 100_000, 1_000_000, _strings, "keys and values"),
    Case("left, {rows}, 4 a key", 50_000, 500_000, partial(_repeated, 4), how="left"),
    Case("full, {rows} int64", 200_000, 2_000_000, _half, how="full"),
    Case("semi, {rows}, 100 a key", 20_000, 200_000, partial(_repeated, 100), how="semi"),
    Case("anti, {rows} int64", 200_000, 2_000_000, _half, how="anti"),
    Case("{rows} int32", 1_000_000, 10_000_000, partial(_unique, "int32")),
    Case("{rows} int64", 1_000_000, 10_000_000, partial(_unique, "int64")),
)


def _count(rows: int) -> str:
    return f"{rows // 1_000_000} M" if rows >= 1_000_000 else f"{rows // 1000} k"


def _named(size: str) -> dict[str, Case]:
    counts = [getattr(case, size) for case in _CASES]
    return {
        case.name.format(rows=_count(rows), twice=_count(2 * rows), few=_count(rows // FEW)): case
        for case, rows in zip(_CASES, counts, strict=True)
    }


CASES = {"quick": _named("quick"), "full": _named("full")}
"""Cases of each size by name; the quick ones have a tenth of the rows, or all where these are
10,000."""
