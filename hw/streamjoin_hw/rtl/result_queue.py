"""The FIFO in which a core's results wait, written by whoever knows that there is room."""

from typing import Any

from amaranth.hdl import Assert, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from streamjoin_hw.rtl.streams import Component, View


class ResultQueue(Component):
    """A FIFO that nobody asks for room.

    Its level tells the writer early enough that little is left, so none of its own decisions
    depends on it. Whether a word waits is a flip-flop, and ``take`` passes two LUTs at most to the
    level's clock enable. A word is at the head two cycles after it was written, and one leaves in
    every cycle.

    Parameters
    ----------
    layout : Layout
        Layout of a word.
    words : int
        Words that it holds, with the one at its head; at least 3.

    Members
    -------
    write : In(1), word : In(layout)
        A word enters; not while it holds ``words``.
    head : Out(layout), is_there : Out(1)
        The oldest word, if there is one; from registers.
    take : In(1)
        The head leaves, if it is there.
    waits : Out(range(words))
        Words behind the head; from a register.
    busy : Out(1)
        A word is inside.
    """

    write: Signal
    word: View
    head: View
    is_there: Signal
    take: Signal
    waits: Signal
    busy: Signal

    def __init__(self, layout: data.Layout, words: int) -> None:
        self.layout = layout
        self.words = words
        super().__init__(
            {
                "write": In(1),
                "word": In(layout),
                "head": Out(layout),
                "is_there": Out(1),
                "take": In(1),
                "waits": Out(range(words)),
                "busy": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the memory, the count of what waits, and two bits that are ahead of it."""
        m = Module()
        places = 1 << (self.words - 2).bit_length()
        memory: Any = Memory(shape=self.layout, depth=places, init=[])
        m.submodules.memory = memory
        write, read = memory.write_port(), memory.read_port(domain="sync")
        begin = Signal(range(places))
        end = Signal(range(places))
        some, one, goes, lost = (Signal(name=n) for n in ("some", "one", "goes", "lost"))
        m.d.comb += [
            goes.eq(some & (~self.is_there | self.take)),
            write.addr.eq(end),
            write.data.eq(self.word),
            write.en.eq(self.write),
            read.addr.eq(begin),
            read.en.eq(goes),
            self.head.eq(read.data),
            self.busy.eq(some | self.is_there),
            Assert(~lost, "a result FIFO overflowed"),
        ]
        m.d.sync += [
            lost.eq(self.write & (self.waits == self.words - 1)),
            begin.eq(begin + goes),
            end.eq(end + self.write),
            self.is_there.eq(goes | (self.is_there & ~self.take)),
        ]
        with m.If(self.write != goes):
            m.d.sync += [
                self.waits.eq(Mux(self.write, self.waits + 1, self.waits - 1)),
                some.eq(self.write | ~one),
                one.eq(Mux(self.write, ~some, self.waits == 2)),
            ]
        return m
