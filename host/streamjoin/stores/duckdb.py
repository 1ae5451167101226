"""Table of a DuckDB database, by ranges of its rowid."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from streamjoin.errors import InputError, StoreError, UnavailableError, in_one_line
from streamjoin.files import arrow
from streamjoin.stores import batches
from streamjoin.stores.base import (
    OWN_TABLE,
    Projection,
    Words,
    check_magic,
    choose_table,
    no_places,
    quoted,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa


class DuckDbStore(batches.SelectingStore):
    """A table of a DuckDB file; a place is a rowid.

    DuckDB locks a file that is open for writing elsewhere: the relation does not change while it
    is joined. Blobs take the length of the first row's.
    """

    kind: ClassVar[str] = "duckdb"

    def __init__(self, place: Path, projection: Projection, table: str | None = None) -> None:
        if not find_spec("duckdb"):
            raise UnavailableError("DuckDB is not installed: type pip install duckdb")
        self._connection: Any = None
        super().__init__(place, projection, table)

    def _open(self) -> None:
        import duckdb

        check_magic(self.place, b"DUCK", 8, "DuckDB")
        try:
            self._describe()
        except duckdb.Error as error:
            self.close()
            raise StoreError(f"{self.place}: {in_one_line(error)}") from None
        except InputError:
            self.close()
            raise

    def _describe(self) -> None:
        import duckdb

        self._connection = duckdb.connect(str(self.place), read_only=True)
        self._connection.execute("SET threads = 1")
        self._connection.execute("SET enable_progress_bar = false")
        have = [str(name) for (name,) in self._connection.execute("SHOW TABLES").fetchall()]
        self.table = choose_table(self.place, self.table, have)
        self._from = quoted(self.table)
        one = self._table(f"SELECT * FROM {self._from} LIMIT 1")
        self.names = list(one.schema.names)
        self._check_places()
        schema = batches.fixed_blobs(one.schema, one)
        self.dtype = batches.layout(schema, self.projection, self.place)
        listed = ", ".join(quoted(name) for name in self.projection.names)
        self._query = f"SELECT rowid, {listed} FROM {self._from}"

    def _check_places(self) -> None:
        import duckdb

        assert self.table is not None
        try:
            self._table(f"SELECT rowid FROM {self._from} LIMIT 0")
        except duckdb.BinderException:
            raise no_places(self.place, self.table) from None
        if "rowid" in map(str.lower, self.names):
            raise InputError(
                f"{self.place}: table {self.table!r} has a column 'rowid', which hides where rows "
                "lie: rename it"
            )

    def _table(self, query: str) -> Any:
        return self._connection.sql(query).to_arrow_table()

    @property
    def places(self) -> int:
        """One more than the highest rowid."""
        ((most,),) = self._connection.execute(f"SELECT max(rowid) FROM {self._from}").fetchall()
        return 0 if most is None else int(most) + 1

    def rows(self, first: int, end: int) -> tuple[Any, Words]:
        """Select a range of rowids."""
        import duckdb

        if self._connection is None:
            raise StoreError(f"{self.place}: is closed")
        try:
            table = self._table(f"{self._query} WHERE rowid >= {int(first)} AND rowid < {int(end)}")
        except duckdb.Error as error:
            raise StoreError(f"{self.place}: {in_one_line(error)}") from None
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
    def write(cls, place: Path, stretches: "Iterable[pa.RecordBatch]", schema: "pa.Schema") -> None:
        """Write a relation as table ``r``."""
        import duckdb

        pa = arrow()
        connection = duckdb.connect(str(place))
        try:
            connection.execute("SET threads = 1")
            connection.execute("SET enable_progress_bar = false")
            reader = pa.RecordBatchReader.from_batches(schema, stretches)
            connection.from_arrow(reader).create(OWN_TABLE)
        finally:
            connection.close()
