"""The planner against the contract's definition."""

from typing import Any

import numpy as np
import pytest
from tests.hw.checks import simulate

from streamjoin_common.contract import (
    SIDE_R,
    SIDE_S,
    WINDOW_BITS,
    DesignParams,
    ParameterError,
    active_cores,
)
from streamjoin_hw.rtl.chain.segments import Divider, Planner
from streamjoin_hw.rtl.chain.sequencer import Sequencer

SEED = 3


def test_the_divider_divides() -> None:
    divider = Divider()
    rng = np.random.default_rng(SEED)
    cases = [(0, 1), (1, 1), (0xFFFFFF, 1), (0xFFFFFF, 0xFFFFFF), (5, 7)]
    cases += [
        (int(a), int(b))
        for a, b in zip(rng.integers(0, 1 << 24, 60), rng.integers(1, 1 << 12, 60), strict=True)
    ]

    async def testbench(ctx: Any) -> None:
        for dividend, divisor in cases:
            ctx.set(divider.dividend, dividend)
            ctx.set(divider.divisor, divisor)
            ctx.set(divider.start, 1)
            await ctx.tick()
            ctx.set(divider.start, 0)
            await ctx.tick().repeat(2 * WINDOW_BITS + 1)
            assert ctx.get(divider.done)
            given = ctx.get(divider.quotient), ctx.get(divider.remainder)
            assert given == divmod(dividend, divisor)

    simulate(divider, testbench)


@pytest.mark.parametrize(
    ("cores", "segment", "lanes"), [(1, 8, 3), (4, 8, 4), (7, 5, 2), (16, 64, 8), (3, 1, 1)]
)
def test_a_plan_adds_up_to_the_windows(cores: int, segment: int, lanes: int) -> None:
    params = DesignParams(cores=cores, segment_tuples=segment, lanes=lanes)
    capacity = params.window_capacity
    planner = Planner(params)
    rng = np.random.default_rng(SEED)
    cases = [(capacity, capacity), (1, 1), (1, capacity), (capacity, 1), (0, 1), (capacity + 1, 1)]
    cases += [(0xFFFFFFFF, 1), (1, 1 << 24), ((1 << 24) + 1, 1), (cores, cores * segment)]
    cases += [(int(r), int(s)) for r, s in rng.integers(1, capacity + 1, (25, 2))]

    async def testbench(ctx: Any) -> None:
        for windows in cases:
            for port, window in zip((planner.window_r, planner.window_s), windows, strict=True):
                ctx.set(port, window)
            ctx.set(planner.start, 1)
            await ctx.tick()
            ctx.set(planner.start, 0)
            await ctx.tick().repeat(4 * WINDOW_BITS + 19)
            assert ctx.get(planner.done)
            try:
                active = active_cores(params, *windows)
            except ParameterError:
                assert not ctx.get(planner.legal), f"{windows} cannot be held"
                continue
            assert ctx.get(planner.legal), f"{windows} can be held"
            assert ctx.get(planner.plan.active) == active
            for side, window in zip("rs", windows, strict=True):
                lengths = []
                for kind in (f"last_{side}", f"last_longer_{side}"):
                    last = planner.plan[kind]
                    lengths.append(ctx.get(last.word) * lanes + ctx.get(last.lane) + 1)
                longer = ctx.get(planner.plan[f"longer_{side}"])
                assert (active - longer) * lengths[0] + longer * lengths[1] == window or (
                    longer == 0 and active * lengths[0] == window
                )
                longest = -(-window // active)
                assert longest <= segment
                last_word = ctx.get(getattr(planner, f"last_word_{side}"))
                assert last_word == (longest - 1) // lanes

    simulate(planner, testbench)


@pytest.mark.parametrize("windows", [(1, 1), (2, 1), (3, 1), (4, 1), (5, 7), (8, 8), (37, 9)])
def test_a_drain_pushes_as_many_bubbles_as_the_window_has_tuples(windows: tuple[int, int]) -> None:
    """With a window of S of one tuple a bubble follows the one before it after two cycles."""
    sequencer = Sequencer(DesignParams(cores=2, segment_tuples=40, lanes=2))

    async def testbench(ctx: Any) -> None:
        for port, window in zip((sequencer.window_r, sequencer.window_s), windows, strict=True):
            ctx.set(port, window)
        for port in (sequencer.enable, sequencer.complete, sequencer.end.ready):
            ctx.set(port, 1)
        await ctx.tick().until(sequencer.open)
        for side in (SIDE_R, SIDE_S):
            ctx.set(sequencer.took, 1)
            ctx.set(sequencer.took_last, side == SIDE_S)
            await ctx.tick()
            ctx.set(sequencer.took, 0)
            ctx.set(sequencer.i.p.side, side)
            ctx.set(sequencer.i.valid, 1)
            await ctx.tick().until(sequencer.i.ready)
            ctx.set(sequencer.i.valid, 0)
        steps = 0
        for _ in range(2_000):
            _, _, step, entered, drained = await ctx.tick().sample(
                sequencer.command.step_r, sequencer.r_entry.valid, sequencer.drained
            )
            steps += step and not entered
            if drained:
                break
        assert drained
        assert steps == windows[0]

    simulate(sequencer, testbench)
