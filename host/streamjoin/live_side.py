"""One stream of a live join: what has been pushed and waits, and what its window holds."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from streamjoin.columns import decoded
from streamjoin.engines.arrivals import first_live
from streamjoin.errors import InputError
from streamjoin.files import arrow
from streamjoin.inputs import Batch, as_batch
from streamjoin.lateness import LONG_AGO, beyond, in_order
from streamjoin.tuples import Int64s, Stream
from streamjoin.windows import MOST, Window
from streamjoin_common.language.arrivals import ArrivalColumn

MOST_CHUNKS = 64
"""Pieces of a window's Arrow table beyond which they are copied into one."""


@dataclass(frozen=True)
class Held:
    """Tuples and their numbers: how many of the stream were pushed before each."""

    batch: Batch
    ts: Int64s
    numbers: Int64s

    def take(self, places: Any) -> "Held":
        """Return the tuples at these places, a slice or row numbers."""
        return Held(self.batch.take(places), self.ts[places], self.numbers[places])


Kept = tuple[list[Held], Held | None]
"""What waits, and what the window holds."""


class Side:
    """One stream.

    Parameters
    ----------
    name : str
        What errors call it.
    columns : list of str
        The join columns.
    arrival : ArrivalColumn
        The arrival column.
    lateness_us : int or None
        How late tuples may be; None refuses arrival times that go back.

    Attributes
    ----------
    pushed, late : int
        Tuples pushed so far, and how many of them came too late.
    newest_us : int
        The newest arrival time so far.
    """

    def __init__(
        self, name: str, columns: list[str], arrival: ArrivalColumn, lateness_us: int | None
    ) -> None:
        self.name, self._columns, self._arrival = name, columns, arrival
        self._lateness_us = lateness_us
        self.pushed = self.late = 0
        self.newest_us = LONG_AGO
        self._types: dict[str, np.dtype[Any]] = {}
        self._schema: Any = None
        self._waiting: list[Held] = []
        self._window: Held | None = None

    @property
    def waiting(self) -> int:
        """Tuples that were pushed and not joined yet."""
        return sum(len(held.ts) for held in self._waiting)

    @property
    def live(self) -> int:
        """Tuples that the window holds."""
        return 0 if self._window is None else len(self._window.ts)

    @property
    def frontier_us(self) -> int:
        """No tuple that is still to come arrives before this time."""
        return self.newest_us - (self._lateness_us or 0)

    def read(self, data: Any) -> Batch:
        """Copy what a user pushes, refused where it does not go with what came before.

        Arrow tables are not copied, only their join columns are: nobody writes to them.

        Raises
        ------
        InputError
            If it is no such data, or columns or a column's type change.
        """
        batch = as_batch(data, self._columns, self._arrival, self.name)
        if batch.rows and not _all_missing(batch):
            for name, column in batch.columns.items():
                before = self._types.get(name, column.dtype)
                if column.dtype != before:
                    raise InputError(
                        f"{self.name}: column {name!r} is {column.dtype} in this batch and was "
                        f"{before} in the batches before"
                    )
        batch = replace(batch, table=_plain(batch.table))
        self._schema_with(batch)
        return replace(
            batch,
            columns={name: column.copy() for name, column in batch.columns.items()},
            ts=None if batch.ts is None else batch.ts.copy(),
            missing=None if batch.missing is None else batch.missing.copy(),
        )

    def push(self, batch: Batch, ts: Int64s) -> None:
        """Keep a batch that was read until it can be joined.

        Raises
        ------
        InputError
            If arrival times go back and no lateness was given.
        """
        numbers = np.arange(self.pushed, self.pushed + batch.rows)
        held = Held(batch, ts, numbers)
        if self._lateness_us is None:
            before = np.concatenate([[self.newest_us], ts])[:-1]
            back = np.flatnonzero(ts < before)
            if back.size:
                row = int(back[0])
                raise InputError(
                    f"{self.name}: ts goes back at row {self.pushed + row}, from {before[row]} to "
                    f"{ts[row]}: push in order of ts, or give a lateness"
                )
        else:
            late = beyond(ts, self._lateness_us, self.newest_us)
            if late.any():
                self.late += int(late.sum())
                held = held.take(np.flatnonzero(~late))
        if batch.rows and not _all_missing(batch):
            self._types = {name: column.dtype for name, column in batch.columns.items()}
        self._schema = self._schema_with(batch)
        # A stream's later batches hold later times: only its first shows where it starts.
        self._arrival = replace(self._arrival, unit=self._arrival.unit or "us")
        self.pushed += batch.rows
        self.newest_us = max(self.newest_us, int(ts.max(initial=LONG_AGO)))
        if len(held.ts):
            self._waiting.append(held)

    def advance(self, ts_us: int) -> None:
        """Take note that no tuple with an arrival time before this one is still to come."""
        self.newest_us = min(max(self.newest_us, ts_us + (self._lateness_us or 0)), MOST)

    def drop(self) -> None:
        """Forget all that waits."""
        self._waiting = []

    def ready(self, last_us: int) -> "Held | None":
        """Return what waits and arrived by a time, in arrival order; it waits on."""
        if not self._waiting:
            return None
        together = self._together(self._waiting)
        order = in_order(together.ts)
        if order is not None:
            together = together.take(order)
        self._waiting = [together]
        count = int(np.searchsorted(together.ts, last_us, side="right"))
        return together.take(slice(0, count)) if count else None

    def stream(self, arriving: "Held | None") -> tuple[Stream, Any, int]:
        """Put arriving tuples behind the window's: the stream, its table, how many were there."""
        parts = [held for held in (self._window, arriving) if held is not None]
        if not parts:
            nothing = {name: np.empty(0, np.int64) for name in self._columns}
            return Stream(nothing, np.empty(0, np.int64), self.name), None, 0
        all_of_it = self._together(parts)
        batch = all_of_it.batch
        stream = Stream(
            batch.columns, all_of_it.ts, self.name, None, batch.missing, all_of_it.numbers
        )
        self._joining = all_of_it
        return stream, batch.table, self.live

    def after(self, arriving: "Held | None", now_us: int, window: Window, of_r: bool) -> "Kept":
        """Return what is left to wait, and in the window, once a time has been reached."""
        waiting, held = self._waiting, self._window
        if arriving is not None:
            rest = waiting[0].take(slice(len(arriving.ts), len(waiting[0].ts)))
            waiting = [rest] if len(rest.ts) else []
        if arriving is not None or held is not None:
            ends = np.array([len(self._joining.ts)])
            first = int(first_live(self._joining.ts, np.array([now_us]), ends, window, of_r)[0])
            held = self._joining.take(slice(first, len(self._joining.ts)))
        return waiting, held

    def keep(self, kept: "Kept") -> None:
        """Forget all but this."""
        self._waiting, self._window = kept

    def _schema_with(self, batch: Batch) -> Any:
        """Return the schema of all batches so far and this one: columns without values get a type.

        Raises
        ------
        InputError
            If they do not go together.
        """
        if batch.table is None or self._schema is None:
            return self._schema if batch.table is None else batch.table.schema
        schema, before, pa = batch.table.schema, self._schema, arrow()
        if schema.equals(before):
            return before
        if sorted(schema.names) != sorted(before.names):
            raise InputError(f"{self.name}: this batch has other columns than the batches before")
        try:
            return pa.unify_schemas([before, schema])
        except pa.ArrowException:
            types = (
                (name, schema.field(name).type, before.field(name).type) for name in before.names
            )
            name, now, then = next(
                each for each in types if each[1] != each[2] and pa.null() not in each
            )
            raise InputError(
                f"{self.name}: column {name!r} is {now} in this batch and was {then} in the "
                "batches before"
            ) from None

    def _together(self, parts: list[Held]) -> Held:
        if len(parts) == 1:
            return parts[0]
        columns = {name: self._column(parts, name) for name in self._columns}
        missing = None
        if any(held.batch.missing is not None for held in parts):
            masks = [
                np.zeros(held.batch.rows, np.bool_)
                if held.batch.missing is None
                else held.batch.missing
                for held in parts
            ]
            missing = np.concatenate(masks)
        ts = np.concatenate([held.ts for held in parts])
        tables = [held.batch.table for held in parts]
        batch = Batch(columns, None, len(ts), missing, self._table(tables))
        return Held(batch, ts, np.concatenate([held.numbers for held in parts]))

    def _column(self, parts: list[Held], name: str) -> Any:
        kind = self._types.get(name, parts[0].batch.columns[name].dtype)
        columns = []
        for held in parts:
            column = held.batch.columns[name]
            if column.dtype != kind:  # a batch without any value
                column = np.full(len(column), "" if kind.kind == "O" else 0).astype(kind)
            columns.append(column)
        return np.concatenate(columns)

    def _table(self, tables: list[Any]) -> Any:
        if any(table is None for table in tables):
            return None
        table = arrow().concat_tables(tables, promote_options="default")
        chunked = table.num_columns and table.column(0).num_chunks > MOST_CHUNKS
        return table.combine_chunks() if chunked else table


def _plain(table: Any) -> Any:
    """Write dictionaries out: put together, they would hold all values that ever came."""
    if table is None:
        return None
    pa = arrow()
    for place, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(place, field.name, decoded(pa, table.column(place)))
    return table


def _all_missing(batch: Batch) -> bool:
    return batch.missing is not None and bool(batch.missing.all())
