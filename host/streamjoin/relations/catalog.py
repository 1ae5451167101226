"""Every store by its kind; modules are imported when a kind is asked for."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from streamjoin.errors import InputError
from streamjoin.inputs.files import arrow
from streamjoin.relations.base import WORD_BYTES, Projection, Store, Words
from streamjoin_common.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

_CLASSES = {
    "arrow": "arrow:ArrowStore",
    "parquet": "parquet:ParquetStore",
    "raw": "raw:RawStore",
    "sqlite": "sqlite:SqliteStore",
    "duckdb": "duckdb:DuckDbStore",
    "postgres": "postgres:PostgresStore",
}
KINDS = tuple(_CLASSES)
SUFFIXES = {
    "arrow": ".arrow",
    "parquet": "",
    "raw": ".raw",
    "sqlite": ".sqlite",
    "duckdb": ".db",
    "postgres": ".toml",
}
OWN = Projection(key="key", row="row", columns=("payload",))
"""Of the relations that :func:`write_store` makes."""

RANGE_ROWS = 1 << 16
MAX_FILLER_WORDS = 1 << 22
"""Maximum 64-bit words of filler that are in memory at once."""

MIN_ROW_BYTES = 2 * WORD_BYTES
"""Minimum bytes of a row: its key and its number."""


def store_class(kind: str) -> Any:
    """Return a kind's class.

    Raises
    ------
    InputError
        If there is none.
    """
    if kind not in _CLASSES:
        near = did_you_mean(kind, KINDS)
        raise InputError(f"there is no store {kind!r}; choose one of {', '.join(KINDS)}{near}")
    module, _, name = _CLASSES[kind].partition(":")
    return getattr(import_module(f"streamjoin.relations.{module}"), name)


def open_store(
    kind: str, location: Path | str, projection: Projection, table: str | None = None
) -> Store:
    """Open a relation.

    Parameters
    ----------
    kind : str
        One of :data:`KINDS`.
    location : Path or str
        File or folder; for PostgreSQL the server's address, or the file that says it.
    projection : Projection
        What is read of it.
    table : str, optional
        Of a database; where it holds only one, that one.

    Raises
    ------
    InputError
        If it cannot be opened, or lacks what the projection names.
    """
    store: Store = store_class(kind)(location, projection, table)
    return store


def write_store(
    kind: str, folder: Path, keys: Words, row_bytes: int, kept_bytes: int | None = None
) -> Store:
    """Write keys as a relation of a width, in their order, and open it.

    Parameters
    ----------
    kind : str
        One of :data:`KINDS`.
    folder : Path
        Receives it.
    keys : ndarray of uint64
        The join column.
    row_bytes : int
        Bytes of a row: key and row number take 16, filler the rest, rounded up to whole words. The
        filler cannot be compressed, and begins with the row's number.
    kept_bytes : int or None
        Bytes of a row that the store is opened with, the others are a column that is not read
        (SSBJ, section 5, projection); None keeps all.
    """
    words = _filler_words(row_bytes)
    kept = words if kept_bytes is None else min(words, _filler_words(kept_bytes))
    location = folder / f"r{SUFFIXES[kind]}"
    pa = arrow()
    fields = [("key", pa.int64()), ("row", pa.int64())]
    for name, width in (("payload", kept), ("left_out", words - kept)):
        if width:
            fields.append((name, pa.binary(width * WORD_BYTES)))
    schema = pa.schema(fields)
    store_class(kind).write(location, _record_batches(keys, schema), schema)
    own = OWN if kept else Projection(key="key", row="row")
    return open_store(kind, location, own)


def _filler_words(row_bytes: int) -> int:
    return max(0, -(-(row_bytes - MIN_ROW_BYTES) // WORD_BYTES))


def _record_batches(keys: Words, schema: "pa.Schema") -> "Iterator[pa.RecordBatch]":
    pa = arrow()
    fillers = [field.type for field in list(schema)[2:]]
    words = sum(each.byte_width for each in fillers) // WORD_BYTES
    # A row's columns are copied once more: wide rows go a few at a time.
    rows = min(RANGE_ROWS, len(keys), max(1, MAX_FILLER_WORDS // max(1, words)))
    noise = np.random.default_rng(len(keys)).integers(0, 1 << 64, (rows, words), dtype=np.uint64)
    for first in range(0, len(keys), max(1, rows)):
        piece = keys[first : first + rows].view(np.int64)
        columns = [pa.array(piece), pa.array(np.arange(first, first + len(piece)))]
        if words:
            noise[: len(piece), 0] = np.arange(first, first + len(piece))
        behind = 0
        for each in fillers:
            begin, behind = behind, behind + each.byte_width // WORD_BYTES
            data = pa.py_buffer(noise[: len(piece), begin:behind].tobytes())
            columns.append(pa.Array.from_buffers(each, len(piece), [None, data]))
        yield pa.record_batch(columns, schema=schema)
