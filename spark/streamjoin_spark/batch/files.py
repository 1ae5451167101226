"""Parquet files of a stream, known by their footers: rows are numbered, times bounded, none read.

A file's row groups are blocks. Their row counts number all rows of a stream, in the order of the
files' names, and the statistics of the arrival column give the blocks of a slice of time. A
worker then reads those alone.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streamjoin.errors import InputError
from streamjoin.inputs.batches import from_arrow
from streamjoin.inputs.columns import arrow_arrivals
from streamjoin.inputs.conversion import in_nanoseconds
from streamjoin.inputs.files import DEFAULT_ARRIVAL, files_of, require_columns
from streamjoin.tuples import Clock, Int64s, Stream
from streamjoin_common.callers import warn_caller
from streamjoin_common.language.arrivals import ArrivalColumn
from streamjoin_common.language.durations import MAX_US
from streamjoin_spark.batch.rows import plain_schema, plain_table


@dataclass(frozen=True)
class Blocks:
    """The row groups of a stream, in arrival order.

    Attributes
    ----------
    files, groups : ndarray of int64, shape (blocks,)
        Which file, and which of its row groups.
    first_rows : ndarray of int64, shape (blocks + 1,)
        The row number of each block's first row; at the end the stream's number of rows.
    first_us, last_us : ndarray of int64, shape (blocks,)
        Arrival of each block's first and last row.
    """

    files: Int64s
    groups: Int64s
    first_rows: Int64s
    first_us: Int64s
    last_us: Int64s


@dataclass(frozen=True)
class StreamFiles:
    """One stream on disk.

    Attributes
    ----------
    source : str
        What errors call it.
    paths : tuple of str
        Its files, in arrival order.
    arrival : ArrivalColumn or None
        The arrival column; None where all tuples arrive at 0.
    columns : tuple of str
        The join columns.
    blocks : Blocks
        Its row groups.
    payload : pyarrow.Schema or None
        Its columns that joined rows have, in the types that these have; None without any.
    """

    source: str
    paths: tuple[str, ...]
    arrival: ArrivalColumn | None
    columns: tuple[str, ...]
    blocks: Blocks
    payload: pa.Schema | None = None

    @property
    def rows(self) -> int:
        """Rows of all files."""
        return int(self.blocks.first_rows[-1])

    def last_us(self) -> int | None:
        """Return the last arrival; None without a row or an arrival column."""
        last = self.blocks.last_us
        return int(last[-1]) if self.arrival is not None and len(last) else None

    def between(self, from_us: int, to_us: int) -> tuple[int, int]:
        """Blocks that may hold arrivals from the one time to before the other."""
        first = int(np.searchsorted(self.blocks.last_us, from_us, side="left"))
        end = int(np.searchsorted(self.blocks.first_us, to_us, side="left"))
        return first, max(first, end)

    def read(self, from_us: int, to_us: int) -> tuple[Stream, int]:
        """Read the tuples that arrive from the one time to before the other.

        Returns
        -------
        stream : Stream
            The tuples.
        first_row : int
            The row number of the first.

        Raises
        ------
        InputError
            If a column cannot be joined on or arrival times go back.
        """
        stream, first_row = self.read_blocks(*self.between(from_us, to_us))
        first, end = np.searchsorted(stream.ts, [from_us, to_us]).tolist()
        return stream.slice(first, end), first_row + first

    def read_blocks(self, first: int, end: int) -> tuple[Stream, int]:
        """Read blocks ``first`` to below ``end``; return them with the first row's number."""
        first_row = int(self.blocks.first_rows[first])
        names = [*dict.fromkeys([*self.columns, *([self.arrival.name] if self.arrival else [])])]
        tables = []
        files = self.blocks.files[first:end]
        for number in np.unique(files).tolist():
            groups = self.blocks.groups[first:end][files == number].tolist()
            path = self.paths[number]
            with reading(path), pq.ParquetFile(path, page_checksum_verification=True) as file:
                rows = file.read_row_groups(groups, columns=names, use_threads=False)
                # Files may differ in what else a schema says, such as that nothing is missing.
                tables.append(pa.table([rows.column(name) for name in names], names=names))
        if not tables:
            with pq.ParquetFile(self.paths[0]) as file:
                tables.append(file.schema_arrow.empty_table().select(names))
        table = pa.concat_tables(tables)
        source = f"{self.source} from row {first_row} on" if first_row else self.source
        arrival = self.arrival or ArrivalColumn()
        stream = from_arrow(table, list(self.columns), arrival, source).stream(source)
        stream = in_nanoseconds(stream)
        return Stream(stream.columns, stream.ts, source, missing=stream.missing), first_row

    def arrivals(self, block: int) -> Int64s:
        """Read the arrival times of a block's rows."""
        if self.arrival is None:
            return np.zeros(int(np.diff(self.blocks.first_rows[block : block + 2])[0]), np.int64)
        name = self.arrival.name
        column = self._read_block(block, [name]).column(name)
        return arrow_arrivals(pa, column, name, self.source, self.arrival.unit)

    def rows_of(self, rows: Int64s) -> pa.Table | None:
        """Read the payload of some rows, ascending; None without any column.

        Beside what is returned a row group is held.
        """
        if self.payload is None:
            return None
        tables = [self.payload.empty_table()]
        starts = np.searchsorted(rows, self.blocks.first_rows)
        for block in np.flatnonzero(np.diff(starts)).tolist():
            table = plain_table(self._read_block(block, self.payload.names), self.payload)
            own = rows[starts[block] : starts[block + 1]] - self.blocks.first_rows[block]
            tables.append(table if len(own) == table.num_rows else table.take(pa.array(own)))
        return pa.concat_tables(tables).combine_chunks()

    def _read_block(self, block: int, names: list[str]) -> pa.Table:
        path = self.paths[int(self.blocks.files[block])]
        with reading(path), pq.ParquetFile(path, page_checksum_verification=True) as file:
            group = int(self.blocks.groups[block])
            return file.read_row_group(group, columns=names, use_threads=False).select(names)


