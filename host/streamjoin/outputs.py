"""Writing a result to a file, in several formats."""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamjoin.errors import InputError, in_one_line
from streamjoin.inputs.files import arrow
from streamjoin_common import storage

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES = (".parquet", ".arrow", ".csv")
STREAMED = ("arrow", "csv")
"""Formats that go to standard output."""


def check_target(path: Path, suffixes: tuple[str, ...], flag: str) -> None:
    """Refuse an output path before anything is computed; folders that are missing are made.

    Raises
    ------
    InputError
        If it is a folder, or its suffix is not one of ``suffixes``.
    StorageError
        If it cannot be written.
    """
    if path.suffix.lower() not in suffixes:
        raise InputError(f"{flag} {path}: must end in {' or '.join(suffixes)}")
    if path.is_dir():
        raise InputError(f"{flag} {path}: is a folder")
    storage.check_writable(path)


def write(reader: "pa.RecordBatchReader", sink: Any, suffix: str) -> None:
    """Write record batches, one in memory at a time, in the format that a suffix names.

    Parameters
    ----------
    reader : pyarrow.RecordBatchReader
        The batches.
    sink : Path or file object
        Where they go; Arrow goes to a file object as a stream, which can be read as it grows.
    suffix : str
        ``".parquet"``, ``".arrow"`` or ``".csv"``.

    Raises
    ------
    InputError
        If the format holds no column of some type.
    """
    pa = arrow()
    try:
        with _writer(pa, reader.schema, sink, suffix) as writer:
            for batch in reader:
                writer.write(batch) if suffix != ".parquet" else writer.write_batch(batch)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
        others = " or ".join(each for each in SUFFIXES if each != suffix)
        raise InputError(
            f"{suffix} cannot hold these columns ({in_one_line(error)}): choose {others}, or other "
            "columns"
        ) from None


def _writer(pa: Any, schema: Any, sink: Any, suffix: str) -> Any:
    if suffix == ".parquet":
        return import_module("pyarrow.parquet").ParquetWriter(sink, schema)
    if suffix == ".csv":
        return import_module("pyarrow.csv").CSVWriter(sink, schema)
    return pa.ipc.new_file(str(sink), schema) if isinstance(sink, Path) else (
        pa.ipc.new_stream(sink, schema)
    )  # fmt: skip


def check_types(schema: "pa.Schema", suffix: str) -> None:
    """Refuse columns that a format cannot hold, before anything is computed.

    Raises
    ------
    InputError
        As :func:`write`.
    """
    pa = arrow()
    write(pa.RecordBatchReader.from_batches(schema, iter([])), pa.BufferOutputStream(), suffix)
