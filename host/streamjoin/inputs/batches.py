"""Tuples of one stream from Arrow data or NumPy arrays, checked early."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.errors import InputError, InputWarning, in_one_line
from streamjoin.inputs.columns import (
    Missing,
    arrow_arrivals,
    arrow_column,
    numpy_arrivals,
    numpy_column,
)
from streamjoin.inputs.files import arrow, require_columns
from streamjoin.inputs.lateness import beyond, in_order
from streamjoin.inputs.payload import take
from streamjoin.inputs.strings import Strings
from streamjoin.tuples import Int64s, Stream
from streamjoin_common.language.arrivals import ArrivalColumn

if TYPE_CHECKING:
    import pyarrow as pa

MAX_ROWS = 1 << 31
"""Rows of a stream, exclusive: row numbers are 32-bit payloads, hash tables link signed ones."""


@dataclass(frozen=True)
class Batch:
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
    table : pyarrow.Table or None
        All columns, where they came from Arrow.
    hint : str or None
        What the user is warned of: arrival times that look like another unit's.
    """

    columns: Mapping[str, NDArray[Any] | Strings]
    ts: Int64s | None
    rows: int
    missing: Missing
    table: Any
    hint: str | None = None

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
            ts = np.zeros(self.rows, dtype=np.int64)
            return Stream(self.columns, ts, source, self.table, self.missing)
        if lateness_us is None or in_order(self.ts) is None:
            return Stream(self.columns, self.ts, source, self.table, self.missing)
        kept = np.flatnonzero(~beyond(self.ts, lateness_us))
        order = in_order(self.ts[kept])
        numbers = kept if order is None else kept[order]
        ordered = replace(self, table=None).take(numbers)
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
    if isinstance(data, Mapping):
        return warn_of_hint(from_arrays(data, columns, arrival, name))
    if hasattr(data, "__arrow_c_stream__"):
        return warn_of_hint(from_arrow(_table(data, name), columns, arrival, name))
    lazy = f": pass {name}.collect()" if hasattr(data, "collect") else ""
    raise InputError(
        f"{name} must be Arrow data, a data frame or a mapping of NumPy arrays, "
        f"not {type(data).__name__}{lazy}"
    )


def warn_of_hint(batch: Batch) -> Batch:
    """Warn the user of a batch's hint and return the batch."""
    if batch.hint is not None:
        warnings.warn(batch.hint, InputWarning, stacklevel=4)
    return batch


def from_arrow(table: "pa.Table", columns: list[str], arrival: ArrivalColumn, source: str) -> Batch:
    """Take an Arrow table, keeping the table for late materialisation."""
    pa = arrow()
    name = require_columns(table.column_names, columns, arrival, source)
    columns_by_name = {name: arrow_column(pa, table.column(name), name, source) for name in columns}
    ts = hint = None
    if name is not None:
        ts = arrow_arrivals(pa, table.column(name), name, source, arrival.unit)
        hint = _hint(ts, arrival, source, pa.types.is_integer(table.column(name).type))
    return _batch(columns_by_name, ts, table.num_rows, table, hint)


def from_arrays(
    data: Mapping[str, Any], columns: list[str], arrival: ArrivalColumn, source: str
) -> Batch:
    """Take NumPy arrays by column name."""
    name = require_columns(list(data), columns, arrival, source)
    columns_by_name = {name: numpy_column(data[name], name, source) for name in columns}
    ts = hint = None
    if name is not None:
        ts = numpy_arrivals(data[name], name, source, arrival.unit)
        hint = _hint(ts, arrival, source, np.asarray(data[name]).dtype.kind in "iu")
    rows = {column: len(array) for column, (array, _) in columns_by_name.items()}
    if name is not None and ts is not None:
        rows[name] = len(ts)
    if len(set(rows.values())) > 1:
        listed = ", ".join(f"{column!r} {count}" for column, count in rows.items())
        raise InputError(f"{source}: the columns have different lengths, in rows: {listed}")
    return _batch(columns_by_name, ts, next(iter(rows.values())), None, hint)


def _hint(ts: Int64s, arrival: ArrivalColumn, source: str, counted: bool) -> str | None:
    """Say so where arrival times that are integers look like another unit's."""
    if not (counted and len(ts) and arrival.window):
        return None
    return arrival.hint(int(ts[0]), int(ts[-1]), source)


def _table(data: Any, name: str) -> "pa.Table":
    pa = arrow()
    try:
        return pa.table(data)  # type: ignore[no-any-return]  # see arrow()
    except (pa.ArrowException, ValueError, TypeError) as error:
        reason = in_one_line(error)
        raise InputError(f"{name}: is no table: {reason}") from None


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
