"""The low-latency variant: tuples are forwarded along the chain at once and stored once.

Low-latency handshake join (Roy, Teubner and Gemulla, PVLDB 2014; summarised in SplitJoin, section
2) forwards an arriving tuple along the whole chain before any core is done with it, so that a
match is found after the chain's length and not after the window's. Each tuple has one home.

Here both streams enter the chain at the same end, in the one arrival order that the intake knows,
a hop a cycle. No two tuples ever cross: every core sees the same sequence, so it is enough to
look at one core. A tuple that arrives there is compared with all tuples of the other side that
the core holds, and is stored if it is the core's turn. The later tuple of a pair finds the
earlier one in the earlier one's home, unless the window has moved on, and nowhere else; the
earlier one was compared before the later one arrived. So a pair is compared in exactly one core,
exactly once. Two streams that enter at opposite ends would cross in flight and need the paper's
acknowledgements and expiry messages for the same; on a chip, where one component sees all arrivals
anyway, they would buy nothing.
"""

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from streamjoin_common.contract import SIDE_R, SIDE_S, DesignParams
from streamjoin_hw.rtl.chain.collection import collect, make_cores
from streamjoin_hw.rtl.chain.core import evicted_member
from streamjoin_hw.rtl.chain.line import add_place, line_members
from streamjoin_hw.rtl.chain.spread import Spread, delayed
from streamjoin_hw.rtl.chain.subwindow import SubWindow, extent_layout, words_bits
from streamjoin_hw.rtl.core_array import gathered_members
from streamjoin_hw.rtl.intake import ordered_layout
from streamjoin_hw.rtl.matching import Matcher
from streamjoin_hw.rtl.memory import word_after, word_bits
from streamjoin_hw.rtl.streams import (
    Component,
    View,
    one_less,
    payload_of,
    r_layout,
    registers_of,
    result_layout,
    s_layout,
    signal_of,
    slot_layout,
)


def scan_core_members(params: DesignParams) -> dict[str, wiring.Member]:
    """Ports of a core, the same for the component and for its instance in Verilog."""
    return {
        "index": In(bits_for(params.cores - 1)),
        "clear": In(1),
        "i": In(stream.Signature(ordered_layout(params))),
        "o": Out(stream.Signature(ordered_layout(params))),
        **line_members(params),
        "hold": Out(1),
        "busy": Out(1),
        **evicted_member(params),
    }


