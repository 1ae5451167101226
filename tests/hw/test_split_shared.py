"""SplitJoin with comparators that both halves of a core share: exact, in order, and busy."""

import dataclasses
from typing import Any

import pytest
from tests.hw.checks import simulate
from tests.hw.test_split import design, inputs, pairs_under_mask, run_ordered
from tests.hw.test_split_parts import fill, start

from streamjoin_common.contract import ORDERS, SIDE_R, SIDE_S, DesignParams, ParameterError
from streamjoin_common.contract.presets import REFERENCE_BAND
from streamjoin_hw.rtl.split.array import SplitArray
from streamjoin_hw.rtl.split.emitter import Emitter
from streamjoin_hw.rtl.split.gatherer import MAX_RECENT, Gatherer
from streamjoin_hw.rtl.split.layouts import body_layout
from streamjoin_hw.sim.testing import reference

SHARED = design(
    cores=3,
    segment_tuples=8,
    lanes=4,
    probes=3,
    order="inner",
    merge_arity=2,
    comparators="shared",
)
ALONE = design(cores=1, segment_tuples=5, lanes=1, probes=2, order="outer", comparators="shared")


@pytest.mark.parametrize("order", ORDERS)
def test_shared_comparators_find_every_pair_in_order(order: str) -> None:
    run_ordered(inputs(SHARED, 1)[1:], order)
    run_ordered(inputs(SHARED, 2, windows=(5, 23))[2:], order, idle=0.2, stall=0.4)
    run_ordered(inputs(SHARED, 3, share_r=0.05)[2:], order, stars=order != "none")


@pytest.mark.parametrize("order", ["none", "outer"])
def test_dense_results_of_a_core_that_stores_every_tuple_are_exact(order: str) -> None:
    for windows in ((5, 5), (1, 4)):
        workloads = inputs(ALONE, 4, domain=2, windows=windows)
        run_ordered(workloads, order)
        run_ordered(workloads[2:], order, stall=0.8)


def test_a_core_with_shared_comparators_that_fails_costs_its_share() -> None:
    workloads = inputs(SHARED, 7)[2:]
    run_ordered(workloads, "inner", masked=0b010)
    assert len(pairs_under_mask(workloads[0], 0b010)) < len(reference(workloads[0]))


def test_only_count_windows_share_comparators_and_bands_have_a_star_each() -> None:
    sentence = "timestamp_bits must be 0 where comparators are shared, not 16"
    with pytest.raises(ParameterError, match=sentence):
        dataclasses.replace(SHARED, timestamp_bits=16)
    sentence = "stars must be each where comparators are shared for bands, not 'grouped'"
    with pytest.raises(ParameterError, match=sentence):
        dataclasses.replace(SHARED, terms=REFERENCE_BAND, stars="grouped")


def cycles_of(sides: list[int]) -> int:
    """Count the cycles that full windows take for tuples of these sides: 13 words, 2 probes."""
    shape = {"cores": 2, "segment_tuples": 24, "lanes": 2, "probes": 2, "window_memory": "bram"}
    params = DesignParams(design="splitjoin", order="outer", comparators="shared", **shape)
    array, counted = SplitArray(params), []

    async def testbench(ctx: Any) -> None:
        await start(ctx, array)
        ctx.set(array.results.ready, 1)
        ctx.set(array.punctuate, 1)
        for tuples, stored in (([0, 1] * 48, (0, 0)), (sides, (48, 48))):
            cycles = await fill(ctx, array, tuples, window=24, stored=stored)
            while ctx.get(array.busy):
                await ctx.tick()
                cycles += 1
            counted.append(cycles)

    simulate(array, testbench)
    return counted[1]


@pytest.mark.parametrize("sides", [[0], [0, 1]], ids=["one side", "in turn"])
def test_every_pass_is_of_a_full_batch_whatever_the_sides(sides: list[int]) -> None:
    """60 tuples are 30 passes of 13 cycles."""
    assert cycles_of((sides * 60)[:60]) < 30 * 13 + 45, "a pass for fewer probes than there are"


async def offer(ctx: Any, gatherer: Gatherer, half: int, side: int, full: int = 0) -> bool:
    """Offer a half a tuple for one cycle; returns whether it was taken."""
    each = gatherer.i[half]
    body = body_layout(gatherer.params, side).const({"code0": 7, "payload": 9}).as_value().value
    ctx.set(each.payload, {"side": side, "full": full, "body": body})
    ctx.set(each.valid, 1)
    taken = bool(ctx.get(each.ready))
    await ctx.tick()
    ctx.set(each.valid, 0)
    return taken


