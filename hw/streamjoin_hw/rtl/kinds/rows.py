"""The rows of one stream whose partners are not all known yet, counted in a ring of slots."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from streamjoin_common.contract import SWEPT_ROWS, WINDOW_BITS, DesignParams
from streamjoin_hw.rtl.streams import Component, payload_of

GROUP_BITS = SWEPT_ROWS.bit_length() - 1
"""Lowest bits of a slot's number, which say where in its group it is."""


def slot_bits(params: DesignParams) -> int:
    """Bits of a slot's number."""
    return bits_for(params.kept_rows - 1)


def group_bits(params: DesignParams) -> int:
    """Bits of the number of a group of slots."""
    return bits_for(params.kept_rows // SWEPT_ROWS - 1)


class RowRing(Component):
    """Gives slots to rows, and shows the oldest group of which no row can meet another one.

    A row beyond the window that was accepted before the cores last had nothing to do has met all
    that it will. Once an input ends, that holds for all its rows.

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    clear : In(1)
        Begin anew; while no row is inside.
    window : In(WINDOW_BITS)
        The count window of the stream, constant while rows are inside.
    arrives : In(1), slot : Out(slot_bits(params))
        A row is accepted in this cycle; its slot.
    room : Out(1)
        Rows may arrive; from a register. None does while a group or less is free and none is due.
    settles, ends : In(1)
        All results of the rows accepted before this cycle are out; none is accepted from now on.
    due : Out(1), group : Out(group_bits(params)), live : Out(SWEPT_ROWS)
        The oldest group may be looked at; which of its slots hold rows.
    swept : In(1)
        Its rows leave. Not before it was ``due``.
    busy : Out(1)
        A row is inside.
    """

    clear: Signal
    window: Signal
    arrives: Signal
    slot: Signal
    room: Signal
    settles: Signal
    ends: Signal
    due: Signal
    group: Signal
    live: Signal
    swept: Signal
    busy: Signal

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        super().__init__(
            {
                **{name: In(1) for name in ("clear", "arrives", "settles", "ends", "swept")},
                "window": In(WINDOW_BITS),
                "slot": Out(slot_bits(params)),
                "room": Out(1),
                "due": Out(1),
                "group": Out(group_bits(params)),
                "live": Out(SWEPT_ROWS),
                "busy": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the counts of rows inside and of those whose results are out."""
        m = Module()
        rows = self.params.kept_rows
        held = Signal(range(rows + 1))
        settled = Signal(range(rows + 1))
        left = Signal(range(rows + 1))
        rest = Signal(range(rows + 1))
        few = Signal()
        ended = Signal()
        last = SWEPT_ROWS - 1
        m.d.comb += [
            # Less than a group settles only at the end, when no other row is inside.
            few.eq(settled < SWEPT_ROWS),
            left.eq(Mux(self.swept, Mux(few, 0, held - SWEPT_ROWS), held)),
            rest.eq(Mux(self.swept, Mux(few, 0, settled - SWEPT_ROWS), settled)),
            self.busy.eq(held != 0),
            self.live.eq(
                Cat(*(~few | (settled[:GROUP_BITS] > number) for number in range(last)), ~few)
            ),
        ]
        limit = payload_of(WINDOW_BITS + 1)
        m.d.sync += [
            limit.eq(self.window + SWEPT_ROWS),
            held.eq(left + self.arrives),
            settled.eq(Mux(self.settles, left, rest)),
            ended.eq(ended | (self.settles & self.ends)),
            self.due.eq(Mux(ended, settled != 0, settled >= limit) & ~self.swept),
            # Whether a tuple is taken is decided a cycle ahead: a row that arrives now, and those
            # of the next two cycles, still have slots. The last group's are for the time in which
            # the first one due is looked at.
            self.room.eq((held < Const(rows - 2)) & ((held < Const(rows - SWEPT_ROWS)) | self.due)),
        ]
        with m.If(self.arrives):
            m.d.sync += self.slot.eq(Mux(self.slot == rows - 1, 0, self.slot + 1))
        with m.If(self.swept):
            is_end = self.group == rows // SWEPT_ROWS - 1
            m.d.sync += self.group.eq(Mux(is_end, 0, self.group + 1))
        with m.If(self.clear):
            m.d.sync += [
                each.eq(0)
                for each in (held, settled, ended, self.due, self.slot, self.group, self.room)
            ]
        return m
