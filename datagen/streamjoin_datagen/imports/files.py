"""Files of the user's own, CSV, Parquet or of a known layout, as workloads.

Rows keep their order, so they must be sorted by arrival already: a workload that silently
differs from its file would be wrong. Nothing here needs Spark: the check of the order is
sequential, and Arrow reads both formats as they are.
"""

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from streamjoin_common import decoded
from streamjoin_common.errors import InputWarning
from streamjoin_common.free_memory import SHARE, available_bytes
from streamjoin_common.language.arrivals import ArrivalColumn, Arrivals
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import TumblingWindow, parse_window
from streamjoin_datagen.errors import SpecError
from streamjoin_datagen.pairs import table_pairs
from streamjoin_datagen.predicates import check_columns
from streamjoin_datagen.store import (
    STREAMS,
    Outcome,
    file_digest,
    identity,
    staged,
    write_tables,
)

Reader = Callable[[str, Path], pa.Table]
"""Reads the file of a stream, ``"r"`` or ``"s"``."""

_UNITS_US = {"s": 1_000_000, "ms": 1_000, "us": 1}
_INT32 = np.iinfo(np.int32)


def tables_identity(
    kind: str,
    paths: dict[str, Path],
    predicate: Predicate,
    ts: str | None,
    *,
    ts_unit: str | None = None,
    layout: str | None = None,
    window: str = "all",
) -> dict[str, Any]:
    """What ``workload.json`` says of an import before it is made.

    Parameters
    ----------
    kind : str
        ``"csv"``, ``"parquet"``, or the family of a layout.
    layout : str, optional
        Name of the layout in its family.

    Raises
    ------
    SpecError
        If a file is missing.
    """
    params: dict[str, Any] = {}
    for stream, path in paths.items():
        if not path.exists():
            raise SpecError(f"there is no file {path}")
        params[stream] = path.name
        params[f"{stream}_sha256"] = file_digest(path)
    read = {"ts": ts, "ts_unit": ts_unit} if ts_unit else {"ts": ts}
    written = {"on": predicate.on, "band": predicate.band}
    return identity(
        f"{paths['r'].stem}-{paths['s'].stem}",
        kind,
        params={**params, **({"layout": layout} if layout else read)},
        seed=None,
        predicate={name: terms for name, terms in written.items() if terms},
        window=window,
    )


def import_tables(
    known: dict[str, Any],
    paths: dict[str, Path],
    out: Path,
    predicate: Predicate,
    arrivals: Arrivals,
    *,
    reader: Reader,
) -> Outcome:
    """Turn two files into a workload.

    Parameters
    ----------
    known : dict
        The workload's :func:`tables_identity`.
    paths : dict of str to Path
        The files of ``"r"`` and ``"s"``.
    arrivals : Arrivals
        Arrival columns: integers, or any Arrow timestamp or duration. By default ``ts`` where the
        files have it; without it they are data at rest.
    reader : callable
        :func:`csv_table`, :func:`parquet_table`, or a layout's.

    Raises
    ------
    SpecError
        If a file cannot be read, lacks a column, or is not sorted by arrival (with the row).
    """
    started = time.monotonic()
    tables = {stream: reader(stream, path) for stream, path in paths.items()}
    tables = _typed_empty_columns(tables, predicate)
    check_columns(predicate, tables, paths)
    if known["kind"] != "parquet":
        tables = _narrowed(tables, predicate)
    tables = _with_arrivals(tables, paths, arrivals)
    pairs = None
    if predicate.kind == "equi":
        pairs = _counted(known["window"], tables, predicate)
    with staged(out) as folder:
        size = write_tables(folder, known, tables, pairs)
    rows = sum(table.num_rows for table in tables.values())
    return Outcome(known["name"], "imported", out, rows, size, time.monotonic() - started)


def _counted(window: str, tables: dict[str, pa.Table], predicate: Predicate) -> tuple[str, int]:
    """Count the pairs under the workload's window, which is all or tumbling."""
    columns = {
        "r": [term.r_column for term in predicate.terms],
        "s": [term.s_column for term in predicate.terms],
    }
    chosen = parse_window(window)
    if isinstance(chosen, TumblingWindow):
        for stream in STREAMS:
            numbers = tables[stream].column("ts").to_numpy() // chosen.length_us
            tables = {**tables, stream: tables[stream].append_column("", pa.array(numbers))}
            columns[stream].append("")
    return window, table_pairs(tables["r"], tables["s"], columns["r"], columns["s"])


