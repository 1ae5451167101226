"""Soft reset at the top levels: what is offered is taken first, and what arrives later counts."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from amaranth.sim import Simulator

from streamjoin_common.contract import (
    HEADER,
    MARK,
    SIDE_R,
    SIDE_S,
    DesignParams,
    TUser,
    registers,
    tuple_layout,
)
from streamjoin_hw.rtl.board_top import BoardTop
from streamjoin_hw.rtl.top import Top

DESIGNS = {
    "chain": DesignParams(cores=1, segment_tuples=2),
    "fast": DesignParams(cores=1, segment_tuples=2, forward="fast"),
    "split": DesignParams(design="splitjoin", cores=1, segment_tuples=2),
    "wide": DesignParams(design="splitjoin", cores=5, segment_tuples=2, merge_arity=2),
    "shared": DesignParams(
        design="splitjoin", cores=1, segment_tuples=2, probes=2, comparators="shared"
    ),
    "grouped": DesignParams(
        design="splitjoin", cores=1, segment_tuples=2, order="outer", stars="grouped"
    ),
    "kinds": DesignParams(design="splitjoin", cores=1, segment_tuples=2, kinds="all"),
    "hash": DesignParams(design="splitjoin-hash", cores=1, segment_tuples=4, buckets=2, ways=2),
    "index": DesignParams(
        design="splitjoin-index", cores=1, segment_tuples=4, lanes=2, buckets=8, ways=2
    ),
}
EVERY = pytest.mark.parametrize("name", DESIGNS)
ENABLE, DRAIN, SOFT_RESET = 1, 2, 4
PATIENCE_CYCLES = 200


class Bench:
    """Drives a top level cycle by cycle.

    The stream in keeps what it offers until it is taken; ``accepted`` and ``stalled`` count it.
    """

    def __init__(self, dut: Any, ctx: Any) -> None:
        self.dut, self.ctx = dut, ctx
        words = isinstance(dut, BoardTop)
        self.source = "s_axis_words" if words else "s_axis_tuples"
        self.sink = "m_axis_words" if words else "m_axis_results"
        self.offsets = {each.name: each.offset for each in registers(dut.params)}
        self.waiting: list[tuple[int, int, int]] = []
        self.accepted = self.accepted_since_answer = self.stalled = 0
        self.given: list[int] = []

    def get(self, name: str) -> int:
        value: int = self.ctx.get(getattr(self.dut, name))
        return value

    def set(self, **values: int) -> None:
        for name, value in values.items():
            self.ctx.set(getattr(self.dut, name), value)

    async def tick(self, cycles: int = 1) -> None:
        """Let cycles pass; what waits is offered in all of them."""
        for _ in range(cycles):
            if self.waiting:
                data, dest, last = self.waiting[0]
                self.set(**{f"{self.source}_tdata": data})
                if self.source == "s_axis_tuples":
                    self.set(s_axis_tuples_tdest=dest, s_axis_tuples_tlast=last)
            self.set(**{f"{self.source}_tvalid": int(bool(self.waiting))})
            if self.waiting and self.get(f"{self.source}_tready"):
                del self.waiting[0]
                self.accepted += 1
                self.accepted_since_answer += 1
            elif self.waiting:
                self.stalled += 1
            offers = self.get(f"{self.sink}_tvalid")
            if offers and self.get(f"{self.sink}_tready"):
                self.given.append(self.beat())
            self.set(aclk=1)
            await self.ctx.delay(1e-7)
            self.set(aclk=0)
            await self.ctx.delay(1e-7)

    def beat(self) -> int:
        """What is offered, as one number."""
        names = ["tdata", "tlast", *(["tuser"] if self.sink == "m_axis_results" else [])]
        beat = 0
        for name in names:
            beat = beat << 64 | self.get(f"{self.sink}_{name}")
        return beat

    async def until(self, name: str) -> None:
        for _ in range(PATIENCE_CYCLES):
            if self.get(name):
                return
            await self.tick()
        raise AssertionError(f"{name} stayed 0")

    async def write(self, name: str, value: int, *, answer: bool = True) -> None:
        self.set(s_axil_ctrl_awaddr=self.offsets[name], s_axil_ctrl_wdata=value)
        self.set(s_axil_ctrl_awvalid=1, s_axil_ctrl_wvalid=1, s_axil_ctrl_wstrb=15)
        await self.tick()  # both channels are ready between accesses
        self.set(s_axil_ctrl_awvalid=0, s_axil_ctrl_wvalid=0, s_axil_ctrl_bready=int(answer))
        await self.until("s_axil_ctrl_bvalid")
        self.accepted_since_answer = 0
        await self.tick()
        self.set(s_axil_ctrl_bready=0)

    async def ask(self, name: str) -> None:
        """Ask for a register, and leave the answer."""
        self.set(s_axil_ctrl_araddr=self.offsets[name], s_axil_ctrl_arvalid=1)
        await self.tick()
        self.set(s_axil_ctrl_arvalid=0)

    async def read(self, name: str) -> int:
        await self.ask(name)
        await self.until("s_axil_ctrl_rvalid")
        value = self.get("s_axil_ctrl_rdata")
        self.set(s_axil_ctrl_rready=1)
        await self.tick()
        self.set(s_axil_ctrl_rready=0)
        return value

    def send(self, *tuples: tuple[int, int, int], last: bool = False) -> None:
        """Offer tuples, each side, key and payload; a board gets them in one group."""
        offsets = {field.name: field.offset for field in tuple_layout(self.dut.params)}
        if self.source == "s_axis_words":
            group = {
                "sides": sum(side << index for index, (side, _, _) in enumerate(tuples)),
                "tuples": len(tuples),
                "last": int(last),
                "mark": MARK,
            }
            self.waiting.append((sum(group[f.name] << f.offset for f in HEADER), 0, 0))
        for index, (side, key, payload) in enumerate(tuples):
            ends = last and index == len(tuples) - 1
            data = key << offsets["key0"] | payload << offsets["payload"]
            self.waiting.append((data, side, int(ends)))

    async def still_offered(self, beat: int, cycles: int) -> None:
        """See that a beat stays as it is, and that nothing is accepted."""
        accepted = self.accepted
        for _ in range(cycles):
            await self.tick()
            assert self.get(f"{self.sink}_tvalid"), "an offered beat was withdrawn"
            assert self.beat() == beat, "an offered beat changed"
        assert self.accepted == accepted, "a tuple was accepted in a soft reset"


def run(dut: Any, scenario: Callable[[Bench], Awaitable[None]]) -> None:
    """Reset a top level and run a scenario on it."""

    async def testbench(ctx: Any) -> None:
        bench = Bench(dut, ctx)
        await bench.tick(2)
        bench.set(aresetn=1)
        await bench.tick(4)
        await scenario(bench)

    simulator = Simulator(dut)
    simulator.add_testbench(testbench)
    simulator.run()


PAIR = ((SIDE_R, 5, 1), (SIDE_S, 5, 2))


@EVERY
def test_an_offered_result_stays_until_it_is_taken_and_then_all_is_empty(name: str) -> None:
    async def scenario(bench: Bench) -> None:
        bench.send(*PAIR)
        await bench.until("m_axis_results_tvalid")
        beat = bench.beat()
        bench.send((SIDE_R, 5, 3), (SIDE_S, 5, 4))
        await bench.tick(8)
        assert not bench.waiting  # the design holds them too
        await bench.write("control", ENABLE | SOFT_RESET)
        bench.send((SIDE_S, 5, 6), (SIDE_R, 5, 7), last=True)
        await bench.still_offered(beat, 12)
        assert await bench.read("control") == ENABLE | SOFT_RESET
        bench.set(m_axis_results_tready=1)
        await bench.tick()
        assert bench.given == [beat]
        await bench.tick()
        assert not bench.get("m_axis_results_tvalid"), "a second beat follows"
        for _ in range(PATIENCE_CYCLES):
            await bench.tick()
        assert await bench.read("control") == ENABLE
        assert [await bench.read(f"tuples_{side}") for side in "rs"] == [1, 1]
        # The pair of the two tuples after the reset, and the end.
        assert len(bench.given) == 3
        users = [each & 0xFF for each in bench.given[1:]]
        assert users[0] >> TUser.RESULT & 1
        assert users[1] == 1 << TUser.PUNCTUATION

    run(Top(DESIGNS[name]), scenario)


@pytest.mark.parametrize(("forward", "cores"), [("step", 9), ("fast", 17)])
def test_what_is_in_the_tree_of_lines_does_not_outlive_a_reset(forward: str, cores: int) -> None:
    params = DesignParams(cores=cores, segment_tuples=1, lanes=1, forward=forward, merge_arity=2)

    async def scenario(bench: Bench) -> None:
        for number in range(30):
            bench.send((number % 2, 5, 1 + number))
        await bench.until("m_axis_results_tvalid")
        await bench.tick(PATIENCE_CYCLES)
        bench.waiting.clear()
        beat = bench.beat()
        await bench.write("control", ENABLE | SOFT_RESET)
        bench.send((SIDE_S, 5, 101), (SIDE_R, 5, 102), last=True)
        bench.set(m_axis_results_tready=1)
        await bench.tick(2 * PATIENCE_CYCLES)
        assert len(bench.given) == 3
        assert bench.given[0] == beat
        users = [each & 0xFF for each in bench.given[1:]]
        assert users[0] >> TUser.RESULT & 1
        assert users[1] == 1 << TUser.PUNCTUATION
        assert (bench.given[1] >> 128) & 0xFFFFFFFF == 102
        assert bench.given[1] >> 160 == 101

    run(Top(params), scenario)


@EVERY
def test_every_tuple_accepted_after_the_answer_counts(name: str) -> None:
    async def scenario(bench: Bench) -> None:
        await bench.until("s_axis_tuples_tready")
        for key in range(40):
            bench.send((key % 2, key, key))
        await bench.tick(4)
        await bench.write("control", ENABLE | SOFT_RESET)
        bench.send((SIDE_R, 50, 0), last=True)
        bench.set(m_axis_results_tready=1)
        while bench.waiting:
            await bench.tick()
        await bench.tick(8)
        counted = await bench.read("tuples_r") + await bench.read("tuples_s")
        assert 0 < bench.accepted_since_answer < bench.accepted
        assert counted == bench.accepted_since_answer

    run(Top(DESIGNS[name]), scenario)


def test_a_drain_written_while_a_soft_reset_waits_ends_the_empty_input_after_it() -> None:
    async def scenario(bench: Bench) -> None:
        bench.send(*PAIR)
        await bench.until("m_axis_results_tvalid")
        await bench.write("control", ENABLE | SOFT_RESET)
        await bench.write("control", ENABLE | DRAIN)
        await bench.still_offered(bench.beat(), 40)
        assert await bench.read("control") == ENABLE | DRAIN | SOFT_RESET
        bench.set(m_axis_results_tready=1)
        await bench.tick(PATIENCE_CYCLES)
        assert [each & 0xFF for each in bench.given[1:]] == [1 << TUser.PUNCTUATION]
        assert await bench.read("control") == ENABLE

    run(Top(DESIGNS["chain"]), scenario)


def test_responses_outlive_a_soft_reset() -> None:
    async def scenario(bench: Bench) -> None:
        await bench.ask("identity")
        await bench.write("control", ENABLE | SOFT_RESET, answer=False)
        await bench.tick(20)
        assert bench.get("s_axil_ctrl_bvalid")
        assert bench.get("s_axil_ctrl_rvalid")
        assert bench.get("s_axil_ctrl_rdata") == 0x534A4F4E
        bench.set(s_axil_ctrl_bready=1, s_axil_ctrl_rready=1)
        await bench.tick(2)
        assert not bench.get("s_axil_ctrl_bvalid")
        bench.set(s_axil_ctrl_bready=0, s_axil_ctrl_rready=0)
        assert await bench.read("control") == ENABLE

    run(Top(DESIGNS["chain"]), scenario)


def test_a_reset_withdraws_what_a_soft_reset_waits_for() -> None:
    async def scenario(bench: Bench) -> None:
        bench.send(*PAIR)
        await bench.until("m_axis_results_tvalid")
        await bench.write("control", ENABLE | SOFT_RESET)
        bench.set(aresetn=0)
        await bench.tick(2)
        bench.set(aresetn=1)
        assert not bench.get("m_axis_results_tvalid")
        await bench.tick(2)
        assert await bench.read("control") == ENABLE

    run(Top(DESIGNS["chain"]), scenario)


@pytest.mark.parametrize("held", ["result", "trailer"])
def test_an_offered_word_stays_until_it_is_taken(held: str) -> None:
    async def scenario(bench: Bench) -> None:
        bench.send(*PAIR, last=True)
        await bench.until("m_axis_words_tvalid")
        if held == "trailer":
            bench.set(m_axis_words_tready=1)
            await bench.tick()
            bench.set(m_axis_words_tready=0)
            await bench.until("m_axis_words_tvalid")
            assert bench.get("m_axis_words_tlast")
        beat = bench.beat()
        await bench.write("control", ENABLE | SOFT_RESET)
        bench.send((SIDE_S, 5, 6), (SIDE_R, 5, 7), last=True)
        await bench.still_offered(beat, 12)
        before = len(bench.given)
        bench.set(m_axis_words_tready=1)
        await bench.tick(PATIENCE_CYCLES)
        assert bench.given[before] == beat
        # One packet of the input after the reset: its pair, and the trailer.
        assert [each & 1 for each in bench.given[before + 1 :]] == [0, 1]
        assert await bench.read("control") == ENABLE

    run(BoardTop(DESIGNS["chain"]), scenario)


@pytest.mark.parametrize("name", ["chain", "fast", "split", "wide"])
def test_nothing_of_before_is_left_wherever_a_reset_comes(name: str) -> None:
    """Cores that are reset later than others have results that must not get into their trees."""

    async def scenario(bench: Bench) -> None:
        bench.set(m_axis_results_tready=1)
        await bench.write("control", ENABLE)
        for delay in range(24):
            bench.send(*((side, 5, 100 + k) for k in range(2) for side in (SIDE_R, SIDE_S)))
            while bench.waiting:
                await bench.tick()
            await bench.tick(delay)
            await bench.write("control", ENABLE | SOFT_RESET)
            while await bench.read("control") & SOFT_RESET:
                pass
            bench.given.clear()
            bench.send((SIDE_R, 5, 1), (SIDE_S, 5, 2), last=True)
            for _ in range(PATIENCE_CYCLES):
                await bench.tick()
            payloads = {bench.given[0] >> 128 & 0xFF, bench.given[0] >> 160 & 0xFF}
            assert (len(bench.given), payloads) == (2, {1, 2}), f"after {delay} cycles"

    run(Top(DESIGNS[name]), scenario)
