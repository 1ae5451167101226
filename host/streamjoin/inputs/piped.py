"""A table from standard input: Arrow IPC, as a stream or a file, or CSV; its first bytes tell."""

import io
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, BinaryIO

from streamjoin.errors import InputError, in_one_line
from streamjoin.inputs.csv import read_csv, refuse_other_marks
from streamjoin.inputs.files import STREAM_END, arrow, read_ipc
from streamjoin_common import csv_fields

if TYPE_CHECKING:
    import pyarrow as pa

IPC_STREAM, IPC_FILE, PARQUET = b"\xff\xff\xff\xff", b"ARROW1", b"PAR1"
"""How each format begins."""

MAGIC_BYTES = 6
SOURCE = "standard input"


class _Begun(io.RawIOBase):
    """A stream of which the first bytes have been read already."""

    def __init__(self, first: bytes, rest: BinaryIO) -> None:
        self._first, self._rest, self._last = first, rest, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        taken = self._first[: len(view)] or self._rest.read(len(view))
        self._first = self._first[len(taken) :]
        view[: len(taken)] = taken
        self._last = (self._last + taken)[-len(STREAM_END) :]
        return len(taken)

    @property
    def last(self) -> bytes:
        """The last bytes that were read."""
        return self._last


def read_piped(
    stream: BinaryIO, needed: Callable[[list[str]], list[str]], keys: list[str]
) -> "pa.Table":
    """Read a table from a pipe.

    Parameters
    ----------
    stream : binary file
        It is read to its end.
    needed : callable
        Returns those of the columns that are kept.
    keys : list of str
        Those of them that are compared.

    Raises
    ------
    InputError
        If it is empty, in another format, or damaged.
    """
    pa = arrow()
    first = stream.read(MAGIC_BYTES)
    if not first:
        raise InputError(f"{SOURCE}: is empty: pipe an Arrow IPC stream or CSV into it")
    if first.startswith(PARQUET):
        raise InputError(f"{SOURCE}: is a Parquet file, which cannot be piped: give its path")
    begun = _Begun(first, stream)
    whole = io.BufferedReader(begun)
    table: Any
    try:
        if first.startswith(IPC_STREAM):
            table = _read_stream(pa, whole, needed)
            if whole.read(1):
                raise InputError(f"{SOURCE}: goes on behind its end: pipe one Arrow stream into it")
            if begun.last != STREAM_END:
                raise InputError(
                    f"{SOURCE}: breaks off: whatever wrote it has ended early, or has not closed "
                    "its Arrow stream"
                )
            return table  # type: ignore[no-any-return]  # see arrow()
        if not first.startswith(IPC_FILE):
            read = whole.read()
            lines = pa.py_buffer(read if read[-1:] in csv_fields.LINE_ENDS else read + b"\n")
            opened = partial(pa.BufferReader, lines)
            names = csv_fields.schema(import_module("pyarrow.csv"), opened).names
            refuse_other_marks(names, SOURCE)
            return read_csv(opened, names, _kept(names, needed), keys, SOURCE)
        table = read_ipc(pa.BufferReader(whole.read()), None, None, SOURCE)
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{SOURCE}: cannot be read as Arrow IPC or CSV: {in_one_line(error)}"
        ) from None
    return table.select(_kept(table.column_names, needed))  # type: ignore[no-any-return]  # see arrow()


def _read_stream(pa: Any, whole: Any, needed: Callable[[list[str]], list[str]]) -> "pa.Table":
    """Read batch by batch, so that columns which are not needed are never there together."""
    with pa.ipc.open_stream(whole) as reader:
        names = _kept(reader.schema.names, needed)
        schema = pa.schema([reader.schema.field(name) for name in names], reader.schema.metadata)
        batches = [batch.select(names) for batch in reader]
    for batch in batches:
        batch.validate(full=True)
    return pa.Table.from_batches(batches, schema=schema)  # type: ignore[no-any-return]  # see arrow()


def _kept(names: list[str], needed: Callable[[list[str]], list[str]]) -> list[str]:
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{SOURCE}: the column {twice!r} occurs {names.count(twice)} times")
    kept = set(needed(names))
    return [name for name in names if name in kept]
