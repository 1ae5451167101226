"""One join core: two segments, ``lanes`` comparators a side, a result FIFO.

Handshake join (Teubner and Mueller, SIGMOD 2011, sections 4.1 and 6.2): in a step all tuples of
one side move one slot on; the tuple that enters a core is compared with the core's whole
segment of the other side (immediate scan). Timing, in cycles after the registered command:

====  ==========================================================================================
0     ``step``: the tuple is written into its ring. ``scan``: a word's address goes to memory
1     the word is compared with the tuple that entered last
2     the match mask is registered; a word with a match goes into the result FIFO
3     the FIFO's level shows it
====  ==========================================================================================
"""

from amaranth.hdl import Assert, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from streamjoin_hw.contract import HOLD_WORDS, SIDE_R, SIDE_S, DesignParams
from streamjoin_hw.predicates import matches
from streamjoin_hw.streams import (
    Component,
    View,
    r_layout,
    result_layout,
    s_layout,
    signal_of,
    slot_layout,
)
from streamjoin_hw.window import SegmentRing, position_layout, word_bits


def core_bits(params: DesignParams) -> int:
    """Bits of a core's number and of a count of cores."""
    return bits_for(params.cores)


def command_layout(params: DesignParams) -> data.StructLayout:
    """Layout of what the sequencer tells all cores every cycle.

    ``step_r``, ``step_s``: move that side by one slot. ``scan``, ``scan_word``: compare this
    word of the segment opposite to the tuple of the last step. ``clear``: empty everything.
    """
    return data.StructLayout(
        {"step_r": 1, "step_s": 1, "scan": 1, "scan_word": word_bits(params), "clear": 1}
    )


def plan_layout(params: DesignParams) -> data.StructLayout:
    """Layout of how the windows are cut into segments, constant during an input.

    ``active`` cores take part. For each side the first ``longer_<side>`` of them hold one tuple
    more than the others; ``last_<side>`` is the last slot of a shorter segment,
    ``last_longer_<side>`` that of a longer one.
    """
    members: dict[str, data.StructLayout | int] = {"active": core_bits(params)}
    for side in "rs":
        members[f"longer_{side}"] = core_bits(params)
        members[f"last_{side}"] = position_layout(params)
        members[f"last_longer_{side}"] = position_layout(params)
    return data.StructLayout(members)


def word_layout(params: DesignParams) -> data.StructLayout:
    """Layout of a result FIFO word: the probing tuple's payload and side, and what it met."""
    return data.StructLayout(
        {
            "side": 1,
            "probe": params.payload_bits,
            "mask": params.lanes,
            "payloads": data.ArrayLayout(params.payload_bits, params.lanes),
        }
    )


def core_members(params: DesignParams) -> dict[str, wiring.Member]:
    """Ports of a core, the same for the component and for its instance in Verilog."""
    r_slot, s_slot = slot_layout(r_layout(params)), slot_layout(s_layout(params))
    return {
        "index": In(core_bits(params)),
        "plan": In(plan_layout(params)),
        "command": In(command_layout(params)),
        "r_left": In(r_slot),
        "r_oldest": Out(r_slot),
        "s_right": In(s_slot),
        "s_entry": In(s_slot),
        "s_oldest": Out(s_slot),
        "results": Out(stream.Signature(result_layout(params))),
        "hold": Out(1),
        "busy": Out(1),
    }


