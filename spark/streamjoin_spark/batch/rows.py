"""Joined rows: chosen columns of both sides, a bounded number of bytes at a time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamjoin.errors import InputError, UnsupportedError
from streamjoin.inputs.payload import written_out
from streamjoin.tuples import Int64s
from streamjoin_common.language.selections import Chosen
from streamjoin_spark.batch.parts import Batch

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

STEP_BYTES = 1 << 24
"""Bytes of joined rows that are made at once, about; a single row may have more."""

STEP_PAIRS = 1 << 17
"""Maximum joined rows that are made at once."""

_SENT: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    **{f"{sign}int{bits}": pa.int64() for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "halffloat": pa.float32(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "large_string": pa.string(),
    "binary": pa.binary(),
    "large_binary": pa.binary(),
    "fixed_size_binary": pa.binary(),
}
"""In which Arrow types Spark's shuffle carries values of others; times go as integers."""


@dataclass(frozen=True)
class RowColumns:
    """What joined rows have.

    Attributes
    ----------
    chosen : tuple of Chosen
        The columns.
    schema : pyarrow.Schema
        Their names and types in the result.
    """

    chosen: tuple[Chosen, ...]
    schema: pa.Schema

    @classmethod
    def of(cls, chosen: Sequence[Chosen], r: Any, s: Any) -> "RowColumns":
        """Take the plain types of the sides' columns; None of a side without any."""
        types = {"r": r, "s": s}
        fields = [(each.name, types[each.side].field(each.column).type) for each in chosen]
        return cls(tuple(chosen), pa.schema(fields))

    def joined(
        self,
        rows: Batch,
        r: tuple[Any, Int64s, Any] | None,
        s: tuple[Any, Int64s, Any] | None,
    ) -> Iterator[Batch]:
        """Give pairs their columns.

        Parameters
        ----------
        rows : Batch
            Row numbers and times.
        r, s : tuple of Table, ndarray of int64 and ndarray of integers, or None
            A side's columns, how many bytes each row has (:func:`row_bytes`), and the index of each
            pair's row; None where it is missing.
        """
        sides = {"r": r, "s": s}
        sizes = np.zeros(len(rows.r_rows), dtype=np.int64)
        for side in (r, s):
            if side is not None:
                sizes += side[1][side[2]]
        ends = np.cumsum(sizes)
        start, count = 0, len(sizes)
        while start < count:
            before = ends[start] - sizes[start]
            end = int(np.searchsorted(ends, before + STEP_BYTES, side="right"))
            part = slice(start, min(max(end, start + 1), start + STEP_PAIRS))
            taken: dict[str, Any] = {
                name: None if side is None else pa.array(side[2][part])
                for name, side in sides.items()
            }
            arrays = []
            for chosen, field in zip(self.chosen, self.schema, strict=True):
                side, at = sides[chosen.side], taken[chosen.side]
                if side is None:
                    arrays.append(pa.nulls(len(sizes[part]), field.type))
                else:
                    arrays.append(side[0].column(chosen.column).take(at))
            table = pa.Table.from_arrays(arrays, schema=self.schema)
            yield Batch(rows.r_rows[part], rows.s_rows[part], rows.ts[part], table)
            start = part.stop


def single_rows(
    side: str, rows: Int64s, ts: Int64s, payload: pa.Table | None, columns: RowColumns | None
) -> Iterator[Batch]:
    """Make rows of tuples of one side, whose other side is missing.

    Parameters
    ----------
    side : str
        ``"r"`` or ``"s"``.
    rows, ts : ndarray of int64
        Their row numbers, and the times of the rows.
    payload : pyarrow.Table or None
        Their columns that the rows have, if there are any.
    columns : RowColumns or None
        What the rows have; None for row numbers.
    """
    nobody = np.full(len(rows), -1, dtype=np.int64)
    r_rows, s_rows = (rows, nobody) if side == "r" else (nobody, rows)
    batch = Batch(r_rows, s_rows, ts, None, "s" if side == "r" else "r")
    if columns is None:
        yield batch
        return
    own = payload, row_bytes(payload, len(rows)), np.arange(len(rows))
    yield from columns.joined(batch, *((own, None) if side == "r" else (None, own)))


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Types without views, runs and dictionaries: of those every part file has its own."""
    plain = written_out(schema.empty_table(), dictionaries=True).schema
    return pa.schema([(field.name, field.type) for field in plain])


def plain_table(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a table in the types of :func:`plain_schema`."""
    plain = written_out(table, dictionaries=True)
    return pa.Table.from_arrays(plain.columns, schema=schema)


def row_bytes(table: pa.Table | None, rows: int) -> Int64s:
    """How many bytes each row has: strings by their lengths, nested values by their mean."""
    sizes = np.zeros(rows, dtype=np.int64)
    if table is None or not rows:
        return sizes
    types = pa.types
    for column in table.columns:
        kind = column.type
        if any(is_kind(kind) for is_kind in (types.is_string, types.is_large_string)) or any(
            is_kind(kind) for is_kind in (types.is_binary, types.is_large_binary)
        ):
            lengths = pc.binary_length(column).fill_null(0).to_numpy()
            sizes += lengths.astype(np.int64) + 4
        else:
            sizes += -(-column.nbytes // rows)
    return sizes


def sent_types(schema: pa.Schema, source: str) -> list[pa.DataType]:
    """Return the types in which Spark's shuffle carries columns.

    Raises
    ------
    UnsupportedError
        If it has none that keeps a column's values.
    """
    return [_sent_type(field, source) for field in schema]


def _sent_type(field: "pa.Field[Any]", source: str) -> Any:
    from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type

    kind = field.type
    if pa.types.is_temporal(kind) and kind.bit_width in {32, 64}:
        return pa.int64()
    plain = _SENT.get(str(kind).partition("[")[0])
    if plain is not None:
        return plain
    try:
        same = to_arrow_type(from_arrow_type(kind, prefer_timestamp_ntz=True), timezone="UTC")
    except Exception:  # PySpark's classes have no common base
        same = None
    if same != kind:
        raise UnsupportedError(
            f"{source}: Spark's shuffle does not carry column {field.name!r}, which is {kind}: "
            "choose path files, or other columns"
        )
    return kind


def recast(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return a schema's columns in its types; integers of 64 bits keep their bits."""
    columns = [_recast(table.column(field.name), field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def _recast(column: Any, kind: Any) -> Any:
    if column.type == kind:
        return column
    for own, other in ((column.type, kind), (kind, column.type)):
        if pa.types.is_temporal(own) and own.bit_width == 32 and pa.types.is_int64(other):
            column = column.cast(pa.int32())  # dates and times of 32 bits are cast from those alone
    return column.cast(kind, safe=False)


def spark_schema(schema: pa.Schema) -> "StructType":
    """Return the same columns in Spark's types.

    Raises
    ------
    InputError
        If Spark has no type for a column.
    """
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import StructField, StructType

    fields = []
    for field in schema:
        try:
            kind = from_arrow_type(field.type, prefer_timestamp_ntz=True)
        except Exception as error:  # PySpark's classes have no common base
            raise InputError(
                f"a DataFrame has no type for column {field.name!r}, which is {field.type}: write "
                "the rows and read the files, or choose other columns"
            ) from error
        fields.append(StructField(field.name, kind))
    return StructType(fields)
