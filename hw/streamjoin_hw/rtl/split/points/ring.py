"""A core's share of a window of points, and what a batch that is collected will look at."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.memory import Position, advance, lane_bits, memory_of
from streamjoin_hw.rtl.split.layouts import ring_words, row_bits
from streamjoin_hw.rtl.split.points.layouts import pass_layout
from streamjoin_hw.rtl.split.subwindow import word_bits
from streamjoin_hw.rtl.streams import Component, View


class PointRing(Component):
    """The ring of one side: its pointers, and its payloads; codes of both sides lie elsewhere.

    Every change is made at once. A pass looks at what has been there since its batch's first probe,
    so the oldest tuple of then is remembered while probes are collected.

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    clear : In(1)
        Empty it; needed once before the first tuple.
    store : In(1), payload : In(payload_bits), expire : In(1)
        Store a tuple; make the oldest one expire.
    keeps : In(1)
        There are probes in the batch that is collected. The ring changes neither in the cycle
        before it rises nor in the last one in which it is 1.
    head_word, head_lane : Out
        The slot of the next tuple.
    range : Out(pass_layout(params))
        What the batch looks at.
    fetch : In(1), fetch_word, fetch_lane : In, payload_out : Out(payload_bits)
        The payload of a slot, a cycle later; it stays until the next ``fetch``.
    """

    clear: Signal
    store: Signal
    payload: Signal
    expire: Signal
    keeps: Signal
    head_word: Signal
    head_lane: Signal
    range: View
    fetch: Signal
    fetch_word: Signal
    fetch_lane: Signal
    payload_out: Signal

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        flags = ("clear", "store", "expire", "keeps", "fetch")
        super().__init__(
            {
                **{name: In(1) for name in flags},
                "payload": In(params.payload_bits),
                "head_word": Out(word_bits(params)),
                "head_lane": Out(lane_bits(params)),
                "range": Out(pass_layout(params)),
                "fetch_word": In(word_bits(params)),
                "fetch_lane": In(lane_bits(params)),
                "payload_out": Out(params.payload_bits),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build pointers, what is remembered of them, and the memory."""
        m = Module()
        params, lanes = self.params, self.params.lanes
        head_word = Signal(word_bits(params))
        head_lane = Signal(lane_bits(params))
        tail_word = Signal(word_bits(params))
        tail_lane = Signal(lane_bits(params))
        count = Signal(range(ring_words(params) * lanes))
        # Words from the oldest tuple's to the one that the next tuple is stored in, if that holds
        # a tuple or held one since it was entered.
        span = Signal(range(ring_words(params) + 1))
        opens = Signal()
        leaves = Signal()
        m.d.comb += [
            opens.eq(self.store & (head_lane == 0)),
            leaves.eq(self.expire & (tail_lane == lanes - 1)),
            self.head_word.eq(head_word),
            self.head_lane.eq(head_lane),
        ]
        advance(m, Position(head_word, head_lane), self.store, ring_words(params), lanes)
        advance(m, Position(tail_word, tail_lane), self.expire, ring_words(params), lanes)
        m.d.sync += [
            count.eq(count + self.store - self.expire),
            span.eq(span + opens - leaves),
        ]
        # As they were before the batch's first probe; what is stored since is counted.
        pairs = [(tail_word, None), (tail_lane, None), (count, self.store), (span, opens)]
        row = Signal(row_bits(params))
        if params.order == "inner":
            m.d.sync += row.eq(row + self.expire)
            pairs.append((row, None))
        kept = []
        for now, more in pairs:
            each = Signal.like(now)
            m.d.sync += each.eq(Mux(self.keeps, each if more is None else each + more, now))
            kept.append(each)
        word, lane, held, words, *rows = kept
        m.d.comb += [
            self.range.words.eq(Mux(held == 0, 0, words)),
            self.range.first_word.eq(word),
            self.range.first_lane.eq(lane),
            self.range.pad.eq(Mux(head_lane == 0, 0, lanes - head_lane)),
        ]
        if params.order == "inner":
            m.d.comb += self.range.row.eq(rows[0] - lane)
        with m.If(self.clear):
            pointers = [head_word, head_lane, tail_word, tail_lane, count, span, row]
            m.d.sync += [each.eq(0) for each in pointers]
        self._payloads(m, head_word, head_lane)
        return m

    def _payloads(self, m: Module, head_word: Signal, head_lane: Signal) -> None:
        """Build the memory of payloads."""
        params = self.params
        # Lanes that are no power of two leave addresses unused.
        used = 0 if params.lanes == 1 else lane_bits(params)
        payloads: Any = memory_of(
            params.window_memory, params.payload_bits, ring_words(params) << used, is_free=True
        )
        m.submodules.payloads = payloads
        write, read = payloads.write_port(), payloads.read_port()
        m.d.comb += [
            write.addr.eq(Cat(head_lane[:used], head_word)),
            write.data.eq(self.payload),
            write.en.eq(self.store),
            read.addr.eq(Cat(self.fetch_lane[:used], self.fetch_word)),
            read.en.eq(self.fetch),
            self.payload_out.eq(read.data),
        ]
