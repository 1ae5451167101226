"""The parts that group SplitJoin's stars by themselves: counter, rounds, batches, combiner."""

import dataclasses
import random
from typing import Any

import pytest
from tests.hw.checks import simulate

from streamjoin_common.contract import SIDE_R, SIDE_S, DesignParams
from streamjoin_hw.rtl.split.array import SplitArray
from streamjoin_hw.rtl.split.collector import Collector
from streamjoin_hw.rtl.split.gatherer import Gatherer
from streamjoin_hw.rtl.split.groups.combiner import GroupCombiner
from streamjoin_hw.rtl.split.groups.counter import GroupCounter
from streamjoin_hw.rtl.split.groups.rounds import Rounds

SEED = 43
PARAMS = DesignParams(
    design="splitjoin", cores=1, segment_tuples=4, probes=2, order="outer", stars="grouped"
)


@pytest.mark.parametrize("size", [1, 2, 3, 7, 0])
def test_the_last_arrival_of_each_group_closes_it(size: int) -> None:
    counter = GroupCounter()
    chance = random.Random(SEED)

    async def testbench(ctx: Any) -> None:
        for arrivals in (20, 3, 17):
            ctx.set(counter.size, size)
            ctx.set(counter.idle, 1)
            await ctx.tick().repeat(2)
            ctx.set(counter.idle, 0)
            # What is set while an input runs is for the next one.
            ctx.set(counter.size, 5)
            closes = []
            while len(closes) < arrivals:
                arrives = chance.random() < 0.6
                ctx.set(counter.arrives, arrives)
                if arrives:
                    closes.append(ctx.get(counter.closes))
                await ctx.tick()
            ctx.set(counter.arrives, 0)
            expected = [int(size > 0 and (k + 1) % size == 0) for k in range(arrivals)]
            assert closes == expected, "another arrival closes a group"

    simulate(counter, testbench)


def test_rounds_divide_a_batch_after_the_probes_that_end_a_group() -> None:
    probes = 4
    rounds = Rounds(probes)
    chance = random.Random(SEED)

    async def testbench(ctx: Any) -> None:
        for _ in range(60):
            count, ends = chance.randint(1, probes), chance.randrange(1 << probes)
            # Bits behind the last probe count for nothing.
            ctx.set(rounds.count, count)
            ctx.set(rounds.ends, ends)
            ctx.set(rounds.take, 1)
            await ctx.tick()
            ctx.set(rounds.take, 0)
            ctx.set(rounds.ends, ~ends)
            expected, serves = [], 0
            for probe in range(count):
                serves |= 1 << probe
                if ends >> probe & 1 or probe == count - 1:
                    expected.append((serves, probe == count - 1, ends >> probe & 1))
                    serves = 0
            for each in expected:
                for _ in range(chance.randint(1, 3)):
                    found = [ctx.get(bit) for bit in (rounds.serves, rounds.last, rounds.star)]
                    assert tuple(found) == each, "another round"
                    await ctx.tick()
                ctx.set(rounds.step, 1)
                await ctx.tick()
                ctx.set(rounds.step, 0)

    simulate(rounds, testbench)


def test_a_star_that_is_late_has_a_blank_probe() -> None:
    """A tuple of the stored side closes a group whose probes are here, or gone, or none."""
    collector = Collector(PARAMS, SIDE_R)

    async def testbench(ctx: Any) -> None:
        async def offer(side: int, *, closes: int = 0) -> None:
            ctx.set(collector.i.payload, {"side": side, "closes": closes})
            ctx.set(collector.i.valid, 1)
            assert ctx.get(collector.i.ready)
            await ctx.tick()
            ctx.set(collector.i.valid, 0)

        async def begin() -> None:
            ctx.set(collector.begin, 1)
            await ctx.tick()
            ctx.set(collector.begin, 0)

        def batch() -> tuple[int, int, int]:
            count = ctx.get(collector.batch.count)
            ends = ctx.get(collector.batch.ends) & (1 << count) - 1
            return count, ends, count and ctx.get(collector.batch.blank)

        ctx.set(collector.clear, 1)
        await ctx.tick()
        ctx.set(collector.clear, 0)
        await offer(SIDE_R, closes=1)
        assert batch() == (0, 0, 0), "a group without probes has no star"
        await begin()
        await offer(SIDE_S)
        await offer(SIDE_S)
        assert batch() == (2, 0b00, 0)
        await offer(SIDE_R, closes=1)
        assert batch() == (2, 0b10, 0), "a star follows its last probe"
        await begin()
        await offer(SIDE_S)
        await begin()
        assert batch() == (0, 0, 0)
        await offer(SIDE_R, closes=1)
        assert batch() == (1, 0b01, 1), "no star is owed for the batch before"
        await offer(SIDE_S, closes=1)
        assert batch() == (2, 0b11, 1)
        await begin()
        await offer(SIDE_R, closes=1)
        assert batch() == (0, 0, 0), "a second star for a group"

    simulate(collector, testbench)