class Serialiser(Component):
    """Turn words of a result FIFO into single results, lowest lane first.

    Throughput one result a cycle, also from one word to the next.

    Members
    -------
    word : In(word_layout(params)), word_valid : In(1), word_taken : Out(1)
        Head of the FIFO.
    results : Out(stream.Signature(result_layout(params)))
    busy : Out(1)
        A result is inside.
    """

    word: View
    word_valid: Signal
    word_taken: Signal
    results: stream.Interface
    busy: Signal

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        super().__init__(
            {
                "word": In(word_layout(params)),
                "word_valid": In(1),
                "word_taken": Out(1),
                "results": Out(stream.Signature(result_layout(params))),
                "busy": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the register that holds a word and the choice of its next lane."""
        m = Module()
        held = signal_of(word_layout(self.params))
        rest = Signal(self.params.lanes)
        met = Signal(self.params.payload_bits)
        for lane in reversed(range(self.params.lanes)):
            with m.If(held.mask[lane]):
                m.d.comb += met.eq(held.payloads[lane])
        m.d.comb += [
            rest.eq(held.mask & (held.mask - 1)),
            self.busy.eq(held.mask.any()),
            self.results.valid.eq(held.mask.any()),
            self.results.p.side.eq(held.side),
            self.results.p.r_payload.eq(Mux(held.side == SIDE_R, held.probe, met)),
            self.results.p.s_payload.eq(Mux(held.side == SIDE_S, held.probe, met)),
        ]
        with m.If(~self.busy | (self.results.ready & (rest == 0))):
            m.d.comb += self.word_taken.eq(1)
            m.d.sync += [held.eq(self.word), held.mask.eq(Mux(self.word_valid, self.word.mask, 0))]
        with m.Elif(self.results.ready):
            m.d.sync += held.mask.eq(rest)
        return m


class Core(Component):
    """A join core of the chain.

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    index : In(core_bits(params))
        Its place in the chain, a constant; a port so that all cores are one module.
    plan : In(plan_layout(params))
        Constant from four cycles before the first step until the next ``clear``.
    command : In(command_layout(params))
    r_left : In(slot_layout(r_layout(params)))
        The oldest R tuple of the left neighbour, or the arriving one.
    r_oldest : Out(slot_layout(r_layout(params)))
    s_right, s_entry : In(slot_layout(s_layout(params)))
        The oldest S tuple of the right neighbour; the arriving one, which the last active core
        takes.
    s_oldest : Out(slot_layout(s_layout(params)))
    results : Out(stream.Signature(result_layout(params)))
        ``side`` is that of the tuple that probed: the one whose step made the pair meet.
    hold : Out(1)
        Fewer than ``HOLD_WORDS`` words of the result FIFO are free; from a register.
    busy : Out(1)
        A result, or a word that may hold one, is inside; from a register.
    """

    index: Signal
    plan: View
    command: View
    r_left: View
    r_oldest: View
    s_right: View
    s_entry: View
    s_oldest: View
    results: stream.Interface
    hold: Signal
    busy: Signal

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        super().__init__(core_members(params))

    def elaborate(self, _platform: object) -> Module:
        """Build the rings, the comparators and the way out."""
        m = Module()
        params, command = self.params, self.command
        m.submodules.ring_r = ring_r = SegmentRing(params, r_layout(params))
        m.submodules.ring_s = ring_s = SegmentRing(params, s_layout(params))

        # The plan is constant long before it is used: one register here keeps the comparisons
        # with the core's number off every other path.
        member, entry = Signal(), Signal()
        m.d.sync += [
            member.eq(self.index < self.plan.active),
            entry.eq(self.index + 1 == self.plan.active),
        ]
        for side, ring in (("r", ring_r), ("s", ring_s)):
            last = signal_of(position_layout(params), name=f"last_{side}")
            longer = self.index < self.plan[f"longer_{side}"]
            m.d.sync += last.eq(
                Mux(
                    longer,
                    self.plan[f"last_longer_{side}"].as_value(),
                    self.plan[f"last_{side}"].as_value(),
                )
            )
            m.d.comb += ring.last.eq(last)

        probe_side = Signal()
        with m.If(command.step_r | command.step_s):
            m.d.sync += probe_side.eq(Mux(command.step_s, SIDE_S, SIDE_R))
        m.d.comb += [
            ring_r.step.eq(command.step_r & member),
            ring_s.step.eq(command.step_s & member),
            ring_r.enter.eq(self.r_left),
            ring_s.enter.eq(Mux(entry, self.s_entry, self.s_right)),
            self.r_oldest.eq(ring_r.oldest),
            self.s_oldest.eq(ring_s.oldest),
        ]
        for ring in (ring_r, ring_s):
            m.d.comb += [
                ring.clear.eq(command.clear),
                ring.scan.eq(command.scan),
                ring.scan_word.eq(command.scan_word),
            ]

        # Cycle 1: compare. Each side has comparators of its own: a multiplexer in front of a
        # shared one would cost as much and lengthen the longest path.
        found = signal_of(word_layout(params))
        for lane in range(params.lanes):
            r_slot, s_slot = ring_r.slots[lane], ring_s.slots[lane]
            hit_s = ring_s.live[lane] & s_slot.valid & ring_r.entered.valid
            hit_s &= matches(params.terms, ring_r.entered.body, s_slot.body)
            hit_r = ring_r.live[lane] & r_slot.valid & ring_s.entered.valid
            hit_r &= matches(params.terms, r_slot.body, ring_s.entered.body)
            m.d.sync += [
                found.mask[lane].eq(Mux(probe_side == SIDE_S, hit_r, hit_s)),
                found.payloads[lane].eq(
                    Mux(probe_side == SIDE_S, r_slot.body.payload, s_slot.body.payload)
                ),
            ]
        m.d.sync += [
            found.side.eq(probe_side),
            found.probe.eq(
                Mux(
                    probe_side == SIDE_S,
                    ring_s.entered.body.payload,
                    ring_r.entered.body.payload,
                )
            ),
        ]

        # Cycle 2: queue what has a match.
        m.submodules.queue = queue = SyncFIFOBuffered(
            width=word_layout(params).size, depth=params.result_fifo_words
        )
        m.submodules.serialiser = serialiser = Serialiser(params)
        m.d.comb += [
            queue.w_data.eq(found),
            queue.w_en.eq(found.mask.any()),
            serialiser.word.eq(queue.r_data),
            serialiser.word_valid.eq(queue.r_rdy),
            queue.r_en.eq(serialiser.word_taken),
            Assert(~queue.w_en | queue.w_rdy, "a result FIFO overflowed"),
        ]
        wiring.connect(m, serialiser.results, wiring.flipped(self.results))
        scanned = Signal()
        m.d.sync += [
            scanned.eq(command.scan),
            self.hold.eq(queue.w_level > params.result_fifo_words - HOLD_WORDS),
            self.busy.eq(
                command.scan | scanned | queue.w_en | (queue.w_level != 0) | serialiser.busy
            ),
        ]
        return m
