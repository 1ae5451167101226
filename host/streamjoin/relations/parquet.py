"""Folder of Parquet files, read a row group at a time."""

from bisect import bisect_right
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from streamjoin.errors import InputError, StoreError, in_one_line
from streamjoin.inputs.files import arrow
from streamjoin.relations import batches
from streamjoin.relations.base import Columns, Partition, Store, Words

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

ROW_GROUP_ROWS = 1 << 16


class ParquetStore(Store):
    """A Parquet file or a folder of them, in the order of their names.

    The last row group that was decoded is kept, so that a scan decodes each once.
    """

    kind: ClassVar[str] = "parquet"

    def _open(self) -> None:
        pa = arrow()
        import pyarrow.parquet as pq

        self._files: list[Any] = []
        self._groups: list[tuple[int, int]] = []
        self._firsts = [0]
        self._decoded: tuple[int, Any] = (-1, None)
        try:
            paths = (
                sorted(self.location.glob("*.parquet"))
                if self.location.is_dir()
                else [self.location]
            )
            for path in paths:
                file = pq.ParquetFile(path)
                self._files.append(file)
                for group in range(file.metadata.num_row_groups):
                    self._groups.append((len(self._files) - 1, group))
                    rows = file.metadata.row_group(group).num_rows
                    self._firsts.append(self._firsts[-1] + rows)
        except (OSError, pa.ArrowException) as error:
            raise InputError(
                f"{self.location}: cannot be read as Parquet: {in_one_line(error)}"
            ) from None
        if not self._files:
            raise InputError(f"{self.location}: holds no file that ends in .parquet")
        self.names = list(self._files[0].schema_arrow.names)
        schemas = [
            batches.needed(file.schema_arrow, self.projection, self.location)
            for file in self._files
        ]
        try:  # numbers of several widths, times of several units, a file without any value
            self._schema = pa.unify_schemas(schemas, promote_options="permissive")
        except pa.ArrowException as error:
            raise InputError(
                f"{self.location}: its files do not go together: {in_one_line(error)}"
            ) from None
        self.dtype = batches.layout(self._schema, self.projection, self.location)

    @property
    def positions(self) -> int:
        """Rows of all files."""
        return self._firsts[-1]

    def read(self, first: int, end: int) -> Partition:
        """Decode the row groups that hold these rows."""
        table, numbers = self._part(first, end)
        return batches.partition(table, self.projection, self.dtype, numbers, self.location)

    def columns(self, first: int, end: int) -> tuple[Words, Columns]:
        """Decode the row groups that hold these rows."""
        table, numbers = self._part(first, end)
        return batches.compared(table, self.projection, numbers, self.location)

    def looked_up(self, first: int, end: int) -> "tuple[Words, pa.Table]":
        """Decode the row groups that hold these rows."""
        table, numbers = self._part(first, end)
        return batches.passed(table, self.projection, numbers, self.location)

    def _part(self, first: int, end: int) -> tuple[Any, Words]:
        pa = arrow()
        pieces, at = [], first
        while at < end:
            group = bisect_right(self._firsts, at) - 1
            upto = min(end, self._firsts[group + 1])
            pieces.append(self._group(group).slice(at - self._firsts[group], upto - at))
            at = upto
        table = pa.concat_tables(pieces) if pieces else self._schema.empty_table()
        return table, batches.consecutive(first, table.num_rows)

    def _group(self, number: int) -> Any:
        pa = arrow()
        if self._decoded[0] != number:
            self._decoded = (-1, None)  # the old one is freed before the new one is read
            file, group = self._groups[number]
            names = self.projection.names
            try:
                table = self._files[file].read_row_group(group, columns=names).select(names)
            except (OSError, pa.ArrowException) as error:
                raise StoreError(f"{self.location}: cannot be read: {in_one_line(error)}") from None
            if table.schema != self._schema:
                try:
                    table = table.cast(self._schema)
                except pa.ArrowException as error:
                    raise InputError(f"{self.location}: {in_one_line(error)}") from None
            self._decoded = (number, table)
        return self._decoded[1]

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()
        self._decoded = (-1, None)

    @classmethod
    def write(
        cls, location: Path, record_batches: "Iterable[pa.RecordBatch]", schema: "pa.Schema"
    ) -> None:
        """Write a relation as a folder of one file."""
        import pyarrow.parquet as pq

        location.mkdir()
        with pq.ParquetWriter(location / "part-0.parquet", schema, use_dictionary=False) as writer:
            for batch in record_batches:
                writer.write_batch(batch, row_group_size=ROW_GROUP_ROWS)
