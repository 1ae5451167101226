"""Lines of results and trees of registers: nothing lost, nothing too late, nobody forgotten."""

from typing import Any

import pytest
from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib import data
from tests.hw.checks import give, nothing_more, pauses, simulate, take

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.chain.line import (
    LINE_CORES,
    LineEnd,
    LinePlace,
    connect_lines,
    line_lengths,
    lines_of_cores,
)
from streamjoin_hw.rtl.chain.spread import (
    FANOUT,
    Spread,
    delayed,
    gathered_or,
    gathered_sum,
    hold_words,
    quiet_cycles,
    spread_levels,
)
from streamjoin_hw.rtl.matching import queue_words

LAYOUT = data.StructLayout({"origin": 8, "number": 8})


class Line(Elaboratable):
    """A line of places without their cores, and ``hops`` registers from there to its queue."""

    def __init__(self, cores: int, hops: int = 0) -> None:
        self.hops = hops
        self.places = [LinePlace(LAYOUT) for _ in range(cores)]
        self.reset = Signal()
        self.end: LineEnd

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        for index, place in enumerate(self.places):
            m.submodules[f"place{index}"] = place
        (self.end,) = connect_lines(m, LAYOUT, self.places, [self.reset], self.hops)
        return m


def check_line(cores: int, hops: int, idle: float, stall: float, each: int = 30) -> None:
    """Send numbered results from every place and look at the end."""
    line = Line(cores, hops)

    def source(k: int) -> Any:
        async def testbench(ctx: Any) -> None:
            payloads = [{"origin": k, "number": number} for number in range(each)]
            await give(ctx, line.places[k].results, payloads, pauses(k, idle))

        return testbench

    async def sink(ctx: Any) -> None:
        taken = await take(ctx, line.end.o, cores * each, pauses(99, stall), patience=400)
        await nothing_more(ctx, line.end.o)
        assert not ctx.get(line.end.busy)
        for k in range(cores):
            assert [v >> 8 for v in taken if v & 0xFF == k] == list(range(each))

    simulate(line, sink, *(source(k) for k in range(cores)))


HOPS = pytest.mark.parametrize("hops", [0, 2])


@HOPS
@pytest.mark.parametrize("cores", [1, 2, 5, LINE_CORES])
@pytest.mark.parametrize(("idle", "stall"), [(0.0, 0.0), (0.9, 0.0), (0.0, 0.8), (0.5, 0.5)])
def test_a_line_passes_everything_once_and_its_queue_never_overflows(
    cores: int, hops: int, idle: float, stall: float
) -> None:
    check_line(cores, hops, idle, stall)


@HOPS
@pytest.mark.parametrize("cores", [1, 3, LINE_CORES])
def test_a_queue_that_nobody_empties_stops_its_line_before_it_overflows(
    cores: int, hops: int
) -> None:
    """The farthest core fills the line alone, or all of them at once; then all is given."""
    for senders in ([0], range(cores)):
        line = Line(cores, hops)

        async def testbench(ctx: Any, line: Line = line, senders: Any = senders) -> None:
            for k in senders:
                ctx.set(line.places[k].results.payload, {"origin": k})
                ctx.set(line.places[k].results.valid, 1)
            await ctx.tick().repeat(4 * line.end.places)
            assert not any(ctx.get(place.results.ready) for place in line.places)
            held = 0
            for k in senders:
                ctx.set(line.places[k].results.valid, 0)
            ctx.set(line.end.o.ready, 1)
            for _ in range(4 * line.end.places):
                held += ctx.get(line.end.o.valid)
                await ctx.tick()
            assert line.end.places - cores - hops < held <= line.end.places + 3

        simulate(line, testbench)


@HOPS
@pytest.mark.parametrize("cores", [1, LINE_CORES])
def test_a_line_gives_a_result_in_every_cycle_after_it_was_stopped(cores: int, hops: int) -> None:
    """What is queued lasts until the farthest core's results arrive."""
    line = Line(cores, hops)

    async def testbench(ctx: Any) -> None:
        ctx.set(line.places[0].results.valid, 1)
        await ctx.tick().repeat(4 * line.end.places)
        ctx.set(line.end.o.ready, 1)
        for _ in range(6 * line.end.places):
            assert ctx.get(line.end.o.valid)
            await ctx.tick()

    simulate(line, testbench)


