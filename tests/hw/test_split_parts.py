"""SplitJoin's parts by themselves: a batch, the mergers of one side, the combiner of both."""

import dataclasses
import random
from collections.abc import Sequence
from typing import Any

import pytest
from amaranth.hdl import Module
from amaranth.lib import data, stream
from amaranth.lib.wiring import Out
from amaranth.sim import Simulator
from tests.hw.checks import simulate

from streamjoin_common.contract import SIDE_R, SIDE_S, DesignParams
from streamjoin_hw.rtl.core_array import LateResetCore
from streamjoin_hw.rtl.split.array import SplitArray
from streamjoin_hw.rtl.split.collector import Collector
from streamjoin_hw.rtl.split.combiner import Combiner, sides_kept
from streamjoin_hw.rtl.split.layouts import body_layout
from streamjoin_hw.rtl.split.outlet import Outlet
from streamjoin_hw.rtl.split.queue import Queue
from streamjoin_hw.rtl.split.trees import StarMerger
from streamjoin_hw.rtl.streams import Component

PARAMS = DesignParams(design="splitjoin", cores=4, segment_tuples=2, order="outer")


class _Talker(Component):
    """Offers payloads from the second cycle after a reset on."""

    o: Any

    def __init__(self) -> None:
        super().__init__({"o": Out(stream.Signature(8))})

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        m.d.sync += self.o.valid.eq(1)
        return m


def test_a_core_is_reset_a_cycle_late_and_at_power_up() -> None:
    late: Any = LateResetCore(_Talker())
    offered = []

    async def testbench(ctx: Any) -> None:
        for cycle in range(12):
            ctx.set(late.rst, cycle == 6)
            offered.append(ctx.get(late.o.valid))
            for level in (1, 0):
                await ctx.delay(1e-6)
                ctx.set(late.clk, level)

    # Its clock is a port.
    simulator = Simulator(late)
    simulator.add_testbench(testbench)
    simulator.run()
    # A cycle after its wire, and it begins in the next one.
    assert offered == [0] * 2 + [1] * 6 + [0] + [1] * 3


def test_a_star_merger_takes_turns() -> None:
    merger = StarMerger(PARAMS, 4)

    async def testbench(ctx: Any) -> None:
        ctx.set(merger.o.ready, 1)
        busy = (0, 1, 3)
        for k in busy:
            ctx.set(merger.i[k].payload, {"r_payload": k})
            ctx.set(merger.i[k].valid, 1)
        served = []
        while len(served) < 30:
            await ctx.tick()
            assert ctx.get(merger.o.valid)
            served.append(ctx.get(merger.o.p.r_payload))
        assert served == [busy[number % 3] for number in range(30)], "not in turns"

    simulate(merger, testbench)


def test_the_combiner_has_room_for_as_many_sides_as_it_remembers() -> None:
    combiner = Combiner(PARAMS)
    chance = random.Random(5)
    sides = [chance.randrange(2) for _ in range(3 * sides_kept(PARAMS))]

    async def testbench(ctx: Any) -> None:
        ctx.set(combiner.control.outer, 1)
        sent, given = 0, []
        for cycle in range(10 * len(sides)):
            # Nothing is given before the memory of sides is full.
            starts = cycle > 2 * sides_kept(PARAMS)
            for each in combiner.i:
                ctx.set(each.payload, {"star": 1})
                ctx.set(each.valid, starts)
            ctx.set(combiner.o.ready, starts and chance.random() < 0.7)
            goes = sent < len(sides) and ctx.get(combiner.room)
            ctx.set(combiner.side, sides[sent] if goes else 0)
            ctx.set(combiner.arrives, goes)
            if not starts:
                assert sent <= sides_kept(PARAMS) + 1, "more sides than it remembers"
            sent += goes
            if ctx.get(combiner.o.valid) and ctx.get(combiner.o.ready):
                given.append(ctx.get(combiner.o.p.side))
            await ctx.tick()
            if len(given) == len(sides):
                break
        assert given == sides, "not the sides that set out"

    simulate(combiner, testbench)


def test_a_star_merger_waits_for_the_lowest_row_of_all() -> None:
    merger = StarMerger(dataclasses.replace(PARAMS, order="inner"), 2)

    async def testbench(ctx: Any) -> None:
        ctx.set(merger.control, {"outer": 1, "inner": 1, "row_mask": -1})
        ctx.set(merger.o.ready, 1)
        ctx.set(merger.i[1].payload, {"row": 5})
        ctx.set(merger.i[1].valid, 1)
        for _ in range(4):
            await ctx.tick()
            assert not ctx.get(merger.o.valid), "given before every input offers something"
        ctx.set(merger.i[0].payload, {"row": 3})
        ctx.set(merger.i[0].valid, 1)
        await ctx.tick()
        assert ctx.get(merger.o.p.row) == 3
        ctx.set(merger.i[0].payload, {"star": 1})
        await ctx.tick()
        assert ctx.get(merger.o.p.row) == 5

    simulate(merger, testbench)


