"""The bounds of a float band from either side: every number of small formats, nasty float32."""

from bisect import bisect_left
from fractions import Fraction
from math import isnan
from typing import Any

import numpy as np
import pytest
from tests.hw.checks import simulate
from tests.hw.test_fp_add import SPECIAL

from streamjoin_hw.rtl.floats.add import STAGES
from streamjoin_hw.rtl.floats.bound import FloatBound

SEED = 13
INFINITY = float("inf")
Number = Fraction | float
"""A fraction or an infinity."""


class Format:
    """Every number of a small format, and addition in it from its definition."""

    def __init__(self, exponent_bits: int, fraction_bits: int) -> None:
        self.sign = 1 << (exponent_bits + fraction_bits)
        self.infinity = ((1 << exponent_bits) - 1) << fraction_bits
        bias = (1 << (exponent_bits - 1)) - 1
        self.magnitudes = []
        for bits in range(self.infinity + 1):
            exponent, fraction = bits >> fraction_bits, bits & ((1 << fraction_bits) - 1)
            significand = fraction + (1 << fraction_bits if exponent else 0)
            scale = Fraction(2) ** (max(exponent, 1) - bias - fraction_bits)
            self.magnitudes.append(significand * scale)
        self.numbers = sorted({n for n in map(self.number, range(2 * self.sign)) if n is not None})

    def number(self, bits: int) -> Number | None:
        """Return what bits stand for; None is NaN."""
        magnitude, sign = bits & (self.sign - 1), -1 if bits & self.sign else 1
        if magnitude >= self.infinity:
            return sign * INFINITY if magnitude == self.infinity else None
        return sign * self.magnitudes[magnitude]

    def rounded(self, exact: Fraction) -> Number:
        """Round to nearest, ties to the even one; the one after the greatest is infinity."""
        sign, size = (-1 if exact < 0 else 1), abs(exact)
        above = min(bisect_left(self.magnitudes, size), self.infinity)
        below = max(above - 1, 0)
        gaps = [abs(self.magnitudes[k] - size) for k in (below, above)]
        even = below if below % 2 == 0 else above
        bits = even if gaps[0] == gaps[1] else (below if gaps[0] < gaps[1] else above)
        bits = above if size >= self.magnitudes[-1] else bits
        return sign * INFINITY if bits == self.infinity else sign * self.magnitudes[bits]

    def add(self, a: Number | None, b: Number | None) -> Number | None:
        """Add two numbers; None is NaN."""
        if a is None or b is None:
            return None
        if INFINITY in (abs(a), abs(b)):
            total = float(a) + float(b)
            return None if isnan(total) else total
        return self.rounded(Fraction(a) + Fraction(b))

    def greatest(self, key: Number | None, width: Number | None) -> Number | None:
        """Return the greatest number that less ``width`` is ``key`` or less, by trying all."""
        if key is None or width is None:
            return None
        for number in reversed(self.numbers):
            total = self.add(number, -width)
            if total is not None and total <= key:
                return number
        return None


def bounds_of(unit: FloatBound, cases: list[tuple[int, int, int]]) -> list[int]:
    """Send keys, widths and directions through a unit, one a cycle; returns the bounds."""
    bounds: list[int] = []

    async def testbench(ctx: Any) -> None:
        for index in range(len(cases) + STAGES - 1):
            if index < len(cases):
                for port, value in zip(
                    (unit.key, unit.width, unit.inverse), cases[index], strict=True
                ):
                    ctx.set(port, value)
            await ctx.tick()
            if index >= STAGES - 1:
                bounds.append(ctx.get(unit.bound))

    simulate(unit, testbench)
    return bounds


@pytest.mark.parametrize(("exponent_bits", "fraction_bits"), [(2, 2), (3, 1), (3, 2)])
def test_every_bound_of_a_small_format_is_exact(exponent_bits: int, fraction_bits: int) -> None:
    small = Format(exponent_bits, fraction_bits)
    bits = range(2 * small.sign)
    cases = [(key, width, way) for way in (0, 1) for key in bits for width in bits]
    bounds = bounds_of(FloatBound(exponent_bits, fraction_bits), cases)
    for (key, width, way), bound in zip(cases, bounds, strict=True):
        find = small.greatest if way else small.add
        expected = find(small.number(key), small.number(width))
        assert small.number(bound) == expected, f"key {key:#x}, width {width:#x}, inverse {way}"


def stepped(bits: Any, steps: int) -> Any:
    """Return the float32 so many after these, in the order of floats; both zeros are one."""
    codes = np.where(bits >> 31, -(bits & 0x7FFFFFFF).astype(np.int64), bits.astype(np.int64))
    codes = np.clip(codes + steps, -0x7F800000, 0x7F800000)
    magnitudes = np.abs(codes).astype(np.uint32)
    return (magnitudes | np.where(codes < 0, np.uint32(1 << 31), np.uint32(0))).view(np.float32)


def check_greatest(keys: Any, widths: Any) -> None:
    """Hold bounds of float32 against NumPy: each is a solution, and the next float is none."""
    cases = [(int(key), int(width), 1) for key, width in zip(keys, widths, strict=True)]
    bits = np.array(bounds_of(FloatBound(), cases), np.uint32)
    bounds = bits.view(np.float32)
    key, width = keys.view(np.float32), widths.view(np.float32)
    with np.errstate(all="ignore"):
        is_solution = bounds - width <= key
        after = stepped(bits, 1)
        next_is_one = (after - width <= key) & (after != bounds)
        # Where there is no bound the lowest candidates, and infinity, are no solutions.
        lowest = np.array([-np.inf, np.finfo(np.float32).min, np.inf], np.float32)
        any_is_one = (lowest[:, None] - width <= key).any(axis=0)
    none = np.isnan(bounds)
    wrong = np.where(none, any_is_one, ~is_solution | next_is_one)
    for k in np.flatnonzero(wrong):
        raise AssertionError(f"key {keys[k]:#x}, width {widths[k]:#x} gave {bits[k]:#x}")


def test_greatest_floats_of_special_keys_and_widths() -> None:
    pairs = np.array([(a, b) for a in SPECIAL for b in SPECIAL], np.uint32)
    check_greatest(pairs[:, 0].copy(), pairs[:, 1].copy())


@pytest.mark.parametrize("kind", ["any bits", "near exponents", "cancellation", "subnormals"])
def test_greatest_floats_of_random_keys_and_widths(kind: str) -> None:
    rng = np.random.default_rng([SEED, len(kind)])
    count = 2500
    keys = rng.integers(0, 1 << 32, count, np.uint32)
    widths = rng.integers(0, 1 << 32, count, np.uint32)
    if kind == "near exponents":
        distance = rng.integers(-27, 28, count)
        exponents = np.clip((keys >> 23 & 0xFF).astype(np.int64) + distance, 0, 254)
        widths = (widths & np.uint32(0x807FFFFF)) | exponents.astype(np.uint32) << 23
    elif kind == "cancellation":
        widths = (keys ^ np.uint32(1 << 31)) + rng.integers(0, 8, count, np.uint32)
    elif kind == "subnormals":
        keys, widths = keys & np.uint32(0x80FFFFFF), widths & np.uint32(0x80FFFFFF)
    check_greatest(keys.astype(np.uint32), widths.astype(np.uint32))
