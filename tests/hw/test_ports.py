"""What a driver sees at the ports: when band widths count, what counters count."""

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any
from unittest import mock

import pytest
from amaranth.hdl import Module
from tests.hw.checks import simulate
from tests.hw.test_soft_reset import DESIGNS, PAIR, Bench, run

from streamjoin_common.contract import SIDE_R, SIDE_S, DesignParams, TUser, parse_term
from streamjoin_hw.rtl import top
from streamjoin_hw.rtl.registers import ADDRESS_BITS, OKAY, SLVERR, Counters, RegisterFile
from streamjoin_hw.rtl.top import Top

BAND = (parse_term("band:int32"),)
BANDS = {
    "chain": DesignParams(cores=1, segment_tuples=2, terms=BAND),
    "fast": DesignParams(cores=1, segment_tuples=2, terms=BAND, forward="fast"),
    "split": DesignParams(design="splitjoin", cores=1, segment_tuples=2, terms=BAND),
}
PAYLOADS = 0xFFFFFFFF


def results(bench: Bench) -> list[tuple[int, int]]:
    """Return the pairs of payloads that were given, and not the end."""
    beats = [(beat >> 128, beat & 0xFF) for beat in bench.given]
    data = [beat for beat, user in beats if user & 1 << TUser.RESULT]
    return [(beat & PAYLOADS, beat >> 32) for beat in data]


@pytest.mark.parametrize("name", BANDS)
def test_a_pair_joins_by_the_band_widths_of_its_s_tuple(name: str) -> None:
    async def scenario(bench: Bench) -> None:
        async def send(*each: tuple[int, int, int], last: bool = False) -> None:
            bench.send(*each, last=last)
            while bench.waiting:
                await bench.tick()

        bench.set(m_axis_results_tready=1)
        await bench.write("band_lo0", 1)
        await send((SIDE_S, 6, 1))
        await bench.write("band_lo0", 0)
        await send((SIDE_R, 5, 2), (SIDE_S, 6, 3))
        await bench.write("band_lo0", 1)
        await send((SIDE_R, 5, 4), last=True)
        await bench.tick(60)
        assert sorted(results(bench)) == [(2, 1), (4, 1)]

    run(Top(BANDS[name]), scenario)


@pytest.mark.parametrize("name", BANDS)
def test_a_band_width_counts_from_the_cycle_of_the_writes_response(name: str) -> None:
    async def scenario(bench: Bench) -> None:
        bench.set(m_axis_results_tready=1)
        await bench.until("s_axis_tuples_tready")
        bench.send((SIDE_R, 5, 0), *((SIDE_S, 6, number) for number in range(1, 41)), last=True)
        await bench.tick(12)
        await bench.write("band_lo0", 1)
        assert 0 < bench.accepted < 41
        while bench.waiting:
            await bench.tick()
        await bench.tick(200)
        later = bench.accepted_since_answer
        assert results(bench) == [(0, number) for number in range(41 - later, 41)]

    run(Top(BANDS[name]), scenario)


@pytest.mark.parametrize("name", DESIGNS)
def test_cycles_count_until_the_end_is_taken_and_backpressure_counts_results(name: str) -> None:
    async def scenario(bench: Bench) -> None:
        waited = 0

        async def stalled(cycles: int) -> None:
            nonlocal waited
            for _ in range(cycles):
                user = bench.get("m_axis_results_tuser")
                waited += bench.get("m_axis_results_tvalid") & user >> TUser.RESULT
                await bench.tick()

        await bench.until("s_axis_tuples_tready")
        bench.send(*PAIR, last=True)
        await stalled(150)
        bench.set(m_axis_results_tready=1)
        await bench.tick()
        bench.set(m_axis_results_tready=0)
        await stalled(150)  # the punctuation is no result
        assert bench.get("m_axis_results_tlast")
        before = await bench.read("cycles_low")
        assert before > 290
        await bench.tick(100)
        assert await bench.read("cycles_low") >= before + 100
        bench.set(m_axis_results_tready=1)
        await bench.tick(4)
        after = await bench.read("cycles_low")
        await bench.tick(20)
        assert await bench.read("cycles_low") == after
        assert 100 < waited <= 150
        assert await bench.read("results_backpressure_cycles") == waited
        assert await bench.read("results") == 1

    run(Top(DESIGNS[name]), scenario)


class LongRun(Counters):
    """Counters after many cycles."""

    def elaborate(self, _platform: object) -> Module:
        m = Module()
        m.d.comb += self.cycles.eq(7 << 32 | 0x89ABCDEF)
        return m


def test_the_cycle_counter_has_64_bits() -> None:
    async def scenario(bench: Bench) -> None:
        assert await bench.read("cycles_low") == 0x89ABCDEF
        assert await bench.read("cycles_high") == 7

    with mock.patch.object(top, "Counters", LongRun):
        run(Top(DESIGNS["chain"]), scenario)


