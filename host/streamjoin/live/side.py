"""One stream of a live join: its waiting tuples and its window."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.arrivals import first_live
from streamjoin.errors import InputError
from streamjoin.inputs.agreement import Types, holds_nothing, no_values
from streamjoin.inputs.batches import Batch, as_batch
from streamjoin.inputs.columns import check_times, column_kind
from streamjoin.inputs.decimals import common_type, is_decimal, rescaled
from streamjoin.inputs.lateness import LONG_AGO, beyond, in_order
from streamjoin.inputs.strings import Strings
from streamjoin.live.held import Book, Held, Owed, State
from streamjoin.live.layout import Layout
from streamjoin.live.payload import (
    Payload,
    Rows,
    as_table,
    concatenated,
    fitted,
    joined_rows,
    own_table,
)
from streamjoin.live.quick import Form
from streamjoin.tuples import Clock, Int64s
from streamjoin_common.language.arrivals import ArrivalColumn
from streamjoin_common.language.durations import MAX_US
from streamjoin_common.language.windows import Window

MAX_WINDOW_CHUNKS = 64
"""Maximum chunks of a window's Arrow table; beyond them they are copied into one."""

MAX_PARTS = 64
"""Maximum parts in which tuples wait; beyond them they are copied into one."""


class Side:
    """One stream.

    Parameters
    ----------
    name : str
        Name in error messages.
    columns : list of str
        The join columns.
    arrival : ArrivalColumn
        The arrival column.
    lateness_us : int or None
        Maximum lateness of tuples; None refuses arrival times that decrease.
    book : Book
        Holds its state.

    Attributes
    ----------
    late_us : int
        Maximum lateness, 0 if none is allowed.
    promised_us : int
        No tuple arrives before, as advance() said.
    form : Form or None
        Of batches that take the short way.
    """

    def __init__(
        self,
        name: str,
        columns: list[str],
        arrival: ArrivalColumn,
        lateness_us: int | None,
        book: Book,
    ) -> None:
        self.name, self._columns, self._arrival = name, columns, arrival
        self._book, self._number = book, "rs".index(name)
        self.late_us = lateness_us or 0
        self._lateness_us = lateness_us
        self.promised_us = LONG_AGO
        self.form: Form | None = None
        self._clock = Clock()

    @property
    def state(self) -> State:
        """What it holds."""
        return self._book.now.sides[self._number]

    @property
    def waiting(self) -> int:
        """Tuples that were pushed and not joined yet."""
        return sum(len(held.ts) for held in self.state.waiting)

    @property
    def live(self) -> int:
        """Tuples that the window holds."""
        if self.state.payload is not None:
            return self.state.payload.end - self.state.payload.first
        return 0 if self.state.window is None else len(self.state.window.ts)

    @property
    def frontier_us(self) -> int:
        """Time before which no further tuple arrives."""
        return self._book.now.sides[self._number].newest_us - self.late_us

    def read(self, data: Any) -> Batch:
        """Copy the data that a user pushes.

        Of Arrow tables only the join columns are copied: nothing writes to the tables.

        Raises
        ------
        InputError
            If it cannot be read.
        """
        batch = None if self.form is None else self.form.read(data)
        if batch is not None:
            return batch
        if isinstance(data, str | Path):
            raise InputError(
                f"{self.name}: a live join takes no files: read it first, for example with "
                "pyarrow.parquet.read_table"
            )
        arrival = self._arrival
        if self.state.pushed:  # only a stream's first batch shows where its times start
            arrival = replace(arrival, unit=arrival.unit or "us")
        batch = as_batch(data, self._columns, arrival, self.name)
        check_times(batch.columns, self.name)
        self._clock = batch.clock
        missing = None if batch.missing is None else batch.missing.copy()
        if holds_nothing(batch.columns, batch.missing):
            missing = np.ones(batch.rows, dtype=np.bool_)
        return batch._replace(
            columns={name: column.copy() for name, column in batch.columns.items()},
            ts=None if batch.ts is None else batch.ts.copy(),
            missing=missing,
            table=own_table(batch.table, data),
        )

    def learn(self, data: Any, batch: Batch) -> None:
        """Take batches like one that was pushed the short way from now on."""
        if self.form is None and self._lateness_us is None:
            self.form = Form.of(data, batch, self._columns, self._arrival, self.state.layout)

    def declared(self, batch: Batch) -> State:
        """Return the state with the columns of a batch without rows, until one has rows."""
        if self.state.pushed or batch.table is None:
            return self.state
        return self.state._replace(layout=Layout.of(as_table(batch.table)))

    def pushed(self, batch: Batch, ts: Int64s) -> State:
        """Return the state with a batch that was read, which waits until it can be joined.

        Raises
        ------
        InputError
            If columns or a column's type change, or arrival times decrease and no lateness was
            given.
        """
        state = self.state
        held = Held(batch, ts, np.arange(state.pushed, state.pushed + batch.rows))
        late = 0
        if type(batch.table) is Rows and ts[0] >= state.newest_us:  # read the short way
            pushed, dropped, _, types, layout, waiting = state[:6]
            waiting = (*self._few_waiting(), held) if waiting else (held,)
            newest_us = int(ts[-1])
            return State(
                pushed + batch.rows, dropped, newest_us, types, layout, waiting, *state[6:]
            )
        if self._lateness_us is None:
            self._refuse_back(ts)
        else:
            beyond_it = beyond(ts, self._lateness_us, state.newest_us)
            late = int(beyond_it.sum())
            held = held.take(np.flatnonzero(~beyond_it)) if late else held
        return state._replace(
            pushed=state.pushed + batch.rows,
            late=state.late + late,
            newest_us=max(state.newest_us, int(ts.max(initial=LONG_AGO))),
            types=self._types_with(batch),
            layout=self._layout_with(as_table(batch.table)),
            waiting=(*self._few_waiting(), held) if len(held.ts) else state.waiting,
        )

    def _few_waiting(self) -> tuple[Held, ...]:
        """Return the tuples that wait, in few parts."""
        waiting, types = self.state.waiting, self.state.types
        if len(waiting) < MAX_PARTS or types is None:
            return waiting
        return (self._together(list(waiting), types),)

    def _refuse_back(self, ts: Int64s) -> None:
        before = np.concatenate([[self.state.newest_us], ts])[:-1]
        back = np.flatnonzero(ts < before)
        if not back.size:
            return
        row, clock = int(back[0]), self._clock
        if ts[row] < self.promised_us:
            raise InputError(
                f"{self.name}: {clock.column} is {clock.shown(ts[row])} at row "
                f"{self.state.pushed + row}, and advance({self.promised_us}) said that no such "
                "tuple will arrive"
            )
        raise InputError(
            f"{self.name}: {clock.back(self.state.pushed + row, before[row], ts[row])}: "
            f"push in order of {clock.column}, or give a lateness{clock.otherwise}"
        )

    def _types_with(self, batch: Batch) -> Types | None:
        if _all_missing(batch):
            return self.state.types
        types = {name: column.dtype for name, column in batch.columns.items()}
        for name, before in (self.state.types or {}).items():
            if is_decimal(types[name]) and is_decimal(before):
                types[name] = common_type(types[name], before)
            elif types[name] != before:
                now, then = (_named(each, name, self.name) for each in (types[name], before))
                raise InputError(
                    f"{self.name}: column {name!r} is {now} in this batch and was {then} in the "
                    f"batches before: cast all batches to one type"
                )
        return self.state.types if types == self.state.types else types

    def _layout_with(self, table: Any) -> Layout | None:
        before = self.state.layout
        if table is None:
            return before
        if before is None or not self.state.pushed:  # a batch without rows fixes nothing
            return Layout.of(table)
        return before.with_table(table, self.name)

    def reached(self, ts_us: int, state: State | None = None) -> State:
        """Return a state in which no tuple with an earlier arrival time can arrive."""
        state = state or self.state
        newest_us = min(max(state.newest_us, ts_us + self.late_us), MAX_US)
        if newest_us == state.newest_us:
            return state
        return State(state.pushed, state.late, newest_us, *state[3:])

    def ready(self, last_us: int, types: Types) -> "Held | None":
        """Return the waiting tuples that arrived by a time, in arrival order; they stay waiting."""
        waiting = self.state.waiting
        if not waiting:
            return None
        if self._lateness_us is None:
            count = 0
            for held in waiting:
                if held.ts[-1] > last_us:
                    break
                count += 1
            if count == len(waiting) or waiting[count].ts[0] > last_us:
                return self._as_one(waiting[:count], types) if count else None
        together = self._as_one(waiting, types)
        order = None if self._lateness_us is None else in_order(together.ts)
        if order is not None:
            together = together.take(order)
        sides = list(self._book.now.sides)
        sides[self._number] = sides[self._number]._replace(waiting=(together,))
        self._book.turn(sides=tuple(sides))
        count = int(np.searchsorted(together.ts, last_us, side="right"))
        return together.take(slice(0, count)) if count else None

    def _as_one(self, parts: tuple[Held, ...], types: Types) -> Held:
        """Return tuples in one part with columns of these types."""
        if len(parts) == 1 and _has_types(parts[0], types):
            return parts[0]
        return self._together(list(parts), types)

    def joining(self, arriving: "Held | None", types: Types) -> Held:
        """Append arriving tuples to those of the window."""
        parts = [held for held in (self.state.window, arriving) if held is not None]
        if parts:
            return self._together(parts, types)
        nothing = {name: np.empty(0, dtype) for name, dtype in types.items()}
        times, table = np.empty(0, np.int64), fitted([], self.state.layout)
        return Held(Batch(nothing, None, 0, None, table), times, times)

    def next_us(self, arriving: "Held | None") -> int:
        """Return the first time of those that wait behind these, the greatest integer if none."""
        rest = _behind(self.state.waiting, 0 if arriving is None else len(arriving.ts))
        return int(rest[0].ts[0]) if rest else int(np.iinfo(np.int64).max)

    def owes(self, how: str) -> bool:
        """Say whether rows are still to come of this side alone."""
        window = self.state.window
        undecided = window is not None and window.met is not None and not window.met.all()
        return self.state.owed is not None or (undecided and how != "semi")

    def with_owed(
        self, joined: Held, positions: Int64s, times: Int64s
    ) -> tuple[Held, Int64s, Int64s]:
        """Append the tuples that are owed; return all, and positions and times of all rows."""
        owed = self.state.owed
        if owed is None:
            return joined, positions, times
        types = {name: column.dtype for name, column in joined.batch.columns.items()}
        before = len(joined.ts) + np.arange(len(owed.times))
        return (
            self._together([joined, owed.held], types),
            np.concatenate([before, positions]),
            np.concatenate([owed.times, times]),
        )

    def _together(self, parts: list[Held], types: Types) -> Held:
        """Concatenate tuples, with columns of these types."""
        batches = [held.batch for held in parts]
        columns = {
            name: concatenated([_typed(batch, name, dtype) for batch in batches])
            for name, dtype in types.items()
        }
        missing = None
        if any(batch.missing is not None for batch in batches):
            missing = concatenated(
                [
                    np.zeros(batch.rows, np.bool_) if batch.missing is None else batch.missing
                    for batch in batches
                ]
            )
        met = None
        if any(held.met is not None for held in parts):
            met = concatenated([held.bits for held in parts])
        ts = concatenated([held.ts for held in parts])
        table = self._table([batch.table for batch in batches])
        numbers = concatenated([held.numbers for held in parts])
        return Held(Batch(columns, None, len(ts), missing, table), ts, numbers, met)

    def _table(self, tables: list[Any]) -> Any:
        rows = joined_rows(tables)
        if rows is not None:
            return rows
        table = fitted(tables, self.state.layout)
        many = table is not None and table.num_columns and table[0].num_chunks > MAX_WINDOW_CHUNKS
        return table.combine_chunks() if many else table


