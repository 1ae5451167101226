"""Cache migration: which join values are joined in the cache (SSBJ, sections 3 and 3.1).

The paper's three states, each of a full cycle through R, and its eviction, decided between cycles.
A join value is in one of these states, and every cycle begins some:

1. *incrementing*: a join value that could pass the cache inequality becomes a value, and its rows
   of R are counted for a whole cycle. A few row numbers are kept while they are counted.
2. *switching*: at its start the inequality is decided once for each value, with the count. A value
   whose rows are kept is in the cache at once. Others get room for exactly the records that were
   counted, which are loaded as the cycle reads them.
3. *phase-out*: values whose rows have all been loaded are in the cache from now on; their stream
   tuples in H_S expire within this cycle.

Algorithm 1 decides anew for every row, while H_S changes; it could load a value in part. Here a
value is in the cache with all its rows of one cycle or not at all. Every later cycle checks this:
it refreshes records as it reads their rows, and a value whose rows have changed in number or order
leaves the cache at the end of the cycle.

Frequencies are averages that fade: a value's uses are decided at the end of every cycle.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.semi import migration, values
from streamjoin.engines.kernels.semi.layout import (
    ABSENT,
    BROKEN,
    CACHED,
    COUNTING,
    EVEN_TIMES,
    FORM_MASK,
    LOADING,
    MAX_USES,
    NUMBER,
    RECORDS,
    STATE_MASK,
    USE_LIMIT,
    USE_SCALE,
    USE_SHIFT,
    USES,
    VALUE_BYTES,
)
from streamjoin.engines.semi.tables import Tables

MIN_NODE_PAGES = 4
MIN_NODE_SHARE = 1 / 16
"""Minimum share of the arena's pages that the cache leaves to H_S."""

MAX_GAPS = 1 / 16
"""Maximum share of the cache's records that are gaps; beyond it they are closed."""

CHANCE_TUPLES = 2
"""Waiting tuples of a join value that may be chance: the inequality is decided with the others."""

EXTRA_SHARE = 3 / 8
"""Share of the free values that is left for the rows of the join values which get the others."""

USEFUL_SHARE = 1 / 8
"""Minimum share of the table of values that save twice their bytes, for the table to grow."""

GROWTH = 4
"""Values that the table grows by for each join value that got none: others follow, as the cache
lets more tuples in."""

NO_VALUES = -1


