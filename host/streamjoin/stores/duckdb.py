"""Table of a DuckDB database, by ranges of its rowid."""

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from streamjoin.errors import InputError, StoreError, UnavailableError
from streamjoin.files import arrow
from streamjoin.stores import batches
from streamjoin.stores.base import Partition, Projection, Store

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

TABLE = "r"


class DuckDbStore(Store):
    """The table ``r`` of a DuckDB file; a place is a rowid.

    DuckDB locks a file that is open for writing elsewhere: the relation does not change while it
    is joined. Blobs take the length of the first row's.
    """

    kind: ClassVar[str] = "duckdb"

    def __init__(self, place: Path, projection: Projection) -> None:
        if not find_spec("duckdb"):
            raise UnavailableError("DuckDB is not installed: type pip install duckdb")
        self._connection: Any = None
        super().__init__(place, projection)

    def _open(self) -> None:
        import duckdb

        pa = arrow()
        if not self.place.is_file():
            raise InputError(f"{self.place}: there is no such file")
        try:
            self._connection = duckdb.connect(str(self.place), read_only=True)
            self._connection.execute("SET threads = 1")
            self._connection.execute("SET enable_progress_bar = false")
            tables = {name for (name,) in self._connection.execute("SHOW TABLES").fetchall()}
            if TABLE not in tables:
                raise InputError(f"{self.place}: there is no table {TABLE!r}")
            schema = self._table(f"SELECT * FROM {TABLE} LIMIT 1").schema
            one = self._table(f"SELECT * FROM {TABLE} LIMIT 1")
        except duckdb.Error as error:
            raise StoreError(f"{self.place}: {' '.join(str(error).split())[:160]}") from None
        for place, field in enumerate(schema):
            if pa.types.is_binary(field.type) and one.num_rows:
                width = len(one.column(place)[0].as_py() or b"")
                schema = schema.set(place, pa.field(field.name, pa.binary(width)))
        self.dtype = batches.layout(schema, self.projection, self.place)
        listed = ", ".join(_quoted(name) for name in self.projection.names)
        self._query = f"SELECT rowid, {listed} FROM {TABLE} WHERE rowid >= {{}} AND rowid < {{}}"

    def _table(self, query: str) -> Any:
        return self._connection.sql(query).to_arrow_table()

    @property
    def places(self) -> int:
        """One more than the highest rowid."""
        ((most,),) = self._connection.execute(f"SELECT max(rowid) FROM {TABLE}").fetchall()
        return 0 if most is None else int(most) + 1

    def read(self, first: int, end: int) -> Partition:
        """Select a range of rowids."""
        import duckdb

        if self._connection is None:
            raise StoreError(f"{self.place}: is closed")
        try:
            table = self._table(self._query.format(int(first), int(end)))
        except duckdb.Error as error:
            raise StoreError(f"{self.place}: {' '.join(str(error).split())[:160]}") from None
        try:
            numbers = table.column(0).to_numpy().astype(np.uint64)
            return batches.partition(
                table.remove_column(0), self.projection, self.dtype, numbers, self.place
            )
        except arrow().ArrowException as error:
            raise InputError(f"{self.place}: {error}") from None

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
            connection.from_arrow(reader).create(TABLE)
        finally:
            connection.close()


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
