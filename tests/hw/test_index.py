"""The design with an ordered index: parts against plain Python, the whole against the oracle."""

import random
from collections import deque
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Signal
from tests.hw.checks import give, nothing_more, pauses, simulate, spread, take
from tests.hw.test_handshake import STALLS, beats_of, load_splitters, resets, run_inputs, set_up

from streamjoin_common.contract import (
    ONE_WORD,
    DesignParams,
    KeyType,
    Term,
    TermKind,
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
        mask = (1 << params.payload_bits) - 1
        pairs = [(beat & mask, beat >> params.payload_bits & mask) for beat in beats]
        assert difference([*expected, (0, 0), (0, 0)], pairs) == ""
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
    """Looks, a tuple stored and one that expires in every cycle, often in the same word."""
    params = design(12, 12, 16, ways=4)
    occupancy = Occupancy(params)
    rng = random.Random(SEED)
    used = [0] * params.buckets

    async def bench(ctx: Any) -> None:
        await ctx.tick().until(~occupancy.clearing)
        word = other = 0
        for _ in range(400):
            shown = [(word + which) % params.buckets for which in range(params.ways)]
            shown.sort(key=lambda each: each % params.ways)
            seen = [ctx.get(occupancy.used[bank]) for bank in range(params.ways)]
            assert seen == [used[w] for w in shown]
            assert ctx.get(occupancy.used_ahead) == used[other]
            takes, frees = rng.random() < 0.7, rng.random() < 0.7
            beside = rng.random() < 0.3
            into = other if beside else rng.choice(shown)
            ctx.set(occupancy.beside, beside)
            slots = [1 << k for k in range(params.bucket_slots)]
            free = [each for each in slots if not used[into] & each]
            held = [(w, each) for w in range(params.buckets) for each in slots if used[w] & each]
            takes, frees = takes and bool(free), frees and bool(held)
            ctx.set(occupancy.take, takes)
            ctx.set(occupancy.free, frees)
            if takes:
                slot = rng.choice(free)
                ctx.set(occupancy.taken, {"word": into, "slot": slot})
            if frees:
                near = [each for each in held if each[0] in shown] or held
                gone, its_slot = rng.choice(near)
                ctx.set(occupancy.freed, {"word": gone, "slot": its_slot})
            word = rng.choice([word, (word + 1) % params.buckets, rng.randrange(params.buckets)])
            ctx.set(occupancy.look, word)
            other = rng.choice([word, other, into, rng.randrange(params.buckets)])
            ctx.set(occupancy.ahead, other)
            await ctx.tick()
            if takes:
                used[into] |= slot
            if frees:
                used[gone] &= ~its_slot

    simulate(occupancy, bench)


@pytest.mark.parametrize(
    ("ways", "window", "buckets"),
    [(2, 27, 16), (2, 3, 16), (2, 1, 8), (2, 31, 16), pytest.param(4, 27, 16, marks=pytest.mark.slow)],
)
def test_an_index_shows_every_tuple_of_the_buckets_that_are_asked_for_once(
    ways: int, window: int, buckets: int
) -> None:
    """Random errands; phases in which nearly all tuples are of one bucket, or of any."""
    params = design(2 * buckets - 1, 2 * ways, buckets, ways=ways)
    half = Half(params, r_layout(params), 64)
    rng = random.Random(SEED + ways + window)
    waiting: deque[dict[str, int]] = deque()
    shown: list[int] = []
    held: deque[tuple[int, int]] = deque()  # bucket, payload
    stored = joined = 0

    def check(search: dict[str, int]) -> None:
        assert len(shown) == len(set(shown)), "a tuple is shown twice"
        assert set(shown) <= {payload for _, payload in held}, "an expired tuple is shown"
        first, extent = search["word"], search["extent"]
        asked = {p for b, p in held if (b - first) % buckets <= extent and search["looks"]}
        assert asked <= set(shown), "a tuple is missing"

    async def bench(ctx: Any) -> None:
        nonlocal stored, joined
        await ctx.tick().until(~half.clearing)
        hot, busy = None, 0.9
        for step in range(3000):
            if step % 150 == 0:
                hot, busy = rng.choice([None, rng.randrange(buckets)]), rng.choice([0.1, 0.9])
            puts = len(waiting) < 40 and rng.random() < busy
            ctx.set(half.put, puts)
            if puts:
                bucket = rng.randrange(buckets)
                if hot is not None and rng.random() < 0.9:
                    bucket = hot
                errand = {
                    "stores": rng.random() < 0.5,
                    "looks": rng.random() < 0.9,
                    "word": bucket,
                    "extent": rng.choice([0, 0, 1, 6, buckets - 1]),
                }
                ctx.set(half.errand, errand)
            ctx.set(half.hold, rng.random() < 0.1)
            ctx.set(half.wait, rng.random() < 0.1)
            ctx.set(half.enter.payload, stored % 1024)
            ctx.set(half.full, stored >= window)
            scans, searched, stores = (
                ctx.get(each) for each in (half.scan, half.searched, half.stored)
            )
            await ctx.tick()
            if scans:
                live = ctx.get(half.live)
                lanes = [lane for lane in range(params.lanes) if live >> lane & 1]
                shown.extend(ctx.get(half.tuples[lane]).payload for lane in lanes)
            if searched:
                search = waiting.popleft()
                assert not search["stores"], "a tuple is not stored in its turn"
                check(search)
                shown.clear()
            if stores:
                entry = waiting.popleft()
                assert entry["stores"], "a search is passed over"
                joined += searched
                if stored >= window:
                    held.popleft()
                held.append((entry["word"], stored % 1024))
                stored += 1
            if puts:
                waiting.append(errand)
            assert ctx.get(half.held) == len(held)
        assert stored > 100
        assert joined > 10

    simulate(half, bench)


@pytest.mark.parametrize(("window", "length"), [(1, 6), (3, 40), (8, 5), (8, 90)])
def test_tuples_expire_in_order_and_rounds_span_all_that_are_held(window: int, length: int) -> None:
    params = design(8, 4, 8, timestamp_bits=12)
    ages = Ages(params)
    rng = random.Random(window * 100 + length)

    async def bench(ctx: Any) -> None:
        held: deque[tuple[dict[str, int], int, int]] = deque()  # position, end, round
        ends: deque[int] = deque()  # of the count window
        now = evicted = seen = 0
        for _ in range(300):
            now += rng.choice([0, 0, 0, 1, 4])
            arrives, full = rng.random() < 0.8, len(ends) == window
            position = {"word": rng.randrange(8), "slot": 1 << rng.randrange(2)}
            ctx.set(ages.now, now)
            ctx.set(ages.end, now + length)
            ctx.set(ages.arrive, arrives)
            ctx.set(ages.full, full)
            ctx.set(ages.position, position)
            assert ctx.get(ages.held) == len(held)
            assert all((ctx.get(ages.round) - each[2]) % 8 <= 1 for each in held)
            if arrives:
                leaves = full and len(held) == window
                expires = bool(held) and (leaves or held[0][1] <= now)
                assert ctx.get(ages.expires) == expires
                if expires:
                    oldest, end, _ = held.popleft()
                    shown = ctx.get(ages.oldest)
                    assert (shown.word, shown.slot) == (oldest["word"], oldest["slot"])
                    evicted += leaves and end > now
                if full:
                    ends.popleft()
                ends.append(now + length)
                held.append((position, now + length, ctx.get(ages.round)))
            await ctx.tick()
            seen += ctx.get(ages.evicted)
            assert seen == evicted

    simulate(ages, bench)