class ScanCore(Component):
    """A core that scans by itself: it takes a tuple, forwards it, compares it, perhaps stores it.

    A tuple costs one cycle for every word that is scanned, at least two; storing costs nothing,
    since the other side is scanned. While a tuple is scanned, and while the result FIFO is nearly
    full, no other one is taken. It is stored a cycle after it was taken, from the register that
    probes, so that where it goes hangs on no neighbour.

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    index : In(bits_for(cores - 1))
        Its number, a constant.
    clear : In(1)
        Empty it; needed once before the first tuple.
    i : In(stream.Signature(ordered_layout(params)))
    o : Out(stream.Signature(ordered_layout(params)))
        The same tuples a cycle later.
    line_i, line_next_i, line_o, line_next_o, line_stop
        See :class:`~streamjoin_hw.rtl.chain.line.LinePlace`.
    hold : Out(1)
        The result FIFO is nearly full; from a register.
    busy : Out(1)
        A tuple or a result is inside; from a register.
    evicted : Out(1), if there are timestamps
        Pulse: a tuple expired by count before its time.
    """

    index: Signal
    clear: Signal
    i: stream.Interface
    o: stream.Interface
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
        super().__init__(scan_core_members(params))

    def elaborate(self, _platform: object) -> Module:
        """Build both sub-windows, the scan counter and the matcher."""
        m = Module()
        params = self.params
        layouts = {"r": r_layout(params), "s": s_layout(params)}
        m.submodules.r = r = SubWindow(params, layouts["r"])
        m.submodules.s = s = SubWindow(params, layouts["s"])
        m.submodules.matcher = matcher = Matcher(params, is_met=True)

        # Words of the running scan from the one read last on, whether it is one at most and whether
        # they are two at most; whether no tuple is scanned or stored.
        left = payload_of(words_bits(params))
        is_last, ends = payload_of(1, name="is_last"), payload_of(1, name="ends")
        resting = Signal(init=1)
        # Known a cycle ahead, as much depends on it: a hold counts a cycle later for a tuple. While
        # the core is free, the next one has taken all that this one forwarded.
        free = Signal(name="free")
        rests = Signal()
        takes = Signal()
        forwarded = payload_of(ordered_layout(params), name="forwarded")
        forwards = Signal(name="forwards")
        stays = forwards & ~self.o.ready
        m.d.sync += [
            resting.eq(rests & (resting | ~matcher.hold)),
            free.eq(rests & ~matcher.hold & ~stays),
            forwards.eq(takes | stays),
        ]
        m.d.comb += [
            takes.eq(free & self.i.valid),
            self.i.ready.eq(free),
            self.o.valid.eq(forwards),
            self.o.payload.eq(forwarded),
        ]

        is_s = self.i.p.side == SIDE_S
        probe_side = payload_of(1)
        r_probe, s_probe = (
            registers_of(slot_layout(layout), "valid", name=f"{side}_probe")
            for side, layout in layouts.items()
        )
        # Whatever is offered is copied while the core is free; it counts if it is taken.
        with m.If(free):
            m.d.sync += [
                forwarded.eq(self.i.payload),
                probe_side.eq(self.i.p.side),
                r_probe.body.eq(self.i.p.body[: layouts["r"].size]),
                s_probe.body.eq(self.i.p.body[: layouts["s"].size]),
            ]
        for side, sub_window, probe in ((SIDE_R, r, r_probe), (SIDE_S, s, s_probe)):
            m.d.comb += [
                sub_window.index.eq(self.index),
                sub_window.clear.eq(self.clear),
                sub_window.comes.eq(takes & (is_s == side)),
                sub_window.full.eq(self.i.p.full),
                sub_window.enter.eq(probe.body),
            ]

        # The first word is read as the tuple is taken, the others as long as there is room. Then
        # the next tuple finds this one stored.
        goes_on = ~resting & ~matcher.hold
        # Known before it is known whose they are.
        none = Mux(is_s, r.is_empty, s.is_empty)
        extent = signal_of(extent_layout(params))
        scan = (takes & ~none) | (goes_on & ~is_last)
        m.d.comb += [
            extent.eq(Mux(is_s, r.extent.as_value(), s.extent.as_value())),
            rests.eq(Mux(resting, ~takes, ends)),
        ]
        # Before a scan all follows what would be scanned, whether a tuple is taken or not.
        with m.If(resting):
            m.d.sync += [
                left.eq(extent.words),
                is_last.eq(extent.is_single),
                ends.eq(extent.is_short),
            ]
        with m.Elif(goes_on):
            m.d.sync += [left.eq(one_less(left)), is_last.eq(ends), ends.eq(~left[2:].any())]
        for sub_window in (r, s):
            next_word = payload_of(word_bits(params), name="next_word")
            word = sub_window.scan_word
            # What expires as a tuple is stored is read in its own side's first word.
            expires = sub_window.arrives if params.timestamp_bits else Const(0, 1)
            m.d.comb += [
                word.eq(Mux(resting | expires, sub_window.first_word, next_word)),
                # Known before it is known that a tuple is taken; without one nothing is compared.
                sub_window.scan_first.eq(resting),
                sub_window.scan_last.eq(Mux(resting, extent.is_single, ends)),
            ]
            with m.If(resting | goes_on):
                m.d.sync += next_word.eq(word_after(word, params.segment_words))
        m.d.sync += [r_probe.valid.eq(scan), s_probe.valid.eq(scan)]
        self._compare(m, matcher, (r, s), (probe_side, r_probe, s_probe))
        m.d.comb += self.hold.eq(matcher.hold)
        place = add_place(m, self, matcher.results)
        # Words are read with `takes` and in some cycles that follow without rest.
        rested = Signal()
        m.d.comb += matcher.scan.eq(~resting)
        m.d.sync += [
            rested.eq(resting),
            self.busy.eq(takes | ~resting | ~rested | matcher.busy | forwards | place.valid),
        ]
        if params.timestamp_bits:
            m.d.sync += self.evicted.eq(r.evicted | s.evicted)
        return m

    def _compare(
        self,
        m: Module,
        matcher: Matcher,
        sub_windows: tuple[SubWindow, SubWindow],
        probes: tuple[Signal, View, View],
    ) -> None:
        """Hand what was read to the matcher; an empty slot is one that is not live."""
        r, s = sub_windows
        probe_side, r_probe, s_probe = probes
        m.d.comb += [
            matcher.probe_side.eq(probe_side),
            matcher.r_probe.eq(r_probe),
            matcher.s_probe.eq(s_probe),
            matcher.r_live.eq(r.live),
            matcher.s_live.eq(s.live),
        ]
        for lane in range(self.params.lanes):
            for slots, sub_window in ((matcher.r_slots, r), (matcher.s_slots, s)):
                m.d.comb += [
                    slots[lane].valid.eq(Const(1, 1)),
                    slots[lane].body.eq(sub_window.slots[lane]),
                ]


