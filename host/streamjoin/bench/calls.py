"""Whole calls beside other systems: Arrow tables in, an Arrow table of row numbers out.

What is timed is what a user types: for this library ``sj.join(r, s, on=...).pairs``, for the others
their own join of the same tables, which have a column of row numbers. All systems take turns in
every round. The first round warms up and is not counted; its results are held against the first
system's.
"""

import argparse
import json
import os
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
OWN = ("auto", "npj", "prj")
OTHERS = {"duckdb": "duckdb", "polars": "polars", "pyarrow": "pyarrow"}
"""Other systems, and the module that each needs."""

Columns = dict[str, Any]
Generator = np.random.Generator
Make = Callable[[Generator, int], tuple[Columns, Columns]]
Call = Callable[[Any, Any, list[str], int], Any]


class Case(NamedTuple):
    """Rows of R at each size, and what makes the columns of R and of S."""

    quick: int
    full: int
    make: Make


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


CASES = {
    "10 k int32": Case(10_000, 10_000, partial(_unique, "int32")),
    "2 M int32": Case(200_000, 2_000_000, partial(_unique, "int32")),
    "2 M int64": Case(200_000, 2_000_000, partial(_unique, "int64")),
    "2 M int64 far apart": Case(200_000, 2_000_000, _spread),
    "1 M, 10 a key": Case(100_000, 1_000_000, partial(_repeated, 10)),
    "200 k, 100 a key": Case(20_000, 200_000, partial(_repeated, 100)),
    "1 M and 2 M, Zipf 1": Case(100_000, 1_000_000, _skewed),
    "1 M, two int32": Case(100_000, 1_000_000, _two_columns),
    "1 M strings": Case(100_000, 1_000_000, _strings),
    "10 M int32": Case(1_000_000, 10_000_000, partial(_unique, "int32")),
    "10 M int64": Case(1_000_000, 10_000_000, partial(_unique, "int64")),
}
"""Cases by name; the names are of the full size, a tenth of which is the quick one."""


def table(columns: Columns) -> Any:
    """Make an Arrow table of the columns and of row numbers."""
    rows = len(next(iter(columns.values())))
    return arrow().table({**columns, "row": np.arange(rows, dtype=np.uint32)})


def _own(engine: str, r: Any, s: Any, on: list[str], threads: int) -> Any:
    from streamjoin.api import join

    return join(r, s, on=on, engine=engine, threads=threads).pairs


def _duckdb(r: Any, s: Any, on: list[str], threads: int) -> Any:
    import duckdb

    with duckdb.connect(config={"threads": str(threads)}) as connection:
        condition = " AND ".join(f"r.{name} = s.{name}" for name in on)
        query = f"SELECT r.row AS r_row, s.row AS s_row FROM r JOIN s ON {condition}"
        return connection.sql(query).to_arrow_table()


def _polars(r: Any, s: Any, on: list[str], _threads: int) -> Any:
    import polars

    left = polars.DataFrame(r).lazy().select(*on, r_row="row")
    right = polars.DataFrame(s).lazy().select(*on, s_row="row")
    query = left.join(right, on=on).select("r_row", "s_row")
    return query.collect(engine="streaming").to_arrow()


def _pyarrow(r: Any, s: Any, on: list[str], threads: int) -> Any:
    right = s.rename_columns([*on, "s_row"])
    joined = r.join(right, keys=on, join_type="inner", use_threads=threads > 1)
    return joined.select(["row", "s_row"]).rename_columns(["r_row", "s_row"])


def systems() -> dict[str, Call]:
    """Return what each system's user calls, for the systems that are installed."""
    calls: dict[str, Call] = {name: partial(_own, name) for name in OWN}
    for name, call in {"duckdb": _duckdb, "polars": _polars, "pyarrow": _pyarrow}.items():
        if find_spec(OTHERS[name]):
            calls[name] = call
    return calls


def measure(name: str, size: str, rounds: int, threads: int) -> dict[str, Any]:
    """Time every system on one case.

    Returns
    -------
    dict
        ``case``, ``n_r``, ``n_s``, ``pairs``, ``digest``, and for each system of ``systems`` the
        medians ``cpu_s`` and ``wall_s`` of the counted rounds, and all of ``cpu_rounds_s``, in
        seconds.

    Raises
    ------
    MismatchError
        If two systems' results differ.
    """
    case = CASES[name]
    r_columns, s_columns = case.make(np.random.default_rng(SEED), getattr(case, size))
    r, s, on = table(r_columns), table(s_columns), list(r_columns)
    calls = systems()
    right = _check(name, {system: call(r, s, on, threads) for system, call in calls.items()})
    cpu_s: dict[str, list[float]] = {system: [] for system in calls}
    wall_s: dict[str, list[float]] = {system: [] for system in calls}
    for _ in range(rounds):
        for system, call in calls.items():
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
            }
            for system in calls
        },
    }


def _check(name: str, results: dict[str, Any]) -> Pairs:
    """Return the pairs on which all results agree."""
    pairs = {
        system: Pairs(_rows(result["r_row"]), _rows(result["s_row"]))
        for system, result in results.items()
    }
    first, right = next(iter(pairs.items()))
    for system, other in pairs.items():
        if (len(other), other.digest) != (len(right), right.digest):
            difference = other.difference(right)
            raise MismatchError(f"{name}: {system} differs from {first}: {difference}")
    return right


def _rows(column: Any) -> NDArray[np.int64]:
    return np.asarray(column.to_numpy(), dtype=np.int64)


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
