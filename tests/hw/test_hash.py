"""The design that looks tuples up: its parts against plain Python, the whole against the oracle."""

import random
from collections import deque
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Module, Signal, Value
from amaranth.lib import data
from tests.hw.checks import give, pauses, simulate, spread
from tests.hw.test_handshake import STALLS, beats_of, resets, run_inputs, set_up

from streamjoin_common.contract import DesignParams, KeyType, Term, TermKind
from streamjoin_common.contract.presets import EQUI
from streamjoin_hw.rtl.hash.index import (
    GENERATION_BITS,
    TAG_BITS,
    BucketTable,
    bucket_bits,
    hashed,
    irreducible,
    sequence_bits,
)
from streamjoin_hw.rtl.hash.ring import Ring, Span
from streamjoin_hw.rtl.join import Join
from streamjoin_hw.rtl.streams import Component, r_layout, signal_of
from streamjoin_hw.sim.testing import random_workload

SEED = 31

CONJUNCTION = (
    Term(TermKind.BAND, KeyType.INT32),
    Term(TermKind.EQUI, KeyType.UINT32),
    Term(TermKind.EQUI, KeyType.FLOAT32),
)


def design(segment: int = 8, lanes: int = 2, **others: Any) -> DesignParams:
    chosen = {"buckets": 2, "ways": 2, "lead_tuples": 8, "payload_bits": 10, "terms": EQUI}
    return DesignParams(
        design="splitjoin-hash",
        cores=1,
        segment_tuples=segment,
        lanes=lanes,
        **{**chosen, **others},
    )


SHAPES = {
    "smallest": design(1, 1),
    "two ways": design(8, 2),
    "odd ways": design(5, 1, ways=3, buckets=4),
    "wide": design(20, 4, ways=4, buckets=8, result_fifo_words=32),
    "long": design(56, 8, ways=5, buckets=2),
    "times": design(8, 2, timestamp_bits=12),
    "wide times": design(20, 4, ways=3, buckets=4, timestamp_bits=12),
    "conjunction": design(12, 2, terms=CONJUNCTION),
    "own": design(8, 2, ways=2, buckets=4, own_buckets=2),
    "own times": design(20, 4, ways=3, buckets=4, own_buckets=4, timestamp_bits=12),
    "pairs": design(20, 4, ways=4, buckets=2, beat_results=2),
    "own pairs": design(56, 4, ways=5, buckets=4, own_buckets=4, beat_results=2, lead_tuples=16),
    "two ways, pairs": design(16, 2, own_buckets=2, beat_results=2, timestamp_bits=12),
}


@pytest.mark.parametrize(
    ("shape", "idle", "stall"), spread(tuple(SHAPES), STALLS, one_of=2, rest=1)
)
def test_random_inputs_are_exact_and_in_order(shape: str, idle: float, stall: float) -> None:
    """The ring wraps several times, and nothing is emptied between the inputs."""
    params = SHAPES[shape]
    rng = np.random.default_rng([SEED, len(shape)])
    longest = min(160, 60 + 4 * params.segment_tuples)
    workloads = [random_workload(params, rng, tuples, extremes=0.05) for tuples in (40, 1, longest)]
    run_inputs(params, workloads, idle, stall)


@pytest.mark.parametrize("windows", [(1, 1), (1, 8), (8, 1), (8, 8), (5, 3)])
@pytest.mark.parametrize("domain", [1, 3, 40])
def test_windows_of_any_size_are_exact(windows: tuple[int, int], domain: int) -> None:
    rng = np.random.default_rng([SEED, *windows, domain])
    params = design(8, 2, ways=2, buckets=4)
    workloads = [random_workload(params, rng, 80, domain=domain, windows=windows)]
    run_inputs(params, workloads, 0.0, 0.2)


@pytest.mark.parametrize("ways", [2, 3, 8])
def test_one_key_everywhere_is_exact_and_overflows_nothing(ways: int) -> None:
    """Every tuple of the window is linked behind one bucket and matches; the output crawls."""
    rng = np.random.default_rng(SEED)
    params = design(16, 2, ways=ways, payload_bits=8)
    run_inputs(params, [random_workload(params, rng, 64, domain=1, windows=(16, 16))], 0.0, 0.6)


