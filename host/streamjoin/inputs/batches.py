"""From files, Arrow data and NumPy arrays to streams, refused early and in one sentence."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.errors import InputError, InputWarning, in_one_line
from streamjoin.inputs.columns import (
    Missing,
    arrow_arrivals,
    arrow_column,
    column_kind,
    numpy_arrivals,
    numpy_column,
)
from streamjoin.inputs.files import arrow, read_table, require_columns
from streamjoin.inputs.lateness import beyond, in_order
from streamjoin.inputs.payload import take
from streamjoin.relations import Relation, relation
from streamjoin.relations.source import GIVEN
from streamjoin.relations.stream import StoredStream, stored_stream
from streamjoin.tuples import Int64s, Stream
from streamjoin_common.language.arrivals import ArrivalColumn, Arrivals
from streamjoin_common.language.predicates import Equi, Predicate, Term, check_kinds

if TYPE_CHECKING:
    import pyarrow as pa

DEFAULT_ARRIVALS = Arrivals()
ONLY_R = "S is the stream that arrives: only R can be a relation in a store"
Types = Mapping[str, "np.dtype[Any]"]
"""Types of a side's join columns."""

FIRST_ROWS = 64
"""Rows in which a value is looked for first."""

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
            table = take(table, places)
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
    r: StoredStream, batch: Batch, source: str, predicate: Predicate, lateness_us: int | None
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
    r_types, s_types = _types(r), _types(s)
    r_agreed, s_agreed = agreed_types(r_types, s_types, predicate, (r.source, s.source))
    r = _of_nothing(r, r_agreed) if r_types is None else r
    s = _of_nothing(s, s_agreed) if s_types is None else s
    return r.with_times_as_numbers(), s.with_times_as_numbers()


def _types(stream: Stream) -> Types | None:
    if holds_nothing(stream.columns, stream.missing):
        return None
    return {name: column.dtype for name, column in stream.columns.items()}


def agreed_types(
    r: Types | None, s: Types | None, predicate: Predicate, sources: tuple[str, str] = ("r", "s")
) -> tuple[Types, Types]:
    """Types of both sides' join columns.

    Parameters
    ----------
    r, s : mapping of str to dtype, or None
        Types by column; None for a side that has no value, which takes the other's.
    sources : tuple of str
        What errors call the sides.

    Raises
    ------
    InputError
        If two columns do not compare, naming source, column, type and what is right.
    """
    r_agreed, s_agreed = dict(r or {}), dict(s or {})
    for term in predicate.terms:
        anything = np.dtype(np.float64 if _is_real(term) else np.int64)
        if r is None:
            r_agreed[term.r_column] = s_agreed.get(term.s_column, anything)
        if s is None:
            s_agreed[term.s_column] = r_agreed[term.r_column]
        _check_term(r_agreed[term.r_column], s_agreed[term.s_column], term, sources)
    return r_agreed, s_agreed


def holds_nothing(columns: Mapping[str, NDArray[Any]], missing: Missing) -> bool:
    """Say whether no row has a value in every column; NaN is none."""
    rows = max((len(column) for column in columns.values()), default=0)
    for end in (min(rows, FIRST_ROWS), rows):  # mostly one of the first has
        lacking = np.zeros(end, np.bool_) if missing is None else missing[:end].copy()
        for column in columns.values():
            if column.dtype.kind == "f":
                lacking |= np.isnan(column[:end])
        if not lacking.all():
            return False
    return True


def _of_nothing(stream: Stream, types: Types) -> Stream:
    """Give a stream without any value columns of these types."""
    columns = {name: no_values(stream.rows, dtype) for name, dtype in types.items()}
    missing = np.ones(stream.rows, np.bool_) if stream.rows else None
    return replace(stream, columns={**stream.columns, **columns}, missing=missing)


def no_values(rows: int, dtype: "np.dtype[Any]") -> NDArray[Any]:
    """Return a column of a type in which all values are missing."""
    return np.full(rows, "" if dtype.kind == "O" else 0).astype(dtype)


def _is_real(term: Term) -> bool:
    return not isinstance(term, Equi) and not (
        isinstance(term.lo, int) and isinstance(term.hi, int)
    )


def _check_term(
    r: "np.dtype[Any]", s: "np.dtype[Any]", term: Term, sources: tuple[str, str]
) -> None:
    """Refuse columns that a term cannot compare."""
    r_kind = column_kind(r, term.r_column, sources[0])
    s_kind = column_kind(s, term.s_column, sources[1])
    check_kinds(term, r_kind, s_kind, *sources)
