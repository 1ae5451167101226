"""The register stages: order, throughput, and that they cut both paths."""

from typing import Any

import pytest
from amaranth.hdl import Module, Signal
from amaranth.lib import data
from tests.hw.checks import give, nothing_more, pauses, simulate, take

from streamjoin_hw.rtl.streams import GATED_BITS, PingPongReg, PipeReg, one_less, one_more

LAYOUT = data.StructLayout({"value": 16})
STAGES = pytest.mark.parametrize("kind", [PipeReg, PingPongReg])


@STAGES
@pytest.mark.parametrize("idle", [0.0, 0.6])
@pytest.mark.parametrize("stall", [0.0, 0.6])
def test_payloads_pass_once_and_in_order(idle: float, stall: float, kind: Any) -> None:
    stage = kind(LAYOUT)
    values = [(7 * k) & 0xFFFF for k in range(300)]

    async def source(ctx: Any) -> None:
        await give(ctx, stage.i, [{"value": v} for v in values], pauses(1, idle))

    async def sink(ctx: Any) -> None:
        assert await take(ctx, stage.o, len(values), pauses(2, stall)) == values
        await nothing_more(ctx, stage.o)
        assert not ctx.get(stage.busy)

    simulate(stage, source, sink)


@STAGES
def test_a_payload_passes_every_cycle(kind: Any) -> None:
    stage = kind(LAYOUT)

    async def testbench(ctx: Any) -> None:
        ctx.set(stage.o.ready, 1)
        ctx.set(stage.i.valid, 1)
        for value in range(20):
            ctx.set(stage.i.payload, {"value": value})
            assert ctx.get(stage.i.ready)
            await ctx.tick()
            assert ctx.get(stage.o.valid)
            assert ctx.get(stage.o.payload.value) == value

    simulate(stage, testbench)


@STAGES
def test_no_path_runs_through_it_within_a_cycle(kind: Any) -> None:
    stage = kind(LAYOUT)

    async def testbench(ctx: Any) -> None:
        ctx.set(stage.i.valid, 1)
        assert not ctx.get(stage.o.valid)
        await ctx.tick().repeat(2)  # both entries are full now
        assert not ctx.get(stage.i.ready)
        ctx.set(stage.o.ready, 1)
        assert not ctx.get(stage.i.ready)
        await ctx.tick()
        assert ctx.get(stage.i.ready)

    simulate(stage, testbench)


@pytest.mark.parametrize("bits", [1, 2, GATED_BITS, GATED_BITS + 1])
def test_a_number_goes_up_and_down_by_one_and_round(bits: int) -> None:
    m = Module()
    number, more, less = (Signal(bits, name=name) for name in ("number", "more", "less"))
    m.d.comb += [more.eq(one_more(number)), less.eq(one_less(number))]
    m.d.sync += number.eq(number + 1)

    async def testbench(ctx: Any) -> None:
        many = 1 << bits
        for value in range(many):
            expected = (value, (value + 1) % many, (value - 1) % many)
            assert tuple(map(ctx.get, (number, more, less))) == expected
            await ctx.tick()

    simulate(m, testbench)