def test_one_side_after_the_other_is_exact() -> None:
    rng = np.random.default_rng(SEED)
    params = design(16, 4, buckets=4)
    workload = random_workload(params, rng, 120, domain=12, windows=(16, 16))
    workload.arrivals.sort(key=lambda each: each.side)
    run_inputs(params, [workload, workload], 0.0, 0.0)


@pytest.mark.parametrize("timestamp_bits", [0, 12])
def test_a_reset_in_the_middle_leaves_an_empty_design(timestamp_bits: int) -> None:
    """Numbers begin anew where buckets and rings still hold what they held."""
    rng = np.random.default_rng(SEED)
    params = design(8, 2, timestamp_bits=timestamp_bits)
    abandoned = random_workload(params, rng, 60, domain=2)
    reset = Signal()
    workload = random_workload(params, rng, 90, domain=2)
    first = resets(reset, abandoned, range(1, 12))
    run_inputs(params, [workload], 0.2, 0.3, first=first, reset=reset)


def test_names_of_before_a_reset_that_look_young_give_nothing() -> None:
    """The same tuples get the same numbers again, in buckets that name them already."""
    rng = np.random.default_rng(SEED)
    params = design(8, 2, ways=8)
    workload = random_workload(params, rng, 20, domain=3, windows=(8, 8))
    reset = Signal()

    async def resets(ctx: Any, join: Join) -> None:
        await set_up(ctx, join, workload)
        await give(ctx, join.i, beats_of(workload)[:7], pauses(SEED, 0.0))
        await ctx.tick().repeat(20)
        ctx.set(reset, 1)
        await ctx.tick()
        ctx.set(reset, 0)
        await ctx.tick().until(join.idle)

    run_inputs(params, [workload], 0.0, 0.0, first=resets, reset=reset)


def _divides(divisor: int, polynomial: int) -> bool:
    while polynomial.bit_length() >= divisor.bit_length():
        polynomial ^= divisor << (polynomial.bit_length() - divisor.bit_length())
    return polynomial == 0


