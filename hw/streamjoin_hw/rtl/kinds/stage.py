"""Kinds of join behind any array of cores: payloads are looked up, and marks say who met another.

The array joins rows that carry, instead of their payload, the slot of a ring in which it is kept.
Of every pair that comes out both payloads are read, and with them one bit of each row: whether
it has been in a pair before. The bits are set, and once a row can meet no other one the sweep reads
its bit for the last time and gives the row alone if it is 0. How the array finds pairs does not
matter, so that all designs share this stage.

No array says when a tuple has met all it will. But an array that has nothing to do, while none
arrives, has given all results of the tuples that have: of those only the last ``window`` rows of
each stream can still meet others. This state is awaited when a ring is full; it is used
whenever it comes by itself. Without gaps at the input it is waited for once in ``kept_rows -
window`` rows of a stream.
"""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import (
    JOIN_KINDS,
    SIDE_R,
    SIDE_S,
    SWEPT_ROWS,
    WINDOW_BITS,
    DesignParams,
)
from streamjoin_hw.rtl.chain.sequencer import IN_FLIGHT_BITS, QUIET_CYCLES
from streamjoin_hw.rtl.kinds.rows import GROUP_BITS, RowRing, group_bits, slot_bits
from streamjoin_hw.rtl.kinds.sweep import Sweep
from streamjoin_hw.rtl.memory import memory_of
from streamjoin_hw.rtl.streams import Component, View, payload_of, registers_of

KIND_BITS = 3
"""Bits of a kind's number."""


def row_result_layout(params: DesignParams) -> data.StructLayout:
    """Layout of what leaves: a result, or the ``star`` that ends a tuple's results.

    ``side`` is that of the later tuple of a pair, or of the row without a partner.
    """
    return data.StructLayout(
        {
            "r_payload": params.payload_bits,
            "s_payload": params.payload_bits,
            "side": 1,
            "star": 1,
            "r_missing": 1,
            "s_missing": 1,
        }
    )


