"""SplitJoin in Amaranth's simulator: exact, and in the order that it promises."""

from itertools import groupby
from typing import Any

import numpy as np
import pytest
from tests.hw.checks import give, nothing_more, pauses, simulate, take
from tests.hw.test_handshake import beats_of, set_up

from streamjoin_hw.contract import ORDERS, SIDE_R, DesignParams, TUser
from streamjoin_hw.handshake import HandshakeJoin
from streamjoin_hw.presets import EQUI, REFERENCE_BAND
from streamjoin_hw.testing import Workload, difference, random_workload, reference

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
) -> None:
    """Run inputs one after another; hold pairs, order and stars against the reference."""
    params = workloads[0].params
    join = HandshakeJoin(params)

    async def source(ctx: Any) -> None:
        if params.order != "none":
            ctx.set(join.order, ORDERS.index(order))
            ctx.set(join.punctuate, stars)
        if params.order == "inner":
            ctx.set(join.interval, interval)
        for workload in workloads:
            await ctx.tick().until(join.idle)
            await set_up(ctx, join, workload)
            await give(ctx, join.i, beats_of(workload), pauses(SEED, idle))
            await ctx.tick().until(join.drained)

    async def sink(ctx: Any) -> None:
        for workload in workloads:
            beats: list[int] = []
            while not beats or not beats[-1] >> (2 * params.payload_bits + TUser.BITS):
                beats += await take(ctx, join.o, 1, pauses(len(beats), stall), patience=5000)
            assert beats.pop() >> 2 * params.payload_bits == 1 << TUser.BITS | 2
            check(workload, beats, order, interval, stars=stars)
        await nothing_more(ctx, join.o)

    simulate(join, source, sink)


def check(workload: Workload, beats: list[int], order: str, interval: int, *, stars: bool) -> None:
    """Hold the beats of one input against the reference."""
    params, bits = workload.params, workload.params.payload_bits
    mask = (1 << bits) - 1
    expected = reference(workload)
    users = [beat >> 2 * bits for beat in beats]
    found = [
        (beat & mask, beat >> bits & mask)
        for beat, user in zip(beats, users, strict=True)
        if user & 1 << TUser.RESULT
    ]
    assert difference(expected, found) == ""
    if order == "none":
        assert len(found) == len(beats)
        return
    later = later_tuples(workload)
    groups = [key for key, _ in groupby(found, later)]
    assert groups == [key for key, _ in groupby(expected, later)], "not in the outer order"
    if order == "inner" and interval == 1:
        assert found == expected, "not in the inner order"
    if stars:
        # A star a tuple, with its side, in arrival order, behind the tuple's results.
        sides = [user >> TUser.SIDE & 1 for user in users if user & 1 << TUser.PUNCTUATION]
        assert sides == [arrival.side for arrival in workload.arrivals]
        place = -1
        places = {}
        counts = [0, 0]
        for number, arrival in enumerate(workload.arrivals):
            places[arrival.side, counts[arrival.side]] = number
            counts[arrival.side] += 1
        for beat, user in zip(beats, users, strict=True):
            if user & 1 << TUser.PUNCTUATION:
                place += 1
            else:
                assert places[later((beat & mask, beat >> bits & mask))] == place + 1
    else:
        assert len(found) == len(beats)
    assert params.order != "none"


def later_tuples(workload: Workload) -> Any:
    """Return what tells the later tuple of a pair: its side and row."""
    places: tuple[list[int], list[int]] = ([], [])
    for number, arrival in enumerate(workload.arrivals):
        places[arrival.side].append(number)

    def later(pair: tuple[int, int]) -> tuple[int, int]:
        side = SIDE_R if places[0][pair[0]] > places[1][pair[1]] else 1 - SIDE_R
        return side, pair[side]

    return later


def inputs(params: DesignParams, *salt: int, **choices: Any) -> list[Workload]:
    """Draw three inputs."""
    rng = np.random.default_rng([SEED, *salt])
    return [random_workload(params, rng, tuples, **choices) for tuples in (40, 1, 90)]


STALLS = [(0.0, 0.0), (0.5, 0.0), (0.0, 0.7), (0.5, 0.5)]


@pytest.mark.parametrize(("idle", "stall"), STALLS)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("cores", "segment", "lanes", "probes"),
    [
        (1, 4, 3, 1),
        (1, 1, 1, 2),
        (3, 4, 2, 4),
        (4, 5, 1, 2),
        (5, 3, 3, 3),
    ],
)
def test_random_inputs_are_exact_and_in_order(
    cores: int, segment: int, lanes: int, probes: int, order: str, idle: float, stall: float
) -> None:
    params = design(
        cores=cores, segment_tuples=segment, lanes=lanes, probes=probes, order=order, merge_arity=2
    )
    run_ordered(inputs(params, cores, probes), order, idle=idle, stall=stall)


@pytest.mark.parametrize("order", ORDERS)
def test_dense_results_are_exact_and_in_order(order: str) -> None:
    params = design(cores=2, segment_tuples=40, lanes=1, probes=4, order=order)
    run_ordered(inputs(params, 1, domain=2, windows=(80, 70)), order)


@pytest.mark.parametrize(("idle", "stall"), STALLS)
@pytest.mark.parametrize("order", ORDERS)
def test_time_windows_are_exact(order: str, idle: float, stall: float) -> None:
    params = design(probes=3, order=order, timestamp_bits=12)
    run_ordered(inputs(params, 2), order, idle=idle, stall=stall)


@pytest.mark.parametrize("terms", [REFERENCE_BAND])
def test_bands_are_exact(terms: Any) -> None:
    params = design(probes=2, order="outer", terms=terms)
    run_ordered(inputs(params, 3), "outer")


@pytest.mark.parametrize("order", ORDERS)
def test_stars_follow_every_tuple(order: str) -> None:
    params = design(probes=2, order="inner")
    run_ordered(inputs(params, 4), order, stars=order != "none")
