"""From files, Arrow data and NumPy arrays to streams, refused early and in one sentence."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.columns import (
    Missing,
    arrow_arrivals,
    arrow_column,
    column_kind,
    numpy_arrivals,
    numpy_column,
)
from streamjoin.errors import InputError, InputWarning, in_one_line
from streamjoin.files import arrow, read_table, require_columns
from streamjoin.lateness import beyond, in_order
from streamjoin.predicates import Predicate, Term
from streamjoin.stored import stored_stream
from streamjoin.stores import Relation, relation
from streamjoin.stores.relations import GIVEN
from streamjoin.tuples import Int64s, Stream
from streamjoin_common.language.arrivals import ArrivalColumn, Arrivals
from streamjoin_common.language.predicates import check_kinds

if TYPE_CHECKING:
    import pyarrow as pa

DEFAULT_ARRIVALS = Arrivals()
ONLY_R = "S is the stream that arrives: only R can be a relation in a store"
MOST_ROWS = 1 << 31
"""Row numbers travel as 32-bit payloads, and hash tables link them as signed ones."""


@dataclass(frozen=True)
class Batch:
    """Tuples of one stream as they were given, in any order.

    Attributes
    ----------
    columns : dict of str to ndarray
        The join columns.
    ts : ndarray of int64, or None
        Arrival times in microseconds; None where there is no arrival column.
    rows : int
        Number of tuples.
    missing : ndarray of bool, or None
        Which lack a join column's value.
    table : pyarrow.Table or None
        All columns, where they came from Arrow.
    hint : str or None
        What the user is warned of: arrival times that look like another unit's.
    """

    columns: dict[str, NDArray[Any]]
    ts: Int64s | None
    rows: int
    missing: Missing
    table: Any
    hint: str | None = None

    def take(self, places: NDArray[Any] | slice) -> "Batch":
        """Return the tuples at these places."""
        ts = None if self.ts is None else self.ts[places]
        missing = None if self.missing is None else self.missing[places]
        columns = {name: column[places] for name, column in self.columns.items()}
        table = self.table
        if table is not None and isinstance(places, slice):
            table = table.slice(places.start, places.stop - places.start)
        elif table is not None:
            table = table.take(places)
        rows = places.stop - places.start if isinstance(places, slice) else len(places)
        return Batch(columns, ts, rows, missing, table)

    def stream(self, source: str, lateness_us: int | None = None) -> Stream:
        """Make a stream of it: refused where it is out of order, or put in order.

        Parameters
        ----------
        source : str
            What errors call it.
        lateness_us : int, optional
            Tuples that are so late at most are put in order; the others are left out and counted.

        Raises
        ------
        InputError
            If there are too many rows, or arrival times go back and no lateness is given.
        """
        if self.rows >= MOST_ROWS:
            raise InputError(f"{source}: {self.rows} rows; fewer than {MOST_ROWS} can be numbered")
        if self.ts is None:
            ts = np.zeros(self.rows, dtype=np.int64)
            return Stream(self.columns, ts, source, self.table, self.missing)
        if lateness_us is None or in_order(self.ts) is None:
            return Stream(self.columns, self.ts, source, self.table, self.missing)
        kept = np.flatnonzero(~beyond(self.ts, lateness_us))
        order = in_order(self.ts[kept])
        numbers = kept if order is None else kept[order]
        ordered = replace(self, table=None).take(numbers)
        late = self.rows - ordered.rows
        return Stream(
            ordered.columns, self.ts[numbers], source, self.table, ordered.missing, numbers, late
        )


def read_streams(
    r: Path | Relation,
    s: Path,
    predicate: Predicate,
    arrivals: Arrivals = DEFAULT_ARRIVALS,
    lateness_us: int | None = None,
) -> tuple[Stream, Stream]:
    """Read both inputs of a join, only the columns that the predicate needs.

    Parameters
    ----------
    r, s : Path
        Parquet file or folder, Arrow IPC file or CSV file each; R may be a relation in a store.
    predicate : Predicate
        Names the columns.
    arrivals : Arrivals, optional
        The arrival columns, and which window needs them. By default ``ts`` where there is one;
        data without one is at rest.
    lateness_us : int, optional
        Put tuples in order that are so late at most, and leave out and count the others.

    Raises
    ------
    InputError
        If a file cannot be read, a column is missing or of a type that the predicate cannot
        compare, or arrival times go back; the sentence names file, column and row.
    """

    def batch(path: Path, columns: list[str], arrival: ArrivalColumn) -> Batch:
        return _hinted(from_arrow(read_table(path, columns, arrival), columns, arrival, str(path)))

    s_names = s_columns(predicate)
    if not isinstance(r, Path):
        stored = stored_stream(r, r_columns(predicate), _of_relation(arrivals))
        return _with_stored(stored, batch(s, s_names, arrivals.s), str(s), predicate, lateness_us)
    batches = [batch(r, r_columns(predicate), arrivals.r), batch(s, s_names, arrivals.s)]
    return _streams(batches, [str(r), str(s)], predicate, lateness_us)


def as_streams(
    r: Any,
    s: Any,
    predicate: Predicate,
    arrivals: Arrivals = DEFAULT_ARRIVALS,
    lateness_us: int | None = None,
) -> tuple[Stream, Stream]:
    """Take both inputs from Python: Arrow-like data or mappings of NumPy arrays.

    R may be a relation in a store, by its text or open.

    Raises
    ------
    InputError
        As :func:`read_streams`, calling the inputs ``r`` and ``s``.
    """
    if isinstance(r, GIVEN):
        stored = stored_stream(relation(r), r_columns(predicate), _of_relation(arrivals))
        batch = as_batch(s, s_columns(predicate), arrivals.s, "s")
        return _with_stored(stored, batch, "s", predicate, lateness_us)
    if isinstance(s, GIVEN):
        raise InputError(ONLY_R)
    batches = [
        as_batch(r, r_columns(predicate), arrivals.r, "r"),
        as_batch(s, s_columns(predicate), arrivals.s, "s"),
    ]
    return _streams(batches, ["r", "s"], predicate, lateness_us)


def _of_relation(arrivals: Arrivals) -> ArrivalColumn:
    """Return R's arrival column where R is a relation in a store, which is at rest.

    It needs none, and a single name is that of the stream's column.
    """
    return replace(arrivals.r, window="", named=arrivals.r.named and arrivals.r != arrivals.s)


def _with_stored(
    r: Stream, batch: Batch, source: str, predicate: Predicate, lateness_us: int | None
) -> tuple[Stream, Stream]:
    """Hold the stream's types against those of a sample of the relation."""
    if lateness_us is not None and batch.ts is None:
        raise InputError(f"{source}: a lateness needs the arrival times: there is no ts")
    sample, _ = r.store.sample()
    return r, comparable(sample, batch.stream(source, lateness_us), predicate)[1]