def schema_of(path: Path) -> pa.Schema:
    """Return the columns of a Parquet file, or of the first of several.

    Raises
    ------
    InputError
        If there is none or it cannot be read.
    """
    schema: pa.Schema = footer(_files(path)[0]).schema.to_arrow_schema()
    return schema


def open_stream(
    path: Path,
    columns: Sequence[str],
    arrival: ArrivalColumn = DEFAULT_ARRIVAL,
    payload: Sequence[str] = (),
) -> StreamFiles:
    """Read the footers of Parquet files, those of a folder or pattern in order of their names.

    Parameters
    ----------
    path : Path
        The file or folder, or a pattern as ``a/*.parquet``.
    columns, payload : sequence of str
        The join columns, and those that joined rows have.
    arrival : ArrivalColumn, optional
        The arrival column.

    Raises
    ------
    InputError
        If there is none, one cannot be read or lacks a column, types differ, or arrival times go
        back from one row group to the next.
    """
    files = _files(path)
    own: list[list[tuple[int, int, int, int, int]]] = []
    schema: Any = None
    for number, file in enumerate(files):
        with reading(file), pq.ParquetFile(file) as opened:
            fields, meta = opened.schema_arrow, opened.metadata
            name = require_columns(fields.names, [*columns, *payload], arrival, str(file))
            wanted = [fields.field(n) for n in (*columns, *([name] if name else []), *payload)]
            if schema is not None and schema != [(f.name, f.type) for f in wanted]:
                raise InputError(f"{file}: its columns have other types than {files[0]}")
            schema = [(f.name, f.type) for f in wanted]
            own.append(
                [
                    (
                        number,
                        group,
                        rows,
                        *bounds_us(file, opened, group, arrival if name else None),
                    )
                    for group in range(meta.num_row_groups)
                    if (rows := meta.row_group(group).num_rows)
                ]
            )
    blocks = np.array([row for file in own for row in file], dtype=np.int64).reshape(-1, 5)
    back = np.flatnonzero(blocks[1:, 3] < blocks[:-1, 4])
    if back.size:
        block = int(back[0]) + 1
        row = int(blocks[:block, 2].sum())
        column = Clock(arrival.name).column
        raise InputError(
            f"{files[blocks[block, 0]]}: {column} goes back at row {row} of {path}, or in the row "
            f"group that begins or ends there: sort the input by {column}"
        )
    first_rows = np.concatenate([[0], np.cumsum(blocks[:, 2])])
    numbered = Blocks(blocks[:, 0], blocks[:, 1], first_rows, blocks[:, 3], blocks[:, 4])
    if name and len(blocks):
        hint_unit(arrival, dict(schema)[name], blocks[[0, -1], [3, 4]].tolist(), str(path))
    paths = tuple(map(str, files))
    kinds = dict(schema)
    kept = plain_schema(pa.schema([(n, kinds[n]) for n in payload])) if payload else None
    return StreamFiles(str(path), paths, arrival if name else None, tuple(columns), numbered, kept)


