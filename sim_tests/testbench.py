"""The test bench: clock, reset, streams, registers, scoreboard for one design.

Runs inside the simulator. Stream endpoints are our own and look at every clock edge, so that they
can check the stream's rules as well; the ports are read once an edge for all of them. Registers are
reached by cocotbext-axi's master, which is an independent reading of AXI4-Lite.
"""

import random
from collections import Counter, deque
from collections.abc import Iterator
from itertools import islice
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, RisingEdge, with_timeout
from cocotbext.axi import AxiLiteBus, AxiLiteMaster
from sim_tests.coverage import Coverage, bins_of
from sim_tests.ports import Ports

from streamjoin_common import contract
from streamjoin_common.contract import DesignParams, TUser
from streamjoin_hw.sim.order import out_of_order
from streamjoin_hw.sim.testing import Arrival, Workload, beat_values, reference

CLOCK_NS = 10
INPUT_DEADLINE_US = 20_000

BIN = "bin: "
"""What a bin's name begins with among the counts of a scenario."""


def never() -> Iterator[bool]:
    """Pause in no cycle."""
    while True:
        yield False


def sometimes(rng: random.Random, share: float, burst: int) -> Iterator[bool]:
    """Pause in about ``share`` of the cycles, up to ``burst`` cycles at a time."""
    while True:
        length = rng.randint(1, burst)
        pause = rng.random() < share
        for _ in range(length):
            yield pause


class StreamSource:
    """Offers beats on ``s_axis_tuples`` and keeps each until it is taken."""

    def __init__(self, dut: Any) -> None:
        self.valid = dut.s_axis_tuples_tvalid
        self.fields = (
            dut.s_axis_tuples_tdata,
            dut.s_axis_tuples_tdest,
            dut.s_axis_tuples_tlast,
        )
        self.waiting: deque[tuple[int, int, int]] = deque()
        self.pauses = never()
        self.beats_taken = 0
        self.stalls_seen = 0
        self.offered = False
        self._offer((0, 0, 0), False)

    def _offer(self, beat: tuple[int, int, int], offered: bool) -> None:
        for handle, value in zip(self.fields, beat, strict=True):
            handle.value = value
        self.valid.value = int(offered)
        self.offered = offered

    def step(self, ports: Ports) -> None:
        """Do what a clock edge asks for."""
        if not ports.aresetn:
            self.valid.value = 0
            self.offered = False
            return
        if self.offered and ports.s_axis_tuples_tready:
            self.beats_taken += 1
            self.offered = False
            self.waiting.popleft()
            if not self.waiting:
                self.valid.value = 0
        elif self.offered:
            self.stalls_seen += 1
        if not self.offered and self.waiting:
            if next(self.pauses):
                self.valid.value = 0
            else:
                self._offer(self.waiting[0], True)

    def withdraw(self) -> None:
        """Forget what waits and what is on offer, as before a reset."""
        self.waiting.clear()
        self.valid.value = 0
        self.offered = False


class StreamSink:
    """Takes beats from ``m_axis_results`` and checks that each stays until it is taken."""

    def __init__(self, dut: Any) -> None:
        self.ready = dut.m_axis_results_tready
        self.beats: deque[tuple[int, int, int]] = deque()
        self.pauses = never()
        self.stalls_seen = 0
        self.takes = False
        self.kept: tuple[int, int, int] | None = None
        self.ready.value = 0

    def step(self, ports: Ports) -> None:
        """Do what a clock edge asks for."""
        if not ports.aresetn:
            self.kept = None
            self.takes = False
            self.ready.value = 0
            return
        if ports.m_axis_results_tvalid:
            beat = ports.result()
            assert self.kept in (None, beat), (
                f"an offered result changed from {self.kept} to {beat}"
            )
            self.kept = None if self.takes else beat
            if self.takes:
                self.beats.append(beat)
            else:
                self.stalls_seen += 1
        else:
            assert self.kept is None, f"an offered result was withdrawn: {self.kept}"
        wanted = not next(self.pauses)
        if wanted != self.takes:
            self.takes = wanted
            self.ready.value = int(wanted)