class Marks(Component):
    """One bit a row, a group in a word: set by one that is a row's, cleared with its group.

    Members
    -------
    address : In(group_bits(params)), moves : In(1)
        The group that is looked at in the next cycle, if ``moves``; else the one of this cycle.
    row : In(GROUP_BITS)
        A row of the group of this cycle.
    met : Out(SWEPT_ROWS), was_met : Out(1)
        The marks of this cycle's group, and its row's, as they were before.
    marks, clears : In(1)
        Mark the row, clear the group; counts if ``moves``.
    empties : In(1), emptied : In(group_bits(params))
        Clear this group; nothing else is done meanwhile.
    """

    address: Signal
    moves: Signal
    row: Signal
    met: Signal
    was_met: Signal
    marks: Signal
    clears: Signal
    empties: Signal
    emptied: Signal

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        bits = group_bits(params)
        super().__init__(
            {
                **{name: In(1) for name in ("moves", "marks", "clears", "empties")},
                "address": In(bits),
                "emptied": In(bits),
                "row": In(GROUP_BITS),
                "met": Out(SWEPT_ROWS),
                "was_met": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the memory; what is written is seen by a read of the same cycle."""
        m = Module()
        params = self.params
        groups = params.kept_rows // SWEPT_ROWS
        m.submodules.memory = memory = memory_of(params.window_memory, SWEPT_ROWS, groups)
        write = memory.write_port()
        read = memory.read_port(transparent_for=(write,))
        shown = payload_of(group_bits(params))
        with m.If(self.moves):
            m.d.sync += shown.eq(self.address)
        marked = Cat(read.data[row] | (self.row == row) for row in range(SWEPT_ROWS))
        m.d.comb += [
            read.addr.eq(self.address),
            read.en.eq(self.moves),
            self.met.eq(read.data),
            self.was_met.eq(read.data.bit_select(self.row, 1)),
            write.addr.eq(Mux(self.empties, self.emptied, shown)),
            write.data.eq(Mux(self.empties | self.clears, 0, marked)),
            write.en.eq(self.empties | (self.moves & (self.marks | self.clears))),
        ]
        return m


def kind_setting(params: DesignParams) -> dict[str, wiring.Member]:
    """Return the port ``kind``, none for a design that gives the inner join alone."""
    return {"kind": In(KIND_BITS)} if params.decides_kinds else {}


class KindStage(Component):
    """Numbers rows in front of an array, and makes what it finds the results of a kind of join.

    Latency 1 cycle, throughput 1 result a cycle but for one that the sweep takes to look at
    ``SWEPT_ROWS`` rows: the memories have one port to read. Rows without partner take cycles that
    pairs leave, or any if there is no room. After a reset no tuple is accepted for ``kept_rows /
    SWEPT_ROWS`` cycles, in which all marks are cleared.

    Parameters
    ----------
    params : DesignParams
        The design, as the user chose it.

    Members
    -------
    clear : In(1), idle : In(1)
        Before every input; between two inputs: kind and windows are sampled.
    kind : In(KIND_BITS)
        A number of ``JOIN_KINDS``; others are as the first.
    window_r, window_s : In(WINDOW_BITS)
    taken, side : In(1), payload : In(params.payload_bits), slot : Out(slot_bits(params))
        A tuple is accepted in this cycle; what it carries from here on instead of its payload.
    starts : Out(ArrayLayout(group_bits(params), 2))
        The oldest group of the ring of R and of S.
    room : Out(1)
        Tuples may be accepted; from registers.
    passed, working : In(1)
        A tuple enters the array; the array is busy.
    draining : In(1)
        The last tuple has entered the array.
    results : In(stream.Signature(layout))
        What the array gives, with slots for payloads; with a ``star`` if ``layout`` has it.
    o : Out(stream.Signature(row_result_layout(params)))
        ``ready`` must be from a register.
    busy : Out(1)
        A row or result is inside.
    """

    clear: Signal
    idle: Signal
    kind: Signal
    window_r: Signal
    window_s: Signal
    taken: Signal
    side: Signal
    payload: Signal
    slot: Signal
    starts: View
    room: Signal
    passed: Signal
    working: Signal
    draining: Signal
    results: stream.Interface
    o: stream.Interface
    busy: Signal

    def __init__(self, params: DesignParams, layout: data.StructLayout) -> None:
        self.params = params
        self.layout = layout
        bits = ("clear", "idle", "taken", "side", "passed", "working", "draining")
        super().__init__(
            {
                **{name: In(1) for name in bits},
                "kind": In(KIND_BITS),
                "window_r": In(WINDOW_BITS),
                "window_s": In(WINDOW_BITS),
                "payload": In(params.payload_bits),
                "slot": Out(slot_bits(params)),
                "starts": Out(data.ArrayLayout(group_bits(params), 2)),
                "room": Out(1),
                "results": In(stream.Signature(layout)),
                "o": Out(stream.Signature(row_result_layout(params))),
                "busy": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the rings, the memories and the pipeline through them."""
        m = Module()
        params = self.params
        m.submodules.sweep = sweep = Sweep(params)
        rings, marks, payloads = [], [], []
        for name in "rs":
            m.submodules[f"ring_{name}"] = ring = RowRing(params)
            m.submodules[f"marks_{name}"] = mark = Marks(params)
            memory = memory_of(params.window_memory, params.payload_bits, params.kept_rows)
            m.submodules[f"payloads_{name}"] = memory
            rings.append(ring)
            marks.append(mark)
            payloads.append(memory)
        is_emptying = self._accept(m, rings, marks, payloads)
        settings = self._settings(m, rings)
        for side, ring in enumerate(rings):
            m.d.comb += [
                sweep.due[side].eq(ring.due),
                sweep.groups[side].eq(ring.group),
                sweep.lives[side].eq(ring.live),
                ring.swept.eq(sweep.swept[side]),
                self.starts[side].eq(ring.group),
            ]
        m.d.comb += [
            sweep.wants_r.eq(settings["left"] | settings["full"] | settings["anti"]),
            sweep.wants_s.eq(settings["right"] | settings["full"]),
        ]
        stage = self._give(m, sweep, marks, [each.read_port() for each in payloads], settings)
        m.d.comb += self.room.eq(rings[SIDE_R].room & rings[SIDE_S].room & ~is_emptying)
        m.d.sync += self.busy.eq(rings[SIDE_R].busy | rings[SIDE_S].busy | stage)
        return m

    def _settings(self, m: Module, rings: list[RowRing]) -> dict[str, Signal]:
        """Keep the windows and the kind of an input; return a bit for each kind but inner."""
        kinds = {name: Signal(name=f"is_{name}") for name in JOIN_KINDS[1:]}
        windows = [payload_of(WINDOW_BITS, name=f"kept_window_{name}") for name in "rs"]
        for ring, window, given in zip(rings, windows, (self.window_r, self.window_s), strict=True):
            m.d.comb += ring.window.eq(window)
            with m.If(self.idle):
                m.d.sync += window.eq(given)
        with m.If(self.idle):
            m.d.sync += [
                bit.eq(self.kind == number) for number, bit in enumerate(kinds.values(), 1)
            ]
        return kinds

    def _accept(
        self, m: Module, rings: list[RowRing], marks: list[Marks], payloads: list[Any]
    ) -> Signal:
        """Keep payloads, empty all marks after a reset, and see when results are all out."""
        in_flight = Signal(IN_FLIGHT_BITS)
        quiet = Signal(range(QUIET_CYCLES + 1))
        settles = Signal()
        m.d.sync += in_flight.eq(in_flight + self.taken - self.passed)
        with m.If(self.taken | (in_flight != 0) | self.working):
            m.d.sync += quiet.eq(0)
        with m.Elif(~settles):
            m.d.sync += quiet.eq(quiet + 1)
        m.d.comb += settles.eq(quiet == QUIET_CYCLES)
        is_emptying = Signal(init=1)
        emptied = Signal(group_bits(self.params))
        with m.If(is_emptying):
            m.d.sync += emptied.eq(emptied + 1)
            with m.If(emptied == self.params.kept_rows // SWEPT_ROWS - 1):
                m.d.sync += is_emptying.eq(0)
        m.d.comb += self.slot.eq(Mux(self.side == SIDE_S, rings[SIDE_S].slot, rings[SIDE_R].slot))
        for side, (ring, mark, memory) in enumerate(zip(rings, marks, payloads, strict=True)):
            write = memory.write_port()
            m.d.comb += [
                ring.clear.eq(self.clear),
                ring.arrives.eq(self.taken & (self.side == side)),
                ring.settles.eq(settles),
                ring.ends.eq(self.draining),
                write.addr.eq(ring.slot),
                write.data.eq(self.payload),
                write.en.eq(ring.arrives),
                mark.empties.eq(is_emptying),
                mark.emptied.eq(emptied),
            ]
        return is_emptying

    def _give(
        self,
        m: Module,
        sweep: Sweep,
        marks: list[Marks],
        reads: list[Any],
        kinds: dict[str, Signal],
    ) -> Value:
        """Look up what a result or the sweep asks for; return whether it is being given."""
        found, asks = self.results, sweep.asks
        has_star = "star" in self.layout.members
        star = found.p.star if has_star else 0
        moves = self.o.ready
        first = Signal()
        takes = Signal()
        m.d.comb += [
            # A look is for many rows, and what is given while there is no room makes some.
            first.eq(asks.loads | (asks.lone & ~self.room)),
            takes.eq(found.valid & ~first),
            found.ready.eq(moves & ~first),
            sweep.free.eq(moves & ~takes),
        ]
        at = registers_of(
            data.StructLayout(
                {
                    **dict.fromkeys(("pair", "star", "loads", "lone", "side"), 1),
                    "rows": data.ArrayLayout(GROUP_BITS, 2),
                }
            ),
            "pair",
            "star",
            "loads",
            "lone",
            name="at",
        )
        with m.If(moves):
            m.d.sync += [
                at.pair.eq(takes & ~star),
                at.star.eq(takes & star),
                at.loads.eq(asks.loads),
                at.lone.eq(asks.lone & ~takes),
                at.side.eq(Mux(takes, found.p.side, asks.side)),
            ]
        for side, name in ((SIDE_R, "r_payload"), (SIDE_S, "s_payload")):
            mark, read = marks[side], reads[side]
            found_slot = found.p[name][: slot_bits(self.params)]
            slot = Mux(takes, found_slot, Cat(asks.row, asks.group))
            with m.If(moves):
                m.d.sync += at.rows[side].eq(found_slot[:GROUP_BITS])
            m.d.comb += [
                read.addr.eq(slot),
                read.en.eq(moves),
                mark.address.eq(slot[GROUP_BITS:]),
                mark.moves.eq(moves),
                mark.row.eq(at.rows[side]),
                mark.marks.eq(at.pair),
                mark.clears.eq(at.loads & (at.side == side)),
                self.o.p[name].eq(Mux(at.star | (at.lone & (at.side != side)), 0, read.data)),
            ]
        counts = ~kinds["semi"] | ~marks[SIDE_R].was_met
        m.d.comb += [
            sweep.loaded.eq(at.loads & moves),
            sweep.met.eq(Mux(at.side == SIDE_S, marks[SIDE_S].met, marks[SIDE_R].met)),
            self.o.valid.eq(at.star | at.lone | (at.pair & counts & ~kinds["anti"])),
            self.o.p.side.eq(at.side),
            self.o.p.star.eq(at.star),
            self.o.p.r_missing.eq(at.lone & (at.side == SIDE_S)),
            self.o.p.s_missing.eq(at.lone & (at.side == SIDE_R)),
        ]
        return Cat(at.pair, at.star, at.loads, at.lone).any()
