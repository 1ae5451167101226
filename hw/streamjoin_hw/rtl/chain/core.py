"""One join core of the lock-step chain: two segments and what compares them.

Handshake join (Teubner and Mueller, SIGMOD 2011, sections 4.1 and 6.2): in a step all tuples of
one side move one slot on; the tuple that enters a core is compared with the core's whole
segment of the other side (immediate scan). Each core registers the command; in the cycle of that
register the tuple of a ``step`` is written into its ring, and a ``scan`` reads a word; what
follows is in :mod:`streamjoin_hw.rtl.matching`.
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from streamjoin_common.contract import SIDE_R, SIDE_S, DesignParams
from streamjoin_hw.rtl.chain.line import add_place, line_members
from streamjoin_hw.rtl.chain.spread import hold_words
from streamjoin_hw.rtl.matching import Matcher, by_side
from streamjoin_hw.rtl.memory import SegmentRing, position_layout, word_bits
from streamjoin_hw.rtl.streams import (
    Component,
    View,
    payload_of,
    r_layout,
    registers_of,
    result_layout,
    s_layout,
    slot_layout,
)


def at_least(m: Module, number: Value, than: Value, name: str) -> Value:
    """Return whether a number is at least as large as another, once both have stood still.

    A flip-flop for each bit, from the lowest one on, behind one LUT: as many cycles late.
    """
    late: Value = Const(1, 1)
    for bit, (ours, theirs) in enumerate(zip(number, than, strict=True)):
        register = payload_of(1, name=f"{name}_{bit}")
        m.d.sync += register.eq(Mux(ours ^ theirs, ours, late))
        late = register
    return late


def core_bits(params: DesignParams) -> int:
    """Bits of a core's number and of a count of cores."""
    return bits_for(params.cores)


def command_layout(params: DesignParams) -> data.StructLayout:
    """Layout of the command that the sequencer gives all cores every cycle.

    ``step_r``, ``step_s``: move that side by one slot. ``scan``, ``scan_word``: compare this
    word of the segment opposite to the tuple of the last step. ``clear``: empty everything.
    With timestamps ``ts`` is that of the tuple that enters with the step, if ``arrival``. A core
    obeys a cycle later, when it has registered the command.
    """
    times = {"arrival": 1, "ts": params.timestamp_bits} if params.timestamp_bits else {}
    commands = {"step_r": 1, "step_s": 1, "scan": 1, "scan_word": word_bits(params), "clear": 1}
    return data.StructLayout({**commands, **times})


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
        **line_members(params),
        "hold": Out(1),
        "busy": Out(1),
        **evicted_member(params),
    }


def evicted_member(params: DesignParams) -> dict[str, wiring.Member]:
    """Return the port ``evicted``, none for a design without timestamps."""
    return {"evicted": Out(1)} if params.timestamp_bits else {}


