"""Scenarios for the ``handshake`` design; run inside the simulator by ``test_handshake.py``."""

import os
import random
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import ClockCycles
from sim_tests.coverage import STATES
from sim_tests.stimuli import DESIGNS, GROUPS, SEED, STALLS, inputs, record
from sim_tests.testbench import Testbench, never, sometimes

from streamjoin_common.contract import MAGIC, SIDE_R, registers
from streamjoin_hw.sim.testing import Workload, random_workload

NAME = os.environ["STREAMJOIN_DESIGN"]
PARAMS = DESIGNS[NAME]

AXI_SLVERR = 2


async def started(dut: Any) -> Testbench:
    """Make a test bench around a design fresh from reset."""
    bench = Testbench(dut, PARAMS)
    await bench.reset(4)
    return bench


def one_input(salt: int, tuples: int, **choices: Any) -> Workload:
    """Draw one input."""
    return random_workload(PARAMS, np.random.default_rng([SEED, 1000 + salt]), tuples, **choices)


def apply_stalls(bench: Testbench, name: str, salt: int) -> None:
    """Set the pauses of source and sink."""
    idle, backpressure = STALLS[name]
    rng = random.Random(SEED * 100 + salt)
    bench.source.pauses = sometimes(rng, idle, 6) if idle else never()
    bench.sink.pauses = sometimes(rng, backpressure, 40) if backpressure else never()


@cocotb.test(timeout_time=200, timeout_unit="ms")
@cocotb.parametrize(stalls=list(STALLS))
async def results_are_exact(dut: Any, stalls: str) -> None:
    """Inputs follow one another without a reset; windows and band widths change between them."""
    bench = await started(dut)
    salt = list(STALLS).index(stalls)
    apply_stalls(bench, stalls, salt)
    for workload in inputs(PARAMS, salt):
        await bench.check_input(workload)
    await bench.finish()
    record(bench.tally)


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def every_pair_matching_holds_the_scan_and_loses_nothing(dut: Any) -> None:
    """One key everywhere fills the result FIFOs while the output hardly moves."""
    bench = await started(dut)
    bench.sink.pauses = sometimes(random.Random(SEED), 0.6, 60)
    capacity = PARAMS.window_capacity
    await bench.check_input(one_input(1, 150, domain=1, windows=(capacity, capacity)))
    await bench.finish()
    if PARAMS.cores > 1 and PARAMS.segment_tuples > PARAMS.lanes:
        assert bench.tally["cycles_held"], "no FIFO was ever nearly full"
    record(bench.tally)


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def a_reset_in_the_middle_leaves_a_clean_design(dut: Any) -> None:
    """Reset in every phase of an input: filling, running, held, draining."""
    bench = await started(dut)
    rng = random.Random(SEED)
    for salt in range(8):
        apply_stalls(bench, "backpressure" if salt % 2 else "none", salt)
        workload = one_input(10 + salt, 120)
        await bench.set_up(workload)
        bench.send(workload.arrivals, last=True)
        await ClockCycles(dut.aclk, rng.randint(1, 900))
        await bench.reset(rng.randint(1, 3))
        assert not bench.sink.beats, "a result was given after a reset"
        assert await bench.read("tuples_r") == 0, "a counter survived the reset"
        await bench.check_input(one_input(30 + salt, 80))
    await bench.finish()
    record(bench.tally)


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def a_soft_reset_keeps_registers_and_empties_the_rest(dut: Any) -> None:
    bench = await started(dut)
    rng = random.Random(SEED)
    for salt in range(4):
        workload = one_input(50 + salt, 100)
        await bench.set_up(workload)
        bench.send(workload.arrivals, last=False)
        await ClockCycles(dut.aclk, rng.randint(1, 400))
        while bench.source.waiting:
            await ClockCycles(dut.aclk, 1)
        await bench.soft_reset()
        assert await bench.read("window_r") == workload.window_r
        assert await bench.read("tuples_r") == await bench.read("results") == 0
        await bench.check_input(one_input(60 + salt, 80))
    await bench.finish()
    record(bench.tally)