@pytest.mark.parametrize("order", ["none", "outer"])
def test_the_combiner_keeps_what_it_offers_until_it_is_taken(order: str) -> None:
    """No order is asked for; the design may have one."""
    combiner = Combiner(dataclasses.replace(PARAMS, order=order))

    async def testbench(ctx: Any) -> None:
        for each, payload in ((combiner.i[0], 1), (combiner.i[1], 2)):
            ctx.set(each.payload, {"r_payload": payload})
            ctx.set(each.valid, 1)
        given = []
        for _ in range(6):
            offered = ctx.get(combiner.o.p.r_payload)
            for ready in (0, 0, 1):
                ctx.set(combiner.o.ready, ready)
                assert ctx.get(combiner.o.p.r_payload) == offered, "an offer changed"
                await ctx.tick()
            given.append(offered)
        assert sorted(given) == [1, 1, 1, 2, 2, 2]

    simulate(combiner, testbench)


def test_a_batch_knows_what_its_probes_meet_and_the_time_of_what_expires() -> None:
    params = dataclasses.replace(PARAMS, cores=1, probes=2, timestamp_bits=8)
    collector = Collector(params, SIDE_R)

    async def testbench(ctx: Any) -> None:
        async def offer(side: int, time: int, *, full: int = 0) -> bool:
            body = body_layout(params, side).const({"payload": time, "ts": time}).as_value().value
            ctx.set(collector.i.payload, {"side": side, "full": full, "body": body})
            ctx.set(collector.i.valid, 1)
            accepted = bool(ctx.get(collector.i.ready))
            await ctx.tick()
            ctx.set(collector.i.valid, 0)
            return accepted

        ctx.set(collector.clear, 1)
        await ctx.tick()
        ctx.set(collector.clear, 0)
        assert not ctx.get(collector.waiting)
        assert await offer(SIDE_S, 1)
        assert await offer(SIDE_R, 2, full=1)
        assert not await offer(SIDE_R, 3, full=1), "a second tuple to store"
        assert await offer(SIDE_S, 4)
        assert not await offer(SIDE_S, 5), "more probes than a batch holds"
        for _ in range(3):
            assert (ctx.get(collector.now), ctx.get(collector.enter.ts)) == (2, 2)
            await ctx.tick()
        assert (ctx.get(collector.store), ctx.get(collector.expire)) == (1, 1)
        assert [ctx.get(probe.ts) for probe in collector.batch.probes] == [1, 4]
        # The first probe arrived before the change, the second after it.
        assert (ctx.get(collector.batch.gone), ctx.get(collector.batch.there)) == (0b10, 0b10)
        ctx.set(collector.begin, 1)
        await ctx.tick()
        ctx.set(collector.begin, 0)
        assert not ctx.get(collector.waiting)

    simulate(collector, testbench)


