"""Looking rows up at the end of a join, by row number, in what was given or in a store."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from streamjoin.errors import InputError
from streamjoin.inputs.files import arrow
from streamjoin.inputs.payload import take_rows, takeable, together
from streamjoin.inputs.sources import Arrays, Later
from streamjoin.relations.base import Projection
from streamjoin.relations.stream import RANGE_ROWS, StoredRelation, StoredStream
from streamjoin.tuples import Int64s, Rows, Stream

if TYPE_CHECKING:
    import pyarrow as pa

NEAR_ROWS = 1 << 10
"""Rows between two that are needed which are read with them, rather than by a query of its own."""


class Lookup(Protocol):
    """Rows of one side of a join, by number."""

    @property
    def names(self) -> list[str]:
        """The input's columns."""
        ...

    def fields(self, names: Sequence[str]) -> "list[pa.Field[Any]]":
        """Return the columns' names and types, which all rows that are looked up have."""
        ...

    def declared(self, names: Sequence[str]) -> "list[pa.Field[Any]]":
        """Return names and types before anything is read; dictionaries may be written out later."""
        ...

    def fetched(self, names: Sequence[str], rows: Rows) -> "Lookup":
        """Return what holds these rows in memory."""
        ...

    def take(self, name: str, rows: Rows) -> Any:
        """Return rows of a column as an Arrow array; a row number -1 gives a missing value."""
        ...

    def cells(self, rows: Sequence[int]) -> dict[str, list[Any]]:
        """Return a few rows of the columns that are at hand, for showing them."""
        ...


class InMemory:
    """Rows of what was given: an Arrow table, arrays, files or a dataset.

    A column is prepared when it is first asked for, and kept.
    """

    def __init__(self, table: Any) -> None:
        self._table = table
        self._columns: dict[str, Any] = {}
        self._fields: dict[str, Any] = {}

    @property
    def names(self) -> list[str]:
        """The input's columns."""
        return list(self._table.column_names)

    def fields(self, names: Sequence[str]) -> "list[pa.Field[Any]]":
        """Read and prepare what has not been, all at once."""
        others = [name for name in names if name not in self._columns]
        if others:
            table = self._table.select(others)
            for index, name in enumerate(others):
                column = takeable(table.column(index))
                self._columns[name] = column
                self._fields[name] = table.schema.field(index).with_type(column.type)
        return [self._fields[name] for name in names]

    def declared(self, names: Sequence[str]) -> "list[pa.Field[Any]]":
        """Return what the schema says; arrays have none."""
        if isinstance(self._table, Arrays):
            return self.fields(names)
        try:
            empty = self._table.schema.empty_table()
        except arrow().ArrowNotImplementedError:  # of unions it makes none
            return self.fields(names)
        return InMemory(empty).fields(names)

    def fetched(self, names: Sequence[str], rows: Rows) -> "Lookup":
        """Return itself, ready for so many rows."""
        self.fields(names)
        for name in names:
            self._columns[name] = together(self._columns[name], len(rows))
        return self

    def take(self, name: str, rows: Rows) -> Any:
        """Take rows of a column."""
        self.fields([name])
        return take_rows(self._columns[name], rows)

    def cells(self, rows: Sequence[int]) -> dict[str, list[Any]]:
        """Show what needs neither reading nor conversion."""
        table: Any = self._table.held if isinstance(self._table, Later) else self._table
        if isinstance(table, Arrays):
            return {name: [_cell(table, name, row) for row in rows] for name in table.column_names}
        named = zip(table.column_names, table.columns, strict=True)
        return {
            name: [None if row < 0 else column[row].as_py() for row in rows]
            for name, column in named
        }


def _cell(arrays: Arrays, name: str, row: int) -> Any:
    return None if row < 0 else arrays.cell(name, row)