class Cache:
    """Moves join values between H_S and H_R.

    Parameters
    ----------
    tables : Tables
        Both tables.
    switching_factor : float
        The paper's hysteresis; 1 switches it off.
    eviction_cycles : int
        Cycles of which the uses of a value are averaged.

    Attributes
    ----------
    switched, evicted, broken : int
        Join values moved into the cache, and out of it for low frequency or for changes of R.
    """

    def __init__(self, tables: Tables, switching_factor: float, eviction_cycles: int) -> None:
        self._tables, self._factor = tables, switching_factor
        self._eviction_cycles = eviction_cycles
        self.start_uses = int(tables.numbers[USES + 1]) * eviction_cycles
        self._even_uses = USE_SCALE * eviction_cycles
        self._max_uses = min(EVEN_TIMES * self._even_uses, MAX_USES)
        tables.numbers[USE_LIMIT] = self._max_uses
        self.switched = self.evicted = self.broken = 0

    def new_cycle(self) -> None:
        """Migrate values between two cycles."""
        tables = self._tables
        useful = False
        if tables.free_values < len(tables.values):
            rows, whole = np.empty(len(tables.values), dtype=np.uint32), self._flags()
            values.survey(tables.shared, rows, whole)
            states = tables.states
            leaving = self._changed(states, whole)
            rare, useful = self._rare()
            self.evicted += int(np.count_nonzero(rare & ~leaving))
            leaving |= rare
            self._move_in(states == LOADING, whole, rows)
            leaving |= self._decide(states == COUNTING, rows)
            self._demote(np.flatnonzero(leaving))
            values.begin_cycle(tables.shared)
            self._close_gaps()
        self._nominate(useful)

    def wanted_pages(self) -> int:
        """Return the pages that the counting values will need if they pass.

        Their waiting tuples are those at the begin of the count, which costs no scan.
        """
        tables = self._tables
        if tables.free_values == len(tables.values):
            return 0
        recorded = tables.statuses & np.uint16(STATE_MASK | FORM_MASK) == COUNTING | RECORDS
        counting = np.flatnonzero(recorded)
        if not len(counting):
            return 0
        records = tables.values[counting, NUMBER]
        passing = self._pass(records, tables.statuses[counting] >> np.uint16(USE_SHIFT))
        needed = int(records[passing].sum())
        return min(-(-needed // tables.page_records), self._room_pages())

    def counts(self) -> dict[str, int]:
        """Return the join values and records in the cache."""
        states = self._tables.states
        cached = states == CACHED
        rows = np.empty(len(cached), dtype=np.uint32)
        values.survey(self._tables.shared, rows, self._flags())
        return {
            "values": int(np.count_nonzero(cached)),
            "records": int(rows[cached].sum()),
            "absent": int(np.count_nonzero(states == ABSENT)),
        }

    def _flags(self) -> NDArray[np.bool_]:
        return np.zeros(len(self._tables.values), dtype=np.bool_)

    def _changed(self, states: NDArray[Any], whole: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the values that differ from R."""
        held = (states == CACHED) | (states == ABSENT) | (states == LOADING)
        broken = held & ~whole
        self.broken += int(np.count_nonzero(broken))
        return np.asarray(broken)

    def _move_in(
        self, loading: NDArray[np.bool_], whole: NDArray[np.bool_], rows: NDArray[np.uint32]
    ) -> None:
        """Move loaded values in; they count as used before as often as when it was decided."""
        chosen = np.flatnonzero(loading & whole)
        nodes = self._tables.statuses[chosen] >> np.uint16(USE_SHIFT)
        self._enter(chosen, nodes, rows[chosen])

    def _enter(self, chosen: NDArray[Any], nodes: NDArray[Any], rows: NDArray[Any]) -> None:
        tables, statuses = self._tables, self._tables.statuses
        each = USE_SCALE * tables.node_bytes / self._cached_bytes(rows)
        if tables.inline_rows:
            by_rows = tables.numbers[USES + 1 : USES + 1 + tables.inline_rows].astype(np.float64)
            inline = (rows <= tables.inline_rows) & (rows > 0)
            each[inline] = by_rows[rows[inline] - 1]
        # Few enough to leave soon, and not to count as useful, if the waiting tuples were chance.
        few = np.minimum(nodes * each * self._eviction_cycles, 1.5 * self._even_uses)
        uses = few.astype(np.uint16)
        kept = statuses[chosen] & np.uint16(FORM_MASK)
        statuses[chosen] = kept | np.uint16(CACHED) | uses << np.uint16(USE_SHIFT)
        self.switched += len(chosen)

    def _rare(self) -> tuple[NDArray[np.bool_], bool]:
        """Apply the inequality with the average uses (lines 42 to 51).

        Returns also whether many values save twice the bytes that they take.
        """
        tables, rare = self._tables, self._flags()
        inside = (tables.states == CACHED) | (tables.states == ABSENT)
        uses = tables.statuses[inside] >> np.uint16(USE_SHIFT)
        useful = int(np.count_nonzero(uses > 2 * self._even_uses))
        few = min(int(self._even_uses / self._factor), self._max_uses - 1)
        values.age(self._eviction_cycles, few, tables.shared, rare)
        return rare, useful > USEFUL_SHARE * len(rare)

    def _decide(self, counting: NDArray[np.bool_], rows: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Apply the inequality with the counted rows; return the values that do not pass."""
        tables, leaving = self._tables, counting.copy()
        statuses = tables.statuses
        kept = counting & (statuses & np.uint16(FORM_MASK) != RECORDS)
        inline = np.flatnonzero(kept & (statuses & np.uint16(BROKEN) == 0))
        nodes = statuses[inline] >> np.uint16(USE_SHIFT)
        passed = self._pass(rows[inline], nodes)
        self._enter(inline[passed], nodes[passed], rows[inline[passed]])
        leaving[inline[passed]] = False
        counted = np.flatnonzero(counting & ~kept)
        if len(counted):
            leaving[self._switch(counted, rows[counted].astype(np.int64))] = False
        return leaving

    def _switch(self, counted: NDArray[Any], records: NDArray[np.int64]) -> NDArray[np.uint32]:
        """Give records to values that pass; those that save more memory precede."""
        tables = self._tables
        waiting = np.zeros(len(tables.values), dtype=np.uint32)
        migration.waiting_nodes(tables.shared, waiting)
        nodes = waiting[counted]
        passed = np.flatnonzero(self._pass(records, nodes))
        passed = passed[np.argsort(-(nodes[passed] / records[passed]), kind="stable")]
        needed = np.cumsum(records[passed])
        if not tables.grows:
            room = tables.record_pages_used * tables.page_records - tables.records
            max_records = room + self._room_pages() * tables.page_records
            needed = needed[: int(np.searchsorted(needed, max_records, side="right"))]
        given = tables.take_record_pages(int(needed[-1]) if len(needed) else 0)
        passed = passed[: int(np.searchsorted(needed, given, side="right"))]
        chosen = counted[passed].astype(np.uint32)
        tables.records = migration.reserve(
            chosen, records[passed].astype(np.uint32), nodes[passed], tables.records, tables.shared
        )
        return chosen

    def _nominate(self, useful: bool) -> None:
        """Start counting the rows of every join value that passes if it has a single row.

        The table of values grows if they are too few and many of those in the cache are useful.
        """
        tables = self._tables
        row_bytes = self._cached_bytes(np.ones(1, dtype=np.int64))[0]
        more_than = int(self._factor * row_bytes / tables.node_bytes) + CHANCE_TUPLES
        denied = migration.nominate(more_than, self._free_values(), tables.shared)
        while denied and tables.grows:
            tables.grow_values(max(denied, len(tables.values)))
            denied = migration.nominate(more_than, self._free_values(), tables.shared)
        if denied and useful:
            tables.grow_values(GROWTH * denied)

    def _free_values(self) -> int:
        """Return the values that join values may get."""
        free = self._tables.free_values
        return free - int(free * EXTRA_SHARE) if self._tables.inline_rows else free

    def _pass(self, records: NDArray[Any], nodes: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Return which values pass the cache inequality ``n * v_S > sf * m * v_R`` (theorem 2)."""
        disk_bytes = nodes.astype(np.int64) * self._tables.node_bytes
        passes = disk_bytes > self._factor * self._cached_bytes(records)
        return np.asarray(passes & (records > 0))

    def _cached_bytes(self, records: NDArray[Any]) -> NDArray[np.int64]:
        """Return what the rows of values take; a directory entry they have in H_S, too."""
        rows, inline = records.astype(np.int64), self._tables.inline_rows
        bytes_in_records = rows * self._tables.record_bytes + VALUE_BYTES
        return np.where(rows <= inline, np.maximum(rows, 1) * VALUE_BYTES, bytes_in_records)

    def _room_pages(self) -> int:
        """Return the pages that the cache may still take."""
        tables = self._tables
        kept = max(MIN_NODE_PAGES, int(tables.pages * MIN_NODE_SHARE))
        return max(0, tables.pages - kept - tables.record_pages_used)

    def _demote(self, chosen: NDArray[np.int64]) -> None:
        if len(chosen):
            migration.demote(chosen.astype(np.uint32), self._tables.shared)

    def _close_gaps(self) -> None:
        tables = self._tables
        if not tables.records:
            return
        held = (tables.states == CACHED) | (tables.states == LOADING)
        held &= tables.statuses & np.uint16(FORM_MASK) == RECORDS
        rows = np.empty(len(held), dtype=np.uint32)
        values.survey(tables.shared, rows, self._flags())
        chosen = np.flatnonzero(held)
        if tables.records - int(rows[chosen].sum()) <= MAX_GAPS * tables.records:
            return
        firsts = tables.values[chosen, NUMBER]
        order = chosen[np.argsort(firsts, kind="stable")].astype(np.uint32)
        tables.records = int(migration.compact(order, tables.shared))
        tables.give_back_record_pages()
