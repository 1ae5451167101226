"""SplitJoin with one probe slot: rings without a spare word are exact."""

from collections import deque
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Cat, Module, Signal
from amaranth.lib.wiring import In, Out
from tests.hw.checks import simulate, spread
from tests.hw.test_split import SEED, design, run_ordered

from streamjoin_common.contract import ORDERS, SIDE_R, SIDE_S, DesignParams
from streamjoin_hw.rtl.queues import LateCount
from streamjoin_hw.rtl.split.collector import SingleCollector
from streamjoin_hw.rtl.split.half import Half
from streamjoin_hw.rtl.split.layouts import body_layout, is_single, pass_words, ring_words
from streamjoin_hw.rtl.streams import Component
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


@pytest.mark.parametrize("order", ["none", "outer"])
@pytest.mark.parametrize("stall", [0.0, 0.8])
def test_a_half_is_idle_only_when_all_it_owes_was_taken(order: str, stall: float) -> None:
    params = design(cores=1, segment_tuples=4, lanes=1, probes=1, order=order)
    assert is_single(params)
    half = Half(params, SIDE_R)
    rng = np.random.default_rng([SEED, len(order)])
    window: deque[int] = deque(maxlen=4)

    async def testbench(ctx: Any) -> None:
        ctx.set(half.clear, 1)
        await ctx.tick().repeat(2)
        ctx.set(half.clear, 0)
        if order != "none":
            ctx.set(half.ordered, 1)
        await ctx.tick().repeat(3)
        owed = given = idles = 0
        recent, offered = 0, False
        for _ in range(3000):
            if not offered and rng.random() < 0.1:
                side, key = int(rng.choice([SIDE_R, SIDE_S])), int(rng.integers(2))
                body = body_layout(params, side).const({"code0": key}).as_value().value
                full = side == SIDE_R and len(window) == 4
                ctx.set(half.i.payload, {"side": side, "full": full, "body": body})
                offered = True
            ctx.set(half.i.valid, offered)
            ctx.set(half.o.ready, rng.random() >= stall)
            if not ctx.get(half.busy) and not recent:
                assert given == owed, "idle although something is owed"
                idles += 1
            recent = max(0, recent - 1)
            given += ctx.get(half.o.valid & half.o.ready)
            if offered and ctx.get(half.i.ready):
                # What is inside says so in its second cycle.
                recent, offered = 1, False
                if side == SIDE_R:
                    window.append(key)
                else:
                    owed += window.count(key) + (order != "none")
            await ctx.tick()
        assert given > 50
        assert idles > 50, "never idle"

    simulate(half, testbench)


class _Counts(Component):
    """Counts in both forms: whether there are at least 1, 2 and so on, a bit each."""

    enters: Signal
    leaves: Signal
    chosen: Signal
    flat: Signal

    def __init__(self, maximum: int, *, is_unary: bool) -> None:
        self.maximum = maximum
        self.is_unary = is_unary
        super().__init__(
            {"enters": In(1), "leaves": In(1), "chosen": Out(maximum), "flat": Out(maximum)}
        )

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        for told, is_flat in ((self.chosen, False), (self.flat, True)):
            count = LateCount(
                m, self.enters, self.leaves, self.maximum, is_unary=self.is_unary, is_flat=is_flat
            )
            m.d.comb += told.eq(Cat(count.at_least(k + 1) for k in range(self.maximum)))
        return m


@pytest.mark.parametrize(("maximum", "is_unary"), [(3, False), (15, True), (20, False)])
def test_a_late_count_tells_in_both_forms_how_many_there_are(maximum: int, is_unary: bool) -> None:
    counts = _Counts(maximum, is_unary=is_unary)
    rng = np.random.default_rng([SEED, maximum])

    async def testbench(ctx: Any) -> None:
        there = 0
        for cycle in range(1200):
            # It fills and empties in turn, so that both ends are met.
            fills = 0.8 if cycle // 60 % 2 else 0.2
            leaves = there > 0 and rng.random() < 1 - fills
            enters = there < maximum and rng.random() < fills
            ctx.set(counts.enters, enters)
            ctx.set(counts.leaves, leaves)
            told = (1 << there) - 1
            assert ctx.get(counts.chosen) == told, "another count by choice"
            assert ctx.get(counts.flat) == told, "another count by ANDs"
            there += enters - leaves
            await ctx.tick()

    simulate(counts, testbench)
