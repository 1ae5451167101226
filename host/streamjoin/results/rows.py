"""What a join returns: pairs by row number, and joined rows looked up when they are asked for."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from streamjoin import run
from streamjoin.engines.job import Job
from streamjoin.errors import InputError, UnavailableError
from streamjoin.inputs.files import arrow
from streamjoin.inputs.payload import integers_within
from streamjoin.results import lookups
from streamjoin.results.lookups import Lookup
from streamjoin.results.shown import as_html, as_text
from streamjoin.tuples import Int64s, Rows, lacking, whole
from streamjoin_common.installed.checks import not_installed
from streamjoin_common.language.kinds import R_ONLY
from streamjoin_common.language.selections import Chosen, Selection

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

BATCH_ROWS = 1 << 16
"""Rows of a batch by default."""

FETCHED_ROWS = 1 << 20
"""Joined rows whose rows of a store are fetched together."""

SHOWN_ROWS = 5

Columns = str | Iterable[str] | Selection | None
"""How columns are named."""


class Joined(ABC):
    """Joined rows of pairs: a base of results.

    Whatever takes Arrow data takes a result, and reads its rows in batches: ``pl.DataFrame``,
    ``pa.table``, ``duckdb.sql("from result")``. Rows are looked up in the inputs, which have to
    stay as they were. A side that is missing, by row number -1, has missing values.

    Attributes
    ----------
    r_rows, s_rows : ndarray, shape (pairs,)
        Row numbers.
    """

    r_rows: Rows
    s_rows: Rows

    @property
    @abstractmethod
    def _ts(self) -> Int64s:
        """Times of the rows."""

    @property
    def _how(self) -> str:
        return "inner"

    @property
    @abstractmethod
    def _title(self) -> str:
        """What a result is called where it is shown."""

    @property
    def _positions(self) -> tuple[Rows, Rows]:
        """Where the pairs' rows are looked up."""
        return self.r_rows, self.s_rows

    @abstractmethod
    def _lookup(self, side: str) -> Lookup:
        """Return what gives the rows of a side."""

    @cached_property
    def _lookups(self) -> dict[str, Lookup]:
        return {side: self._lookup(side) for side in _sides(self._how)}

    def __len__(self) -> int:
        return len(self.r_rows)

    @cached_property
    def pairs(self) -> "pa.Table":
        """The pairs as an Arrow table ``r_row, s_row, ts``."""
        return pairs_table(self.r_rows, self.s_rows, self._ts)

    def table(
        self,
        columns: Columns = None,
        r_suffix: str = "_r",
        s_suffix: str = "_s",
    ) -> "pa.Table":
        """Joined rows as an Arrow table.

        Parameters
        ----------
        columns : str or list of str, optional
            ``"r.a"``, ``"s.b"``, ``"a"`` where only one side has it, ``"r.*"``, ``"s.*"``;
            ``"*"`` by default.
        r_suffix, s_suffix : str
            What names are given that clash.

        Raises
        ------
        InputError
            If there is no such column, both sides have it, or two would get the same name.
        """
        return self._reader(BATCH_ROWS, columns, (r_suffix, s_suffix)).read_all()  # type: ignore[no-any-return]  # see arrow()

    def batches(
        self,
        rows: int = BATCH_ROWS,
        columns: Columns = None,
        r_suffix: str = "_r",
        s_suffix: str = "_s",
    ) -> "pa.RecordBatchReader":
        """Joined rows as Arrow record batches, each made when it is asked for.

        Parameters
        ----------
        rows : int
            Maximum rows of a batch.
        columns, r_suffix, s_suffix
            As for :meth:`table`.

        Returns
        -------
        pyarrow.RecordBatchReader
            An iterator over batches that has a schema.

        Raises
        ------
        InputError
            As :meth:`table`, or if ``rows`` is no integer of at least 1.
        """
        count = whole(rows)
        if count is None or count < 1:
            raise InputError(f"rows must be an integer of at least 1, not {rows!r}")
        return self._reader(count, columns, (r_suffix, s_suffix))  # type: ignore[no-any-return]  # see arrow()

    def to_pandas(
        self, columns: Columns = None, r_suffix: str = "_r", s_suffix: str = "_s"
    ) -> "pd.DataFrame":
        """Joined rows as a pandas data frame; parameters as of :meth:`table`.

        Integers beside missing values become float64, as in pandas' own merge, but ``Int64`` (or
        ``UInt64``) where float64 has not all their digits; inside lists, structs and maps they are
        Python's there.
        """
        pandas, pa = _require("pandas"), arrow()
        kinds = {pa.int64(): pandas.Int64Dtype(), pa.uint64(): pandas.UInt64Dtype()}
        table = self.table(columns, r_suffix, s_suffix)
        frame = table.to_pandas()
        for name in table.column_names:
            column = table[name]
            is_wide = pa.types.is_int64(column.type) or pa.types.is_uint64(column.type)
            if is_wide and _loses_digits(column):
                frame[name] = column.to_pandas(types_mapper=kinds.get)
            elif any(map(_loses_digits, integers_within(column))):
                frame[name] = column.to_pandas(integer_object_nulls=True)
        return frame

    def to_polars(
        self, columns: Columns = None, r_suffix: str = "_r", s_suffix: str = "_s"
    ) -> "pl.DataFrame":
        """Joined rows as a polars data frame; parameters as of :meth:`table`."""
        polars = _require("polars")
        return polars.DataFrame(self.table(columns, r_suffix, s_suffix))  # type: ignore[no-any-return]  # see _require()

    def __iter__(self) -> "Iterator[pa.RecordBatch]":
        return iter(self.batches())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._reader(BATCH_ROWS, None).__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return "\n".join([f"<{self._title}>", *as_text(self._head(), len(self))])

    def _repr_html_(self) -> str:
        return as_html(self._title, self._head(), len(self))

    def _head(self) -> dict[str, list[Any]]:
        """Return the first rows of the columns that are at hand, or their numbers."""
        head: dict[str, list[Any]] = {}
        shown = {}
        for side, lookup in self._lookups.items():
            cells = lookup.cells(self._rows_of(side, slice(0, SHOWN_ROWS)).tolist())
            numbers = (self.r_rows if side == "r" else self.s_rows)[:SHOWN_ROWS].tolist()
            shown[side] = cells or {f"{side}_row": [n if n >= 0 else None for n in numbers]}
        names = [name for cells in shown.values() for name in cells]
        for side, cells in shown.items():
            for name, values in cells.items():
                own = f"{name}_{side}"
                own = f"{side}.{name}" if own in names else own
                head[own if names.count(name) > 1 else name] = values
        return head

    def _rows_of(self, side: str, part: slice) -> Rows:
        return self._positions["rs".index(side)][part]

    def _reader(
        self,
        rows: int,
        columns: Columns,
        suffixes: tuple[str, str] = ("_r", "_s"),
    ) -> Any:
        chosen = _resolved(self._lookups, Selection.parse(columns), suffixes, self._how)
        schema = self._schema(chosen)
        return arrow().RecordBatchReader.from_batches(schema, self._made(rows, chosen, schema))

    def _schema(self, chosen: Sequence[Chosen]) -> Any:
        fields: dict[tuple[str, str], Any] = {}
        for side, lookup in self._lookups.items():
            names = [each.column for each in chosen if each.side == side]
            some_lack = lacking(self._positions["rs".index(side)]) is not None
            for field in lookup.fields(names) if names else []:
                fields[side, field.name] = field.with_nullable(True) if some_lack else field
        return _in_order(chosen, fields)

    def _made(self, rows: int, chosen: Sequence[Chosen], schema: Any) -> Iterator[Any]:
        """Make batches, one when it is asked for; an empty one of no rows."""
        pa = arrow()
        if not len(self):  # of columns without a chunk pandas cannot have all types
            yield pa.RecordBatch.from_arrays([pa.array([], e.type) for e in schema], schema=schema)
        together = max(1, FETCHED_ROWS // rows) * rows
        for start in range(0, len(self), together):
            end = min(start + together, len(self))
            fetched = {}
            for side, lookup in self._lookups.items():
                names = [each.column for each in chosen if each.side == side]
                fetched[side] = lookup.fetched(names, self._rows_of(side, slice(start, end)))
            for first in range(start, end, rows):
                part = slice(first, min(first + rows, end))
                wanted = {side: self._rows_of(side, part) for side in fetched}
                arrays = [fetched[e.side].take(e.column, wanted[e.side]) for e in chosen]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)


