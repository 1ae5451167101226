"""Reading Parquet, Arrow IPC and CSV files as Arrow tables; what is damaged is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamjoin import memory
from streamjoin.errors import InputError, UnavailableError, in_one_line
from streamjoin_common import decoded
from streamjoin_common.language.arrivals import ArrivalColumn
from streamjoin_common.suggestions import did_you_mean

if TYPE_CHECKING:
    import pyarrow as pa

DATABASES = frozenset({".db", ".sqlite", ".sqlite3", ".duckdb"})
"""Endings of files that hold tables."""

DEFAULT_ARRIVAL = ArrivalColumn()

MAX_EXACT_INTEGER = 1 << 53
"""Integers above it may lose digits when CSV reads them as floating-point numbers."""


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
            "pyarrow is not installed here: give NumPy arrays through the Python interface"
        ) from None
    return pyarrow


def read_table(
    path: Path, columns: list[str] | None = None, arrival: ArrivalColumn = DEFAULT_ARRIVAL
) -> "pa.Table":
    """Read a Parquet file or folder, an Arrow IPC file or stream, or a CSV file.

    Parameters
    ----------
    path : Path
        The file; its suffix says what it is.
    columns : list of str, optional
        Columns that are needed; with them, Parquet's others are not read but ``ts``.
    arrival : ArrivalColumn, optional
        The arrival column.

    Raises
    ------
    InputError
        If there is no such file, it cannot be read, is damaged or lacks a column.
    """
    pa = arrow()
    suffix, is_folder = path.suffix.lower(), False
    try:
        is_folder = path.is_dir()
        if not path.exists():
            raise InputError(f"{path}: there is no such file")
        if not is_folder and not path.is_file():
            raise InputError(f"{path}: is no regular file")
        if is_folder or suffix in {".parquet", ".pq"}:
            return _read_parquet(path, columns, arrival)
        if suffix in {".arrow", ".ipc", ".feather"}:
            _check_fits(path, lambda _: decoded.ipc_bytes(pa, path))
            return _read_ipc(pa, path)
        if suffix == ".csv":
            return _read_csv(path, columns)
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
            raise InputError(f"{source}: there is no column {name!r}; it has {listed}{near}")
    ts = None if arrival is None else arrival.among(have, source)
    for name in dict.fromkeys([*columns, *([ts] if ts else [])]):
        if have.count(name) > 1:
            raise InputError(f"{source}: the column {name!r} occurs {have.count(name)} times")
    return ts


def _read_parquet(path: Path, columns: list[str] | None, arrival: ArrivalColumn) -> "pa.Table":
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


def _read_ipc(pa: Any, path: Path) -> "pa.Table":
    with pa.memory_map(str(path)) as source:
        try:
            table = pa.ipc.open_file(source).read_all()
        except pa.ArrowInvalid:  # the stream format has no footer
            source.seek(0)
            table = pa.ipc.open_stream(source).read_all()
    table.validate(full=True)  # offsets in a damaged file lead outside the memory
    return table  # type: ignore[no-any-return]  # see arrow()


def _read_csv(path: Path, columns: list[str] | None) -> "pa.Table":
    import pyarrow.compute as pc
    import pyarrow.csv as pv
    from pyarrow import types

    _check_fits(path, lambda free: decoded.csv_bytes(pv, path, free))
    table = pv.read_csv(path)
    first = table.column_names[0]
    for mark in (";", "\t", "|"):
        if table.num_columns == 1 and mark in first:
            raise InputError(
                f"{path}: its columns are separated by {mark!r} and must be by commas: write it so"
            )
    for name in set(columns or ()) & set(table.column_names):
        if table.column_names.count(name) > 1 or not types.is_floating(table[name].type):
            continue
        largest = pc.max(pc.abs(table[name])).as_py()
        if largest is not None and largest > MAX_EXACT_INTEGER:
            raise InputError(
                f"{path}: column {name!r} holds numbers above 2**53, which the "
                "floating-point numbers of CSV cannot hold exactly: store it as Parquet"
            )
    return table