@cocotb.test(timeout_time=50, timeout_unit="ms")
@cocotb.parametrize(soft=[False, True])
async def a_reset_in_any_state_leaves_a_clean_design(dut: Any, soft: bool) -> None:
    bench = await started(dut)
    rng = random.Random(SEED)
    for salt, state in enumerate(STATES):
        # The longest drain: a soft reset takes some cycles to be written.
        windows = (PARAMS.window_capacity, PARAMS.window_capacity)
        workload = one_input(100 + salt, 60, domain=2, windows=windows)
        # Nothing is taken, so that the state lasts; a drain begins only if results can leave.
        bench.sink.pauses = never() if state == "draining" else sometimes(rng, 1.0, 1)
        if state == "ending":
            workload.arrivals = [each for each in workload.arrivals if each.side == SIDE_R]
        await bench.set_up(workload)
        if state == "refusing":
            await bench.write("window_s", 0)
        bench.send(workload.arrivals if state != "waiting" else [], last=True)
        await bench.reached(state)
        bench.sink.pauses = sometimes(rng, 1.0, 1)
        if soft:
            bench.source.withdraw()
            await bench.write("control", 0b101)
            # Nothing is taken: the sink sees that what is offered stays as it is, also a beat that
            # comes while the register is written.
            await ClockCycles(dut.aclk, 20)
            offers = int(dut.m_axis_results_tvalid.value)
            assert (await bench.read("control") == 0b101) == offers
            bench.sink.pauses = never()
            await bench.soft_reset()
        else:
            await bench.reset(2)
        bench.sink.beats.clear()
        bench.sink.pauses = never()
        assert await bench.read("tuples_r") == await bench.read("results") == 0
        await bench.check_input(one_input(110 + salt, 80))
    await bench.finish()
    record(bench.tally)


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def windows_at_their_limits_are_exact(dut: Any) -> None:
    bench = await started(dut)
    apply_stalls(bench, "both", 4)
    capacity, segment = PARAMS.window_capacity, PARAMS.segment_tuples
    for salt, windows in enumerate([(1, 1), (1, segment), (segment, 1), (capacity, capacity)]):
        # Both windows fill and expire; else only that of the side with nearly all the tuples.
        for share_r, rounds in ((0.5, 3), (0.05, 1.5), (0.95, 1.5)):
            tuples = int(rounds * max(windows)) + 20
            await bench.check_input(
                one_input(120 + salt, tuples, windows=windows, share_r=share_r, domain=3)
            )
    await bench.check_input(one_input(130, 40, share_r=0.0))
    await bench.check_input(one_input(131, 40, share_r=1.0))
    await bench.finish()
    record(bench.tally)


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def the_next_input_waits_while_the_last_one_drains(dut: Any) -> None:
    """Inputs stand in line at the port; each gets its own results and its own punctuation."""
    bench = await started(dut)
    first = one_input(140, 120, domain=2)
    windows = (first.window_r, first.window_s)
    line = [one_input(141 + salt, 90, windows=windows, domain=2) for salt in range(4)]
    # With R alone there is no result, and the punctuation waits for long.
    alone = one_input(145, 30, windows=windows, share_r=1.0)
    await bench.set_up(first)
    for workload in (alone, first, *line):
        # The registers are written once, for all of them.
        workload.bands = first.bands
        workload.time_r, workload.time_s = first.time_r, first.time_s
        workload.group = first.group
        bench.send(workload.arrivals, last=True)
    bench.sink.pauses = sometimes(random.Random(SEED), 1.0, 1)
    await bench.reached("ending")
    await ClockCycles(dut.aclk, 40)
    apply_stalls(bench, "backpressure", 5)
    for workload in (alone, first, *line):
        bench.check(workload, await bench.collect())
    await bench.finish()
    record(bench.tally)


@cocotb.test(timeout_time=50, timeout_unit="ms")
async def the_drain_bit_ends_an_input_and_the_next_follows(dut: Any) -> None:
    bench = await started(dut)
    for salt, stalls in enumerate(STALLS):
        apply_stalls(bench, stalls, salt)
        await bench.check_input(one_input(70 + salt, 150), by_bit=True)
        await bench.check_input(one_input(80 + salt, 60))
    await bench.finish()
    record(bench.tally)


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def an_input_without_tuples_gives_the_punctuation_alone(dut: Any) -> None:
    bench = await started(dut)
    for _ in range(3):
        await bench.write("control", 0b11)
        assert await bench.collect() == []
    await bench.check_input(one_input(90, 50))
    await bench.finish()
    record(bench.tally)


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def tuples_wait_while_the_windows_cannot_be_held(dut: Any) -> None:
    bench = await started(dut)
    workload = one_input(91, 60)
    await bench.set_up(workload)
    await bench.write("window_r", PARAMS.window_capacity + 1)
    await ClockCycles(dut.aclk, 256)
    assert await bench.read("status") & 0b10000, "window_error is not shown"
    bench.send(workload.arrivals, last=True)
    await ClockCycles(dut.aclk, 300)
    assert bench.source.beats_taken == 0, "a tuple was taken with windows that cannot be held"
    await bench.write("window_r", workload.window_r)
    bench.source.waiting.clear()  # all but the one on offer, which check_input sends again
    bench.send(workload.arrivals, last=True)
    received = await bench.collect()
    assert len(received) == await bench.read("results")
    assert not await bench.read("status") & 0b10000
    await bench.finish()
    record(bench.tally)


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def a_disabled_design_takes_nothing(dut: Any) -> None:
    bench = await started(dut)
    await bench.write("control", 0)
    bench.send(one_input(92, 40).arrivals, last=True)
    await ClockCycles(dut.aclk, 300)
    assert bench.source.beats_taken == 0
    await bench.write("control", 1)
    await bench.collect()
    await bench.finish()
    record(bench.tally)