def hint_unit(arrival: ArrivalColumn, kind: pa.DataType, ends: Sequence[int], source: str) -> None:
    """Warn if the first and the last arrival, integers, look like another unit."""
    if not arrival.window or not pa.types.is_integer(kind):
        return
    hint = arrival.hint(int(ends[0]), int(ends[1]), source)
    if hint is not None:
        warn_caller(hint)


@contextlib.contextmanager
def reading(path: Path | str) -> Iterator[None]:
    """Report a Parquet file that cannot be read, and why.

    Raises
    ------
    InputError
        Instead of Arrow's and the system's errors.
    """
    try:
        yield
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:160]
        raise InputError(f"{path}: cannot be read as Parquet: {reason}") from None


def footer(path: Path | str) -> Any:
    """Read a file's metadata.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    with reading(path):
        return pq.read_metadata(path)


def _files(path: Path) -> list[Path]:
    """Return the files of a file, of a folder, or of all that matches a pattern, in order."""
    return [file for each in files_of(path) for file in _files_at(each)]


def _files_at(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.exists():
        raise InputError(f"{path}: there is no such file")
    # As strings, not by their components: so Arrow orders a folder, and rows are numbered alike.
    inside = sorted(path.rglob("*"), key=str)
    hidden = ("_", ".")
    shown = [
        file
        for file in inside
        if file.is_file()
        and not any(part.startswith(hidden) for part in file.relative_to(path).parts)
    ]
    if not shown:
        raise InputError(f"{path}: holds no file; it must be a Parquet file or a folder of them")
    return shown


def bounds_us(path: Path, file: Any, group: int, arrival: ArrivalColumn | None) -> tuple[int, int]:
    """Arrival of the first and last row of a row group: from its statistics, else by reading."""
    if arrival is None:
        return 0, 0
    name = arrival.name
    meta = file.metadata.row_group(group)
    index = file.schema_arrow.names.index(name)
    column = meta.column(index)
    kind, bounds = file.schema_arrow.field(name).type, column.statistics
    if (
        column.path_in_schema == name
        and bounds is not None
        and bounds.has_min_max
        and bounds.null_count == 0
        and pa.types.is_int64(kind)
        and arrival.unit in {None, "us"}
    ):
        first, last = bounds.min, bounds.max
        if first >= -MAX_US and last <= MAX_US:
            return int(first), int(last)
    ts = arrow_arrivals(
        pa,
        file.read_row_group(group, columns=[name]).column(name),
        name,
        f"{path}, row group {group}",
        arrival.unit,
    )
    return int(ts.min()), int(ts.max())
