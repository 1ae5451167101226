"""How two windows are cut into segments, worked out by the design before an input.

A window of R is the sum of the segments of all active cores, so any size is exact: with
``active`` cores the first ``window mod active`` segments hold one tuple more than the others
(handshake join, section 3.4, partitions the window in the same way but evenly). The software
model of this component is :func:`streamjoin_common.contract.active_cores`.
"""

from amaranth.hdl import Cat, Module, Mux, Signal, Value, signed
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import WINDOW_BITS, DesignParams
from streamjoin_hw.rtl.chain.core import plan_layout
from streamjoin_hw.rtl.memory import word_bits
from streamjoin_hw.rtl.streams import Component, View, payload_of

SETTLING = 8
"""Cycles after which it is known whether windows are legal, and how many cores they need."""


class Divider(Component):
    """A serial restoring divider, one bit every two cycles: what fits is registered between them.

    Members
    -------
    start : In(1)
        Take the operands of the next cycle.
    dividend, divisor : In(WINDOW_BITS)
        Unsigned; the divisor is not zero.
    quotient, remainder : Out(WINDOW_BITS)
        Valid when ``done``, until the next ``start``.
    done : Out(1)
        1 from ``2 * WINDOW_BITS + 1`` cycles after ``start``.
    """

    start: Signal
    dividend: Signal
    divisor: Signal
    quotient: Signal
    remainder: Signal
    done: Signal

    def __init__(self) -> None:
        super().__init__(
            {
                "start": In(1),
                "dividend": In(WINDOW_BITS),
                "divisor": In(WINDOW_BITS),
                "quotient": Out(WINDOW_BITS),
                "remainder": Out(WINDOW_BITS),
                "done": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the shift register and its subtracter."""
        m = Module()
        divisor = Signal(WINDOW_BITS)
        left = Signal(range(WINDOW_BITS + 1))
        # What moves the operands comes from a register, as all their bits depend on it.
        idle, begins, moves = Signal(init=1), Signal(name="begins"), Signal(name="moves")
        trial = Signal(WINDOW_BITS + 1)
        rest = payload_of(signed(WINDOW_BITS + 2), name="rest")
        fits = ~rest[-1]
        m.d.comb += [
            self.done.eq(idle),
            trial.eq(Cat(self.quotient[-1], self.remainder)),
        ]
        m.d.sync += [
            rest.eq(trial - divisor),
            begins.eq(self.start),
            moves.eq(self.start | ~(moves | idle)),
        ]
        with m.If(moves):
            m.d.sync += [
                self.quotient.eq(Mux(begins, self.dividend, Cat(fits, self.quotient))),
                self.remainder.eq(Mux(begins, 0, Mux(fits, rest, trial))),
            ]
        with m.If(begins):
            m.d.sync += [divisor.eq(self.divisor), left.eq(WINDOW_BITS)]
        with m.Elif(moves):
            m.d.sync += left.eq(left - 1)
        with m.If(self.start):
            m.d.sync += idle.eq(0)
        with m.Elif(moves & ~begins):
            m.d.sync += idle.eq(left == 1)
        return m


class Planner(Component):
    """Check the window registers and cut the windows into segments.

    Takes at most ``4 * WINDOW_BITS + 20`` cycles.

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    start : In(1)
        Sample the windows and work out a plan.
    window_r, window_s : In(32)
        Count windows in tuples.
    done : Out(1)
        The outputs belong to the windows sampled last.
    legal : Out(1)
        The windows can be held: both are from 1 to the capacity, and the smaller one keeps
        enough cores active to hold the larger one.
    plan : Out(plan_layout(params))
    window : Out(WINDOW_BITS)
        The window of R that was sampled.
    last_word_r, last_word_s : Out(word_bits(params))
        Last word of the longest segment of that side.
    """

    start: Signal
    window_r: Signal
    window_s: Signal
    done: Signal
    legal: Signal
    plan: View
    window: Signal
    last_word_r: Signal
    last_word_s: Signal

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        super().__init__(
            {
                "start": In(1),
                "window_r": In(32),
                "window_s": In(32),
                "done": Out(1),
                "legal": Out(1),
                "plan": Out(plan_layout(params)),
                "window": Out(WINDOW_BITS),
                "last_word_r": Out(word_bits(params)),
                "last_word_s": Out(word_bits(params)),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the sequence of checks and divisions."""
        m = Module()
        params = self.params
        r, s, smaller, larger = (
            Signal(WINDOW_BITS, name=name) for name in ("r", "s", "smaller", "larger")
        )
        # Neither window is 0 or above the capacity: so say the lower bits, and those above them.
        in_range, in_bits, too_large = Signal(2), Signal(2), Signal(2)
        fours = range(0, WINDOW_BITS, 4)
        some = Signal(data.ArrayLayout(len(fours), 2))
        room = Signal(WINDOW_BITS + 1)
        # What is compared decides a cycle later, and is what a carry says, not its inverse.
        greater, enough, fits = (Signal(name=name) for name in ("greater", "enough", "fits"))
        active = self.plan.active
        # The dividers begin; by lanes, not by cores.
        go, by_lanes = Signal(name="go"), Signal(name="by_lanes")
        dividers = {"r": Divider(), "s": Divider()}
        for (side, divider), window in zip(dividers.items(), (r, s), strict=True):
            m.submodules[f"divider_{side}"] = divider
            m.d.comb += [
                divider.start.eq(go),
                divider.dividend.eq(Mux(by_lanes, divider.quotient, window)),
                divider.divisor.eq(Mux(by_lanes, params.lanes, active)),
            ]
        # From a register: whoever waits for it may be far.
        done = Signal(name="is_done", init=1)
        m.d.comb += [self.window.eq(r), self.done.eq(done)]
        # Each step is a flip-flop. What it does not enable settles while the windows stand still.
        rests, settles = Signal(name="rests", init=1), Signal(SETTLING, name="settles")
        begins, settled = rests & self.start, settles[-1]
        with m.If(begins):
            windows = self.window_r, self.window_s
            m.d.sync += [r.eq(self.window_r), s.eq(self.window_s)]
            m.d.sync += in_bits.eq(Cat(~w[WINDOW_BITS:].any() for w in windows))
        for k, window in enumerate((r, s)):
            m.d.sync += [
                some[k].eq(Cat(window[bit : bit + 4].any() for bit in fours)),
                too_large[k].eq(window >= params.window_capacity + 1),
            ]
        m.d.sync += [
            greater.eq(r >= s),
            in_range.eq(Cat(some[k].any() & ~too_large[k] for k in (0, 1))),
            smaller.eq(Mux(greater, s, r)),
            larger.eq(Mux(greater, r, s)),
            enough.eq(smaller >= params.cores),
            active.eq(Mux(enough, params.cores, smaller)),
            room.eq(active * params.segment_tuples),
            fits.eq(room >= larger),
            self.legal.eq(in_range.all() & in_bits.all() & fits),
            settles.eq(Cat(begins, settles)),
        ]
        given = self._divide(m, dividers, go, by_lanes, settled & self.legal)
        ends = given | (settled & ~self.legal)
        m.d.sync += [
            rests.eq((rests & ~self.start) | ends),
            done.eq((done & ~begins) | ends),
        ]
        return m

    def _divide(
        self, m: Module, dividers: dict[str, Divider], go: Signal, by_lanes: Signal, begins: Value
    ) -> Signal:
        """Build the steps that divide: tuples by cores, then slots by lanes; return the last."""
        divided, segments, longer, slots, last, longest = (
            Signal(name=name)
            for name in ("divided", "segments", "longer", "slots", "last", "longest")
        )
        again = begins | longer
        m.d.sync += [
            go.eq(again),
            # A cycle late; not before the dividers have begun.
            divided.eq(dividers["r"].done & ~go & ~again),
            segments.eq(begins | (segments & ~divided)),
            longer.eq(segments & divided),
            slots.eq(longer | (slots & ~divided)),
            last.eq(slots & divided),
            longest.eq(last),
        ]
        with m.If(again):
            m.d.sync += by_lanes.eq(longer)
        for side, divider in dividers.items():
            shorter, one_more = self.plan[f"last_{side}"], self.plan[f"last_longer_{side}"]
            with m.If(longer):
                m.d.sync += self.plan[f"longer_{side}"].eq(divider.remainder)
            with m.If(last):
                # The last slot of a longer segment has the number of a shorter one's tuples.
                m.d.sync += [
                    one_more.word.eq(divider.quotient),
                    one_more.lane.eq(divider.remainder),
                ]
                with m.If(divider.remainder[: len(shorter.lane)] == 0):
                    before = divider.quotient[: len(shorter.word)] - 1
                    m.d.sync += [shorter.word.eq(before), shorter.lane.eq(self.params.lanes - 1)]
                with m.Else():
                    m.d.sync += [
                        shorter.word.eq(divider.quotient),
                        shorter.lane.eq(divider.remainder - 1),
                    ]
            has_longer = self.plan[f"longer_{side}"] != 0
            word = self.last_word_r if side == "r" else self.last_word_s
            m.d.sync += word.eq(Mux(has_longer, one_more.word, shorter.word))
        return longest
