"""From the words of an index and what is asked to words with matches, in a FIFO."""

from typing import Any

from amaranth.hdl import Module, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import SIDE_R, DesignParams
from streamjoin_hw.rtl.index.found import FoundQueue
from streamjoin_hw.rtl.index.layouts import (
    NUMBER_BITS,
    asking_layouts,
    found_layout,
    met_layout,
    own_interval,
    stored_layouts,
)
from streamjoin_hw.rtl.predicates import matches
from streamjoin_hw.rtl.streams import Component, View, payload_of, registers_of

PASSED_CYCLES = 4
"""Cycles from the one after a scan until what it found is shown, if nothing is before it:
registered behind the memories, compared, put into the FIFOs, at their ends."""


class Comparers(Component):
    """Compare what is read from the index of a side with an arrival of the other.

    Parameters
    ----------
    params : DesignParams
        The design.
    side : int
        The side of the index.

    Members
    -------
    scan : In(1)
        Words are read in this cycle; what follows is of the cycle after.
    tuples : In(ArrayLayout(stored, lanes)), live : In(lanes)
        What was read, and which of it counts.
    asks : In(asking_layouts(params)[side]), number : In(NUMBER_BITS)
        The arrival, and its number.
    is_found, choose : Out(1), In(1), found_number : Out(NUMBER_BITS)
        The oldest number for which words with matches have not been chosen; go on to the next.
    take : In(1), found : Out(found_layout(params))
        The oldest word; remove it, after its number.
    hold : Out(1)
        Fewer than ``HOLD_WORDS`` words of the FIFO are free; from a register.
    busy : Out(1)
        A word that may hold a match is inside, other than one that was scanned just now.
    """

    scan: Signal
    tuples: View
    live: Signal
    asks: View
    number: Signal
    is_found: Signal
    choose: Signal
    found_number: Signal
    take: Signal
    found: View
    hold: Signal
    busy: Signal

    def __init__(self, params: DesignParams, side: int) -> None:
        self.params = params
        self.side = side
        stored = stored_layouts(params)[side]
        super().__init__(
            {
                "scan": In(1),
                "tuples": In(data.ArrayLayout(stored, params.lanes)),
                "live": In(params.lanes),
                "asks": In(asking_layouts(params)[side]),
                "number": In(NUMBER_BITS),
                "is_found": Out(1),
                "choose": In(1),
                "found_number": Out(NUMBER_BITS),
                "take": In(1),
                "found": Out(found_layout(params)),
                "hold": Out(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the comparators and the FIFOs."""
        m = Module()
        params = self.params
        scanned = Signal()
        read = Signal()
        met = registers_of(met_layout(params), "mask", name="met")
        # A block RAM takes half a cycle at 100 MHz: what it gives is registered, then compared.
        asks = payload_of(self.asks.shape())
        number = payload_of(NUMBER_BITS)
        met_number = payload_of(NUMBER_BITS)
        tuples = payload_of(self.tuples.shape())
        live = payload_of(params.lanes)
        m.d.sync += [
            scanned.eq(self.scan),
            read.eq(scanned),
            tuples.eq(self.tuples),
            live.eq(self.live),
            asks.eq(self.asks),
            number.eq(self.number),
            met_number.eq(number),
            met.probe.eq(asks.payload),
        ]
        for lane in range(params.lanes):
            each = tuples[lane]
            m.d.sync += [
                met.mask[lane].eq(read & live[lane] & self._matches(each, asks)),
                met.payloads[lane].eq(each.payload),
            ]
        m.submodules.queue = queue = FoundQueue(params)
        m.d.comb += [
            queue.met.eq(met),
            queue.number.eq(met_number),
            queue.take.eq(self.take),
            self.found.eq(queue.found),
            queue.choose.eq(self.choose),
            self.is_found.eq(queue.is_found),
            self.found_number.eq(queue.found_number),
            self.busy.eq(scanned | read | queue.busy),
            self.hold.eq(queue.hold),
        ]
        return m

    def _matches(self, stored: Any, asks: Any) -> Any:
        """Compare a stored tuple with the arrival."""
        params, term = self.params, own_interval(self.params)
        if self.side == SIDE_R:
            return matches(params, stored, asks)
        hit = matches(params, asks, stored, but=term)
        if term is None:
            return hit
        code = stored[f"code{term}"]
        return hit & (asks.low <= code) & (code <= asks.high)
