"""Table of a PostgreSQL server, by ranges of its primary key, over a real connection.

The place is the server's address, ``postgresql://user@host:5432/database``, or a small TOML file
that stands for the relation as a file does elsewhere::

    uri = "postgresql://user@host:5432/database"
    table = "flights"

What libpq takes for granted (``PGUSER``, ``PGPASSWORD``, a password file) counts here too. Rows
come as Arrow batches over the server's binary copy, by ADBC.
"""

import json
import os
import sys
import uuid
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from streamjoin.errors import InputError, StoreError, UnavailableError, in_one_line
from streamjoin.files import arrow
from streamjoin.stores import batches
from streamjoin.stores.base import (
    MOST_SPARSE,
    Projection,
    Words,
    choose_table,
    quoted,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TypeGuard

    import pyarrow as pa

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SERVER = "STREAMJOIN_POSTGRES"
"""Names the server on which relations are written: ``postgresql://localhost/database``."""

PLACE = "streamjoin_place"
"""Primary key of the tables that are written here."""

CONNECT_S = 5
STATEMENT_S = 60


NO_DRIVER = "ADBC is not installed: type pip install adbc-driver-postgresql"


class PostgresStore(batches.SelectingStore):
    """A table with a primary key of whole numbers from 0 on; a place is its value.

    A row keeps its place whatever is updated, and a read sees what was committed when it began.
    Binary columns take the length of the first row's.
    """

    kind: ClassVar[str] = "postgres"

    def __init__(self, place: Path | str, projection: Projection, table: str | None = None) -> None:
        if find_spec("adbc_driver_postgresql") is None:
            raise UnavailableError(NO_DRIVER)
        self._connection: Any = None
        self._cursor: Any = None
        self._uri = place if is_address(place) else ""
        self._from_file = not is_address(place)
        self._own = False
        super().__init__(Path(without_password(str(place))), projection, table)

    @property
    def address(self) -> str:
        """The server's address, or the file that says it."""
        return str(self.place if self._from_file else self._uri)

    def _open(self) -> None:
        if self._from_file:
            self._uri, table, self._own = _address(self.place)
            self.table = self.table or table
        self._connection = _connect(self._uri, self.place)
        try:
            self._describe()
        except BaseException:
            self.close()
            raise

    def _describe(self) -> None:
        pa = arrow()
        self._from = self._found()
        found = self._ask(
            "SELECT a.attname FROM pg_index i JOIN pg_attribute a"
            " ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)"
            f" WHERE i.indisprimary AND i.indrelid = to_regclass({_text(self._from)})"
        ).column(0)
        one = self._ask(f"SELECT * FROM {self._from} LIMIT 1")
        keys = found.to_pylist()
        if len(keys) != 1 or not pa.types.is_integer(one.schema.field(keys[0]).type):
            raise InputError(
                f"{self.place}: table {self.table!r} has no primary key of one whole number: type "
                f"ALTER TABLE {self._from} ADD COLUMN {PLACE} bigint GENERATED ALWAYS AS "
                "IDENTITY (MINVALUE 0) PRIMARY KEY"
            )
        self._key = quoted(keys[0])
        schema = batches.fixed_blobs(one.schema, one)
        shown = pa.schema([field for field in schema if field.name != PLACE])
        self.names = list(shown.names)
        self.dtype = batches.layout(shown, self.projection, self.place)
        listed = ", ".join([self._key, *map(quoted, self.projection.names)])
        self._query = f"SELECT {listed} FROM {self._from}"
        rows, least, most = self._extent()
        if rows and (least < 0 or most > MOST_SPARSE * (rows + 1)):
            raise InputError(
                f"{self.place}: {rows} rows have places from {least} to {most}; number them from 0"
            )

    def _found(self) -> str:
        """Name the table for SQL: as it is called, or with its schema before a dot."""
        listed = self._ask(
            "SELECT CASE WHEN pg_table_is_visible(c.oid) THEN '' ELSE n.nspname END, c.relname"
            " FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace"
            " WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f')"
            " AND n.nspname NOT IN ('pg_catalog', 'information_schema')"
            " AND n.nspname NOT LIKE 'pg_toast%' ORDER BY 1, 2"
        )
        known = {
            f"{schema}.{name}" if schema else name: (schema, name)
            for schema, name in zip(*(column.to_pylist() for column in listed.columns), strict=True)
        }
        self.table = choose_table(self.place, self.table, list(known))
        return ".".join(quoted(part) for part in known[self.table] if part)

    def _extent(self) -> tuple[int, int, int]:
        table = self._ask(
            f"SELECT count(*), coalesce(min({self._key}), 0)::bigint,"
            f" coalesce(max({self._key}), -1)::bigint FROM {self._from}"
        )
        rows, least, most = (int(column[0].as_py()) for column in table.columns)
        return rows, least, most

    @property
    def places(self) -> int:
        """One more than the highest value of the primary key."""
        most = self._ask(f"SELECT coalesce(max({self._key}), -1)::bigint FROM {self._from}")
        return int(most.column(0)[0].as_py()) + 1

    def rows(self, first: int, end: int) -> tuple[Any, Words]:
        """Select a range of the primary key."""
        table = self._ask(
            f"{self._query} WHERE {self._key} >= {int(first)} AND {self._key} < {int(end)}"
            f" ORDER BY {self._key}"
        )
        return table.remove_column(0), table.column(0).to_numpy().astype(np.uint64)

    def _ask(self, query: str) -> Any:
        if self._connection is None:
            raise StoreError(f"{self.place}: is closed")
        import adbc_driver_manager

        try:
            with self._connection.cursor() as cursor:
                self._cursor = cursor
                cursor.execute(query)
                return cursor.fetch_arrow_table()
        except adbc_driver_manager.Error as error:
            raise StoreError(f"{self.place}: {in_one_line(error)}") from None
        finally:
            self._cursor = None

    def interrupt(self) -> None:
        """Cancel the query that runs."""
        cursor = self._cursor
        if cursor is not None:
            cursor.adbc_cancel()

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def discard(self) -> None:
        """Drop the table, if it was written by :meth:`write`."""
        if self._own and self.table is not None:
            with _connect(self._uri, self.place) as connection, connection.cursor() as cursor:
                cursor.execute(f"DROP TABLE IF EXISTS {quoted(self.table)}")

    @classmethod
    def unwritable(cls) -> str | None:
        """Say so where there is no driver, or no server was named."""
        if find_spec("adbc_driver_postgresql") is None:
            return NO_DRIVER
        if not os.environ.get(SERVER):
            return (
                f"store postgres needs a server: set {SERVER}, as postgresql://localhost/database"
            )
        return None

    @classmethod
    def write(cls, place: Path, stretches: "Iterable[pa.RecordBatch]", schema: "pa.Schema") -> None:
        """Write a relation as a new table of the server that :data:`SERVER` names."""
        reason = cls.unwritable()
        if reason is not None:
            raise UnavailableError(reason)
        import adbc_driver_manager

        pa = arrow()
        uri = os.environ[SERVER]
        table = f"streamjoin_{uuid.uuid4().hex}"
        server = Path(f"the server that {SERVER} names")
        numbered = schema.append(pa.field(PLACE, pa.int64()))
        reader = pa.RecordBatchReader.from_batches(numbered, _numbered(stretches, numbered))
        try:
            with _connect(uri, server) as connection, connection.cursor() as cursor:
                cursor.adbc_ingest(table, reader, mode="create")
                cursor.execute(f"ALTER TABLE {quoted(table)} ADD PRIMARY KEY ({PLACE})")
                cursor.execute(f"VACUUM ANALYZE {quoted(table)}")
        except adbc_driver_manager.Error as error:
            raise StoreError(f"{server}: {in_one_line(error)}") from None
        place.write_text(f"uri = {json.dumps(uri)}\ntable = {json.dumps(table)}\nown = true\n")


def _numbered(
    stretches: "Iterable[pa.RecordBatch]", schema: "pa.Schema"
) -> "Iterator[pa.RecordBatch]":
    pa = arrow()
    first = 0
    for stretch in stretches:
        places = pa.array(np.arange(first, first + stretch.num_rows))
        yield pa.record_batch([*stretch.columns, places], schema=schema)
        first += stretch.num_rows


def is_address(place: object) -> "TypeGuard[str]":
    """Whether a text is a server's address rather than a file."""
    return isinstance(place, str) and place.startswith(("postgresql://", "postgres://"))


def without_password(place: str) -> str:
    """Say of an address only what may be shown: host, port, database."""
    if not is_address(place):
        return place
    after_user = place.partition("://")[2].rpartition("@")[2].partition("?")[0]
    return after_user if after_user[:1] not in {"", "/"} else f"localhost{after_user}"


def _address(place: Path) -> tuple[str, str, bool]:
    """Read where a table is.

    Raises
    ------
    InputError
        If the file is not there or does not say it.
    """
    try:
        said = tomllib.loads(place.read_text())
    except OSError:
        raise InputError(f"{place}: there is no such file") from None
    except ValueError as error:
        raise InputError(f"{place}: does not say where a table is: {error}") from None
    uri, table = said.get("uri"), said.get("table")
    if not isinstance(uri, str) or not isinstance(table, str):
        raise InputError(f'{place}: must say uri = "postgresql://..." and table = "..."')
    return uri, table, said.get("own") is True


def _connect(uri: str, place: Path) -> Any:
    import adbc_driver_manager
    import adbc_driver_postgresql.dbapi

    mark = "&" if "?" in uri else "?"
    limits = f"connect_timeout={CONNECT_S}&options=-c%20statement_timeout%3D{STATEMENT_S * 1000}"
    try:
        return adbc_driver_postgresql.dbapi.connect(f"{uri}{mark}{limits}", autocommit=True)
    except adbc_driver_manager.Error as error:
        raise StoreError(f"{place}: {in_one_line(error)}") from None


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
