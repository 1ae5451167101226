"""The whole design in Amaranth's simulator, where an overflowing FIFO fails an assertion."""

import functools
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from unittest import mock

import numpy as np
import pytest
from amaranth.hdl import Elaboratable, Module, ResetInserter, Signal
from tests.hw.checks import Kept, give, nothing_more, pauses, simulate, spread, take

from streamjoin_common.contract import DesignParams, TUser, bucket_writes, tuser_bits
from streamjoin_common.contract.presets import EQUI, REFERENCE_BAND
from streamjoin_hw.rtl.core_array import registered_or
from streamjoin_hw.rtl.join import Join
from streamjoin_hw.rtl.queues import Countdown
from streamjoin_hw.sim.order import out_of_order
from streamjoin_hw.sim.testing import Workload, difference, random_workload, reference

SEED = 13


async def set_up(ctx: Any, join: Join, workload: Workload) -> None:
    """Do what the register file does when windows and bands are written."""
    ctx.set(join.enable, 1)
    ctx.set(join.window_r, workload.window_r)
    ctx.set(join.window_s, workload.window_s)
    for name, bits in workload.bands.items():
        ctx.set(join.band[name.removeprefix("band_")], bits)
    if workload.params.timestamp_bits:
        for side in "rs":
            ctx.set(getattr(join, f"time_{side}"), getattr(workload, f"time_{side}"))
    ctx.set(join.windows_written, 1)
    await ctx.tick()
    ctx.set(join.windows_written, 0)
    await load_splitters(ctx, join, workload)


async def load_splitters(ctx: Any, join: Join, workload: Workload) -> None:
    """Divide the buckets of an ordered index by the tuples of an input."""
    for side, buckets in enumerate(workload.buckets):
        ctx.set(join.splitter_side, side)
        number = 0
        for name, value in bucket_writes(side, buckets):
            if name == "bucket_words":
                ctx.set(join.bucket_words, value)
            if name == "splitter":
                ctx.set(join.splitter_number, number)
                ctx.set(join.splitter_value, value)
                ctx.set(join.splitter_load, 1)
                await ctx.tick()
                ctx.set(join.splitter_load, 0)
                number += 1


def beats_of(workload: Workload) -> list[dict[str, Any]]:
    """Return a workload's beats, the last one marked."""
    beats = []
    for position, arrival in enumerate(workload.arrivals):
        keys = {f"key{index}": key for index, key in enumerate(arrival.keys)}
        beat = {"side": arrival.side, **keys, "payload": arrival.payload}
        if workload.params.timestamp_bits:
            beat["ts"] = arrival.ts
        beats.append({"beat": beat, "last": position + 1 == len(workload.arrivals)})
    return beats


@functools.lru_cache(maxsize=4)
def kept(params: DesignParams) -> Kept:
    """Return a design in a simulator for a source and a sink."""
    return Kept(Join(params), 2)


def run_kept(params: DesignParams, make: Callable[[Join], Sequence[Callable[[Any], Any]]]) -> None:
    """Run the test benches made for a design in its simulator, which is not kept if one fails."""
    simulated = kept(params)
    try:
        simulated.simulate(*make(simulated.component))
    except BaseException:
        kept.cache_clear()
        raise


def resets(
    reset: Signal, abandoned: Workload, cuts: Sequence[int], wait_cycles: int = 1
) -> Callable[[Any, Join], Awaitable[None]]:
    """Return what resets a design after so many tuples; it waits so many cycles a tuple before."""

    async def first(ctx: Any, join: Join) -> None:
        for cut in cuts:
            await set_up(ctx, join, abandoned)
            await give(ctx, join.i, beats_of(abandoned)[:cut], pauses(cut, 0.0))
            await ctx.tick().repeat(wait_cycles * cut)
            ctx.set(reset, 1)
            await ctx.tick()
            ctx.set(reset, 0)
            assert not ctx.get(join.o.valid), f"a result outlived a reset after {cut} tuples"
            await ctx.tick().until(join.idle)

    return first


async def nothing_first(_ctx: Any, _join: Join) -> None:
    """Do nothing before the inputs."""