@pytest.mark.parametrize("cycles", [40, 4])
@HOPS
def test_a_reset_empties_a_line_s_end(cycles: int, hops: int) -> None:
    """What is queued, and what is on its way there."""
    line = Line(2, hops)

    async def testbench(ctx: Any) -> None:
        ctx.set(line.places[1].results.valid, 1)
        await ctx.tick().repeat(cycles + hops)
        ctx.set(line.places[1].results.valid, 0)
        assert ctx.get(line.end.o.valid)
        ctx.set(line.reset, 1)
        await ctx.tick()
        ctx.set(line.reset, 0)
        await ctx.tick()
        await nothing_more(ctx, line.end.o)
        assert not ctx.get(line.end.busy)
        assert not ctx.get(line.end.line_stop)
        await give(ctx, line.places[0].results, [{"number": 7}], pauses(0, 0.0))
        assert await take(ctx, line.end.o, 1, pauses(0, 0.0)) == [7 << 8]

    simulate(line, testbench)


@pytest.mark.parametrize(
    ("cores", "lengths"),
    [(1, (1,)), (8, (8,)), (9, (4, 5)), (16, (8, 8)), (17, (5, 6, 6)), (64, (8,) * 8)],
)
def test_lines_are_few_and_of_about_one_length(cores: int, lengths: tuple[int, ...]) -> None:
    assert line_lengths(cores) == lengths
    assert lines_of_cores(cores) == [k for k, length in enumerate(lengths) for _ in range(length)]


@pytest.mark.parametrize(
    ("cores", "levels"), [(1, 0), (8, 0), (9, 1), (48, 1), (49, 2), (288, 2), (1024, 3)]
)
def test_the_way_to_a_line_and_what_follows_from_it(cores: int, levels: int) -> None:
    params = DesignParams(cores=cores, segment_tuples=2)
    assert spread_levels(params) == levels
    # Of a result FIFO of the minimum depth some words are left to work with.
    words = hold_words(params)
    assert words == 11 + 2 * levels < queue_words(params, words)
    assert quiet_cycles(params) >= 7 + 2 * levels


class Spreading(Elaboratable):
    """Something said to all lines, and something said by every core."""

    def __init__(self, cores: int) -> None:
        self.params = DesignParams(cores=cores, segment_tuples=1)
        self.said = Signal(8)
        self.first = Signal(8)
        self.heard = [Signal(8, name=f"heard{k}") for k in range(len(line_lengths(cores)))]
        self.bits = [Signal(name=f"bit{k}") for k in range(cores)]
        self.any = Signal()
        self.sum = Signal(range(cores + 1))
        self.complete = Signal()

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        spread = Spread(self.params)
        spread.grow(m)
        for heard, branch in zip(
            self.heard, spread.branches(m, 8, self.said, name="said"), strict=True
        ):
            m.d.comb += heard.eq(branch)
        m.d.comb += [
            self.first.eq(delayed(m, 8, self.said, spread.levels, name="late")),
            self.complete.eq(spread.complete),
            self.any.eq(gathered_or(m, self.params, self.bits)),
            self.sum.eq(gathered_sum(m, self.params, self.bits)),
        ]
        return m


@pytest.mark.parametrize("cores", [3, 9, 49, 8 * FANOUT**2 + 1])
def test_every_line_hears_at_once_and_every_core_is_heard_at_once(cores: int) -> None:
    spreading = Spreading(cores)
    levels = spread_levels(spreading.params)

    async def testbench(ctx: Any) -> None:
        for _ in range(100):
            await ctx.tick()
        assert ctx.get(spreading.complete)
        ctx.set(spreading.said, 77)
        for cycle in range(6):
            for heard in (*spreading.heard, spreading.first):
                assert (ctx.get(heard) == 77) == (cycle >= levels)
            await ctx.tick()
        for k in {0, 7, cores // 2, cores - 1} & set(range(cores)):
            ctx.set(spreading.bits[k], 1)
            await ctx.tick()
            ctx.set(spreading.bits[k], 0)
            for cycle in range(1, 6):
                assert ctx.get(spreading.any) == ctx.get(spreading.sum) == (cycle == levels + 2)
                await ctx.tick()
        for bit in spreading.bits:
            ctx.set(bit, 1)
        await ctx.tick().repeat(levels + 2)
        assert ctx.get(spreading.sum) == cores

    simulate(spreading, testbench)