class JoinResult(Joined):
    """The result of a join: pairs, joined rows, metrics.

    Attributes
    ----------
    metrics : dict
        The run's metrics, as in the file that ``--metrics`` writes.
    r_rows, s_rows : ndarray, shape (pairs,)
        Row numbers of the pairs, for use without pyarrow.
    """

    def __init__(self, outcome: run.Outcome) -> None:
        self._outcome = outcome
        self.metrics = outcome.metrics
        rows = outcome.rows
        self.r_rows, self.s_rows = rows.r_rows, rows.s_rows

    @property
    def _ts(self) -> Int64s:
        return self._outcome.ts

    @property
    def _how(self) -> str:
        return self._outcome.job.how

    @property
    def _title(self) -> str:
        metrics = self.metrics
        kind = "" if self._how == "inner" else f"{self._how} join, "
        inputs = f"{metrics['n_r']} x {metrics['n_s']} tuples"
        return f"JoinResult: {kind}{len(self)} pairs of {inputs} by {metrics['engine']}"

    def _lookup(self, side: str) -> Lookup:
        return lookups.lookup(getattr(self._outcome.job, side))


def _loses_digits(column: Any) -> bool:
    """Whether integers beside missing values have digits that float64 has not."""
    if not column.null_count or column.null_count == len(column):
        return False
    present = column.drop_null().to_numpy(zero_copy_only=False)
    return max(int(present.max()), -int(present.min())) > 1 << 53