@cocotb.test(timeout_time=10, timeout_unit="ms")
async def registers_read_and_write_as_the_contract_says(dut: Any) -> None:
    bench = await started(dut)
    assert await bench.read("identity") == MAGIC
    assert await bench.read("version") == bench.params.interface_version
    digest = await bench.read("digest_low") | await bench.read("digest_high") << 32
    assert f"{digest:016x}" == PARAMS.digest
    assert await bench.read("cores") == PARAMS.cores
    assert await bench.read("segment_tuples") == PARAMS.segment_tuples
    assert await bench.read("lanes") == PARAMS.lanes
    assert await bench.read("control") == 1
    assert await bench.read("window_r") == PARAMS.window_capacity
    for each in registers(PARAMS):
        if each.access == "rw" and each.name != "control":
            await bench.write(each.name, 0x11223344)
            # Bytes 1 and 2 only: the strobes of the others stay 0.
            answer = await bench.control.write(each.offset + 1, b"\xaa\xbb")
            assert answer.resp == 0
            assert await bench.read(each.name) == 0x11BBAA44, each.name
        elif each.access == "ro":
            answer = await bench.control.write(each.offset, bytes(4))
            assert answer.resp == AXI_SLVERR, f"{each.name} took a write"
    named = {each.offset for each in registers(PARAMS)}
    for offset in set(range(0, 0x200, 4)) - named:
        answer = await bench.control.read(offset, 4)
        assert answer.resp == AXI_SLVERR, f"offset {offset:#x} answered a read"
        answer = await bench.control.write(offset, bytes(4))
        assert answer.resp == AXI_SLVERR, f"offset {offset:#x} answered a write"
    await bench.finish()
    record(bench.tally)


@cocotb.test(timeout_time=20, timeout_unit="ms")
async def counters_count_what_passed(dut: Any) -> None:
    bench = await started(dut)
    apply_stalls(bench, "both", 3)
    workload = one_input(93, 200)
    await bench.check_input(workload)
    sides = [arrival.side for arrival in workload.arrivals]
    assert await bench.read("tuples_r") == sides.count(0)
    assert await bench.read("tuples_s") == sides.count(1)
    assert await bench.read("results") == bench.tally["results"]
    assert await bench.read("input_stall_cycles") == bench.source.stalls_seen
    cycles = await bench.read("cycles_low") | await bench.read("cycles_high") << 32
    assert cycles >= 2 * len(sides)
    await bench.finish()
    record(bench.tally)


if PARAMS.has_groups:

    @cocotb.test(timeout_time=100, timeout_unit="ms")
    @cocotb.parametrize(group=list(GROUPS))
    async def a_star_follows_each_group_whatever_stalls(dut: Any, group: int) -> None:
        """Results of a group lie between two stars, the last group's, which is shorter, too."""
        bench = await started(dut)
        if PARAMS.order == "inner":
            # Groups are of the outer order.
            bench.order = "outer"
        await bench.write("order", 1 | 1 << 4)
        for salt, stalls in enumerate(STALLS):
            apply_stalls(bench, stalls, salt)
            workload = one_input(
                70 + salt, 101 + 30 * salt, group=group, share_r=(0.5, 0.9)[salt % 2]
            )
            await bench.set_up(workload)
            bench.send(workload.arrivals, last=True)
            stars: list[int] = []
            received = await bench.collect(stars)
            bench.check(workload, received)
            assert len(stars) == -(-len(workload.arrivals) // group), "not a star for each group"
            numbers = {(a.side, a.payload): k for k, a in enumerate(workload.arrivals)}
            groups = [max(numbers[0, r], numbers[1, s]) // group for r, s in received]
            between = [sum(star <= k for star in stars) for k in range(len(received))]
            assert groups == between, "a result on the wrong side of a star"
        await bench.finish()
        record(bench.tally)