def _streams(
    batches: list[Batch], sources: list[str], predicate: Predicate, lateness_us: int | None
) -> tuple[Stream, Stream]:
    if lateness_us is not None and all(batch.ts is None for batch in batches):
        raise InputError(f"{sources[0]}: a lateness needs the arrival times: there is no ts")
    r, s = (
        batch.stream(source, lateness_us) for batch, source in zip(batches, sources, strict=True)
    )
    return comparable(r, s, predicate)


def as_batch(data: Any, columns: list[str], arrival: ArrivalColumn, name: str) -> Batch:
    """Take tuples of one stream from Python.

    Raises
    ------
    InputError
        If it is neither Arrow-like data nor a mapping of arrays, or a column does not fit.
    """
    if isinstance(data, Mapping):
        return _hinted(from_arrays(data, columns, arrival, name))
    if hasattr(data, "__arrow_c_stream__"):
        return _hinted(from_arrow(_table(data, name), columns, arrival, name))
    raise InputError(
        f"{name} must be Arrow data, a data frame or a mapping of NumPy arrays, "
        f"not {type(data).__name__}"
    )


def r_columns(predicate: Predicate) -> list[str]:
    """Columns of R that the predicate names, each once."""
    return predicate.r_columns


def s_columns(predicate: Predicate) -> list[str]:
    """Columns of S that the predicate names, each once."""
    return predicate.s_columns