class Testbench:
    """Everything around one design.

    Parameters
    ----------
    dut : handle
        The simulated top level.
    params : DesignParams
        What it was built from.
    """

    __test__ = False  # not a test class, whatever its name

    def __init__(self, dut: Any, params: DesignParams) -> None:
        self.dut = dut
        self.params = params
        self.clock = Clock(dut.aclk, CLOCK_NS, unit="ns")
        self.clock.start()
        dut.aresetn.value = 0
        bus = AxiLiteBus.from_prefix(dut, "s_axil_ctrl")
        self.control = AxiLiteMaster(bus, dut.aclk, dut.aresetn, reset_active_level=False)
        for interface in (self.control.write_if, self.control.read_if):
            interface.log.setLevel("WARNING")
        self.source = StreamSource(dut)
        self.sink = StreamSink(dut)
        self.offsets = {each.name: each.offset for each in contract.registers(params)}
        self.order = params.order_promise
        self.tally: Counter[str] = Counter()
        self.coverage = Coverage(params)
        self.ports = Ports(dut)
        cocotb.start_soon(self._step())

    async def _step(self) -> None:
        edge = RisingEdge(self.dut.aclk)
        while True:
            await edge
            self.ports.read()
            self.coverage.step(self.ports)
            self.source.step(self.ports)
            self.sink.step(self.ports)

    async def reset(self, cycles: int = 2) -> None:
        """Hold the reset for some cycles; what was on its way is forgotten."""
        self.dut.aresetn.value = 0
        self.source.waiting.clear()
        await ClockCycles(self.dut.aclk, cycles)
        self.sink.beats.clear()
        self.dut.aresetn.value = 1
        await ClockCycles(self.dut.aclk, 2)

    async def soft_reset(self) -> None:
        """Empty the design, which first has what it offers taken, by a sink that takes."""
        await self.write("control", 0b101)

        async def ended() -> None:
            while await self.read("control") & 0b100:
                pass

        await with_timeout(ended(), 50, "us")
        self.sink.beats.clear()

    async def read(self, name: str) -> int:
        """Read a register."""
        answer = await with_timeout(self.control.read(self.offsets[name], 4), 50, "us")
        assert answer.resp == 0, f"reading {name} was answered with {answer.resp}"
        return int.from_bytes(answer.data, "little")

    async def write(self, name: str, value: int) -> None:
        """Write a register."""
        data = value.to_bytes(4, "little")
        answer = await with_timeout(self.control.write(self.offsets[name], data), 50, "us")
        assert answer.resp == 0, f"writing {name} was answered with {answer.resp}"

    async def set_up(self, workload: Workload) -> None:
        """Write a workload's windows and band widths."""
        await self.write("window_r", workload.window_r)
        await self.write("window_s", workload.window_s)
        for name, bits in workload.registers.items():
            await self.write(name, bits)
        for side, buckets in enumerate(workload.buckets):
            for name, value in contract.bucket_writes(side, buckets):
                await self.write(name, value)

    def send(self, arrivals: list[Arrival], *, last: bool) -> None:
        """Queue tuples at the source."""
        layout = contract.tuple_layout(self.params)
        for position, arrival in enumerate(arrivals):
            data = 0
            for each, value in zip(layout, beat_values(self.params, arrival), strict=True):
                data |= value << each.offset
            ends = last and position + 1 == len(arrivals)
            self.source.waiting.append((data, arrival.side, int(ends)))

    async def collect(self, stars: list[int] | None = None) -> list[tuple[int, int]]:
        """Wait for the punctuation and return the pairs before it.

        The last beat, and no other, is the punctuation with ``tlast``. What follows it belongs
        to the next input, or is left over for :meth:`finish` to find. Other punctuation is refused,
        unless ``stars`` takes how many pairs were before each.
        """

        async def ended() -> None:
            looked_at = 0
            while not any(last for _, _, last in islice(self.sink.beats, looked_at, None)):
                looked_at = len(self.sink.beats)
                await ClockCycles(self.dut.aclk, 8)

        await with_timeout(ended(), INPUT_DEADLINE_US, "us")
        beats = [self.sink.beats.popleft()]
        while not beats[-1][2]:
            beats.append(self.sink.beats.popleft())
        _, user, last = beats.pop()
        assert (user, last) == (1 << TUser.PUNCTUATION, 1), "bad punctuation"
        fields = contract.result_beat_layout(self.params)
        counted = [TUser.RESULT, TUser.SECOND][: self.params.beat_results]
        others = 1 << TUser.SIDE | sum(1 << bit for bit in counted[1:])
        pairs = []
        for data, user, last in beats:
            assert last == 0, "tlast on a beat that is not the last"
            if stars is not None and user & 1 << TUser.PUNCTUATION:
                stars.append(len(pairs))
                continue
            assert user & ~others == 1 << TUser.RESULT, f"tuser {user:#b} on a result"
            values = [data >> field.offset & (1 << field.width) - 1 for field in fields]
            pairs += [
                (values[2 * number], values[2 * number + 1])
                for number, bit in enumerate(counted)
                if user >> bit & 1
            ]
        return pairs

    async def check_input(self, workload: Workload, *, by_bit: bool = False) -> None:
        """Run one input and hold its result against the reference.

        With ``by_bit`` the drain bit ends the input, not ``tlast``.
        """
        await self.set_up(workload)
        self.send(workload.arrivals, last=not by_bit)
        if by_bit:
            await with_timeout(self._all_taken(), INPUT_DEADLINE_US, "us")
            await self.write("control", 0b11)
        self.check(workload, await self.collect())
        await ClockCycles(self.dut.aclk, 30)
        assert not self.sink.beats, "something follows the punctuation"
        assert await self.read("status") & 1, "not idle after the drain"
        assert not await self.read("control") & 2, "the drain bit still reads 1"

    def check(self, workload: Workload, received: list[tuple[int, int]]) -> None:
        """Hold the pairs of one input against the reference, and count the input."""
        expected = reference(workload)
        missing = Counter(expected) - Counter(received)
        surplus = Counter(received) - Counter(expected)
        assert not missing, f"{missing.total()} pairs missing, first {min(missing)}"
        assert not surplus, f"{surplus.total()} pairs surplus, first {min(surplus)}"
        assert not (fault := out_of_order(workload, received, self.order)), fault
        self.tally["tuples"] += len(workload.arrivals)
        self.tally["results"] += len(received)
        self.tally["inputs"] += 1
        self.coverage.add(bins_of(self.params, workload))

    async def reached(self, state: str) -> None:
        """Wait until the design is in a state of :data:`~sim_tests.coverage.STATES`."""

        async def seen() -> None:
            while self.coverage.state != state:
                await RisingEdge(self.dut.aclk)

        await with_timeout(seen(), INPUT_DEADLINE_US, "us")

    async def _all_taken(self) -> None:
        while self.source.waiting:
            await ClockCycles(self.dut.aclk, 4)

    async def finish(self) -> None:
        """See that nothing is left over, and add up which stalls were met."""
        await ClockCycles(self.dut.aclk, 50)
        assert not self.sink.beats, f"{len(self.sink.beats)} beats left over"
        assert not self.source.waiting, f"{len(self.source.waiting)} tuples left over"
        self.tally["cycles_held"] += await self.read("hold_cycles")
        self.tally["cycles_input_stalled"] += self.source.stalls_seen
        self.tally["cycles_output_stalled"] += self.sink.stalls_seen
        self.tally["scenarios"] += 1
        self.tally.update({f"{BIN}{name}": count for name, count in self.coverage.bins.items()})