def csv_table(_stream: str, path: Path) -> pa.Table:
    """Read a CSV file with a header."""
    _check_fits(path, lambda free: decoded.csv_bytes(pyarrow.csv, path, free))
    return _read("csv", path, pyarrow.csv.read_csv)


def parquet_table(_stream: str, path: Path) -> pa.Table:
    """Read a Parquet file, or the part files of a folder in the order of their names."""
    if path.is_dir():
        _check_parts(path)

    def needed(free: int) -> int:
        files = pq.ParquetDataset(path, partitioning=None)
        return decoded.parquet_bytes(pq, pc, files.files, files.schema.names, free)

    _check_fits(path, needed)
    return _read("parquet", path, lambda found: pq.read_table(found, partitioning=None))


def _check_fits(path: Path, needed: Callable[[int], int]) -> None:
    """Refuse a file that takes more memory than is free; what is damaged is left to its reader."""
    available = available_bytes()
    if available is None:
        return
    free = int(available * SHARE)
    try:
        decoded.check_fits(path, needed(free), free)
    except (pa.ArrowException, OSError, StopIteration):
        return


def _check_parts(folder: Path) -> None:
    """Refuse part files of different columns: Arrow would leave some out or fail in its words."""
    parts = sorted(file for file in folder.rglob("*.parquet") if not file.name.startswith("."))
    first = None
    for part in parts:
        try:
            found = pq.read_schema(part).remove_metadata()
        except (pa.ArrowInvalid, OSError) as error:
            said = str(error).splitlines()[0].rstrip(". ")
            raise SpecError(f"{part} cannot be read as parquet: {said}") from error
        first = first or found
        if found != first:
            raise SpecError(
                f"{part}: its columns are {_shown(found)}, and those of {parts[0].name} "
                f"{_shown(first)}: part files must have the same"
            )


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _read(kind: str, path: Path, reader: Callable[[Path], pa.Table]) -> pa.Table:
    if path.is_file() and path.stat().st_size == 0:
        raise SpecError(f"{path} is empty: it needs at least the names of its columns")
    try:
        table = reader(path)
    except (pa.ArrowInvalid, OSError) as error:
        said = str(error).splitlines()[0].rstrip(". ")
        raise SpecError(f"{path} cannot be read as {kind}: {said}") from error
    twice = {name for name in table.column_names if table.column_names.count(name) > 1}
    if twice:
        raise SpecError(f"{path}: the column {min(twice)!r} occurs twice")
    return table


def _cast(table: pa.Table, column: str, kind: pa.DataType) -> pa.Table:
    place = table.schema.get_field_index(column)
    return table.set_column(place, column, table.column(column).cast(kind))


def _typed_empty_columns(tables: dict[str, pa.Table], predicate: Predicate) -> dict[str, pa.Table]:
    """Give columns without any value a type: their partner's, else text.

    A CSV file of a header alone says nothing about its types.
    """
    found = dict(tables)
    partners = {
        "r": {term.r_column: term.s_column for term in predicate.terms},
        "s": {term.s_column: term.r_column for term in predicate.terms},
    }
    for stream, other in (("r", "s"), ("s", "r")):
        for field in tables[stream].schema:
            if not pa.types.is_null(field.type):
                continue
            partner = partners[stream].get(field.name)
            kind: pa.DataType = pa.string()
            if partner in tables[other].column_names:
                kind = tables[other].schema.field(partner).type
            elif field.name == "ts":
                kind = pa.int64()
            if pa.types.is_null(kind):
                kind = pa.int32()
            found[stream] = _cast(found[stream], field.name, kind)
    return found


