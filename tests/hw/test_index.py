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
    used, bits = [0] * params.buckets, [0] * params.buckets
    rows = params.buckets // params.ways
    slots = [1 << k for k in range(params.bucket_slots)]

    async def bench(ctx: Any) -> None:
        before = ([0] * params.ways, [0] * params.ways)
        for step in range(500):
            reads, into = ([rng.randrange(rows) for _ in range(params.ways)] for _ in (0, 1))
            if step % 2:
                reads, into = before
            words = [row * params.ways + bank for bank, row in enumerate(reads)]
            others = [row * params.ways + bank for bank, row in enumerate(into)]
            ctx.set(occupancy.rows, reads)
            ctx.set(occupancy.into, into)
            free = [(w, s) for w in range(params.buckets) for s in slots if not used[w] & s]
            held = [(w, s) for w in range(params.buckets) for s in slots if used[w] & s]
            near = [each for each in free if each[0] in others] or free
            takes, frees = bool(free) and rng.random() < 0.7, bool(held) and rng.random() < 0.7
            ctx.set(occupancy.take, takes)
            ctx.set(occupancy.free, frees)
            shown = [used[word] for word in words]
            with_it = [used[word] for word in others]
            after = with_it[:]
            if takes:
                word, slot = rng.choice(near)
                ctx.set(occupancy.position, {"word": word, "slot": slot})
                ctx.set(occupancy.bits, ~bits[word] & 7)
                bits[word] ^= slot
                used[word] |= slot
                with_it = [had | used[w] for had, w in zip(with_it, others, strict=True)]
            if frees:
                gone, its_slot = rng.choice([each for each in held if each[0] in words] or held)
                ctx.set(occupancy.freed, {"word": gone, "slot": its_slot})
                ctx.set(occupancy.bit, bool(bits[gone] & its_slot))
                used[gone] &= ~its_slot
            after = [used[word] for word in others]
            await ctx.tick()
            assert [ctx.get(occupancy.used[bank]) for bank in range(params.ways)] == shown
            taken = [ctx.get(occupancy.taken[bank]) for bank in range(params.ways)]
            for bank, slots_now in enumerate(taken):
                assert slots_now in (with_it[bank], after[bank])
                assert ctx.get(occupancy.entered[bank]) == bits[others[bank]]
            before = (reads, into)
        ctx.set(occupancy.take, 0)
        ctx.set(occupancy.free, 0)
        ctx.set(occupancy.sweep, 1)
        for row in range(rows):
            ctx.set(occupancy.swept, row)
            await ctx.tick()
        ctx.set(occupancy.sweep, 0)
        for row in range(rows):
            ctx.set(occupancy.rows, [row] * params.ways)
            await ctx.tick()
            assert not any(ctx.get(occupancy.used[bank]) for bank in range(params.ways))

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
    """By count with the tuple that pushes another out; by time in between, soon and not before."""
    params = design(8, 4, 8, timestamp_bits=12)
    ages = Ages(params)
    rng = random.Random(window * 100 + length)

    async def bench(ctx: Any) -> None:
        held: deque[tuple[dict[str, int], int, int]] = deque()  # position, end, round
        now = evicted = seen = arrived = left = over_since = 0
        latest = turned = 0
        for step in range(1200):
            now += rng.choice([0, 0, 0, 1, 4]) if step % 400 < 300 else 0
            full = arrived >= window
            position = {"word": rng.randrange(8), "slot": 1 << rng.randrange(2)}
            ctx.set(ages.full, full)
            arrives = rng.random() < 0.7 and not ctx.get(ages.blocked)
            ctx.set(ages.now, now)
            ctx.set(ages.end, now + length)
            ctx.set(ages.arrive, arrives)
            ctx.set(ages.position, position)
            ctx.set(ages.bit, arrived & 1)
            turns = bool(ctx.get(ages.over)) and rng.random() < 0.5
            ctx.set(ages.turn, turns)
            turned += turns
            assert ctx.get(ages.held) == len(held)
            assert all((ctx.get(ages.round) - each[2]) % 8 <= 1 for each in held)
            # The oldest of a full count window, unless it has expired by time.
            leaves = arrives and full and left == arrived - window
            frees = bool(ctx.get(ages.free))
            assert frees or not leaves, "a tuple stays in a full window"
            if frees:
                oldest, end, _ = held.popleft()
                shown = ctx.get(ages.freed)
                assert (shown.word, shown.slot) == (oldest["word"], oldest["slot"])
                assert ctx.get(ages.freed_bit) == left & 1
                assert leaves or end <= latest, "a tuple expires before its time"
                evicted += leaves and end > now
                left += 1
            over_since = over_since + 1 if held and held[0][1] <= latest and not frees else 0
            assert over_since < 8, "a tuple stays when its time is over"
            if arrives:
                held.append((position, now + length, ctx.get(ages.round)))
                arrived, latest = arrived + 1, now
            await ctx.tick()
            seen += ctx.get(ages.evicted)
        for _ in range(3):
            ctx.set(ages.arrive, 0)
            await ctx.tick()
            seen += ctx.get(ages.evicted)
        assert seen == evicted
        assert turned > 3

    simulate(ages, bench)
