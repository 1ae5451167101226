"""The rows of a stream for looking up, as they were pushed, in a sequence that only grows.

Pushed rows are appended in constant time, and copied together in pieces. A sequence does not change
once it was made, so results can look rows up in it whatever has been pushed since.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.errors import UnavailableError
from streamjoin.inputs.files import arrow
from streamjoin.inputs.payload import written_out
from streamjoin.inputs.sources import Arrays, Later
from streamjoin.inputs.strings import Strings
from streamjoin.tuples import Int64s

if TYPE_CHECKING:
    from streamjoin.live.layout import Layout

PIECE_PARTS = 64
"""Maximum parts that are not copied together."""

PIECE_ROWS = 1 << 13
"""Rows from which parts are copied together."""


def concatenated(arrays: list[Any]) -> Any:
    """Copy arrays, or columns of strings, one behind the other."""
    if len(arrays) == 1:
        return arrays[0]
    if any(isinstance(array, Strings) for array in arrays):
        return Strings.joined(arrays)
    return np.concatenate(arrays)


class Rows(NamedTuple):
    """Rows of NumPy arrays and strings, which become Arrow columns when they are asked for."""

    columns: dict[str, NDArray[Any] | Strings]
    num_rows: int

    @property
    def column_names(self) -> list[str]:
        """The columns."""
        return list(self.columns)

    def slice(self, start: int, rows: int) -> "Rows":
        """Return a part of the rows."""
        stop = start + rows
        return Rows({name: each[start:stop] for name, each in self.columns.items()}, rows)

    def table(self) -> Any:
        """Return the columns as an Arrow table."""
        return arrow().table(
            {
                name: column.table_column() if isinstance(column, Strings) else column
                for name, column in self.columns.items()
            }
        )


def as_table(rows: Any) -> Any:
    """Return rows as an Arrow table."""
    return rows.table() if isinstance(rows, Rows) else rows


def joined_rows(parts: list[Any]) -> Rows | None:
    """Copy rows of mappings together; None if they are not all such rows of the same types."""
    if not all(isinstance(part, Rows) for part in parts):
        return None
    types = {name: column.dtype for name, column in parts[0].columns.items()}
    for part in parts[1:]:
        if part.columns.keys() != types.keys():
            return None
        if any(part.columns[name].dtype != dtype for name, dtype in types.items()):
            return None
    columns = {name: concatenated([part.columns[name] for part in parts]) for name in types}
    return Rows(columns, sum(part.num_rows for part in parts))


def fitted(parts: list[Any], layout: "Layout | None") -> Any:
    """Return rows as one Arrow table of a layout; None where some cannot be looked up."""
    if layout is None or any(part is None for part in parts):
        return None
    pa = arrow()
    if not parts:
        nothing = [pa.nulls(0, kind) for kind in layout.schema.types]
        return pa.Table.from_arrays(nothing, schema=layout.schema)
    return pa.concat_tables([layout.fit(as_table(part)) for part in parts])


class _Piece(NamedTuple):
    end: int
    rows: Any


class Payload(NamedTuple):
    """Rows of a stream by serial number.

    Attributes
    ----------
    first, end : int
        Serial numbers of the first row that is needed and of the next one.
    start : int
        Serial number of the first row that is there.
    pieces : tuple
        Rows that were copied together, and the serial number where each piece ends.
    parts : list, or None
        Rows behind the pieces as they were pushed. Only the first are of this sequence:
        longer ones share the list.
    last_parts, last_rows : int
        Parts of this sequence, and their rows.
    """

    first: int = 0
    end: int = 0
    start: int = 0
    pieces: tuple[_Piece, ...] = ()
    parts: list[Any] | None = None
    last_parts: int = 0
    last_rows: int = 0

    def with_rows(self, table: Any, rows: int, layout: "Layout | None") -> "Payload":
        """Return it with more rows; ``table`` is None where they cannot be looked up."""
        first, end, start, pieces, parts, count, held = self
        if parts is None or len(parts) > count:  # appended by a call that failed
            parts = [] if parts is None else parts[:count]
        parts.append(table)
        count, end, held = count + 1, end + rows, held + rows
        if count < PIECE_PARTS and held < PIECE_ROWS:
            return Payload(first, end, start, pieces, parts, count, held)
        needed = [piece for piece in pieces if piece.end > first]
        gone = len(pieces) - len(needed)
        start = pieces[gone - 1].end if gone else start
        needed.append(_Piece(end, _together(parts, layout)))
        return Payload(first, end, start, _with_larger(needed, start, layout))

    def since(self, first: int) -> "Payload":
        """Return it when rows before one are not needed any more."""
        if first == self.first:
            return self
        return Payload(first, *self[1:])

    def holding(self, rows: Int64s, layout: "Layout | None") -> tuple[Any, Int64s]:
        """Return the parts that hold some rows as an Arrow table, and the rows' indices in it.

        The table is None where some rows cannot be looked up; :data:`NO_ROW` stays.
        """
        parts = [*(piece.rows for piece in self.pieces), *(self.parts or ())[: self.last_parts]]
        if len(parts) < 2 or any(part is None for part in parts):
            return fitted(parts, layout), rows
        lengths = np.array([part.num_rows for part in parts])
        ends = np.cumsum(lengths)
        part_of = np.searchsorted(ends, rows, side="right")
        used = np.unique(part_of)  # for NO_ROW the first
        skipped = (ends - lengths)[used] - (np.cumsum(lengths[used]) - lengths[used])
        shift = np.zeros(len(parts), dtype=np.int64)
        shift[used] = skipped
        indices = np.where(rows < 0, rows, rows - shift[part_of])
        return fitted([parts[index] for index in used], layout), indices


class RowSource(NamedTuple):
    """The rows in which a result's rows are looked up, and the layout that they had then."""

    payload: Payload
    layout: "Layout | None"

    def holding(self, rows: Int64s) -> tuple[Any, Int64s]:
        """As of :class:`Payload`."""
        return self.payload.holding(rows, self.layout)