def test_a_late_star_waits_for_room_where_comparators_are_shared() -> None:
    gatherer = Gatherer(dataclasses.replace(PARAMS, comparators="shared"))

    async def testbench(ctx: Any) -> None:
        async def offer(side: int, *, closes: int = 0) -> bool:
            ctx.set(gatherer.i[0].payload, {"side": side, "closes": closes})
            ctx.set(gatherer.i[0].valid, 1)
            taken = bool(ctx.get(gatherer.i[0].ready))
            await ctx.tick()
            ctx.set(gatherer.i[0].valid, 0)
            return taken

        async def begin() -> None:
            ctx.set(gatherer.begin, 1)
            await ctx.tick()
            ctx.set(gatherer.begin, 0)

        ctx.set(gatherer.free, 0b11)
        ctx.set(gatherer.idle, 1)
        ctx.set(gatherer.clear, 1)
        await ctx.tick()
        ctx.set(gatherer.clear, 0)
        assert await offer(SIDE_S)
        await begin()
        ctx.set(gatherer.free, 0b10)
        assert not await offer(SIDE_R, closes=1), "taken although there is no room"
        ctx.set(gatherer.free, 0b11)
        assert await offer(SIDE_R, closes=1)
        # It is stored with the batch that gives the star.
        assert [ctx.get(bit) for bit in (gatherer.waiting, gatherer.store)] == [1, 1]
        assert [ctx.get(gatherer.batch[name]) for name in ("count", "blank")] == [1, 1]
        assert ctx.get(gatherer.batch.ends) & 1
        await begin()
        assert await offer(SIDE_S)
        assert not ctx.get(gatherer.batch.blank)
        assert await offer(SIDE_R, closes=1)
        assert (ctx.get(gatherer.batch.count), ctx.get(gatherer.batch.ends) & 1) == (1, 1)

    simulate(gatherer, testbench)


class Halves:
    """What both halves give for arrivals: results with their group, a star behind a group's."""

    def __init__(self, combiner: GroupCombiner, chance: random.Random) -> None:
        self.inputs: tuple[Any, Any] = combiner.i
        self.chance = chance
        self.owed: list[list[tuple[int, int]]] = [[], []]
        self.pending = [False, False]
        self.results = 0

    def arrive(self, number: int, side: int, closes: bool) -> None:
        """Owe results of a tuple, and its group's stars if it closes that."""
        self.pending[side] = True
        results = self.chance.choice([0, 0, 1, 3])
        self.results += results
        self.owed[side] += [(number, 0)] * results
        for half in (SIDE_R, SIDE_S):
            if closes and self.pending[half]:
                self.owed[half].append((number, 1))
                self.pending[half] = False

    def offer(self, ctx: Any) -> None:
        """Offer what is owed, each until it is taken."""
        for half, (each, owed) in enumerate(zip(self.inputs, self.owed, strict=True)):
            offers = owed and (ctx.get(each.valid) or self.chance.random() < 0.7)
            ctx.set(each.valid, bool(offers))
            if offers:
                tag, star = owed[0]
                ctx.set(each.payload, {"r_payload": tag, "s_payload": half, "star": star})

    def taken(self, ctx: Any) -> None:
        """Forget what is taken in this cycle."""
        for each, owed in zip(self.inputs, self.owed, strict=True):
            if ctx.get(each.valid) and ctx.get(each.ready):
                owed.pop(0)


def drawn_groups(chance: random.Random) -> list[list[int]]:
    """Draw the sides of each group's arrivals; some are of one arrival."""
    lengths = [chance.choice([1, 1, 2, 3, 4]) for _ in range(80)]
    return [[chance.randrange(2) for _ in range(length)] for length in lengths]


