"""A table from standard input: Arrow IPC, as a stream or a file, or CSV; its first bytes tell."""

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, BinaryIO

from streamjoin.errors import InputError, in_one_line
from streamjoin.inputs.files import arrow, read_csv, read_ipc

if TYPE_CHECKING:
    import pyarrow as pa

IPC_STREAM, IPC_FILE, PARQUET = b"\xff\xff\xff\xff", b"ARROW1", b"PAR1"
"""How each format begins."""

MAGIC_BYTES = 6
SOURCE = "standard input"


class _Begun(io.RawIOBase):
    """A stream of which the first bytes have been read already."""

    def __init__(self, first: bytes, rest: BinaryIO) -> None:
        self._first, self._rest = first, rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        taken = self._first[: len(view)] or self._rest.read(len(view))
        self._first = self._first[len(taken) :]
        view[: len(taken)] = taken
        return len(taken)


def read_piped(stream: BinaryIO, needed: Callable[[list[str]], list[str]]) -> "pa.Table":
    """Read a table from a pipe.

    Parameters
    ----------
    stream : binary file
        It is read to its end.
    needed : callable
        Returns those of the columns that are kept.

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
    whole = io.BufferedReader(_Begun(first, stream))
    try:
        if first.startswith(IPC_STREAM):
            return _read_stream(pa, whole, needed)
        if first.startswith(IPC_FILE):
            table: Any = read_ipc(pa.BufferReader(whole.read()), None, None, SOURCE)
        else:
            table = read_csv(whole, None, None, None, SOURCE)
    except (pa.ArrowException, OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{SOURCE}: cannot be read as Arrow IPC or CSV: {in_one_line(error)}"
        ) from None
    return _kept(table, needed)  # type: ignore[no-any-return]  # see arrow()


def _read_stream(pa: Any, whole: Any, needed: Callable[[list[str]], list[str]]) -> "pa.Table":
    """Read batch by batch, so that columns which are not needed are never there together."""
    with pa.ipc.open_stream(whole) as reader:
        schema = _kept(reader.schema.empty_table(), needed).schema
        batches = [batch.select(schema.names) for batch in reader]
    for batch in batches:
        batch.validate(full=True)
    return pa.Table.from_batches(batches, schema=schema)  # type: ignore[no-any-return]  # see arrow()


def _kept(table: Any, needed: Callable[[list[str]], list[str]]) -> Any:
    names = table.column_names
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{SOURCE}: the column {twice!r} occurs {names.count(twice)} times")
    kept = set(needed(names))
    return table.select([name for name in names if name in kept])
