"""Cache migration: which join values are joined in the cache (SSBJ, sections 3 and 3.1).

The paper's three states, each of a full cycle through R, and its eviction, decided between cycles:

1. *incrementing*: every join value that could pass the cache inequality becomes a value, and its
   rows of R are counted for a whole cycle.
2. *switching*: at its start the inequality is decided once for each value, with the count; values
   that pass get room for exactly these records, which are loaded as the cycle reads them.
3. *phase-out*: values whose rows have all been loaded are in the cache from now on; their stream
   tuples in H_S expire within this cycle.

Algorithm 1 decides anew for every row, while H_S changes; it could load a value in part. Here a
value is in the cache with all its rows of one cycle or not at all. Every later cycle checks this:
it refreshes records as it reads their rows, and a value whose rows have changed in number or order
leaves the cache at the end of the cycle.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.semi import migration
from streamjoin.engines.kernels.semi.layout import (
    ABSENT,
    BROKEN,
    CACHED,
    COUNTING,
    LOADING,
    MAX_USES,
    NUMBER,
    STATE_MASK,
    STATUS,
    USE_SHIFT,
    VALUE_BYTES,
)
from streamjoin.engines.semi.tables import Tables

INCREMENTING, SWITCHING, PHASE_OUT = 1, 2, 0
"""Remainders of the cycle's number by 3."""

MIN_NODE_PAGES = 4
MIN_NODE_SHARE = 1 / 16
"""Minimum share of the arena's pages that the cache leaves to H_S."""

MAX_GAPS = 1 / 8
"""Maximum share of the cache's records that are gaps; beyond it they are closed."""

Chosen = NDArray[np.uint32]


