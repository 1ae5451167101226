"""Table of an SQLite database, by ranges of its rowid."""

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from streamjoin.errors import InputError, StoreError
from streamjoin.stores.base import (
    KEY_TYPES,
    MOST_SPARSE,
    Partition,
    Projection,
    Store,
    key_words,
    packed,
    refuse_column,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

TABLE = "r"
TIMEOUT_S = 5.0


class SqliteStore(Store):
    """The table ``r`` of an SQLite file; a place is a rowid.

    A row keeps its place while others come and go. The types of the kept columns are those of the
    first row; every row must hold the same.
    """

    kind: ClassVar[str] = "sqlite"

    def __init__(self, place: Path, projection: Projection) -> None:
        self._connection: sqlite3.Connection | None = None
        super().__init__(place, projection)

    def _open(self) -> None:
        if not self.place.is_file():
            raise InputError(f"{self.place}: there is no such file")
        try:
            self._connection = sqlite3.connect(
                f"{self.place.resolve().as_uri()}?mode=ro",
                uri=True,
                timeout=TIMEOUT_S,
                check_same_thread=False,  # one thread reads at a time, not the one that opened
            )
            self._describe(self._connection)
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{self.place}: {error}") from None

    def _describe(self, connection: sqlite3.Connection) -> None:
        have = [str(row[1]) for row in connection.execute(f"PRAGMA table_info({TABLE})")]
        if not have:
            raise InputError(f"{self.place}: there is no table {TABLE!r}")
        for name in self.projection.names:
            if name not in have:
                raise refuse_column(self.place, name, have)
        names = self.projection.names
        listed = ", ".join(_column(name) for name in names)
        self._query = f"SELECT rowid, {listed} FROM {TABLE} WHERE rowid > ? AND rowid <= ?"
        key = _column(self.projection.key)
        one = connection.execute(
            f"SELECT {listed} FROM {TABLE} WHERE {key} IS NOT NULL LIMIT 1"
        ).fetchone()
        values = dict(zip(names, one or [0] * len(names), strict=True))
        for name in filter(None, (self.projection.key, self.projection.row)):
            if not isinstance(values[name], int):
                kind = type(values[name]).__name__
                raise InputError(
                    f"{self.place}: column {name!r} is {kind}; it must hold {KEY_TYPES}"
                )
        self.dtype = packed(
            [(name, self._kind(name, values[name])) for name in self.projection.columns]
        )
        self._check_dense(connection)

    def _kind(self, name: str, value: object) -> str:
        kinds: dict[type, str] = {int: "int64", float: "float64"}
        if isinstance(value, bytes) and value:
            return f"V{len(value)}"
        if type(value) not in kinds:
            raise InputError(
                f"{self.place}: column {name!r} holds {type(value).__name__}; only numbers and "
                "blobs of one length can be kept: leave it out of the projection"
            )
        return kinds[type(value)]

    def _check_dense(self, connection: sqlite3.Connection) -> None:
        rows, least, most = connection.execute(
            f"SELECT count(*), min(rowid), max(rowid) FROM {TABLE}"
        ).fetchone()
        if rows and (least < 1 or most > MOST_SPARSE * rows + MOST_SPARSE):
            raise InputError(
                f"{self.place}: {rows} rows have rowids from {least} to {most}; number them from "
                "1, as CREATE TABLE ... AS SELECT does"
            )

    @property
    def places(self) -> int:
        """The highest rowid."""
        (most,) = self._execute(f"SELECT max(rowid) FROM {TABLE}", ())[0]
        return int(most or 0)

    def read(self, first: int, end: int) -> Partition:
        """Select a range of rowids."""
        found = self._execute(self._query, (first, end))
        columns = dict(
            zip(
                ("", *self.projection.names),
                zip(*found, strict=True) if found else [()] * (len(self.projection.names) + 1),
                strict=True,
            )
        )
        key = self.projection.key
        if None in columns[key]:
            present = [place for place, value in enumerate(columns[key]) if value is not None]
            columns = {
                name: tuple(values[place] for place in present) for name, values in columns.items()
            }
        keys = key_words(self._array(key, columns[key], "int64"))
        row = self.projection.row
        if row is not None:
            numbers = key_words(self._array(row, columns[row], "int64"))
        else:
            numbers = key_words(np.array(columns[""], dtype=np.int64) - 1)
        if not self.dtype.itemsize:
            return Partition(keys, numbers, np.zeros(1, np.uint64))
        kept = np.zeros(len(keys), dtype=self.dtype)
        for name in self.projection.columns:
            kept[name] = self._array(name, columns[name], self.dtype[name])
        return Partition(keys, numbers, kept.view(np.uint64).reshape(-1), 0, self.payload_words)

    def _array(self, name: str, values: tuple[Any, ...], kind: Any) -> Any:
        """Values as an array; SQLite lets any row hold any type, so every one is checked."""
        dtype = np.dtype(kind)
        allowed: type = {"i": int, "f": float, "V": bytes}[dtype.kind]
        wrong = next((value for value in values if type(value) is not allowed), None)
        if wrong is not None or set(map(type, values)) - {allowed}:
            raise InputError(
                f"{self.place}: column {name!r} holds {wrong!r} where {allowed.__name__} was "
                "expected: every row must hold the same type"
            )
        if dtype.kind != "V":
            return np.array(values, dtype=dtype)
        if set(map(len, values)) - {dtype.itemsize}:
            raise InputError(
                f"{self.place}: column {name!r} holds blobs that are not all {dtype.itemsize} "
                "bytes long"
            )
        return np.frombuffer(b"".join(values), dtype=dtype)

    def _execute(self, query: str, parameters: tuple[int, ...]) -> list[Any]:
        if self._connection is None:
            raise StoreError(f"{self.place}: is closed")
        try:
            return self._connection.execute(query, parameters).fetchall()
        except sqlite3.DatabaseError as error:
            raise StoreError(f"{self.place}: {error}") from None

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
    def write(cls, place: Path, stretches: "Iterable[pa.RecordBatch]", schema: "pa.Schema") -> None:
        """Write a relation as table ``r``."""
        names = ", ".join(_quoted(name) for name in schema.names)
        marks = ", ".join("?" for _ in schema.names)
        connection = sqlite3.connect(place)
        try:
            with connection:
                connection.execute(f"CREATE TABLE {TABLE} ({names})")
                for stretch in stretches:
                    rows = zip(*(column.to_pylist() for column in stretch.columns), strict=True)
                    connection.executemany(f"INSERT INTO {TABLE} VALUES ({marks})", rows)
        finally:
            connection.close()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _column(name: str) -> str:
    """Name a column so that one that is not there is an error: alone, SQLite reads it as a text."""
    return f"{TABLE}.{_quoted(name)}"
