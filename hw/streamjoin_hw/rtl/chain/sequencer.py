"""The sequencer: one for all cores, it says every cycle who steps and what is compared.

All cores work in lock step (handshake join, section 4.1), so one scan counter serves them all;
what it commands is registered before it leaves. A step takes
``max(2, words of the longest segment it is compared with)`` cycles.
"""

from amaranth.hdl import Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import SIDE_R, SIDE_S, DesignParams
from streamjoin_hw.rtl.chain.core import command_layout, plan_layout
from streamjoin_hw.rtl.chain.segments import Planner
from streamjoin_hw.rtl.chain.spread import quiet_cycles
from streamjoin_hw.rtl.memory import word_bits
from streamjoin_hw.rtl.queues import LANDING_PLACES, Countdown
from streamjoin_hw.rtl.streams import (
    Component,
    View,
    arrival_layout,
    payload_of,
    r_layout,
    registers_of,
    s_layout,
    slot_layout,
)

QUIET_CYCLES = 8
"""Cycles without a sign of life after which nothing is left inside, where all is near.

A chain of several lines takes longer (:func:`~streamjoin_hw.rtl.chain.spread.quiet_cycles`).
"""

IN_FLIGHT_BITS = (LANDING_PLACES + 1).bit_length()
"""The ingress holds at most what finds a place in its queue, and what was counted a cycle late."""


def lasts(m: Module, still: Value, cycles: int) -> Signal:
    """Return a pulse, from a register, when something has lasted for more than so many cycles."""
    count, long_still = Signal(range(cycles + 1), name="quiet"), Signal(name="long_still")
    m.d.sync += long_still.eq((count == cycles) & still & ~long_still)
    with m.If(~still | long_still):
        m.d.sync += count.eq(0)
    with m.Elif(count != cycles):
        m.d.sync += count.eq(count + 1)
    return long_still


