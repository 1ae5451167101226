"""The sweep: it looks at the rows that have met all they will, and gives those without partner."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import SIDE_R, SIDE_S, SWEPT_ROWS, DesignParams
from streamjoin_hw.rtl.kinds.rows import GROUP_BITS, group_bits
from streamjoin_hw.rtl.streams import Component, View, payload_of


def request_layout(params: DesignParams) -> data.StructLayout:
    """Layout of what the sweep asks for.

    ``loads``, whether the rows of a ``group`` of ``side`` had partners; ``lone``, that its row
    ``row`` is given without one.
    """
    return data.StructLayout(
        {"loads": 1, "lone": 1, "side": 1, "row": GROUP_BITS, "group": group_bits(params)}
    )


class Sweep(Component):
    """Looks at groups of rows, of either stream in turn, while nothing else needs the memories.

    A group takes 5 cycles, 3 if the other stream's rows are looked at in between, and one more for
    each row that is given.

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    wants_r, wants_s : In(1)
        Rows of R, of S are given if they have no partner.
    due : In(2), groups : In(ArrayLayout(group_bits(params), 2)), lives : In(ArrayLayout(., 2))
        ``due``, ``group`` and ``live`` of :class:`~streamjoin_hw.rtl.kinds.rows.RowRing` of R, S.
    swept : Out(2)
        All rows of that group which are given were asked for.
    asks : Out(request_layout(params)), free : In(1)
        What is asked for; it is done in a cycle in which ``free`` is 1.
    loaded : In(1), met : In(SWEPT_ROWS)
        Which rows of the group that was asked for had partners.
    """

    wants_r: Signal
    wants_s: Signal
    due: Signal
    groups: View
    lives: View
    swept: Signal
    asks: View
    free: Signal
    loaded: Signal
    met: Signal

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        super().__init__(
            {
                "wants_r": In(1),
                "wants_s": In(1),
                "due": In(2),
                "groups": In(data.ArrayLayout(group_bits(params), 2)),
                "lives": In(data.ArrayLayout(SWEPT_ROWS, 2)),
                "swept": Out(2),
                "asks": Out(request_layout(params)),
                "free": In(1),
                "loaded": In(1),
                "met": In(SWEPT_ROWS),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the choice of a group and the walk along its rows."""
        m = Module()
        side = Signal()
        chosen = Signal()
        rest = payload_of(SWEPT_ROWS)
        other_is_due = Mux(side == SIDE_R, self.due[SIDE_S], self.due[SIDE_R])
        m.d.comb += [chosen.eq(side), self.asks.side.eq(chosen)]
        m.d.comb += self.asks.group.eq(
            Mux(chosen == SIDE_S, self.groups[SIDE_S], self.groups[SIDE_R])
        )
        for row in reversed(range(SWEPT_ROWS)):
            with m.If(rest[row]):
                m.d.comb += self.asks.row.eq(row)
        with m.FSM(name="sweep"):
            with m.State("CHOOSE"):
                m.d.comb += [chosen.eq(side ^ other_is_due), self.asks.loads.eq(self.due.any())]
                with m.If(self.asks.loads & self.free):
                    m.d.sync += side.eq(chosen)
                    m.next = "LOAD"
            with m.State("LOAD"):
                wants = Mux(side == SIDE_S, self.wants_s, self.wants_r)
                live = Mux(side == SIDE_S, self.lives[SIDE_S], self.lives[SIDE_R])
                m.d.sync += rest.eq(live & ~self.met & wants.replicate(SWEPT_ROWS))
                with m.If(self.loaded):
                    m.next = "GIVE"
            with m.State("GIVE"):
                m.d.comb += self.asks.lone.eq(rest.any())
                with m.If(~rest.any()):
                    m.d.comb += [self.swept[number].eq(side == number) for number in (0, 1)]
                    m.next = "CHOOSE"
                with m.Elif(self.free):
                    m.d.sync += rest.eq(rest & (rest - 1))
        return m
