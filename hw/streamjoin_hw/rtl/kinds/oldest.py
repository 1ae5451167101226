"""Results of one arrival after the other become results by arrival of the earlier tuple, too.

Rows get their slots in the order of arrival, so that a slot's distance from the oldest one of its
ring is the row's age. The earlier tuples of an arrival's results are collected as one bit each,
a group of slots in a word, and read back from the oldest group to the newest. Two arrivals' bits
are kept: one is collected while the other is read. However many results an arrival has, no two
have the same bit. A result that is alone passes.
"""

from typing import Any, NamedTuple

from amaranth.hdl import Array, Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import SIDE_R, SIDE_S, SWEPT_ROWS, DesignParams
from streamjoin_hw.rtl.kinds.rows import GROUP_BITS, group_bits, slot_bits
from streamjoin_hw.rtl.memory import memory_of
from streamjoin_hw.rtl.streams import (
    Component,
    PipeReg,
    View,
    payload_of,
    registers_of,
    result_layout,
    signal_of,
)

TICKETS = 4
"""Arrivals whose results wait to be read."""


def lowest_of(m: Module, bits: Value, name: str) -> Signal:
    """Return the number of the lowest 1; any where there is none."""
    number = Signal(range(max(2, len(bits))), name=name)
    for index in reversed(range(len(bits))):
        with m.If(bits[index]):
            m.d.comb += number.eq(index)
    return number


def lowest_of_many(m: Module, bits: Signal, name: str) -> Signal:
    """Return the same of many bits: first the part in which it is."""
    parts = [bits[first : first + SWEPT_ROWS] for first in range(0, len(bits), SWEPT_ROWS)]
    part = lowest_of(m, Cat(*(each.any() for each in parts)), f"{name}_part")
    chosen = Signal(SWEPT_ROWS, name=f"{name}_bits")
    m.d.comb += chosen.eq(Array(parts)[part])
    number = Signal(range(len(bits)), name=name)
    m.d.comb += number.eq(Cat(lowest_of(m, chosen, f"{name}_within"), part))
    return number


