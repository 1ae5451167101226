"""Tuples of one stream from Arrow data or NumPy arrays, checked early."""

import contextlib
import weakref
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.errors import InputError, in_one_line
from streamjoin.inputs.columns import (
    Missing,
    arrow_arrivals,
    arrow_column,
)
from streamjoin.inputs.files import (
    Stamp,
    arrow,
    files_of,
    read_table,
    require_columns,
    schema_of,
    stamp,
)
from streamjoin.inputs.lateness import beyond, in_order
from streamjoin.inputs.mappings import given_arrivals, given_column
from streamjoin.inputs.payload import take
from streamjoin.inputs.sources import Arrays, Later
from streamjoin.inputs.strings import Strings
from streamjoin.memory import reserved
from streamjoin.tuples import Clock, Int64s, Stream
from streamjoin_common.callers import warn_caller
from streamjoin_common.language.arrivals import ArrivalColumn

if TYPE_CHECKING:
    import pyarrow as pa

PANDAS_INDEX = "__index_level_"
"""How the names begin that pandas gives to the columns of an index without a name."""

MAX_ROWS = 1 << 31
"""Rows of a stream, exclusive: row numbers are 32-bit payloads, hash tables link signed ones."""

LONG = 1 << 16
"""Rows from which on it is worth to leave the arrival times of data at rest untouched."""

_READ: weakref.WeakSet[Any] = weakref.WeakSet()
"""Readers that were read: nothing else says so of them."""


class Batch(NamedTuple):
    """Tuples of one stream as they were given, in any order.

    Attributes
    ----------
    columns : mapping of str to ndarray or Strings
        The join columns.
    ts : ndarray of int64, or None
        Arrival times in microseconds; None where there is no arrival column.
    rows : int
        Number of tuples.
    missing : ndarray of bool, or None
        Which lack a join column's value.
    table : pyarrow.Table, Arrays, Later or None
        All columns, for looking rows up.
    hint : str or None
        What the user is warned of: arrival times that look like another unit's.
    clock : Clock
        What errors call the arrival times.
    """

    columns: Mapping[str, NDArray[Any] | Strings]
    ts: Int64s | None
    rows: int
    missing: Missing
    table: Any
    hint: str | None = None
    clock: Clock = Clock()

    def take(self, selected: NDArray[Any] | slice) -> "Batch":
        """Return the tuples of these row numbers, or of this slice."""
        ts = None if self.ts is None else self.ts[selected]
        missing = None if self.missing is None else self.missing[selected]
        columns = {name: column[selected] for name, column in self.columns.items()}
        table = self.table
        if table is not None and isinstance(selected, slice):
            table = table.slice(selected.start, selected.stop - selected.start)
        elif table is not None:
            table = take(table, selected)
        rows = selected.stop - selected.start if isinstance(selected, slice) else len(selected)
        return Batch(columns, ts, rows, missing, table)

    def stream(self, source: str, lateness_us: int | None = None) -> Stream:
        """Make a stream of it: refused where it is out of order, or put in order.

        Parameters
        ----------
        source : str
            What errors call it.
        lateness_us : int, optional
            Maximum lateness of tuples that are put in order; later ones are dropped and counted.

        Raises
        ------
        InputError
            If there are too many rows, or arrival times go back and no lateness is given.
        """
        if self.rows >= MAX_ROWS:
            raise InputError(f"{source}: {self.rows} rows; fewer than {MAX_ROWS} can be numbered")
        if self.ts is None:
            # Few look at them: pages that are not touched are never cleared.
            zeros = reserved if self.rows >= LONG else np.zeros
            ts = zeros(self.rows, np.int64)
            return Stream(self.columns, ts, source, self.table, self.missing, in_order=True)
        if lateness_us is None or in_order(self.ts) is None:
            return Stream(self.columns, self.ts, source, self.table, self.missing, clock=self.clock)
        kept = np.flatnonzero(~beyond(self.ts, lateness_us))
        order = in_order(self.ts[kept])
        numbers = kept if order is None else kept[order]
        ordered = self._replace(table=None).take(numbers)
        late = self.rows - ordered.rows
        return Stream(
            ordered.columns, self.ts[numbers], source, self.table, ordered.missing, numbers, late
        )


