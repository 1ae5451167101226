"""A queue whose two oldest entries are both shown, so that one or both can be taken in a cycle."""

from typing import Any

from amaranth.hdl import Assert, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from streamjoin_hw.rtl.streams import Component, View, payload_of


class Errands(Component):
    """What waits for an index.

    Parameters
    ----------
    layout : StructLayout
        Layout of an entry.
    depth : int
        Entries for which there is room.

    Members
    -------
    put : In(1), entry : In(layout)
        Add an entry; only if there is room.
    has_first, has_second : Out(1), first, second : Out(layout)
        The oldest entry and the one behind it.
    take_first, take_both : In(1)
        Remove the first entry, or both; only if shown.
    """

    put: Signal
    entry: View
    has_first: Signal
    has_second: Signal
    first: View
    second: View
    take_first: Signal
    take_both: Signal

    def __init__(self, layout: data.StructLayout, depth: int) -> None:
        self.layout = layout
        self.depth = depth
        super().__init__(
            {
                "put": In(1),
                "entry": In(layout),
                "has_first": Out(1),
                "has_second": Out(1),
                "first": Out(layout),
                "second": Out(layout),
                "take_first": In(1),
                "take_both": In(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build a FIFO and the register before it."""
        m = Module()
        m.submodules.fifo = fifo = SyncFIFOBuffered(width=self.layout.size, depth=self.depth)
        front: Any = payload_of(self.layout)
        is_front, keeps, moves = Signal(), Signal(), Signal()
        m.d.comb += [
            fifo.w_data.eq(self.entry),
            fifo.w_en.eq(self.put),
            Assert(~fifo.w_en | fifo.w_rdy, "the queue of the index overflowed"),
            self.has_first.eq(is_front | fifo.r_rdy),
            self.has_second.eq(is_front & fifo.r_rdy),
            self.first.eq(Mux(is_front, front.as_value(), fifo.r_data)),
            self.second.eq(fifo.r_data),
            keeps.eq(is_front & ~self.take_first & ~self.take_both),
            # The entry at the end of the FIFO becomes the front one.
            moves.eq(fifo.r_rdy & (is_front == self.take_first) & ~self.take_both),
            fifo.r_en.eq(~keeps),
        ]
        m.d.sync += is_front.eq(keeps | moves)
        with m.If(~keeps):
            m.d.sync += front.eq(fifo.r_data)
        return m