def after(
    state: State,
    arriving: "Held | None",
    window: "Held | None",
    owed: Owed | None,
    payload: Payload | None = None,
) -> State:
    """Return the state once these tuples have been joined, with what is kept of them."""
    pushed, late, newest_us, types, layout, waiting = state[:6]
    if arriving is not None:
        waiting = _behind(waiting, len(arriving.ts))
    elif payload is not None and payload is state.payload:
        return state
    return State(pushed, late, newest_us, types, layout, waiting, window, owed, payload)


def first_in_window(held: Held, now_us: int, window: Window, of_r: bool) -> int:
    """Return the position of the first tuple that is in the window at a time."""
    if not len(held.ts):
        return 0
    ends = np.array([len(held.ts)])
    return int(first_live(held.ts, np.array([now_us]), ends, window, of_r).item())


def _behind(waiting: tuple[Held, ...], count: int) -> tuple[Held, ...]:
    """Return what waits behind the first ``count`` tuples."""
    if len(waiting) == 1 and count == len(waiting[0].ts):
        return ()
    parts = 0
    while count and count >= len(waiting[parts].ts):
        count -= len(waiting[parts].ts)
        parts += 1
    rest = waiting[parts:]
    return (rest[0].take(slice(count, len(rest[0].ts))), *rest[1:]) if count else rest


def _has_types(held: Held, types: Types) -> bool:
    """Say whether the columns of tuples are of these types."""
    columns = held.batch.columns
    for name, dtype in types.items():
        kind = columns[name].dtype
        if kind is not dtype and kind != dtype:
            return False
    return True


def _typed(batch: Batch, name: str, dtype: "np.dtype[Any]") -> NDArray[Any] | Strings:
    """Convert a column to a type; a column of another type has no values."""
    column = batch.columns[name]
    if isinstance(column, np.ndarray) and is_decimal(column.dtype) and is_decimal(dtype):
        digits, lost = rescaled(column, dtype)
        if (lost if batch.missing is None else lost & ~batch.missing).any():
            raise InputError("decimals of scales so different do not fit into 256 bits: cast them")
        return digits
    return column if column.dtype == dtype else no_values(len(column), dtype)


def _named(dtype: "np.dtype[Any]", column: str, source: str) -> str:
    """Return what errors call a join column's type."""
    return str(dtype) if dtype.kind in "iufmM" else column_kind(dtype, column, source)


def _all_missing(batch: Batch) -> bool:
    return batch.missing is not None and bool(batch.missing.all())
