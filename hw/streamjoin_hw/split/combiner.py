"""Both sides' results as one stream."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from streamjoin_hw.contract import SIDE_R, SIDE_S, DesignParams
from streamjoin_hw.split.layouts import token_layout
from streamjoin_hw.split.trees import control_layout
from streamjoin_hw.streams import Component, PipeReg


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
    """Count the arrivals whose side the combiner remembers: twice what the cores hold."""
    return 32 + 4 * params.probes


class Combiner(Component):
    """Give the results of both sides, and a star with its side after each tuple's.

    With the outer order, in arrival order of the later tuples: the sides of the arrivals are
    remembered, and the side that is due is given up to its star. SplitJoin, section 5, flags the
    stars and leaves the two sides unordered with each other. Without order the sides take turns
    and there are no stars. Latency 1 cycle.

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    control : In(control_layout(params))
    side : In(1), arrives : In(1), room : Out(1)
        The side of a tuple that sets out for the cores; only if there is ``room``.
    i0, i1 : In(stream.Signature(token_layout(params)))
        Results of R tuples, of S tuples.
    o : Out(stream.Signature(combined_layout(params)))
    busy : Out(1)
        Something is inside or still owed; from a register.
    """

    control: Any
    side: Signal
    arrives: Signal
    room: Signal
    i0: stream.Interface
    i1: stream.Interface
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
                "i0": In(token),
                "i1": In(token),
                "o": Out(stream.Signature(combined_layout(params))),
                "busy": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the memory of sides and the choice between the two streams."""
        m = Module()
        m.submodules.output = output = PipeReg(combined_layout(self.params))
        chosen, last = Signal(), Signal()
        offered = Mux(chosen == SIDE_R, self.i0.valid, self.i1.valid)
        star = Mux(chosen == SIDE_R, self.i0.p.star, self.i1.p.star)
        goes = Signal()
        # Without order: the other side than last time if it has something to give.
        other = Mux(last == SIDE_R, self.i1.valid, self.i0.valid)
        if self.params.order == "none":
            due_valid, due_side = Signal(), Signal()
            m.d.comb += self.room.eq(1)
        else:
            m.submodules.due = due = SyncFIFOBuffered(width=1, depth=sides_kept(self.params))
            due_valid, due_side = due.r_rdy, due.r_data
            m.d.comb += [
                self.room.eq(due.w_rdy),
                due.w_data.eq(self.side),
                due.w_en.eq(self.arrives & self.control.outer),
                due.r_en.eq(output.i.valid & output.i.ready & star),
            ]
        with m.If(self.control.outer):
            m.d.comb += [chosen.eq(due_side), goes.eq(due_valid)]
        with m.Else():
            m.d.comb += [chosen.eq(Mux(other, ~last, last)), goes.eq(1)]
        with m.If(output.i.valid & output.i.ready):
            m.d.sync += last.eq(chosen)
        m.d.comb += [
            output.i.valid.eq(goes & offered),
            output.i.p.side.eq(chosen),
            output.i.p.star.eq(star),
            output.i.p.r_payload.eq(
                Mux(chosen == SIDE_R, self.i0.p.r_payload, self.i1.p.r_payload)
            ),
            output.i.p.s_payload.eq(
                Mux(chosen == SIDE_R, self.i0.p.s_payload, self.i1.p.s_payload)
            ),
            self.i0.ready.eq(goes & (chosen == SIDE_R) & output.i.ready),
            self.i1.ready.eq(goes & (chosen == SIDE_S) & output.i.ready),
        ]
        m.d.sync += self.busy.eq(output.busy | due_valid)
        wiring.connect(m, output.o, wiring.flipped(self.o))
        return m