def _with_larger(pieces: list[_Piece], start: int, layout: "Layout | None") -> tuple[_Piece, ...]:
    """Copy the last pieces together where many are small."""
    firsts = [start, *(piece.end for piece in pieces)]
    small = 0
    while small < len(pieces) and firsts[-small - 1] - firsts[-small - 2] < PIECE_ROWS:
        small += 1
    if small < PIECE_PARTS:
        return tuple(pieces)
    larger = _together([piece.rows for piece in pieces[-small:]], layout)
    return (*pieces[:-small], _Piece(pieces[-1].end, larger))


def _together(parts: list[Any], layout: "Layout | None") -> Any:
    """Copy rows together; strings become Arrow's here, not anew in every result that has some."""
    rows = joined_rows(parts)
    if rows is None and len(parts) == 1:
        return parts[0]
    if rows is not None and not any(isinstance(each, Strings) for each in rows.columns.values()):
        return rows
    table = fitted(parts if rows is None else [rows], layout)
    return rows if table is None else table.combine_chunks()


def _is_shared(data: Any) -> bool:
    """Say whether others may write to what is given: Arrow data and polars' frames are fixed."""
    return type(data).__module__.partition(".")[0] == "pandas"


def own_table(table: Any, data: Any) -> Any:
    """Return the columns of a batch as a table that nobody else writes to; None without Arrow."""
    try:
        if isinstance(table, Arrays):
            table = table.copied()
        elif isinstance(table, Later):
            table = table.select(table.column_names)
        elif _is_shared(data):
            table = _copied(table)
    except UnavailableError:
        return None
    return written_out(table, dictionaries=True)


def _copied(table: Any) -> Any:
    """Return a table of the same values in memory of its own."""
    pa = arrow()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return pa.ipc.open_stream(sink.getvalue()).read_all()
