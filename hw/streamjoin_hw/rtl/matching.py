"""From slots and a probe to results: comparators, result FIFO, serialiser.

What every scanning core shares, however its window is stored. Timing, in cycles after the word's
address went to memory:

====  ==========================================================================================
1     the word is compared with the probing tuple
2     what its parts gave is registered
3     so is, for each side, whether all of them match
4     so is the word on its way, with the match mask; one with a match enters the result FIFO
5     the FIFO's level shows it
====  ==========================================================================================
"""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import HOLD_WORDS, SIDE_R, SIDE_S, DesignParams
from streamjoin_hw.rtl.predicates import parts_of_a_match
from streamjoin_hw.rtl.queues import ResultQueue
from streamjoin_hw.rtl.streams import (
    Component,
    PipeReg,
    View,
    met_layout,
    payload_of,
    r_layout,
    registers_of,
    result_layout,
    s_layout,
    slot_layout,
)


def word_layout(params: DesignParams) -> data.StructLayout:
    """Layout of a result FIFO word: the probing tuple's payload and side, and what it met.

    ``mask`` has the lanes that it met, ``single`` says that it is one.
    """
    return data.StructLayout(
        {
            "side": 1,
            "probe": params.payload_bits,
            "mask": params.lanes,
            "single": 1,
            "payloads": data.ArrayLayout(params.payload_bits, params.lanes),
        }
    )


def is_single(mask: Value) -> Value:
    """Return whether of a mask's bits at most one is set."""
    return ~Cat(bit & mask[:k].any() for k, bit in enumerate(mask)).any()


def _lowest(mask: Value, payloads: list[Any]) -> Any:
    """Return the payload of the lowest bit that is set, by a tree; the last one if none is."""
    if len(payloads) == 1:
        return payloads[0]
    half = len(payloads) // 2
    low, high = _lowest(mask[:half], payloads[:half]), _lowest(mask[half:], payloads[half:])
    return Mux(mask[:half].any(), low, high)


def by_side(result: View, side: Value, probe: Value, met: Value) -> list[Any]:
    """Assign both payloads to a result by the side of the tuple that probed."""
    return [
        result.r_payload.eq(Mux(side == SIDE_R, probe, met)),
        result.s_payload.eq(Mux(side == SIDE_S, probe, met)),
    ]