class OldestFirst(Component):
    """Puts the results of each arrival in the order of arrival of what it met.

    Throughput 1 result a cycle, less some cycles for each arrival that has several. The results of
    an arrival are given once those of the next one come, or none can follow.

    Parameters
    ----------
    params : DesignParams
        The design, as the user chose it.

    Members
    -------
    i : In(stream.Signature(result_layout(params.array)))
        Grouped by the later tuple; payloads are slots.
    whole : In(1)
        No result of the arrival follows of which the last one came.
    starts : In(ArrayLayout(group_bits(params), 2))
        The oldest group of R's and of S's ring.
    o : Out(stream.Signature(result_layout(params.array)))
    busy : Out(1)
        A result is inside.
    """

    i: stream.Interface
    whole: Signal
    starts: View
    o: stream.Interface
    busy: Signal

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        layout = result_layout(params.array)
        slots = slot_bits(params)
        # Who came later and whose results these are; where the earlier one's ring begins.
        self.arrival = data.StructLayout(
            {"side": 1, "later": slots, "earlier": slots, "start": group_bits(params)}
        )
        super().__init__(
            {
                "i": In(stream.Signature(layout)),
                "whole": In(1),
                "starts": In(data.ArrayLayout(group_bits(params), 2)),
                "o": Out(stream.Signature(layout)),
                "busy": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build what collects bits and what reads them."""
        m = Module()
        params = self.params
        groups, bits = params.kept_rows // SWEPT_ROWS, group_bits(params)
        memory: Any = memory_of(params.window_memory, SWEPT_ROWS, 2 << bits)
        m.submodules.memory = memory
        m.submodules.tickets = tickets = SyncFIFOBuffered(
            width=self.arrival.size + 2, depth=TICKETS
        )
        w = _Wires(memory, tickets, [Signal(groups, name=f"touched{k}") for k in (0, 1)], Signal(2))
        collecting = self._collect(m, w)
        reading = self._read(m, w)
        m.d.comb += self.busy.eq(collecting.held | collecting.valid | tickets.r_rdy | reading)
        return m

    def _collect(self, m: Module, w: "_Wires") -> Any:
        """Keep the last result, and set the bit of the one before if both are of one arrival."""
        bits = group_bits(self.params)
        groups = self.params.kept_rows // SWEPT_ROWS
        came, kept = signal_of(self.arrival, name="came"), payload_of(self.arrival, name="kept")
        later_is_s = self.i.p.side == SIDE_S
        payloads = (self.i.p.r_payload, self.i.p.s_payload)
        m.d.comb += [
            came.side.eq(self.i.p.side),
            came.later.eq(Mux(later_is_s, payloads[SIDE_S], payloads[SIDE_R])),
            came.earlier.eq(Mux(later_is_s, payloads[SIDE_R], payloads[SIDE_S])),
            came.start.eq(Mux(later_is_s, self.starts[SIDE_R], self.starts[SIDE_S])),
        ]
        at = registers_of(
            data.StructLayout(
                {"held": 1, "valid": 1, "buffer": 1, "group": bits, "row": GROUP_BITS}
            ),
            "held",
            "valid",
            "buffer",
            name="at",
        )
        several = Signal()
        fill = Signal()
        same = Signal()
        ends = Signal()
        sets = Signal()
        m.d.comb += [
            same.eq((came.side == kept.side) & (came.later == kept.later)),
            ends.eq(at.held & w.tickets.w_rdy & Mux(self.i.valid, ~same, self.whole)),
            self.i.ready.eq(~at.held | ends | (same & (several | ~w.used.bit_select(fill, 1)))),
            sets.eq(at.held & Mux(ends, several, self.i.valid & self.i.ready)),
            w.tickets.w_en.eq(ends),
            w.tickets.w_data.eq(Cat(several, fill, kept)),
        ]
        with m.If(self.i.valid & self.i.ready):
            m.d.sync += [kept.eq(came), at.held.eq(1)]
            # The ring may begin elsewhere by the next result of the same arrival.
            with m.If(at.held & same):
                m.d.sync += kept.start.eq(kept.start)
        with m.Elif(ends):
            m.d.sync += at.held.eq(0)
        with m.If(ends):
            m.d.sync += [several.eq(0), fill.eq(fill ^ several)]
        with m.Elif(sets):
            m.d.sync += [several.eq(1), w.used.eq(w.used | (1 << fill)[:2])]
        # The bit is set in the next cycle, when the group's others have been read.
        group = kept.earlier[GROUP_BITS:]
        age = Mux(group >= kept.start, group - kept.start, group + groups - kept.start)[:bits]
        write = w.memory.write_port()
        others = w.memory.read_port(transparent_for=(write,))
        m.d.sync += [
            at.valid.eq(sets),
            at.buffer.eq(fill),
            at.group.eq(age),
            at.row.eq(kept.earlier[:GROUP_BITS]),
        ]
        has_others = Mux(
            at.buffer, w.touched[1].bit_select(at.group, 1), w.touched[0].bit_select(at.group, 1)
        )
        row = Cat(at.row == number for number in range(SWEPT_ROWS))
        m.d.comb += [
            others.addr.eq(Cat(age, fill)),
            write.addr.eq(Cat(at.group, at.buffer)),
            write.data.eq(Mux(has_others, others.data, 0) | row),
            write.en.eq(at.valid),
        ]
        for buffer in (0, 1):
            with m.If(at.valid & (at.buffer == buffer)):
                m.d.sync += w.touched[buffer].bit_select(at.group, 1).eq(1)
        return at

    def _read(self, m: Module, w: "_Wires") -> Value:
        """Read the bits of the arrivals that are whole; return whether a result is inside."""
        params = self.params
        bits, groups = group_bits(params), params.kept_rows // SWEPT_ROWS
        several, buffer = w.tickets.r_data[0], w.tickets.r_data[1]
        ticket = data.View(self.arrival, w.tickets.r_data[2:])
        now = registers_of(
            data.StructLayout(
                {"valid": 1, "several": 1, "fresh": 1, "group": bits, "arrival": self.arrival}
            ),
            "valid",
            name="now",
        )
        rest = payload_of(SWEPT_ROWS)
        left = Signal(groups)
        m.d.comb += left.eq(Mux(buffer, w.touched[1], w.touched[0]))
        first = lowest_of_many(m, left, "first")
        is_last_group = (left & (left - 1))[:groups] == 0
        read = w.memory.read_port()
        row_bits = Signal(SWEPT_ROWS)
        after = Signal(SWEPT_ROWS)
        takes = Signal()
        free = Signal()
        done = Signal()
        m.submodules.output = output = PipeReg(result_layout(params.array))
        wiring.connect(m, output.o, wiring.flipped(self.o))
        m.d.comb += [
            row_bits.eq(Mux(now.fresh, read.data, rest)),
            after.eq(row_bits & (row_bits - 1)),
            done.eq(~now.several | (after == 0)),
            free.eq(~now.valid | (output.i.ready & done)),
            # A ticket takes two cycles, the last bit of its arrival one.
            takes.eq(w.tickets.r_rdy & free),
            w.tickets.r_en.eq(takes & (~several | is_last_group)),
            read.addr.eq(Cat(first, buffer)),
            read.en.eq(takes),
        ]
        with m.If(takes):
            m.d.sync += [
                now.several.eq(several),
                now.fresh.eq(1),
                now.group.eq(first),
                now.arrival.eq(ticket),
            ]
            for number in (0, 1):
                with m.If(several & (buffer == number)):
                    m.d.sync += w.touched[number].bit_select(first, 1).eq(0)
                    with m.If(is_last_group):
                        m.d.sync += w.used[number].eq(0)
        with m.Elif(output.i.ready):
            m.d.sync += now.fresh.eq(0)
        with m.If(output.i.ready & now.valid):
            m.d.sync += rest.eq(after)
        m.d.sync += now.valid.eq(takes | (now.valid & ~free))
        # From the age back to the slot.
        moved = Signal(range(2 * groups))
        m.d.comb += moved.eq(now.group + now.arrival.start)
        group = Mux(moved >= groups, moved - groups, moved)[:bits]
        row = lowest_of(m, row_bits, "row")
        slot = Mux(now.several, Cat(row, group), now.arrival.earlier)
        is_s = now.arrival.side == SIDE_S
        m.d.comb += [
            output.i.valid.eq(now.valid),
            output.i.p.side.eq(now.arrival.side),
            output.i.p.r_payload.eq(Mux(is_s, slot, now.arrival.later)),
            output.i.p.s_payload.eq(Mux(is_s, now.arrival.later, slot)),
        ]
        inside: Value = now.valid | output.busy
        return inside


class _Wires(NamedTuple):
    """What collects and what reads share.

    Attributes
    ----------
    memory, tickets
        Bits, an arrival's in a half; arrivals that are whole.
    touched : list of Signal
        Groups of slots of which a bit is set, of either half.
    used : Signal
        Halves that are collected or read.
    """

    memory: Any
    tickets: Any
    touched: list[Signal]
    used: Signal
