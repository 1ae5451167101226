"""Both sides' results as one stream."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import SIDE_R, SIDE_S, DesignParams
from streamjoin_hw.rtl.split.layouts import is_star, token_layout
from streamjoin_hw.rtl.split.queue import queue_places
from streamjoin_hw.rtl.split.trees import control_layout
from streamjoin_hw.rtl.streams import Component


def combined_layout(params: DesignParams) -> data.StructLayout:
    """Layout of what the combiner gives: a result, or the ``star`` that ends a tuple's results.

    ``side`` is that of the tuple whose results these are.
    """
    return data.StructLayout(
        {
            "r_payload": params.payload_bits,
            "s_payload": params.payload_bits,
            "side": 1,
            "star": 1,
        }
    )


def sides_kept(params: DesignParams) -> int:
    """Count the arrivals whose side the combiner remembers: twice what cores and queues hold."""
    return 32 + 4 * params.probes + 2 * queue_places(params)


class Combiner(Component):
    """Give the results of both sides, and a star with its side after each tuple's.

    With the outer order, in arrival order of the later tuples: the sides of the arrivals are
    remembered, and the side that is due is given up to its star. SplitJoin, section 5, flags the
    stars and leaves the two sides unordered with each other. Without order the sides take turns
    and there are no stars. No latency: the output follows the inputs, and a register stage has to
    be behind it.

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    control : In(control_layout(params))
    side : In(1), arrives : In(1), room : Out(1)
        The side of a tuple that sets out for the cores; only if there is ``room``.
    i : In(stream.Signature(token_layout(params))).array(2)
        Results of R tuples, of S tuples.
    o : Out(stream.Signature(combined_layout(params)))
    busy : Out(1)
        Some tuple's star is still owed; from a register.
    """

    control: Any
    side: Signal
    arrives: Signal
    room: Signal
    i: Any
    o: stream.Interface
    busy: Signal

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        token = stream.Signature(token_layout(params))
        super().__init__(
            {
                "control": In(control_layout(params)),
                "side": In(1),
                "arrives": In(1),
                "room": Out(1),
                "i": In(token).array(2),
                "o": Out(stream.Signature(combined_layout(params))),
                "busy": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the memory of sides and the choice between the two streams."""
        m = Module()
        chosen = Signal()
        kept = Signal()
        keeps = Signal()
        offered = Mux(chosen == SIDE_R, self.i[0].valid, self.i[1].valid)
        stars = (is_star(self.params, each.p) for each in self.i)
        star = Mux(chosen == SIDE_R, *stars)
        goes = Signal()
        given = Signal()
        m.d.comb += given.eq(self.o.valid & self.o.ready)
        if self.params.order == "none":
            due_valid = Signal()
            m.d.comb += [self.room.eq(1), goes.eq(1)]
            self._turn(m, chosen)
        else:
            m.submodules.due = due = SyncFIFOBuffered(width=1, depth=sides_kept(self.params))
            due_valid, due_side = due.r_rdy, due.r_data
            m.d.comb += [
                self.room.eq(due.w_rdy),
                due.w_data.eq(self.side),
                due.w_en.eq(self.arrives & self.control.outer),
                due.r_en.eq(given & star),
            ]
            # An input without order: the other side than last time if it has something, unless
            # what is offered still waits.
            other = Mux(kept == SIDE_R, self.i[1].valid, self.i[0].valid)
            with m.If(self.control.outer):
                m.d.comb += [chosen.eq(due_side), goes.eq(due_valid)]
            with m.Else():
                m.d.comb += [chosen.eq(Mux(other & ~keeps, ~kept, kept)), goes.eq(1)]
            m.d.sync += keeps.eq(self.o.valid & ~self.o.ready)
            with m.If(self.o.valid):
                m.d.sync += kept.eq(chosen)
        r_payloads = (self.i[0].p.r_payload, self.i[1].p.r_payload)
        s_payloads = (self.i[0].p.s_payload, self.i[1].p.s_payload)
        m.d.comb += [
            self.o.valid.eq(goes & offered),
            self.o.p.side.eq(chosen),
            self.o.p.star.eq(star),
            self.o.p.r_payload.eq(Mux(chosen == SIDE_R, *r_payloads)),
            self.o.p.s_payload.eq(Mux(chosen == SIDE_R, *s_payloads)),
            self.i[0].ready.eq(goes & (chosen == SIDE_R) & self.o.ready),
            self.i[1].ready.eq(goes & (chosen == SIDE_S) & self.o.ready),
        ]
        m.d.sync += self.busy.eq(due_valid)
        return m

    def _turn(self, m: Module, chosen: Signal) -> None:
        """Choose a side a cycle ahead, in a design without order: the two take turns."""
        turn = Signal()
        other = Signal()
        m.d.comb += [chosen.eq(turn), other.eq(Mux(turn, self.i[0].valid, self.i[1].valid))]
        with m.If(other & ~(self.o.valid & ~self.o.ready)):
            m.d.sync += turn.eq(~turn)
