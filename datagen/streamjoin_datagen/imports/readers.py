"""CSV and Parquet files of the user's own, read as tables."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from streamjoin_common import csv_fields, decoded
from streamjoin_common.free_memory import SHARE, available_bytes
from streamjoin_datagen.errors import SpecError

Reader = Callable[[str, Path], pa.Table]
"""Reads the file of a stream, ``"r"`` or ``"s"``."""


def csv_table(_stream: str, path: Path) -> pa.Table:
    """Read a CSV file with a header."""
    _check_fits(path, lambda free: decoded.csv_bytes(pyarrow.csv, path, free))

    def read(file: Path) -> pa.Table:
        opened = partial(csv_fields.opened, file)
        names = csv_fields.schema(pyarrow.csv, opened).names
        table: pa.Table = csv_fields.read(pyarrow.csv, pc, opened, names, None)
        return table

    return _read("csv", path, read)


def parquet_table(_stream: str, path: Path) -> pa.Table:
    """Read a Parquet file, or the part files of a folder in the order of their names."""
    if path.is_dir():
        _check_parts(path)

    def needed(free: int) -> int:
        files = pq.ParquetDataset(path, partitioning=None)
        return decoded.parquet_bytes(pq, pc, files.files, files.schema.names, free)

    _check_fits(path, needed)
    return _read("parquet", path, lambda parts: pq.read_table(parts, partitioning=None))


def _check_fits(path: Path, needed: Callable[[int], int]) -> None:
    """Refuse a file that takes more memory than is free; its reader reports what is damaged."""
    available = available_bytes()
    if available is None:
        return
    free = int(available * SHARE)
    try:
        decoded.check_fits(path, needed(free), free)
    except (pa.ArrowException, OSError, StopIteration):
        return


def _check_parts(folder: Path) -> None:
    """Refuse part files of different columns: Arrow would drop some or fail in its own words."""
    parts = sorted(file for file in folder.rglob("*.parquet") if not file.name.startswith("."))
    first = None
    for part in parts:
        try:
            schema = pq.read_schema(part).remove_metadata()
        except (pa.ArrowInvalid, OSError) as error:
            reason = str(error).splitlines()[0].rstrip(". ")
            raise SpecError(f"{part} cannot be read as parquet: {reason}") from error
        first = first or schema
        if schema != first:
            raise SpecError(
                f"{part}: its columns are {_shown(schema)}, and those of {parts[0].name} "
                f"{_shown(first)}: part files must have the same"
            )


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def _read(kind: str, path: Path, reader: Callable[[Path], pa.Table]) -> pa.Table:
    if path.is_file() and path.stat().st_size == 0:
        raise SpecError(f"{path} is empty: it needs at least the names of its columns")
    try:
        table = reader(path)
    except (pa.ArrowInvalid, OSError, ValueError) as error:
        reason = str(error).splitlines()[0].rstrip(". ")
        raise SpecError(f"{path} cannot be read as {kind}: {reason}") from error
    twice = {name for name in table.column_names if table.column_names.count(name) > 1}
    if twice:
        raise SpecError(f"{path}: the column {min(twice)!r} occurs twice")
    return table
