"""Table of an SQLite database, by ranges of its rowid."""

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from streamjoin.errors import InputError, StoreError
from streamjoin.inputs.files import arrow
from streamjoin.relations.base import (
    KEY_TYPES,
    Columns,
    Partition,
    Projection,
    Store,
    Words,
    key_words,
    packed,
)
from streamjoin.relations.checks import (
    OWN_TABLE,
    check_density,
    check_magic,
    choose_table,
    enough_rows,
    no_positions,
    quoted,
    refuse_column,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

TIMEOUT_S = 2.0


class SqliteStore(Store):
    """A table of an SQLite file; a position is a rowid less one, or a rowid if the lowest is 0.

    A row keeps its position while others are inserted and deleted, the one of rowid 0 apart. The
    types of columns are those of the first row that has a value; every row must hold the same.
    """

    kind: ClassVar[str] = "sqlite"

    def __init__(self, location: Path, projection: Projection, table: str | None = None) -> None:
        self._connection: sqlite3.Connection | None = None
        self._compared: dict[str, str] = {}
        self._first = 1
        super().__init__(location, projection, table)

    def _open(self) -> None:
        check_magic(self.location, b"SQLite format 3\0", 0, "SQLite")
        try:
            self._connection = sqlite3.connect(
                f"{self.location.resolve().as_uri()}?mode=ro",
                uri=True,
                timeout=TIMEOUT_S,
                check_same_thread=False,  # queries run in threads of their own, one at a time
            )
            connection = self._connection
            self._bounded(lambda: self._describe(connection), "looking at its tables and columns")
        except sqlite3.DatabaseError as error:
            self.close()
            raise StoreError(f"{self.location}: {error}") from None
        except BaseException:
            self.close()
            raise

    def _describe(self, connection: sqlite3.Connection) -> None:
        kinds = {
            str(name): str(kind)
            for name, kind in connection.execute(
                "SELECT name, type FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
            )
            if not str(name).startswith("sqlite_")
        }
        self.table = choose_table(self.location, self.table, list(kinds))
        if kinds[self.table] == "view":  # before anything of it runs
            raise no_positions(self.location, self.table)
        self._from = quoted(self.table)
        described = connection.execute(f"PRAGMA table_xinfo({self._from})")
        have = [str(row[1]) for row in described if row[6] != 1]  # generated ones too, not hidden
        self.names = have
        for name in self.projection.names:
            if name not in have:
                raise refuse_column(self.location, name, have)
        names = self.projection.names
        self._check_dense(connection, have)
        listed = ", ".join(map(self._column, names))
        self._query = (
            f"SELECT {self._place}, {listed} FROM {self._from}"
            f" WHERE {self._place} >= ? AND {self._place} < ?"
        )
        key = self.projection.key
        present = f"{self._column(key)} IS NOT NULL" if key is not None else "1"
        one = connection.execute(
            f"SELECT {listed} FROM {self._from} WHERE {present} LIMIT 1"
        ).fetchone()
        values = dict(zip(names, one or [0] * len(names), strict=True))
        for name in self.projection.whole:
            if not isinstance(values[name], int):
                kind = type(values[name]).__name__
                raise InputError(
                    f"{self.location}: column {name!r} is {kind}; it must hold {KEY_TYPES}"
                )
        self.dtype = packed(
            [(name, self._kind(name, values[name])) for name in self.projection.columns]
        )
        compared = self.projection.compared
        self._compared = {name: self._comparable(connection, name) for name in compared}
        passed = self.projection.passed
        self._passed = {name: type(self._value(connection, name)) for name in passed}

    def _column(self, name: str) -> str:
        """Name a column so that a missing one is an error: alone, SQLite reads it as a text."""
        return f"{self._from}.{quoted(name)}"

    def _comparable(self, connection: sqlite3.Connection, name: str) -> str:
        value = self._value(connection, name)
        kinds: dict[type, str] = {int: "int64", float: "float64", str: "object"}
        if type(value) not in kinds:
            raise InputError(
                f"{self.location}: column {name!r} holds {type(value).__name__}; join columns are "
                "numbers or strings"
            )
        return kinds[type(value)]

    def _value(self, connection: sqlite3.Connection, name: str) -> Any:
        """Return a column's first value, which says its type; 0 where it has none."""
        one = connection.execute(
            f"SELECT {self._column(name)} FROM {self._from}"
            f" WHERE {self._column(name)} IS NOT NULL LIMIT 1"
        ).fetchone()
        return one[0] if one else 0

    def _kind(self, name: str, value: object) -> str:
        kinds: dict[type, str] = {int: "int64", float: "float64"}
        if isinstance(value, bytes) and value:
            return f"V{len(value)}"
        if type(value) not in kinds:
            raise InputError(
                f"{self.location}: column {name!r} holds {type(value).__name__}; only numbers and "
                "blobs of one length can be kept: drop it from the projection"
            )
        return kinds[type(value)]

    def _check_dense(self, connection: sqlite3.Connection, have: list[str]) -> None:
        assert self.table is not None
        free = {"rowid", "_rowid_", "oid"} - {name.lower() for name in have}
        if not free:
            raise no_positions(self.location, self.table)
        self._place = min(free)
        lowest, highest = (
            f"(SELECT {which}({self._place}) FROM {self._from})" for which in ("min", "max")
        )
        try:
            lowest_rowid, highest_rowid = connection.execute(
                f"SELECT {lowest}, {highest}"
            ).fetchone()
        except sqlite3.OperationalError as error:
            if "no such column" not in str(error):
                raise
            raise no_positions(self.location, self.table) from None
        if highest_rowid is not None:
            self._first = 0 if lowest_rowid == 0 else 1
            counted = f"SELECT count(*) FROM (SELECT 1 FROM {self._from} LIMIT ?)"
            (rows,) = connection.execute(counted, (enough_rows(highest_rowid),)).fetchone()
            check_density(self.location, rows, lowest_rowid, highest_rowid, self._first)

    @property
    def positions(self) -> int:
        """Positions up to the highest rowid."""
        asked = f"SELECT max({self._place}) FROM {self._from}"
        (highest_rowid,) = self._execute(asked, (), "looking for its last row")[0]
        return 0 if highest_rowid is None else int(highest_rowid) - self._first + 1

    def read(self, first: int, end: int) -> Partition:
        """Select a range of rowids."""
        positions, columns = self._rows(first, end)
        key = self.projection.key
        assert key is not None
        columns[""] = positions
        if None in columns[key]:
            present = [row for row, value in enumerate(columns[key]) if value is not None]
            columns = {
                name: tuple(values[row] for row in present) for name, values in columns.items()
            }
        keys = key_words(self._array(key, columns[key], "int64"))
        row = self.projection.row
        if row is not None:
            numbers = key_words(self._array(row, columns[row], "int64"))
        else:
            numbers = self._numbers(columns[""])
        if not self.dtype.itemsize:
            return Partition(keys, numbers, np.zeros(1, np.uint64))
        kept = np.zeros(len(keys), dtype=self.dtype)
        for name in self.projection.columns:
            kept[name] = self._array(name, columns[name], self.dtype[name])
        return Partition(keys, numbers, kept.view(np.uint64).reshape(-1), 0, self.payload_words)

    def columns(self, first: int, end: int) -> tuple[Words, Columns]:
        """Select a range of rowids."""
        positions, columns = self._rows(first, end)
        values = {name: self._values(name, columns[name]) for name in self._compared}
        return self._named(positions, columns), values

    def looked_up(self, first: int, end: int) -> "tuple[Words, pa.Table]":
        """Select a range of rowids."""
        pa = arrow()
        kinds = {int: pa.int64(), float: pa.float64(), str: pa.large_string()}
        positions, columns = self._rows(first, end)
        arrays = {}
        for name, kind in self._passed.items():
            wrong = next((v for v in columns[name] if v is not None and type(v) is not kind), None)
            if wrong is not None:
                raise self._mixed(name, wrong, kind)
            arrays[name] = pa.array(columns[name], kinds.get(kind, pa.large_binary()))
        return self._named(positions, columns), pa.table(arrays)

    def _named(self, positions: tuple[Any, ...], columns: dict[str, tuple[Any, ...]]) -> Words:
        """Return what results call these rows."""
        row = self.projection.row
        if row is None:
            return self._numbers(positions)
        return key_words(self._array(row, columns[row], "int64"))

    def _mixed(self, name: str, wrong: object, allowed: type) -> InputError:
        return InputError(
            f"{self.location}: column {name!r} holds {wrong!r} where {allowed.__name__} was "
            "expected: every row must hold the same type"
        )

    def _rows(self, first: int, end: int) -> tuple[tuple[Any, ...], dict[str, tuple[Any, ...]]]:
        """Return the rowids, and the columns by name."""
        rowids = (first + self._first, end + self._first)
        rows = self._execute(self._query, rowids, f"reading rows {first} to {end - 1}")
        names = self.projection.names
        positions, *columns = zip(*rows, strict=True) if rows else [()] * (len(names) + 1)
        return positions, dict(zip(names, columns, strict=True))

    def _numbers(self, rowids: tuple[Any, ...]) -> Words:
        return key_words(np.array(rowids, dtype=np.int64) - self._first)

    def _values(self, name: str, values: tuple[Any, ...]) -> tuple[Any, Any]:
        missing = None
        if None in values:
            missing = np.array([value is None for value in values], dtype=np.bool_)
            anything = np.zeros(1, self._compared[name]).astype(object)[0]
            anything = "" if self._compared[name] == "object" else anything
            values = tuple(anything if value is None else value for value in values)
        return self._array(name, values, self._compared[name]), missing

    def _array(self, name: str, values: tuple[Any, ...], kind: Any) -> Any:
        """Values as an array; SQLite lets any row hold any type, so every one is checked."""
        dtype = np.dtype(kind)
        allowed: type = {"i": int, "f": float, "V": bytes, "O": str}[dtype.kind]
        wrong = next((value for value in values if type(value) is not allowed), None)
        if wrong is not None or set(map(type, values)) - {allowed}:
            raise self._mixed(name, wrong, allowed)
        if dtype.kind != "V":
            return np.array(values, dtype=dtype)
        if set(map(len, values)) - {dtype.itemsize}:
            raise InputError(
                f"{self.location}: column {name!r} holds blobs that are not all {dtype.itemsize} "
                "bytes long"
            )
        return np.frombuffer(b"".join(values), dtype=dtype)

    def _execute(self, query: str, parameters: tuple[int, ...], what: str) -> list[Any]:
        connection = self._connection
        if connection is None:
            raise StoreError(f"{self.location}: is closed")
        try:
            return self._bounded(lambda: connection.execute(query, parameters).fetchall(), what)
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{self.location}: {error}") from None

    def interrupt(self) -> None:
        """Interrupt the query that runs."""
        if self._connection is not None:
            self._connection.interrupt()

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @classmethod
    def write(
        cls, location: Path, record_batches: "Iterable[pa.RecordBatch]", schema: "pa.Schema"
    ) -> None:
        """Write a relation as table ``r``."""
        names = ", ".join(quoted(name) for name in schema.names)
        marks = ", ".join("?" for _ in schema.names)
        connection = sqlite3.connect(location)
        try:
            with connection:
                connection.execute(f"CREATE TABLE {OWN_TABLE} ({names})")
                for batch in record_batches:
                    rows = zip(*(column.to_pylist() for column in batch.columns), strict=True)
                    connection.executemany(f"INSERT INTO {OWN_TABLE} VALUES ({marks})", rows)
        finally:
            connection.close()