class Serialiser(Component):
    """Turn words of a result FIFO into single results, lowest lane first.

    Throughput one result a cycle, also from one word to the next. Registers say whether a word is
    held and whether its last result is given, so that one LUT leads to ``word_taken``.

    Parameters
    ----------
    params : DesignParams
        The design.
    is_met : bool
        Results are given in :func:`~streamjoin_hw.rtl.streams.met_layout`.

    Members
    -------
    word : In(word_layout(params)), word_valid : In(1), word_taken : Out(1)
        Head of the FIFO.
    results : Out(stream.Signature(result_layout(params)))
        Or of ``met_layout(params)``.
    busy : Out(1)
        A result is inside.
    """

    word: View
    word_valid: Signal
    word_taken: Signal
    results: stream.Interface
    busy: Signal

    def __init__(self, params: DesignParams, *, is_met: bool = False) -> None:
        self.params = params
        self.is_met = is_met
        layout = met_layout(params) if is_met else result_layout(params)
        super().__init__(
            {
                "word": In(word_layout(params)),
                "word_valid": In(1),
                "word_taken": Out(1),
                "results": Out(stream.Signature(layout)),
                "busy": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the register that holds a word and the choice of its next lane."""
        m = Module()
        held = payload_of(word_layout(self.params))
        rest = Signal(self.params.lanes)
        met = Signal(self.params.payload_bits)
        is_held = Signal()
        m.d.comb += [
            met.eq(_lowest(held.mask, list(held.payloads))),
            rest.eq(held.mask & (held.mask - 1)),
            self.busy.eq(is_held),
            self.results.valid.eq(is_held),
            self.results.p.side.eq(held.side),
        ]
        if self.is_met:
            m.d.comb += [self.results.p.probe.eq(held.probe), self.results.p.met.eq(met)]
        else:
            m.d.comb += by_side(self.results.p, held.side, held.probe, met)
        with m.If(~is_held | (self.results.ready & held.single)):
            m.d.comb += self.word_taken.eq(1)
            m.d.sync += [held.eq(self.word), is_held.eq(self.word_valid)]
        with m.Elif(self.results.ready):
            m.d.sync += [held.mask.eq(rest), held.single.eq(is_single(rest))]
        return m


class PairSerialiser(Component):
    """Turn words of a result FIFO into beats of up to two results, lowest lanes first.

    Throughput one beat a cycle, also from one word to the next. A beat has results of one word.

    Parameters
    ----------
    params : DesignParams
        The design.

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
        """Build the register that holds a word and the choice of its next two lanes."""
        m = Module()
        held = registers_of(word_layout(self.params), "mask", name="held")
        one = Signal(self.params.lanes)
        both = Signal(self.params.lanes)
        payloads = list(held.payloads)
        m.d.comb += [
            # What is left without the first, and without the second.
            one.eq(held.mask & (held.mask - 1)),
            both.eq(one & (one - 1)),
            self.busy.eq(held.mask.any()),
            self.results.valid.eq(self.busy),
            self.results.p.side.eq(held.side),
            self.results.p.second.eq(one.any()),
        ]
        for suffix, mask in (("", held.mask), ("_second", one)):
            met = _lowest(mask, payloads)
            is_r = held.side == SIDE_R
            m.d.comb += [
                self.results.p[f"r_payload{suffix}"].eq(Mux(is_r, held.probe, met)),
                self.results.p[f"s_payload{suffix}"].eq(Mux(is_r, met, held.probe)),
            ]
        with m.If(~self.busy | (self.results.ready & ~both.any())):
            m.d.comb += self.word_taken.eq(1)
            m.d.sync += [held.eq(self.word), held.mask.eq(Mux(self.word_valid, self.word.mask, 0))]
        with m.Elif(self.results.ready):
            m.d.sync += held.mask.eq(both)
        return m


def queue_words(params: DesignParams, free_words: int) -> int:
    """Return the words of a result FIFO: some are left to work with, however many must be free."""
    return max(params.result_fifo_words, free_words + 1)


class Matcher(Component):
    """Compare words of stored tuples with a probing tuple and give the pairs that match.

    Each side has comparators of its own: a multiplexer in front of a shared one would cost as
    much and lengthen the longest path.

    Parameters
    ----------
    params : DesignParams
        The design.
    is_met : bool
        Results are given in :func:`~streamjoin_hw.rtl.streams.met_layout`, and without a register
        stage: what takes them is near.
    free_words : int
        Words that are free while there is no hold; six still arrive after the one that leaves fewer
        (:data:`~streamjoin_common.contract.HOLD_WORDS`) where a core scans by itself.

    Members
    -------
    scan : In(1)
        A word's address is given to memory in this cycle; the others are of the cycle after. It may
        be 1 in more cycles, and only ``busy`` follows it.
    r_slots, s_slots : In(ArrayLayout(slot_layout, lanes))
        Words of R and of S.
    r_live, s_live : In(lanes)
        Which slots count.
    r_probe, s_probe : In(slot_layout)
        The probing tuples; only the one of ``probe_side`` counts.
    probe_side : In(1)
    results : Out(stream.Signature(result_layout(params)))
        ``side`` is that of the probing tuple; or of ``met_layout(params)``.
    hold : Out(1)
        Fewer than ``free_words`` words of the result FIFO are free; from a register.
    busy : Out(1)
        A result, or a word that may hold one, is inside; from a register, two cycles late.
    """

    scan: Signal
    r_slots: View
    s_slots: View
    r_live: Signal
    s_live: Signal
    r_probe: View
    s_probe: View
    probe_side: Signal
    results: stream.Interface
    hold: Signal
    busy: Signal

    def __init__(
        self, params: DesignParams, *, is_met: bool = False, free_words: int = HOLD_WORDS - 1
    ) -> None:
        self.params = params
        self.is_met = is_met
        self.free_words = free_words
        layout = met_layout(params) if is_met else result_layout(params)
        r_slot, s_slot = slot_layout(r_layout(params)), slot_layout(s_layout(params))
        super().__init__(
            {
                "scan": In(1),
                "r_slots": In(data.ArrayLayout(r_slot, params.lanes)),
                "s_slots": In(data.ArrayLayout(s_slot, params.lanes)),
                "r_live": In(params.lanes),
                "s_live": In(params.lanes),
                "r_probe": In(r_slot),
                "s_probe": In(s_slot),
                "probe_side": In(1),
                "results": Out(stream.Signature(layout)),
                "hold": Out(1),
                "busy": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the comparators and the way out."""
        m = Module()
        params, probe_side = self.params, self.probe_side

        words = queue_words(params, self.free_words)
        m.submodules.queue = queue = ResultQueue(word_layout(params), words, self.free_words)

        # Cycle 1: compare, in parts. Cycle 2: whether all parts of a side's are 1. Whether a slot
        # counts goes beside them.
        is_s = probe_side == SIDE_S
        payloads = payload_of(data.ArrayLayout(params.payload_bits, params.lanes), name="payloads")
        side, probe = payload_of(1, name="side"), payload_of(params.payload_bits, name="probe")
        masks = []
        for lane in range(params.lanes):
            r, s = self.r_slots[lane], self.s_slots[lane]
            found = []
            for r_body, s_body, counts in (
                (
                    r.body,
                    self.s_probe.body,
                    is_s & self.r_live[lane] & r.valid & self.s_probe.valid,
                ),
                (
                    self.r_probe.body,
                    s.body,
                    ~is_s & self.s_live[lane] & s.valid & self.r_probe.valid,
                ),
            ):
                compared = parts_of_a_match(params, r_body, s_body)
                parts = payload_of(len(compared), name="parts")
                all_parts = payload_of(1, name="all_parts")
                counted = Signal(2, name="counted")
                m.d.sync += [
                    parts.eq(Cat(*compared)),
                    all_parts.eq(parts.all()),
                    counted.eq(Cat(counts, counted[0])),
                ]
                found.append(all_parts & counted[1])
            masks.append(Cat(*found).any())
            m.d.sync += payloads[lane].eq(Mux(is_s, r.body.payload, s.body.payload))
        m.d.sync += [
            side.eq(probe_side),
            probe.eq(Mux(is_s, self.s_probe.body.payload, self.r_probe.body.payload)),
        ]

        # Cycles 2 and 3: registers on the way to the queue, which may lie far from the windows.
        mask = Cat(*masks)
        word = payload_of(word_layout(params), name="word")
        for name, value in (("side", side), ("probe", probe), ("payloads", payloads)):
            late = payload_of(value.shape(), name=f"late_{name}")
            m.d.sync += [late.eq(value), word[name].eq(late)]
        m.d.sync += [
            word.mask.eq(mask),
            word.single.eq(is_single(mask)),
            queue.write.eq(mask.any()),
        ]
        m.d.comb += [queue.word.eq(word), self.hold.eq(queue.few)]
        scanned, compares = Signal(2, name="scanned"), Signal(name="compares")
        m.d.sync += [
            scanned.eq(Cat(self.scan, scanned[0])),
            compares.eq(self.scan | scanned.any()),
            self.busy.eq(compares | queue.write | queue.busy | self._give(m, queue)),
        ]
        return m

    def _give(self, m: Module, queue: ResultQueue) -> Value:
        """Build the way out of the queue; return whether a result is on it."""
        params = self.params
        if self.is_met and params.lanes == 1:
            # A word is a result: the queue's head waits for whoever takes it.
            m.d.comb += [
                self.results.valid.eq(queue.is_there),
                self.results.p.side.eq(queue.head.side),
                self.results.p.probe.eq(queue.head.probe),
                self.results.p.met.eq(queue.head.payloads[0]),
                queue.take.eq(self.results.ready),
            ]
            return Const(0, 1)
        serialiser: Serialiser | PairSerialiser = (
            PairSerialiser(params)
            if params.beat_results > 1
            else Serialiser(params, is_met=self.is_met)
        )
        m.submodules.serialiser = serialiser
        m.d.comb += [
            serialiser.word.eq(queue.head),
            serialiser.word_valid.eq(queue.is_there),
            queue.take.eq(serialiser.word_taken),
        ]
        if self.is_met:
            wiring.connect(m, serialiser.results, wiring.flipped(self.results))
            return serialiser.busy
        m.submodules.output = output = PipeReg(result_layout(params))
        wiring.connect(m, serialiser.results, output.i)
        wiring.connect(m, output.o, wiring.flipped(self.results))
        return serialiser.busy | output.busy
