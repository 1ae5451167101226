"""The self-test: what passes is right, and what is wrong fails."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from amaranth.sim import Simulator

from streamjoin.cli import main
from streamjoin_hw.contract import DesignParams
from streamjoin_hw.design_options import UsageError
from streamjoin_hw.presets import PRESETS
from streamjoin_hw.selftest.stimulus import Expected, chunks, expected, key_bits, weights
from streamjoin_hw.selftest.top import SelfTest
from streamjoin_hw.testing import Arrival, Workload, reference

SMALL = {
    "chain": DesignParams(cores=2, segment_tuples=2),
    "tree": DesignParams(design="splitjoin", cores=2, segment_tuples=4, payload_bits=12),
    "band": DesignParams(cores=1, segment_tuples=3, terms=PRESETS["tiny-band"].terms),
}
TUPLES = 60
MOST_CYCLES = 4000


def verdict(dut: SelfTest, **inputs: int) -> str:
    """Run a self-test to its end; returns which of its outputs is 1."""
    said = []

    async def board(ctx: Any) -> None:
        for name, value in inputs.items():
            ctx.set(getattr(dut, name), value)
        for _ in range(MOST_CYCLES):
            await ctx.delay(1e-6)
            ctx.set(dut.clk, 1)
            await ctx.delay(1e-6)
            ctx.set(dut.clk, 0)
            lit = [name for name in ("running", "passed", "failed") if ctx.get(getattr(dut, name))]
            assert len(lit) == 1
            if lit != ["running"]:
                said.append(lit[0])
            if len(said) == 100:  # it stays
                return

    simulator = Simulator(dut)
    simulator.add_testbench(board)
    simulator.run()
    assert len(set(said)) <= 1, f"the verdict changes: {said}"
    return said[0] if said else "running"


@pytest.mark.parametrize("shape", SMALL)
def test_the_expected_checksum_is_that_of_the_reference_join(shape: str) -> None:
    params = SMALL[shape]
    (chunk,) = chunks(params, TUPLES)
    columns = zip(chunk.sides, chunk.keys, chunk.payloads, strict=True)
    arrivals = [
        Arrival(int(side), tuple(map(int, keys)), int(payload)) for side, keys, payload in columns
    ]
    capacity = params.window_capacity
    pairs = reference(Workload(params, arrivals, capacity, capacity))
    assert len(pairs) > 5
    assert {each.side for each in arrivals} == {0, 1}
    total = sum((2 * r + 1) * (2 * s + 1) for r, s in pairs)
    assert expected(params, TUPLES) == Expected(len(pairs), total % 2**32)


def test_results_that_changed_partners_have_another_checksum() -> None:
    r, s = np.array([3, 8], np.uint64), np.array([5, 2], np.uint64)
    assert weights(r, s).sum() != weights(r, s[::-1]).sum()


@pytest.mark.parametrize("shape", SMALL)
def test_a_design_that_is_right_passes(shape: str) -> None:
    params = SMALL[shape]
    assert verdict(SelfTest(params, TUPLES, expected(params, TUPLES))) == "passed"


@pytest.mark.parametrize("shape", SMALL)
def test_one_wrong_bit_in_one_result_fails(shape: str) -> None:
    params = SMALL[shape]
    assert verdict(SelfTest(params, TUPLES, expected(params, TUPLES)), fault=1) == "failed"


def test_a_result_too_few_fails() -> None:
    params = SMALL["chain"]
    right = expected(params, TUPLES)
    assert verdict(SelfTest(params, TUPLES, Expected(right.results + 1, right.checksum))) == "failed"


def test_a_design_that_goes_on_without_an_end_fails() -> None:
    params = SMALL["chain"]
    # So impatient that the way through the design is taken for a standstill.
    dut = SelfTest(params, TUPLES, expected(params, TUPLES), patience_log2=2)
    assert verdict(dut) == "failed"


def test_a_pressed_button_keeps_it_from_ending() -> None:
    params = SMALL["chain"]
    assert verdict(SelfTest(params, TUPLES, expected(params, TUPLES)), restart=1) == "running"


def test_random_bits_of_all_keys_leave_one_for_the_side() -> None:
    wide = DesignParams(cores=64, segment_tuples=1024)
    assert key_bits(wide) == 17
    assert key_bits(SMALL["band"]) == 1
    with pytest.raises(UsageError, match=r"^a self-test gives no times: set timestamp_bits=0$"):
        key_bits(DesignParams(cores=1, segment_tuples=2, timestamp_bits=16))
