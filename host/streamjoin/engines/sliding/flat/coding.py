"""Codes by which a live join indexes its tuples, chosen anew where values leave their range.

One index serves a predicate of any terms: by a hash of all that must be equal, by one band in the
order of its words, or by strips of the one, in each the order of another. Which one is left to a
sample of both windows: the one whose look-ups are the cheapest. The other terms are checked.
"""

import functools
from typing import Any

import numpy as np

from streamjoin.engines.sliding.flat.buffers import Buffers
from streamjoin.engines.sliding.flat.ways import (
    CODE_BITS,
    HASHED,
    MAPPED_ROWS,
    SAMPLED,
    Strips,
    sample,
    ways_of,
)
from streamjoin.engines.sliding.flat.words import Words

BETTER = 1.5
"""The index is chosen anew where another one's look-ups cost so many times less."""


class _Span:
    """The words of a band, and the codes that they have."""

    def __init__(self) -> None:
        self.lowest, self.highest = 1 << 63, -(1 << 63)
        self.base, self.top, self.shift = 0, -1, 0

    def note(self, lowest: int, highest: int) -> bool:
        """Note a range of words; return whether some have no codes."""
        self.lowest, self.highest = min(self.lowest, lowest), max(self.highest, highest)
        return lowest <= highest and (lowest < self.base or highest > self.top)

    def band(self, term: int) -> tuple[int, int, int, int]:
        """Return how a term's words are coded: the fields of a kernel's ``Band``."""
        return term, self.base, self.top, self.shift

    def cut(self) -> None:
        """Choose codes for all words that were noted, with as much room on both sides."""
        span = self.highest - self.lowest
        if span < 0:  # no values: the first ones decide
            return
        self.shift = max(0, span.bit_length() + 1 - CODE_BITS)
        codes = 1 << (CODE_BITS + self.shift)
        self.base = max(-(1 << 63), self.lowest - (codes - span) // 2)
        self.top = min((1 << 63) - 1, self.base + codes - 1)


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
        bands = [term for term in terms if not words[term].equal]
        self.ranged = bool(bands)
        self._ways = ways_of(len(self._equal) > 0, bands)
        self._mixed = len(self._equal) > 1
        self._way, self._strip_count = self._ways[0], 0
        self._spans = {term: _Span() for term in [HASHED, *bands]}
        self._strips: Strips | None = None

    @property
    def hashed(self) -> bool:
        """Whether codes have no order."""
        return self._way.order is None and self._way.by == HASHED

    @property
    def order_bits(self) -> int:
        """Bits of a code below its strip, where a range meets several; else 32."""
        return CODE_BITS if self._way.is_shared else Strips.order_bits

    @property
    def is_shared(self) -> bool:
        """Whether threads can share look-ups: those that meet several strips are not cut."""
        return self._way.is_shared

    @property
    def checked(self) -> bool:
        """Whether tuples whose codes meet may not match."""
        by, order = self._way
        if order is not None or len(self._words) > 1:
            return True
        if by == HASHED:
            return self._mixed
        return self._spans[by].shift > 0 or not self._words[by].exact

    def code(self, buffers: Buffers, side: int, first: int, end: int) -> bool:
        """Code rows; return whether all have to be coded anew, as these are out of range."""
        by, order = self._way
        codes = (buffers.keys, buffers.lows, buffers.highs)
        if by == HASHED:
            lowest, highest = _kernels().code_equal(
                buffers.values, self._equal, first, end, self._mixed, *codes
            )
            beyond = order is None and self._is_beyond(lowest, highest)
        else:
            beyond = self._code_band(buffers, by, first, end, codes)
        if order is None or beyond:
            return beyond
        assert self._strips is not None
        words = (buffers.values, buffers.from_values, buffers.to_values)
        span = self._spans[order]
        return span.note(*self._strips.code_words(first, end, codes, words, span.band(order)))

    def _is_beyond(self, lowest: int, highest: int) -> bool:
        """Whether words differ whose low 32 bits are equal; then they are mixed."""
        span = self._spans[HASHED]
        span.note(lowest, highest)
        if self._mixed or span.highest - span.lowest < 1 << CODE_BITS:
            return False
        self._mixed = True
        return True

    def _code_band(
        self, buffers: Buffers, term: int, first: int, end: int, codes: tuple[Any, ...]
    ) -> bool:
        span = self._spans[term]
        lowest, highest = _kernels().code_band(
            buffers.values, buffers.from_values, buffers.to_values, span.band(term), first, end,
            *codes,
        )  # fmt: skip
        return span.note(lowest, highest)

    def recut(self, buffers: list[Buffers], firsts: list[int], ends: list[int]) -> None:
        """Choose codes for what the windows hold."""
        by, order = self._way
        held = list(zip(buffers, firsts, ends, strict=True))
        for term in self._way.terms:
            span = self._spans[term] = _Span()
            words = self._equal[0] if term == HASHED else term
            for each, first, end in held:
                span.note(*_kernels().find_range(each.values, words, first, end))
            if term == HASHED:
                self._is_beyond(span.lowest, span.highest)
            else:
                span.cut()
        if order is None:
            return
        self._strips = self._strips or Strips()
        hashed = by == HASHED
        samples = [self._sampled(held, term) for term in ((order,) if hashed else (order, by))]
        self._strips.cut(self._strip_count, None if hashed else samples[1], samples[0])

    def _sampled(self, held: list[tuple[Buffers, int, int]], term: int) -> Any:
        """Return codes of a sample of what the windows hold."""
        span, codes = self._spans[term], []
        for buffers, first, end in held:
            step = max(1, (end - first) // MAPPED_ROWS)
            distances = buffers.values[term, first:end:step].view(np.uint64) - np.uint64(
                span.base % (1 << 64)
            )
            codes.append((distances >> np.uint64(span.shift)).astype(np.uint32))
        return np.concatenate(codes)

    @property
    def has_choice(self) -> bool:
        """Whether there is more than one way to index."""
        return len(self._ways) > 1

    def choose(self, buffers: list[Buffers], firsts: list[int], ends: list[int]) -> bool:
        """Choose by what the windows hold; return whether all have to be coded anew."""
        r, s = (
            slice(first, end, -(-(end - first) // (SAMPLED >> side)))
            for side, (first, end) in enumerate(zip(firsts, ends, strict=True))
        )
        of_s = (buffers[1].from_values, buffers[1].to_values)
        sampled = sample(
            self._ways,
            self._equal,
            np.ascontiguousarray(buffers[0].values[:, r]),
            (np.ascontiguousarray(of_s[0][:, s]), np.ascontiguousarray(of_s[1][:, s])),
            (sum(ends) - sum(firsts)) / 2,
        )
        (best, strips), now = sampled.best(self._ways), self._way
        cost, of_now = sampled.cost(now)
        if now in sampled.possible(self._ways) and cost <= BETTER * sampled.cost(best)[0]:
            best, strips = now, of_now
        self._way, self._strip_count = best, strips
        return best != now or not self.serves(buffers, firsts, ends)

    def serves(self, buffers: list[Buffers], firsts: list[int], ends: list[int]) -> bool:
        """Whether the maps of strips, if any, fit what the windows hold."""
        if self._way.order is None or self._strips is None:
            return True
        return self._strips.serve(self._strip_count, _keys_of(buffers, firsts, ends))

    def coded(self, buffers: list[Buffers], firsts: list[int], ends: list[int]) -> None:
        """Note that all tuples have been coded anew."""
        if self._way.order is not None and self._strips is not None:
            self._strips.note(_keys_of(buffers, firsts, ends))


def _keys_of(buffers: list[Buffers], firsts: list[int], ends: list[int]) -> Any:
    """Return a sample of the codes of tuples that can match."""
    sampled = []
    for each, first, end in zip(buffers, firsts, ends, strict=True):
        rows = slice(first, end, max(1, (end - first) // SAMPLED))
        sampled.append(each.keys[rows][each.lows[rows] <= each.highs[rows]])
    return np.concatenate(sampled)


@functools.cache
def _kernels() -> Any:
    """Import the kernels once: Numba takes its time, and an import statement takes some."""
    from streamjoin.engines.kernels.flat import live

    return live
