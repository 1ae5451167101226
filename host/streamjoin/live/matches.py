"""The result of a live join: the pairs of one round."""

from functools import cached_property
from typing import Any

import numpy as np

from streamjoin.live.payload import RowSource, as_table
from streamjoin.results import lookups
from streamjoin.results.rows import Joined
from streamjoin.tuples import Int64s, Rows


class Matches(Joined):
    """Pairs that a round has completed, and their joined rows. Dictionaries are written out.

    Attributes
    ----------
    r_rows, s_rows : ndarray of int64, shape (pairs,)
        Row numbers: the tuples of R and of S pushed before each pair's.
    ts : ndarray of int64, shape (pairs,)
        When the later tuple of each pair arrived, in microseconds; for a row of one side, the time
        of :doc:`docs/semantics`.
    """

    def __init__(
        self,
        how: str,
        tables: tuple[Any, Any],
        positions: tuple[Rows, Rows],
        named: tuple[Int64s, Int64s],
        ts: Int64s,
        *,
        offsets: tuple[int, int] = (0, 0),
    ) -> None:
        self._kind, self._tables, self._looked_up = how, tables, positions
        self._offsets = offsets
        (self.r_rows, self.s_rows), self.ts = named, ts

    @property
    def _ts(self) -> Int64s:
        return self.ts

    @property
    def _how(self) -> str:
        return self._kind

    @property
    def _title(self) -> str:
        return f"Matches: {len(self)} pairs"

    @property
    def _positions(self) -> tuple[Rows, Rows]:
        (_, r_rows), (_, s_rows) = self._sources
        return r_rows, s_rows

    def _lookup(self, side: str) -> lookups.Lookup:
        return lookups.in_memory(self._sources["rs".index(side)][0], side)

    @cached_property
    def _sources(self) -> list[tuple[Any, Rows]]:
        """For each side a table that holds its rows, and the pairs' rows in it."""
        sources: list[tuple[Any, Rows]] = []
        for table, rows, offset in zip(self._tables, self._looked_up, self._offsets, strict=True):
            if isinstance(table, RowSource):
                sources.append(table.holding(rows.astype(np.int64) + offset))
            else:
                sources.append((as_table(table), rows))
        return sources
