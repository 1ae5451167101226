"""The design with an ordered index: parts against plain Python, the whole against the oracle."""

import random
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Signal
from tests.hw.checks import give, nothing_more, pauses, simulate, spread, take
from tests.hw.index_models import Errands, Expiry, Slots, with_end
from tests.hw.test_handshake import STALLS, beats_of, load_splitters, resets, run_inputs, set_up

from streamjoin_common.contract import (
    ONE_WORD,
    DesignParams,
    KeyType,
    Term,
    TermKind,
    TUser,
)
from streamjoin_common.contract.presets import BAND, EQUI, REFERENCE_BAND
from streamjoin_hw.rtl.index.ages import Ages
from streamjoin_hw.rtl.index.half import Half
from streamjoin_hw.rtl.index.occupancy import Occupancy
from streamjoin_hw.rtl.join import Join
from streamjoin_hw.rtl.streams import r_layout
from streamjoin_hw.sim.testing import (
    Arrival,
    Workload,
    difference,
    random_workload,
    reference,
)

SEED = 47
FLOATS = (Term(TermKind.BAND, KeyType.FLOAT32),)


def design(segment: int = 8, lanes: int = 4, buckets: int = 8, **others: Any) -> DesignParams:
    chosen: dict[str, Any] = {"payload_bits": 10, "terms": BAND, "ways": 2, **others}
    return DesignParams(
        design="splitjoin-index",
        cores=1,
        segment_tuples=segment,
        lanes=lanes,
        buckets=buckets,
        **chosen,
    )


SHAPES = {
    "smallest": design(2, 2, 4),
    "one slot a word": design(7, 2, 8),
    "nearly no room": design(15, 4, 8),
    "wide": design(20, 8, 8, result_fifo_words=32),
    "four ways": design(14, 12, 8, ways=4, timestamp_bits=12),
    "times": design(8, 4, 8, timestamp_bits=12),
    "reference": design(12, 4, 8, terms=REFERENCE_BAND),
    "floats": design(9, 4, 16, terms=FLOATS),
    "equi, then a band": design(10, 4, 8, terms=(*EQUI, *BAND), timestamp_bits=12),
}


@pytest.mark.parametrize(
    ("shape", "idle", "stall"), spread(tuple(SHAPES), STALLS, one_of=8, rest=1)
)
def test_random_inputs_are_exact_and_in_order(shape: str, idle: float, stall: float) -> None:
    """Each input has splitters of its own, and keys at which arithmetic goes wrong."""
    params = SHAPES[shape]
    rng = np.random.default_rng([SEED, len(shape)])
    workloads = [random_workload(params, rng, tuples, extremes=0.05) for tuples in (25, 1, 50)]
    run_inputs(params, workloads, idle, stall)


@pytest.mark.parametrize(
    ("windows", "domain"),
    [((1, 1), 3), ((1, 15), 1), ((15, 2), 40), ((15, 15), 1), ((6, 11), 200)],
)
def test_windows_of_any_size_and_any_skew_are_exact(windows: tuple[int, int], domain: int) -> None:
    """From one key for all, which fills every slot but one, to none twice."""
    rng = np.random.default_rng([SEED, *windows, domain])
    workload = random_workload(
        SHAPES["nearly no room"], rng, 60, domain=domain, windows=windows, widths=6
    )
    run_inputs(SHAPES["nearly no room"], [workload], 0.0, 0.1)


def test_one_key_everywhere_overflows_nothing() -> None:
    """Every tuple of a window matches, and the output crawls."""
    rng = np.random.default_rng(SEED)
    params = design(12, 2, 16, payload_bits=8)
    workload = random_workload(params, rng, 36, domain=1, windows=(12, 12))
    run_inputs(params, [workload], 0.0, 0.6)


def as_float(number: float) -> int:
    return int(np.float32(number).view(np.uint32))


