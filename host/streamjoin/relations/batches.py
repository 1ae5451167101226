"""Arrow batches as partitions: what the columnar stores share."""

from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streamjoin.errors import InputError
from streamjoin.inputs.columns import stored_column
from streamjoin.inputs.files import arrow
from streamjoin.relations.base import (
    KEY_TYPES,
    WORD_BYTES,
    Columns,
    Partition,
    Projection,
    Store,
    Words,
    key_words,
    packed,
)
from streamjoin.relations.checks import refuse_column

if TYPE_CHECKING:
    import pyarrow as pa


def needed(schema: "pa.Schema", projection: Projection, location: Path) -> "pa.Schema":
    """Say which of a relation's columns are read, in the projection's order.

    Raises
    ------
    InputError
        If one is missing, or there are two of its name.
    """
    for name in projection.names:
        if name not in schema.names:
            raise refuse_column(location, name, schema.names)
        if schema.names.count(name) > 1:
            raise InputError(
                f"{location}: the column {name!r} occurs {schema.names.count(name)} times"
            )
    chosen: pa.Schema = arrow().schema([schema.field(name) for name in projection.names])
    return chosen


def layout(schema: "pa.Schema", projection: Projection, location: Path) -> "np.dtype[Any]":
    """Check a relation's columns and say how the kept ones are packed.

    Raises
    ------
    InputError
        If a column is missing or of a type that cannot be a key or be kept.
    """
    types = arrow().types
    schema = needed(schema, projection, location)
    for name in projection.whole:
        if not types.is_integer(schema.field(name).type):
            kind = schema.field(name).type
            raise InputError(f"{location}: column {name!r} is {kind}; it must hold {KEY_TYPES}")
    fields = []
    for name in projection.columns:
        kind = schema.field(name).type
        if types.is_fixed_size_binary(kind):
            fields.append((name, f"V{kind.byte_width}"))
        elif types.is_integer(kind) or types.is_floating(kind):
            fields.append((name, str(kind.to_pandas_dtype()().dtype)))
        elif types.is_timestamp(kind) or types.is_duration(kind) or types.is_time64(kind):
            fields.append((name, "int64"))
        elif types.is_date32(kind) or types.is_time32(kind):
            fields.append((name, "int32"))
        elif types.is_boolean(kind):
            fields.append((name, "uint8"))
        else:
            raise InputError(
                f"{location}: column {name!r} is {kind}; only columns of a fixed width can be "
                "kept: drop it from the projection"
            )
    return packed(fields)


def consecutive(first: int, rows: int) -> Words:
    """Places of so many rows, one behind the other."""
    return np.arange(first, first + rows, dtype=np.uint64)