def declared_schema(job: Job, columns: Columns) -> "pa.Schema":
    """Return the schema that joined rows of a job will have, before anything is joined or read.

    Raises
    ------
    InputError
        As :meth:`Joined.table`.
    """
    how = job.how
    found = {side: lookups.lookup(getattr(job, side)) for side in _sides(how)}
    chosen = _resolved(found, Selection.parse(columns), ("_r", "_s"), how)
    fields = {}
    for side, lookup in found.items():
        names = [each.column for each in chosen if each.side == side]
        for field in lookup.declared(names) if names else []:
            fields[side, field.name] = field
    return _in_order(chosen, fields)  # type: ignore[no-any-return]  # see arrow()


def _sides(how: str) -> str:
    return "r" if how in R_ONLY else "rs"


def _resolved(
    found: dict[str, Lookup], selection: Selection, suffixes: tuple[str, str], how: str
) -> list[Chosen]:
    named = {at for at, _ in selection.items}  # what is not asked for need not be there
    names = [found[side].names if side in found and {None, side} & named else [] for side in "rs"]
    chosen = selection.resolve(names[0], names[1], suffixes, how)
    if not chosen:
        raise InputError("columns: the inputs have none")
    return chosen


def _in_order(chosen: Sequence[Chosen], fields: "dict[tuple[str, str], pa.Field[Any]]") -> Any:
    return arrow().schema([fields[each.side, each.column].with_name(each.name) for each in chosen])


def pairs_table(r_rows: Rows, s_rows: Rows, ts: Int64s) -> "pa.Table":
    """Return pairs as an Arrow table ``r_row, s_row, ts``; a missing side has no row number."""
    pa = arrow()
    columns = {}
    for name, rows in (("r_row", r_rows), ("s_row", s_rows)):
        columns[name] = pa.array(rows)
        if (missing := lacking(rows)) is not None:
            bits = pa.py_buffer(np.packbits(~missing, bitorder="little"))
            buffers = [bits, columns[name].buffers()[1]]
            columns[name] = pa.Array.from_buffers(pa.int64(), len(rows), buffers)
    return pa.table({**columns, "ts": ts})  # type: ignore[no-any-return]  # see arrow()


def _require(package: str) -> Any:
    from importlib import import_module

    try:
        return import_module(package)
    except ModuleNotFoundError:
        raise UnavailableError(not_installed(package, needed_by=f"to_{package}")) from None
