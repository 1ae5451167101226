"""Tuples of a live join by row, and what an index compares of them."""

import numpy as np

from streamjoin.engines.session import Arriving
from streamjoin.engines.sliding.flat.words import Words


class Buffers:
    """Tuples of one stream by row: those that may be live, and room behind them.

    Attributes
    ----------
    base : int
        Serial number of row 0.
    lacking : bool
        Whether a row may lack a value.
    order_codes : tuple of ndarray of uint32
        Codes by which those of a strip are ordered, and ranges of opposite ones: work space.
    """

    def __init__(self, rows: int, terms: int, ranged: bool) -> None:
        from streamjoin.engines.kernels.flat.live import NEVER

        self.ts = np.full(rows, NEVER, dtype=np.int64)
        self.numbers = np.zeros(rows, dtype=np.int64)
        # A tuple's words lie side by side, so that a check of several terms reads one cache line,
        # and so do the ends of what it meets; for one term each lies apart.
        self._held = [np.zeros((rows, terms), dtype=np.int64)]
        if ranged and terms > 1:
            self._held.append(np.zeros((rows, terms, 2), dtype=np.int64))
        elif ranged:
            self._held += [np.zeros((rows, terms), dtype=np.int64) for _ in range(2)]
        self.values = self.from_values = self.to_values = self._held[0].T
        if ranged and terms > 1:
            self.from_values, self.to_values = self._held[1][:, :, 0].T, self._held[1][:, :, 1].T
        elif ranged:
            self.from_values, self.to_values = (each.T for each in self._held[1:])
        self.keys, self.lows, self.highs = (np.zeros(rows, dtype=np.uint32) for _ in range(3))
        self.order_codes = tuple(np.empty(rows, dtype=np.uint32) for _ in range(3))
        self.missing = np.zeros(rows, dtype=np.bool_)
        self.base, self.rows, self.lacking = 0, rows, False

    def moved(self, first: int, end: int, rows: int) -> "Buffers":
        """Return buffers of so many rows that begin with some of these."""
        ranged = self.from_values is not self.values
        new, count = Buffers(rows, len(self.values), ranged), end - first
        for name in ("ts", "numbers", "missing", "keys", "lows", "highs"):
            getattr(new, name)[:count] = getattr(self, name)[first:end]
        for to, held in zip(new._held, self._held, strict=True):
            to[:count] = held[first:end]
        new.base, new.lacking = self.base + first, self.lacking
        return new

    def append(
        self, side: int, at: int, tuples: Arriving, columns: list[str], words: list[Words]
    ) -> tuple[int, bool]:
        """Append tuples of R or S, not coded yet; return where they end, and if one lacks a value.

        Parameters
        ----------
        side : int
            0 for R, 1 for S.
        at : int
            Row of the first.
        tuples : Arriving
        columns : list of str
            Each term's column.
        words : list of Words
            The terms.
        """
        end, missing = at + len(tuples.ts), tuples.missing
        if end - at == 1:  # a number takes less time than an array of one
            self.ts[at], self.numbers[at] = tuples.ts[0], tuples.numbers[0]
        else:
            self.ts[at:end] = tuples.ts
            self.numbers[at:end] = tuples.numbers
        for term, name in enumerate(columns):
            values = self.values[term]
            lows, highs = values, values
            if self.from_values is not self.values:
                lows, highs = self.from_values[term], self.to_values[term]
            lost = words[term].write(side, tuples.columns[name], (values, lows, highs), at)
            if lost is not None:
                missing = lost if missing is None else missing | lost
        if missing is not None:
            self.lacking = True
            self.missing[at:end] = missing
        elif self.lacking:
            self.missing[at:end] = False
        return end, missing is not None
