"""SplitJoin with grouped stars: exact, in order between groups of arrivals, a star after each."""

from typing import Any

import numpy as np
import pytest
from tests.hw.checks import give, nothing_more, pauses, spread, take
from tests.hw.test_handshake import STALLS, beats_of, run_kept, set_up
from tests.hw.test_split import design, inputs, pairs_under_mask

from streamjoin_common.contract import ORDERS, SIDE_S, DesignParams, TUser
from streamjoin_common.contract.presets import REFERENCE_BAND
from streamjoin_hw.rtl.join import Join
from streamjoin_hw.sim.order import out_of_order
from streamjoin_hw.sim.testing import Workload, difference, random_workload

SEED = 37
SIZES = (1, 2, 3, 7, 64, 0)
"""Arrivals of a group."""


def grouped(**given: Any) -> DesignParams:
    """Make a small design with grouped stars."""
    return design(**{"order": "outer", "stars": "grouped", "probes": 2, **given})


def run_grouped(
    workloads: list[Workload],
    *,
    order: str = "outer",
    idle: float = 0.0,
    stall: float = 0.0,
    stars: bool = True,
    masked: int = 0,
) -> int:
    """Run inputs one after another; hold pairs, order and stars against the reference.

    Returns the results that were given before one of an earlier arrival.
    """
    params = workloads[0].params
    early = []

    def ends_of(join: Join) -> tuple[Any, Any]:
        async def source(ctx: Any) -> None:
            ctx.set(join.order, ORDERS.index(order))
            ctx.set(join.punctuate, stars)
            if params.order == "inner":
                ctx.set(join.interval, 1)
            ctx.set(join.masked, masked)
            for workload in workloads:
                await ctx.tick().until(join.idle)
                ctx.set(join.group, workload.group)
                await set_up(ctx, join, workload)
                await give(ctx, join.i, beats_of(workload), pauses(SEED, idle))
                # What is set while an input runs is for the next one.
                ctx.set(join.group, 5)
                await ctx.tick().until(join.drained)

        async def sink(ctx: Any) -> None:
            for workload in workloads:
                beats: list[int] = []
                while not beats or not beats[-1] >> (2 * params.payload_bits + TUser.BITS):
                    beats += await take(ctx, join.o, 1, pauses(len(beats), stall), patience=900)
                assert beats.pop() >> 2 * params.payload_bits == 1 << TUser.BITS | 2
                early.append(check(workload, beats, order, stars=stars, masked=masked))
            await nothing_more(ctx, join.o)

        return source, sink

    run_kept(params, ends_of)
    return sum(early)


