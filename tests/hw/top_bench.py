"""Drives a top level at its ports, cycle by cycle, in Amaranth's simulator."""

from collections.abc import Awaitable, Callable
from typing import Any

from amaranth.sim import Simulator

from streamjoin_common.contract import HEADER, MARK, registers, tuple_layout
from streamjoin_hw.rtl.board_top import BoardTop

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
