"""Which slots hold a tuple of the window, and how far a bucket's tuples are displaced.

A slot is used if its bits in two memories differ: a tuple that is stored flips the one, a tuple
that expires flips the other, so that both can happen in a cycle and each memory has one writer.
"""

from typing import Any

from amaranth.hdl import Array, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.index.layouts import (
    bank_of,
    position_layout,
    row_bits,
    row_of,
    rows_of,
    spread_layout,
    word_bits,
)
from streamjoin_hw.rtl.memory import memory_of
from streamjoin_hw.rtl.streams import Component, View, payload_of, registers_of


class Occupancy(Component):
    """What is known of the words of one stream's index, but their tuples.

    A word that is looked at in one cycle is known in the next together with those after it, one of
    each bank, with everything that was stored or expired before.

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    clear : In(1), clearing : Out(1)
        Empty all words, a cycle for ``ways`` of them; nothing else may happen meanwhile.
    look : In(word_bits(params))
        Look at this word and the next ones.
    used : Out(ArrayLayout(bucket_slots, ways)), spreads : Out(ArrayLayout(spread_layout, ways))
        The words looked at a cycle ago, in the order of the banks.
    ahead : In(word_bits(params)), used_ahead : Out(bucket_slots)
        Another word to look at, and which of its slots were used a cycle ago.
    take : In(1), taken : In(position_layout(params))
        A tuple is stored in one of these words, or with ``beside`` in that other one.
    beside : In(1)
    free : In(1), freed : In(position_layout(params))
        A tuple expires, of any word; known in the next cycle.
    stretch : In(1), bucket : In(word_bits(params)), spread : In(spread_layout(params))
        Set a bucket's spread.
    """

    clear: Signal
    clearing: Signal
    look: Signal
    used: View
    spreads: View
    ahead: Signal
    used_ahead: Signal
    beside: Signal
    take: Signal
    taken: View
    free: Signal
    freed: View
    stretch: Signal
    bucket: Signal
    spread: View

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        position, spread = position_layout(params), spread_layout(params)
        super().__init__(
            {
                "clear": In(1),
                "clearing": Out(1, init=1),  # type: ignore[call-arg]  # known at run time
                "look": In(word_bits(params)),
                "used": Out(data.ArrayLayout(params.bucket_slots, params.ways)),
                "spreads": Out(data.ArrayLayout(spread, params.ways)),
                "ahead": In(word_bits(params)),
                "used_ahead": Out(params.bucket_slots),
                "beside": In(1),
                "take": In(1),
                "taken": In(position),
                "free": In(1),
                "freed": In(position),
                "stretch": In(1),
                "bucket": In(word_bits(params)),
                "spread": In(spread),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the memories of the banks and the sweep that empties them."""
        m = Module()
        swept = Signal(row_bits(self.params))
        with m.If(self.clear):
            m.d.sync += [self.clearing.eq(1), swept.eq(0)]
        with m.Elif(self.clearing):
            m.d.sync += [swept.eq(swept + 1), self.clearing.eq(~swept.all())]
        # A tuple that expires flips its bit a cycle later, when the word's other bits are known.
        layout = data.StructLayout({"valid": 1, **position_layout(self.params).members})
        going = registers_of(layout, "valid", name="going")
        m.d.sync += [
            going.valid.eq(self.free),
            going.word.eq(self.freed.word),
            going.slot.eq(self.freed.slot),
        ]
        others = []
        for bank, row in enumerate(rows_of(self.params, self.look)):
            others.append(self._use(m, bank, row, going, swept))
            self._spread(m, bank, row, swept)
        seen: Any = payload_of(word_bits(self.params), name="seen")
        m.d.sync += seen.eq(self.ahead)
        goes = going.valid & (going.word == seen)
        m.d.comb += self.used_ahead.eq(
            Array(others)[bank_of(self.params, seen)] ^ Mux(goes, going.slot, 0)
        )
        return m

    def _use(self, m: Module, bank: int, row: Any, going: View, swept: Signal) -> Any:
        """Build the two memories whose differing bits are the used slots; return those ahead."""
        shown = payload_of(row_bits(self.params), name=f"shown{bank}")
        m.d.sync += shown.eq(row)
        params = self.params
        shape, depth = params.bucket_slots, params.buckets // params.ways
        # A block RAM would have but two ports and few of its bits in use.
        entered, left = (memory_of("lutram", shape, depth) for _ in range(2))
        m.submodules[f"entered{bank}"], m.submodules[f"left{bank}"] = entered, left
        enters, leaves = entered.write_port(), left.write_port()
        was_entered = entered.read_port(transparent_for=(enters,))
        was_left = left.read_port(transparent_for=(leaves,))
        entered_ahead = entered.read_port(transparent_for=(enters,))
        left_ahead = left.read_port(transparent_for=(leaves,))
        # Of the word of which a tuple expires.
        beside = left.read_port(transparent_for=(leaves,))
        goes = Signal(name=f"goes{bank}")
        m.d.comb += [
            goes.eq(going.valid & (bank_of(params, going.word) == bank)),
            was_entered.addr.eq(row),
            was_left.addr.eq(row),
            beside.addr.eq(row_of(params, self.freed.word)),
            self.used[bank].eq(
                was_entered.data
                ^ was_left.data
                ^ Mux(goes & (row_of(params, going.word) == shown), going.slot, 0)
            ),
            enters.addr.eq(Mux(self.clearing, swept, row_of(params, self.taken.word))),
            enters.data.eq(
                Mux(
                    self.clearing,
                    0,
                    Mux(self.beside, entered_ahead.data, was_entered.data) ^ self.taken.slot,
                )
            ),
            enters.en.eq(self.clearing | (self.take & (bank_of(params, self.taken.word) == bank))),
            leaves.addr.eq(Mux(self.clearing, swept, row_of(params, going.word))),
            leaves.data.eq(Mux(self.clearing, 0, beside.data ^ going.slot)),
            leaves.en.eq(self.clearing | goes),
            entered_ahead.addr.eq(row_of(params, self.ahead)),
            left_ahead.addr.eq(row_of(params, self.ahead)),
        ]
        return entered_ahead.data ^ left_ahead.data

    def _spread(self, m: Module, bank: int, row: Any, swept: Signal) -> None:
        """Build the memory of how far tuples are displaced."""
        params, layout = self.params, spread_layout(self.params)
        memory: Any = Memory(shape=layout, depth=params.buckets // params.ways, init=[])
        m.submodules[f"spread{bank}"] = memory
        write = memory.write_port()
        read = memory.read_port(transparent_for=(write,))
        m.d.comb += [
            read.addr.eq(row),
            self.spreads[bank].eq(read.data),
            write.addr.eq(Mux(self.clearing, swept, row_of(params, self.bucket))),
            write.data.eq(Mux(self.clearing, 0, self.spread.as_value())),
            write.en.eq(self.clearing | (self.stretch & (bank_of(params, self.bucket) == bank))),
        ]