class Sequencer(Component):
    """Admits tuples, steps the chain, drains it and marks the end.

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    i : In(stream.Signature(arrival_layout(params)))
        Encoded tuples; ``ready`` is a register.
    took, took_last : In(1)
        A beat entered the ingress a cycle ago; it ends the input.
    open : Out(1)
        The ingress may take a beat in the next cycle, unless it takes the last one in this; from
        registers.
    enable, drain : In(1)
        Bits of the control register.
    drained : Out(1)
        Pulse: the input has ended and the design is empty.
    windows_written : In(1)
        The window registers changed at the last clock edge.
    window_r, window_s : In(32)
    complete : In(1)
        Commands reach every core.
    held : In(1)
        A result FIFO is nearly full: stop scanning.
    busy : In(1)
        Something is inside cores or trees.
    command : Out(command_layout(params)), plan : Out(plan_layout(params))
    r_entry, s_entry : Out(slot)
        The tuple that enters with the commanded step, a bubble during a drain.
    end : Out(stream.Signature(0))
        Punctuation is due.
    idle, draining, window_error, running : Out(1)
        For the status register; ``running`` from the first tuple to the punctuation.
    hold_cycle : Out(1)
        The scan is held in this cycle.
    """

    i: stream.Interface
    took: Signal
    took_last: Signal
    open: Signal
    enable: Signal
    drain: Signal
    drained: Signal
    windows_written: Signal
    window_r: Signal
    window_s: Signal
    complete: Signal
    held: Signal
    busy: Signal
    command: View
    plan: View
    r_entry: View
    s_entry: View
    end: stream.Interface
    idle: Signal
    draining: Signal
    window_error: Signal
    running: Signal
    hold_cycle: Signal

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        bits_in = ["took", "took_last", "enable", "drain", "windows_written", "complete"]
        bits_in += ["held", "busy"]
        bits_out = ("open", "drained", "idle", "draining", "window_error", "running", "hold_cycle")
        super().__init__(
            {
                "i": In(stream.Signature(arrival_layout(params))),
                **{name: In(1) for name in bits_in},
                **{name: Out(1) for name in bits_out},
                "window_r": In(32),
                "window_s": In(32),
                "command": Out(command_layout(params)),
                "plan": Out(plan_layout(params)),
                "r_entry": Out(slot_layout(r_layout(params))),
                "s_entry": Out(slot_layout(s_layout(params))),
                "end": Out(stream.Signature(0)),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the phases of an input and the scheduler of steps."""
        m = Module()
        m.submodules.planner = planner = Planner(self.params)
        w = _Wires()
        m.d.comb += [
            planner.window_r.eq(self.window_r),
            planner.window_s.eq(self.window_s),
            self.plan.eq(planner.plan),
            w.stale.eq(w.written | self.windows_written),
            # No tuple is offered before the input runs, and none after its last.
            self.i.ready.eq(w.steppable),
            w.arrives.eq(self.i.valid & self.i.ready),
            self.hold_cycle.eq(self.held & self.running),
            self.end.valid.eq(w.due),
            # A write of windows in the cycle before ends it sooner than the state does.
            self.open.eq(w.listens & self.enable & ~w.ending & ~self.drain & ~self.windows_written),
        ]
        empty = Signal()
        seen = w.arrives & ~w.was_given
        m.d.sync += [
            # They are forgotten once punctuation was given.
            w.ended.eq(w.ending & ~w.was_given),
            w.seen_r.eq((w.seen_r & ~w.was_given) | (seen & (self.i.p.side == SIDE_R))),
            w.seen_s.eq((w.seen_s & ~w.was_given) | (seen & (self.i.p.side == SIDE_S))),
            w.written.eq(w.stale & ~(planner.start & planner.done)),
            # A cycle late: whether a tuple arrives is known late.
            w.came.eq(self.took),
            w.went.eq(w.arrives),
            w.in_flight.eq(w.in_flight + w.came - w.went),
            # Nothing is taken any more, a cycle after the last beat and with a drain.
            empty.eq((w.in_flight == 0) & ~w.came & ~self.took),
            w.all_in.eq((w.ended | self.drain) & empty & ~self.took),
            w.met_both.eq(w.seen_r & w.seen_s),
        ]
        m.d.comb += w.ending.eq(w.ended | (self.took & self.took_last))
        m.d.comb += w.long_still.eq(lasts(m, w.still, quiet_cycles(self.params)))
        self._admit(m, planner, w)
        self._finish(m, w)
        self._push_bubbles(m, planner, w)
        self._schedule(m, planner, w)
        return m

    def _admit(self, m: Module, planner: Planner, w: "_Wires") -> None:
        """Build the states in which tuples are waited for and taken.

        A state is a flip-flop, so that the next one is known after two LUTs.
        """
        rests = w.waits & ~self.took
        m.d.comb += [
            self.idle.eq(w.plans | rests),
            self.running.eq(w.runs | self.draining | (w.waits & self.took)),
            self.window_error.eq(w.waits & ~planner.legal),
        ]
        m.d.sync += [
            # A cycle late: the planner begins far from where windows are written.
            planner.start.eq(w.plans & w.stale),
            w.planned.eq(w.plans & planner.done & ~w.stale & self.complete),
            w.listens.eq(w.runs | (w.waits & planner.legal & ~w.stale)),
            w.plans.eq(w.clear | (w.plans & ~w.planned) | (rests & ~self.drain & w.written)),
            w.waits.eq((w.plans & w.planned) | (rests & ~self.drain & ~w.written)),
            w.runs.eq((w.waits & self.took) | (w.runs & ~w.all_in)),
        ]

    def _finish(self, m: Module, w: "_Wires") -> None:
        """Build the states that end an input."""
        taken = w.runs & w.all_in
        m.d.comb += [
            self.draining.eq(w.drains | w.flushes | w.punctuates),
            self.drained.eq(w.clear),
        ]
        m.d.sync += [
            # Without tuples of one side there is no pair left to meet.
            w.drains.eq((taken & w.met_both) | (w.drains & w.has_bubbles)),
            w.flushes.eq(
                (taken & ~w.met_both)
                | (w.waits & ~self.took & self.drain)
                | (w.drains & ~w.has_bubbles)
                | (w.flushes & ~w.long_still)
            ),
            w.punctuates.eq((w.flushes & w.long_still) | (w.punctuates & ~w.was_given)),
            w.clear.eq(w.punctuates & w.was_given),
            w.still.eq(w.flushes & w.steppable & ~self.busy),
            w.due.eq(w.long_still | (w.due & ~self.end.ready)),
            w.given.eq(w.punctuates & ~w.due),
            w.was_given.eq(w.given),
        ]

    def _push_bubbles(self, m: Module, planner: Planner, w: "_Wires") -> None:
        """Build the count of a drain's bubbles: as many as the window of R has tuples."""
        few, pushed = Signal(name="few"), Signal(name="pushed")
        # Those that were not pushed yet, a cycle late.
        bubbles = Countdown(m, pushed, ~w.has_bubbles, planner.window, name="bubbles")
        low = bubbles.low
        is_last, begun, begins = payload_of(1, name="is_last"), Signal(name="begun"), Signal()
        m.d.comb += [
            w.push_bubble.eq(w.has_bubbles & w.steppable),
            # All tuples are in until the input ends: once the drain has begun, it does not again.
            begins.eq(w.all_in & w.met_both & ~begun),
        ]
        m.d.sync += [
            begun.eq(w.met_both & (begun | w.all_in)),
            w.has_bubbles.eq(begins | (w.has_bubbles & ~(w.steppable & is_last))),
            pushed.eq(w.push_bubble),
            few.eq(bubbles.no_high & (low[2:] == 0)),
            # A step takes two cycles, so that it is known when the next bubble is pushed.
            is_last.eq(few & (low[:2] == Mux(pushed, 2, 1))),
        ]

    def _schedule(self, m: Module, planner: Planner, w: "_Wires") -> None:
        """Build the scan counter and the registers of command and entering tuple."""
        scanning = Signal()
        next_word, last_word = (
            payload_of(word_bits(self.params), name=name) for name in ("next_word", "last_word")
        )
        flags = ("step_r", "step_s", "scan", "clear", "arrival")
        command = registers_of(command_layout(self.params), *flags, name="command")
        r_entry = registers_of(self.r_entry.shape(), "valid", name="r_entry")
        s_entry = registers_of(self.s_entry.shape(), "valid", name="s_entry")
        step_r = Signal()
        step_s = Signal()
        m.d.comb += [
            self.command.eq(command),
            self.r_entry.eq(r_entry),
            self.s_entry.eq(s_entry),
            step_r.eq(w.push_bubble | (w.arrives & (self.i.p.side == SIDE_R))),
            step_s.eq(w.arrives & (self.i.p.side == SIDE_S)),
        ]
        more = scanning & ~self.held
        # No tuple is offered while bubbles are pushed.
        is_s = self.i.valid & (self.i.p.side == SIDE_S)
        opposite = Mux(is_s, planner.last_word_r, planner.last_word_s)
        # More than one word is scanned for a tuple of that side: the plan is there long before.
        more_r, more_s = (payload_of(1, name=name) for name in ("more_r", "more_s"))
        step = step_r | step_s
        # Known a cycle ahead, so that whoever offers a tuple sees a register. A hold counts a cycle
        # later for it.
        ends = next_word == last_word
        m.d.sync += [
            w.steppable.eq(~self.held & ~step & (~scanning | ends)),
            command.step_r.eq(step_r),
            command.step_s.eq(step_s),
            command.scan.eq(step | more),
            command.scan_word.eq(Mux(scanning, next_word, 0)),
            command.clear.eq(w.clear),
            more_r.eq(planner.last_word_s != 0),
            more_s.eq(planner.last_word_r != 0),
        ]
        # While a step may begin nothing is scanned, and neither word counts.
        with m.If(w.steppable):
            m.d.sync += [last_word.eq(opposite), next_word.eq(1)]
        with m.Elif(more):
            m.d.sync += next_word.eq(next_word + 1)
        with m.If(step):
            m.d.sync += scanning.eq(Mux(is_s, more_s, more_r))
        with m.Elif(more):
            m.d.sync += scanning.eq(~ends)
        body = self.i.p.body
        if self.params.timestamp_bits:
            r_body = data.View(r_layout(self.params), body[: r_layout(self.params).size])
            s_body = data.View(s_layout(self.params), body[: s_layout(self.params).size])
            m.d.sync += [
                command.arrival.eq(w.arrives),
                command.ts.eq(Mux(self.i.p.side == SIDE_S, s_body.ts, r_body.ts)),
            ]
        m.d.sync += [
            r_entry.valid.eq(w.arrives),
            r_entry.body.eq(body[: r_layout(self.params).size]),
            s_entry.valid.eq(w.arrives),
            s_entry.body.eq(body[: s_layout(self.params).size]),
        ]


class _Wires:
    """What the parts of the sequencer share."""

    def __init__(self) -> None:
        # The states, each a flip-flop: the plan of an input is made, its first tuple waited for,
        # its tuples taken, bubbles pushed, results awaited, and punctuation is given.
        self.plans = Signal(init=1)
        self.waits = Signal()
        self.runs = Signal()
        self.drains = Signal()
        self.flushes = Signal()
        self.punctuates = Signal()
        self.clear = Signal()
        # Windows written since the plan was begun; the plan of reset is stale from the start.
        self.written = Signal(init=1)
        self.stale = Signal()
        # The plan belongs to the windows, and commands reach every core: a cycle ago.
        self.planned = Signal()
        # Tuples may come, by the state of a cycle ago.
        self.listens = Signal()
        self.in_flight = Signal(IN_FLIGHT_BITS)
        self.came = Signal()
        self.went = Signal()
        self.arrives = Signal()
        # The last beat was taken, a cycle ago or before.
        self.ending = Signal()
        self.ended = Signal()
        # The input has ended and all of it was stepped, a cycle ago: then nothing more is taken.
        self.all_in = Signal()
        # Punctuation is due: the state alone, from a register, as many bits depend on it.
        self.due = Signal()
        # It was given, a cycle ago and two: the output may be far.
        self.given = Signal()
        self.was_given = Signal()
        self.seen_r = Signal()
        self.seen_s = Signal()
        # Tuples of both sides were seen, a cycle ago.
        self.met_both = Signal()
        # Bubbles of a drain are to be pushed.
        self.has_bubbles = Signal()
        # A step may be commanded: from a register.
        self.steppable = Signal()
        self.push_bubble = Signal()
        # A flush goes on and nothing moves, a cycle ago: `busy` comes from afar.
        self.still = Signal()
        self.long_still = Signal()
