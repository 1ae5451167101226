"""The words of an index that hold matches, as they wait for those of the other one."""

from typing import Any

from amaranth.hdl import Assert, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import HOLD_WORDS, DesignParams
from streamjoin_hw.rtl.index.layouts import NUMBER_BITS, found_layout, met_layout
from streamjoin_hw.rtl.matching import is_single
from streamjoin_hw.rtl.memory import memory_of
from streamjoin_hw.rtl.streams import Component, View, signal_of


class FoundQueue(Component):
    """A FIFO of words with matches. Their numbers, in one beside it, are taken before them.

    What is offered is written in every cycle, behind the words that count. Whether it has a match,
    so that it counts, is known in the next cycle: no long path goes from the comparators through a
    level. A word is at the end two cycles after it was offered.

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    met : In(met_layout(params)), number : In(NUMBER_BITS)
        What was compared, and the number of who asked; it counts if its mask is not 0.
    is_found, choose : Out(1), In(1), found_number : Out(NUMBER_BITS)
        The oldest number is there; remove it.
    take : In(1), found : Out(found_layout(params))
        The oldest word; remove it, after its number.
    hold : Out(1)
        Fewer than ``HOLD_WORDS`` words are free, as of two cycles ago; from a register.
    busy : Out(1)
        A word is inside, or offered.
    """

    met: View
    number: Signal
    is_found: Signal
    choose: Signal
    found_number: Signal
    take: Signal
    found: View
    hold: Signal
    busy: Signal

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        super().__init__(
            {
                "met": In(met_layout(params)),
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
        """Build both FIFOs behind one end."""
        m = Module()
        size = self.params.result_fifo_words
        bits = (size - 1).bit_length()
        # A word was offered in the cycle before that counts: it lies at `end`.
        counts = Signal()
        offers = Signal()
        end = Signal(bits)
        behind = Signal(bits, init=1)
        at = Signal(bits)
        word: Any = signal_of(found_layout(self.params))
        m.d.comb += [
            *(word[name].eq(self.met[name]) for name in met_layout(self.params).members),
            word.single.eq(is_single(self.met.mask)),
            offers.eq(self.met.mask.any()),
            at.eq(Mux(counts, behind, end)),
        ]
        m.d.sync += [counts.eq(offers), end.eq(at), behind.eq(at + 1)]
        is_word, waits = self._queue(m, "words", word, (at, counts, self.take), self.found)
        is_number, _ = self._queue(
            m, "numbers", self.number, (at, counts, self.choose), self.found_number
        )
        m.d.comb += [
            self.is_found.eq(is_number),
            self.busy.eq(offers | counts | is_word | (waits != 0)),
            # What is offered would be written over the oldest.
            Assert(waits < size, "a result FIFO overflowed"),
        ]
        m.d.sync += self.hold.eq(waits >= size - HOLD_WORDS)
        return m

    def _queue(
        self, m: Module, name: str, offered: Any, moves: tuple[Any, ...], out: Any
    ) -> tuple[Signal, Signal]:
        """Write what is offered; return whether ``out`` is there, and what waits behind it."""
        at, counts, take = moves
        size = self.params.result_fifo_words
        # A word is read in the cycle after that in which it was written, or later.
        memory = memory_of("auto", len(Value.cast(offered)), 1 << len(at), is_free=True)
        m.submodules[name] = memory
        write, read = memory.write_port(), memory.read_port(domain="sync")
        begin = Signal(len(at), name=f"{name}_begin")
        is_there, goes = Signal(name=f"is_{name}"), Signal(name=f"{name}_go")
        waits = Signal(range(size + 1), name=f"{name}_wait")
        m.d.comb += [
            write.addr.eq(at),
            write.data.eq(offered),
            write.en.eq(1),
            goes.eq(((waits != 0) | counts) & (~is_there | take)),
            read.addr.eq(begin),
            read.en.eq(goes),
            out.eq(read.data),
        ]
        m.d.sync += [begin.eq(begin + goes), waits.eq(waits + counts - goes)]
        with m.If(goes):
            m.d.sync += is_there.eq(1)
        with m.Elif(take):
            m.d.sync += is_there.eq(0)
        return is_there, waits
