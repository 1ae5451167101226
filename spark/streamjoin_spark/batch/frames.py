"""DataFrames of a stream: sampled for the plan, then sent to tasks row by row.

A row is sent with its number, its arrival and its join columns; Spark's shuffle brings both
sides of a task together. Files that no slice of time divides well are sent the same way.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streamjoin.errors import InputError, UnsupportedError
from streamjoin.inputs.batches import from_arrow
from streamjoin.inputs.columns import arrow_arrivals
from streamjoin.inputs.conversion import in_nanoseconds
from streamjoin.inputs.files import require_columns
from streamjoin.inputs.payload import take
from streamjoin.tuples import Stream
from streamjoin_common.language.arrivals import ArrivalColumn
from streamjoin_spark.batch.files import StreamFiles, hint_unit
from streamjoin_spark.batch.partition import Partitioning
from streamjoin_spark.batch.plan import Side
from streamjoin_spark.batch.rows import recast, sent_types, spark_schema
from streamjoin_spark.batch.worker import Tuples, prepare_worker

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

SAMPLE_ROWS = 1 << 16
"""Rows of a DataFrame that are sampled for the plan, about."""

GATHERED_ROWS = 1 << 17
"""Minimum rows that are sent at once; smaller batches of Spark's are put together."""

_SPARK_TYPES = {"i": "long", "f4": "float", "f8": "double", "O": "string"}


