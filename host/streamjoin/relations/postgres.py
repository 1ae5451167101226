"""Table of a PostgreSQL server, by ranges of its primary key, over a real connection.

The location is the server's address, ``postgresql://user@host:5432/database``, or a small TOML file
that stands for the relation as a file does elsewhere::

    uri = "postgresql://user@host:5432/database"
    table = "flights"

What libpq takes for granted (``PGUSER``, ``PGPASSWORD``, a password file) counts here too. Rows
arrive as Arrow batches over the server's binary copy, by ADBC.
"""

import json
import os
import threading
import uuid
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from streamjoin.errors import InputError, StoreError, UnavailableError, in_one_line
from streamjoin.inputs.files import arrow
from streamjoin.relations import batches, queries
from streamjoin.relations.base import Projection, Words
from streamjoin.relations.checks import check_density, choose_table, enough_rows, quoted
from streamjoin.relations.server_address import Address, is_address
from streamjoin_common.documents import DocumentError, read_toml
from streamjoin_common.installed.checks import not_installed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa

SERVER = "STREAMJOIN_POSTGRES"
"""Names the server on which relations are written: ``postgresql://localhost/database``."""

POSITION_COLUMN = "streamjoin_place"
"""Primary key of the tables that are written here."""

CONNECT_S = 5
"""Maximum seconds for reaching one host of an address."""

MAX_CONNECT_S = 20
"""Maximum seconds for all of them."""

NO_DRIVER = not_installed("adbc-driver-postgresql", needed_by="a store postgres")


class PostgresStore(batches.SelectingStore):
    """A table with a primary key of integers from 0 on; a position is its value.

    A row keeps its position whatever is updated, and a read sees what was committed when it began.
    Binary columns take the length of the first row's.
    """

    kind: ClassVar[str] = "postgres"

    def __init__(
        self, location: Path | str, projection: Projection, table: str | None = None
    ) -> None:
        if find_spec("adbc_driver_postgresql") is None:
            raise UnavailableError(NO_DRIVER)
        self._connection: Any = None
        self._cursor: Any = None
        self._cancelling = threading.Lock()
        self._server: Address | None = Address.of(str(location)) if is_address(location) else None
        self._from_file = self._server is None
        self._own = False
        shown = self._server.shown if self._server else location
        super().__init__(Path(shown), projection, table)

    @property
    def address(self) -> str:
        """The server's address with its password, or the file that says it."""
        if self._from_file or self._server is None:
            return str(self.location)
        return self._server.text

    def _open(self) -> None:
        if self._from_file:
            self._server, table, self._own = _written(self.location)
            self.table = self.table or table
        assert self._server is not None
        self._connection = _connect(self._server, self.location)
        try:
            self._checked(self._describe, "looking at its tables and columns")
        except BaseException:
            self.close()
            raise

    def _checked(self, query: "Callable[[], Any]", what: str) -> Any:
        """Run a query; what the driver says of a failure is shown without the server's secrets."""
        assert self._server is not None
        try:
            return self._bounded(query, what)
        except _errors() as error:
            raise _failure(error, self._server, self.location) from None

    def _describe(self) -> None:
        pa = arrow()
        self._from = self._found()
        key_columns = self._ask(
            "SELECT a.attname FROM pg_index i JOIN pg_attribute a"
            " ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)"
            f" WHERE i.indisprimary AND i.indrelid = to_regclass({_text(self._from)})"
        ).column(0)
        one = self._ask(f"SELECT * FROM {self._from} LIMIT 1")
        keys = key_columns.to_pylist()
        if len(keys) != 1 or not pa.types.is_integer(one.schema.field(keys[0]).type):
            raise InputError(
                f"{self.location}: table {self.table!r} has no primary key of one integer: type "
                f"ALTER TABLE {self._from} ADD COLUMN {POSITION_COLUMN} bigint GENERATED ALWAYS AS "
                "IDENTITY (MINVALUE 0) PRIMARY KEY"
            )
        self._key = quoted(keys[0])
        schema = batches.fixed_blobs(one.schema, one)
        shown = pa.schema([field for field in schema if field.name != POSITION_COLUMN])
        self.names = list(shown.names)
        self.dtype = batches.layout(shown, self.projection, self.location)
        listed = ", ".join([self._key, *map(quoted, self.projection.names)])
        self._query = f"SELECT {listed} FROM {self._from}"
        extent = self._ask(
            f"SELECT min({self._key})::bigint, max({self._key})::bigint FROM {self._from}"
        )
        lowest, highest = (column[0].as_py() for column in extent.columns)
        if highest is not None:
            first = f"SELECT 1 FROM {self._from} LIMIT {enough_rows(highest + 1)}"
            rows = self._ask(f"SELECT count(*) FROM ({first}) AS counted").column(0)[0].as_py()
            check_density(self.location, rows, lowest, highest, 0)

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
        self.table = choose_table(self.location, self.table, list(known))
        return ".".join(quoted(part) for part in known[self.table] if part)

    @property
    def positions(self) -> int:
        """One more than the highest value of the primary key."""
        query = f"SELECT coalesce(max({self._key}), -1)::bigint FROM {self._from}"
        highest = self._checked(lambda: self._ask(query), "looking for its last row")
        return int(highest.column(0)[0].as_py()) + 1

    def rows(self, first: int, end: int) -> tuple[Any, Words]:
        """Select a range of the primary key."""
        query = (
            f"{self._query} WHERE {self._key} >= {int(first)} AND {self._key} < {int(end)}"
            f" ORDER BY {self._key}"
        )
        table = self._checked(lambda: self._ask(query), f"reading rows {first} to {end - 1}")
        return table.remove_column(0), table.column(0).to_numpy().astype(np.uint64)

    def _ask(self, query: str) -> Any:
        if self._connection is None:
            raise StoreError(f"{self.location}: is closed")
        with self._connection.cursor() as cursor:
            self._cursor = cursor
            try:
                cursor.execute(query)
                return cursor.fetch_arrow_table()
            finally:
                with self._cancelling:  # once it is closed nobody may cancel it
                    self._cursor = None

    def interrupt(self) -> None:
        """Cancel the query that runs."""
        with self._cancelling:
            if self._cursor is not None:
                self._cursor.adbc_cancel()

    def close(self) -> None:
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def discard(self) -> None:
        """Drop the table, if it was written by :meth:`write`."""
        if self._own and self.table is not None and self._server is not None:
            statement = f"DROP TABLE IF EXISTS {quoted(self.table)}"
            _execute(self._server, self.location, lambda cursor: cursor.execute(statement))

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
    def write(
        cls, location: Path, record_batches: "Iterable[pa.RecordBatch]", schema: "pa.Schema"
    ) -> None:
        """Write a relation as a new table of the server that :data:`SERVER` names."""
        reason = cls.unwritable()
        if reason is not None:
            raise UnavailableError(reason)
        server = Path(f"the server that {SERVER} names")
        table = f"streamjoin_{uuid.uuid4().hex}"
        numbered = schema.append(arrow().field(POSITION_COLUMN, arrow().int64()))
        reader = arrow().RecordBatchReader.from_batches(
            numbered, _numbered(record_batches, numbered)
        )

        def write(cursor: Any) -> None:
            cursor.adbc_ingest(table, reader, mode="create")
            cursor.execute(f"ALTER TABLE {quoted(table)} ADD PRIMARY KEY ({POSITION_COLUMN})")
            cursor.execute(f"VACUUM ANALYZE {quoted(table)}")

        _execute(_named_server(), server, write)
        location.write_text(f"table = {json.dumps(table)}\nown = true\n")


