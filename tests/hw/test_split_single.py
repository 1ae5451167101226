"""SplitJoin with one probe slot: rings without a spare word are exact."""

from typing import Any

import numpy as np
import pytest
from tests.hw.checks import simulate, spread
from tests.hw.test_split import SEED, design, run_ordered

from streamjoin_common.contract import ORDERS, SIDE_R, SIDE_S, DesignParams
from streamjoin_hw.rtl.split.collector import SingleCollector
from streamjoin_hw.rtl.split.layouts import body_layout, is_single, pass_words, ring_words
from streamjoin_hw.sim.testing import random_workload

SHAPES = ((1, 4, 1), (2, 3, 1), (3, 4, 2), (1, 5, 3), (2, 1, 1), (1, 24, 1))
"""Cores, tuples of a segment, lanes. The last has passes that a list of 16 words cannot hold."""


@pytest.mark.parametrize(
    ("cores", "segment", "lanes", "order", "stall"),
    spread(SHAPES, ORDERS, [(0.0,), (0.3,), (0.8,)], one_of=3),
)
def test_full_windows_and_dense_results_are_exact(
    cores: int, segment: int, lanes: int, order: str, stall: float
) -> None:
    """Every tuple that is stored is written over one that a match was just found with."""
    params = design(
        cores=cores, segment_tuples=segment, lanes=lanes, probes=1, order=order, merge_arity=2
    )
    assert is_single(params)
    whole = params.window_capacity
    rng = np.random.default_rng([SEED, cores, segment, lanes])
    for windows, domain in (((whole, whole), 1), ((whole, max(1, whole - 1)), 2)):
        workload = random_workload(params, rng, 60, domain=domain, windows=windows)
        run_ordered([workload], order, stall=stall, stars=order != "none")


def test_only_what_is_looked_at_once_more_needs_a_spare_word() -> None:
    shape = {"design": "splitjoin", "cores": 2, "segment_tuples": 16, "order": "outer"}
    wide = {"timestamp_bits": 8}, {"probes": 2}, {"stars": "grouped"}, {"comparators": "shared"}
    assert ring_words(DesignParams(**shape)) == 16
    assert pass_words(DesignParams(**shape)) == 17
    for given in wide:
        params = DesignParams(**shape, **given)
        assert ring_words(params) == pass_words(params) > 16


def test_changes_come_before_the_probe_of_their_batch() -> None:
    params = DesignParams(design="splitjoin", cores=1, segment_tuples=2)
    collector = SingleCollector(params, SIDE_R)

    async def testbench(ctx: Any) -> None:
        async def offer(side: int, number: int, *, full: int = 0, begin: int = 0) -> bool:
            body = body_layout(params, side).const({"payload": number}).as_value().value
            ctx.set(collector.i.payload, {"side": side, "full": full, "body": body})
            ctx.set(collector.i.valid, 1)
            if not ctx.get(collector.i.ready):
                # The one before waits still.
                await decide(begin)
                ctx.set(collector.i.valid, 0)
                return False
            await ctx.tick()
            ctx.set(collector.i.valid, 0)
            assert not ctx.get(collector.i.ready), "two tuples in a register"
            return await decide(begin)

        async def decide(begin: int = 0) -> bool:
            """Give the tuple in the register a cycle; return whether it was collected."""
            assert not ctx.get(collector.i.ready)
            assert ctx.get(collector.busy)
            ctx.set(collector.begin, begin)
            await ctx.tick()
            ctx.set(collector.begin, 0)
            return bool(ctx.get(collector.i.ready))

        def state() -> tuple[int, int, int]:
            bits = (collector.store, collector.expire, collector.batch.count)
            store, expire, count = (ctx.get(bit) for bit in bits)
            assert ctx.get(collector.waiting) == bool(store | expire | count)
            return store, expire, count

        ctx.set(collector.clear, 1)
        await ctx.tick()
        ctx.set(collector.clear, 0)
        assert state() == (0, 0, 0)
        assert await offer(SIDE_S, 1)
        assert not await offer(SIDE_R, 5), "a change behind a probe"
        assert not await offer(SIDE_S, 3), "a tuple beside the one that waits"
        # With the begin of the batch its probe is still there; what waits is not of that batch.
        assert not await decide(begin=1)
        assert state() == (0, 0, 0)
        assert ctx.get(collector.batch.probes[0].payload) == 1, "the probe is gone too early"
        assert await decide()
        assert not await offer(SIDE_R, 6), "a second tuple to store"
        assert ctx.get(collector.enter.payload) == 5
        assert state() == (1, 0, 0)
        assert not await decide(begin=1)
        assert state() == (0, 0, 0)
        assert await decide()
        assert ctx.get(collector.enter.payload) == 6
        # A batch of changes begins as a probe arrives: that is the next one's.
        assert await offer(SIDE_S, 8, begin=1), "a probe waits although there is none"
        assert state() == (0, 0, 1)
        assert ctx.get(collector.batch.probes[0].payload) == 8

    simulate(collector, testbench)
