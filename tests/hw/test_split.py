"""SplitJoin in Amaranth's simulator: exact, and in the order that it promises."""

from itertools import groupby
from typing import Any

import numpy as np
import pytest
from tests.hw.checks import give, nothing_more, pauses, spread, take
from tests.hw.test_handshake import STALLS, beats_of, run_kept, set_up

from streamjoin_common.contract import ORDERS, SIDE_R, DesignParams, TUser
from streamjoin_common.contract.presets import EQUI, REFERENCE_BAND
from streamjoin_hw.rtl.join import Join
from streamjoin_hw.sim.testing import Arrival, Workload, difference, random_workload, reference

SEED = 29
Pairs = list[tuple[int, int]]


def design(**given: Any) -> DesignParams:
    """Make a small design."""
    small = {"cores": 3, "segment_tuples": 4, "lanes": 2, "terms": EQUI, "payload_bits": 10}
    return DesignParams(**{"design": "splitjoin", **small, **given})


def run_ordered(
    workloads: list[Workload],
    order: str,
    *,
    idle: float = 0.0,
    stall: float = 0.0,
    interval: int = 1,
    stars: bool = False,
    masked: int = 0,
    kept: list[int] | None = None,
) -> None:
    """Run inputs one after another; hold pairs, order and stars against the reference."""
    params = workloads[0].params

    def ends_of(join: Join) -> tuple[Any, Any]:
        async def source(ctx: Any) -> None:
            if params.order != "none":
                ctx.set(join.order, ORDERS.index(order))
                ctx.set(join.punctuate, stars)
            if params.order == "inner":
                ctx.set(join.interval, interval)
            ctx.set(join.masked, masked)
            for workload in workloads:
                await ctx.tick().until(join.idle)
                await set_up(ctx, join, workload)
                await give(ctx, join.i, beats_of(workload), pauses(SEED, idle))
                await ctx.tick().until(join.drained)

        async def sink(ctx: Any) -> None:
            for workload in workloads:
                beats: list[int] = []
                while not beats or not beats[-1] >> (2 * params.payload_bits + TUser.BITS):
                    beats += await take(ctx, join.o, 1, pauses(len(beats), stall), patience=600)
                assert beats.pop() >> 2 * params.payload_bits == 1 << TUser.BITS | 2
                expected = pairs_under_mask(workload, masked)
                check(workload, expected, beats, order if interval == 1 else "outer", stars=stars)
                if kept is not None:
                    kept.extend(beats)
            await nothing_more(ctx, join.o)

        return source, sink

    run_kept(params, ends_of)


def check(
    workload: Workload, expected: Pairs, beats: list[int], order: str, *, stars: bool
) -> None:
    """Hold the beats of one input against the pairs expected, which are in the inner order."""
    bits = workload.params.payload_bits
    mask = (1 << bits) - 1
    users = [beat >> 2 * bits for beat in beats]
    received = [
        (beat & mask, beat >> bits & mask)
        for beat, user in zip(beats, users, strict=True)
        if user & 1 << TUser.RESULT
    ]
    assert difference(expected, received) == ""
    if order == "none":
        assert len(received) == len(beats)
        return
    later = later_tuples(workload)
    groups = [key for key, _ in groupby(received, later)]
    assert groups == [key for key, _ in groupby(expected, later)], "not in the outer order"
    if order == "inner":
        assert received == expected, "not in the inner order"
    if stars:
        # A star a tuple, with its side, in arrival order, behind the tuple's results.
        sides = [user >> TUser.SIDE & 1 for user in users if user & 1 << TUser.PUNCTUATION]
        assert sides == [arrival.side for arrival in workload.arrivals]
        position = -1
        positions = {}
        counts = [0, 0]
        for number, arrival in enumerate(workload.arrivals):
            positions[arrival.side, counts[arrival.side]] = number
            counts[arrival.side] += 1
        for beat, user in zip(beats, users, strict=True):
            if user & 1 << TUser.PUNCTUATION:
                position += 1
            else:
                assert positions[later((beat & mask, beat >> bits & mask))] == position + 1
    else:
        assert len(received) == len(beats)


def later_tuples(workload: Workload) -> Any:
    """Return the side and row of a pair's later tuple."""
    positions: tuple[list[int], list[int]] = ([], [])
    for number, arrival in enumerate(workload.arrivals):
        positions[arrival.side].append(number)

    def later(pair: tuple[int, int]) -> tuple[int, int]:
        side = SIDE_R if positions[0][pair[0]] > positions[1][pair[1]] else 1 - SIDE_R
        return side, pair[side]

    return later


LENGTHS = (20, 1, 48)


def inputs(
    params: DesignParams, *salt: int, lengths: tuple[int, ...] = LENGTHS, **choices: Any
) -> list[Workload]:
    """Draw inputs of so many tuples."""
    rng = np.random.default_rng([SEED, *salt])
    return [random_workload(params, rng, tuples, **choices) for tuples in lengths]


SHAPES = ((1, 4, 3, 1), (1, 1, 1, 2), (3, 4, 2, 4), (4, 5, 1, 2), (5, 3, 3, 3))
"""Cores, tuples of a segment, lanes, probes."""


@pytest.mark.parametrize(
    ("cores", "segment", "lanes", "probes", "order", "idle", "stall"),
    spread(SHAPES, ORDERS, STALLS, one_of=6, rest=3),
)
def test_random_inputs_are_exact_and_in_order(
    cores: int, segment: int, lanes: int, probes: int, order: str, idle: float, stall: float
) -> None:
    params = design(
        cores=cores, segment_tuples=segment, lanes=lanes, probes=probes, order=order, merge_arity=2
    )
    tuples = (40, 1, 60) if cores == 1 else LENGTHS  # one core is simulated in no time
    workloads = inputs(params, cores, probes, lengths=tuples)
    run_ordered(workloads, order, idle=idle, stall=stall)