def _numbered(
    record_batches: "Iterable[pa.RecordBatch]", schema: "pa.Schema"
) -> "Iterator[pa.RecordBatch]":
    pa = arrow()
    first = 0
    for batch in record_batches:
        positions = pa.array(np.arange(first, first + batch.num_rows))
        yield pa.record_batch([*batch.columns, positions], schema=schema)
        first += batch.num_rows


def _named_server() -> Address:
    """Read the address of the server on which relations are written."""
    try:
        return Address.of(os.environ.get(SERVER, ""))
    except InputError as error:
        raise InputError(f"{SERVER}: {error}") from None


def _written(location: Path) -> tuple[Address, str, bool]:
    """Read where a table is.

    Raises
    ------
    InputError
        If the file is not there or does not say it.
    """
    try:
        said = read_toml(location)
    except OSError:
        raise InputError(f"{location}: there is no such file") from None
    except DocumentError as error:
        raise InputError(f"{location}: does not say where a table is: {error.reason}") from None
    uri, table, own = said.get("uri"), said.get("table"), said.get("own") is True
    if isinstance(table, str) and own and uri is None:  # written here, without the server's secrets
        return _named_server(), table, own
    if not isinstance(uri, str) or not isinstance(table, str):
        raise InputError(f'{location}: must say uri = "postgresql://..." and table = "..."')
    try:
        return Address.of(uri), table, own
    except InputError as error:
        raise InputError(f"{location}: {error}") from None


def _errors() -> tuple[type[Exception], ...]:
    """What the driver raises."""
    import adbc_driver_manager

    return (adbc_driver_manager.Error, arrow().ArrowException)


def _failure(error: Exception, server: Address, location: Path) -> StoreError:
    said = Exception(server.hide(str(error)))  # before it is cut, perhaps within a secret
    return StoreError(f"{location}: {in_one_line(said)}")


def _connect(server: Address, location: Path) -> Any:
    import adbc_driver_postgresql.dbapi

    uri = server.uri(
        connect_timeout=str(CONNECT_S),
        options=f"-c statement_timeout={int(queries.DEADLINE_S * 1000)}",
    )
    try:
        return queries.run_with_deadline(
            lambda: adbc_driver_postgresql.dbapi.connect(uri, autocommit=True),
            None,
            MAX_CONNECT_S,
            f"{location}: connecting",
        )
    except _errors() as error:
        raise _failure(error, server, location) from None


def _execute(server: Address, location: Path, work: "Callable[[Any], Any]") -> None:
    """Do something on a server, over a connection of its own."""
    try:
        with _connect(server, location) as connection, connection.cursor() as cursor:
            queries.run_with_deadline(
                lambda: work(cursor), cursor.adbc_cancel, queries.DEADLINE_S, f"{location}: writing"
            )
    except _errors() as error:
        raise _failure(error, server, location) from None


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
