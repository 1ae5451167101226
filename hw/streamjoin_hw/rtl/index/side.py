"""One stream's index with what waits for it and what it finds, at its own pace.

An index takes arrivals one after the other, in order: those of its stream are stored, the others
look for partners. The two indexes need not work on the same arrival, as each sees all that it
stores and is asked in the order of arrival; what they find is put in order behind them
(:class:`~streamjoin_hw.rtl.index.merge.InOrder`).
"""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.index.compare import PASSED_CYCLES, Comparers
from streamjoin_hw.rtl.index.errands import Errands
from streamjoin_hw.rtl.index.half import Half
from streamjoin_hw.rtl.index.layouts import (
    NUMBER_BITS,
    asking_layouts,
    found_layout,
    sequence_bits,
    stored_layouts,
    task_layout,
)
from streamjoin_hw.rtl.index.splitters import search_cycles
from streamjoin_hw.rtl.streams import Component, View, payload_of


def queue_tuples(params: DesignParams) -> int:
    """Tuples that wait for an index: all in the search, and those by which one is ahead."""
    return 1 << (search_cycles(params) + 24).bit_length()


class Side(Component):
    """The index of a side, its queue and its comparators.

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
    put : In(1), task : In(task_layout(params, side))
        An arrival; at most :func:`queue_tuples` may wait.
    begun : Out(2)
        Arrivals that leave the queue in this cycle.
    wait : In(1)
        Begin with no arrival.
    next_number : Out(NUMBER_BITS)
        Number of the arrival that is next to leave the queue.
    passed : Out(NUMBER_BITS)
        What the arrivals before this one found has been shown.
    is_found, take : Out(1), In(1), found : Out(found_layout(params))
        The oldest word with matches; remove it.
    hold : Out(1)
        The result FIFO is nearly full; from a register.
    busy : Out(1)
        Something is inside.
    reads, displaced : Out(1), held : Out(sequence_bits(params))
        Pulses, and tuples in the window.
    evicted : Out(1), if there are timestamps
        Pulse: in the last cycle a tuple left by count before its time.
    """

    clear: Signal
    clearing: Signal
    put: Signal
    task: View
    begun: Signal
    wait: Signal
    next_number: Signal
    passed: Signal
    is_found: Signal
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
                "task": In(task_layout(params, side)),
                "begun": Out(2),
                "wait": In(1),
                "next_number": Out(NUMBER_BITS),
                "passed": Out(NUMBER_BITS),
                "is_found": Out(1),
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
        stored, asking = stored_layouts(params)[side], asking_layouts(params)[side]
        m.submodules.half = half = Half(params, stored)
        m.submodules.comparers = comparers = Comparers(params, side)
        # One more than may wait: an entry is removed in the cycle after it is no longer counted.
        layout = task_layout(params, side)
        m.submodules.errands = errands = Errands(layout, queue_tuples(params) + 1)
        self._begin(m, half, errands)
        working, compared = payload_of(layout), payload_of(layout)
        number, asker = payload_of(NUMBER_BITS), payload_of(NUMBER_BITS)
        begins = Mux(half.joins, errands.second.as_value(), errands.first.as_value())
        with m.If(half.done):
            m.d.sync += [
                working.eq(begins),
                number.eq((self.next_number + half.joins)[:NUMBER_BITS]),
            ]
        m.d.sync += [compared.eq(working), asker.eq(number)]
        enters = Mux(half.joins, errands.first.as_value(), working.as_value())
        m.d.comb += [
            errands.put.eq(self.put),
            errands.entry.eq(self.task),
            half.clear.eq(self.clear),
            self.clearing.eq(half.clearing),
            half.errand.eq(_task(layout, begins).errand),
            half.enter.eq(_task(layout, enters).body[: stored.size]),
            half.full.eq(_task(layout, enters).full),
            half.hold.eq(comparers.hold),
            comparers.scan.eq(half.scan),
            comparers.tuples.eq(half.tuples),
            comparers.live.eq(half.live),
            comparers.asks.eq(compared.body[: asking.size]),
            comparers.number.eq(asker),
            comparers.take.eq(self.take),
            self.is_found.eq(comparers.is_found),
            self.found.eq(comparers.found),
            self.hold.eq(comparers.hold),
            self.busy.eq(errands.has_first | ~half.done | half.scan | comparers.busy),
            self.reads.eq(half.scan),
            self.displaced.eq(half.displaced),
            self.held.eq(half.held),
        ]
        if params.timestamp_bits:
            m.d.comb += self.evicted.eq(half.evicted)
        self._pass(m, half, number)
        return m

    def _begin(self, m: Module, half: Half, errands: Errands) -> None:
        """Begin with the next arrival, or with the one behind it if the next joins a search."""
        begins, has_next, is_useful = Signal(), Signal(), Signal()
        follows, beside = Signal(), Signal()
        first, second = errands.first, errands.second
        m.d.comb += [
            has_next.eq(Mux(half.joins, errands.has_second, errands.has_first)),
            begins.eq(half.done & has_next & ~self.wait),
            is_useful.eq(
                Mux(
                    half.joins,
                    second.errand.stores | second.looks,
                    first.errand.stores | first.looks,
                )
            ),
            half.start.eq(begins & is_useful),
            beside.eq(half.joins & half.done),
            errands.take_first.eq(begins ^ beside),
            errands.take_both.eq(begins & beside),
            self.begun.eq(begins + beside),
        ]
        # What is first after this cycle, if it is known now.
        is_second = errands.take_first
        ahead = Mux(is_second, second.as_value(), first.as_value())
        ahead = _task(task_layout(self.params, self.side), ahead).errand
        is_known = Mux(is_second, errands.has_second, errands.has_first) & ~errands.take_both
        m.d.sync += [
            follows.eq(is_known & ahead.stores),
            self.next_number.eq(self.next_number + self.begun),
        ]
        m.d.comb += [half.ahead.eq(ahead.word), half.follows.eq(follows & ~self.wait)]

    def _pass(self, m: Module, half: Half, number: Signal) -> None:
        """Follow the arrivals until what they found is shown."""
        passed: Any = Signal(NUMBER_BITS)
        m.d.comb += passed.eq(Mux(half.searching, number, self.next_number))
        for stage in range(PASSED_CYCLES):
            later = Signal(NUMBER_BITS, name=f"passed{stage}")
            m.d.sync += later.eq(passed)
            passed = later
        m.d.comb += self.passed.eq(passed)


def _task(layout: Any, value: Any) -> Any:
    """Return bits as a task."""
    return layout(value)