@pytest.mark.parametrize("degree", range(5, 21))
def test_the_hash_polynomial_has_no_divisor(degree: int) -> None:
    polynomial = irreducible(degree)
    assert polynomial.bit_length() == degree + 1
    assert not any(_divides(each, polynomial) for each in range(2, 1 << (degree // 2 + 1)))


class Hasher(Component):
    """The hash of a code, alone."""

    code: Signal
    bucket: Signal
    tag: Signal

    def __init__(self, params: DesignParams) -> None:
        from amaranth.lib.wiring import In, Out

        self.params = params
        super().__init__({"code": In(32), "bucket": Out(bucket_bits(params)), "tag": Out(TAG_BITS)})

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        body = signal_of(r_layout(self.params))
        bucket, tag = hashed(self.params, body)
        m.d.comb += [body.code0.eq(self.code), self.bucket.eq(bucket), self.tag.eq(tag)]
        return m


@pytest.mark.parametrize("shift", [0, 7, 24])
def test_numbered_keys_never_share_bucket_and_tag(shift: int) -> None:
    """As many keys as buckets times tags, a power of two apart, with other bits set beside them."""
    params = design(buckets=16)
    hasher = Hasher(params)
    names: set[tuple[int, int]] = set()

    async def bench(ctx: Any) -> None:
        for number in range(1 << (bucket_bits(params) + TAG_BITS)):
            ctx.set(hasher.code, (0x5A000000 >> shift % 3) ^ number << shift)
            names.add((ctx.get(hasher.bucket), ctx.get(hasher.tag)))
            await ctx.delay(1e-9)

    simulate_without_clock(hasher, bench)
    assert len(names) == 1 << (bucket_bits(params) + TAG_BITS)


def simulate_without_clock(component: Component, bench: Any) -> None:
    from amaranth.sim import Simulator

    simulator = Simulator(component)
    simulator.add_testbench(bench)
    simulator.run()


def test_a_bucket_names_its_last_tuples_at_once_and_keeps_the_tags_it_pushed_out() -> None:
    """Pushes and looks in every cycle, often at the same bucket, against lists."""
    params = design(8, 2, ways=3, buckets=4)
    table = BucketTable(params)
    rng = random.Random(SEED)
    lists: list[deque[tuple[int, int]]] = [deque() for _ in range(params.buckets)]
    gone: list[list[tuple[int, int]]] = [[] for _ in range(params.buckets)]
    ring = params.ring_tuples

    async def bench(ctx: Any) -> None:
        looked_at = 0
        ctx.set(table.bucket, 0)
        await ctx.tick()
        for step in range(600):
            word = ctx.get(table.word)
            known = lists[looked_at]
            names = [(word.names[k].sequence, word.names[k].tag) for k in range(params.ways)]
            assert names[: len(known)] == list(known)[: params.ways]
            shown = word.gone | word.gone_before
            assert all(shown >> tag & 1 for at, tag in gone[looked_at] if at > step - ring)
            bucket = rng.choice([looked_at, rng.randrange(params.buckets)])
            push = rng.random() < 0.8
            tag = rng.randrange(1 << TAG_BITS)
            number = step % (1 << sequence_bits(params))
            ctx.set(table.push, push)
            ctx.set(table.name, {"sequence": number, "tag": tag})
            ctx.set(table.bucket, bucket)
            await ctx.tick()
            if push:
                if len(known) >= params.ways:
                    gone[looked_at].append((step, known[params.ways - 1][1]))
                known.appendleft((number, tag))
            looked_at = bucket

    simulate(table, bench)


def test_a_ring_gives_back_what_was_stored_with_its_link() -> None:
    params = design(8, 4)
    body = data.StructLayout({"number": 12})
    ring = Ring(params, body)

    async def bench(ctx: Any) -> None:
        for slot in range(params.ring_tuples):
            ctx.set(ring.store, 1)
            ctx.set(ring.slot, slot)
            ctx.set(ring.enter, {"number": 100 + slot})
            ctx.set(ring.link, slot + 3)
            await ctx.tick()
        ctx.set(ring.store, 0)
        for row in range(params.ring_tuples // params.lanes):
            rows = [(row + lane) % (params.ring_tuples // params.lanes) for lane in range(4)]
            for lane, each in enumerate(rows):
                ctx.set(ring.rows[lane], each)
            await ctx.tick()
            for lane, each in enumerate(rows):
                slot = each * params.lanes + lane
                assert ctx.get(Value.cast(ring.tuples[lane])) == 100 + slot
                assert ctx.get(ring.links[lane]) == slot + 3

    simulate(ring, bench)


@pytest.mark.parametrize("window", [1, 2, 5, 8])
@pytest.mark.parametrize("length", [1, 6, 40])
def test_a_window_drops_what_is_too_old_and_reports_what_left_too_early(
    window: int, length: int
) -> None:
    """Tail and evicted against a list of the ends of the tuples in the window."""
    params = design(8, 2, timestamp_bits=12)
    span = Span(params)
    rng = random.Random(window * 100 + length)
    wrap = 1 << sequence_bits(params)
    assert wrap == params.ring_tuples << GENERATION_BITS

    async def bench(ctx: Any) -> None:
        ends: deque[int] = deque()  # of the tuples in the count window
        passed = now = head = evicted = seen = 0
        for _ in range(400):
            now += rng.choice([0, 0, 0, 1, 4])
            passes = rng.random() < 0.8
            arrives = passes and rng.random() < 0.6
            full = len(ends) == window
            ctx.set(span.now, now)
            ctx.set(span.end, now + length)
            ctx.set(span.passes, passes)
            ctx.set(span.arrive, arrives)
            ctx.set(span.full, full)
            await ctx.tick()
            if arrives:
                if full:
                    evicted += ends.popleft() > now
                    passed += 1
                ends.append(now + length)
                head += 1
            tail = head - (ctx.get(span.head) - ctx.get(span.tail)) % wrap
            live = head - sum(end > now for end in ends)
            assert ctx.get(span.head) == head % wrap
            # By count at once, by time one tuple for each arrival, never too far.
            assert passed <= tail <= max(live, passed)
            seen += ctx.get(span.evicted)
            assert seen == evicted

    simulate(span, bench)
