"""Whole calls beside other systems: Arrow tables in, an Arrow table out.

What is timed is what a user types: for this library ``sj.join(r, s, on=...).pairs`` or, where a
column of each side is taken, ``.table(["r.value", "s.value"])``, for the others their own join of
the same tables, which have a column of row numbers. DuckDB's connection is open before. All systems
take turns in every round, each round in an order of its own: no system always runs after the same
one. The first round warms up and is not counted; its results are held against the first system's.
"""

import argparse
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.errors import MismatchError, StreamJoinError
from streamjoin.inputs.files import arrow
from streamjoin.tuples import Pairs
from streamjoin_common.installed.checks import not_installed

SEED = 1
ORDER_SEED = 3
"""Seed of the orders of the counted rounds. By it each system runs after at least two others."""

OWN = ("auto", "npj", "prj")
OTHERS = {"duckdb": "duckdb", "polars": "polars", "pyarrow": "pyarrow"}
"""Other systems, and the module that each needs."""

Columns = dict[str, Any]
Generator = np.random.Generator
Make = Callable[[Generator, int], tuple[Columns, Columns]]
Call = Callable[[Any, Any, list[str], int], Any]


class Case(NamedTuple):
    """One join.

    Attributes
    ----------
    name : str
        With ``{rows}`` for the rows of R, and ``{twice}`` for twice as many.
    quick, full : int
        Rows of R at each size.
    make : callable
        Makes the columns of R and of S.
    taken : str
        What is taken: row numbers, or a float64 column of each side, whose values are the row
        numbers.
    """

    name: str
    quick: int
    full: int
    make: Make
    taken: str = "row"


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
    Case("{rows}, two int32", 100_000, 1_000_000, _two_columns),
    Case("{rows} strings", 100_000, 1_000_000, _strings),
    Case("columns, {rows} int64", 200_000, 2_000_000, partial(_unique, "int64"), "value"),
    Case("columns, far apart", 200_000, 2_000_000, _spread, "value"),
    Case("columns, strings", 100_000, 1_000_000, _strings, "value"),
    Case("{rows} int32", 1_000_000, 10_000_000, partial(_unique, "int32")),
    Case("{rows} int64", 1_000_000, 10_000_000, partial(_unique, "int64")),
)


def _count(rows: int) -> str:
    return f"{rows // 1_000_000} M" if rows >= 1_000_000 else f"{rows // 1000} k"


def _named(size: str) -> dict[str, Case]:
    counts = [getattr(case, size) for case in _CASES]
    return {
        case.name.format(rows=_count(rows), twice=_count(2 * rows)): case
        for case, rows in zip(_CASES, counts, strict=True)
    }


CASES = {"quick": _named("quick"), "full": _named("full")}
"""Cases of each size by name; the quick ones have a tenth of the rows, or all where these are
10,000."""


def table(columns: Columns, taken: str = "row") -> Any:
    """Make an Arrow table of the columns and of row numbers."""
    rows = len(next(iter(columns.values())))
    return arrow().table({**columns, taken: np.arange(rows, dtype=_TYPES[taken])})


_TYPES = {"row": np.uint32, "value": np.float64}


def _own(engine: str, r: Any, s: Any, on: list[str], threads: int) -> Any:
    from streamjoin.api import join

    result = join(r, s, on=on, engine=engine, threads=threads)
    if r.column_names[-1] == "row":
        return result.pairs.select(["r_row", "s_row"])
    return result.table(["r.value", "s.value"])


def _duckdb(connection: Any, r: Any, s: Any, on: list[str], _threads: int) -> Any:
    # DuckDB finds both tables by their names here.
    condition = " AND ".join(f"r.{name} = s.{name}" for name in on)
    taken = r.column_names[-1]
    query = f"SELECT r.{taken} AS r_row, s.{taken} AS s_row FROM r JOIN s ON {condition}"
    return connection.sql(query).to_arrow_table()


def _polars(r: Any, s: Any, on: list[str], _threads: int) -> Any:
    import polars

    left = polars.DataFrame(r).lazy().select(*on, r_row=r.column_names[-1])
    right = polars.DataFrame(s).lazy().select(*on, s_row=s.column_names[-1])
    query = left.join(right, on=on).select("r_row", "s_row")
    return query.collect(engine="streaming").to_arrow()