def as_batch(data: Any, columns: list[str], arrival: ArrivalColumn, name: str) -> Batch:
    """Take tuples of one stream from Python.

    Raises
    ------
    InputError
        If it is neither Arrow-like data nor a mapping of arrays, or a column does not fit.
    """
    if isinstance(data, np.ndarray) and data.dtype.names:
        data = {field: data[field] for field in data.dtype.names}
    if isinstance(data, Mapping):
        return warn_of_hint(from_arrays(data, columns, arrival, name))
    if isinstance(data, list) and data and all(isinstance(row, Mapping) for row in data):
        return warn_of_hint(from_arrow(_rows_table(data, name), columns, arrival, name))
    if hasattr(data, "__arrow_c_stream__"):
        return warn_of_hint(from_arrow(_table(data, name), columns, arrival, name))
    if hasattr(data, "to_table") and hasattr(data, "schema"):  # an Arrow dataset
        return warn_of_hint(_from_dataset(data, columns, arrival, name))
    raise InputError(
        f"{name} must be Arrow data, a data frame, a mapping of NumPy arrays or a file's path, "
        f"not {type(data).__name__}{_remedy(data, name)}"
    )


def _remedy(data: Any, name: str) -> str:
    """Say what to pass instead of what is no table yet."""
    if hasattr(data, "toArrow"):
        return f": pass {name}.toArrow()"
    if hasattr(data, "collect"):
        return f": pass {name}.collect()"
    if isinstance(data, list | tuple | np.ndarray):
        return f": name its columns, as {{'k': {name}}}"
    return ""


def from_file(path: Path, columns: list[str], arrival: ArrivalColumn) -> Batch:
    """Take a file, or those that match a pattern; other columns are read when looked up."""
    source, before = str(path), stamp(path) if _exists(path) else []
    batch = from_arrow(read_table(path, columns, arrival), columns, arrival, source)
    read, check = partial(_read_again, path, before), partial(_check_same, path, before)
    later = Later(schema_of(path), batch.table, read, source, check)
    return warn_of_hint(batch._replace(table=later))


def _check_same(path: Path, before: Stamp) -> None:
    try:
        same = stamp(path) == before
    except OSError:
        same = False
    if not same:
        raise InputError(f"{path}: has changed since it was joined: join it again")


def _read_again(path: Path, before: Stamp, names: list[str]) -> "pa.Table":
    _check_same(path, before)
    return read_table(path, names, None)


def _exists(path: Path) -> bool:
    try:
        return all(file.exists() for file in files_of(path))
    except OSError:
        return False


def _from_dataset(data: Any, columns: list[str], arrival: ArrivalColumn, name: str) -> Batch:
    ts = require_columns(list(data.schema.names), columns, arrival, name)
    read = partial(_read_dataset, data, name, _stamps(data))
    held = read(list(dict.fromkeys([*columns, *([ts] if ts else [])])))
    batch = from_arrow(held, columns, arrival, name)
    return batch._replace(table=Later(data.schema, held, read, name))


def _stamps(data: Any) -> Stamp:
    """Return the stamps of a dataset's files that are here; others are taken as they are."""
    try:
        return [each for file in getattr(data, "files", ()) for each in stamp(Path(file))]
    except OSError:
        return []


def _read_dataset(data: Any, source: str, before: Stamp, names: list[str]) -> Any:
    if _stamps(data) != before:
        raise InputError(f"{source}: has changed since it was joined: join it again")
    try:
        return data.to_table(columns=names)
    except (arrow().ArrowException, OSError) as error:
        raise InputError(f"{source}: cannot be read: {in_one_line(error)}") from None


def warn_of_hint(batch: Batch) -> Batch:
    """Warn the user of a batch's hint and return the batch."""
    if batch.hint is not None:
        warn_caller(batch.hint)
    return batch


def from_arrow(table: "pa.Table", columns: list[str], arrival: ArrivalColumn, source: str) -> Batch:
    """Take an Arrow table, keeping the table for late materialisation."""
    pa = arrow()
    name = require_columns(table.column_names, columns, arrival, source)
    columns_by_name = {name: arrow_column(pa, table.column(name), name, source) for name in columns}
    ts = hint = None
    clock = Clock()
    if name is not None:
        with _refused_as(arrival):
            ts = arrow_arrivals(pa, table.column(name), name, source, arrival.unit)
        kind = table.column(name).type
        hint = _hint(ts, arrival, source, pa.types.is_integer(kind))
        dated = pa.types.is_timestamp(kind) or pa.types.is_date(kind)
        clock = Clock(name, dated, arrival.otherwise)
    return _batch(columns_by_name, ts, table.num_rows, table, hint)._replace(clock=clock)