class InStore:
    """Rows of a relation in a store, which are read there in ranges."""

    def __init__(self, stored: StoredRelation) -> None:
        self._stored = stored
        self._fields: dict[str, Any] = {}
        self._names: list[str] | None = None

    @property
    def names(self) -> list[str]:
        """The relation's columns."""
        if self._names is None:
            store = self._open(self._stored.columns)
            try:
                self._names = list(store.names)
            finally:
                store.close()
        return self._names

    def fields(self, names: Sequence[str]) -> "list[pa.Field[Any]]":
        """Read no rows, which has types as well."""
        if not set(names) <= self._fields.keys():
            store = self._open(names)
            try:
                _, table = store.looked_up(0, 0)
            finally:
                store.close()
            for name in names:
                column = takeable(table.column(name))
                self._fields[name] = table.schema.field(name).with_type(column.type)
        return [self._fields[name] for name in names]

    def declared(self, names: Sequence[str]) -> "list[pa.Field[Any]]":
        """Return the fields."""
        return self.fields(names)

    def fetched(self, names: Sequence[str], rows: Rows) -> "Lookup":
        """Read rows that are needed, each once.

        Raises
        ------
        InputError
            If a row is no longer there.
        """
        needed = np.unique(rows[rows >= 0]).astype(np.int64)
        parts: list[tuple[Int64s, Any]] = []
        if len(names) and len(needed):
            store = self._open(names)
            try:
                parts = [self._part(store, needed, *each) for each in self._ranges(needed)]
            finally:
                store.close()
        numbers = np.concatenate([part[0] for part in parts] or [np.zeros(0, dtype=np.int64)])
        if len(names) and len(numbers) < len(needed):
            gone = np.setdiff1d(needed, numbers)[0]
            raise InputError(
                f"{self._stored.relation.text}: row {gone} is no longer there: join it again"
            )
        pa = arrow()
        empty = pa.schema(self.fields(names)).empty_table() if len(names) else None
        table = pa.concat_tables([part[1] for part in parts]) if parts else empty
        return _Fetched(self, InMemory(table), numbers)

    def take(self, name: str, rows: Rows) -> Any:
        """Read rows of a column."""
        return self.fetched([name], rows).take(name, rows)

    def cells(self, rows: Sequence[int]) -> dict[str, list[Any]]:
        """Read nothing to show it."""
        return {}

    def _open(self, names: Sequence[str]) -> Any:
        relation = self._stored.relation
        return relation.open(Projection(row=relation.row, passed=tuple(names)))

    def _ranges(self, needed: Int64s) -> list[tuple[int, int]]:
        """Return the ranges of positions to read: all where rows are not named by position."""
        if self._stored.relation.row is not None:
            ends = [*range(0, self._stored.positions, RANGE_ROWS), self._stored.positions]
            return list(pairwise(ends))
        apart = (np.diff(needed) > NEAR_ROWS) | (np.diff(needed // RANGE_ROWS) > 0)
        cuts = np.flatnonzero(apart) + 1
        firsts, lasts = needed[[0, *cuts]], needed[[*(cuts - 1), -1]]
        return [(int(first), int(last) + 1) for first, last in zip(firsts, lasts, strict=True)]

    def _part(self, store: Any, needed: Int64s, first: int, end: int) -> tuple[Int64s, Any]:
        """Read a range and keep the rows that are needed."""
        numbers, table = store.looked_up(first, end)
        numbers = numbers.astype(np.int64)
        kept = np.flatnonzero(np.isin(numbers, needed, assume_unique=False))
        pa = arrow()
        columns = [take_rows(takeable(column), kept) for column in table.columns]
        fields = [
            field.with_type(column.type)
            for field, column in zip(table.schema, columns, strict=True)
        ]
        return numbers[kept], pa.Table.from_arrays(columns, schema=pa.schema(fields))


class _Fetched:
    """Rows of a store that were read, by their numbers."""

    def __init__(self, store: InStore, table: InMemory, numbers: Int64s) -> None:
        self._store, self._table = store, table
        self._order = np.argsort(numbers, kind="stable")
        self._numbers = numbers[self._order]

    @property
    def names(self) -> list[str]:
        return self._store.names

    def fields(self, names: Sequence[str]) -> "list[pa.Field[Any]]":
        return self._store.fields(names)

    declared = fields

    def fetched(self, names: Sequence[str], rows: Rows) -> "Lookup":
        return self

    def take(self, name: str, rows: Rows) -> Any:
        if not len(self._numbers):
            return self._table.take(name, rows)
        found = np.searchsorted(self._numbers, rows).clip(max=len(self._numbers) - 1)
        return self._table.take(name, np.where(rows < 0, -1, self._order[found]))

    def cells(self, rows: Sequence[int]) -> dict[str, list[Any]]:
        return self._store.cells(rows)


class NotKept:
    """Rows that are not there: of a live stream of which nothing was pushed.

    The other side's columns can be asked for.
    """

    def __init__(self, source: str) -> None:
        self._source = source

    @property
    def names(self) -> list[str]:
        """Refuse: they are not known.

        Raises
        ------
        InputError
            Always.
        """
        other = "s" if self._source == "r" else "r"
        raise InputError(
            f"{self._source}: no batch was pushed before these pairs, so its columns are not "
            f"known: name {other}.*, or push a batch first, which may have no rows"
        )

    def fields(self, names: Sequence[str]) -> "list[pa.Field[Any]]":
        """Return none."""
        return []

    declared = fields

    def fetched(self, names: Sequence[str], rows: Rows) -> "Lookup":
        """Return itself."""
        return self

    def take(self, name: str, rows: Rows) -> Any:
        """Return missing values."""
        return arrow().nulls(len(rows))

    def cells(self, rows: Sequence[int]) -> dict[str, list[Any]]:
        """Return none."""
        return {}


def lookup(stream: Stream) -> Lookup:
    """Return what gives the rows of a join's input."""
    if isinstance(stream, StoredStream):
        return InStore(stream.store)
    return in_memory(stream.table, stream.source)


def in_memory(table: Any, source: str) -> Lookup:
    """Return what gives the rows of a table, or what says that there is none."""
    return NotKept(source) if table is None else InMemory(table)