def _pyarrow(r: Any, s: Any, on: list[str], threads: int) -> Any:
    right = s.rename_columns([*on, "s_row"])
    joined = r.join(right, keys=on, join_type="inner", use_threads=threads > 1)
    return joined.select([r.column_names[-1], "s_row"])


def systems(threads: int) -> dict[str, Call]:
    """Return what each system's user calls, for the systems that are installed."""
    calls: dict[str, Call] = {name: partial(_own, name) for name in OWN}
    if find_spec(OTHERS["duckdb"]):
        import duckdb

        calls["duckdb"] = partial(_duckdb, duckdb.connect(config={"threads": str(threads)}))
    for name, call in {"polars": _polars, "pyarrow": _pyarrow}.items():
        if find_spec(OTHERS[name]):
            calls[name] = call
    return calls


def orders(names: list[str], rounds: int) -> list[list[str]]:
    """Return the order in which the systems take turns in each counted round."""
    generator = random.Random(ORDER_SEED)
    return [generator.sample(names, len(names)) for _ in range(rounds)]


def measure(name: str, size: str, rounds: int, threads: int) -> dict[str, Any]:
    """Time every system on one case.

    Returns
    -------
    dict
        ``case``, ``n_r``, ``n_s``, ``pairs``, ``digest``, and for each system of ``systems`` the
        medians ``cpu_s`` and ``wall_s`` of the counted rounds, and all of them,
        ``cpu_rounds_s`` and ``wall_rounds_s``, in seconds.

    Raises
    ------
    MismatchError
        If two systems' results differ.
    """
    case = CASES[size][name]
    r_columns, s_columns = case.make(np.random.default_rng(SEED), getattr(case, size))
    r, s, on = table(r_columns, case.taken), table(s_columns, case.taken), list(r_columns)
    calls = systems(threads)
    right = _check(name, {system: call(r, s, on, threads) for system, call in calls.items()})
    cpu_s: dict[str, list[float]] = {system: [] for system in calls}
    wall_s: dict[str, list[float]] = {system: [] for system in calls}
    for order in orders(list(calls), rounds):
        for system in order:
            call = calls[system]
            began_cpu, began = time.process_time(), time.perf_counter()
            result = call(r, s, on, threads)
            cpu_s[system].append(time.process_time() - began_cpu)
            wall_s[system].append(time.perf_counter() - began)
            del result
    return {
        "case": name,
        "n_r": r.num_rows,
        "n_s": s.num_rows,
        "pairs": len(right),
        "digest": right.digest,
        "systems": {
            system: {
                "cpu_s": statistics.median(cpu_s[system]),
                "wall_s": statistics.median(wall_s[system]),
                "cpu_rounds_s": cpu_s[system],
                "wall_rounds_s": wall_s[system],
            }
            for system in calls
        },
    }


def _check(name: str, results: dict[str, Any]) -> Pairs:
    """Return the pairs on which all results agree."""
    pairs = {
        system: Pairs(_rows(result.column(0)), _rows(result.column(1)))
        for system, result in results.items()
    }
    first, right = next(iter(pairs.items()))
    for system, other in pairs.items():
        if (len(other), other.digest) != (len(right), right.digest):
            difference = other.difference(right)
            raise MismatchError(f"{name}: {system} differs from {first}: {difference}")
    return right


def _rows(column: Any) -> NDArray[np.int64]:
    return column.to_numpy().astype(np.int64)  # type: ignore[no-any-return]  # see arrow()


def main() -> None:
    """Measure the cases that are named, and print a line of JSON for each.

    A process of its own: the threads of Polars' pool are set before it is imported.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="+")
    parser.add_argument("--size", required=True)
    parser.add_argument("--rounds", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    args = parser.parse_args()
    os.environ["POLARS_MAX_THREADS"] = str(args.threads)
    if not find_spec("pyarrow"):
        sys.exit(f"streamjoin: {not_installed('pyarrow', needed_by='bench calls')}")
    arrow().set_cpu_count(args.threads)
    for name in args.cases:
        try:
            result = measure(name, args.size, args.rounds, args.threads)
        except StreamJoinError as error:
            sys.exit(f"streamjoin: {error}")
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