class Core(Component):
    """A join core of the chain.

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    index : In(core_bits(params))
        Its position in the chain, a constant; a port so that all cores are one module.
    plan : In(plan_layout(params))
        Constant from six cycles before the first step until the next ``clear``, and what is
        compared with ``index`` (``active``, ``longer_*``) for a cycle before that for each bit.
    command : In(command_layout(params))
        ``arrival`` and ``ts`` a cycle after the step that they belong to.
    r_left : In(slot_layout(r_layout(params)))
        The oldest R tuple of the left neighbour, or the arriving one, a cycle after its step.
    r_oldest : Out(slot_layout(r_layout(params)))
    s_right, s_entry : In(slot_layout(s_layout(params)))
        The oldest S tuple of the right neighbour; the arriving one, a cycle after its step, which
        the last active core takes.
    s_oldest : Out(slot_layout(s_layout(params)))
    line_i, line_next_i, line_o, line_next_o, line_stop
        See :class:`~streamjoin_hw.rtl.chain.line.LinePlace`. ``side`` is that of the tuple that
        probed: the one whose step made the pair meet.
    hold : Out(1)
        Fewer than ``hold_words(params)`` words of the result FIFO are free; from a register.
    busy : Out(1)
        A result, or a word that may hold one, is inside; from a register.
    evicted : Out(1), if there are timestamps
        Pulse: a tuple left the chain before its time.
    """

    index: Signal
    plan: View
    command: View
    r_left: View
    r_oldest: View
    s_right: View
    s_entry: View
    s_oldest: View
    line_i: View
    line_next_i: Signal
    line_o: View
    line_next_o: Signal
    line_stop: Signal
    hold: Signal
    busy: Signal
    evicted: Signal

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        # No port: what goes to the core's place on the line, for whoever watches.
        self.results: Any = stream.Signature(result_layout(params)).create()
        super().__init__(core_members(params))

    def elaborate(self, _platform: object) -> Module:
        """Build the rings, the comparators and the way out."""
        m = Module()
        params, ahead = self.params, self.command
        flags = ("step_r", "step_s", "scan")
        obeyed = {name: field.shape for name, field in command_layout(params)}
        for name in ("clear", "scan_word", "arrival", "ts"):  # the last two come late already
            obeyed.pop(name, None)
        command = registers_of(data.StructLayout(obeyed), *flags, name="command")
        # A reset clears the rings by this alone.
        clear = Signal(init=1)
        m.d.sync += [clear.eq(ahead.clear), *(command[name].eq(ahead[name]) for name in obeyed)]
        m.submodules.ring_r = ring_r = SegmentRing(params, r_layout(params))
        m.submodules.ring_s = ring_s = SegmentRing(params, s_layout(params))

        # The plan is constant long before it is used: registers here keep the comparisons with the
        # core's number off every other path, the plan's wires, which are long, among them.
        inactive = Signal()
        first = Signal()
        entry = Signal()
        behind = payload_of(len(self.plan.active))
        apart = behind ^ self.plan.active
        pairs = [apart[bit : bit + 2].any() for bit in range(0, len(apart), 2)]
        differs = payload_of(len(pairs), name="differs")
        m.d.sync += [
            inactive.eq(at_least(m, self.index, self.plan.active, "active")),
            first.eq(self.index == 0),
            behind.eq(self.index + 1),
            differs.eq(Cat(pairs)),
            entry.eq(~differs.any()),
        ]
        for side, ring in (("r", ring_r), ("s", ring_s)):
            last = payload_of(position_layout(params), name=f"last_{side}")
            shorter = payload_of(1, name=f"shorter_{side}")
            step = Signal(name=f"member_steps_{side}")
            m.d.sync += [
                shorter.eq(at_least(m, self.index, self.plan[f"longer_{side}"], f"longer_{side}")),
                last.eq(
                    Mux(
                        shorter,
                        self.plan[f"last_{side}"].as_value(),
                        self.plan[f"last_longer_{side}"].as_value(),
                    )
                ),
                step.eq(ahead[f"step_{side}"] & ~inactive),
            ]
            m.d.comb += [
                ring.last.eq(last),
                ring.next_step.eq(ahead[f"step_{side}"]),
                ring.step.eq(step),
            ]

        probe_side = payload_of(1)
        with m.If(command.step_r | command.step_s):
            m.d.sync += probe_side.eq(Mux(command.step_s, SIDE_S, SIDE_R))
        m.d.comb += [
            ring_r.enter.eq(self.r_left),
            ring_s.enter.eq(Mux(entry, self.s_entry, self.s_right)),
            self.r_oldest.eq(ring_r.oldest),
            self.s_oldest.eq(ring_s.oldest),
        ]
        for ring in (ring_r, ring_s):
            m.d.comb += [
                ring.clear.eq(clear),
                ring.scan.eq(command.scan),
                ring.next_scan_word.eq(ahead.scan_word),
            ]

        m.submodules.matcher = matcher = Matcher(params, is_met=True, free_words=hold_words(params))
        m.d.comb += [
            matcher.scan.eq(command.scan),
            matcher.r_slots.eq(ring_r.slots),
            matcher.s_slots.eq(ring_s.slots),
            matcher.r_live.eq(ring_r.live),
            matcher.s_live.eq(ring_s.live),
            matcher.r_probe.eq(ring_r.entered),
            matcher.s_probe.eq(ring_s.entered),
            matcher.probe_side.eq(probe_side),
            self.hold.eq(matcher.hold),
        ]
        place = add_place(m, self, matcher.results)
        met = matcher.results.p
        m.d.comb += [
            self.results.valid.eq(matcher.results.valid),
            self.results.ready.eq(matcher.results.ready),
            self.results.p.side.eq(met.side),
            *by_side(self.results.p, met.side, met.probe, met.met),
        ]
        m.d.sync += self.busy.eq(matcher.busy | place.valid)
        if params.timestamp_bits:
            # What leaves the chain before its time window ends was held too short.
            early_r = entry & command.step_r & ring_r.oldest.valid
            early_r &= ring_r.oldest.body.end > ahead.ts
            early_s = first & command.step_s & ring_s.oldest.valid
            early_s &= ring_s.oldest.body.end > ahead.ts
            m.d.sync += self.evicted.eq(ahead.arrival & (early_r | early_s))
        return m
