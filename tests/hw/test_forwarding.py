"""Cores that forward at once: what their sub-windows hold, and that they say when they are busy."""

from typing import Any

import numpy as np
import pytest
from tests.hw.checks import simulate
from tests.hw.test_handshake import run_inputs

from streamjoin_common.contract import SIDE_R, SIDE_S, DesignParams, KeyType, Term, TermKind
from streamjoin_common.contract.presets import EQUI
from streamjoin_hw.rtl.chain.forwarding import ScanCore
from streamjoin_hw.rtl.streams import r_layout
from streamjoin_hw.sim.testing import random_workload

SEED = 11


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("windows", [(1, 1), (5, 15), (16, 16)])
def test_windows_of_any_size_are_exact(windows: tuple[int, int], lanes: int) -> None:
    """Sub-windows become empty, and full in each of their words."""
    rng = np.random.default_rng([SEED, *windows, lanes])
    shape: Any = {"cores": 2, "segment_tuples": 8, "lanes": lanes, "forward": "fast"}
    params = DesignParams(**shape, terms=EQUI, payload_bits=10)
    run_inputs(params, [random_workload(params, rng, 90, domain=2, windows=windows)], 0.0, 0.0)


def test_a_core_is_busy_until_its_last_result_is_given() -> None:
    params = DesignParams(
        cores=1,
        segment_tuples=4,
        terms=(Term(TermKind.EQUI, KeyType.UINT32),),
        forward="fast",
    )
    core = ScanCore(params)

    async def arrive(ctx: Any, side: int, key: int, payload: int, owed: int) -> None:
        """Give a tuple, and wait for what is owed for it; the core is busy until then."""
        body = r_layout(params).const({"code0": key, "payload": payload}).as_value().value
        ctx.set(core.i.payload, {"side": side, "full": 0, "body": body})
        ctx.set(core.i.valid, 1)
        await ctx.tick().until(core.i.ready)
        ctx.set(core.i.valid, 0)
        for cycle in range(40):
            assert ctx.get(core.busy) or not owed, f"it looks empty in cycle {cycle}"
            owed -= ctx.get(core.line_o.valid)
            await ctx.tick()
        assert owed == 0
        assert not ctx.get(core.busy)

    async def testbench(ctx: Any) -> None:
        ctx.set(core.o.ready, 1)
        ctx.set(core.clear, 1)
        await ctx.tick()
        ctx.set(core.clear, 0)
        await ctx.tick().repeat(4)
        await arrive(ctx, SIDE_R, 7, 1, 0)
        await arrive(ctx, SIDE_S, 7, 1, 1)
        await arrive(ctx, SIDE_S, 8, 2, 0)
        await arrive(ctx, SIDE_S, 7, 3, 1)
        await arrive(ctx, SIDE_R, 7, 2, 2)

    simulate(core, testbench)