def _hinted(batch: Batch) -> Batch:
    if batch.hint is not None:
        warnings.warn(batch.hint, InputWarning, stacklevel=4)
    return batch


def from_arrow(table: "pa.Table", columns: list[str], arrival: ArrivalColumn, source: str) -> Batch:
    """Take an Arrow table, keeping the table for late materialisation."""
    pa = arrow()
    name = require_columns(table.column_names, columns, arrival, source)
    found = {name: arrow_column(pa, table.column(name), name, source) for name in columns}
    ts = hint = None
    if name is not None:
        ts = arrow_arrivals(pa, table.column(name), name, source, arrival.unit)
        hint = _hint(ts, arrival, source, pa.types.is_integer(table.column(name).type))
    return _batch(found, ts, table.num_rows, table, hint)


def from_arrays(
    data: Mapping[str, Any], columns: list[str], arrival: ArrivalColumn, source: str
) -> Batch:
    """Take NumPy arrays by column name."""
    name = require_columns(list(data), columns, arrival, source)
    found = {name: numpy_column(data[name], name, source) for name in columns}
    ts = hint = None
    if name is not None:
        ts = numpy_arrivals(data[name], name, source, arrival.unit)
        hint = _hint(ts, arrival, source, np.asarray(data[name]).dtype.kind in "iu")
    lengths = {len(array) for array, _ in found.values()} | ({len(ts)} if ts is not None else set())
    if len(lengths) > 1:
        raise InputError(f"{source}: the columns have different lengths: {sorted(lengths)}")
    return _batch(found, ts, lengths.pop(), None, hint)


def _hint(ts: Int64s, arrival: ArrivalColumn, source: str, counted: bool) -> str | None:
    """Say so where arrival times that are integers look like another unit's."""
    if not (counted and len(ts) and arrival.window):
        return None
    return arrival.hint(int(ts[0]), int(ts[-1]), source)


def _table(data: Any, name: str) -> "pa.Table":
    pa = arrow()
    try:
        return pa.table(data)  # type: ignore[no-any-return]  # see arrow()
    except (pa.ArrowException, ValueError, TypeError) as error:
        reason = in_one_line(error)
        raise InputError(f"{name}: is no table: {reason}") from None


def _batch(
    found: dict[str, tuple[NDArray[Any], Missing]],
    ts: Int64s | None,
    rows: int,
    table: Any,
    hint: str | None,
) -> Batch:
    # In a conjunction one missing value is enough: the row matches nothing.
    masks = [missing for _, missing in found.values() if missing is not None]
    missing = np.logical_or.reduce(masks) if masks else None
    arrays = {name: column for name, (column, _) in found.items()}
    return Batch(
        arrays, None if ts is None else ts.astype(np.int64, copy=False), rows, missing, table, hint
    )


def comparable(r: Stream, s: Stream, predicate: Predicate) -> tuple[Stream, Stream]:
    """Refuse what does not compare; a side without any value takes the other's types."""
    for term in predicate.terms:
        r_column, s_column = r.column(term.r_column), s.column(term.s_column)
        if _holds_nothing(r):
            r = _with_column(r, term.r_column, _anything(r.rows, s_column.dtype))
        elif _holds_nothing(s):
            s = _with_column(s, term.s_column, _anything(s.rows, r_column.dtype))
        _check_term(r, s, term)
    return r.with_times_as_numbers(), s.with_times_as_numbers()


def _holds_nothing(stream: Stream) -> bool:
    return not stream.rows or (stream.missing is not None and bool(stream.missing.all()))


def _anything(rows: int, dtype: "np.dtype[Any]") -> NDArray[Any]:
    value = {"O": "", "f": np.nan}.get(dtype.kind, 0)
    return np.full(rows, value, dtype)


def _with_column(stream: Stream, name: str, column: NDArray[Any]) -> Stream:
    return replace(stream, columns={**stream.columns, name: column})


def _check_term(r: Stream, s: Stream, term: Term) -> None:
    """Refuse columns that a term cannot compare, naming file, column, type and what is right."""
    r_kind = column_kind(r.column(term.r_column), term.r_column, r.source)
    s_kind = column_kind(s.column(term.s_column), term.s_column, s.source)
    check_kinds(term, r_kind, s_kind, r.source, s.source)