def test_a_batch_is_of_one_half_and_of_the_one_behind_while_others_are_compared() -> None:
    gatherer = Gatherer(ALONE)

    async def testbench(ctx: Any) -> None:
        ctx.set(gatherer.free, 0b11)
        ctx.set(gatherer.clear, 1)
        await ctx.tick()
        ctx.set(gatherer.clear, 0)
        # The half that stores R is ahead by a tuple, which is stored.
        assert await offer(ctx, gatherer, SIDE_R, SIDE_R)
        await ctx.tick()
        assert not await offer(ctx, gatherer, SIDE_R, SIDE_S), "ahead, and all are busy"
        ctx.set(gatherer.idle, 1)
        ctx.set(gatherer.free, 0b10)
        assert not await offer(ctx, gatherer, SIDE_R, SIDE_S), "its emitter has no room"
        ctx.set(gatherer.free, 0b11)
        assert await offer(ctx, gatherer, SIDE_R, SIDE_S)
        assert not await offer(ctx, gatherer, SIDE_S, SIDE_R), "a batch of two halves"
        assert (ctx.get(gatherer.waiting), ctx.get(gatherer.side)) == (1, SIDE_R)
        assert await offer(ctx, gatherer, SIDE_R, SIDE_S)
        assert not await offer(ctx, gatherer, SIDE_R, SIDE_S), "more probes than a batch holds"
        ctx.set(gatherer.begin, 1)
        await ctx.tick()
        ctx.set(gatherer.begin, 0)
        assert not ctx.get(gatherer.busy)
        # Its window changes at once where nothing was collected before.
        assert await offer(ctx, gatherer, SIDE_R, SIDE_R)
        assert (ctx.get(gatherer.changes), ctx.get(gatherer.store)) == (1 << SIDE_R, 1)

    simulate(gatherer, testbench)


def test_no_more_tuples_expire_than_slots_are_spare_while_results_are_given() -> None:
    gatherer = Gatherer(ALONE)

    async def testbench(ctx: Any) -> None:
        async def pulse(name: str, value: int = 1) -> None:
            ctx.set(getattr(gatherer, name), value)
            await ctx.tick()
            ctx.set(getattr(gatherer, name), 0)

        async def expire(times: int) -> int:
            return sum([await offer(ctx, gatherer, SIDE_R, SIDE_R, 1) for _ in range(times)])

        ctx.set(gatherer.free, 0b11)
        ctx.set(gatherer.idle, 1)
        await pulse("clear")
        assert await expire(24) == 12, "nothing is read"
        # Two batches, two tuples expire after the begin of the first one, before the second's.
        for before in (0, 4):
            await expire(before)
            assert await offer(ctx, gatherer, SIDE_R, SIDE_S)
            await pulse("begin")
        assert await expire(24) == MAX_RECENT - 2, "more than spare slots"
        await pulse("finished", 1 << SIDE_R)
        assert await expire(24) == 2, "more than spare slots since the second batch began"
        await pulse("finished", 1 << SIDE_R)
        assert await expire(24) == 12, "nothing is read any more"

    simulate(gatherer, testbench)


def test_an_emitter_gives_each_batch_its_payloads_while_the_next_is_collected() -> None:
    params = dataclasses.replace(ALONE, probes=2)
    emitter = Emitter(params, SIDE_S)

    async def testbench(ctx: Any) -> None:
        ctx.set(emitter.ordered, 1)
        given: list[int] = []

        async def tick() -> None:
            if ctx.get(emitter.o.valid & emitter.o.ready) and not ctx.get(emitter.o.p.star):
                given.append(ctx.get(emitter.o.p.r_payload))
            await ctx.tick()

        expected = []
        ctx.set(emitter.count, 2)
        for batch in range(6):
            for index in range(2):
                payload = 10 * batch + index + 1
                expected.append(payload)
                ctx.set(emitter.put_index, index)
                ctx.set(emitter.put_payload, payload)
                ctx.set(emitter.put, 1)
                await tick()
            ctx.set(emitter.put, 0)
            for name, cycles in (("begun", 4), ("push", 1)):
                ctx.set(emitter.hit, {"mask": [1, 1], "last": 1})
                ctx.set(getattr(emitter, name), 1)
                await tick()
                ctx.set(getattr(emitter, name), 0)
                for _ in range(cycles - 1):
                    await tick()
            if batch == 3:
                assert not ctx.get(emitter.free), "room for more batches than banks"
            ctx.set(emitter.o.ready, batch > 2)
            for _ in range(30 if batch > 2 else 1):
                await tick()
        assert given == expected, "not the payloads of their batch"

    simulate(emitter, testbench)