def test_a_queue_keeps_order_and_is_as_deep_as_it_says() -> None:
    queue = Queue(data.StructLayout({"number": 8}), 8)
    chance = random.Random(7)

    async def testbench(ctx: Any) -> None:
        sent, given, offered = 0, [], None
        for cycle in range(1000):
            # Now and then it fills up, and empties.
            ctx.set(queue.i.valid, cycle // 40 % 3 != 2 and chance.random() < 0.8)
            ctx.set(queue.i.payload, {"number": sent % 251})
            ctx.set(queue.o.ready, cycle // 40 % 3 != 0 and chance.random() < 0.8)
            takes = ctx.get(queue.i.valid) and ctx.get(queue.i.ready)
            assert ctx.get(queue.busy) == (sent > len(given))
            assert sent - len(given) <= 8, "more than it holds"
            if ctx.get(queue.i.valid) and sent - len(given) < 8:
                assert takes, "less than it holds"
            valid, number = ctx.get(queue.o.valid), ctx.get(queue.o.p.number)
            assert valid or not ctx.get(queue.i.valid), "a cycle is lost"
            assert offered is None or (valid and number == offered), "not in order"
            offered = number if valid and not ctx.get(queue.o.ready) else None
            if valid and ctx.get(queue.o.ready):
                assert number == len(given) % 251, "not in order"
                given.append(number)
            sent += takes
            await ctx.tick()
        assert len(given) > 250

    simulate(queue, testbench)


def small_array(order: str, cores: int) -> SplitArray:
    """Make cores whose pass takes 8 cycles for 2 probes."""
    shape = {"cores": cores, "segment_tuples": 8, "probes": 2, "window_memory": "bram"}
    return SplitArray(DesignParams(design="splitjoin", order=order, **shape))


async def fill(
    ctx: Any,
    array: SplitArray,
    sides: list[int],
    *,
    alike: bool = False,
    window: int = 8,
    stored: Sequence[int] = (0, 0),
) -> int:
    """Give tuples as fast as they are taken, ``window`` a core; returns the cycles."""
    stored, cycles = list(stored), 0
    for number, side in enumerate(sides):
        body = (0 if alike else number) | number << 32
        tuple_ = {"side": side, "body": body, "full": stored[side] >= window * array.params.cores}
        ctx.set(array.i.payload, tuple_)
        ctx.set(array.i.valid, 1)
        while not ctx.get(array.i.ready):
            await ctx.tick()
            cycles += 1
            assert cycles < 3000, "no tuple is taken"
        stored[side] += 1
        await ctx.tick()
        cycles += 1
    ctx.set(array.i.valid, 0)
    return cycles


async def start(ctx: Any, array: SplitArray) -> None:
    """Empty the array, with the order that it is built for."""
    if array.params.order != "none":
        ctx.set(array.order, 1)
    ctx.set(array.idle, 1)
    ctx.set(array.clear, 1)
    await ctx.tick()
    ctx.set(array.clear, 0)
    await ctx.tick()
    ctx.set(array.idle, 0)


def test_a_half_works_while_the_other_has_more_to_do() -> None:
    array = small_array("outer", 2)

    async def testbench(ctx: Any) -> None:
        await start(ctx, array)
        ctx.set(array.results.ready, 1)
        ctx.set(array.punctuate, 1)
        runs = [number // 12 % 2 for number in range(72)]
        for sides in ([1] * 16 + [0] * 16, runs):
            taken = cycles = await fill(ctx, array, sides)
            while ctx.get(array.busy):
                await ctx.tick()
                cycles += 1
        assert taken == len(runs), "not all tuples found a place"
        # Three runs of each side are 18 passes of 8 cycles in each half, and tuples to store.
        assert cycles < 265, "a half waits for the other"

    simulate(array, testbench)


@pytest.mark.parametrize("results", [1, 4])
def test_an_array_is_busy_while_results_wait(results: int) -> None:
    array = small_array("none", 1)

    async def testbench(ctx: Any) -> None:
        await start(ctx, array)
        await fill(ctx, array, [1] + [0] * results, alike=True)
        await ctx.tick().repeat(60)
        assert ctx.get(array.results.valid)
        assert ctx.get(array.busy), "idle although results wait"

    simulate(array, testbench)


def test_an_outlet_gives_what_was_ordered_though_one_order_waits() -> None:
    params = dataclasses.replace(PARAMS, probes=2, segment_tuples=8)
    outlet = Outlet(params, SIDE_R)
    chance = random.Random(11)
    orders = [
        {"star": int(chance.random() < 0.3), "word": chance.randrange(8), "probe": number % 2}
        for number in range(200)
    ]

    async def testbench(ctx: Any) -> None:
        sent, taken, offered, fetched = 0, 0, None, 0
        for _ in range(2000):
            given = sent < len(orders) and (offered is not None or chance.random() < 0.8)
            if given:
                ctx.set(outlet.i.payload, orders[sent])
            ctx.set(outlet.i.valid, given)
            ctx.set(outlet.payload, fetched)
            room = []
            for ready in (0, 1):
                ctx.set(outlet.o.ready, ready)
                room.append(ctx.get(outlet.i.ready))
            assert room[0] == room[1], "ready runs through"
            ctx.set(outlet.o.ready, chance.random() < 0.6)
            ctx.set(outlet.probing, 100 + ctx.get(outlet.probe))
            if ctx.get(outlet.fetch):
                fetched = 200 + ctx.get(outlet.fetch_word)
            if ctx.get(outlet.o.valid) and ctx.get(outlet.o.ready):
                due = orders[taken]
                assert ctx.get(outlet.o.p.star) == due["star"], "another order"
                found = ctx.get(outlet.o.p.r_payload), ctx.get(outlet.o.p.s_payload)
                assert due["star"] or found == (200 + due["word"], 100 + due["probe"]), "another's"
                taken += 1
            goes = given and room[0]
            offered = sent if given and not goes else None
            sent += goes
            await ctx.tick()
        assert taken == len(orders), "not all orders"

    simulate(outlet, testbench)
