"""SplitJoin's long ways: nothing is lost though nothing on its way can wait."""

import random
from typing import Any

import pytest
from amaranth.lib import data
from tests.hw.checks import give, nothing_more, pauses, simulate, take

from streamjoin_hw.rtl.queues import LANDING_PLACES, Landing, landing_places
from streamjoin_hw.rtl.split.array import QUEUED_TUPLES
from streamjoin_hw.rtl.split.links import Spread, node_counts
from streamjoin_hw.rtl.trees import Link, Merger

SEED = 31
LAYOUT = data.StructLayout({"number": 8})


@pytest.mark.parametrize(("idle", "stall"), [(0.0, 0.0), (0.0, 0.6), (0.6, 0.0), (0.3, 0.3)])
def test_a_link_keeps_order_and_loses_nothing(idle: float, stall: float) -> None:
    link = Link(LAYOUT)
    numbers = [number % 251 for number in range(300)]

    async def source(ctx: Any) -> None:
        await give(ctx, link.i, [{"number": number} for number in numbers], pauses(SEED, idle))

    async def sink(ctx: Any) -> None:
        # It fills up first.
        await ctx.tick().repeat(3 * LANDING_PLACES)
        assert ctx.get(link.busy)
        assert await take(ctx, link.o, len(numbers), pauses(SEED + 1, stall)) == numbers
        await nothing_more(ctx, link.o)
        assert not ctx.get(link.busy)

    simulate(link, source, sink)


def test_a_link_gives_a_payload_a_cycle() -> None:
    link = Link(LAYOUT)

    async def testbench(ctx: Any) -> None:
        ctx.set(link.o.ready, 1)
        ctx.set(link.i.valid, 1)
        for cycle in range(60):
            ctx.set(link.i.payload, {"number": cycle})
            assert ctx.get(link.i.ready), "it holds up what nobody holds up"
            assert ctx.get(link.o.valid) == (cycle >= 3)
            if cycle >= 3:
                assert ctx.get(link.o.p.number) == cycle - 3
            await ctx.tick()

    simulate(link, testbench)


@pytest.mark.parametrize("stall", [0.0, 0.8])
def test_a_merger_in_front_of_a_link_passes_everything_once(stall: float) -> None:
    """It says from registers what it takes, as the link behind it does."""
    merger = Merger(LAYOUT, 3, output=Link(LAYOUT))

    def source(k: int) -> Any:
        async def testbench(ctx: Any) -> None:
            payloads = [{"number": k + 3 * number} for number in range(40)]
            await give(ctx, merger.i[k], payloads, pauses(SEED + k, 0.3 * k))

        return testbench

    async def sink(ctx: Any) -> None:
        taken = await take(ctx, merger.o, 120, pauses(SEED, stall), patience=400)
        await nothing_more(ctx, merger.o)
        for k in range(3):
            assert [number for number in taken if number % 3 == k] == list(range(k, 120, 3))

    simulate(merger, sink, *(source(k) for k in range(3)))


@pytest.mark.parametrize("busy", [(1,), (0, 2), (0, 1, 2)])
def test_a_merger_in_front_of_a_link_gives_a_payload_a_cycle(
    busy: tuple[int, ...],
) -> None:
    """What was offered a cycle ago decides about turns, and costs none while it goes on."""
    merger = Merger(LAYOUT, 3, output=Link(LAYOUT))

    async def testbench(ctx: Any) -> None:
        ctx.set(merger.o.ready, 1)
        for each in merger.i:
            await give(ctx, each, [{"number": 0}], pauses(SEED, 0.0))
        await ctx.tick().repeat(10)
        for k in busy:
            ctx.set(merger.i[k].payload, {"number": k})
            ctx.set(merger.i[k].valid, 1)
        given = []
        for _ in range(70):
            if ctx.get(merger.o.valid):
                given.append(ctx.get(merger.o.p.number))
            await ctx.tick()
        # Three to turn and three in the link.
        assert len(given) >= 70 - 6, "cycles are lost"
        # The one whose turn it is goes on until the others are seen.
        turns = [busy.index(each) for each in given[3:]]
        assert turns == [(turns[0] + number) % len(busy) for number in range(len(turns))]

    simulate(merger, testbench)


@pytest.mark.parametrize("idle", [0.2, 0.5, 0.8])
def test_a_merger_in_front_of_a_link_starves_nobody(idle: float) -> None:
    inputs = 4
    merger = Merger(LAYOUT, inputs, output=Link(LAYOUT))

    async def testbench(ctx: Any) -> None:
        pause, stall = pauses(SEED, idle), pauses(SEED + 1, 0.2)
        offers, passed_over = [False] * inputs, [0] * inputs
        for _ in range(3000):
            ctx.set(merger.o.ready, not next(stall))
            for k in range(inputs):
                offers[k] = offers[k] or not next(pause)
                ctx.set(merger.i[k].valid, offers[k])
            served = [offers[k] and bool(ctx.get(merger.i[k].ready)) for k in range(inputs)]
            assert sum(served) <= 1
            for k in range(inputs):
                waits = offers[k] and not served[k]
                passed_over[k] = passed_over[k] + any(served) if waits else 0
                assert passed_over[k] <= inputs + 1, "an input waits for too many"
                offers[k] = waits
            await ctx.tick()

    simulate(merger, testbench)