def run_inputs(
    params: DesignParams,
    workloads: list[Workload],
    idle: float,
    stall: float,
    *,
    first: Callable[[Any, Join], Awaitable[None]] = nothing_first,
    reset: Signal | None = None,
) -> None:
    """Run inputs one after another and compare each with the reference.

    ``first`` has the design to itself before that; ``reset`` resets it.
    """
    expected = [reference(workload) for workload in workloads]
    if first is nothing_first:
        run_kept(params, lambda join: ends_of(join, workloads, expected, idle, stall, first))
        return
    join = Join(params)
    reset_join = join if reset is None else ResetInserter(reset)(join)
    simulate(reset_join, *ends_of(join, workloads, expected, idle, stall, first))


def pairs_of(params: DesignParams, beat: int) -> list[tuple[int, int]]:
    """Return the results of a beat of the output, in their order."""
    bits = params.payload_bits
    mask, user = (1 << bits) - 1, beat >> 2 * bits * params.beat_results
    results = [beat, *[beat >> 2 * bits][: user >> TUser.SECOND & params.beat_results - 1]]
    return [(each & mask, each >> bits & mask) for each in results]


def ends_of(
    join: Join,
    workloads: list[Workload],
    expected: list[list[tuple[int, int]]],
    idle: float,
    stall: float,
    first: Callable[[Any, Join], Awaitable[None]],
    *,
    at_once: bool = False,
) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Return the source of a design's inputs, and the sink that checks what it gives.

    ``at_once``: the sink does not wait for the source to begin.
    """
    begun = [True] if at_once else []

    async def source(ctx: Any) -> None:
        await first(ctx, join)
        begun.append(True)
        for workload in workloads:
            await ctx.tick().until(join.idle)
            await set_up(ctx, join, workload)
            await give(ctx, join.i, beats_of(workload), pauses(SEED, idle))
            await ctx.tick().until(join.drained)

    async def sink(ctx: Any) -> None:
        params = join.params
        bits = 2 * params.payload_bits * params.beat_results
        last = tuser_bits(params)
        while not begun:
            await ctx.tick()
        for workload, pairs in zip(workloads, expected, strict=True):
            beats: list[int] = []
            while not beats or not beats[-1] >> (bits + last):
                beats += await take(ctx, join.o, 1, pauses(len(beats), stall), patience=1500)
            received = [pair for beat in beats[:-1] for pair in pairs_of(params, beat)]
            assert difference(pairs, received) == "", difference(pairs, received)
            assert out_of_order(workload, received) == ""
            assert beats[-1] >> bits == 1 << TUser.PUNCTUATION | 1 << last
            others = {TUser.SIDE, *[TUser.SECOND][: params.beat_results - 1]}
            for user in {beat >> bits for beat in beats[:-1]}:
                assert user & ~sum(1 << other for other in others) == 1 << TUser.RESULT
        await nothing_more(ctx, join.o)

    return source, sink


STALLS = ((0.0, 0.0), (0.5, 0.0), (0.0, 0.7), (0.5, 0.5))


@pytest.mark.parametrize(
    ("segment", "lanes", "timestamp_bits", "cores", "idle", "stall"),
    spread([(4, 3), (4, 4), (5, 1), (6, 2)], (0, 12), (1, 3, 4), STALLS, one_of=4, rest=2),
)
def test_random_inputs_are_exact_when_forwarded_at_once(
    cores: int, idle: float, stall: float, timestamp_bits: int, segment: int, lanes: int
) -> None:
    rng = np.random.default_rng([SEED, cores, segment])
    params = DesignParams(
        cores=cores,
        segment_tuples=segment,
        lanes=lanes,
        terms=EQUI,
        payload_bits=10,
        forward="fast",
        timestamp_bits=timestamp_bits,
    )
    workloads = [random_workload(params, rng, tuples) for tuples in (30, 1, 60)]
    run_inputs(params, workloads, idle, stall)


@pytest.mark.parametrize(("idle", "stall"), STALLS)
@pytest.mark.parametrize("cores", [1, 3])
def test_random_inputs_are_exact_under_time_windows(cores: int, idle: float, stall: float) -> None:
    rng = np.random.default_rng([SEED, cores])
    params = DesignParams(
        cores=cores, segment_tuples=4, lanes=3, terms=EQUI, payload_bits=10, timestamp_bits=12
    )
    workloads = [random_workload(params, rng, tuples) for tuples in (30, 1, 50)]
    run_inputs(params, workloads, idle, stall)


@pytest.mark.parametrize(("idle", "stall"), STALLS)
@pytest.mark.parametrize("cores", [1, 3])
def test_random_inputs_are_exact(cores: int, idle: float, stall: float) -> None:
    rng = np.random.default_rng([SEED, cores])
    params = DesignParams(cores=cores, segment_tuples=4, lanes=3, terms=EQUI, payload_bits=10)
    workloads = [random_workload(params, rng, tuples) for tuples in (30, 1, 50)]
    run_inputs(params, workloads, idle, stall)


@pytest.mark.parametrize("forward", ["step", "fast"])
def test_the_next_input_waits_although_it_is_offered_at_once(forward: str) -> None:
    """Inputs of one tuple and of few, each offered as soon as the last tuple before is taken."""
    rng = np.random.default_rng(SEED)
    params = DesignParams(cores=2, segment_tuples=2, terms=EQUI, payload_bits=10, forward=forward)
    sizes = (1, 1, 2, 1, 5, 1, 3)
    workloads = [random_workload(params, rng, n, domain=1, windows=(4, 4)) for n in sizes]

    async def source(ctx: Any, join: Join) -> None:
        await ctx.tick().until(join.idle)
        await set_up(ctx, join, workloads[0])
        for workload in workloads:
            await give(ctx, join.i, beats_of(workload), pauses(SEED, 0.0))

    def ends(join: Join) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
        expected = [reference(workload) for workload in workloads]
        sink = ends_of(join, workloads, expected, 0.0, 0.0, nothing_first, at_once=True)[1]
        return lambda ctx: source(ctx, join), sink

    run_kept(params, ends)


@pytest.mark.parametrize("forward", ["step", "fast"])
def test_no_tuple_is_taken_in_windows_that_cannot_be_held(forward: str) -> None:
    """Offered from the first cycle on in which a write of the register has its effect."""
    params = DesignParams(cores=2, segment_tuples=2, terms=EQUI, payload_bits=10, forward=forward)
    join = Join(params)

    async def source(ctx: Any) -> None:
        workload = random_workload(params, np.random.default_rng(SEED), 1, windows=(4, 4))
        await set_up(ctx, join, workload)
        for window in (0, 5, 1 << 16, 1 << 31):
            await ctx.tick().until(join.i.ready)
            await write(ctx, window)
            ctx.set(join.i.valid, 1)
            for cycle in range(200):
                assert not ctx.get(join.i.ready), f"a tuple was taken in cycle {cycle}, {window}"
                await ctx.tick()
            ctx.set(join.i.valid, 0)
            await write(ctx, 4)

    async def write(ctx: Any, window: int) -> None:
        ctx.set(join.window_r, window)
        ctx.set(join.windows_written, 1)
        await ctx.tick()
        ctx.set(join.windows_written, 0)

    simulate(join, source)


@pytest.mark.parametrize("windows", [(1, 1), (1, 4), (4, 1), (8, 8), (5, 3), (2, 8), (8, 2)])
def test_windows_of_any_legal_size_are_exact(windows: tuple[int, int]) -> None:
    rng = np.random.default_rng([SEED, *windows])
    params = DesignParams(cores=2, segment_tuples=4, lanes=2, terms=EQUI, payload_bits=10)
    run_inputs(params, [random_workload(params, rng, 60, domain=3, windows=windows)], 0.0, 0.2)


@pytest.mark.parametrize("low_bits", [2, 3])
def test_a_drain_counts_its_bubbles_in_two_halves(low_bits: int) -> None:
    """The upper half follows the lower one late: windows of every remainder are drained whole."""
    rng = np.random.default_rng([SEED, low_bits])
    params = DesignParams(cores=2, segment_tuples=9, lanes=2, terms=EQUI, payload_bits=10)
    workloads = [
        random_workload(params, rng, 2 * window, domain=1, windows=(window, window))
        for window in range(2, 19)
    ]
    expected = [reference(workload) for workload in workloads]
    with mock.patch.object(Countdown, "LOW_BITS", low_bits):
        join = Join(params)
        simulate(join, *ends_of(join, workloads, expected, 0.0, 0.0, nothing_first))


@pytest.mark.parametrize("shape", [{"forward": "fast"}, {"design": "splitjoin"}])
def test_a_window_fills_at_any_size(shape: dict[str, Any]) -> None:
    """Room is counted in two parts: sizes on both sides of what the lower one counts are right."""
    rng = np.random.default_rng([SEED, len(shape)])
    params = DesignParams(cores=2, segment_tuples=20, terms=EQUI, payload_bits=10, **shape)
    workloads = [
        random_workload(params, rng, 3 * window, domain=6, windows=(window, window + 1))
        for window in (1, 2, 3, 4, 5, 15, 16, 17, 18, 19, 20, 31, 32, 33, 35, 36)
    ]
    run_inputs(params, workloads, 0.0, 0.0)


def test_the_reference_band_query_is_exact() -> None:
    rng = np.random.default_rng(SEED)
    params = DesignParams(cores=2, segment_tuples=4, lanes=2, terms=REFERENCE_BAND)
    workloads = [random_workload(params, rng, 60, domain=8, extremes=0.1) for _ in range(2)]
    run_inputs(params, workloads, 0.0, 0.2)


@pytest.mark.parametrize("forward", ["step", "fast"])
def test_one_key_everywhere_never_overflows_a_fifo(forward: str) -> None:
    """Every word matches and the output nearly stands still: the hold has to work."""
    rng = np.random.default_rng(SEED)
    params = DesignParams(
        cores=2, segment_tuples=16, lanes=1, terms=EQUI, payload_bits=8, forward=forward
    )
    workload = random_workload(params, rng, 64, domain=1, windows=(32, 32))
    run_inputs(params, [workload], 0.0, 0.8)


@pytest.mark.parametrize("forward", ["step", "fast"])
def test_inputs_are_exact_over_several_lines_of_cores(forward: str) -> None:
    """What passes registers on its way arrives in time: tuples, holds, ends, results."""
    rng = np.random.default_rng(SEED)
    params = DesignParams(
        cores=9, segment_tuples=2, terms=EQUI, payload_bits=10, merge_arity=2, forward=forward
    )
    workloads = [random_workload(params, rng, tuples) for tuples in (30, 1, 60)]
    workloads.append(random_workload(params, rng, 20, windows=(5, 10)))
    run_inputs(params, workloads, 0.2, 0.3)


@pytest.mark.parametrize("forward", ["step", "fast"])
def test_one_key_in_several_lines_never_overflows_a_fifo(forward: str) -> None:
    rng = np.random.default_rng(SEED)
    params = DesignParams(
        cores=9, segment_tuples=2, lanes=1, terms=EQUI, payload_bits=10, forward=forward
    )
    workload = random_workload(params, rng, 50, domain=1, windows=(18, 18))
    run_inputs(params, [workload], 0.0, 0.8)


@pytest.mark.parametrize("forward", ["step", "fast"])
def test_a_reset_in_the_middle_leaves_nothing_in_any_line(forward: str) -> None:
    """A reset reaches the lines some cycles late, and so does what is on its way from them."""
    rng = np.random.default_rng(SEED)
    params = DesignParams(cores=9, segment_tuples=2, terms=EQUI, payload_bits=10, forward=forward)
    abandoned = random_workload(params, rng, 40, domain=1)
    reset = Signal()
    workload = random_workload(params, rng, 40, domain=2)
    first = resets(reset, abandoned, range(3, 15), 2)
    run_inputs(params, [workload], 0.0, 0.0, first=first, reset=reset)


@pytest.mark.parametrize(("bits", "cycles"), [(1, 1), (32, 1), (33, 2), (1024, 2)])
def test_an_or_over_the_cores_takes_a_cycle_a_level(bits: int, cycles: int) -> None:
    class Tree(Elaboratable):
        def __init__(self) -> None:
            self.inputs = [Signal(name=f"input{k}") for k in range(bits)]
            self.output = Signal()

        def elaborate(self, _platform: object) -> Module:
            m = Module()
            m.d.comb += self.output.eq(registered_or(m, self.inputs))
            return m

    tree = Tree()

    async def testbench(ctx: Any) -> None:
        for k in {0, bits // 2, bits - 1}:
            ctx.set(tree.inputs[k], 1)
            await ctx.tick()
            ctx.set(tree.inputs[k], 0)
            for cycle in range(1, 4):
                assert ctx.get(tree.output) == (cycle == cycles)
                await ctx.tick()

    simulate(tree, testbench)


@pytest.mark.parametrize("stall", [0.0, 0.5])
def test_a_reset_in_the_middle_leaves_an_empty_design(stall: float) -> None:
    """Results are inside when the reset is asserted, as nobody takes them until the last input."""
    rng = np.random.default_rng(SEED)
    params = DesignParams(cores=2, segment_tuples=4, lanes=2, terms=EQUI, payload_bits=10)
    abandoned = random_workload(params, rng, 40, domain=2)
    reset = Signal()
    workload = random_workload(params, rng, 60, domain=2)
    first = resets(reset, abandoned, range(1, 14), 2)
    run_inputs(params, [workload], 0.2, stall, first=first, reset=reset)
