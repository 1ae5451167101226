"""Both sides' results as one stream, in order between groups of arrivals."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import SIDE_R, SIDE_S, DesignParams
from streamjoin_hw.rtl.split.combiner import combined_layout, sides_kept
from streamjoin_hw.rtl.split.layouts import token_layout
from streamjoin_hw.rtl.split.queue import Queue
from streamjoin_hw.rtl.streams import Component


def groups_kept(params: DesignParams) -> int:
    """Count the closed groups that the combiner remembers, a power of two.

    As many as there can be arrivals inside, for groups of one.
    """
    return 1 << (sides_kept(params) - 1).bit_length()


class GroupCombiner(Component):
    """Give the results of both sides group by group, and a star after each.

    Of a group that was closed where tuples set out it is remembered which sides have tuples in it:
    these halves give a star for it. Of the group that is due both sides' results are given in
    turns. A half is held at its star until the other one, if it has one, is at its own. While
    no closed group is owed, all that comes is of the open one, whose sides may still come: nothing
    waits. So a half is held only by a half that has all the tuples it needs, as they entered both
    at once. No latency: the output follows the inputs, and a register stage has to be behind it.

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    clear : In(1)
        The open group has no tuple; needed once before the first.
    side : In(1), closes : In(1), arrives : In(1), room : Out(1)
        The side of a tuple that sets out for the cores, and whether it is the last one of its
        group; only if there is ``room``.
    i : In(stream.Signature(token_layout(params))).array(2)
        Results of R tuples, of S tuples.
    open : Out(1)
        The open group has tuples; from registers.
    end : In(1)
        All results have been given: give the open group's star. Stays until that is taken.
    o : Out(stream.Signature(combined_layout(params)))
        A star has ``side`` 1 if a tuple of S is in its group.
    busy : Out(1)
        A closed group's star is still owed; from a register.
    """

    clear: Signal
    side: Signal
    closes: Signal
    arrives: Signal
    room: Signal
    i: Any
    open: Signal
    end: Signal
    o: stream.Interface
    busy: Signal

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        token = stream.Signature(token_layout(params))
        super().__init__(
            {
                **{name: In(1) for name in ("clear", "side", "closes", "arrives", "end")},
                **{name: Out(1) for name in ("room", "open", "busy")},
                "i": In(token).array(2),
                "o": Out(stream.Signature(combined_layout(params))),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the memory of groups and the choice between the two streams."""
        m = Module()
        streams = self.i
        m.submodules.due = due = Queue(data.StructLayout({"sides": 2}), groups_kept(self.params))
        # Sides of the open group: of the tuples that set out, with the one that does now.
        sides = Signal(2)
        with_this = Signal(2)
        m.d.comb += [
            with_this.eq(sides | Cat(self.side == SIDE_R, self.side == SIDE_S)),
            due.i.p.sides.eq(with_this),
            due.i.valid.eq(self.arrives & self.closes),
            self.room.eq(due.i.ready),
            self.open.eq(sides.any()),
        ]
        given = Signal()
        last = self.end & self.open
        with m.If(self.clear | (given & last)):
            m.d.sync += sides.eq(0)
        with m.Elif(self.arrives):
            m.d.sync += sides.eq(Mux(self.closes, 0, with_this))

        # A group counts from the cycle after it was closed on: no later one's result is here then.
        closed, theirs = due.busy, due.o.p.sides
        results = Signal(2)
        stars = Signal(2)
        for side, each in enumerate(streams):
            allowed = ~closed | theirs[side]
            m.d.comb += [
                results[side].eq(each.valid & ~each.p.star & allowed),
                stars[side].eq(each.valid & each.p.star),
            ]
        together, chosen, kept, keeps = (
            Signal(name=name) for name in ("together", "chosen", "kept", "keeps")
        )
        other = results.bit_select(~kept, 1)[0]
        m.d.comb += [
            together.eq(closed & (stars | ~theirs).all()),
            # The other side than last time if it has a result, unless what is offered still waits.
            chosen.eq(Mux(other & ~keeps, ~kept, kept)),
            given.eq(self.o.valid & self.o.ready),
            due.o.ready.eq(given & together),
        ]
        m.d.sync += keeps.eq(self.o.valid & ~self.o.ready & ~self.o.p.star)
        with m.If(results.any()):
            m.d.sync += kept.eq(chosen)
        out: Any = self.o.p
        m.d.comb += [
            self.o.valid.eq(results.any() | together | last),
            out.star.eq(together | last),
            out.side.eq(Mux(together, theirs[SIDE_S], Mux(last, sides[SIDE_S], chosen))),
            out.r_payload.eq(Mux(chosen == SIDE_R, *(each.p.r_payload for each in streams))),
            out.s_payload.eq(Mux(chosen == SIDE_R, *(each.p.s_payload for each in streams))),
        ]
        for side, each in enumerate(streams):
            goes = Mux(together, theirs[side], results[side] & (chosen == side))
            m.d.comb += each.ready.eq(goes & self.o.ready)
        m.d.sync += self.busy.eq(closed)
        return m
