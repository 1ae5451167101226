"""Reading Parquet, Arrow IPC and CSV files as Arrow tables; what is damaged is refused."""

import glob
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamjoin import memory
from streamjoin.errors import InputError, NoColumnError, UnavailableError, in_one_line
from streamjoin.inputs.csv import of_one_type, read_csv, refuse_other_marks
from streamjoin_common import csv_fields, decoded
from streamjoin_common.installed.checks import not_installed
from streamjoin_common.language.arrivals import ArrivalColumn
from streamjoin_common.suggestions import did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

DATABASES = frozenset({".db", ".sqlite", ".sqlite3", ".duckdb"})
"""Endings of files that hold tables."""

DEFAULT_ARRIVAL = ArrivalColumn()

STREAM_END = b"\xff\xff\xff\xff\0\0\0\0"
"""How an Arrow IPC stream ends."""


Stamp = list[tuple[str, int, int, int]]
"""Files: name, number in the file system, size and time of writing."""


def arrow() -> Any:
    """Return pyarrow, or say that it is missing.

    Raises
    ------
    UnavailableError
        If pyarrow has no wheel here.
    """
    try:
        import pyarrow
    except ImportError:
        raise UnavailableError(
            f"{not_installed('pyarrow', needed_by='reading files')}, or give NumPy arrays in Python"
        ) from None
    return pyarrow


def is_pattern(path: Path) -> bool:
    """Say whether a path names the files that match it, rather than itself."""
    return glob.has_magic(str(path)) and not path.exists()


def files_of(path: Path) -> list[Path]:
    """Return the files that a path names: itself, or those that match where it is a pattern.

    Raises
    ------
    InputError
        If nothing matches the pattern.
    """
    if not is_pattern(path):
        return [path]
    matches = sorted(Path(match) for match in glob.glob(str(path), recursive=True))  # noqa: PTH207  (a pattern may be absolute)
    if not matches:
        raise InputError(f"{path}: no file matches")
    return matches


def read_table(
    path: Path, columns: list[str] | None = None, arrival: ArrivalColumn | None = DEFAULT_ARRIVAL
) -> "pa.Table":
    """Read a Parquet file or folder, an Arrow IPC file or stream, or a CSV file; or several.

    Parameters
    ----------
    path : Path
        The file, whose suffix says what it is; or a pattern as ``a/*.parquet``, whose files are
        read one behind the other in the order of their names.
    columns : list of str, optional
        Columns that are needed; with them, others are not read but the arrival column.
    arrival : ArrivalColumn, optional
        The arrival column; None where the columns are carried along and not compared.

    Raises
    ------
    InputError
        If there is no such file, it cannot be read, is damaged or lacks a column; or several files
        have not the same columns.
    """
    files = files_of(path)
    if len(files) == 1:
        return _read(files[0], columns, arrival)
    tables = [_read(file, columns, arrival) for file in files]
    remedy = ""
    if all(file.suffix.lower() == ".csv" for file in files):
        tables, remedy = of_one_type(tables), ": store them as Parquet, which keeps types"
    first = tables[0]
    for file, table in zip(files, tables, strict=True):
        for have, expected in ((table, first), (first, table)):
            other = next((each for each in have.schema if each not in set(expected.schema)), None)
            if other is not None:
                raise InputError(
                    f"{file}: has not the columns of {files[0]}: {other.name!r} is {other.type} in "
                    f"{'it' if have is table else 'that'} alone{remedy}"
                )
    same = [table.select(first.column_names) for table in tables]
    return arrow().concat_tables(same)  # type: ignore[no-any-return]  # see arrow()


