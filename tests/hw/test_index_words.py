"""Words of the ordered index: how codes find them, and how an input shares them out."""

import itertools
import random
from bisect import bisect_left
from typing import Any

import numpy as np
import pytest
from tests.hw.checks import give, pauses, simulate, take
from tests.hw.test_handshake import beats_of, run_inputs, set_up
from tests.hw.test_index import SEED, design

from streamjoin_common.contract import (
    COUNT_BITS,
    ONE_WORD,
    Bucket,
    buckets_of,
    even_splitters,
    splitters_of,
    used_buckets,
)
from streamjoin_hw.rtl.index.splitters import Splitters, search_cycles
from streamjoin_hw.rtl.join import Join
from streamjoin_hw.sim.testing import Arrival, Workload, reference


@pytest.mark.parametrize("count", [16, 512])
def test_a_code_lies_in_the_word_that_its_bucket_says(count: int) -> None:
    """Two codes a cycle, by the splitters of power-up and by others with equal ones among them.

    Then by buckets of many words, of the narrowest and of the widest, and again of one each. Of
    512 the last levels are in block RAM.
    """
    params = design(buckets=count)
    table = Splitters(params)
    rng = random.Random(SEED)
    loaded = splitters_of(
        [rng.choice([5, 9, rng.randrange(1 << 32)]) for _ in range(40)], count, 13
    )
    plain, others = (
        [Bucket(splitter, i, ONE_WORD) for i, splitter in enumerate([0, *each])]
        for each in (even_splitters(count), loaded)
    )
    rows = [
        Bucket(each.splitter, rng.randrange(1 << COUNT_BITS), rng.choice([0, 1, 8, 27, 31, 32]))
        for each in others
    ]

    async def bench(ctx: Any) -> None:
        for buckets, following in ((plain, others), (others, rows), (rows, plain), (plain, plain)):
            splitters = [each.splitter for each in buckets[1:]]
            edges = [code for each in splitters for code in (each, (each + 1) % (1 << 32))]
            codes = [rng.choice([*edges, rng.randrange(1 << 32)]) for _ in range(120)]
            pairs = list(itertools.pairwise(codes))
            for step in range(len(pairs) + search_cycles(params)):
                if step < len(pairs):
                    ctx.set(table.codes, pairs[step])
                await ctx.tick()
                looked_up = step + 1 - search_cycles(params)
                if looked_up >= 0 and looked_up < len(pairs):
                    found = [ctx.get(table.words[k]) for k in (0, 1)]
                    codes_now = pairs[looked_up]
                    own = [buckets[bisect_left(splitters, code)] for code in codes_now]
                    words = [each.word(code) for each, code in zip(own, codes_now, strict=True)]
                    assert found == words
            ctx.set(table.several, following is rows)
            for number, bucket in enumerate(following):
                ctx.set(table.number, number)
                ctx.set(table.value, bucket.splitter)
                row = {"first": bucket.first, "shift": bucket.shift}
                ctx.set(table.row, row if following is rows else {"first": 5, "shift": 3})
                ctx.set(table.load, 1)
                await ctx.tick()
            ctx.set(table.load, 0)

    simulate(table, bench)


def test_an_interval_of_more_words_than_the_index_has_is_all_of_them() -> None:
    """Keys that move far, in an order and back, and bands from one of their words to hundreds."""
    params = design(6, 4, 8)
    workloads = []
    for width in (0, 5, 60, 500):
        keys = [step * 9 if step < 60 else 1080 - step * 9 for step in range(120)]
        arrivals = [Arrival(i * 7 // 4 % 2, (key,), i) for i, key in enumerate(keys)]
        workload = Workload(params, arrivals, 6, 4, {"band_lo0": width, "band_hi0": width // 2})
        last = [max(bucket.first for bucket in side) for side in workload.buckets]
        assert min(last) > params.buckets
        workloads.append(workload)
    run_inputs(params, workloads, 0.0, 0.1)


def test_buckets_of_several_words_are_loaded_through_the_design() -> None:
    """Else nearly all tuples of a window would be of one bucket, and stored far from its word."""
    params = design(12, 4, 16)
    arrivals = [Arrival(i % 2, (i * 50,), i) for i in range(200)]
    workload = Workload(params, arrivals, 12, 12, {"band_lo0": 0, "band_hi0": 60})
    join, displaced = Join(params), 0

    async def source(ctx: Any) -> None:
        await ctx.tick().until(join.idle)
        await set_up(ctx, join, workload)
        await give(ctx, join.i, beats_of(workload), pauses(SEED, 0.0))

    async def sink(ctx: Any) -> None:
        await take(ctx, join.o, len(reference(workload)) + 1, pauses(SEED, 0.0), patience=400)

    async def count(ctx: Any) -> None:
        nonlocal displaced
        async for *_, pulse in ctx.tick().sample(join.displaced):
            displaced += pulse

    simulate(join, source, sink, count=count)
    assert displaced < 20


def test_splitters_share_the_sample_out_among_the_buckets_that_a_window_needs() -> None:
    params = design(48, 8, 16)
    assert [used_buckets(params, window) for window in (1, 8, 20, 48)] == [1, 4, 10, 16]
    codes = random.Random(SEED).sample(range(1 << 32), 160)
    for used in (1, 10, 16):
        splitters = splitters_of(codes, 16, used)
        assert splitters == sorted(splitters)
        counts = [0] * 16
        for code in codes:
            counts[bisect_left(splitters, code)] += 1
        assert counts == [160 // used] * used + [0] * (16 - used)
    assert splitters_of([], 16) == even_splitters(16)


@pytest.mark.parametrize("kind", ["moving", "back and forth", "steps", "still", "few", "sampled"])
def test_buckets_divide_the_words_among_the_tuples_of_each_window(kind: str) -> None:
    """A lower code is never of a later word, and a window finds room near its words."""
    params = design(480, 8, 256)
    rng = np.random.default_rng([SEED, len(kind)])
    steps = np.arange(6000)
    centre = {
        "moving": steps * 3000,
        "back and forth": np.abs(3000 - steps) * 5000,
        "steps": steps // 2000 * 10**8,
        "sampled": steps * 40000,
    }.get(kind, 0 * steps)
    codes = (1 << 31) + centre + rng.integers(0, 5 if kind == "few" else 10**6, 6000)
    sample, rows = (codes[::3] if kind == "sampled" else codes).tolist(), codes.tolist()
    buckets = buckets_of(params, sample, 480, len(rows))
    assert len(buckets) == params.buckets
    splitters = [bucket.splitter for bucket in buckets[1:]]
    assert splitters == sorted(splitters)
    edges = {min(max(0, s + d), (1 << 32) - 1) for s in splitters for d in (-1, 0, 1, 9999)}
    ordered = sorted({*edges, *rows, 0, (1 << 32) - 1})
    words = [buckets[bisect_left(splitters, code)].word(code) for code in ordered]
    assert words == sorted(words), "a lower code is of a later word"
    if kind == "few":
        return
    for begin in range(0, 5520, 480):
        window = np.searchsorted(np.array(ordered), codes[begin : begin + 480])
        counts = np.bincount(np.array(words)[window] % params.buckets, minlength=params.buckets)
        carried = furthest = 0
        for count in [*counts, *counts]:
            carried = max(0, carried + count - params.bucket_slots)
            furthest = max(furthest, carried)
        assert furthest < 12 * params.bucket_slots, (begin, furthest)
