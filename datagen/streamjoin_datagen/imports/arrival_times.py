"""The arrival column of imported tables: converted to microseconds and checked."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin_common.callers import warn_caller
from streamjoin_common.language.arrivals import ArrivalColumn, Arrivals
from streamjoin_datagen.errors import SpecError

_UNITS_US = {"s": 1_000_000, "ms": 1_000, "us": 1}


def with_arrivals(
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
        start = min(int(ts[0]) for ts in times.values() if ts.size)
        times = {stream: ts - start for stream, ts in times.items()}
    for stream, table in tables.items():
        column = columns[stream].name
        if times[stream].size and times[stream][0] < 0:
            raise SpecError(f"{paths[stream]}: column {column!r} is negative in row 0")
        index = table.schema.get_field_index(column)
        if column != "ts" and "ts" in table.column_names:
            raise SpecError(f"{paths[stream]}: column 'ts' must not be beside --ts {column}")
        tables = {**tables, stream: table.set_column(index, "ts", pa.array(times[stream]))}
    return tables


def _times_us(
    table: pa.Table, path: Path, arrival: ArrivalColumn
) -> tuple[np.ndarray[Any, np.dtype[np.int64]], bool]:
    """Arrival times of a table in microseconds, and whether they are times of day and date."""
    column = arrival.name
    if column not in table.column_names:
        have = ", ".join(table.column_names)
        raise SpecError(f"{path}: there is no arrival column {column!r}; it has {have}")
    raw = table.column(column)
    kind = raw.type
    if raw.null_count:
        row = pc.index(raw.is_null(), value=True).as_py()
        raise SpecError(f"{path}: column {column!r} is empty in row {row}: every row needs a time")
    is_clock = pa.types.is_timestamp(kind)
    try:
        if is_clock:
            raw = raw.cast(pa.timestamp("us", tz=kind.tz), safe=False)
        elif pa.types.is_duration(kind):
            raw = raw.cast(pa.duration("us"), safe=False)
        elif not pa.types.is_integer(kind):
            raise SpecError(
                f"{path}: column {column!r} must be integer microseconds, a timestamp or a "
                f"duration, not {kind}"
            )
        counts = pa.types.is_integer(kind)
        if counts and arrival.unit == "ns":
            raw = pc.divide(raw.cast(pa.int64()), 1000)
        elif counts and arrival.unit is not None:
            raw = pc.multiply_checked(raw.cast(pa.int64()), _UNITS_US[arrival.unit])
        times = raw.cast(pa.int64()).to_numpy()
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
        warn_caller(hint)
    return times, is_clock
