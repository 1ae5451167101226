"""Both indexes at their own pace: what waits for one, and results put in order again."""

import random
from collections import deque
from typing import Any

import numpy as np
from tests.hw.checks import give, nothing_more, pauses, simulate, take
from tests.hw.index_models import Plans
from tests.hw.test_handshake import beats_of, run_inputs, set_up
from tests.hw.test_index import SEED, design

from streamjoin_common.contract.presets import REFERENCE_BAND
from streamjoin_hw.rtl.index.layouts import NUMBER_BITS
from streamjoin_hw.rtl.index.merge import LEAD, InOrder
from streamjoin_hw.rtl.index.plan import Planner
from streamjoin_hw.rtl.join import Join
from streamjoin_hw.sim.testing import Arrival, Workload, difference, random_workload, reference


def test_errands_are_shown_in_order_with_what_they_have_to_read() -> None:
    planner = Planner(design(60, 4, 32), 16)
    plans = Plans(planner, random.Random(SEED))

    async def bench(ctx: Any) -> None:
        await plans.run(ctx, 8000)
        assert plans.shown > 400
        assert plans.stale > 20
        assert plans.full > 20

    simulate(planner, bench)


def test_words_of_both_indexes_are_taken_in_order_of_arrival() -> None:
    """The indexes find something for every few arrivals, and are ahead of each other in turn."""
    params = design(6, 2, payload_bits=16)
    order = InOrder(params)
    rng = random.Random(SEED)
    arrivals = [rng.choice("0011..") for _ in range(400)]
    given: list[int] = []

    async def indexes(ctx: Any) -> None:
        begun, queues, words = [0, 0], (deque[int](), deque[int]()), (deque[int](), deque[int]())
        for step in range(4000):
            if min(begun) == len(arrivals) and not words[0] and not words[1]:
                break
            far = ctx.get(order.far)
            for side in (0, 1):
                slow = rng.random() < (0.8 if step // 300 % 2 == side else 0.1)
                if not slow and not far >> side & 1 and begun[side] < len(arrivals):
                    if arrivals[begun[side]] == str(side):
                        queues[side].append(begun[side])
                        words[side].append(begun[side])
                    begun[side] += 1
                queue = queues[side]
                ctx.set(order.is_found[side], bool(queue))
                ctx.set(order.number[side], (queue[0] if queue else 0) % (1 << NUMBER_BITS))
                word = {"probe": words[side][0] if words[side] else 0, "mask": 1}
                ctx.set(order.found[side], {**word, "payloads": [0, 0], "single": 1})
                ctx.set(order.passed[side], begun[side] % (1 << NUMBER_BITS))
                ctx.set(order.next_number[side], begun[side] % (1 << NUMBER_BITS))
            assert max(begun) - min([*begun, *queues[0], *queues[1]]) < 2 * LEAD
            chosen, taken = ctx.get(order.choose), ctx.get(order.take)
            assert chosen != 3, "two words are chosen at once"
            await ctx.tick()
            for side in (0, 1):
                if taken >> side & 1:
                    assert len(words[side]) > len(queues[side]), (
                        "a word is taken that was not chosen"
                    )
                    words[side].popleft()
                if chosen >> side & 1:
                    queues[side].popleft()

    async def sink(ctx: Any) -> None:
        for at, number in enumerate(n for n, each in enumerate(arrivals) if each != "."):
            (beat,) = await take(ctx, order.results, 1, pauses(at, 0.3), patience=900)
            side = beat >> 2 * params.payload_bits & 1
            assert side == 1 - int(arrivals[number]), "a result has the other side"
            given.append(beat >> (params.payload_bits * side) & 0xFFFF)
            assert given[-1] == number, "results are not in the order of arrival"

    simulate(order, indexes, sink)


def test_an_index_waits_for_results_that_are_not_taken() -> None:
    """Matches, then arrivals without any, more than half of all numbers, then matches."""
    params = design(6, 4, 8, payload_bits=12)
    near = [Arrival(number % 2, (0,), number) for number in range(8)]
    far = [Arrival(1, (900 + number,), 100 + number) for number in range(180)]
    last = [Arrival(number % 2, (5,), 500 + number) for number in range(16)]
    workload = Workload(params, near + far + last, 6, 6, {"band_lo0": 3, "band_hi0": 3})
    join, expected = Join(params), reference(workload)

    async def source(ctx: Any) -> None:
        await ctx.tick().until(join.idle)
        await set_up(ctx, join, workload)
        await give(ctx, join.i, beats_of(workload), pauses(SEED, 0.0))

    async def sink(ctx: Any) -> None:
        await ctx.tick().repeat(2600)
        beats = await take(ctx, join.o, len(expected) + 1, pauses(SEED, 0.2), patience=2000)
        mask = (1 << params.payload_bits) - 1
        pairs = [(beat & mask, beat >> params.payload_bits & mask) for beat in beats[:-1]]
        assert difference(expected, pairs) == ""
        assert [max(pair) for pair in pairs] == sorted(max(pair) for pair in pairs)
        await nothing_more(ctx, join.o)

    simulate(join, source, sink)


def test_sides_that_come_in_runs_are_exact() -> None:
    """One index searches for long while the other only stores, and the other way around."""
    rng = np.random.default_rng(SEED)
    for params in (design(14, 4, 16, terms=REFERENCE_BAND), design(14, 4, 16, timestamp_bits=12)):
        workload = random_workload(params, rng, 140, domain=30, windows=(14, 9), widths=12)
        arrivals = workload.arrivals
        rows = [0, 0]
        for at, arrival in enumerate(arrivals):
            side = at // int(rng.choice([1, 7, 30])) % 2
            arrivals[at] = Arrival(side, arrival.keys, rows[side], arrival.ts)
            rows[side] += 1
        run_inputs(params, [workload], 0.1, 0.2)
