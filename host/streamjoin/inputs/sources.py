"""Where the rows of an input are looked up: what was given, as Arrow columns when asked for.

Everything here has ``column_names`` and ``select(names)``, as an Arrow table has: mappings of
arrays become Arrow columns, and files and datasets are read, a column at a time and not before.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from streamjoin.errors import InputError, in_one_line
from streamjoin.inputs.files import arrow

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

TIME_UNITS = ("s", "ms", "us", "ns")
"""Units of time that Arrow has."""

FINER_UNITS = ("ps", "fs", "as")
"""Units of NumPy's times that are finer."""


class Arrays:
    """Columns of NumPy arrays, lists and series. Arrays of numbers are shared.

    Parameters
    ----------
    columns : mapping of str to array-like
        The columns as they were given.
    source : str
        What errors call the input.
    rows : int, optional
        How many rows the join columns have, and so every column must have.
    """

    def __init__(self, columns: Mapping[str, Any], source: str, rows: int | None = None) -> None:
        self._columns, self._source, self._rows = dict(columns), source, rows
        for name, values in self._columns.items():
            is_column = hasattr(values, "__len__") and getattr(values, "ndim", 1) != 0
            if is_column and not isinstance(values, str | bytes):
                self._check_rows(name, len(values))

    @property
    def column_names(self) -> list[str]:
        """Names that are strings: no other can be asked for."""
        return [name for name in self._columns if isinstance(name, str)]

    def select(self, names: Sequence[str]) -> "pa.Table":
        """Make an Arrow table of some columns.

        Raises
        ------
        InputError
            If Arrow has no type for a column's values, or its length is another.
        """
        pa = arrow()
        arrays = [self._array(pa, name) for name in names]
        return pa.table(arrays, names=list(names))  # type: ignore[no-any-return]  # see arrow()

    def cell(self, name: str, row: int) -> Any:
        """Return one value as it was given."""
        values = self._columns[name]
        return getattr(values, "iloc", values)[row]

    def copied(self) -> "pa.Table":
        """Make an Arrow table of all columns in memory of its own."""
        own = {name: _copy(self._columns[name]) for name in self.column_names}
        return Arrays(own, self._source, self._rows).select(list(own))

    def _array(self, pa: Any, name: str) -> Any:
        where = f"{self._source}: column {name!r}"
        values = self._columns[name]
        if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
            raise InputError(f"{where} is one value: give an array with a value for each row")
        try:
            made = _converted(pa, values)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            kind = getattr(values, "dtype", type(values).__name__)
            raise InputError(
                f"{where} is {kind}, of which no Arrow column can be made: name the other columns "
                f"({in_one_line(error)})"
            ) from None
        self._check_rows(name, len(made))
        return made

    def _check_rows(self, name: object, rows: int) -> None:
        if self._rows is not None and rows != self._rows:
            raise InputError(
                f"{self._source}: column {name!r} has {rows} rows and the join columns {self._rows}"
            )


def _copy(values: Any) -> Any:
    """Copy what others may write to: arrays and pandas' series. Arrow copies lists anyway."""
    if isinstance(values, np.ma.MaskedArray):
        return np.ma.copy(values)
    if isinstance(values, np.ndarray):
        return np.array(values)
    return values.copy() if hasattr(values, "iloc") else values


def _converted(pa: Any, values: Any) -> Any:
    mask = None
    if isinstance(values, np.ma.MaskedArray):
        mask, values = np.ma.getmaskarray(values), values.data
    if not isinstance(values, np.ndarray):
        if isinstance(values, pa.Array | pa.ChunkedArray):
            return values
        if hasattr(values, "__arrow_c_stream__"):
            return pa.chunked_array(values)
        try:
            return pa.array(values)
        except OverflowError:  # Arrow tries int64 alone
            return pa.array(values, pa.uint64())
    kind = values.dtype.kind
    if values.ndim == 2 and mask is None:
        flat = np.ascontiguousarray(values).reshape(-1)
        return pa.FixedSizeListArray.from_arrays(_converted(pa, flat), values.shape[1])
    if kind == "V" and values.dtype.names is None:
        return pa.array(values.tolist(), pa.binary(values.dtype.itemsize), mask=mask)
    if kind in "mM":
        values = _in_a_unit_of_arrow(values)
    if kind == "T":
        values = values.astype(object)
    return pa.array(values.astype(values.dtype.newbyteorder("="), copy=False), mask=mask)


def _in_a_unit_of_arrow(times: "NDArray[Any]") -> "NDArray[Any]":
    """Convert times, exactly, where Arrow would ignore the unit or a multiple of it, as 25s."""
    kind, (unit, count) = times.dtype.kind, np.datetime_data(times.dtype)
    if count == 1 and (unit in TIME_UNITS or (kind == "M" and unit == "D")):
        return times
    if unit not in TIME_UNITS:
        unit = "ns" if unit in FINER_UNITS else "s"
    made = times.astype(f"{kind}8[{unit}]")
    if (made.astype(times.dtype) != times)[~np.isnat(times)].any():
        raise ValueError(f"a time does not fit in {unit}")
    return made


class Later:
    """Columns of files or of a dataset: those of the join are here, others are read when asked for.

    Parameters
    ----------
    schema : pyarrow.Schema
        All columns.
    held : pyarrow.Table
        Columns that have been read.
    read : callable
        Reads a list of others as a table, the same rows in the same order.
    source : str
        What errors call the input.
    check : callable, optional
        Refuses what has changed: the columns that are held may lie in a file's memory.
    """

    def __init__(
        self,
        schema: "pa.Schema",
        held: "pa.Table",
        read: Callable[[list[str]], Any],
        source: str,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.schema, self._held = schema, held
        self._read, self._source, self._check = read, source, check

    @property
    def held(self) -> "pa.Table":
        """The columns that have been read."""
        self._check()
        return self._held

    @property
    def column_names(self) -> list[str]:
        """Names of all columns."""
        return list(self.schema.names)

    def select(self, names: Sequence[str]) -> "pa.Table":
        """Return some columns, reading those that are not here.

        Raises
        ------
        InputError
            If they cannot be read any more, or are no longer those of the join.
        """
        held = self.held
        others = [name for name in names if name not in held.column_names]
        if not others:
            return held.select(list(names))
        read = self._read(others)
        if read.num_rows != held.num_rows:
            raise InputError(f"{self._source}: has changed since it was joined: join it again")
        tables = {name: read if name in others else held for name in names}
        columns = [table.column(name) for name, table in tables.items()]
        fields = [table.schema.field(name) for name, table in tables.items()]
        pa = arrow()
        return pa.table(columns, schema=pa.schema(fields))  # type: ignore[no-any-return]  # see arrow()