def test_a_merger_in_front_of_a_link_turns_in_three_cycles() -> None:
    merger = Merger(LAYOUT, 3, output=Link(LAYOUT))

    async def testbench(ctx: Any) -> None:
        ctx.set(merger.o.ready, 1)
        await ctx.tick().repeat(3)
        for k in (2, 1, 0, 2):
            ctx.set(merger.i[k].valid, 1)
            cycles = 0
            while not ctx.get(merger.i[k].ready):
                assert cycles < 3, "a turn comes late"
                await ctx.tick()
                cycles += 1
            await ctx.tick()
            ctx.set(merger.i[k].valid, 0)
            await ctx.tick().repeat(3)

    simulate(merger, testbench)


def test_a_landing_says_in_time_that_its_places_become_few() -> None:
    landing = Landing(LAYOUT, 8, 5)

    async def testbench(ctx: Any) -> None:
        arrived = 0
        while not ctx.get(landing.few):
            ctx.set(landing.payload, {"number": arrived})
            ctx.set(landing.arrives, 1)
            await ctx.tick()
            arrived += 1
        assert arrived == 8 - 5 + 2, "not at the place that it says"
        # What is on its way finds a place.
        for _ in range(5 - 3):
            ctx.set(landing.payload, {"number": arrived})
            await ctx.tick()
            arrived += 1
        ctx.set(landing.arrives, 0)
        ctx.set(landing.o.ready, 1)
        given = []
        while ctx.get(landing.o.valid):
            given.append(ctx.get(landing.o.p.number))
            await ctx.tick()
        assert given == list(range(7)), "what was on its way is lost"

    simulate(landing, testbench)


def test_a_queue_at_a_far_end_holds_twice_what_is_on_its_way() -> None:
    assert [landing_places(reserve) for reserve in (1, 7, 8, 9, 16, 17)] == [16, 16, 16, 32, 32, 64]
    assert landing_places(3, 32) == 32


SHAPES = [(1, 2, LANDING_PLACES), (5, 2, LANDING_PLACES), (4, 4, 32), (17, 2, LANDING_PLACES)]


@pytest.mark.parametrize(("leaves", "arity", "places"), SHAPES)
def test_every_leaf_is_given_every_payload_once_in_its_own_time(
    leaves: int, arity: int, places: int
) -> None:
    spread = Spread(LAYOUT, leaves, arity, places)
    numbers = [number % 251 for number in range(200)]

    async def source(ctx: Any) -> None:
        await give(ctx, spread.i, [{"number": number} for number in numbers], pauses(SEED, 0.1))

    def taker(k: int) -> Any:
        async def taking(ctx: Any) -> None:
            # Some stand still for long, so that the whole tree fills up.
            await ctx.tick().repeat(1 + 60 * (k % 3))
            stalls = pauses(SEED + k, 0.2 * (k % 4))
            assert await take(ctx, spread.o[k], len(numbers), stalls, patience=400) == numbers
            await nothing_more(ctx, spread.o[k])

        return taking

    simulate(spread, source, *(taker(k) for k in range(leaves)))


@pytest.mark.parametrize("places", [LANDING_PLACES, QUEUED_TUPLES])
def test_queues_let_one_core_be_ahead_and_show_what_waits(places: int) -> None:
    spread = Spread(LAYOUT, 5, 2, places)
    count = 3 * places

    async def testbench(ctx: Any) -> None:
        given: list[list[int]] = [[] for _ in range(5)]
        ctx.set(spread.i.valid, 1)
        sent = waits = 0
        for cycle in range(4 * count):
            # One core takes nothing at first; the others take all they get.
            readies = [k != 1 or cycle > 2 * count for k in range(5)]
            if sent == count:
                ctx.set(spread.i.valid, 0)
            ctx.set(spread.i.payload, {"number": sent})
            for k, ready in enumerate(readies):
                each = spread.o[k]
                ctx.set(each.ready, ready)
                if ready and ctx.get(each.valid):
                    given[k].append(ctx.get(each.p.number))
            sent += ctx.get(spread.i.valid & spread.i.ready)
            if cycle == 2 * count:
                assert len(given[0]) > spread.places - spread.reserve, "a core waits for another"
                assert len(given[0]) < spread.places, "more than a queue holds"
            waits = waits + 1 if len(given[1]) < sent else 0
            assert waits < 6 or ctx.get(spread.busy), "idle although tuples wait"
            await ctx.tick()
        assert given == [list(range(count))] * 5, "not the tuples"
        assert not ctx.get(spread.busy)

    simulate(spread, testbench)


def test_a_spread_takes_a_payload_a_cycle_and_as_many_cycles_as_it_has_levels() -> None:
    spread = Spread(LAYOUT, 9, 2)
    chance = random.Random(SEED)

    async def testbench(ctx: Any) -> None:
        for k in range(9):
            ctx.set(spread.o[k].ready, 1)
        for _ in range(sum(node_counts(9, 2, spread.levels)) + spread.levels):
            assert not ctx.get(spread.i.ready), "it takes what a register that is not there loses"
            await ctx.tick()
        sent = []
        for _ in range(80):
            offers = chance.random() < 0.9
            ctx.set(spread.i.valid, offers)
            ctx.set(spread.i.payload, {"number": len(sent)})
            assert ctx.get(spread.i.ready), "it holds up what nobody holds up"
            sent.append(offers)
            if len(sent) > spread.levels:
                for k in range(9):
                    each = spread.o[k]
                    assert ctx.get(each.valid) == sent[-1 - spread.levels]
                    if ctx.get(each.valid):
                        assert ctx.get(each.p.number) == len(sent) - 1 - spread.levels
            await ctx.tick()

    simulate(spread, testbench)
