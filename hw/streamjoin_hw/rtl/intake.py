"""The intake of a design that forwards tuples at once: it orders, numbers and ends an input.

Both streams pass through here in arrival order, and every core meets them in this order. What the
cores need to know of the whole is one bit a tuple: whether its stream's window is full, so that the
oldest tuple expires. Everything else they count themselves.
"""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import SIDE_S, WINDOW_BITS, DesignParams
from streamjoin_hw.rtl.chain.sequencer import IN_FLIGHT_BITS, QUIET_CYCLES, lasts
from streamjoin_hw.rtl.queues import Countdown
from streamjoin_hw.rtl.streams import Component, arrival_layout, payload_of


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
        Something of before ``clear``, or of before a reset, may still be inside: no input begins,
        and no hold counts.

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
        w = _Wires()
        # A cycle late: whether a tuple arrives is known late.
        in_flight = Signal(IN_FLIGHT_BITS)
        entered, left = Signal(), Signal()
        arrives = self.i.valid & self.i.ready
        m.d.comb += w.ending.eq(w.ended | (self.took & self.took_last))
        # The input has ended and all of it was passed on: nothing is taken any more, a cycle after
        # the last beat and with a drain.
        empty = Signal()
        m.d.sync += [
            w.ended.eq(w.ending & ~w.clears),
            entered.eq(self.took),
            left.eq(arrives),
            in_flight.eq(in_flight + entered - left),
            empty.eq((in_flight == 0) & ~entered & ~self.took),
            w.all_in.eq((w.ended | self.drain) & empty & ~self.took),
        ]

        # Tuples until a side's window is full, less one that came a cycle ago, and whether it is
        # full: whether a tuple arrives is known late and decides between what is known.
        full = [Signal(name=f"full_{side}") for side in "rs"]
        # Two cycles late, as `settled` is after a write.
        in_range = [self._in_range(m, given) for given in (self.window_r, self.window_s)]
        m.d.sync += w.legal.eq(Cat(*in_range).all())

        is_s = self.i.p.side == SIDE_S
        m.d.comb += [
            *(self.o.p[name].eq(self.i.p[name]) for name in arrival_layout(self.params).members),
            self.o.p.full.eq(Mux(is_s, full[1], full[0])),
            # No tuple is offered before the input runs, and none after its last.
            self.o.valid.eq(self.i.valid),
            self.i.ready.eq(self.o.ready),
            self.hold_cycle.eq(self.held & self.running & ~self.settling),
            self.end.valid.eq(w.due),
            # A write of windows in the cycle before ends it sooner than the state does.
            self.open.eq(w.listens & self.enable & ~w.ending & ~self.drain & ~self.windows_written),
        ]
        loads = Signal()
        m.d.sync += loads.eq(self.idle & ~self.took)
        for which, side in enumerate("rs"):
            came, comes = Signal(name=f"came_{side}"), arrives & (is_s == which)
            # That of the cycle in which the first tuple was accepted: of it is known a cycle later.
            given = payload_of(WINDOW_BITS, name=f"given_{side}")
            m.d.sync += given.eq(self.window_s if which else self.window_r)
            room = Countdown(m, came, loads, given, name=f"room_{side}")
            # Below 4 now if it was so a cycle ago, unless it is 3.
            low, is_low = room.low[:2], Signal(name=f"is_low_{side}")
            m.d.sync += is_low.eq(room.no_high & ~room.low[2:].any())
            last = is_low & Mux(came, low == 2, low == 1)
            m.d.sync += [
                came.eq(comes),
                full[which].eq((full[which] | (comes & last)) & ~w.clears),
            ]

        m.d.comb += w.long_still.eq(lasts(m, w.still, QUIET_CYCLES))
        self._go_on(m, w)
        return m

    def _in_range(self, m: Module, window: Signal) -> Value:
        """Return whether a window is from 1 to the capacity, by registers of its halves."""
        half = len(window) // 2
        low, high = window[:half], window[half:]
        limit_high, limit_low = divmod(self.params.window_capacity, 1 << half)

        def is_above(part: Value, limit: int) -> Value:
            return part > limit if limit < (1 << half) - 1 else Const(0, 1)

        some_low, some_high, low_above, high_above, high_is = (
            payload_of(1, name=name)
            for name in ("some_low", "some_high", "low_above", "high_above", "high_is")
        )
        m.d.sync += [
            some_low.eq(low.any()),
            some_high.eq(high.any()),
            low_above.eq(is_above(low, limit_low)),
            high_above.eq(is_above(high, limit_high)),
            high_is.eq(high == limit_high),
        ]
        legal: Value = (some_low | some_high) & ~(high_above | (high_is & low_above))
        return legal

    def _go_on(self, m: Module, w: "_Wires") -> None:
        """Build the states; each is a flip-flop, so that the next one is known after two LUTs."""
        rests = w.waits & ~self.took
        m.d.comb += [
            self.clear.eq(w.clears),
            self.idle.eq(w.clears | rests),
            self.running.eq(w.runs | self.draining | (w.waits & self.took)),
            self.draining.eq(w.flushes | w.punctuates),
            self.drained.eq(w.done),
            self.window_error.eq(w.waits & w.settled & ~w.legal),
        ]
        m.d.sync += [
            w.clears.eq(w.done),
            w.waits.eq(w.clears | (rests & ~self.drain)),
            # The windows of the first tuple's cycle count for the whole input.
            w.settled.eq(w.waits & ~self.windows_written & ~self.settling),
            w.listens.eq(w.runs | (w.waits & w.settled & w.legal & ~self.windows_written)),
            w.runs.eq((w.waits & self.took) | (w.runs & ~w.all_in)),
            w.flushes.eq((rests & self.drain) | (w.runs & w.all_in) | (w.flushes & ~w.long_still)),
            w.still.eq(w.flushes & ~self.busy),
            w.punctuates.eq((w.flushes & w.long_still) | (w.punctuates & ~w.was_given)),
            w.due.eq(w.long_still | (w.due & ~self.end.ready)),
            w.given.eq(w.punctuates & ~w.due),
            w.was_given.eq(w.given),
            w.done.eq(w.punctuates & w.was_given),
        ]


class _Wires:
    """What the parts of the intake share."""

    def __init__(self) -> None:
        # The states, each a flip-flop: cores are emptied, the first tuple is waited for, tuples
        # pass, results are awaited, punctuation is given, and was given.
        self.clears = Signal(init=1)
        self.waits = Signal()
        self.runs = Signal()
        self.flushes = Signal()
        self.punctuates = Signal()
        self.done = Signal()
        # Both windows are legal, and this is known of the windows as they are now.
        self.legal = Signal()
        self.settled = Signal()
        # Tuples may come, by the state of a cycle ago.
        self.listens = Signal()
        # The last beat was taken, a cycle ago or before.
        self.ending = Signal()
        self.ended = Signal()
        # All of the input was passed on, a cycle ago.
        self.all_in = Signal()
        # Punctuation is due: the state alone, from a register, as many bits depend on it.
        self.due = Signal()
        # It was given, a cycle ago and two: the output may be far.
        self.given = Signal()
        self.was_given = Signal()
        # A flush goes on and nothing is inside, a cycle ago: `busy` comes from afar.
        self.still = Signal()
        self.long_still = Signal()
