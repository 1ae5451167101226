"""Buckets of frequent keys' own, and two results a beat: the index alone, the whole on skew."""

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Signal
from tests.hw.checks import give, pauses, simulate
from tests.hw.test_handshake import beats_of, resets, run_inputs, set_up
from tests.hw.test_hash import SEED, design

from streamjoin_common.contract import SIDE_R, SIDE_S, DesignParams
from streamjoin_hw.rtl.hash.index import ring_bits, sequence_bits
from streamjoin_hw.rtl.hash.stream_index import StreamIndex
from streamjoin_hw.rtl.join import Join
from streamjoin_hw.rtl.matching import PairSerialiser
from streamjoin_hw.sim.testing import Arrival, Workload, random_workload

OWN = design(8, 2, ways=3, buckets=4, own_buckets=2)


def skewed(
    params: DesignParams, rng: np.random.Generator, tuples: int, windows: tuple[int, int]
) -> Workload:
    """Draw an input in which one key is frequent for a while, then another one."""
    workload = random_workload(params, rng, tuples, domain=24, windows=windows)
    period = 3 * max(windows)
    frequent = [workload.arrivals[k].keys for k in range(0, tuples, period)]
    for position, each in enumerate(workload.arrivals):
        if rng.random() < 0.6:
            workload.arrivals[position] = replace(each, keys=frequent[position // period])
    return workload


class Stored:
    """What has been pushed into an index, and the walk from what it shows, in plain Python.

    Parameters
    ----------
    index : StreamIndex
        The index.
    window : int
        Tuples that its window holds.
    """

    def __init__(self, index: StreamIndex, window: int) -> None:
        self.index, self.window = index, window
        self.tags: list[tuple[int, int]] = []
        self.links: list[int] = []
        self.wrap = 1 << sequence_bits(index.params)

    @property
    def tail(self) -> int:
        return max(0, len(self.tags) - self.window)

    def show(self, ctx: Any, drawn: tuple[int, int], *, pushes: bool) -> None:
        """Put a tuple of a bucket and a tag in front of the index."""
        index, number = self.index, len(self.tags) % self.wrap
        ctx.set(index.bucket, drawn[0])
        ctx.set(index.tag, drawn[1])
        ctx.set(index.sequence, number)
        ctx.set(index.held, len(self.tags) - self.tail)
        ctx.set(index.round, number >> ring_bits(index.params))
        ctx.set(index.push, pushes)
        if pushes:
            self.links.append(ctx.get(index.link))
            self.tags.append(drawn)

    def place(self, number: int) -> int:
        return (number - self.tail) % self.wrap

    def walk(self, ctx: Any) -> list[int]:
        """Return the tuples that are read for the tuple in front of the index, newest first."""
        listed = [ctx.get(number) for number in self.index.names]
        alike = ctx.get(self.index.alike)
        read, bound = [], len(self.tags) - self.tail
        for way, number in enumerate(listed):
            if self.place(number) >= bound:
                return read
            bound = self.place(number)
            if alike >> way & 1:
                read.append(self.tail + bound)
        for number in listed if ctx.get(self.index.behind) else []:
            link = self.links[self.tail + self.place(number)]
            if self.place(link) >= bound:
                break
            bound = self.place(link)
            read.append(self.tail + bound)
            listed.append(link)  # is walked itself
        return read


@pytest.mark.parametrize("share", [0.3, 0.7])
def test_an_index_leads_to_all_tuples_of_a_tag_in_the_window_and_to_few_others(
    share: float,
) -> None:
    """A tag is frequent, then another one that claims the same own bucket, then both."""
    index = StreamIndex(OWN)
    stored = Stored(index, 8)
    rng = random.Random(SEED)
    in_vain: dict[bool, list[int]] = {False: [], True: []}

    async def bench(ctx: Any) -> None:
        hots, drawn = [(1, 5)], (1, 5)
        ctx.set(index.next_bucket, drawn[0])
        await ctx.tick()
        for step in range(1500):
            pushes = rng.random() < 0.7
            stored.show(ctx, drawn, pushes=pushes)
            if not pushes:
                read = stored.walk(ctx)
                here = range(stored.tail, len(stored.tags))
                owed = [k for k in here if stored.tags[k] == drawn]
                assert [k for k in read if stored.tags[k] == drawn] == owed[::-1]
                if len(hots) == 1:
                    in_vain[drawn in hots].append(len(read) - len(owed))
            hots = [[(1, 5)], [(3, 9)], [(1, 5), (3, 9)]][step // 500]
            drawn = rng.choice(hots)
            if rng.random() > share:
                drawn = (rng.randrange(4), rng.randrange(3))
            ctx.set(index.next_bucket, drawn[0])
            await ctx.tick()

    simulate(index, bench)
    # A frequent tag meets few others, and others do not follow its links.
    means = [sum(each) / len(each) for each in (in_vain[True], in_vain[False])]
    assert max(means) < 0.1, means


@pytest.mark.parametrize("stall", [0.0, 0.4])
@pytest.mark.parametrize(
    ("windows", "others"),
    [
        ((16, 16), {"ways": 2, "buckets": 2, "own_buckets": 2}),
        ((12, 16), {"ways": 3, "buckets": 4, "own_buckets": 4, "beat_results": 2}),
        ((16, 5), {"ways": 5, "buckets": 2, "own_buckets": 2, "beat_results": 2}),
        ((16, 16), {"ways": 4, "buckets": 2, "beat_results": 2, "timestamp_bits": 12}),
    ],
)
def test_frequent_keys_that_change_are_exact_and_in_order(
    windows: tuple[int, int], others: dict[str, Any], stall: float
) -> None:
    params = design(16, 4, **others)
    rng = np.random.default_rng([SEED, *windows])
    workloads = [skewed(params, rng, tuples, windows) for tuples in (200, 30, 120)]
    run_inputs(params, workloads, 0.0, stall)


@pytest.mark.parametrize("ways", [2, 3, 8])
def test_one_key_everywhere_is_exact_with_two_results_a_beat(ways: int) -> None:
    rng = np.random.default_rng(SEED)
    params = design(16, 2, ways=ways, payload_bits=8, own_buckets=2, beat_results=2)
    run_inputs(params, [random_workload(params, rng, 64, domain=1, windows=(16, 16))], 0.0, 0.6)


@pytest.mark.parametrize("cut", [7, 25, 60])
def test_own_buckets_of_before_a_reset_give_nothing(cut: int) -> None:
    """The same numbers again, in own buckets that name them already."""
    params = design(8, 2, ways=2, buckets=2, own_buckets=2, beat_results=2)
    rng = np.random.default_rng(SEED)
    workload = skewed(params, rng, 90, (8, 8))
    reset = Signal()

    async def first(ctx: Any, join: Join) -> None:
        await set_up(ctx, join, workload)
        ctx.set(join.o.ready, 1)
        await give(ctx, join.i, beats_of(workload)[:cut], pauses(SEED, 0.0))
        await ctx.tick().repeat(20)
        ctx.set(reset, 1)
        await ctx.tick()
        ctx.set(reset, 0)
        ctx.set(join.o.ready, 0)
        await ctx.tick().until(join.idle)

    run_inputs(params, [workload, workload], 0.0, 0.0, first=first, reset=reset)


@pytest.mark.parametrize("others", [4, 5])
def test_the_second_of_two_links_is_not_followed_to_the_first_ones_tuple(others: int) -> None:
    """It leads to a tuple of before a reset, which has the number of the oldest one."""
    params = design(8, 2, ways=2, buckets=2, beat_results=2)
    keys = (5,)
    arrivals = [Arrival(SIDE_R, keys, number) for number in range(others)]
    workload = Workload(params, [*arrivals, Arrival(SIDE_S, keys, 0)], 8, 8)
    reset = Signal()
    run_inputs(params, [workload], 0.0, 0.0, first=resets(reset, workload, [1], 10), reset=reset)


def test_a_word_leaves_as_beats_of_two_results_and_the_lowest_lane_first() -> None:
    """Every mask, under stalls: beats are full but for the last of a word."""
    params = design(8, 4, beat_results=2)
    serialiser = PairSerialiser(params)
    rng = random.Random(SEED)
    words = [(rng.randrange(2), rng.randrange(1, 16)) for _ in range(120)]
    owed: list[tuple[int, int, int, tuple[int, int] | None]] = []
    for number, (side, mask) in enumerate(words):
        pairs = [
            (lane, number) if side else (number, lane) for lane in range(4) if mask >> lane & 1
        ]
        owed += [
            (side, *pairs[k], pairs[k + 1] if k + 1 < len(pairs) else None)
            for k in range(0, len(pairs), 2)
        ]
    given = []

    async def bench(ctx: Any) -> None:
        position = 0
        results = serialiser.results
        while len(given) < len(owed):
            side, mask = words[min(position, len(words) - 1)]
            offers = position < len(words) and rng.random() < 0.8
            word = {"side": side, "probe": position, "mask": mask, "payloads": [0, 1, 2, 3]}
            ctx.set(serialiser.word, word)
            ctx.set(serialiser.word_valid, offers)
            ready = rng.random() < 0.7
            ctx.set(results.ready, ready)
            p = results.p
            values = (p.side, p.r_payload, p.s_payload, p.second)
            second = (p.r_payload_second, p.s_payload_second)
            _, _, taken, valid, *beat = await ctx.tick().sample(
                serialiser.word_taken, results.valid, *values, *second
            )
            position += taken & offers
            if valid and ready:
                given.append((*beat[:3], tuple(beat[4:]) if beat[3] else None))

    simulate(serialiser, bench)
    assert given == owed