def test_a_half_is_held_at_its_star_until_the_other_is_at_its_own() -> None:
    """Groups of any sides: the open one's results pass, a closed one's before the next one's."""
    combiner = GroupCombiner(PARAMS)
    chance = random.Random(SEED)
    groups, halves = drawn_groups(chance), Halves(combiner, chance)
    # The last group stays open.
    arrivals = [
        (number, side, k == len(sides) - 1 and number != len(groups) - 1)
        for number, sides in enumerate(groups)
        for k, side in enumerate(sides)
    ]

    async def testbench(ctx: Any) -> None:
        out = combiner.o.p
        waiting, given, stars = list(arrivals), 0, []
        ctx.set(combiner.clear, 1)
        await ctx.tick()
        ctx.set(combiner.clear, 0)
        for cycle in range(4000):
            goes = waiting and chance.random() < (0.9, 0.1)[cycle // 100 % 2]
            goes = bool(goes) and bool(ctx.get(combiner.room))
            ctx.set(combiner.arrives, goes)
            if goes:
                ctx.set(combiner.side, waiting[0][1])
                ctx.set(combiner.closes, waiting[0][2])
            halves.offer(ctx)
            ended = not waiting and not any(halves.owed)
            ctx.set(combiner.end, ended)
            ctx.set(combiner.o.ready, chance.random() < 0.8)
            if ctx.get(combiner.o.valid & combiner.o.ready & out.star):
                stars.append(ctx.get(out.side))
            elif ctx.get(combiner.o.valid & combiner.o.ready):
                assert ctx.get(out.r_payload) == len(stars), "before its group is due"
                assert ctx.get(out.side) == ctx.get(out.s_payload)
                given += 1
            halves.taken(ctx)
            await ctx.tick()
            if goes:
                halves.arrive(*waiting.pop(0))
            if ended and not ctx.get(combiner.open):
                break
        assert given == halves.results, "results are lost"
        assert stars == [int(SIDE_S in sides) for sides in groups], "not a star for each group"

    simulate(combiner, testbench)


def test_the_open_group_s_results_wait_for_nothing() -> None:
    combiner = GroupCombiner(PARAMS)

    async def testbench(ctx: Any) -> None:
        ctx.set(combiner.o.ready, 1)
        ctx.set(combiner.side, SIDE_R)
        ctx.set(combiner.arrives, 1)
        await ctx.tick()
        ctx.set(combiner.arrives, 0)
        for each in combiner.i:
            ctx.set(each.valid, 1)
        sides = []
        for _ in range(6):
            assert ctx.get(combiner.o.valid), "a result waits"
            sides.append(ctx.get(combiner.o.p.side))
            await ctx.tick()
        assert sorted(sides) == [0, 0, 0, 1, 1, 1], "not in turns"

    simulate(combiner, testbench)


def test_an_array_is_busy_until_the_last_group_s_star_is_taken() -> None:
    array = SplitArray(PARAMS)

    async def testbench(ctx: Any) -> None:
        ctx.set(array.order, 1)
        ctx.set(array.punctuate, 1)
        ctx.set(array.group, 4)
        ctx.set(array.idle, 1)
        ctx.set(array.clear, 1)
        await ctx.tick()
        ctx.set(array.clear, 0)
        await ctx.tick()
        ctx.set(array.idle, 0)
        ctx.set(array.i.payload, {"side": SIDE_S})
        ctx.set(array.i.valid, 1)
        await ctx.tick().until(array.i.ready)
        ctx.set(array.i.valid, 0)
        await ctx.tick().repeat(40)
        # More may come: an open group keeps nobody from resting.
        assert not ctx.get(array.busy)
        assert not ctx.get(array.results.valid)
        ctx.set(array.draining, 1)
        await ctx.tick().repeat(2)
        for _ in range(40):
            assert ctx.get(array.busy), "idle although a star is owed"
            await ctx.tick()
        assert ctx.get(array.results.valid & array.results.p.star & array.results.p.side)
        ctx.set(array.results.ready, 1)
        await ctx.tick()
        for _ in range(20):
            assert not ctx.get(array.results.valid), "a second star"
            await ctx.tick()
        assert not ctx.get(array.busy)

    simulate(array, testbench)
