"""Where both sides' results meet: a star merger takes turns, the combiner remembers every side."""

import random
from typing import Any

from tests.hw.checks import simulate

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.split.combiner import Combiner, sides_kept
from streamjoin_hw.rtl.split.trees import StarMerger

PARAMS = DesignParams(design="splitjoin", cores=4, segment_tuples=2, order="outer")


def test_a_star_merger_takes_turns() -> None:
    merger = StarMerger(PARAMS, 4)

    async def testbench(ctx: Any) -> None:
        ctx.set(merger.o.ready, 1)
        busy = (0, 1, 3)
        for k in busy:
            ctx.set(merger.input(k).payload, {"r_payload": k})
            ctx.set(merger.input(k).valid, 1)
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
            for each in (combiner.i0, combiner.i1):
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
