"""How far words travel between the cores and what commands them, and the tree of the reset."""

from typing import Any

import pytest
from amaranth.sim import Simulator

from streamjoin_common.contract import HOLD_WORDS, DesignParams
from streamjoin_hw.rtl.core_array import (
    FANOUT,
    ResetTree,
    gather_levels,
    hold_words,
    quiet_cycles,
)


@pytest.mark.parametrize(("leaves", "levels"), [(1, 1), (FANOUT, 1), (FANOUT + 1, 2)])
def test_a_reset_comes_to_every_leaf_in_the_same_cycle(leaves: int, levels: int) -> None:
    tree = ResetTree(leaves)
    everywhere = (1 << leaves) - 1

    async def testbench(ctx: Any) -> None:
        # Power-up is a reset.
        assert ctx.get(tree.o) == everywhere
        for _ in range(levels):
            await ctx.tick()
        assert (ctx.get(tree.o), ctx.get(tree.busy)) == (0, 0)
        ctx.set(tree.i, 1)
        for level in range(levels):
            assert (ctx.get(tree.o), ctx.get(tree.busy)) == (0, 1), level
            await ctx.tick()
            ctx.set(tree.i, 0)
        assert (ctx.get(tree.o), ctx.get(tree.busy)) == (everywhere, 1)
        await ctx.tick()
        assert (ctx.get(tree.o), ctx.get(tree.busy)) == (0, 0)

    simulator: Any = Simulator(tree)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    simulator.run()


@pytest.mark.parametrize(("cores", "levels"), [(1, 1), (32, 1), (33, 2), (1024, 2)])
def test_what_is_kept_free_and_waited_for_follows_the_levels(cores: int, levels: int) -> None:
    params = DesignParams(cores=cores, segment_tuples=2)
    assert gather_levels(params) == levels
    assert hold_words(params) == 6 + levels <= HOLD_WORDS
    assert quiet_cycles(params) == 2 * (2 + levels)
