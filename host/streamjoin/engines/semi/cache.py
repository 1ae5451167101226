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

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.semi import migration
from streamjoin.engines.kernels.semi.layout import (
    ABSENT,
    CACHED,
    COUNTING,
    FIRST,
    LOADING,
    NODES,
    RECORDS,
    SEEN,
    SINCE,
    STATE,
    USES,
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
            self._evict(cycle)
        if phase == SWITCHING:
            self._decide()
        if phase == INCREMENTING:
            self._nominate()
        self._close_gaps()

    def wanted_pages(self) -> int:
        """Return the pages that the counting values will need if they pass."""
        values = self._tables.values
        if self._tables.free_values == len(values):
            return 0
        counting = values[values[:, STATE] == COUNTING]
        records = int(counting[self._pass(counting), RECORDS].sum())
        return min(-(-records // self._tables.page_records), self._room_pages())

    def counts(self) -> dict[str, int]:
        """Return the join values and records in the cache."""
        values = self._tables.values
        cached = values[:, STATE] == CACHED
        return {
            "values": int(np.count_nonzero(cached)),
            "records": int(values[cached, RECORDS].sum()),
            "absent": int(np.count_nonzero(values[:, STATE] == ABSENT)),
        }

    def _check_complete(self) -> None:
        """Evict values that differ from R; start a new count of their rows."""
        values = self._tables.values
        cached = values[:, STATE] == CACHED
        wrong = cached & (values[:, SEEN] != values[:, RECORDS])
        wrong |= (values[:, STATE] == ABSENT) & (values[:, SEEN] != 0)
        self.broken += self._demote(np.flatnonzero(wrong))
        self._tables.values[cached, SEEN] = 0

    def _move_in(self, cycle: int) -> None:
        values = self._tables.values
        loading = values[:, STATE] == LOADING
        whole = loading & (values[:, SEEN] == values[:, RECORDS])
        values[whole, STATE] = CACHED
        values[whole, USES] = values[whole, SEEN] = 0
        values[whole, SINCE] = cycle
        self.switched += int(np.count_nonzero(whole))
        self.broken += self._demote(np.flatnonzero(loading & ~whole))

    def _evict(self, cycle: int) -> None:
        """Apply the inequality with the counted frequency (lines 42 to 51)."""
        values = self._tables.values
        inside = (values[:, STATE] == CACHED) | (values[:, STATE] == ABSENT)
        inside &= values[:, SINCE] < cycle
        cycles = np.maximum(1, cycle - values[:, SINCE].astype(np.int64))
        disk_bytes = values[:, USES] / cycles * self._tables.node_bytes
        rare = self._cached_bytes(values) >= self._factor * disk_bytes
        self.evicted += self._demote(np.flatnonzero(inside & rare))
        kept = np.flatnonzero(inside & ~rare)
        values[kept, USES] = 0
        values[kept, SINCE] = cycle

    def _decide(self) -> None:
        """Apply the inequality with the counted rows; values that save more memory precede."""
        tables = self._tables
        values = tables.values
        counted = np.flatnonzero(values[:, STATE] == COUNTING)
        passed = counted[self._pass(values[counted])]
        saving = values[passed, NODES] / values[passed, RECORDS]
        passed = passed[np.argsort(-saving, kind="stable")]
        records = values[passed, RECORDS].astype(np.int64)
        needed = np.cumsum(records)
        if not tables.grows:
            room = tables.record_pages_used * tables.page_records - tables.records
            max_records = room + self._room_pages() * tables.page_records
            needed = needed[: int(np.searchsorted(needed, max_records, side="right"))]
        wanted = int(needed[-1]) if len(needed) else 0
        given = tables.take_record_pages(wanted)
        fitting = int(np.searchsorted(needed, given, side="right"))
        chosen = passed[:fitting]
        values = tables.values
        values[chosen, STATE] = LOADING
        values[chosen, SEEN] = 0
        values[chosen, FIRST] = tables.records + needed[:fitting] - records[:fitting]
        tables.records += int(needed[fitting - 1]) if fitting else 0
        self._demote(np.setdiff1d(counted, chosen))
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

    def _pass(self, values: NDArray[np.uint32]) -> NDArray[np.bool_]:
        """Return which values pass the cache inequality ``n * v_S > sf * m * v_R`` (theorem 2)."""
        disk_bytes = values[:, NODES].astype(np.int64) * self._tables.node_bytes
        passes = disk_bytes > self._factor * self._cached_bytes(values)
        return np.asarray(passes & (values[:, RECORDS] > 0))

    def _cached_bytes(self, values: NDArray[np.uint32]) -> NDArray[np.int64]:
        return values[:, RECORDS].astype(np.int64) * self._tables.record_bytes + VALUE_BYTES

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
        values = tables.values
        held = np.flatnonzero((values[:, STATE] == CACHED) | (values[:, STATE] == LOADING))
        used = int(values[held, RECORDS].sum())
        if tables.records - used <= MAX_GAPS * tables.records:
            return
        order = held[np.argsort(values[held, FIRST], kind="stable")].astype(np.uint32)
        tables.records = int(migration.compact(order, tables.shared))
        tables.give_back_record_pages()