def partition(
    table: "pa.Table",
    projection: Projection,
    dtype: "np.dtype[Any]",
    numbers: Words,
    location: Path,
) -> Partition:
    """Turn a part of a relation into a partition, without copying what lies right.

    Parameters
    ----------
    table : pyarrow.Table
        The part.
    projection, dtype
        What is kept, and how :func:`layout` packs it.
    numbers : ndarray of uint64, shape (rows,)
        Places of the part's rows.
    location : Path
        For errors.
    """
    assert projection.key is not None
    key = table.column(projection.key)
    if key.null_count:  # rows without a value join with nothing
        present = np.flatnonzero(key.is_valid().to_numpy())
        table = table.take(present)
        numbers = numbers[present]
        key = table.column(projection.key)
    rows = numbers
    if projection.row is not None:
        rows = key_words(_values(table, projection.row, location))
    keys = key_words(key.to_numpy())
    if not dtype.itemsize or not table.num_rows:
        return Partition(keys, rows, np.zeros(1, dtype=np.uint64))
    as_it_lies = _mapped(table, projection, dtype, location)
    if as_it_lies is not None:
        return Partition(keys, rows, as_it_lies, 0, dtype.itemsize // WORD_BYTES)
    kept = np.zeros(table.num_rows, dtype=dtype)
    for name in projection.columns:
        kept[name] = _values(table, name, location, dtype[name])
    words = kept.view(np.uint64).reshape(-1)
    return Partition(keys, rows, words, 0, dtype.itemsize // WORD_BYTES)


def compared(
    table: "pa.Table", projection: Projection, numbers: Words, location: Path
) -> tuple[Words, Columns]:
    """Turn a part of a relation into columns that a join compares, whatever their types.

    Parameters
    ----------
    table, projection, numbers, location
        As for :func:`partition`.

    Raises
    ------
    InputError
        If a column is of a type that cannot be joined on.
    """
    pa = arrow()
    columns = {
        name: stored_column(pa, table.column(name), name, str(location))
        for name in projection.compared
    }
    if projection.row is not None:
        numbers = key_words(_values(table, projection.row, location))
    return numbers, columns


def passed(
    table: "pa.Table", projection: Projection, numbers: Words, location: Path
) -> "tuple[Words, pa.Table]":
    """Turn a part of a relation into columns that pass through a join, whatever their types.

    Parameters
    ----------
    table, projection, numbers, location
        As for :func:`partition`.
    """
    if projection.row is not None:
        numbers = key_words(_values(table, projection.row, location))
    return numbers, table.select(list(projection.passed))


def fixed_blobs(schema: "pa.Schema", one: "pa.Table") -> "pa.Schema":
    """Give blobs of a database the length of the first row's."""
    pa = arrow()
    for index, field in enumerate(schema):
        if pa.types.is_binary(field.type) and one.num_rows:
            width = len(one.column(index)[0].as_py() or b"")
            schema = schema.set(index, pa.field(field.name, pa.binary(width)))
    return schema


def _mapped(
    table: "pa.Table", projection: Projection, dtype: "np.dtype[Any]", location: Path
) -> Words | None:
    """Return the payload as it lies in the table where it is one column of whole words."""
    if len(projection.columns) != 1:
        return None
    values = _values(table, projection.columns[0], location, dtype[0])
    if values.dtype.itemsize != dtype.itemsize or not values.flags.c_contiguous:
        return None
    if values.ctypes.data % WORD_BYTES:
        return None
    return np.asarray(values.view(np.uint64).reshape(-1))


def _values(table: "pa.Table", name: str, location: Path, kind: Any = None) -> Any:
    """Return a column's values; fixed binaries as opaque bytes."""
    pa = arrow()
    column: Any = table.column(name)
    if column.null_count:
        raise InputError(f"{location}: column {name!r} has a missing value, which cannot be kept")
    if kind is not None and np.dtype(kind).kind == "V":
        width = np.dtype(kind).itemsize
        if not pa.types.is_fixed_size_binary(column.type):
            column = column.cast(pa.binary(width))
        pieces = []
        for chunk in column.chunks:
            data = np.frombuffer(chunk.buffers()[1], dtype=np.dtype(kind))
            pieces.append(data[chunk.offset : chunk.offset + len(chunk)])
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    values = column.to_numpy()
    if values.dtype.kind in "mM":
        values = values.view(np.int64)
    return values


class SelectingStore(Store):
    """A store that selects ranges of positions as Arrow tables."""

    @abstractmethod
    def rows(self, first: int, end: int) -> "tuple[pa.Table, Words]":
        """Select the rows at positions ``first`` to below ``end``, and their positions."""

    def read(self, first: int, end: int) -> Partition:
        """Make a partition of a range."""
        table, numbers = self.rows(first, end)
        try:
            return partition(table, self.projection, self.dtype, numbers, self.location)
        except arrow().ArrowException as error:
            raise InputError(f"{self.location}: {error}") from None

    def columns(self, first: int, end: int) -> tuple[Words, Columns]:
        """Take a range's columns as they are."""
        table, numbers = self.rows(first, end)
        return compared(table, self.projection, numbers, self.location)

    def looked_up(self, first: int, end: int) -> "tuple[Words, pa.Table]":
        """Take a range's columns as they are."""
        table, numbers = self.rows(first, end)
        return passed(table, self.projection, numbers, self.location)