def schema_of(path: Path) -> "pa.Schema":
    """Return the names and types of a readable file's columns; of several files, the first one's.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    pa = arrow()
    path = files_of(path)[0]
    try:
        if path.is_dir() or path.suffix.lower() in {".parquet", ".pq"}:
            return import_module("pyarrow.parquet").ParquetDataset(path).schema  # type: ignore[no-any-return]  # pyarrow's
        if path.suffix.lower() == ".csv":
            csv = import_module("pyarrow.csv")
            return csv_fields.schema(csv, lambda: csv_fields.opened(path))  # type: ignore[no-any-return]  # pyarrow's
        with pa.memory_map(str(path)) as source:
            return _open_ipc(pa, source).schema  # type: ignore[no-any-return]  # see arrow()
    except (pa.ArrowException, OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {in_one_line(error)}") from None


def stamp(path: Path) -> "Stamp":
    """Say which files a path names and when they were written, to see that they are the same."""
    files = [each for file in files_of(path) for each in ([file] if file.is_file() else _in(file))]
    states = [(file, file.stat()) for file in files]
    return [(str(file), state.st_ino, state.st_size, state.st_mtime_ns) for file, state in states]


def _in(folder: Path) -> list[Path]:
    return sorted(each for each in folder.rglob("*") if each.is_file())


def _read(path: Path, columns: list[str] | None, arrival: ArrivalColumn | None) -> "pa.Table":
    pa = arrow()
    suffix, is_folder = path.suffix.lower(), False
    try:
        is_folder = path.is_dir()
        if not path.exists():
            raise InputError(f"{path}: there is no such file")
        if not is_folder and not path.is_file():
            raise InputError(f"{path}: is no regular file: a pipe is read with - in its place")
        if is_folder or suffix in {".parquet", ".pq"}:
            return _read_parquet(path, columns, arrival)
        if suffix in {".arrow", ".ipc", ".feather"}:
            _check_fits(path, lambda _: decoded.ipc_bytes(pa, path))
            with pa.memory_map(str(path)) as source:
                return read_ipc(source, columns, arrival, str(path))
        if suffix == ".csv":
            _check_fits(
                path, lambda free: decoded.csv_bytes(import_module("pyarrow.csv"), path, free)
            )
            names = schema_of(path).names
            refuse_other_marks(names, str(path))
            wanted = None
            if columns is not None:
                ts = require_columns(names, columns, arrival, str(path))
                wanted = [each for each in names if each in {*columns, *([ts] if ts else [])}]
            keys = (columns or []) if arrival is not None else []  # else they are carried along
            return read_csv(lambda: csv_fields.opened(path), names, wanted, keys, str(path))
    except (InputError, MemoryError):  # Arrow's memory errors are both
        raise
    except (pa.ArrowException, OSError, ValueError, IndexError, KeyError) as error:
        reason = in_one_line(error)
        damaged = not isinstance(error, OSError) or error.errno is None
        remedy = f": {REMEDY}" if damaged and not is_folder else ""
        if suffix == ".csv":
            remedy = ": mend it, or write it anew"
        raise InputError(f"{path}: cannot be read: {reason}{remedy}") from None
    if suffix in DATABASES:
        raise InputError(
            f"{path}: is a database: name its kind, and a table, as sqlite:{path}:TABLE or "
            f"duckdb:{path}:TABLE"
        )
    raise InputError(f"{path}: must end in .parquet, .arrow or .csv, or be a Parquet folder")


REMEDY = "write it anew, or give it the suffix of its format (.parquet, .arrow, .csv)"
"""What to do about a file that is damaged or of another format."""


def _check_fits(path: Path, needed: Callable[[int], int]) -> None:
    """Refuse a file that takes more memory than is free, before it is read."""
    free_bytes = memory.input_bytes()
    if free_bytes is not None:
        decoded.check_fits(path, needed(free_bytes), free_bytes)


def require_columns(
    have: list[str], columns: list[str], arrival: ArrivalColumn | None, source: str
) -> str | None:
    """Refuse a table that lacks a column or has it twice; return the arrival column's name.

    Raises
    ------
    InputError
        Naming the column and what there is.
    """
    for name in columns:
        if name not in have:
            listed = ", ".join(have) or "none"
            near = did_you_mean(name, have)
            raise NoColumnError(f"{source}: there is no column {name!r}; it has {listed}{near}")
    ts = None if arrival is None else arrival.among(have, source)
    for name in dict.fromkeys([*columns, *([ts] if ts else [])]):
        if have.count(name) > 1:
            raise InputError(
                f"{source}: the column {name!r} occurs {have.count(name)} times: rename one"
            )
    return ts


def _read_parquet(
    path: Path, columns: list[str] | None, arrival: ArrivalColumn | None
) -> "pa.Table":
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    dataset = pq.ParquetDataset(path)
    if not dataset.files:
        raise InputError(f"{path}: the folder holds no Parquet files")
    if columns is None:
        return pq.read_table(path, page_checksum_verification=True)
    names = dataset.schema.names
    ts = require_columns(names, columns, arrival, str(path))
    wanted = {*columns, *([ts] if ts else [])}
    _check_fits(path, lambda free: decoded.parquet_bytes(pq, pc, dataset.files, wanted, free))
    return pq.read_table(
        path, columns=[name for name in names if name in wanted], page_checksum_verification=True
    )


def _open_ipc(pa: Any, source: Any) -> Any:
    try:
        return pa.ipc.open_file(source)
    except pa.ArrowInvalid:  # the stream format has no footer
        source.seek(0)
        return pa.ipc.open_stream(source)


def read_ipc(
    source: Any, columns: list[str] | None, arrival: ArrivalColumn | None, name: str
) -> "pa.Table":
    """Read an Arrow IPC file or stream that can be sought in."""
    reader = _open_ipc(arrow(), source)
    table = reader.read_all()
    if isinstance(reader, arrow().ipc.RecordBatchStreamReader):
        _check_end(source, name)
    if columns is not None:
        ts = require_columns(table.column_names, columns, arrival, name)
        wanted = {*columns, *([ts] if ts else [])}
        table = table.select([each for each in table.column_names if each in wanted])
    table.validate(full=True)  # offsets in a damaged file lead outside the memory
    return table  # type: ignore[no-any-return]  # see arrow()


def _check_end(source: Any, name: str) -> None:
    """Refuse a stream that breaks off between two batches, or goes on behind its end."""
    end = source.tell()
    source.seek(max(0, end - len(STREAM_END)))
    if source.read(len(STREAM_END)) != STREAM_END:
        raise InputError(
            f"{name}: breaks off: whatever wrote it has ended early, or has not closed its Arrow "
            "stream: write it anew"
        )
    if source.read(1):
        raise InputError(f"{name}: goes on behind the end of its Arrow stream: write it anew")