@pytest.mark.parametrize("order", ORDERS)
def test_dense_results_are_exact_and_in_order(order: str) -> None:
    params = design(cores=2, segment_tuples=40, lanes=1, probes=4, order=order)
    run_ordered(inputs(params, 1, lengths=(20, 1, 90), domain=2, windows=(80, 70)), order)


@pytest.mark.parametrize("order", ORDERS)
def test_long_passes_over_changing_windows_are_exact(order: str) -> None:
    """While a pass lasts tuples are stored and expire, each at another turn."""
    params = design(cores=2, segment_tuples=24, lanes=1, probes=4, order=order)
    rng = np.random.default_rng([SEED, 9])
    run_ordered([random_workload(params, rng, 144, domain=6, windows=(47, 41))], order)


@pytest.mark.parametrize("probes", [1, 3])
@pytest.mark.parametrize(("order", "idle", "stall"), spread(ORDERS, STALLS, one_of=2, rest=1))
def test_time_windows_are_exact(order: str, idle: float, stall: float, probes: int) -> None:
    params = design(probes=probes, order=order, timestamp_bits=12)
    run_ordered(inputs(params, 2), order, idle=idle, stall=stall)


@pytest.mark.parametrize("terms", [REFERENCE_BAND])
def test_bands_are_exact(terms: Any) -> None:
    params = design(probes=2, order="outer", terms=terms)
    run_ordered(inputs(params, 3), "outer")


@pytest.mark.parametrize("order", ORDERS)
def test_stars_follow_every_tuple(order: str) -> None:
    params = design(probes=2, order="inner")
    run_ordered(inputs(params, 4), order, stars=order != "none")


@pytest.mark.parametrize("order", ORDERS)
def test_a_design_gives_less_order_than_it_is_built_for(order: str) -> None:
    """Order is chosen anew for every input."""
    params = design(cores=4, probes=2, order="inner")
    run_ordered(inputs(params, 5), order, stall=0.3)


def groups_of(workload: Workload, pairs: Pairs, interval: int) -> list[tuple[Any, int]]:
    """Return the later tuple of each pair, and the group that its earlier tuple is in."""
    later = later_tuples(workload)
    rows = workload.params.cores * interval
    return [(later(pair), pair[1 - later(pair)[0]] // rows) for pair in pairs]


@pytest.mark.parametrize(("interval", "exact"), [(1, 1), (2, 2), (4, 4), (6, 2), (3, 1)])
def test_an_interval_leaves_groups_of_rows_in_order(interval: int, exact: int) -> None:
    """The largest power of two that divides it counts."""
    params = design(cores=3, segment_tuples=10, lanes=1, probes=2, order="inner")
    workload = inputs(params, 6, lengths=(20, 1, 90), windows=(30, 27), domain=2)[2]
    beats: list[int] = []
    run_ordered([workload], "inner", interval=interval, kept=beats)
    bits = params.payload_bits
    mask = (1 << bits) - 1
    received = [(beat & mask, beat >> bits & mask) for beat in beats]
    expected = groups_of(workload, reference(workload), exact)
    assert groups_of(workload, received, exact) == expected


@pytest.mark.parametrize(
    ("partners", "interval"),
    spread(
        [((21, 50),), ((21, 23, 49, 50),), ((44, 45, 49),), ((30, 48),)],
        [1, 8, 16, 32, 1 << 20],
        one_of=2,
    ),
)
def test_groups_of_rows_are_distinguished_however_far_they_lie(
    interval: int, partners: tuple[int, ...]
) -> None:
    """An S tuple meets rows that lie in the first group and in the last."""
    params = design(cores=3, segment_tuples=10, lanes=1, order="inner")
    stored = [Arrival(0, (int(row in partners),), row) for row in range(51)]
    workload = Workload(params, [*stored, Arrival(1, (1,), 0)], 30, 30)
    beats: list[int] = []
    run_ordered([workload], "inner", interval=interval, kept=beats)
    received = [beat & (1 << params.payload_bits) - 1 for beat in beats]
    groups = [row // (3 * interval) for row in received]
    assert groups == sorted(groups)


def pairs_under_mask(workload: Workload, masked: int) -> Pairs:
    """Join by hand without what masked cores store: every tuple's home is known by its row."""
    later = later_tuples(workload)
    return [
        pair
        for pair in reference(workload)
        if not masked >> pair[1 - later(pair)[0]] % workload.params.cores & 1
    ]


@pytest.mark.parametrize("masked", [0b0001, 0b1000, 0b0110, 0b1111])
@pytest.mark.parametrize("order", ["none", "inner"])
def test_a_masked_core_costs_the_share_that_it_stores(masked: int, order: str) -> None:
    params = design(cores=4, probes=2, order=order)
    workloads = inputs(params, 7)
    run_ordered(workloads, order, masked=masked)
    lost = len(reference(workloads[2])) - len(pairs_under_mask(workloads[2], masked))
    assert lost > 0


def test_uneven_and_smallest_windows_are_exact() -> None:
    params = design(cores=3, probes=4, order="outer")
    for windows in ((1, 1), (1, 12), (12, 1), (12, 12), (5, 7)):
        run_ordered(inputs(params, *windows, windows=windows), "outer", stall=0.2)


@pytest.mark.parametrize("share_r", [0.0, 0.05, 0.95, 1.0])
def test_streams_of_uneven_rates_are_exact(share_r: float) -> None:
    params = design(cores=3, probes=3, order="outer")
    run_ordered(inputs(params, 8, share_r=share_r), "outer", idle=0.3)
