"""SplitJoin's bands with comparators that both halves of a core share: exact, and in order."""

import dataclasses
from typing import Any

import pytest
from tests.hw.checks import simulate
from tests.hw.test_split import design, inputs, pairs_under_mask, run_ordered
from tests.hw.test_split_parts import fill, start

from streamjoin_common.contract import ORDERS, SIDE_R, SIDE_S, DesignParams, TUser, parse_term
from streamjoin_common.contract.presets import BAND, REFERENCE_BAND
from streamjoin_hw.rtl.join import Join
from streamjoin_hw.rtl.split.array import SplitArray
from streamjoin_hw.rtl.split.layouts import max_changes, max_recent
from streamjoin_hw.rtl.split.points.gatherer import PointGatherer
from streamjoin_hw.rtl.streams import probe_layout
from streamjoin_hw.sim.testing import reference

POINTS = design(
    cores=3,
    segment_tuples=8,
    lanes=4,
    probes=3,
    order="inner",
    merge_arity=2,
    terms=REFERENCE_BAND,
    comparators="shared",
)
ALONE = design(
    cores=1, segment_tuples=5, lanes=1, probes=2, order="outer", terms=BAND, comparators="shared"
)


@pytest.mark.parametrize("order", ORDERS)
def test_bands_with_shared_comparators_find_every_pair_in_order(order: str) -> None:
    run_ordered(inputs(POINTS, 1)[1:], order)
    run_ordered(inputs(POINTS, 2, windows=(5, 23))[2:], order, idle=0.2, stall=0.4)
    run_ordered(inputs(POINTS, 3, share_r=0.05)[2:], order, stars=order != "none")


@pytest.mark.parametrize("order", ["none", "outer"])
def test_dense_bands_of_a_core_that_stores_every_tuple_are_exact(order: str) -> None:
    for windows in ((5, 5), (1, 4)):
        workloads = inputs(ALONE, 4, domain=2, windows=windows)
        run_ordered(workloads, order)
        run_ordered(workloads[2:], order, stall=0.8)


def test_bands_beside_equality_and_keys_at_their_limits_are_exact() -> None:
    terms = tuple(parse_term(text) for text in ("equi:float32", "band:uint32", "band:float32"))
    params = design(terms=terms, cores=2, probes=3, order="outer", comparators="shared")
    run_ordered(inputs(params, 5, extremes=0.3, domain=3, lengths=(60,)), "outer")


def test_a_core_of_bands_that_fails_costs_its_share() -> None:
    workloads = inputs(POINTS, 7)[2:]
    run_ordered(workloads, "inner", masked=0b010)
    assert len(pairs_under_mask(workloads[0], 0b010)) < len(reference(workloads[0]))


def test_many_tuples_stored_between_the_probes_of_a_batch_leave_batches_full() -> None:
    """Nine R tuples for each of S, two cores: batches of S see ten tuples stored."""
    shape = {"cores": 2, "segment_tuples": 64, "lanes": 1, "probes": 4, "window_memory": "bram"}
    params = DesignParams(
        design="splitjoin", order="outer", comparators="shared", terms=BAND, **shape
    )
    array, counted = SplitArray(params), []

    async def testbench(ctx: Any) -> None:
        await start(ctx, array)
        ctx.set(array.results.ready, 1)
        ctx.set(array.punctuate, 1)
        rarer = ([SIDE_R] * 9 + [SIDE_S]) * 8
        for tuples, stored in (([0, 1] * 128, (0, 0)), (rarer, (128, 128))):
            cycles = await fill(ctx, array, tuples, window=128, stored=stored)
            while ctx.get(array.busy):
                await ctx.tick()
                cycles += 1
            counted.append(cycles)

    simulate(array, testbench)
    # 72 R tuples are 18 passes, 8 S tuples two, and two begin or end with fewer; a pass has 64
    # words, and those that changed. With one tuple stored in a batch it takes 1,951 cycles.
    assert counted[1] < 24 * 64 + 100, f"{counted[1]} cycles: passes for few probes"


