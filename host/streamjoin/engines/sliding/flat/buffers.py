"""Tuples of a live join by row, and what an index compares of them."""

import copy
import math

import numpy as np

from streamjoin.engines.session import Arriving
from streamjoin.engines.sliding.flat.words import Words
from streamjoin.memory import aligned_words
from streamjoin.tuples import Int64s


class Buffers:
    """Tuples of one stream by row: those that may be live, and room behind them.

    Attributes
    ----------
    base : int
        Serial number of row 0.
    lacking : bool
        Whether a row may lack a value.
    """

    def __init__(self, rows: int, terms: int, ranged: bool) -> None:
        from streamjoin.engines.kernels.flat.live import NEVER

        self.ts = np.full(rows, NEVER, dtype=np.int64)
        self.numbers = np.zeros(rows, dtype=np.int64)
        # A tuple's words lie side by side, so that a check of several terms reads one cache line,
        # and so do the ends of what it meets; for one term each lies apart.
        self._held = [_words(rows, terms)]
        if ranged and terms > 1:
            self._held.append(_words(rows, terms, 2))
        elif ranged:
            self._held += [_words(rows, terms) for _ in range(2)]
        self.values = self.from_values = self.to_values = self._held[0].T
        if ranged and terms > 1:
            self.from_values, self.to_values = self._held[1][:, :, 0].T, self._held[1][:, :, 1].T
        elif ranged:
            self.from_values, self.to_values = (each.T for each in self._held[1:])
        self.keys, self.lows, self.highs = (np.zeros(rows, dtype=np.uint32) for _ in range(3))
        self.missing = np.zeros(rows, dtype=np.bool_)
        self._by_row = [
            self.ts, self.numbers, self.missing, self.keys, self.lows, self.highs, *self._held
        ]  # fmt: skip
        self.base, self.rows, self.lacking = 0, rows, False

    def moved(self, first: int, end: int, rows: int) -> "Buffers":
        """Return buffers of so many rows that begin with some of these."""
        ranged = self.from_values is not self.values
        new, count = Buffers(rows, len(self.values), ranged), end - first
        for to, held in zip(new._by_row, self._by_row, strict=True):
            to[:count] = held[first:end]
        new.base, new.lacking = self.base + first, self.lacking
        return new

    def slid(self, first: int, end: int) -> "Buffers":
        """Return the same memory as buffers that begin with some of these rows.

        They are copied over rows before them, at least as many, so that these buffers still hold
        them until :meth:`clear_behind` of the new ones.
        """
        for held in self._by_row:
            held[: end - first] = held[first:end]
        new = copy.copy(self)
        new.base = self.base + first
        return new

    def clear_behind(self, end: int) -> None:
        """Forget the rows from one on."""
        from streamjoin.engines.kernels.flat.live import NEVER

        self.ts[end:] = NEVER

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


def _words(*shape: int) -> Int64s:
    """Return zeros; those of a tuple lie in as few cache lines as they can."""
    return aligned_words(2 * math.prod(shape)).view(np.int64).reshape(shape)
