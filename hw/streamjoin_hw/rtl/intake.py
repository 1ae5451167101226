"""The intake of a design that forwards tuples at once: it orders, numbers and ends an input.

Both streams pass through here in arrival order, and every core meets them in this order. What the
cores need to know of the whole is one bit a tuple: whether its stream's window is full, so that the
oldest tuple expires. Everything else they count themselves.
"""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import SIDE_S, WINDOW_BITS, DesignParams
from streamjoin_hw.rtl.chain.sequencer import IN_FLIGHT_BITS, QUIET_CYCLES, lasts
from streamjoin_hw.rtl.queues import Countdown
from streamjoin_hw.rtl.streams import Component, arrival_layout


def ordered_layout(params: DesignParams) -> data.StructLayout:
    """Layout of an arrival and whether its stream's window was full before (``full``)."""
    return data.StructLayout({**arrival_layout(params).members, "full": 1})


class Intake(Component):
    """Admits tuples, reports when windows are full, and marks the end.

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    i : In(stream.Signature(arrival_layout(params)))
        Encoded tuples.
    o : Out(stream.Signature(ordered_layout(params)))
        The same in the same cycle, ``ready`` and ``valid`` passed through.
    clear : Out(1)
        Empty all cores; 1 in one cycle before the first tuple of every input.
    settling : In(1)
        Something of before ``clear``, or of before a reset, may still be inside: no input begins.

    The other members are those of :class:`~streamjoin_hw.rtl.chain.sequencer.Sequencer`.
    """

    i: stream.Interface
    o: stream.Interface
    clear: Signal
    settling: Signal
    took: Signal
    took_last: Signal
    open: Signal
    enable: Signal
    drain: Signal
    drained: Signal
    windows_written: Signal
    window_r: Signal
    window_s: Signal
    held: Signal
    busy: Signal
    end: stream.Interface
    idle: Signal
    draining: Signal
    window_error: Signal
    running: Signal
    hold_cycle: Signal

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        bits_in = ["took", "took_last", "enable", "drain", "windows_written", "held", "busy"]
        bits_in.append("settling")
        bits_out = ("open", "drained", "idle", "draining", "window_error", "running", "hold_cycle")
        super().__init__(
            {
                "i": In(stream.Signature(arrival_layout(params))),
                "o": Out(stream.Signature(ordered_layout(params))),
                "clear": Out(1),
                **{name: In(1) for name in bits_in},
                **{name: Out(1) for name in bits_out},
                "window_r": In(32),
                "window_s": In(32),
                "end": Out(stream.Signature(0)),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the phases of an input and the counts of both streams."""
        m = Module()
        # A cycle late: whether a tuple arrives is known late.
        in_flight = Signal(IN_FLIGHT_BITS)
        entered, left = Signal(), Signal()
        # The last beat was taken, a cycle ago or before.
        ending = Signal()
        ended = Signal()
        # Punctuation is due: the state alone, from a register, as many bits depend on it.
        due = Signal()
        # Tuples may come, by the state of a cycle ago.
        listens = Signal()
        arrives = self.i.valid & self.i.ready
        m.d.comb += ending.eq(ended | (self.took & self.took_last))
        m.d.sync += [ended.eq(ending), entered.eq(self.took), left.eq(arrives), listens.eq(0)]
        # The input has ended and all of it was passed on: nothing is taken any more, a cycle after
        # the last beat and with a drain.
        all_in, empty = Signal(), Signal()
        m.d.sync += [
            in_flight.eq(in_flight + entered - left),
            empty.eq((in_flight == 0) & ~entered & ~self.took),
            all_in.eq((ended | self.drain) & empty & ~self.took),
        ]

        # Tuples until a side's window is full, less one that came a cycle ago, and whether it is
        # full: whether a tuple arrives is known late and decides between what is known.
        full = [Signal(name=f"full_{side}") for side in "rs"]
        # Two cycles late, as `settled` is after a write.
        legal, in_range = Signal(), Signal(4, name="in_range")
        given, capacity = (self.window_r, self.window_s), self.params.window_capacity
        m.d.sync += [
            in_range.eq(Cat(*(Cat(each != 0, each <= capacity) for each in given))),
            legal.eq(in_range.all()),
        ]

        is_s = self.i.p.side == SIDE_S
        m.d.comb += [
            *(self.o.p[name].eq(self.i.p[name]) for name in arrival_layout(self.params).members),
            self.o.p.full.eq(Mux(is_s, full[1], full[0])),
            # No tuple is offered before the input runs, and none after its last.
            self.o.valid.eq(self.i.valid),
            self.i.ready.eq(self.o.ready),
            self.hold_cycle.eq(self.held & self.running),
            self.end.valid.eq(due),
            # A write of windows in the cycle before ends it sooner than the state does.
            self.open.eq(listens & self.enable & ~ending & ~self.drain & ~self.windows_written),
        ]
        loads = Signal()
        m.d.sync += loads.eq(self.idle & ~self.took)
        for which, side in enumerate("rs"):
            came, comes = Signal(name=f"came_{side}"), arrives & (is_s == which)
            room = Countdown(m, came, loads, given[which][:WINDOW_BITS], name=f"room_{side}")
            # Below 4 now if it was so a cycle ago, unless it is 3.
            low, is_low = room.low[:2], Signal(name=f"is_low_{side}")
            m.d.sync += is_low.eq(room.no_high & ~room.low[2:].any())
            last = is_low & Mux(came, low == 2, low == 1)
            m.d.sync += [came.eq(comes), full[which].eq(full[which] | (comes & last))]

        w = _Wires(legal, listens, ended, all_in, due)
        m.d.comb += w.long_still.eq(lasts(m, w.still, QUIET_CYCLES))
        with m.FSM(name="phase"):
            self._begin(m, w, full)
            self._run(m, w)
            self._finish(m, w)
        return m

    def _begin(self, m: Module, w: "_Wires", full: list[Signal]) -> None:
        """Build the states before the first tuple."""
        with m.State("CLEAR"):
            m.d.comb += [self.clear.eq(1), self.idle.eq(1)]
            m.d.sync += [w.ended.eq(0), w.settled.eq(0), *(each.eq(0) for each in full)]
            m.next = "IDLE"
        with m.State("IDLE"):
            m.d.comb += [
                self.idle.eq(~self.took),
                self.running.eq(self.took),
                self.window_error.eq(w.settled & ~w.legal),
            ]
            # The windows of the first tuple's cycle count for the whole input.
            m.d.sync += [
                w.settled.eq(~self.windows_written & ~self.settling),
                w.listens.eq(w.settled & w.legal & ~self.windows_written),
            ]
            with m.If(self.took):
                m.next = "RUN"
            with m.Elif(self.drain):
                m.next = "FLUSH"

    def _run(self, m: Module, w: "_Wires") -> None:
        """Build the state in which tuples pass."""
        with m.State("RUN"):
            m.d.comb += self.running.eq(1)
            m.d.sync += w.listens.eq(1)
            with m.If(w.all_in):
                m.next = "FLUSH"

    def _finish(self, m: Module, w: "_Wires") -> None:
        """Build the states that end an input."""
        m.d.sync += [
            w.still.eq(0),
            w.due.eq(w.long_still | (w.due & ~self.end.ready)),
            w.given.eq(0),
            w.was_given.eq(w.given),
        ]
        with m.State("FLUSH"):
            m.d.comb += [self.running.eq(1), self.draining.eq(1)]
            m.d.sync += w.still.eq(~self.busy)
            with m.If(w.long_still):
                m.next = "PUNCTUATE"
        with m.State("PUNCTUATE"):
            m.d.comb += [self.running.eq(1), self.draining.eq(1)]
            m.d.sync += w.given.eq(~w.due)
            with m.If(w.was_given):
                m.next = "DONE"
        with m.State("DONE"):
            m.d.comb += self.drained.eq(1)
            m.next = "CLEAR"


class _Wires:
    """What the states share."""

    def __init__(
        self, legal: Signal, listens: Signal, ended: Signal, all_in: Signal, due: Signal
    ) -> None:
        self.legal, self.listens, self.ended = legal, listens, ended
        self.all_in, self.due = all_in, due
        self.settled = Signal()
        # The punctuation was given, a cycle ago and two: the output may be far.
        self.given = Signal()
        self.was_given = Signal()
        # A flush goes on and nothing is inside, a cycle ago: `busy` comes from afar.
        self.still = Signal()
        self.long_still = Signal()
