"""Which slots hold a tuple of the window.

A slot is used if its bits in two memories differ: a tuple that is stored changes the one, a tuple
that expires makes the other equal to it. So both can happen in a cycle, each memory has one writer,
and neither has to read before it writes: a tuple that expires brings the bit that it left behind.
"""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.index.layouts import (
    bank_of,
    position_layout,
    row_bits,
    row_of,
    rows_layout,
)
from streamjoin_hw.rtl.memory import RAM_STYLES
from streamjoin_hw.rtl.streams import Component, View, payload_of


class Occupancy(Component):
    """The used slots of one stream's index.

    Words are looked at in rows, one of each bank: to read them, and to store a tuple.

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    sweep : In(1), swept : In(row_bits(params))
        Empty the words of a row; nothing else may happen in this cycle.
    rows, into : In(rows_layout(params))
        Words to read, and words in which to store.
    used, taken : Out(ArrayLayout(bucket_slots, ways))
        Their used slots a cycle later: what was stored or expired before they were asked for.
    entered : Out(ArrayLayout(bucket_slots, ways))
        Bits in the first memory of the words in which to store.
    take : In(1), position : In(position_layout(params)), bits : In(bucket_slots)
        A tuple is stored, and what its slot's bit is from now on; the others do not count.
    free : In(1), freed : In(position_layout(params)), bit : In(1)
        A tuple expires, and what its slot's bit became when it was stored.
    """

    sweep: Signal
    swept: Signal
    rows: View
    used: View
    into: View
    taken: View
    entered: View
    take: Signal
    position: View
    bits: Signal
    free: Signal
    freed: View
    bit: Signal

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        position, slots = position_layout(params), params.bucket_slots
        rows = rows_layout(params)
        words = data.ArrayLayout(slots, params.ways)
        super().__init__(
            {
                "sweep": In(1),
                "swept": In(row_bits(params)),
                "rows": In(rows),
                "used": Out(words),
                "into": In(rows),
                "taken": Out(words),
                "entered": Out(words),
                "take": In(1),
                "position": In(position),
                "bits": In(slots),
                "free": In(1),
                "freed": In(position),
                "bit": In(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the two memories of each bank."""
        m = Module()
        slots = self.params.bucket_slots
        for bank in range(self.params.ways):
            stored = (self.take, self.position, self.bits)
            expired = (self.free, self.freed, self.bit.replicate(slots))
            entered, entered_into = self._memory(m, f"entered{bank}", bank, stored)
            left, left_into = self._memory(m, f"left{bank}", bank, expired)
            m.d.comb += [
                self.used[bank].eq(entered ^ left),
                self.taken[bank].eq(entered_into ^ left_into),
                self.entered[bank].eq(entered_into),
            ]
        return m

    def _memory(
        self, m: Module, name: str, bank: int, change: tuple[Any, Any, Any]
    ) -> tuple[Any, Any]:
        """Build one memory; return what is read of it, and of the words in which to store.

        It is written a cycle after a change, which goes to a register for each slot and not to all
        of the memory: what is read in that cycle has the change put into it.
        """
        params, (is_new, position, bits) = self.params, change
        # A block RAM would have but two ports and few of its bits in use.
        memory: Any = Memory(
            shape=params.bucket_slots,
            depth=params.buckets // params.ways,
            init=[],
            attrs={"ram_style": RAM_STYLES["lutram"]},
        )
        m.submodules[name] = memory
        write = memory.write_port(granularity=1)
        row = payload_of(row_bits(params))
        values = payload_of(params.bucket_slots)
        changed = Signal(params.bucket_slots, name=f"{name}_changed")
        mine = is_new & (bank_of(params, position.word) == bank)
        m.d.sync += [
            changed.eq(Mux(mine, position.slot, 0)),
            row.eq(row_of(params, position.word)),
            values.eq(bits),
        ]
        m.d.comb += [
            write.addr.eq(Mux(self.sweep, self.swept, row)),
            write.data.eq(Mux(self.sweep, 0, values)),
            write.en.eq(Mux(self.sweep, ~0, changed)),
        ]
        found = []
        for which, rows in (("read", self.rows), ("into", self.into)):
            read = memory.read_port(domain="comb")
            word = payload_of(params.bucket_slots, name=f"{name}_{which}")
            new = Mux(rows[bank] == row, changed, 0)
            m.d.comb += read.addr.eq(rows[bank])
            m.d.sync += word.eq((read.data & ~new) | (values & new))
            found.append(word)
        return found[0], found[1]
