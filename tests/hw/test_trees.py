"""Mergers and trees: nothing lost, nothing invented, nobody starved."""

from collections import Counter
from typing import Any

import pytest
from amaranth.hdl import Signal
from amaranth.lib import data
from tests.hw.checks import give, nothing_more, pauses, simulate, take

from streamjoin_hw.rtl.trees import Link, Merger, MergeTree, tree_levels

LAYOUT = data.StructLayout({"origin": 8, "number": 8})


def check_all_pass(merger: Any, inputs: int, idle: float, stall: float, each: int = 40) -> None:
    """Send numbered payloads into every input and look at the output."""
    count = inputs * each

    def source(k: int) -> Any:
        async def testbench(ctx: Any) -> None:
            payloads = [{"origin": k, "number": number} for number in range(each)]
            await give(ctx, merger.i[k], payloads, pauses(k, idle))

        return testbench

    async def sink(ctx: Any) -> None:
        taken = await take(ctx, merger.o, count, pauses(99, stall))
        await nothing_more(ctx, merger.o)
        assert not ctx.get(merger.busy)
        for k in range(inputs):
            assert [v >> 8 for v in taken if v & 0xFF == k] == list(range(each))

    simulate(merger, sink, *(source(k) for k in range(inputs)))


@pytest.mark.parametrize("inputs", [1, 2, 3, 5, 16])
@pytest.mark.parametrize(("idle", "stall"), [(0.0, 0.0), (0.7, 0.0), (0.0, 0.5), (0.5, 0.5)])
def test_a_merger_passes_everything_once(inputs: int, idle: float, stall: float) -> None:
    check_all_pass(Merger(LAYOUT, inputs), inputs, idle, stall)


@pytest.mark.parametrize(("leaves", "arity"), [(1, 2), (2, 2), (5, 2), (7, 3), (9, 4), (17, 16)])
def test_a_tree_passes_everything_once(leaves: int, arity: int) -> None:
    check_all_pass(MergeTree(LAYOUT, leaves, arity), leaves, 0.3, 0.3, each=15)


@pytest.mark.parametrize("stall", [0.0, 0.3])
def test_a_merger_takes_turns(stall: float) -> None:
    merger = Merger(LAYOUT, 4)

    async def sink(ctx: Any) -> None:
        # The cycle after it is offered is its turn.
        for k in (2, 0, 3):
            ctx.set(merger.o.ready, 1)
            ctx.set(merger.i[k].valid, 1)
            await ctx.tick()
            assert ctx.get(merger.i[k].ready), "a turn comes late"
            await ctx.tick()
            ctx.set(merger.i[k].valid, 0)
            await ctx.tick()
        await ctx.tick()
        ctx.set(merger.o.ready, 0)
        for k in (0, 1, 3):
            ctx.set(merger.i[k].payload, {"origin": k})
            ctx.set(merger.i[k].valid, 1)
        taken = await take(ctx, merger.o, 60, pauses(3, stall))
        turns = [(0, 1, 3).index(each) for each in taken]
        assert turns == [(turns[0] + number) % 3 for number in range(60)], "not in turns"

    simulate(merger, sink)


@pytest.mark.parametrize("busy", [(0, 2), (0, 1, 2)])
def test_a_busy_input_cannot_starve_another(busy: tuple[int, ...]) -> None:
    merger = Merger(LAYOUT, 3)

    async def sink(ctx: Any) -> None:
        for k in busy:
            ctx.set(merger.i[k].payload, {"origin": k})
            ctx.set(merger.i[k].valid, 1)
        taken = await take(ctx, merger.o, 60, pauses(3, 0.4))
        assert Counter(taken) == dict.fromkeys(busy, 60 // len(busy))

    simulate(merger, sink)


@pytest.mark.parametrize(("leaves", "levels"), [(1, 1), (2, 1), (4, 1), (5, 2), (16, 2), (17, 3)])
def test_levels_grow_with_the_logarithm(leaves: int, levels: int) -> None:
    assert tree_levels(leaves, 4) == levels


def test_a_tree_of_arity_one_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^arity must be at least 2, not 1$"):
        tree_levels(3, 1)


def test_a_tree_is_empty_after_it_was_cleared() -> None:
    clear = Signal()
    tree = MergeTree(LAYOUT, 5, 2, clear)

    async def testbench(ctx: Any) -> None:
        for k in range(5):
            ctx.set(tree.i[k].valid, 1)
        await ctx.tick().repeat(20)
        assert ctx.get(tree.busy)
        assert ctx.get(tree.o.valid)
        for k in range(5):
            ctx.set(tree.i[k].valid, 0)
        ctx.set(clear, 1)
        await ctx.tick().repeat(2)
        ctx.set(clear, 0)
        assert not ctx.get(tree.busy)
        await nothing_more(ctx, tree.o)

    simulate(tree, testbench)


def test_a_merger_is_offered_payloads_as_soon_as_it_was_cleared() -> None:
    """Whose turn it is and who is told so agree from the first cycle on."""
    clear = Signal()
    merger = Merger(LAYOUT, 3, clear, Link(LAYOUT, clear=clear))

    async def testbench(ctx: Any) -> None:
        ctx.set(merger.o.ready, 1)
        for last in range(3):
            ctx.set(merger.i[last].valid, 1)
            await ctx.tick().repeat(4)
            ctx.set(merger.i[last].valid, 0)
            ctx.set(clear, 1)
            await ctx.tick()
            ctx.set(clear, 0)
            sent, given = [], []
            for number in range(12):
                for k in range(3):
                    ctx.set(merger.i[k].valid, number < 4)
                    ctx.set(merger.i[k].payload, {"origin": k, "number": number})
                sent += [(k, number) for k in range(3) if number < 4 and ctx.get(merger.i[k].ready)]
                if ctx.get(merger.o.valid):
                    given.append((ctx.get(merger.o.p.origin), ctx.get(merger.o.p.number)))
                await ctx.tick()
            assert given == sent, "a payload too many, or one too few"

    simulate(merger, testbench)