def test_a_float_that_rounds_away_is_looked_for() -> None:
    """Sums that are rounded to a far key, infinite widths, splitters between all of these keys."""
    params = design(15, 4, 16, terms=FLOATS)
    numbers = [1e8, 1e8 + 8, -1e8, 4.0, -4.0, 4.5, 1e-45, 0.0, np.inf, -np.inf, 3e38]
    rng = random.Random(SEED)
    workloads = []
    for low, high in ((1e8, 1e8), (-np.inf, np.inf), (np.inf, -np.inf), (0.0, 1e-45)):
        keys = [rng.choice(numbers) for _ in range(26)]
        arrivals = [
            Arrival(number % 2, (as_float(key),), number // 2) for number, key in enumerate(keys)
        ]
        bands = {"band_lo0": as_float(low), "band_hi0": as_float(high)}
        workloads.append(Workload(params, arrivals, 15, 11, bands))
    run_inputs(params, workloads, 0.0, 0.0)


def test_widths_and_splitters_hold_for_a_whole_input() -> None:
    """Both are written again while an input runs, in the middle of its tuples."""
    params = design(12, 4, 8)
    rng = np.random.default_rng(SEED)
    workloads = [random_workload(params, rng, 40, domain=40, windows=(12, 12)) for _ in range(2)]
    for workload, high in zip(workloads, (6, 9), strict=True):
        workload.bands.update(band_lo0=0, band_hi0=high)
    join = Join(params)
    expected = [pair for workload in workloads for pair in reference(workload)]

    async def source(ctx: Any) -> None:
        for workload in workloads:
            await ctx.tick().until(join.idle)
            await set_up(ctx, join, workload)
            beats = beats_of(workload)
            await give(ctx, join.i, beats[:20], pauses(SEED, 0.0))
            ctx.set(join.band, {"lo0": 50, "hi0": 50})
            other = random_workload(params, rng, 40, domain=900, windows=(12, 12))
            await load_splitters(ctx, join, other)
            await give(ctx, join.i, beats[20:], pauses(SEED, 0.0))
            await ctx.tick().until(join.drained)

    async def sink(ctx: Any) -> None:
        beats = await take(ctx, join.o, len(expected) + 2, pauses(SEED, 0.0), patience=400)
        bits, mask = params.payload_bits, (1 << params.payload_bits) - 1
        results = [beat for beat in beats if not beat >> 2 * bits & 1 << TUser.PUNCTUATION]
        assert len(results) == len(expected)
        pairs = [(beat & mask, beat >> bits & mask) for beat in results]
        assert difference(expected, pairs) == ""
        await nothing_more(ctx, join.o)

    simulate(join, source, sink)


def test_a_shift_of_the_keys_leaves_nothing_behind() -> None:
    """Splitters of other keys: every tuple in the last bucket, displaced over the end and back."""
    params = design(13, 4, 8)
    rng = np.random.default_rng(SEED)
    workload = random_workload(params, rng, 70, domain=60, windows=(13, 9), widths=8)
    shifted = [
        each.__class__(each.side, ((each.keys[0] + 7 * number) & 0xFFFFFFFF,), each.payload)
        for number, each in enumerate(workload.arrivals)
    ]
    workload.arrivals[:] = shifted
    assert any(bucket.shift < ONE_WORD for side in workload.buckets for bucket in side)
    run_inputs(params, [workload], 0.0, 0.0)


def test_a_reset_in_the_middle_leaves_an_empty_design() -> None:
    """Slots hold what they held, and count for nothing."""
    rng = np.random.default_rng(SEED)
    params = design(8, 4, 8, timestamp_bits=12)
    abandoned = random_workload(params, rng, 40, domain=2)
    reset = Signal()
    workload = random_workload(params, rng, 50, domain=2)
    first = resets(reset, abandoned, (1, 7, 14))
    run_inputs(params, [workload], 0.2, 0.3, first=first, reset=reset)


def test_a_word_shows_what_was_stored_and_what_has_expired_before() -> None:
    occupancy = Occupancy(design(12, 12, 16, ways=4))
    slots = Slots(occupancy, random.Random(SEED))

    async def bench(ctx: Any) -> None:
        await slots.run(ctx, 500)
        await slots.sweep(ctx)

    simulate(occupancy, bench)


@pytest.mark.parametrize(
    ("ways", "window", "buckets"),
    [
        (2, 27, 16),
        (2, 3, 16),
        (2, 1, 8),
        (2, 31, 16),
        pytest.param(4, 27, 16, marks=pytest.mark.slow),
    ],
)
def test_an_index_shows_every_tuple_of_the_buckets_that_are_asked_for_once(
    ways: int, window: int, buckets: int
) -> None:
    params = design(2 * buckets - 1, 2 * ways, buckets, ways=ways)
    half = Half(params, r_layout(params), 64)
    errands = Errands(half, random.Random(SEED + ways + window), window)

    async def bench(ctx: Any) -> None:
        await ctx.tick().until(~half.clearing)
        await errands.run(ctx, 3000)
        assert errands.stored > 100
        assert errands.joined > 10
        assert errands.full

    simulate(half, bench)


class OneBucket(Errands):
    """Three tuples of a bucket for two, then none until they have expired; searches that want them.

    So the third lies as far in each round as in the one before.
    """

    put_in = 0

    def put(self, ctx: Any, busy: float, hot: int | None) -> None:
        puts, stores = len(self.waiting) < 40, self.rng.random() < 0.7
        ctx.set(self.dut.put, puts)
        if not puts:
            return
        is_mine = self.put_in % (self.window + 5) < 3
        word = (5 if is_mine else self.rng.randrange(8, 14)) if stores else 4
        self.put_in += stores
        errand = {"stores": stores, "looks": 1, "word": word, "extent": 1}
        ctx.set(self.dut.errand, with_end(errand, self.params.buckets))
        self.waiting.append(errand)


def test_a_tuple_that_lies_as_far_as_those_of_the_round_before_is_shown() -> None:
    params = design(31, 4, 16)
    half = Half(params, r_layout(params), 64)
    errands = OneBucket(half, random.Random(SEED), 15)

    async def bench(ctx: Any) -> None:
        await ctx.tick().until(~half.clearing)
        await errands.run(ctx, 3000)
        assert errands.stored > 20 * errands.window

    simulate(half, bench)


class Bursts(Errands):
    """Tuples of one bucket after the other, which lie ever further, and searches that want them."""

    hot, share = 0, 0.6

    def put(self, ctx: Any, busy: float, hot: int | None) -> None:
        puts = len(self.waiting) < self.dut.depth and self.rng.random() < 0.97
        ctx.set(self.dut.put, puts)
        if puts:
            if self.rng.random() < 0.04:
                self.hot = self._bucket()
            stores, extent = self.rng.random() < 0.5, self.rng.randint(0, 2)
            word = self.hot if self.rng.random() < self.share else self._bucket()
            word = word if stores else (word - extent) % self.params.buckets
            errand = {"stores": stores, "looks": 1, "word": word, "extent": extent}
            ctx.set(self.dut.errand, with_end(errand, self.params.buckets))
            self.waiting.append(errand)


@pytest.mark.parametrize(("ways", "window"), [(2, 60), (4, 60), (2, 3)])
def test_a_search_behind_the_tuple_that_raised_a_spread_reads_as_far(
    ways: int, window: int
) -> None:
    params = design(127, ways, 128, ways=ways)
    half = Half(params, r_layout(params), 16)
    errands = Bursts(half, random.Random(8 if window == 60 else 8 * window), window)
    errands.share = 0.8 if window == 3 else 0.6

    async def bench(ctx: Any) -> None:
        await ctx.tick().until(~half.clearing)
        await errands.run(ctx, 6000)
        assert errands.stored > 5 * errands.window

    simulate(half, bench)


@pytest.mark.parametrize(("window", "length"), [(1, 6), (3, 40), (8, 5), (8, 90), (300, 4000)])
def test_tuples_expire_in_order_and_rounds_span_all_that_are_held(window: int, length: int) -> None:
    """By count with the tuple that pushes another out; by time in between, soon and not before."""
    ages = Ages(design(max(window, 8), 4, 256, timestamp_bits=13))
    expiry = Expiry(ages, random.Random(window * 100 + length), window, length)

    async def bench(ctx: Any) -> None:
        await expiry.run(ctx, 1200 if window < 300 else 3000)
        ctx.set(ages.arrive, 0)
        for _ in range(3):
            await ctx.tick()
            expiry.seen += ctx.get(ages.evicted)
        assert expiry.seen == expiry.evicted
        assert expiry.turned > 3

    simulate(ages, bench)
