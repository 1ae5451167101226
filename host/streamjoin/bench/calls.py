"""Whole calls beside other systems: Arrow tables in, an Arrow table out.

What is timed is what a user types: for this library ``sj.join(r, s, on=...).pairs`` or, where
columns are taken, ``.table(["r.value", "s.value"])``, for the others their own join of the same
tables, which have a column of row numbers. DuckDB's connection is open before. All systems
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
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.bench.call_cases import CASES, Case, Columns
from streamjoin.errors import MismatchError, StreamJoinError
from streamjoin.inputs.files import arrow
from streamjoin.tuples import NO_ROW, Pairs
from streamjoin_common.installed.checks import not_installed
from streamjoin_common.language.kinds import R_ONLY

SEED = 1
ORDER_SEED = 3
"""Seed of the orders of the counted rounds. By it each system runs after at least two others."""

OWN = ("auto", "npj", "prj")
OTHERS = {"duckdb": "duckdb", "polars": "polars", "pyarrow": "pyarrow"}
"""Other systems, and the module that each needs."""

Call = Callable[[Case, Any, Any, int], Any]


def table(columns: Columns, column: str = "row") -> Any:
    """Make an Arrow table of the columns and of row numbers."""
    rows = len(next(iter(columns.values())))
    return arrow().table({**columns, column: np.arange(rows, dtype=_TYPES[column])})


_TYPES = {"row": np.uint32, "value": np.float64}


def _asked(case: Case, on: list[str]) -> list[str]:
    """Return the columns that a query asks for, as ``side.name``: row numbers first."""
    numbers = [f"{side}.{case.column}" for side in ("r" if case.how in R_ONLY else "rs")]
    return [*numbers, *(f"r.{name}" for name in on if case.taken == "keys and values")]


def _own(engine: str, case: Case, r: Any, s: Any, threads: int) -> Any:
    from streamjoin.api import join

    on = r.column_names[:-1]
    result = join(r, s, on=on, engine=engine, threads=threads, how=case.how)
    if case.taken == "rows":
        return result.pairs.select(["r_row", "s_row"][: len(_asked(case, on))])
    return result.table(_asked(case, on))


_SQL = {"inner": "", "left": "LEFT ", "full": "FULL ", "semi": "SEMI ", "anti": "ANTI "}


def _duckdb(connection: Any, case: Case, r: Any, s: Any, _threads: int) -> Any:
    # DuckDB finds both tables by their names here.
    on = r.column_names[:-1]
    asked = ", ".join(f"{each} AS {each.replace('.', '_')}" for each in _asked(case, on))
    condition = " AND ".join(f"r.{name} = s.{name}" for name in on)
    query = f"SELECT {asked} FROM r {_SQL[case.how]}JOIN s ON {condition}"
    return connection.sql(query).to_arrow_table()


def _polars(case: Case, r: Any, s: Any, _threads: int) -> Any:
    import polars

    on = r.column_names[:-1]
    left = polars.DataFrame(r).lazy().select(*on, **{f"r.{case.column}": case.column})
    right = polars.DataFrame(s).lazy().select(*on, **{f"s.{case.column}": case.column})
    asked = [each if each[2:] == case.column else each[2:] for each in _asked(case, on)]
    query = left.join(right, on=on, how=case.how).select(asked)
    return query.collect(engine="streaming").to_arrow()


_ARROW = {"left": "left outer", "full": "full outer", "semi": "left semi", "anti": "left anti"}


def _pyarrow(case: Case, r: Any, s: Any, threads: int) -> Any:
    on = r.column_names[:-1]
    right = s.rename_columns([*on, "s_row"])
    kind = _ARROW.get(case.how, case.how)
    joined = r.join(right, keys=on, join_type=kind, use_threads=threads > 1)
    asked = ["s_row" if each.startswith("s.") else each[2:] for each in _asked(case, on)]
    return joined.select(asked)


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
    r, s = table(r_columns, case.column), table(s_columns, case.column)
    calls = systems(threads)
    right = _check(case, name, {each: call(case, r, s, threads) for each, call in calls.items()})
    cpu_s: dict[str, list[float]] = {system: [] for system in calls}
    wall_s: dict[str, list[float]] = {system: [] for system in calls}
    for order in orders(list(calls), rounds):
        for system in order:
            call = calls[system]
            began_cpu, began = time.process_time(), time.perf_counter()
            result = call(case, r, s, threads)
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


def _check(case: Case, name: str, results: dict[str, Any]) -> Pairs:
    """Return the rows on which all results agree; a side that is missing or not asked for is -1."""
    pairs = {}
    for system, result in results.items():
        r_rows = _rows(result.column(0))
        none = np.full(len(r_rows), NO_ROW, dtype=np.int64)
        pairs[system] = Pairs(r_rows, none if case.how in R_ONLY else _rows(result.column(1)))
    first, right = next(iter(pairs.items()))
    for system, other in pairs.items():
        if (len(other), other.digest) != (len(right), right.digest):
            difference = other.difference(right)
            raise MismatchError(f"{name}: {system} differs from {first}: {difference}")
    return right


def _rows(column: Any) -> NDArray[np.int64]:
    rows = column.cast(arrow().int64()).fill_null(NO_ROW)
    return rows.to_numpy()  # type: ignore[no-any-return]  # see arrow()


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
