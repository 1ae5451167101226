"""From a code to its word: binary search in a table of splitters, a level a cycle.

The splitters that are compared first lie in memories of their own, each level in one twice as deep
as the one before, so that a search is a pipeline. Its end is a bucket, which has one word or a row
of them, each for as many codes, a power of two.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
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
from streamjoin_hw.rtl.streams import Component, View, payload_of, signal_of

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


@dataclass(frozen=True)
class _Table:
    """A table's rows, the ones at first, and how a row is written."""

    shape: Any
    init: list[Any]
    number: Value
    value: Any
    is_mine: Value

    def half(self, bit: int) -> Self:
        """Return the rows with even numbers, or with odd ones."""
        is_mine = self.is_mine & (self.number[0] == bit)
        return replace(self, init=self.init[bit::2], number=self.number[1:], is_mine=is_mine)


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
        """Build the tables and the comparators of each level."""
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
            table = _Table(KEY_BITS, nodes, self.number[depth - level :], self.value, is_mine)
            splitters = self._look_up(m, f"level{level}", table, paths)
            if level:
                # A code travels beside the read of what it is compared with.
                codes = self._beside(m, codes, table, f"code{level}")
                paths = self._beside(m, paths, table, f"path{level}")
            for k in range(LOOKUPS):
                above = Signal(name=f"above{level}_{k}")
                m.d.comb += above.eq(splitters[k] < codes[k])
                paths[k] = Cat(above, paths[k])
        self._count_on(m, codes, paths)
        return m

    def _count_on(self, m: Module, codes: list[Any], buckets: list[Any]) -> None:
        """Find the words of codes."""
        plain = [{"first": number, "shift": ONE_WORD} for number in range(self.params.buckets)]
        row: Any = signal_of(row_layout())
        m.d.comb += [
            row.first.eq(Mux(self.several, self.row.first, self.number)),
            row.shift.eq(Mux(self.several, self.row.shift, ONE_WORD)),
        ]
        table = _Table(row_layout(), plain, self.number, row, self.load)
        rows = self._look_up(m, "rows", table, buckets)
        codes = self._beside(m, codes, table, "code")
        for k, (code, row) in enumerate(zip(codes, rows, strict=True)):
            first = self._behind(m, row.first, f"first{k}")
            # By eights as the row is read, and the rest of the way before it is added.
            eights, ones = row.shift[3:], self._behind(m, row.shift[:3], f"shift{k}")
            part = self._behind(m, code >> (eights << 3), f"part{k}")
            m.d.sync += self.words[k].eq(first + (part >> ones)[:COUNT_BITS])

    def _look_up(self, m: Module, name: str, table: _Table, paths: list[Any]) -> list[Any]:
        """Read a table for each lookup: a cycle later, or two where it :func:`is_slow`."""
        if len(table.init) == 1:
            return [self._only(m, name, table)] * LOOKUPS
        later = [payload_of(table.shape, name=f"{name}_{k}") for k in range(LOOKUPS)]
        if is_slow(len(table.init)):
            found = self._read(m, name, table, paths, "sync")
        else:
            # The lowest bit of a path comes last in a cycle, from a comparison. The two rows from
            # which it chooses are read meanwhile.
            rest = [path[1:] for path in paths]
            halves = [
                self._read(m, f"{name}_{bit}", table.half(bit), rest, "comb") for bit in range(2)
            ]
            found = [
                Mux(path[0], Value.cast(odd), Value.cast(even))
                for path, even, odd in zip(paths, *halves, strict=True)
            ]
        m.d.sync += [row.eq(data) for row, data in zip(later, found, strict=True)]
        return later

    def _read(
        self, m: Module, name: str, table: _Table, paths: list[Any], domain: str
    ) -> list[Any]:
        """Read a memory for each lookup; nothing is looked up while it is written.

        So the first read has its address from the write: two ports are enough, of one block RAM.
        """
        if len(table.init) == 1:
            return [self._only(m, name, table)] * LOOKUPS
        style = RAM_STYLES["bram" if domain == "sync" else "lutram"]
        memory: Any = Memory(
            shape=table.shape,
            depth=len(table.init),
            init=table.init,
            attrs={"ram_style": style},
        )
        m.submodules[name] = memory
        write = memory.write_port()
        reads = [memory.read_port(domain=domain) for _ in paths]
        shared = Signal(len(write.addr))
        m.d.comb += [
            shared.eq(Mux(self.load, table.number, paths[0])),
            write.addr.eq(shared),
            write.data.eq(table.value),
            write.en.eq(table.is_mine),
            reads[0].addr.eq(shared),
            *(read.addr.eq(path) for read, path in zip(reads[1:], paths[1:], strict=True)),
        ]
        return [read.data for read in reads]

    def _only(self, m: Module, name: str, table: _Table) -> Any:
        """Return the register of a table of one row."""
        row = Signal(table.shape, init=table.init[0], reset_less=True, name=name)
        with m.If(table.is_mine):
            m.d.sync += row.eq(table.value)
        return row

    def _beside(self, m: Module, values: list[Any], table: _Table, name: str) -> list[Any]:
        """Return values as late as what is read of a table."""
        for stage in range(2 if is_slow(len(table.init)) else 1):
            values = [self._behind(m, each, f"{name}_{stage}") for each in values]
        return values

    @staticmethod
    def _behind(m: Module, value: Any, name: str) -> Any:
        later = payload_of(len(value), name=name)
        m.d.sync += later.eq(value)
        return later