class FastChain(Component):
    """The cores one behind the other, and the tree that collects their results.

    Parameters
    ----------
    params : DesignParams
        The design.
    by_reference : bool
        Instantiate the cores' Verilog module instead of elaborating each.

    Members
    -------
    i : In(stream.Signature(ordered_layout(params)))
        Nothing while ``settling``.
    clear : In(1)
    settling : Out(1)
        After a reset or ``clear``, until it has come to all cores; from a register.
    results : Out(stream.Signature(result_layout(params)))
    held, busy, evicted
        See :func:`~streamjoin_hw.rtl.chain.collection.collect`.
    """

    i: stream.Interface
    clear: Signal
    settling: Signal
    results: stream.Interface
    held: Signal
    busy: Signal
    evicted: Signal

    def __init__(self, params: DesignParams, *, by_reference: bool = False) -> None:
        self.params = params
        self.by_reference = by_reference
        super().__init__(
            {
                "i": In(stream.Signature(ordered_layout(params))),
                "clear": In(1),
                "settling": Out(1),
                "results": Out(stream.Signature(result_layout(params))),
                **gathered_members(params),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Chain the cores; the last one forwards into nothing."""
        m = Module()
        params = self.params
        spread = Spread(params)
        spread.grow(m)
        resets = spread.resets(m)
        known = scan_core_members(params) if self.by_reference else None
        cores = make_cores(m, params, lambda: ScanCore(params), resets, known)
        # The core that a tuple comes to has been cleared, one after the other, as the tuple comes,
        # after the reset has come to all of them.
        clears = self.clear | ~spread.complete
        clear = delayed(m, 1, clears, spread.levels + 2, name="clear")
        settling = spread.settling(m, again=clears)
        m.d.comb += self.settling.eq(settling)
        tuples: Any = wiring.flipped(self.i)
        for core in cores:
            m.d.comb += core.clear.eq(clear)
            wiring.connect(m, tuples, core.i)
            tuples = core.o
            clear = delayed(m, 1, clear, 1, name="clear_on")
        for index, core in enumerate(cores):
            m.d.comb += core.index.eq(Const(index, len(core.index)))
        m.d.comb += tuples.ready.eq(1)
        renewed = spread.renewed
        collect(m, params, cores, self, resets=resets, renewed=renewed, settling=settling)
        return m