def from_arrays(
    data: Mapping[str, Any], columns: list[str], arrival: ArrivalColumn, source: str
) -> Batch:
    """Take NumPy arrays by column name."""
    name = require_columns(list(data), columns, arrival, source)
    columns_by_name = {name: given_column(data[name], name, source) for name in columns}
    ts = hint = None
    clock = Clock()
    if name is not None:
        with _refused_as(arrival):
            ts, kind = given_arrivals(data[name], name, source, arrival.unit)
        hint = _hint(ts, arrival, source, kind == "counted")
        clock = Clock(name, kind == "dated", arrival.otherwise)
    rows = {column: len(array) for column, (array, _) in columns_by_name.items()}
    if name is not None and ts is not None:
        rows[name] = len(ts)
    if len(set(rows.values())) > 1:
        listed = ", ".join(f"{column!r} {count}" for column, count in rows.items())
        raise InputError(f"{source}: the columns have different lengths, in rows: {listed}")
    count = next(iter(rows.values()))
    return _batch(columns_by_name, ts, count, Arrays(data, source, count), hint)._replace(
        clock=clock
    )


@contextlib.contextmanager
def _refused_as(arrival: ArrivalColumn) -> Iterator[None]:
    """Let a refusal of arrival times say what to do if they are none."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{error}{arrival.otherwise}") from None


def _hint(ts: Int64s, arrival: ArrivalColumn, source: str, counted: bool) -> str | None:
    """Say so where arrival times that are integers look like another unit's."""
    if not (counted and len(ts) and arrival.window):
        return None
    return arrival.hint(int(ts[0]), int(ts[-1]), source)


def _rows_table(rows: list[Mapping[str, Any]], name: str) -> "pa.Table":
    """Make a table of a list of rows, with the columns of all of them."""
    pa = arrow()
    columns = dict.fromkeys(column for row in rows for column in row)
    try:
        return pa.table({column: [row.get(column) for row in rows] for column in columns})  # type: ignore[no-any-return]  # see arrow()
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise _no_table(name, error) from None


def _no_table(name: str, error: Exception) -> InputError:
    return InputError(f"{name}: no Arrow table can be made of it: {in_one_line(error)}")


def _refuse_twice(frame: Any, name: str) -> None:
    """Refuse a pandas frame with two columns of one name, of which Arrow makes no table."""
    columns = list(getattr(frame, "columns", ()))
    twice = next((each for each in columns if columns.count(each) > 1), None)
    if twice is not None:
        times = columns.count(twice)
        raise InputError(f"{name}: the column {twice!r} occurs {times} times: rename one")


def _table(data: Any, name: str) -> "pa.Table":
    pa = arrow()
    if hasattr(data, "read_next_batch"):
        return read_once(data, name)  # type: ignore[no-any-return]  # see arrow()
    try:
        table = data if isinstance(data, pa.Table) else pa.table(data)
        if b"pandas" in (table.schema.metadata or {}):  # rows have numbers, not pandas' labels
            kept = [each for each in table.column_names if not each.startswith(PANDAS_INDEX)]
            table = table.select(kept)
        return table  # type: ignore[no-any-return]  # see arrow()
    except (pa.ArrowException, ValueError, TypeError) as error:
        _refuse_twice(data, name)
        raise _no_table(name, error) from None


def read_once(reader: Any, name: str) -> Any:
    """Read a reader, which gives its rows once.

    Raises
    ------
    InputError
        If it was read here before.
    """
    if reader in _READ:
        raise InputError(
            f"{name}: this reader was read before and gives its rows once: make it anew, or pass "
            "the table of its read_all()"
        )
    _READ.add(reader)
    try:
        table = reader.read_all()
    except (arrow().ArrowException, OSError) as error:
        raise InputError(f"{name}: cannot be read: {in_one_line(error)}") from None
    if not table.num_rows:
        warn_caller(
            f"{name}: the reader gives no rows: if it was read before, make it anew, or pass the "
            "table of its read_all()"
        )
    return table


def _batch(
    columns_by_name: Mapping[str, tuple[NDArray[Any] | Strings, Missing]],
    ts: Int64s | None,
    rows: int,
    table: Any,
    hint: str | None,
) -> Batch:
    # In a conjunction one missing value is enough: the row matches nothing.
    masks = [missing for _, missing in columns_by_name.values() if missing is not None]
    missing = np.logical_or.reduce(masks) if masks else None
    arrays = {name: column for name, (column, _) in columns_by_name.items()}
    return Batch(
        arrays, None if ts is None else ts.astype(np.int64, copy=False), rows, missing, table, hint
    )