class ShortHalves(Counters):
    """A cycle counter whose lower half has 4 bits."""

    HALF_BITS = 4
    EVENTS = (("cycle", "cycles", 8),)


def test_a_carry_reaches_both_halves_of_the_cycle_counter_at_once() -> None:
    counters = ShortHalves(1)

    async def testbench(ctx: Any) -> None:
        counted, behind = 0, deque([0] * 3)
        for cycle in range(600):
            counts = cycle % 7 != 3
            ctx.set(counters.cycle, counts)
            counted += counts
            behind.append(counted % 256)
            await ctx.tick()
            assert ctx.get(counters.cycles) == behind.popleft()

    simulate(counters, testbench)


def test_tuples_of_each_side_and_stalls_of_the_input_are_counted() -> None:
    async def scenario(bench: Bench) -> None:
        bench.set(m_axis_results_tready=1)
        await bench.write("control", 0)
        bench.send((SIDE_R, 1, 0), (SIDE_R, 2, 0), (SIDE_S, 3, 0), (SIDE_R, 4, 0))
        await bench.tick(20)
        await bench.write("control", 1)
        while bench.waiting:
            await bench.tick()
        await bench.tick(3)
        assert [await bench.read(f"tuples_{side}") for side in "rs"] == [3, 1]
        assert await bench.read("input_stall_cycles") == bench.stalled >= 20

    run(Top(DESIGNS["chain"]), scenario)


class FileBench:
    """Reads and writes a register file by itself."""

    def __init__(self, file: RegisterFile, ctx: Any) -> None:
        self.file, self.ctx = file, ctx
        self.offsets = {each.name: each.offset for each in file.map}
        self.windows_written = 0

    def set(self, **values: int) -> None:
        for name, value in values.items():
            self.ctx.set(getattr(self.file, name), value)

    async def tick(self) -> None:
        await self.ctx.tick()
        self.windows_written += self.ctx.get(self.file.windows_written)

    async def read(self, offset: int) -> tuple[int, int]:
        """Return the value and the response."""
        self.set(araddr=offset, arvalid=1, rready=1)
        await self.tick()
        self.set(arvalid=0)
        while not self.ctx.get(self.file.rvalid):
            await self.tick()
        answer = self.ctx.get(self.file.rdata), self.ctx.get(self.file.rresp)
        await self.tick()
        return answer

    async def write(self, offset: int, value: int, strobe: int = 15) -> int:
        """Return the response."""
        self.set(awaddr=offset, awvalid=1, wdata=value, wstrb=strobe, wvalid=1, bready=1)
        await self.tick()
        self.set(awvalid=0, wvalid=0)
        while not self.ctx.get(self.file.bvalid):
            await self.tick()
        response: int = self.ctx.get(self.file.bresp)
        await self.tick()
        return response


def run_file(scenario: Callable[[FileBench], Awaitable[None]]) -> None:
    file = RegisterFile(DESIGNS["chain"])

    async def testbench(ctx: Any) -> None:
        await scenario(FileBench(file, ctx))

    simulate(file, testbench)


def test_both_halves_of_the_cycle_counter_are_of_one_cycle() -> None:
    async def scenario(bench: FileBench) -> None:
        bench.set(get_cycles_low=0xFFFFFFFF, get_cycles_high=1)
        assert await bench.read(bench.offsets["cycles_low"]) == (0xFFFFFFFF, OKAY)
        bench.set(get_cycles_low=0, get_cycles_high=2)
        assert await bench.read(bench.offsets["cycles_high"]) == (1, OKAY)

    run_file(scenario)


def test_a_write_changes_the_bytes_of_its_strobes_and_says_that_windows_changed() -> None:
    async def scenario(bench: FileBench) -> None:
        offset = bench.offsets["window_r"]
        assert await bench.write(offset, 0x11223344) == OKAY
        assert await bench.write(offset, 0xAABBCCDD, 0b0101) == OKAY
        assert await bench.read(offset) == (0x11BB33DD, OKAY)
        assert bench.windows_written == 2
        assert await bench.write(bench.offsets["control"], 1) == OKAY
        assert bench.windows_written == 2

    run_file(scenario)


def test_what_is_not_there_and_what_cannot_be_written_are_answered_with_an_error() -> None:
    async def scenario(bench: FileBench) -> None:
        assert await bench.read(0xFFC) == (0, SLVERR)
        assert await bench.write(0xFFC, 1) == SLVERR
        cores = bench.offsets["cores"]
        # An offset without a register that has the lowest bits of one with it.
        for higher_bit in range(9, ADDRESS_BITS):
            assert await bench.read(cores | 1 << higher_bit) == (0, SLVERR)
            assert await bench.write(cores | 1 << higher_bit, 1) == SLVERR
        before = await bench.read(cores)
        assert await bench.write(cores, 77) == SLVERR
        assert await bench.read(cores) == before

    run_file(scenario)