async def offer(ctx: Any, gatherer: PointGatherer, half: int, side: int, full: int = 0) -> bool:
    """Offer a half a tuple for one cycle; returns whether it was taken."""
    each = gatherer.i[half]
    body = probe_layout(gatherer.params).const({"lo0": 7, "hi0": 8, "payload": 9})
    ctx.set(each.payload, {"side": side, "full": full, "body": body.as_value().value})
    ctx.set(each.valid, 1)
    taken = bool(ctx.get(each.ready))
    await ctx.tick()
    ctx.set(each.valid, 0)
    return taken


def test_a_batch_sees_no_more_changes_than_it_can_count_and_slots_are_spare() -> None:
    gatherer = PointGatherer(dataclasses.replace(ALONE, cores=9))

    async def testbench(ctx: Any) -> None:
        async def change(times: int) -> int:
            """Offer R tuples until so many were the core's to store, or none is taken."""
            changes = 0
            for _ in range(9 * times):
                if not await offer(ctx, gatherer, SIDE_R, SIDE_R, 1):
                    await ctx.tick()
                    if not await offer(ctx, gatherer, SIDE_R, SIDE_R, 1):
                        break
                changes += ctx.get(gatherer.stores) == 1 << SIDE_R
            return changes

        most = max_changes(gatherer.params)
        assert (most, max_recent(gatherer.params)) == (3, 7)
        ctx.set(gatherer.free, 0b11)
        ctx.set(gatherer.idle, 1)
        ctx.set(gatherer.clear, 1)
        await ctx.tick()
        ctx.set(gatherer.clear, 0)
        assert await change(12) == 12, "nothing is read"
        counted = []
        for _ in range(3):
            while not await offer(ctx, gatherer, SIDE_R, SIDE_S):
                await ctx.tick()
            assert ctx.get(gatherer.seen.there) == 0, "a batch counts changes before its first"
            counted.append(await change(12))
            await ctx.tick().repeat(2)
            assert ctx.get(gatherer.seen.there) == counted[-1], "changes are not counted"
            ctx.set(gatherer.begin, 1)
            await ctx.tick()
            ctx.set(gatherer.begin, 0)
        assert counted == [most, most, 1], "not as many as are counted, or as slots are spare"
        ctx.set(gatherer.finished, 1 << SIDE_R)
        await ctx.tick()
        ctx.set(gatherer.finished, 0)
        assert await change(12) == most, "no slots are spare although a batch is done"

    simulate(gatherer, testbench)


def test_band_widths_are_those_of_an_inputs_begin() -> None:
    """Both tuples of a pair must go by the same widths, whichever of them is stored."""
    join = Join(design(cores=1, terms=BAND, order="outer", comparators="shared"))

    async def testbench(ctx: Any) -> None:
        for name in ("enable", "window_r", "window_s"):
            ctx.set(getattr(join, name), 1)
        ctx.set(join.o.ready, 1)
        for widths in ((2, 2), (2, 0)):
            matches = 0
            ctx.set(join.band, {"lo0": widths[0], "hi0": widths[0]})
            await ctx.tick().until(join.idle)
            await ctx.tick().repeat(4)
            # Each later tuple meets the one before it by the first widths alone.
            for number, (side, key) in enumerate([(SIDE_S, 10), (SIDE_R, 12), (SIDE_S, 10)]):
                beat = {"side": side, "key0": key, "payload": number}
                ctx.set(join.i.payload, {"beat": beat, "last": number == 2})
                ctx.set(join.i.valid, 1)
                await ctx.tick().until(join.i.ready)
                ctx.set(join.i.valid, 0)
                ctx.set(join.band, {"lo0": widths[1], "hi0": widths[1]})
                for _ in range(20):
                    matches += ctx.get(join.o.valid & join.o.p.user[TUser.RESULT])
                    await ctx.tick()
            for _ in range(200):
                matches += ctx.get(join.o.valid & join.o.p.user[TUser.RESULT])
                await ctx.tick()
            assert matches == 2, "a width that was written while the input runs counts"
            ctx.set(join.band, {"lo0": 0, "hi0": 0})

    simulate(join, testbench)
