"""From a code to its word: binary search in a table of splitters, a level a cycle.

The splitters that are compared first lie in memories of their own, each level in one twice as deep
as the one before, so that a search is a pipeline. Its end is a bucket, which has one word or a row
of them, each for as many codes, a power of two.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import (
    COUNT_BITS,
    KEY_BITS,
    ONE_WORD,
    DesignParams,
    even_splitters,
)
from streamjoin_hw.rtl.index.layouts import word_bits
from streamjoin_hw.rtl.memory import RAM_STYLES
from streamjoin_hw.rtl.streams import Component, View, payload_of

LOOKUPS = 2
"""Codes that are looked up in a cycle."""


def row_layout() -> data.StructLayout:
    """Layout of a bucket's words: code ``c`` is of word ``first + (c >> shift)``."""
    return data.StructLayout({"first": COUNT_BITS, "shift": ONE_WORD.bit_length()})


def search_cycles(params: DesignParams) -> int:
    """Cycles from a code to its word: a level each, and two to count on; one more if slow."""
    levels = range(word_bits(params) + 1)
    return word_bits(params) + 2 + sum(is_slow(1 << level) for level in levels)


def is_slow(depth: int) -> bool:
    """Return whether a memory is of block RAM, which takes half a cycle at 100 MHz to read."""
    return depth > 128


def _memory(shape: Any, init: list[Any]) -> Any:
    """Make a memory of LUTs or block RAM."""
    style = RAM_STYLES["bram" if is_slow(len(init)) else "lutram"]
    return Memory(shape=shape, depth=len(init), init=init, attrs={"ram_style": style})


class Splitters(Component):
    """The splitters of one stream's index.

    A code's bucket is the number of splitters below it. Words are counted on beyond those of the
    index, which has the lowest bits of a word's number. Two lookups a cycle, each known
    :func:`search_cycles` cycles later.

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    codes : In(ArrayLayout(KEY_BITS, LOOKUPS))
    words : Out(ArrayLayout(COUNT_BITS, LOOKUPS))
        Of the codes :func:`search_cycles` cycles ago.
    load : In(1), number : In(word_bits(params)), value : In(KEY_BITS)
        Set the words of a bucket and, but for number 0, the splitter below it. Nothing is looked up
        meanwhile, and nothing that was looked up before may be in an index.
    several : In(1), row : In(row_layout())
        Whether the bucket has these words, or one, that of its number.
    """

    codes: View
    words: View
    load: Signal
    number: Signal
    value: Signal
    several: Signal
    row: View

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        super().__init__(
            {
                "codes": In(data.ArrayLayout(KEY_BITS, LOOKUPS)),
                "words": Out(data.ArrayLayout(COUNT_BITS, LOOKUPS)),
                "load": In(1),
                "number": In(word_bits(params)),
                "value": In(KEY_BITS),
                "several": In(1),
                "row": In(row_layout()),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build a memory and the comparators of each level."""
        m = Module()
        depth = word_bits(self.params)
        even = even_splitters(self.params.buckets)
        codes: list[Any] = list(self.codes)
        paths: list[Any] = [Const(0, 0)] * LOOKUPS
        for level in range(depth):
            # The splitter of a node is the middle of the buckets below it.
            first, step = 1 << (depth - 1 - level), 1 << (depth - level)
            nodes = even[first - 1 :: step]
            is_mine = self.load & self.number[depth - 1 - level]
            is_mine &= self.number[: depth - 1 - level] == 0
            splitters: list[Any]
            if level == 0:
                top = Signal(KEY_BITS, init=nodes[0], reset_less=True, name="splitter")
                with m.If(is_mine):
                    m.d.sync += top.eq(self.value)
                splitters = [top] * LOOKUPS
            else:
                memory = _memory(KEY_BITS, nodes)
                m.submodules[f"level{level}"] = memory
                write = memory.write_port()
                m.d.comb += [write.data.eq(self.value), write.en.eq(is_mine)]
                splitters = self._read(m, memory, write, self.number[depth - level :], paths)
                # A code travels beside the read of what it is compared with.
                codes = [self._behind(m, code, f"code{level}") for code in codes]
                paths = [self._behind(m, path, f"path{level}") for path in paths]
                if is_slow(len(nodes)):
                    codes = [self._behind(m, code, f"held_code{level}") for code in codes]
                    paths = [self._behind(m, path, f"held_path{level}") for path in paths]
                    splitters = [self._behind(m, each, f"splitter{level}") for each in splitters]
            for k in range(LOOKUPS):
                above = Signal(name=f"above{level}_{k}")
                m.d.comb += above.eq(splitters[k] < codes[k])
                paths[k] = Cat(above, paths[k])
        codes = [self._behind(m, code, "code") for code in codes]
        self._count_on(m, codes, paths)
        return m

    def _count_on(self, m: Module, codes: list[Any], buckets: list[Any]) -> None:
        """Find the words of codes, which are a cycle behind their buckets."""
        plain = [{"first": number, "shift": ONE_WORD} for number in range(self.params.buckets)]
        memory = _memory(row_layout(), plain)
        m.submodules.rows = memory
        write = memory.write_port()
        m.d.comb += [
            write.data.first.eq(Mux(self.several, self.row.first, self.number)),
            write.data.shift.eq(Mux(self.several, self.row.shift, ONE_WORD)),
            write.en.eq(self.load),
        ]
        rows = self._read(m, memory, write, self.number, buckets)
        if is_slow(len(plain)):
            codes = [self._behind(m, code, "held_code") for code in codes]
            rows = [self._held(m, row) for row in rows]
        for k, (code, row) in enumerate(zip(codes, rows, strict=True)):
            first = self._behind(m, row.first, f"first{k}")
            # By eights as the row is read, and the rest of the way before it is added.
            eights, ones = row.shift[3:], self._behind(m, row.shift[:3], f"shift{k}")
            part = self._behind(m, code >> (eights << 3), f"part{k}")
            m.d.sync += self.words[k].eq(first + (part >> ones)[:COUNT_BITS])

    def _read(self, m: Module, memory: Any, write: Any, number: Any, paths: list[Any]) -> list[Any]:
        """Read a memory for each lookup; nothing is looked up while it is written.

        So the first read has its address from the write: two ports are enough, of one block RAM.
        """
        reads = [memory.read_port() for _ in paths]
        shared = Signal(len(write.addr))
        m.d.comb += [
            shared.eq(Mux(self.load, number, paths[0])),
            write.addr.eq(shared),
            reads[0].addr.eq(shared),
            *(read.addr.eq(path) for read, path in zip(reads[1:], paths[1:], strict=True)),
        ]
        return [read.data for read in reads]

    @staticmethod
    def _held(m: Module, row: Any) -> Any:
        later: Any = payload_of(row_layout(), name="held_row")
        m.d.sync += later.eq(row)
        return later

    @staticmethod
    def _behind(m: Module, value: Any, name: str) -> Any:
        later = payload_of(len(value), name=name)
        m.d.sync += later.eq(value)
        return later
