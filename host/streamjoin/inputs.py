"""From files, Arrow data and NumPy arrays to streams, refused early and in one sentence.

Join columns end as NumPy arrays that share memory with the Arrow buffers where they can.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.errors import InputError, UnavailableError
from streamjoin.predicates import Band, Equi, Predicate
from streamjoin.tuples import Int64s, Stream
from streamjoin.windows import MOST

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS = 1 << 31
"""Row numbers travel as 32-bit payloads, and hash tables link them as signed ones."""


def read_streams(
    r: Path, s: Path, predicate: Predicate, ts_column: str | None = None
) -> tuple[Stream, Stream]:
    """Read both inputs of a join, only the columns that the predicate needs.

    Parameters
    ----------
    r, s : Path
        Parquet file or folder, Arrow IPC file or CSV file each.
    predicate : Predicate
        Names the columns.
    ts_column : str, optional
        The arrival column; ``ts`` where there is one by default, else the data is at rest.

    Raises
    ------
    InputError
        If a file cannot be read, a column is missing or of a type that the predicate cannot
        compare, or arrival times go back; the sentence names file, column and row.
    """
    streams = []
    for path, columns in ((r, r_columns(predicate)), (s, s_columns(predicate))):
        table = read_table(path, columns, ts_column)
        streams.append(from_arrow(table, columns, ts_column, str(path)))
    check_types(streams[0], streams[1], predicate)
    return streams[0], streams[1]


def as_streams(
    r: Any, s: Any, predicate: Predicate, ts_column: str | None = None
) -> tuple[Stream, Stream]:
    """Take both inputs from Python: Arrow-like data or mappings of NumPy arrays.

    Raises
    ------
    InputError
        As :func:`read_streams`, calling the inputs ``r`` and ``s``.
    """
    streams = []
    for data, columns, name in ((r, r_columns(predicate), "r"), (s, s_columns(predicate), "s")):
        if isinstance(data, Stream):
            streams.append(data)
        elif isinstance(data, Mapping):
            streams.append(from_arrays(data, columns, ts_column, name))
        elif hasattr(data, "__arrow_c_stream__"):
            streams.append(from_arrow(arrow().table(data), columns, ts_column, name))
        else:
            raise InputError(
                f"{name} must be Arrow data, a data frame or a mapping of NumPy arrays, "
                f"not {type(data).__name__}"
            )
    check_types(streams[0], streams[1], predicate)
    return streams[0], streams[1]


def r_columns(predicate: Predicate) -> list[str]:
    """Columns of R that the predicate names, each once."""
    return list(dict.fromkeys(term.r_column for term in predicate.terms))


def s_columns(predicate: Predicate) -> list[str]:
    """Columns of S that the predicate names, each once."""
    return list(dict.fromkeys(term.s_column for term in predicate.terms))


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
    path: Path, columns: list[str] | None = None, ts_column: str | None = None
) -> "pa.Table":
    """Read a Parquet file or folder, an Arrow IPC file or a CSV file.

    Parameters
    ----------
    path : Path
        The file; its suffix says what it is.
    columns : list of str, optional
        Columns that are needed; with them, Parquet's others are not read but ``ts``.
    ts_column : str, optional
        The arrival column, needed too if it is named.

    Raises
    ------
    InputError
        If there is no such file, it cannot be read or a column is missing.
    """
    pa = arrow()
    suffix = path.suffix.lower()
    if not path.exists():
        raise InputError(f"{path}: there is no such file")
    try:
        if path.is_dir() or suffix in {".parquet", ".pq"}:
            import pyarrow.parquet as pq

            schema = pq.ParquetDataset(path).schema
            if columns is None:
                return pq.read_table(path)
            _require_columns(schema.names, columns, ts_column, str(path))
            wanted = {*columns, ts_column or "ts"}
            return pq.read_table(path, columns=[n for n in schema.names if n in wanted])
        if suffix in {".arrow", ".ipc", ".feather"}:
            with pa.memory_map(str(path)) as source:
                return pa.ipc.open_file(source).read_all()  # type: ignore[no-any-return]  # see arrow()
        if suffix == ".csv":
            import pyarrow.csv as pv

            return pv.read_csv(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:160]
        raise InputError(f"{path}: cannot be read: {reason}") from None
    raise InputError(f"{path}: must end in .parquet, .arrow or .csv, or be a Parquet folder")


def from_arrow(table: "pa.Table", columns: list[str], ts_column: str | None, source: str) -> Stream:
    """Make a stream of an Arrow table, keeping the table for late materialisation."""
    pa = arrow()
    have = table.column_names
    _require_columns(have, columns, ts_column, source)
    arrays = {name: _column(pa, table.column(name), name, source) for name in columns}
    ts = None
    if ts_column is not None or "ts" in have:
        name = ts_column or "ts"
        ts = _arrivals(pa, table.column(name), name, source)
    return _stream(arrays, ts, table.num_rows, source, table)


def from_arrays(
    data: Mapping[str, Any], columns: list[str], ts_column: str | None, source: str
) -> Stream:
    """Make a stream of NumPy arrays by column name."""
    arrays = {name: np.asarray(column) for name, column in data.items()}
    _require_columns(list(arrays), columns, ts_column, source)
    ts = arrays.get(ts_column or "ts")
    if ts is not None and ts.dtype.kind not in "iumM":
        raise InputError(f"{source}: ts must hold whole microseconds, not {ts.dtype}")
    if ts is not None and ts.dtype.kind in "mM":
        ts = ts.astype(f"{ts.dtype.kind}8[us]").astype(np.int64)
    wanted = {name: arrays[name] for name in columns}
    lengths = {len(array) for array in arrays.values()}
    if len(lengths) > 1:
        raise InputError(f"{source}: the columns have different lengths: {sorted(lengths)}")
    for name, array in wanted.items():
        if array.ndim != 1:
            raise InputError(f"{source}: column {name!r} must have one dimension, not {array.ndim}")
        if array.dtype.kind == "O":
            wanted[name] = array.astype(str)
    return _stream(wanted, ts, lengths.pop() if lengths else 0, source, None)


def _stream(
    arrays: dict[str, NDArray[Any]],
    ts: NDArray[Any] | None,
    rows: int,
    source: str,
    table: Any,
) -> Stream:
    if rows >= MOST_ROWS:
        raise InputError(f"{source}: {rows} rows; fewer than {MOST_ROWS} can be numbered")
    if ts is None:
        ts = np.zeros(rows, dtype=np.int64)
    beyond = np.flatnonzero((ts > MOST) | (ts < -MOST))
    if beyond.size:
        raise InputError(f"{source}: ts at row {beyond[0]} is beyond 2**62 microseconds")
    return Stream(arrays, ts.astype(np.int64, copy=False), source, table)


def _require_columns(
    have: list[str], columns: list[str], ts_column: str | None, source: str
) -> None:
    for name, what in [*((c, "column") for c in columns), (ts_column, "arrival column")]:
        if name is not None and name not in have:
            listed = ", ".join(have) or "none"
            raise InputError(f"{source}: there is no {what} {name!r}; it has {listed}")


def _no_nulls(column: Any, name: str, source: str) -> None:
    if column.null_count:
        row = np.flatnonzero(column.is_null().to_numpy())[0]
        raise InputError(f"{source}: column {name!r} has no value at row {row}")


def _column(pa: Any, column: Any, name: str, source: str) -> NDArray[Any]:
    _no_nulls(column, name, source)
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        coded = column.combine_chunks().dictionary_encode()
        texts = np.array(coded.dictionary.to_pylist(), dtype=np.str_)
        return np.asarray(texts[coded.indices.to_numpy(zero_copy_only=False)])
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind):
        return np.asarray(column.cast(pa.int64()).to_numpy())
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return np.asarray(column.to_numpy())
    raise InputError(f"{source}: column {name!r} is {kind}; join columns are numbers or text")


def _arrivals(pa: Any, column: Any, name: str, source: str) -> Int64s:
    _no_nulls(column, name, source)
    kind = column.type
    if pa.types.is_timestamp(kind):
        column = column.cast(pa.timestamp("us")).cast(pa.int64())
    elif pa.types.is_duration(kind):
        column = column.cast(pa.duration("us")).cast(pa.int64())
    elif not pa.types.is_integer(kind):
        raise InputError(
            f"{source}: arrival column {name!r} is {kind}; it must be int64 microseconds, "
            "a timestamp or a duration"
        )
    return np.asarray(column.to_numpy())


def check_types(r: Stream, s: Stream, predicate: Predicate) -> None:
    """Refuse columns that a term cannot compare.

    Raises
    ------
    InputError
        Naming file, column, its type and what would be right.
    """
    for term in predicate.terms:
        r_kind = _kind(r, term.r_column)
        s_kind = _kind(s, term.s_column)
        names = f"{r.source}: {term.r_column!r} is {r_kind}, {s.source}: {term.s_column!r} is"
        if isinstance(term, Equi):
            if "real" in {r_kind, s_kind}:
                raise InputError(
                    f"{names} {s_kind}; equality is for whole numbers and text: for real "
                    f"numbers type --band {term.r_column}={term.s_column}:0:0"
                )
            if r_kind != s_kind:
                raise InputError(f"{names} {s_kind}; both must be whole numbers or both text")
        elif isinstance(term, Band):
            for stream, column, kind in (
                (r, term.r_column, r_kind),
                (s, term.s_column, s_kind),
            ):
                if kind == "text":
                    raise InputError(
                        f"{stream.source}: column {column!r} is text; a band needs numbers"
                    )
            if r_kind != s_kind:
                raise InputError(f"{names} {s_kind}; a band needs two columns of the same kind")
            if r_kind == "whole" and not (isinstance(term.lo, int) and isinstance(term.hi, int)):
                raise InputError(
                    f"--band {term.text}: the columns hold whole numbers, so the widths must too"
                )


def _kind(stream: Stream, name: str) -> str:
    dtype = stream.column(name).dtype
    kinds = {"i": "whole", "u": "whole", "f": "real", "U": "text", "S": "text", "T": "text"}
    if dtype.kind not in kinds or (dtype.kind == "f" and dtype.itemsize > 8):
        raise InputError(
            f"{stream.source}: column {name!r} is {dtype}; join columns are numbers or text"
        )
    return kinds[dtype.kind]
