"""Table of a DuckDB database, by ranges of its rowid."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from streamjoin.errors import InputError, StoreError, UnavailableError, in_one_line
from streamjoin.inputs.files import arrow
from streamjoin.relations import batches
from streamjoin.relations.base import Projection, Words
from streamjoin.relations.checks import OWN_TABLE, check_magic, choose_table, no_positions, quoted
from streamjoin_common.installed.checks import not_installed

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa


LOCKED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "threads": "1",
}
"""Settings under which nothing of a database that somebody else made reaches another file."""


class DuckDbStore(batches.SelectingStore):
    """A table of a DuckDB file; a position is a rowid.

    DuckDB locks a file that is open for writing elsewhere: the relation does not change while it
    is joined. Blobs take the length of the first row's. The database reaches no file but its own,
    and no view of it is run.
    """

    kind: ClassVar[str] = "duckdb"

    def __init__(self, location: Path, projection: Projection, table: str | None = None) -> None:
        if not find_spec("duckdb"):
            raise UnavailableError(
                not_installed("duckdb", needed_by="a store duckdb", extra="stores")
            )
        self._connection: Any = None
        super().__init__(location, projection, table)

    def _open(self) -> None:
        import duckdb

        check_magic(self.location, b"DUCK", 8, "DuckDB")
        try:
            self._bounded(self._describe, "looking at its tables and columns")
        except duckdb.Error as error:
            self.close()
            raise StoreError(f"{self.location}: {in_one_line(error)}") from None
        except BaseException:
            self.close()
            raise

    def _describe(self) -> None:
        import duckdb

        self._connection = duckdb.connect(str(self.location), read_only=True, config=LOCKED)
        locked = self._connection.execute("SELECT current_setting('lock_configuration')").fetchone()
        if not locked[0]:  # else a connection to the same file, open in this process, has locked it
            self._connection.execute("SET enable_progress_bar = false")
            self._connection.execute("SET lock_configuration = true")
        kinds = dict(
            self._connection.execute(
                "SELECT table_name, table_type FROM information_schema.tables"
                " WHERE table_schema = current_schema() ORDER BY table_name"
            ).fetchall()
        )
        self.table = choose_table(self.location, self.table, list(kinds))
        if kinds[self.table] != "BASE TABLE":  # before anything of a view runs
            raise no_positions(self.location, self.table)
        self._from = quoted(self.table)
        one = self._table(f"SELECT * FROM {self._from} LIMIT 1")
        self.names = list(one.schema.names)
        if "rowid" in map(str.lower, self.names):
            raise InputError(
                f"{self.location}: table {self.table!r} has a column 'rowid', which hides where "
                "rows lie: rename it"
            )
        schema = batches.fixed_blobs(one.schema, one)
        self.dtype = batches.layout(schema, self.projection, self.location)
        listed = ", ".join(quoted(name) for name in self.projection.names)
        self._query = f"SELECT rowid, {listed} FROM {self._from}"

    def _table(self, query: str) -> Any:
        return self._connection.sql(query).to_arrow_table()

    def _ask(self, query: str, what: str) -> Any:
        import duckdb

        if self._connection is None:
            raise StoreError(f"{self.location}: is closed")
        try:
            return self._bounded(lambda: self._table(query), what)
        except duckdb.Error as error:
            raise StoreError(f"{self.location}: {in_one_line(error)}") from None

    @property
    def positions(self) -> int:
        """One more than the highest rowid."""
        table = self._ask(f"SELECT max(rowid) FROM {self._from}", "looking for its last row")
        highest = table.column(0)[0].as_py()
        return 0 if highest is None else int(highest) + 1

    def rows(self, first: int, end: int) -> tuple[Any, Words]:
        """Select a range of rowids."""
        query = f"{self._query} WHERE rowid >= {int(first)} AND rowid < {int(end)}"
        table = self._ask(query, f"reading rows {first} to {end - 1}")
        return table.remove_column(0), table.column(0).to_numpy().astype(np.uint64)

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
        import duckdb

        pa = arrow()
        connection = duckdb.connect(str(location))
        try:
            connection.execute("SET threads = 1")
            connection.execute("SET enable_progress_bar = false")
            reader = pa.RecordBatchReader.from_batches(schema, record_batches)
            connection.from_arrow(reader).create(OWN_TABLE)
        finally:
            connection.close()
