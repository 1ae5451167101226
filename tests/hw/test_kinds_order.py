"""Results of an arrival by arrival of the earlier tuple: the component by itself."""

import dataclasses
import random
from typing import Any, NamedTuple

import pytest
from tests.hw.checks import give, nothing_more, pauses, simulate, take

from streamjoin_common.contract import SIDE_R, SIDE_S, SWEPT_ROWS, DesignParams
from streamjoin_hw.rtl.kinds.oldest import OldestFirst

PARAMS = DesignParams(
    design="splitjoin-index",
    cores=1,
    segment_tuples=400,
    lanes=2,
    buckets=512,
    ways=2,
    kinds="all",
    order="inner",
    window_memory="bram",
)
BITS = PARAMS.array.payload_bits
GROUPS = PARAMS.kept_rows // SWEPT_ROWS


class Result(NamedTuple):
    """A result as a number, as streams show it: slots of R and S, and the later tuple's side."""

    r: int
    s: int
    side: int

    @property
    def bits(self) -> int:
        return self.r | self.s << BITS | self.side << 2 * BITS


def drawn(chance: random.Random, counts: list[int], start: int) -> list[list[Result]]:
    """Draw the results of arrivals of both sides, each oldest first."""
    groups = []
    for number, count in enumerate(counts):
        side, later = chance.randrange(2), number % PARAMS.kept_rows
        ages = sorted(chance.sample(range(PARAMS.window_capacity), count))
        slots = [(start * SWEPT_ROWS + age) % PARAMS.kept_rows for age in ages]
        groups.append(
            [Result(*((later, slot) if side == SIDE_R else (slot, later)), side) for slot in slots]
        )
    return groups


@pytest.mark.parametrize(("idle", "stall"), [(0.0, 0.0), (0.3, 0.5)])
def test_results_of_an_arrival_are_given_oldest_first(idle: float, stall: float) -> None:
    """Whatever their number and wherever the ring begins; arrivals stay in their order."""
    order = OldestFirst(PARAMS)
    chance = random.Random(int(10 * idle))
    counts = [chance.choice([1, 1, 1, 2, 2, 3, 7, 70]) for _ in range(60)] + [5]
    starts = (GROUPS - 3, 0)
    groups = drawn(chance, counts, starts[0])
    # Both rings begin at the same slot; which one counts is the other test's.
    given = []
    for group in groups:
        shuffled = list(group)
        chance.shuffle(shuffled)
        given += shuffled
    expected = [result.bits for group in groups for result in group]

    async def source(ctx: Any) -> None:
        for side in (SIDE_R, SIDE_S):
            ctx.set(order.starts[side], starts[0])
        payloads = [{"r_payload": r, "s_payload": s, "side": side} for r, s, side in given]
        await give(ctx, order.i, payloads, pauses(1, idle))
        ctx.set(order.whole, 1)

    async def sink(ctx: Any) -> None:
        taken = await take(ctx, order.o, len(expected), pauses(2, stall))
        assert taken == expected, "not by arrival of the earlier tuple"
        await nothing_more(ctx, order.o)
        assert not ctx.get(order.busy)

    simulate(order, source, sink)


def test_an_age_is_counted_from_the_ring_of_the_earlier_tuple() -> None:
    order = OldestFirst(PARAMS)
    # S is later: R's ring begins at group 2, so that its slot 64 is older than slot 3.
    results = [Result(3, 5, SIDE_S), Result(64, 5, SIDE_S)]

    async def testbench(ctx: Any) -> None:
        ctx.set(order.starts[SIDE_R], 2)
        ctx.set(order.starts[SIDE_S], 0)
        payloads = [{"r_payload": r, "s_payload": s, "side": side} for r, s, side in results]
        await give(ctx, order.i, payloads, pauses(1, 0))
        await nothing_more(ctx, order.o)
        ctx.set(order.whole, 1)
        taken = await take(ctx, order.o, 2, pauses(2, 0))
        assert taken == [results[1].bits, results[0].bits], "not by age"

    simulate(order, testbench)


def test_results_that_are_alone_pass_one_a_cycle() -> None:
    order = OldestFirst(PARAMS)

    async def testbench(ctx: Any) -> None:
        ctx.set(order.o.ready, 1)
        ctx.set(order.i.valid, 1)
        given = 0
        for number in range(60):
            ctx.set(order.i.payload, {"r_payload": number, "s_payload": 7, "side": SIDE_R})
            assert ctx.get(order.i.ready), "a result waits"
            given += ctx.get(order.o.valid)
            await ctx.tick()
        assert given > 50

    simulate(order, testbench)


def test_an_index_takes_the_inner_order_with_slots_alone() -> None:
    assert PARAMS.order_promise == "inner"
    assert dataclasses.replace(PARAMS, order="none").order_promise == "outer"
