"""The float adder against NumPy, bit for bit."""

from typing import Any

import numpy as np
import pytest
from tests.hw.checks import simulate

from streamjoin_hw.rtl.floats.add import QUIET_NAN, STAGES, FloatAdder

SEED = 7

SPECIAL = [
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000,
    0x80800000, 0x00800001, 0x3F800000, 0xBF800000, 0x3F800001, 0xBF7FFFFF, 0x33800000,
    0x33800001, 0xB3800000, 0x34000000, 0x4B800000, 0x4B7FFFFF, 0x7F7FFFFF, 0xFF7FFFFF,
    0x73000000, 0x72FFFFFF, 0x7F000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001,
    0x7F800001, 0x0C000000, 0x8C000001,
]  # fmt: skip


def expected_sums(a: Any, b: Any) -> Any:
    """Add in NumPy; every NaN becomes the quiet one."""
    with np.errstate(all="ignore"):
        sums = (a.view(np.float32) + b.view(np.float32)).view(np.uint32)
    nan = np.isnan(sums.view(np.float32))
    return np.where(nan, np.uint32(QUIET_NAN), sums)


def check(a: Any, b: Any) -> None:
    """Send pairs through the pipeline, one a cycle, and compare every sum."""
    wanted = expected_sums(a, b)
    adder = FloatAdder()

    async def testbench(ctx: Any) -> None:
        for index in range(len(a) + STAGES):
            if index < len(a):
                ctx.set(adder.a, int(a[index]))
                ctx.set(adder.b, int(b[index]))
            await ctx.tick()
            done = index + 1 - STAGES
            if 0 <= done < len(a):
                total = ctx.get(adder.sum)
                assert total == wanted[done], (
                    f"{a[done]:#010x} + {b[done]:#010x} gave {total:#010x}, "
                    f"not {wanted[done]:#010x}"
                )

    simulate(adder, testbench)


def test_special_values_add_as_in_numpy() -> None:
    pairs = np.array([(a, b) for a in SPECIAL for b in SPECIAL], np.uint32)
    check(pairs[:, 0].copy(), pairs[:, 1].copy())


@pytest.mark.parametrize(
    "kind", ["any bits", "near exponents", "cancellation", "subnormals", "ties"]
)
def test_random_values_add_as_in_numpy(kind: str) -> None:
    rng = np.random.default_rng([SEED, len(kind)])
    count = 2500
    a = rng.integers(0, 1 << 32, count, np.uint32)
    b = rng.integers(0, 1 << 32, count, np.uint32)
    fraction = rng.integers(0, 1 << 23, count, np.uint32)
    sign = rng.integers(0, 2, count, np.uint32) << 31
    if kind == "near exponents":
        distance = rng.integers(-27, 28, count)
        exponent = np.clip((a >> 23 & 0xFF).astype(np.int64) + distance, 0, 254).astype(np.uint32)
        b = sign | exponent << 23 | fraction
    elif kind == "cancellation":
        b = (a ^ np.uint32(1 << 31)) + rng.integers(0, 8, count, np.uint32)
    elif kind == "subnormals":
        a = a & np.uint32(0x80FFFFFF)
        b = b & np.uint32(0x80FFFFFF)
    elif kind == "ties":
        # Bits of b end exactly half a unit below the last place of a, or close to it.
        exponent = rng.integers(60, 190, count).astype(np.uint32)
        a = exponent << 23 | fraction
        b = sign | (exponent - 24) << 23 | rng.integers(0, 3, count, np.uint32) << 22
    check(a.astype(np.uint32), b.astype(np.uint32))
