"""How far an arrival has to read, found before its turn: the spreads of its buckets in a pipeline.

What an arrival reads depends on the spreads of its buckets, which earlier arrivals may raise. So
spreads are read ahead, in the order of arrival, by a pipeline that never stops; and whenever a
spread is raised, the errands behind that have read it are marked as stale. Where one of these would
be the next to be carried out, and where a round ends, all errands are planned anew.
"""

from functools import reduce
from operator import or_
from typing import Any

from amaranth.hdl import Array, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.index.layouts import (
    ROUND_BITS,
    bank_bits,
    errand_layout,
    planned_layout,
    row_bits,
    spread_layout,
    touches,
    word_bits,
)
from streamjoin_hw.rtl.memory import memory_of
from streamjoin_hw.rtl.streams import Component, View, payload_of, registers_of, signal_of

AHEAD = 10
"""Errands that are planned and not yet begun: those in the pipeline, and a few to choose from."""


class Planner(Component):
    """The errands that wait for an index, and how far each of them reads.

    Parameters
    ----------
    params : DesignParams
        The design.
    depth : int
        Errands for which there is room, a power of two.

    Members
    -------
    clear : In(1)
        Forget all errands.
    put : In(1), errand : In(errand_layout(params))
        Add an errand; only if there is room.
    retired : In(2)
        So many of the oldest have been carried out: their room is free.
    restart : In(1)
        Plan all anew; in this cycle none may be carried out.
    has_first, has_second : Out(1), first, second : Out(planned_layout(params))
        The oldest errand that has not begun and the one behind it.
    take_first, take_both : In(1)
        One begins, or both; only if shown, and not while ``raised``.
    round : In(ROUND_BITS)
        The round of the index; ``restart`` in the cycle in which it ends.
    stretch : In(1), bucket : In(word_bits(params)), spread : In(spread_layout(params))
        Set a bucket's spread.
    raised : In(1)
        It is more than before: mark the errands for which it has been read.
    sweep : In(1), swept : In(row_bits(params))
        Set the spreads of a row to none.
    """

    clear: Signal
    put: Signal
    errand: View
    retired: Signal
    restart: Signal
    has_first: Signal
    has_second: Signal
    first: View
    second: View
    take_first: Signal
    take_both: Signal
    round: Signal
    stretch: Signal
    bucket: Signal
    spread: View
    raised: Signal
    sweep: Signal
    swept: Signal

    def __init__(self, params: DesignParams, depth: int) -> None:
        self.params = params
        self.depth = depth
        # An errand of more buckets than these takes more than a cycle.
        self.banks = 2 * params.ways
        planned, bits = planned_layout(params), word_bits(params)
        super().__init__(
            {
                **{name: In(1) for name in ("clear", "put", "restart", "take_first", "take_both")},
                "errand": In(errand_layout(params)),
                "retired": In(2),
                **{name: Out(1) for name in ("has_first", "has_second")},
                **{name: Out(planned) for name in ("first", "second")},
                "round": In(ROUND_BITS),
                "stretch": In(1),
                "bucket": In(bits),
                "spread": In(spread_layout(params)),
                "raised": In(1),
                "sweep": In(1),
                "swept": In(row_bits(params)),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the queue, the pipeline behind it and what is shown."""
        m = Module()
        restarts = Signal()
        m.d.comb += restarts.eq(self.restart | self.clear)
        row = self._fetch(m, restarts)
        spreads = self._read(m, row["word"])
        row = self._behind(m, row, restarts, "read")
        if not self._is_fast:
            row = self._behind(m, row, restarts, "held")
            spreads = [self._later(m, spread) for spread in spreads]
        row, counts = self._count(m, row, spreads, restarts)
        row, ends = self._end(m, row, counts, restarts)
        row, ends = self._join(m, row, ends, restarts)
        counts[:] = [self._later(m, count) for count in counts]
        self._show(m, *self._plan(m, row, ends, counts), restarts)
        return m

    @property
    def _is_fast(self) -> bool:
        """Whether spreads lie in memories of LUTs, which block RAM need not be waited for."""
        return self.params.buckets // self.banks <= 128

    @property
    def _bank_bits(self) -> int:
        """Lowest bits of a bucket's number, which say in which bank its spread is."""
        return self.banks.bit_length() - 1

    def _row_layout(self) -> data.StructLayout:
        """Layout of buckets that are planned at a time: one of each bank, or fewer."""
        bits = word_bits(self.params)
        return data.StructLayout(
            {
                **dict.fromkeys(("valid", "last", "stores", "looks", "stale"), 1),
                **dict.fromkeys(("home", "word", "offset", "extent", "until"), bits),
            }
        )

    def _fetch(self, m: Module, restarts: Signal) -> View:
        """Keep errands until they are carried out; give a row of buckets of one in a cycle."""
        params, layout = self.params, errand_layout(self.params)
        bits = word_bits(params)
        memory: Any = memory_of("lutram", layout, self.depth)
        m.submodules.errands = memory
        write, read = memory.write_port(), memory.read_port(domain="comb")
        # An errand is kept a cycle after it came, and may be the next one in that cycle.
        newest = payload_of(layout)
        has_newest = Signal()
        is_newest = Signal()
        # Of the cycle before; none is carried out in a cycle in which all is planned anew.
        was_retired = Signal(2)
        # A bit more than an address: a full memory is not an empty one.
        end, fetch, begin = (
            Signal(range(2 * self.depth), name=name) for name in ("end", "fetch", "begin")
        )
        # Verilog has no wires of no bits: the fewest buckets are a single row.
        ahead = Signal(range(AHEAD + 1))
        left = payload_of(max(1, bits - self._bank_bits))
        row: View = registers_of(self._row_layout(), "valid", name="row")
        loads = Signal()
        ends = Signal()
        m.d.comb += [
            write.addr.eq(end),
            write.data.eq(newest),
            write.en.eq(has_newest),
            read.addr.eq(fetch),
            is_newest.eq(fetch == end),
            ends.eq(left == 0),
            row.last.eq(ends),
            loads.eq((~is_newest | has_newest) & (~row.valid | ends) & (ahead != AHEAD)),
        ]
        taken = self.take_first | (self.take_both << 1)
        m.d.sync += [
            newest.eq(self.errand),
            has_newest.eq(self.put & ~self.clear),
            end.eq(end + has_newest),
            was_retired.eq(self.retired),
            begin.eq(begin + was_retired),
            fetch.eq(fetch + loads),
            ahead.eq(ahead + loads - taken),
            row.word.eq(row.word + self.banks),
            row.offset.eq(row.offset + self.banks),
            row.stale.eq(self._is_stale(row)),
            left.eq(left - 1),
        ]
        with m.If(loads):
            one = layout(Mux(is_newest, newest.as_value(), read.data.as_value()))
            m.d.sync += [
                row.valid.eq(1),
                row.stores.eq(one.stores),
                row.looks.eq(one.looks),
                row.home.eq(one.word),
                row.word.eq(one.word),
                row.offset.eq(0),
                row.stale.eq(0),
                row.extent.eq(Mux(one.stores, 0, one.extent)),
                row.until.eq(Mux(one.stores, one.word, one.until)),
                left.eq(Mux(one.stores | ~one.looks, 0, one.extent[self._bank_bits :])),
            ]
        with m.Elif(ends):
            m.d.sync += row.valid.eq(0)
        with m.If(restarts):
            m.d.sync += [row.valid.eq(0), ahead.eq(0), fetch.eq(begin + was_retired)]
        with m.If(self.clear):
            m.d.sync += [each.eq(0) for each in (end, fetch, begin, was_retired)]
        return row

    def _read(self, m: Module, word: Value) -> list[Any]:
        """Build the spreads of the banks; return those of a word and the next ones, a cycle on."""
        params, layout = self.params, spread_layout(self.params)
        spreads = []
        depth, low = max(2, params.buckets // self.banks), self._bank_bits
        for bank in range(self.banks):
            # The first of this bank that is not in front of the word.
            row = (word + (self.banks - 1 - bank))[low : word_bits(params)]
            memory: Any = (
                memory_of("lutram", layout, depth)
                if self._is_fast
                else Memory(shape=layout, depth=depth, init=[])
            )
            m.submodules[f"spread{bank}"] = memory
            write, read = memory.write_port(), memory.read_port()
            mine = self.stretch & (self.bucket[:low] == bank)
            m.d.comb += [
                read.addr.eq(row),
                write.addr.eq(Mux(self.sweep, self.swept, self.bucket[low:])),
                write.data.eq(Mux(self.sweep, 0, self.spread.as_value())),
                write.en.eq(self.sweep | mine),
            ]
            spreads.append(read.data)
        return spreads

    def _count(
        self, m: Module, row: View, spreads: list[Any], restarts: Signal
    ) -> tuple[View, list[Any]]:
        """Say how far the tuples of this round lie, and of the one before: in order of words."""
        params = self.params
        layout = data.StructLayout(
            dict.fromkeys(("now", "before", "hint", "start"), word_bits(params))
        )
        by_bank = Array([spread.as_value() for spread in spreads])
        counts = []
        for which in range(self.banks):
            count = payload_of(layout, name=f"count{which}")
            bank = (row["home"][: self._bank_bits] + which)[: self._bank_bits]
            spread: Any = signal_of(spread_layout(params), name=f"spread_{which}")
            is_same = spread.round == self.round
            is_last = (spread.round + 1)[:ROUND_BITS] == self.round
            latest = spread.latest & ~(params.ways - 1)
            hint = Mux(latest > params.ways, latest, 0)
            m.d.comb += spread.eq(by_bank[bank])
            m.d.sync += [
                count.now.eq(Mux(is_same, spread.now, 0)),
                count.before.eq(Mux(is_same, spread.before, Mux(is_last, spread.now, 0))),
                count.hint.eq(hint),
                count.start.eq(Mux(is_same, hint, 0)),
            ]
            counts.append(count)
        return self._behind(m, row, restarts, "counted"), counts

    def _end(
        self, m: Module, row: View, counts: list[Any], restarts: Signal
    ) -> tuple[View, list[Any]]:
        """Say how far behind the first bucket the tuples of each one lie."""
        bits, ends = word_bits(self.params), []
        for which, count in enumerate(counts):
            end: Any = payload_of(bits, name=f"end{which}")
            bucket = row["offset"] | which
            reach = Mux(count.now > count.before, count.now, count.before)
            last = bucket + reach
            m.d.sync += end.eq(
                Mux(bucket <= row["extent"], Mux(last[bits], ~0, last[:bits])[:bits], 0)
            )
            ends.append(end)
        at: Any = payload_of(bits, name="at")
        m.d.sync += at.eq(row["home"] + counts[0].start)
        first = self._later(m, counts[0])
        # Most of what the round before reached is taken over, so that it is not raised again.
        kept = counts[0].before - (counts[0].before >> 2)
        m.d.sync += first.now.eq(Mux(counts[0].now > kept, counts[0].now, kept))
        counts[:] = [at, first]
        return self._behind(m, row, restarts, "ended"), ends

    def _join(
        self, m: Module, row: View, ends: list[Any], restarts: Signal
    ) -> tuple[View, list[Any]]:
        """Keep the furthest two of the ends."""
        while len(ends) > 2:
            ends = [Mux(a > b, a, b) for a, b in zip(ends[::2], ends[1::2], strict=True)]
        tops = [payload_of(word_bits(self.params), name=f"top{k}") for k in range(len(ends))]
        m.d.sync += [top.eq(end) for top, end in zip(tops, ends, strict=True)]
        return self._behind(m, row, restarts, "joined"), tops

    def _plan(self, m: Module, row: View, ends: list[Any], counts: list[Any]) -> tuple[Value, View]:
        """Take the furthest of all rows; return whether an errand is planned, and how."""
        at, first = counts
        planned: Any = signal_of(planned_layout(self.params))
        before = payload_of(word_bits(self.params))
        furthest = Signal(word_bits(self.params))
        one, other = ends
        more = reduce(or_, (end[bank_bits(self.params) :] for end in (one, other, before)))
        # All three are compared at a time.
        is_one, is_first, is_second = one > other, one > before, other > before
        m.d.comb += [
            planned.short.eq(~row["looks"] | ~more.any()),
            furthest.eq(
                Mux(is_one, Mux(is_first, one, before), Mux(is_second, other, before)),
            ),
            planned.stores.eq(row["stores"]),
            planned.looks.eq(row["looks"]),
            planned.stale.eq(self._is_stale(row)),
            planned.word.eq(row["home"]),
            planned.until.eq(row["until"]),
            planned.rows.eq(furthest[bank_bits(self.params) :]),
            planned.at.eq(at),
            *(planned[name].eq(first[name]) for name in ("start", "hint", "now", "before")),
        ]
        m.d.sync += before.eq(Mux(row["valid"] & ~row["last"], furthest, 0))
        return row["valid"] & row["last"], planned

    def _show(self, m: Module, is_planned: Value, planned: View, restarts: Signal) -> None:
        """Keep what is planned in registers, the oldest first."""
        is_kept = Signal(AHEAD)
        entries = [payload_of(planned_layout(self.params), name=f"next{k}") for k in range(AHEAD)]
        stays = Signal(AHEAD)
        m.d.comb += [
            self.has_first.eq(is_kept[0]),
            self.has_second.eq(is_kept[1]),
            self.first.eq(entries[0]),
            self.second.eq(entries[1]),
            stays.eq(Mux(self.take_both, is_kept[2:], Mux(self.take_first, is_kept[1:], is_kept))),
        ]
        for k, entry in enumerate(entries):
            is_next = ~stays[k] & (stays[k - 1] if k else 1)
            behind = [entries[min(k + n, AHEAD - 1)].as_value() for n in range(3)]
            moved = Mux(self.take_both, behind[2], Mux(self.take_first, behind[1], behind[0]))
            m.d.sync += [
                entry.eq(Mux(stays[k], moved, planned.as_value())),
                is_kept[k].eq((stays[k] | (is_next & is_planned)) & ~restarts),
            ]
            # None is taken in this cycle.
            is_hit = touches(self.bucket, entry.word, entry.until)
            with m.If(self.raised & is_kept[k] & is_hit):
                m.d.sync += entry.stale.eq(1)

    def _behind(self, m: Module, row: View, restarts: Signal, name: str) -> View:
        """Return a row a cycle later, unless all is planned anew."""
        later: View = registers_of(self._row_layout(), "valid", name=name)
        m.d.sync += [
            later.eq(row),
            later.valid.eq(row["valid"] & ~restarts),
            later.stale.eq(self._is_stale(row)),
        ]
        return later

    def _is_stale(self, row: View) -> Value:
        """Return whether a spread has been raised that was read for a row, or is in this cycle."""
        is_hit = touches(self.bucket, row["home"], row["until"])
        stale: Value = row["stale"] | (self.raised & is_hit)
        return stale

    @staticmethod
    def _later(m: Module, value: Any) -> Any:
        after = payload_of(value.shape(), name="later")
        m.d.sync += after.eq(value)
        return after
