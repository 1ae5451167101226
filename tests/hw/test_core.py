"""Serialiser and core by themselves."""

import random
from typing import Any

import pytest
from amaranth.hdl import Value
from tests.hw.checks import nothing_more, pauses, simulate, take

from streamjoin_common.contract import SIDE_R, SIDE_S, DesignParams, KeyType, Term, TermKind
from streamjoin_hw.rtl.chain.core import Core
from streamjoin_hw.rtl.matching import Serialiser

SEED = 5


@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_a_serialiser_gives_each_match_once_lowest_lane_first(stall: float) -> None:
    params = DesignParams(cores=1, segment_tuples=8, lanes=5, payload_bits=8)
    serialiser = Serialiser(params)
    rng = random.Random(SEED)
    words = []
    for number in range(40):
        mask = rng.choice([1, 31, rng.randint(1, 31)])
        words.append((rng.choice([SIDE_R, SIDE_S]), number, mask))
    wanted = []
    for side, number, mask in words:
        for lane in range(5):
            if mask >> lane & 1:
                r, s = (number, 100 + lane) if side == SIDE_R else (100 + lane, number)
                wanted.append(r | s << 8 | side << 16)

    async def source(ctx: Any) -> None:
        for side, number, mask in words:
            payloads = [100 + lane for lane in range(5)]
            word = {"side": side, "probe": number, "mask": mask, "payloads": payloads}
            word["single"] = mask.bit_count() == 1
            ctx.set(serialiser.word, word)
            ctx.set(serialiser.word_valid, 1)
            await ctx.tick().until(serialiser.word_taken)
        ctx.set(serialiser.word_valid, 0)

    async def sink(ctx: Any) -> None:
        received = await take(ctx, serialiser.results, len(wanted), pauses(SEED, stall))
        assert received == wanted
        await nothing_more(ctx, serialiser.results)
        assert not ctx.get(serialiser.busy)

    simulate(serialiser, source, sink)


async def put_on_line(ctx: Any, core: Core) -> list[tuple[int, int, int]]:
    """Return what a core puts on its line in the next cycles: side, who probed, whom it met."""
    seen = []
    for _ in range(20):
        if ctx.get(core.line_o.valid):
            body = core.line_o.body
            seen.append((ctx.get(body.side), ctx.get(body.probe), ctx.get(body.met)))
        await ctx.tick()
    return seen


def test_a_core_compares_what_enters_with_the_opposite_segment() -> None:
    """Three S tuples, then an R tuple that matches two of them; timing as documented."""
    params = DesignParams(
        cores=1, segment_tuples=4, lanes=2, terms=(Term(TermKind.EQUI, KeyType.UINT32),)
    )
    core = Core(params)

    async def step(ctx: Any, side: str, key: int, payload: int) -> None:
        body = {"code0": key, "payload": payload}
        ctx.set(core.r_left if side == "r" else core.s_entry, {"valid": 1, "body": body})
        for word in range(2):
            first = word == 0
            command = {
                "step_r": first and side == "r",
                "step_s": first and side == "s",
                "scan": 1,
                "scan_word": word,
                "clear": 0,
            }
            ctx.set(core.command, command)
            await ctx.tick()
        ctx.set(core.command, {})

    async def testbench(ctx: Any) -> None:
        last = {"word": 1, "lane": 1}
        plan = {"active": 1, "last_r": last, "last_s": last}
        ctx.set(core.plan, plan)
        await ctx.tick().repeat(4)
        for key, payload in ((7, 1), (8, 2), (7, 3)):
            await step(ctx, "s", key, payload)
        await step(ctx, "r", 7, 40)
        assert ctx.get(core.busy)
        # The rings hold payloads 1 and 3 in words 0 and 1.
        assert await put_on_line(ctx, core) == [(SIDE_R, 40, 1), (SIDE_R, 40, 3)]
        assert not ctx.get(core.busy)
        await step(ctx, "s", 7, 4)
        assert await put_on_line(ctx, core) == [(SIDE_S, 4, 40)]
        ctx.set(core.command, {"clear": 1})
        await ctx.tick()
        ctx.set(core.command, {})
        # No step comes in the two cycles after it.
        await ctx.tick().repeat(2)
        await step(ctx, "s", 7, 5)
        assert await put_on_line(ctx, core) == []

    simulate(core, testbench)


def test_a_core_that_is_not_active_keeps_nothing() -> None:
    params = DesignParams(cores=2, segment_tuples=4)
    core = Core(params)

    async def testbench(ctx: Any) -> None:
        ctx.set(core.index, 1)
        ctx.set(core.plan, {"active": 1})
        await ctx.tick().repeat(4)
        for side in ("step_r", "step_s"):
            ctx.set(core.r_left, {"valid": 1, "body": {"code0": 1, "payload": 1}})
            ctx.set(core.s_right, {"valid": 1, "body": {"code0": 1, "payload": 1}})
            ctx.set(core.command, {side: 1, "scan": 1})
            await ctx.tick()
            ctx.set(core.command, {})
            await ctx.tick().repeat(3)
        assert ctx.get(Value.cast(core.r_oldest)) & 1 == 0
        assert await put_on_line(ctx, core) == []

    simulate(core, testbench)