def _narrowed(tables: dict[str, pa.Table], predicate: Predicate) -> dict[str, pa.Table]:
    """Make int32 of compared columns whose whole numbers all fit, as engines carry 32 bits."""
    found = dict(tables)
    for term in predicate.terms:
        places = [("r", term.r_column), ("s", term.s_column)]
        columns = [tables[stream].column(name) for stream, name in places]
        if all(pa.types.is_int64(column.type) and _fits(column) for column in columns):
            for stream, name in places:
                found[stream] = _cast(found[stream], name, pa.int32())
    return found


def _fits(column: "pa.ChunkedArray[Any]") -> bool:
    if not len(column):
        return True
    least, most = pc.min(column).as_py(), pc.max(column).as_py()
    return bool(_INT32.min <= least and most <= _INT32.max)


def _with_arrivals(
    tables: dict[str, pa.Table], paths: dict[str, Path], arrivals: Arrivals
) -> dict[str, pa.Table]:
    """Give both tables the column ``ts``: int64 microseconds, never decreasing.

    Without arrival times they stay without: zeros would make one window of all of them.
    """
    columns = {"r": arrivals.r, "s": arrivals.s}
    at_rest = not any("ts" in table.column_names for table in tables.values())
    if at_rest and not arrivals.r.named:
        return tables
    times, clocks = {}, set()
    for stream, table in tables.items():
        times[stream], is_clock = _times_us(table, paths[stream], columns[stream])
        if table.num_rows:
            clocks.add(is_clock)
    if len(clocks) > 1:
        raise SpecError(
            f"the arrival column is a timestamp in one of {paths['r']} and {paths['s']}: "
            "it must be one in both or in neither"
        )
    if clocks == {True}:
        start = min(int(found[0]) for found in times.values() if found.size)
        times = {stream: found - start for stream, found in times.items()}
    for stream, table in tables.items():
        column = columns[stream].name
        if times[stream].size and times[stream][0] < 0:
            raise SpecError(f"{paths[stream]}: column {column!r} is negative in row 0")
        place = table.schema.get_field_index(column)
        if column != "ts" and "ts" in table.column_names:
            raise SpecError(f"{paths[stream]}: column 'ts' must not be beside --ts {column}")
        tables = {**tables, stream: table.set_column(place, "ts", pa.array(times[stream]))}
    return tables


def _times_us(
    table: pa.Table, path: Path, arrival: ArrivalColumn
) -> tuple[np.ndarray[Any, np.dtype[np.int64]], bool]:
    """Arrival times of a table in microseconds, and whether they are times of day and date."""
    column = arrival.name
    if column not in table.column_names:
        have = ", ".join(table.column_names)
        raise SpecError(f"{path}: there is no arrival column {column!r}; it has {have}")
    found = table.column(column)
    kind = found.type
    if found.null_count:
        row = pc.index(found.is_null(), value=True).as_py()
        raise SpecError(f"{path}: column {column!r} is empty in row {row}: every row needs a time")
    is_clock = pa.types.is_timestamp(kind)
    try:
        if is_clock:
            found = found.cast(pa.timestamp("us", tz=kind.tz), safe=False)
        elif pa.types.is_duration(kind):
            found = found.cast(pa.duration("us"), safe=False)
        elif not pa.types.is_integer(kind):
            raise SpecError(
                f"{path}: column {column!r} must be whole microseconds, a timestamp or a "
                f"duration, not {kind}"
            )
        counts = pa.types.is_integer(kind)
        if counts and arrival.unit == "ns":
            found = pc.divide(found.cast(pa.int64()), 1000)
        elif counts and arrival.unit is not None:
            found = pc.multiply_checked(found.cast(pa.int64()), _UNITS_US[arrival.unit])
        times = found.cast(pa.int64()).to_numpy()
    except pa.ArrowInvalid as error:
        raise SpecError(f"{path}: column {column!r} does not fit int64 microseconds") from error
    back = np.flatnonzero(times[1:] < times[:-1])
    if back.size:
        row = int(back[0]) + 1
        raise SpecError(
            f"{path}: {column} goes back at row {row}, from {times[row - 1]} to {times[row]}: "
            f"sort the file by {column}"
        )
    hint = arrival.hint(int(times[0]), int(times[-1]), str(path)) if counts and len(times) else None
    if hint is not None:
        warnings.warn(hint, InputWarning, stacklevel=2)
    return times, is_clock