@dataclass(frozen=True)
class StreamFrame:
    """One stream as a DataFrame.

    Attributes
    ----------
    source : str
        What errors call it.
    frame : pyspark.sql.DataFrame
        At least the row, arrival and join columns.
    row_column : str
        Each row's number: an integer that no other row has; numbers need not be dense.
    arrival : ArrivalColumn or None
        The arrival column; None where all tuples arrive at 0.
    columns : tuple of str
        The join columns.
    payload : pyarrow.Schema or None
        Columns that joined rows have, in the types that these have; None without any.
    """

    source: str
    frame: "DataFrame"
    row_column: str
    arrival: ArrivalColumn | None
    columns: tuple[str, ...]
    payload: pa.Schema | None = None

    def side(self) -> Side:
        """Count and sample the rows, the same ones whatever the partitions."""
        from pyspark.sql import functions

        rows = self.frame.count()
        one_in = max(1, rows // SAMPLE_ROWS)
        hashed = functions.pmod(functions.xxhash64("c0"), functions.lit(one_in))
        sampled = self.selected.where(hashed == 0).toArrow()
        stream = self.tuples(sampled).stream
        if self.arrival is not None and self.arrival.window and stream.rows:
            kind = sampled.column(self.names.index(self.arrival.name)).type
            hint_unit(self.arrival, kind, stream.ts[[0, -1]].tolist(), self.source)
        return Side(rows, stream.ts, stream)

    def last_us(self) -> int | None:
        """Return the last arrival; None without a row or an arrival column."""
        from pyspark.sql import functions

        if self.arrival is None:
            return None
        name = self.arrival.name
        last = self.frame.select(functions.max(self.frame[quoted(name)]).alias("c0")).toArrow()
        if last.column("c0").null_count:
            return None
        column = last.column("c0")
        return int(arrow_arrivals(pa, column, name, self.source, self.arrival.unit)[0])

    @property
    def names(self) -> list[str]:
        """Columns that are needed, each once."""
        arrivals = [self.arrival.name] if self.arrival else []
        payload = self.payload.names if self.payload is not None else []
        return [*dict.fromkeys([self.row_column, *arrivals, *self.columns, *payload])]

    @property
    def selected(self) -> "DataFrame":
        """The frame of these columns alone, numbered: Spark's workers take no name with a dot."""
        named = {f"c{index}": self.frame[quoted(name)] for index, name in enumerate(self.names)}
        return self.frame.select(*(column.alias(name) for name, column in named.items()))

    def tuples(self, table: pa.Table) -> Tuples:
        """Make tuples, in arrival order, of rows of :attr:`selected` in any order."""
        table = table.rename_columns(self.names)
        return tuples_of(
            table, self.row_column, self.arrival, self.columns, self.source, payload=self.payload
        )

    def sent(self, partitioning: Partitioning, of_r: bool) -> "DataFrame":
        """Send every row to its tasks: a DataFrame with a task number."""
        row, arrival, columns, source = self.row_column, self.arrival, self.columns, self.source
        names, payload = self.names, self.payload
        kinds = kinds_sent(payload, source)

        def send(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            prepare_worker()
            for table in tables_of(batches):
                named = table.rename_columns(names)
                tuples = tuples_of(named, row, arrival, columns, source, payload=payload)
                yield from _sent(tuples, columns, kinds, partitioning, of_r)

        return self.selected.mapInArrow(send, _sent_schema(self.nothing, columns, kinds))

    @property
    def nothing(self) -> Stream:
        """No tuple, of the right types; those that cannot be joined on are refused."""
        from pyspark.sql.pandas.types import to_arrow_schema

        schema = to_arrow_schema(self.selected.schema, timezone="UTC")
        return self.tuples(schema.empty_table()).stream


def quoted(name: str) -> str:
    """Name a column as Spark does, for which a dot leads into a column."""
    return "`" + name.replace("`", "``") + "`"


def open_frame(
    frame: "DataFrame",
    source: str,
    row_column: str,
    arrival: ArrivalColumn,
    columns: Sequence[str],
    *,
    payload: Sequence[str] = (),
) -> StreamFrame:
    """Take a DataFrame as a stream.

    Raises
    ------
    InputError
        If it lacks a column.
    """
    have = frame.columns
    ts = require_columns(have, [*columns, *payload], arrival, source)
    if row_column not in have or dict(frame.dtypes)[row_column] not in {"int", "bigint"}:
        raise InputError(
            f"{source}: needs a column {row_column!r} of integers that number its rows; "
            "give another name with row=, or give files, whose rows are numbered"
        )
    kept = _arrow_schema(frame, payload) if payload else None
    return StreamFrame(source, frame, row_column, arrival if ts else None, tuple(columns), kept)


def _arrow_schema(frame: "DataFrame", names: Sequence[str]) -> pa.Schema:
    from pyspark.sql.pandas.types import to_arrow_schema

    selected = frame.select(*(frame[quoted(name)].alias(f"c{n}") for n, name in enumerate(names)))
    types = to_arrow_schema(selected.schema, timezone="UTC").types
    return pa.schema([*zip(names, types, strict=True)])


def kinds_sent(payload: pa.Schema | None, source: str) -> list[pa.DataType]:
    """Types in which the shuffle carries the columns that joined rows have."""
    return [] if payload is None else sent_types(payload, source)


def sent_files(
    spark: "SparkSession", files: StreamFiles, partitioning: Partitioning, of_r: bool, parts: int
) -> "DataFrame":
    """Read files in blocks and send every row to its tasks."""
    blocks = len(files.blocks.groups)
    kinds = kinds_sent(files.payload, files.source)

    def send(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        prepare_worker()
        for batch in batches:
            for block in batch.column(0).to_numpy().tolist():
                stream, first = files.read_blocks(block, block + 1)
                rows = np.arange(first, first + stream.rows)
                tuples = Tuples(stream, rows, files.rows_of(rows))
                yield from _sent(tuples, files.columns, kinds, partitioning, of_r)

    sample = files.read_blocks(0, min(1, blocks))[0].slice(0, 1)
    frame = spark.range(0, blocks, 1, parts)
    return frame.mapInArrow(send, _sent_schema(sample, files.columns, kinds))


def received(
    table: pa.Table, columns: Sequence[str], source: str, payload: pa.Schema | None = None
) -> Tuples:
    """Make tuples, in arrival order, of what was sent to a task."""
    names = [f"c{n}" for n in range(len(columns))]
    kept = pa.schema([]) if payload is None else payload
    carried = pa.schema([(f"p{n}", field.type) for n, field in enumerate(kept)])
    tuples = tuples_of(
        table.drop_columns(["task", "missing"]).rename_columns(
            ["row", "ts", *names, *carried.names]
        ),
        "row",
        ArrivalColumn(),
        names,
        source,
        missing=np.asarray(table.column("missing").to_numpy()),
        payload=None if payload is None else carried,
    )
    return renamed(tuples, columns, payload)


def renamed(tuples: Tuples, columns: Sequence[str], payload: pa.Schema | None = None) -> Tuples:
    """Give the join columns, in this order, and those of joined rows their names."""
    stream = tuples.stream
    named = dict(zip(columns, stream.columns.values(), strict=True))
    carried = tuples.payload
    if carried is not None and payload is not None:
        carried = carried.rename_columns(payload.names)
    return Tuples(replace(stream, columns=named), tuples.rows, carried)


def tuples_of(
    table: pa.Table,
    row_column: str,
    arrival: ArrivalColumn | None,
    columns: Sequence[str],
    source: str,
    *,
    missing: NDArray[np.bool_] | None = None,
    payload: pa.Schema | None = None,
) -> Tuples:
    """Make tuples, in arrival order, of rows in any order.

    Raises
    ------
    InputError
        If a row has no number, or a column cannot be joined on.
    """
    if table.column(row_column).null_count:
        raise InputError(f"{source}: column {row_column!r} has rows without a number")
    rows = np.asarray(table.column(row_column).to_numpy()).astype(np.int64, copy=False)
    ts = np.zeros_like(rows)
    if arrival is not None:
        name = arrival.name
        ts = arrow_arrivals(pa, table.column(name), name, source, arrival.unit)
    later, same = ts[1:] > ts[:-1], ts[1:] == ts[:-1]
    if not (later | (same & (rows[1:] > rows[:-1]))).all():
        order = np.lexsort((rows, ts))
        table = take(table, order)
        rows = rows[order]
        missing = None if missing is None else missing[order]
    stream = from_arrow(table, list(columns), arrival or ArrivalColumn(), source).stream(source)
    stream = in_nanoseconds(stream)
    mask = stream.missing if missing is None else (missing if missing.any() else None)
    own = Stream(stream.columns, stream.ts, source, missing=mask)
    return Tuples(own, rows, None if payload is None else recast(table, payload))


def tables_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Put Spark's batches together."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(one.num_rows for one in held) >= GATHERED_ROWS:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def _wire(column: NDArray[Any]) -> NDArray[Any]:
    """Return a column in a type that Spark has, with the same values and the same comparisons."""
    if column.dtype.kind in "mM":
        return column.view(np.int64)
    if column.dtype == np.uint64:
        raise UnsupportedError(
            "Spark has no unsigned 64-bit numbers: store such a column as int64, or choose path "
            "files"
        )
    if column.dtype.kind in "iu":
        return column.astype(np.int64)
    if column.dtype == np.float16:
        return column.astype(np.float64)
    return column


def _sent_schema(
    sample: Stream, columns: Sequence[str], payload: Sequence[pa.DataType]
) -> "StructType":
    from pyspark.sql.types import StructType

    kinds = [_wire(sample.column(name)).dtype for name in columns]
    types = [
        _SPARK_TYPES.get(kind.kind) or _SPARK_TYPES[f"{kind.kind}{kind.itemsize}"] for kind in kinds
    ]
    inner = ", ".join(f"c{index} {kind}" for index, kind in enumerate(types))
    schema: Any = StructType.fromDDL(f"task long, row long, ts long, missing boolean, {inner}")
    carried = spark_schema(pa.schema([(f"p{n}", kind) for n, kind in enumerate(payload)]))
    return StructType([*schema.fields, *carried.fields])


def _sent(
    tuples: Tuples,
    columns: Sequence[str],
    payload: Sequence[pa.DataType],
    partitioning: Partitioning,
    of_r: bool,
) -> Iterator[pa.RecordBatch]:
    stream, rows = tuples.stream, tuples.rows
    if not stream.rows:
        return
    numbers = {
        name: column.view(np.int64) if column.dtype.kind in "mM" else column
        for name, column in stream.columns.items()
    }
    stream = Stream(numbers, stream.ts, stream.source, missing=stream.missing)
    at, tasks = partitioning.assigned(stream, rows, of_r)
    missing = np.zeros(stream.rows, np.bool_) if stream.missing is None else stream.missing
    arrays: dict[str, Any] = {
        "task": tasks,
        "row": rows[at],
        "ts": stream.ts[at],
        "missing": missing[at],
    }
    for index, name in enumerate(columns):
        arrays[f"c{index}"] = _wire(stream.column(name))[at]
    batch = pa.table({name: pa.array(array) for name, array in arrays.items()})
    if tuples.payload is not None:
        kinds = zip(tuples.payload.column_names, payload, strict=True)
        carried: Any = recast(tuples.payload, pa.schema([*kinds]))
        for index, column in enumerate(carried.take(pa.array(at)).columns):
            batch = batch.append_column(f"p{index}", column)
    yield from batch.combine_chunks().to_batches()
