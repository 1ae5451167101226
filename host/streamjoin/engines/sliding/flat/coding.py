"""Codes of the values of a live join, which are chosen anew where values leave their range."""

import functools
from typing import Any

from streamjoin.engines.sliding.flat.buffers import Buffers

CODE_BITS = 32


class Equalities:
    """Codes of equalities: low bits while those of the values differ, then a hash."""

    hashed, ranged = True, False

    def __init__(self, terms: int) -> None:
        self.mixed, self.lowest, self.highest = terms > 1, 1 << 63, -(1 << 63)
        self.checked = self.mixed

    def code(self, buffers: Buffers, side: int, first: int, end: int) -> bool:
        """Code rows; return whether all have to be coded anew."""
        live = _kernels()
        lowest, highest = live.code_equal(
            buffers.values, first, end, self.mixed, buffers.keys, buffers.lows, buffers.highs
        )
        self.lowest, self.highest = min(self.lowest, lowest), max(self.highest, highest)
        if self.mixed or self.highest - self.lowest < 1 << CODE_BITS:
            return False
        self.mixed = self.checked = True
        return True

    def recut(self) -> None:
        """Do nothing: the codes are chosen already."""


class BandCodes:
    """Codes of a band of integers: distances from a value, in units of a power of two."""

    hashed, ranged = False, True

    def __init__(self, below: int, above: int) -> None:
        self._reach = ((above, below), (below, above))
        self._lowest, self._highest = 1 << 63, -(1 << 63)
        self._base, self._top, self._shift = 0, -1, 0
        self.checked = False

    def code(self, buffers: Buffers, side: int, first: int, end: int) -> bool:
        """Code rows; return whether all have to be coded anew, as these are out of range."""
        live = _kernels()
        lowest, highest = live.reach_of(
            buffers.values, first, end, *self._reach[side], buffers.from_values, buffers.to_values
        )
        self._lowest, self._highest = min(self._lowest, lowest), max(self._highest, highest)
        if lowest <= highest and (lowest < self._base or highest > self._top):
            return True
        live.code_band(
            buffers.values, buffers.from_values, buffers.to_values, first, end, self._base,
            self._top, self._shift, buffers.keys, buffers.lows, buffers.highs,
        )  # fmt: skip
        return False

    def recut(self) -> None:
        """Choose codes for all values since the last time, with as much room on both sides."""
        span = self._highest - self._lowest
        if span < 0:  # no values: the first ones decide
            self._base, self._top, self._shift, self.checked = 0, -1, 0, False
            return
        self._shift = max(0, span.bit_length() + 1 - CODE_BITS)
        codes = 1 << (CODE_BITS + self._shift)
        self._base = max(-(1 << 63), self._lowest - (codes - span) // 2)
        self._top = min((1 << 63) - 1, self._base + codes - 1)
        self.checked = self._shift > 0
        self._lowest, self._highest = 1 << 63, -(1 << 63)


@functools.cache
def _kernels() -> Any:
    """Import the kernels once: Numba takes its time, and an import statement takes some."""
    from streamjoin.engines.kernels.flat import live

    return live
