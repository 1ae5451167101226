"""Arrow IPC file, mapped into memory: the embedded default."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from streamjoin.errors import InputError, StoreError, in_one_line
from streamjoin.inputs.files import arrow
from streamjoin.relations import batches
from streamjoin.relations.base import Columns, Partition, Store, Words

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa


class ArrowStore(Store):
    """An Arrow IPC file; of the kept columns only the pages that are needed are ever read."""

    kind: ClassVar[str] = "arrow"

    def _open(self) -> None:
        pa = arrow()
        try:
            self._source = pa.memory_map(str(self.location))
            self._mapped_bytes = os.fstat(self._source.fileno()).st_size
            self._table: Any = pa.ipc.open_file(self._source).read_all()
        except (OSError, pa.ArrowException) as error:
            reason = in_one_line(error)
            raise InputError(f"{self.location}: cannot be read as Arrow IPC: {reason}") from None
        self.names = list(self._table.schema.names)
        self.dtype = batches.layout(self._table.schema, self.projection, self.location)
        self._table = self._table.select(self.projection.names)

    @property
    def positions(self) -> int:
        """Rows of the file."""
        return int(self._table.num_rows)

    def read(self, first: int, end: int) -> Partition:
        """View the rows; keys and numbers are copied, which reads them from disk here and now."""
        part, numbers = self._part(first, end)
        read = batches.partition(part, self.projection, self.dtype, numbers, self.location)
        return Partition(
            np.array(read.keys), np.array(read.rows), read.payload, read.first, read.stride
        )

    def columns(self, first: int, end: int) -> tuple[Words, Columns]:
        """Copy the rows."""
        part, numbers = self._part(first, end)
        numbers, columns = batches.compared(part, self.projection, numbers, self.location)
        return np.array(numbers), {
            name: (values.copy(), missing) for name, (values, missing) in columns.items()
        }

    def looked_up(self, first: int, end: int) -> "tuple[Words, pa.Table]":
        """View the rows."""
        part, numbers = self._part(first, end)
        return batches.passed(part, self.projection, numbers, self.location)

    def _part(self, first: int, end: int) -> tuple[Any, Words]:
        # What lies behind a file's end cannot be touched: the system would end the process.
        if os.fstat(self._source.fileno()).st_size < self._mapped_bytes:
            raise StoreError(f"{self.location}: has been cut short since it was opened")
        part = self._table.slice(first, end - first)
        return part, batches.consecutive(first, part.num_rows)

    def close(self) -> None:
        """Unmap; what was handed out keeps its own hold."""
        self._table = None
        self._source.close()

    @classmethod
    def write(
        cls, location: Path, record_batches: "Iterable[pa.RecordBatch]", schema: "pa.Schema"
    ) -> None:
        """Write a relation."""
        pa = arrow()
        with pa.OSFile(str(location), "wb") as sink, pa.ipc.new_file(sink, schema) as writer:
            for batch in record_batches:
                writer.write_batch(batch)