def check(workload: Workload, beats: list[int], order: str, *, stars: bool, masked: int) -> int:
    """Hold the beats of one input against what is owed."""
    bits, arrivals = workload.params.payload_bits, workload.arrivals
    mask = (1 << bits) - 1
    pairs = [(beat & mask, beat >> bits & mask) for beat in beats]
    punctuates = [beat >> (2 * bits + TUser.PUNCTUATION) & 1 for beat in beats]
    received = [pair for pair, star in zip(pairs, punctuates, strict=True) if not star]
    assert difference(pairs_under_mask(workload, masked), received) == ""
    assert out_of_order(workload, received, order) == ""
    numbers = {(each.side, each.payload): number for number, each in enumerate(arrivals)}
    later = [max(numbers[0, r], numbers[SIDE_S, s]) for r, s in received]
    if not stars or order == "none":
        assert not any(punctuates)
        return int((np.diff(later) < 0).sum())
    size = (workload.group if order == "outer" else 1) or len(arrivals)
    groups = [arrivals[first : first + size] for first in range(0, len(arrivals), size)]
    sides = [
        beat >> (2 * bits + TUser.SIDE) & 1
        for beat, star in zip(beats, punctuates, strict=True)
        if star
    ]
    has_s = [any(each.side == SIDE_S for each in group) for group in groups]
    assert sides == has_s, "not a star for each group"
    # Between two stars there are results of one group.
    ended = np.cumsum(punctuates)
    of_group = [count for count, star in zip(ended, punctuates, strict=True) if not star]
    assert of_group == [number // size for number in later], "a result on the wrong side of a star"
    return int((np.diff(later) < 0).sum())


SHAPES = ((1, 4, 3, 1), (3, 4, 2, 4), (4, 5, 1, 2), (5, 3, 3, 3))
"""Cores, tuples of a segment, lanes, probes."""


@pytest.mark.parametrize(
    ("cores", "segment", "lanes", "probes", "size", "idle", "stall"),
    spread(SHAPES, SIZES, STALLS, one_of=6, rest=3),
)
def test_results_are_exact_and_in_order_between_groups(
    cores: int, segment: int, lanes: int, probes: int, size: int, idle: float, stall: float
) -> None:
    params = grouped(cores=cores, segment_tuples=segment, lanes=lanes, probes=probes, merge_arity=2)
    workloads = inputs(params, cores, probes, group=size)
    run_grouped(workloads, idle=idle, stall=stall)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("comparators", ["own", "shared"])
def test_dense_results_are_exact_and_in_order_between_groups(size: int, comparators: str) -> None:
    params = grouped(cores=2, segment_tuples=40, lanes=1, probes=4, comparators=comparators)
    lengths = (20, 1, 90)
    run_grouped(inputs(params, 1, lengths=lengths, domain=2, windows=(80, 70), group=size))


@pytest.mark.parametrize("size", SIZES)
def test_groups_last_from_one_batch_to_the_next_with_shared_comparators(size: int) -> None:
    params = grouped(segment_tuples=7, probes=3, comparators="shared")
    for share in (0.5, 0.1):
        run_grouped(inputs(params, 2, group=size, share_r=share), idle=0.3, stall=0.2)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("share_r", [0.0, 0.05, 0.95, 1.0])
def test_one_sided_bursts_end_their_groups(share_r: float, size: int) -> None:
    params = grouped(cores=3, probes=3)
    run_grouped(inputs(params, 8, share_r=share_r, group=size), idle=0.3)


@pytest.mark.parametrize("probes", [1, 3])
@pytest.mark.parametrize(("size", "idle", "stall"), spread(SIZES, STALLS, one_of=2, rest=1))
def test_time_windows_are_exact_between_groups(
    size: int, idle: float, stall: float, probes: int
) -> None:
    params = grouped(probes=probes, timestamp_bits=12, terms=REFERENCE_BAND)
    run_grouped(inputs(params, 2, group=size), idle=idle, stall=stall)


@pytest.mark.parametrize("size", [2, 3])
def test_long_passes_in_time_windows_are_exact_between_groups(size: int) -> None:
    """Batches collect while a pass lasts; stars that are late begin some of them."""
    terms = REFERENCE_BAND
    params = grouped(cores=2, segment_tuples=24, lanes=1, probes=4, timestamp_bits=12, terms=terms)
    rng = np.random.default_rng([SEED, size])
    workload = random_workload(params, rng, 160, windows=(47, 41), domain=3, group=size)
    workload.time_r = workload.time_s = 60
    run_grouped([workload])


@pytest.mark.parametrize("masked", [0b0001, 0b1111])
@pytest.mark.parametrize("size", [3, 64])
def test_a_masked_core_gives_its_stars(size: int, masked: int) -> None:
    run_grouped(inputs(grouped(cores=4), 7, group=size), masked=masked)


@pytest.mark.parametrize("order", ORDERS)
def test_groups_count_under_the_outer_order_alone(order: str) -> None:
    params = grouped(order="inner")
    run_grouped(inputs(params, 5, group=3), order=order)


def test_without_punctuation_no_star_is_seen() -> None:
    run_grouped(inputs(grouped(), 6, group=7), stars=False)


@pytest.mark.parametrize("comparators", ["own", "shared"])
def test_within_a_group_results_overtake_one_another(comparators: str) -> None:
    """Else nothing is gained; and what a group of one would make of it is noticed here."""
    params = grouped(cores=4, segment_tuples=10, probes=4, comparators=comparators)
    rng = np.random.default_rng(SEED)
    workload = random_workload(params, rng, 120, windows=(40, 40), domain=6, group=64)
    assert run_grouped([workload]) > 10
    workload.group = 1
    assert run_grouped([workload]) == 0
