"""Codes by which a live join indexes its tuples, chosen anew where values leave their range.

One index serves a predicate of any terms: by a hash of all that must be equal, or by one band, in
the order of its words. Which one is left to a sample of both windows: the one that the fewest pairs
satisfy. The other terms are checked.
"""

import functools
from typing import Any

import numpy as np

from streamjoin.engines.sliding.flat.buffers import Buffers
from streamjoin.engines.sliding.flat.words import Words

CODE_BITS = 32

HASHED = -1
"""Index by the equalities, rather than by the band of that number."""

SAMPLED = 1 << 10
"""Maximum tuples of each window by which the index is chosen."""

BETTER = 2
"""The index is chosen anew where so many times fewer pairs satisfy another choice."""


class Coding:
    """Codes of a predicate.

    Parameters
    ----------
    words : list of Words
        The terms.
    """

    def __init__(self, words: list[Words]) -> None:
        self._words, terms = words, range(len(words))
        self._equal = np.array([term for term in terms if words[term].equal], dtype=np.int64)
        self._choices = [term for term in terms if not words[term].equal]
        self.ranged = bool(self._choices)
        if len(self._equal):
            self._choices.insert(0, HASHED)
        self._mixed = len(self._equal) > 1
        self._term = self._choices[0]
        self._forget()

    def _forget(self) -> None:
        self._lowest, self._highest = 1 << 63, -(1 << 63)
        self._base, self._top, self._shift = 0, -1, 0

    @property
    def hashed(self) -> bool:
        """Whether codes have no order."""
        return self._term == HASHED

    @property
    def checked(self) -> bool:
        """Whether tuples whose codes meet may not match."""
        if self.hashed:
            return self._mixed or self.ranged
        return len(self._words) > 1 or self._shift > 0 or not self._words[self._term].exact

    def code(self, buffers: Buffers, side: int, first: int, end: int) -> bool:
        """Code rows; return whether all have to be coded anew, as these are out of range."""
        live, term = _kernels(), self._term
        codes = (buffers.keys, buffers.lows, buffers.highs)
        if term == HASHED:
            lowest, highest = live.code_equal(
                buffers.values, self._equal, first, end, self._mixed, *codes
            )
            self._lowest = min(self._lowest, lowest)
            self._highest = max(self._highest, highest)
            if self._mixed or self._highest - self._lowest < 1 << CODE_BITS:
                return False
            self._mixed = True
            return True
        lowest, highest = live.code_band(
            buffers.values, buffers.from_values, buffers.to_values, term, first, end, self._base,
            self._top, self._shift, *codes,
        )  # fmt: skip
        self._lowest, self._highest = min(self._lowest, lowest), max(self._highest, highest)
        return bool(lowest <= highest and (lowest < self._base or highest > self._top))

    def recut(self) -> None:
        """Choose codes for all words since the last time, with as much room on both sides."""
        span = self._highest - self._lowest
        if self.hashed:
            return
        if span < 0:  # no values: the first ones decide
            self._forget()
            return
        self._shift = max(0, span.bit_length() + 1 - CODE_BITS)
        codes = 1 << (CODE_BITS + self._shift)
        self._base = max(-(1 << 63), self._lowest - (codes - span) // 2)
        self._top = min((1 << 63) - 1, self._base + codes - 1)
        self._lowest, self._highest = 1 << 63, -(1 << 63)

    @property
    def has_choice(self) -> bool:
        """Whether there is more than one way to index."""
        return len(self._choices) > 1

    def choose(self, buffers: list[Buffers], firsts: list[int], ends: list[int]) -> bool:
        """Choose by what the windows hold; return whether all have to be coded anew."""
        r, s = buffers
        steps = [max(1, (end - first) // SAMPLED) for first, end in zip(firsts, ends, strict=True)]
        choice_of = np.zeros(len(self._words), dtype=np.int64)
        for choice, term in enumerate(self._choices):
            choice_of[self._equal if term == HASHED else term] = choice
        passed = np.zeros(len(self._choices), dtype=np.int64)
        _kernels().count_passed(
            r.values, s.from_values, s.to_values, (firsts[0], ends[0], steps[0]),
            (firsts[1], ends[1], steps[1]), choice_of, passed,
        )  # fmt: skip
        best = int(np.argmin(passed))
        if BETTER * passed[best] >= passed[self._choices.index(self._term)]:
            return False
        self._term = self._choices[best]
        self._forget()
        return True


@functools.cache
def _kernels() -> Any:
    """Import the kernels once: Numba takes its time, and an import statement takes some."""
    from streamjoin.engines.kernels.flat import live

    return live
