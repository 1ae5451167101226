"""R of a join where it lies in a store: looked at once, read by the engine, never held whole."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from streamjoin.errors import InputError
from streamjoin.inputs.columns import numpy_arrivals
from streamjoin.inputs.files import require_columns
from streamjoin.inputs.strings import Strings
from streamjoin.relations import Projection, Relation, Store
from streamjoin.relations.base import Columns, Words
from streamjoin.tuples import Int64s, Rows, Stream
from streamjoin_common.language.arrivals import ArrivalColumn

MAX_POSITIONS = 1 << 31
"""Maximum positions of a relation, exclusive: results number rows with 32 bits."""

RANGE_ROWS = 1 << 16
SAMPLE_RANGES, SAMPLE_ROWS = 16, 128


@dataclass(frozen=True)
class StoredRelation:
    """What a join needs of a relation in a store.

    Attributes
    ----------
    relation : Relation
        Where it lies.
    columns : tuple of str
        The join columns.
    ts_column : str or None
        The arrival column, which tells a row's tumbling window; None where there is none.
    positions : int
        When it was first looked at.
    ts_unit : str or None
        Unit of arrival times that are integers; None is microseconds.
    """

    relation: Relation
    columns: tuple[str, ...]
    ts_column: str | None
    positions: int
    ts_unit: str | None = None

    @classmethod
    def of(cls, relation: Relation, columns: list[str], arrival: ArrivalColumn) -> "StoredRelation":
        """Look at a relation.

        Raises
        ------
        InputError, StoreError, UnavailableError
            If it cannot be opened, lacks a column, or has too many positions.
        """
        store = relation.open(Projection(row=relation.row, compared=tuple(columns)))
        try:
            known = require_columns(list(store.names), columns, arrival, relation.text)
            positions = store.positions
        finally:
            store.close()
        if positions >= MAX_POSITIONS:
            raise InputError(
                f"{relation.text}: {positions} positions; fewer than {MAX_POSITIONS} can be "
                "numbered"
            )
        return cls(relation, tuple(columns), known, positions, arrival.unit)

    def open(self, with_ts: bool) -> Store:
        """Open it for its join columns, and its arrival times where they matter."""
        arrival = (self.ts_column,) if with_ts and self.ts_column else ()
        compared = tuple(dict.fromkeys((*self.columns, *arrival)))
        return self.relation.open(Projection(row=self.relation.row, compared=compared))

    def stream(self) -> Stream:
        """Read all of it, as the oracle needs it: in the order of its arrival times."""
        return self._read(
            (first, min(first + RANGE_ROWS, self.positions))
            for first in range(0, self.positions, RANGE_ROWS)
        )

    def numbers(self, with_ts: bool) -> tuple[Int64s, Int64s]:
        """Read what all rows are called, and when they arrived if that matters; 0 otherwise."""
        numbers, times = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        store = self.open(with_ts)
        try:
            for first in range(0, self.positions, RANGE_ROWS):
                words, columns = store.columns(first, min(first + RANGE_ROWS, self.positions))
                name = self.ts_column if with_ts else None
                numbers.append(words.astype(np.int64))
                times.append(arrivals(columns, name, self.relation.text, len(words), self.ts_unit))
        finally:
            store.close()
        return np.concatenate(numbers), np.concatenate(times)

    def sample(self) -> tuple[Stream, float]:
        """Read some of it, from all over; and which share of its positions that is."""
        if self.positions <= SAMPLE_RANGES * SAMPLE_ROWS:
            return self.stream(), 1.0
        apart = self.positions // SAMPLE_RANGES
        firsts = range(0, apart * SAMPLE_RANGES, apart)
        sample = self._read((first, first + SAMPLE_ROWS) for first in firsts)
        return sample, SAMPLE_RANGES * SAMPLE_ROWS / self.positions

    def samples(self, rng: np.random.Generator, count: int) -> tuple[int, list[Stream]]:
        """Read blocks that are drawn, each anew from all; and say how many blocks there are."""
        blocks = -(-self.positions // SAMPLE_ROWS)
        firsts = rng.integers(0, max(1, blocks), count) * SAMPLE_ROWS
        parts = self._parts(
            (first, min(first + SAMPLE_ROWS, self.positions)) for first in firsts.tolist()
        )
        return blocks, [self._stream([part]) for part in parts]

    def _read(self, ranges: Iterable[tuple[int, int]]) -> Stream:
        return self._stream(self._parts(ranges))

    def _parts(self, ranges: Iterable[tuple[int, int]]) -> list[tuple[Words, Columns]]:
        store = self.open(with_ts=True)
        try:
            parts = [store.columns(first, end) for first, end in ranges]
            return parts or [store.columns(0, 0)]
        finally:
            store.close()

    def _stream(self, parts: list[tuple[Words, Columns]]) -> Stream:
        numbers: Words = np.concatenate([part[0] for part in parts])
        columns_read = {name: _joined([part[1][name] for part in parts]) for name in parts[0][1]}
        ts = arrivals(columns_read, self.ts_column, self.relation.text, len(numbers), self.ts_unit)
        order = np.argsort(ts, kind="stable")
        masks = [columns_read[name][1] for name in self.columns]
        present = [mask for mask in masks if mask is not None]
        missing = np.logical_or.reduce(present)[order] if present else None
        columns = {name: columns_read[name][0][order] for name in self.columns}
        source = self.relation.text
        return Stream(
            columns, ts[order], source, missing=missing, numbers=numbers[order].astype(np.int64)
        )


@dataclass(frozen=True, kw_only=True)
class StoredStream(Stream):
    """R where it is a relation in a store: at rest, nothing of it in memory.

    Attributes
    ----------
    store : StoredRelation
        The relation, with one row per position.
    """

    store: StoredRelation

    in_memory: ClassVar[bool] = False

    def __post_init__(self, in_order: bool) -> None:
        """Check nothing: a store checks what it reads."""

    def latest_ts(self, rows: Rows, ts: Int64s) -> Int64s:
        """Return the given arrival times: a relation at rest does not arrive."""
        return ts


def stored_stream(relation: Relation, columns: list[str], arrival: ArrivalColumn) -> StoredStream:
    """Let a stream stand for a relation in a store.

    Raises
    ------
    InputError, StoreError, UnavailableError
        As :meth:`StoredRelation.of`.
    """
    stored = StoredRelation.of(relation, columns, arrival)
    at_rest = np.broadcast_to(np.zeros(1, dtype=np.int64), (stored.positions,))
    return StoredStream({}, at_rest, relation.text, store=stored)


def arrivals(
    columns: Columns, name: str | None, source: str, rows: int, unit: str | None = None
) -> Int64s:
    """Arrival times of rows in microseconds; 0 where there is no such column.

    Raises
    ------
    InputError
        If the column holds no times, or lacks one.
    """
    if name is None:
        return np.zeros(rows, dtype=np.int64)
    values, missing = columns[name]
    if isinstance(values, Strings):
        values = values.objects()
    if missing is not None:
        values = np.ma.MaskedArray(values, missing)
    return numpy_arrivals(values, name, source, unit)


def _joined(parts: list[tuple[NDArray[Any] | Strings, NDArray[np.bool_] | None]]) -> Any:
    """Concatenate parts of a column."""
    values: Any
    if any(isinstance(part, Strings) and part.is_binary for part, _ in parts):
        values = Strings.joined([part for part, _ in parts])
    else:
        held = [part.objects() if isinstance(part, Strings) else part for part, _ in parts]
        values = np.concatenate(held)
    if all(mask is None for _, mask in parts):
        return values, None
    masks = [np.zeros(len(part), dtype=np.bool_) if mask is None else mask for part, mask in parts]
    return values, np.concatenate(masks)