class Cache:
    """Moves join values between H_S and H_R.

    Parameters
    ----------
    tables : Tables
        Both tables.
    switching_factor : float
        The paper's hysteresis; 1 switches it off.
    eviction_cycles : int
        Cycles between two evictions.

    Attributes
    ----------
    switched, evicted, broken : int
        Join values moved into the cache, and out of it for low frequency or for changes of R.
    """

    def __init__(self, tables: Tables, switching_factor: float, eviction_cycles: int) -> None:
        self._tables, self._factor = tables, switching_factor
        self._eviction_cycles = eviction_cycles
        self._denied = 0
        self.switched = self.evicted = self.broken = 0

    def new_cycle(self, cycle: int) -> None:
        """Migrate values between two cycles; ``cycle`` is the number of the one that begins."""
        self._tables.reclaim_pages()
        phase = cycle % 3
        if self._tables.free_values == len(self._tables.values):
            if phase == INCREMENTING:
                self._nominate()
            return
        self._check_complete()
        if phase == PHASE_OUT:
            self._move_in(cycle)
        if cycle % self._eviction_cycles == 0:
            self._evict()
        if phase == SWITCHING:
            self._decide()
        if phase == INCREMENTING:
            self._nominate()
        self._close_gaps()

    def elapsed(self, cycle: int) -> int:
        """Return the cycles since the last eviction."""
        return cycle % self._eviction_cycles

    def wanted_pages(self) -> int:
        """Return the pages that the counting values will need if they pass.

        Their waiting tuples are those at the begin of the count, which costs no scan.
        """
        tables = self._tables
        if tables.free_values == len(tables.values):
            return 0
        counting = np.flatnonzero(tables.states == COUNTING)
        if not len(counting):
            return 0
        records = tables.values[counting, NUMBER]
        passing = self._pass(records, tables.values[counting, STATUS] >> USE_SHIFT)
        needed = int(records[passing].sum())
        return min(-(-needed // tables.page_records), self._room_pages())

    def counts(self) -> dict[str, int]:
        """Return the join values and records in the cache."""
        states = self._tables.states
        cached = states == CACHED
        return {
            "values": int(np.count_nonzero(cached)),
            "records": int(self._survey()[0][cached].sum()),
            "absent": int(np.count_nonzero(states == ABSENT)),
        }

    def _survey(self) -> tuple[NDArray[np.uint32], NDArray[np.bool_]]:
        """Return the records of every value, and whether this cycle has read exactly its rows."""
        count = len(self._tables.values)
        records, whole = np.empty(count, dtype=np.uint32), np.empty(count, dtype=np.bool_)
        migration.survey(self._tables.shared, records, whole)
        return records, whole

    def _waiting(self) -> NDArray[np.uint32]:
        """Return the tuples that wait in H_S, for each value."""
        nodes = np.zeros(len(self._tables.values), dtype=np.uint32)
        migration.waiting_nodes(self._tables.shared, nodes)
        return nodes

    def _check_complete(self) -> None:
        """Evict values that differ from R; start a new count of their rows."""
        states = self._tables.states
        wrong = ((states == CACHED) | (states == ABSENT)) & ~self._survey()[1]
        self.broken += self._demote(np.flatnonzero(wrong))
        migration.begin_cycle(self._tables.shared)

    def _move_in(self, cycle: int) -> None:
        """Move loaded values in; they count as used before as often as when it was decided."""
        values, loading = self._tables.values, self._tables.states == LOADING
        whole = loading & self._survey()[1]
        uses = (values[whole, STATUS] >> USE_SHIFT).astype(np.int64)
        uses = np.minimum(uses * (self.elapsed(cycle) or self._eviction_cycles), MAX_USES)
        values[whole, STATUS] = uses << USE_SHIFT | CACHED
        self.switched += int(np.count_nonzero(whole))
        self.broken += self._demote(np.flatnonzero(loading & ~whole))
        migration.begin_cycle(self._tables.shared)

    def _evict(self) -> None:
        """Apply the inequality with the counted frequency (lines 42 to 51)."""
        values, states = self._tables.values, self._tables.states
        inside = (states == CACHED) | (states == ABSENT)
        uses = values[:, STATUS] >> USE_SHIFT
        disk_bytes = uses / self._eviction_cycles * self._tables.node_bytes
        rare = self._cached_bytes(self._survey()[0]) >= self._factor * disk_bytes
        self.evicted += self._demote(np.flatnonzero(inside & rare))
        values[inside & ~rare, STATUS] &= STATE_MASK | BROKEN

    def _decide(self) -> None:
        """Apply the inequality with the counted rows; values that save more memory precede."""
        tables = self._tables
        counted = np.flatnonzero(tables.states == COUNTING)
        records = tables.values[counted, NUMBER].astype(np.int64)
        nodes = self._waiting()[counted]
        passed = np.flatnonzero(self._pass(records, nodes))
        passed = passed[np.argsort(-(nodes[passed] / records[passed]), kind="stable")]
        needed = np.cumsum(records[passed])
        if not tables.grows:
            room = tables.record_pages_used * tables.page_records - tables.records
            max_records = room + self._room_pages() * tables.page_records
            needed = needed[: int(np.searchsorted(needed, max_records, side="right"))]
        wanted = int(needed[-1]) if len(needed) else 0
        given = tables.take_record_pages(wanted)
        fitting = int(np.searchsorted(needed, given, side="right"))
        passed = passed[:fitting]
        chosen = counted[passed].astype(np.uint32)
        self._demote(np.setdiff1d(counted, chosen))
        tables.records = migration.reserve(
            chosen, records[passed].astype(np.uint32), nodes[passed], tables.records, tables.shared
        )
        if self._denied and 2 * len(chosen) > len(
            counted
        ):  # more than half passed, so not by chance
            tables.grow_values(self._denied)

    def _nominate(self) -> None:
        """Start counting the rows of every join value that passes if it has a single row."""
        tables = self._tables
        max_nodes = self._factor * (tables.record_bytes + VALUE_BYTES) / tables.node_bytes
        self._denied = migration.nominate(int(max_nodes), tables.shared)
        while self._denied and tables.grows:
            tables.grow_values(max(self._denied, len(tables.values)))
            self._denied = migration.nominate(int(max_nodes), tables.shared)

    def _pass(self, records: NDArray[Any], nodes: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Return which values pass the cache inequality ``n * v_S > sf * m * v_R`` (theorem 2)."""
        disk_bytes = nodes.astype(np.int64) * self._tables.node_bytes
        passes = disk_bytes > self._factor * self._cached_bytes(records)
        return np.asarray(passes & (records > 0))

    def _cached_bytes(self, records: NDArray[Any]) -> NDArray[np.int64]:
        return records.astype(np.int64) * self._tables.record_bytes + VALUE_BYTES

    def _room_pages(self) -> int:
        """Return the pages that the cache may still take."""
        tables = self._tables
        kept = max(MIN_NODE_PAGES, int(tables.pages * MIN_NODE_SHARE))
        return max(0, tables.pages - kept - tables.record_pages_used)

    def _demote(self, chosen: NDArray[np.int64]) -> int:
        if len(chosen):
            migration.demote(chosen.astype(np.uint32), self._tables.shared)
        return len(chosen)

    def _close_gaps(self) -> None:
        tables = self._tables
        held = np.flatnonzero((tables.states == CACHED) | (tables.states == LOADING))
        used = int(self._survey()[0][held].sum())
        if tables.records - used <= MAX_GAPS * tables.records:
            return
        firsts = tables.values[held, NUMBER]
        order = held[np.argsort(firsts, kind="stable")].astype(np.uint32)
        tables.records = int(migration.compact(order, tables.shared))
        tables.give_back_record_pages()
