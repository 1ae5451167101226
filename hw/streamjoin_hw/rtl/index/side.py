"""One stream's index with what waits for it and what it finds, at its own pace.

An index takes arrivals one after the other, in order: those of its stream are stored, the others
look for partners. The two indexes need not work on the same arrival, as each sees all that it
stores and is asked in the order of arrival; what they find is put in order behind them
(:class:`~streamjoin_hw.rtl.index.merge.InOrder`).
"""

from typing import Any

from amaranth.hdl import Assert, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.index.compare import PASSED_CYCLES, Comparers
from streamjoin_hw.rtl.index.half import Half
from streamjoin_hw.rtl.index.layouts import (
    NUMBER_BITS,
    asking_layouts,
    errand_layout,
    found_layout,
    sequence_bits,
    stored_layouts,
)
from streamjoin_hw.rtl.index.splitters import search_cycles
from streamjoin_hw.rtl.memory import memory_of
from streamjoin_hw.rtl.streams import Component, View, payload_of, signal_of


def queue_tuples(params: DesignParams) -> int:
    """Tuples that wait for an index: all in the search, and those by which one is ahead."""
    return 1 << (search_cycles(params) + 40).bit_length()


class Side(Component):
    """The index of a side, what waits for it and its comparators.

    Parameters
    ----------
    params : DesignParams
        The design.
    side : int
        The side.

    Members
    -------
    clear : In(1), clearing : Out(1)
        Empty the index; nothing may arrive until that is done.
    put : In(1), errand : In(errand_layout(params))
        An arrival; at most :func:`queue_tuples` may wait.
    enters : In(stored_layouts(params)[side]), full : In(1), asks : In(asking_layouts(params)[side])
        What is stored, and whether its count window is full, or what is asked.
    begun : Out(2)
        Arrivals that the index is done with in this cycle.
    wait : In(1)
        Go on with no arrival after this cycle.
    next_number : Out(NUMBER_BITS)
        Number of the first arrival that the index is not done with.
    passed : Out(NUMBER_BITS)
        What the arrivals before this one found has been shown.
    is_found, choose, found_number, take, found
        As of :class:`~streamjoin_hw.rtl.index.compare.Comparers`.
    hold : Out(1)
        The result FIFO is nearly full; from a register.
    busy : Out(1)
        Something is inside, other than arrivals.
    reads, displaced : Out(1), held : Out(sequence_bits(params))
        Pulses and tuples in the window, a cycle late.
    evicted : Out(1), if there are timestamps
        Pulse: two cycles ago a tuple left by count before its time.
    """

    clear: Signal
    clearing: Signal
    put: Signal
    errand: View
    enters: View
    full: Signal
    asks: View
    begun: Signal
    wait: Signal
    next_number: Signal
    passed: Signal
    is_found: Signal
    choose: Signal
    found_number: Signal
    take: Signal
    found: View
    hold: Signal
    busy: Signal
    reads: Signal
    displaced: Signal
    held: Signal
    evicted: Signal

    def __init__(self, params: DesignParams, side: int) -> None:
        self.params = params
        self.side = side
        super().__init__(
            {
                "clear": In(1),
                "clearing": Out(1),
                "put": In(1),
                "errand": In(errand_layout(params)),
                "enters": In(stored_layouts(params)[side]),
                "full": In(1),
                "asks": In(asking_layouts(params)[side]),
                "begun": Out(2),
                "wait": In(1),
                "next_number": Out(NUMBER_BITS),
                "passed": Out(NUMBER_BITS),
                "is_found": Out(1),
                "choose": In(1),
                "found_number": Out(NUMBER_BITS),
                "take": In(1),
                "found": Out(found_layout(params)),
                "hold": Out(1),
                "busy": Out(1),
                "reads": Out(1),
                "displaced": Out(1),
                "held": Out(sequence_bits(params)),
                **({"evicted": Out(1)} if params.timestamp_bits else {}),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the parts and connect them."""
        m = Module()
        params, side = self.params, self.side
        stored = stored_layouts(params)[side]
        m.submodules.half = half = Half(params, stored, queue_tuples(params))
        m.submodules.comparers = comparers = Comparers(params, side)
        entering = data.StructLayout({"full": 1, "body": stored})
        enters: Any = Signal(entering)
        m.d.comb += [enters.full.eq(self.full), enters.body.eq(self.enters)]
        is_stored = self.put & self.errand.stores
        waits = self._wait(m, "enters", enters, is_stored, half.stored)
        # What was read is compared two cycles after, so that it is early enough to ask for the next
        # one a cycle after.
        is_asked = Signal()
        asker = payload_of(NUMBER_BITS)
        asks = self._wait(m, "asks", self.asks, self.put & ~self.errand.stores, is_asked)
        m.d.sync += [
            # From registers beside it.
            half.wait.eq(self.wait),
            half.hold.eq(comparers.hold),
            is_asked.eq(half.searched),
            asker.eq(self.next_number),
            self.next_number.eq(self.next_number + self.begun),
        ]
        m.d.comb += [
            half.clear.eq(self.clear),
            self.clearing.eq(half.clearing),
            half.put.eq(self.put),
            half.errand.eq(self.errand),
            half.enter.eq(waits.body),
            half.full.eq(waits.full),
            self.begun.eq(half.stored + half.searched),
            comparers.scan.eq(half.scan),
            comparers.tuples.eq(half.tuples),
            comparers.live.eq(half.live),
            comparers.asks.eq(asks),
            comparers.number.eq(asker),
            comparers.choose.eq(self.choose),
            comparers.take.eq(self.take),
            self.is_found.eq(comparers.is_found),
            self.found_number.eq(comparers.found_number),
            self.found.eq(comparers.found),
            self.hold.eq(comparers.hold),
            self.busy.eq(half.scan | comparers.busy),
            self.held.eq(half.held),
        ]
        # They go far, to be counted.
        m.d.sync += [self.reads.eq(half.scan), self.displaced.eq(half.displaced)]
        if params.timestamp_bits:
            m.d.comb += self.evicted.eq(half.evicted)
        # What an arrival found is shown so many cycles after its last words were read.
        passed: Any = self.next_number
        for stage in range(PASSED_CYCLES):
            later = Signal(NUMBER_BITS, name=f"passed{stage}")
            m.d.sync += later.eq(passed)
            passed = later
        m.d.comb += self.passed.eq(passed)
        return m

    def _wait(self, m: Module, name: str, comes: Any, put: Any, take: Signal) -> Any:
        """Keep what an arrival brings until its turn; return that of the oldest.

        Whether it is taken is decided late in a cycle, and reaches one register: a cycle later the
        one behind it is shown in its place, and all go on.
        """
        layout, depth = comes.shape(), queue_tuples(self.params)
        # A block RAM gives its words late in a cycle.
        queue: Any = memory_of("lutram", layout, depth)
        m.submodules[f"{name}_queue"] = queue
        write, read = queue.write_port(), queue.read_port(domain="comb")
        # A bit more than an address: a full queue is not an empty one.
        begin, end = (Signal(range(2 * depth), name=f"{name}_{at}") for at in ("begin", "end"))
        oldest, second = (payload_of(layout, name=f"{name}_{at}") for at in ("oldest", "second"))
        has_oldest, has_second, took = (
            Signal(name=f"{name}_{what}") for what in ("has_oldest", "has_second", "took")
        )
        shown: Any = signal_of(layout, name=f"{name}_shown")
        goes, loads = Signal(name=f"{name}_goes"), Signal(name=f"{name}_loads")
        # From a register: inputs do not settle together in Amaranth's simulator.
        is_early = Signal(name=f"{name}_early")
        m.d.comb += [
            write.addr.eq(end),
            write.data.eq(comes),
            write.en.eq(put),
            read.addr.eq(begin),
            goes.eq(took | ~has_oldest),
            loads.eq((begin != end) & (goes | ~has_second)),
            shown.eq(Mux(took, second.as_value(), oldest.as_value())),
            Assert(~put | (end != begin ^ depth), "the queue of the index overflowed"),
            Assert(~is_early, "an arrival is handled before it is there"),
        ]
        m.d.sync += [
            took.eq(take),
            is_early.eq(take & ~Mux(took, has_second, has_oldest)),
            end.eq(end + put),
            begin.eq(begin + loads),
            has_second.eq(loads | (has_second & ~goes)),
        ]
        with m.If(goes):
            m.d.sync += [oldest.eq(second), has_oldest.eq(has_second)]
        with m.If(goes | ~has_second):
            m.d.sync += second.eq(read.data)
        return shown
