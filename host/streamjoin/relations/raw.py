"""File of packed rows of one width, read past the page cache (O_DIRECT) where the system can.

Beside the file, its name with ``.json``: the columns in their order, ``[[name, type], ...]`` with
NumPy's names of types, packed without gaps.
"""

import json
import mmap
import os
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from streamjoin.errors import InputError, StoreError
from streamjoin.inputs.columns import nanoseconds, numpy_column
from streamjoin.inputs.sources import Arrays
from streamjoin.relations.base import (
    KEY_TYPES,
    WORD_BYTES,
    Columns,
    Partition,
    Store,
    Words,
    key_words,
    packed,
)
from streamjoin.relations.checks import refuse_column
from streamjoin_common.documents import read_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

SECTOR_BYTES = 4096
"""What offsets, lengths and addresses of direct reads must be multiples of."""

MAX_ROW_BYTES = 1 << 30
"""Maximum bytes of a row in a raw file."""

MAX_SPARE_BUFFERS = 4
"""Maximum buffers kept for further reads: a new one costs a page fault for every 4 KiB."""


class RawStore(Store):
    """A file of packed rows.

    Attributes
    ----------
    direct : bool
        Whether reads bypass the page cache; where the file system refuses that, what was read is
        dropped from the cache.
    """

    kind: ClassVar[str] = "raw"

    def _open(self) -> None:
        self._file = -1
        self._spare: list[mmap.mmap] = []
        description = Path(f"{self.location}.json")
        try:
            fields = [(str(name), str(kind)) for name, kind in read_json(description)]
            self._row = np.dtype(fields)
            if self._row.hasobject or not 0 < self._row.itemsize <= MAX_ROW_BYTES:
                raise ValueError(f"a row takes 1 to {MAX_ROW_BYTES} bytes, none of them an object")
        except (OSError, ValueError, TypeError, SyntaxError) as error:  # NumPy evaluates types
            raise InputError(
                f"{description}: does not describe the columns: {error}; it must hold them as in "
                '[["id", "int64"], ["year", "int32"]]'
            ) from None
        self.names = list(self._row.names or ())
        for name in self.projection.names:
            if name not in (self._row.names or ()):
                raise refuse_column(self.location, name, list(self._row.names or ()))
        for name in self.projection.whole:
            if self._row[name].kind not in "iu":
                kind = self._row[name]
                raise InputError(
                    f"{self.location}: column {name!r} is {kind}; it must hold {KEY_TYPES}"
                )
        self.dtype = packed([(name, self._row[name]) for name in self.projection.columns])
        flags = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)
        try:
            try:
                self._file = os.open(self.location, flags | getattr(os, "O_DIRECT", 0))
                self.direct = hasattr(os, "O_DIRECT")
                os.preadv(self._file, [mmap.mmap(-1, SECTOR_BYTES)], 0)
            except OSError:  # a file system in memory has no direct reads
                self._close_file()
                self._file = os.open(self.location, flags)
                self.direct = False
        except OSError as error:
            raise InputError(f"{self.location}: cannot be read: {error.strerror}") from None

    @property
    def positions(self) -> int:
        """Whole rows of the file."""
        return os.fstat(self._file).st_size // self._row.itemsize

    @property
    def read_bytes(self) -> int:
        """Whole rows are read, whatever is kept of them."""
        return max(self.row_bytes, self._row.itemsize)

    def read(self, first: int, end: int) -> Partition:
        """Read the rows, with one system call where the system allows."""
        whole, rows, numbers = self._rows(first, end)
        begin = rows.ctypes.data - whole.ctypes.data
        assert self.projection.key is not None
        keys = key_words(rows[self.projection.key])
        as_it_lies = self._as_it_lies(whole, begin)
        if as_it_lies is not None:
            return Partition(keys, numbers, *as_it_lies)
        kept = np.zeros(len(rows), dtype=self.dtype)
        for name in self.projection.columns:
            kept[name] = rows[name]
        words = kept.view(np.uint64).reshape(-1) if self.dtype.itemsize else np.zeros(1, np.uint64)
        return Partition(keys, numbers, words, 0, self.payload_words)

    def columns(self, first: int, end: int) -> tuple[Words, Columns]:
        """Read the rows; strings of a fixed width end before their first zero."""
        _, rows, numbers = self._rows(first, end)
        source = str(self.location)
        columns = {
            name: numpy_column(rows[name], name, source) for name in self.projection.compared
        }
        for name, (values, missing) in columns.items():
            if values.dtype.kind in "mM":
                columns[name] = (nanoseconds(np.asarray(values), name, source), missing)
        return numbers, columns

    def looked_up(self, first: int, end: int) -> "tuple[Words, pa.Table]":
        """Copy the rows."""
        _, rows, numbers = self._rows(first, end)
        fields = {name: np.array(rows[name]) for name in self.projection.passed}
        return numbers, Arrays(fields, str(self.location)).select(list(fields))

    def _rows(self, first: int, end: int) -> tuple[NDArray[np.uint8], Any, Words]:
        """Return the bytes that were read, the rows in them, and their numbers."""
        width = self._row.itemsize
        low, high = first * width, end * width
        start = low // SECTOR_BYTES * SECTOR_BYTES
        length = -(-(high - start) // SECTOR_BYTES) * SECTOR_BYTES
        memory = self._memory(max(length, SECTOR_BYTES))
        done = 0
        while done < high - start:
            got = os.preadv(self._file, [memoryview(memory)[done:length]], start + done)
            done += got
            if got == 0 or (got % SECTOR_BYTES and done < high - start):
                raise StoreError(f"{self.location}: ends before row {end - 1}")
        if not self.direct:
            os.posix_fadvise(self._file, start, length, os.POSIX_FADV_DONTNEED)
        whole = np.frombuffer(memory, dtype=np.uint8)  # the base of all that is made of it
        weakref.finalize(whole, _give_back, self._spare, memory).atexit = False
        rows = whole[low - start : high - start].view(self._row)
        numbers = np.arange(first, end, dtype=np.uint64)
        if self.projection.row is not None:
            numbers = key_words(rows[self.projection.row])
        return whole, rows, numbers

    def _memory(self, length: int) -> mmap.mmap:
        """Return memory that begins at a page."""
        while self._spare:
            memory = self._spare.pop()
            if len(memory) >= length:
                return memory
        return mmap.mmap(-1, length)

    def _as_it_lies(self, whole: NDArray[np.uint8], begin: int) -> tuple[Any, int, int] | None:
        """Return the payload within the rows where that is whole words in one piece."""
        fields, columns = self._row.fields, self.projection.columns
        if not columns or not fields or self._row.itemsize % WORD_BYTES:
            return None
        at = fields[columns[0]][1]
        behind = at
        for name in columns:
            if fields[name][1] != behind:
                return None
            behind += fields[name][0].itemsize
        if (begin + at) % WORD_BYTES or behind - at != self.dtype.itemsize:
            return None
        words = whole.view(np.uint64)
        return words, (begin + at) // WORD_BYTES, self._row.itemsize // WORD_BYTES

    def close(self) -> None:
        """Close the file."""
        self._close_file()

    def _close_file(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    @classmethod
    def write(
        cls, location: Path, record_batches: "Iterable[pa.RecordBatch]", schema: "pa.Schema"
    ) -> None:
        """Write a relation of numbers and fixed binaries."""
        fields: list[tuple[str, Any]] = []
        for field in schema:
            wide = getattr(field.type, "byte_width", None)
            opaque = str(field.type).startswith("fixed_size_binary")
            kind = f"V{wide}" if opaque else np.dtype(field.type.to_pandas_dtype()).str
            fields.append((field.name, kind))
        Path(f"{location}.json").write_text(json.dumps(fields))
        with location.open("wb") as sink:
            for batch in record_batches:
                rows = np.empty(batch.num_rows, dtype=np.dtype(fields))
                for name, kind in fields:
                    column: Any = batch.column(name)
                    rows[name] = (
                        np.frombuffer(column.buffers()[1], dtype=kind)[: len(column)]
                        if kind.startswith("V")
                        else column.to_numpy()
                    )
                sink.write(rows.tobytes())


def _give_back(spare: list[mmap.mmap], memory: mmap.mmap) -> None:
    """Keep a buffer that nothing refers to any more."""
    if len(spare) < MAX_SPARE_BUFFERS:
        spare.append(memory)
