"""The segment ring against a list."""

import random
from collections import deque
from typing import Any

import pytest
from amaranth.hdl import Value
from amaranth.lib import data
from tests.hw.checks import simulate

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.memory import SegmentRing

BODY = data.StructLayout({"number": 12})


def slot(number: int | None) -> dict[str, Any]:
    return {"valid": number is not None, "body": {"number": number or 0}}


async def empty(ctx: Any, ring: SegmentRing) -> None:
    ctx.set(ring.clear, 1)
    await ctx.tick()
    ctx.set(ring.clear, 0)


@pytest.mark.parametrize(
    ("lanes", "length"),
    [(1, 1), (1, 2), (1, 7), (2, 1), (3, 2), (4, 4), (4, 5), (3, 8), (8, 8), (2, 7)],
)
def test_a_ring_behaves_as_a_queue_of_its_length(lanes: int, length: int) -> None:
    """What was pushed `length` steps ago is the oldest; the scan sees the last `length` tuples."""
    params = DesignParams(cores=1, segment_tuples=8, lanes=lanes)
    ring = SegmentRing(params, BODY)
    rng = random.Random(lanes * 100 + length)

    async def scan(ctx: Any, window: deque[int | None]) -> None:
        seen = []
        for word in range(params.segment_words):
            ctx.set(ring.next_scan_word, word)
            await ctx.tick()
            ctx.set(ring.scan, 1)
            ctx.set(ring.next_scan_word, rng.randrange(params.segment_words))
            await ctx.tick()
            live = ctx.get(ring.live)
            for lane in range(lanes):
                bits = ctx.get(Value.cast(ring.slots[lane]))
                if live >> lane & 1 and bits & 1:
                    seen.append(bits >> 1)
        ctx.set(ring.scan, 0)
        assert sorted(seen) == sorted(number for number in window if number is not None)

    async def testbench(ctx: Any) -> None:
        ctx.set(ring.last, {"word": (length - 1) // lanes, "lane": (length - 1) % lanes})
        await empty(ctx, ring)
        await ctx.tick()
        number = 0
        for steps in (0, 1, length, 3 * length + 2, 5 * length, 1, 2, 3):
            window: deque[int | None] = deque([None] * length, maxlen=length)
            for step in range(steps):
                if step % 5 == 0:
                    await ctx.tick()
                    await scan(ctx, window)
                ctx.set(ring.next_step, 1)
                await ctx.tick()
                ctx.set(ring.next_step, 0)
                bits = ctx.get(Value.cast(ring.oldest))
                wanted = window[0]
                assert bits & 1 == (wanted is not None)
                assert wanted is None or bits >> 1 == wanted
                number += 1
                entering = None if rng.random() < 0.2 else number % 4096
                ctx.set(ring.enter, slot(entering))
                ctx.set(ring.step, 1)
                await ctx.tick()
                ctx.set(ring.step, 0)
                window.append(entering)
                for _ in range(rng.choice([0, 0, 2])):
                    await ctx.tick()
            await ctx.tick()
            await scan(ctx, window)
            await empty(ctx, ring)
            await ctx.tick()
            await scan(ctx, deque())
            assert ctx.get(ring.oldest.valid) == 0

    simulate(ring, testbench)
