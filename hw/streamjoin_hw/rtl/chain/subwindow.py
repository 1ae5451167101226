"""One core's sub-window of one stream, where tuples are stored round robin.

A core stores every ``cores``-th tuple of a stream and drops the oldest in that tuple's turn to
expire, both by its own counts (SplitJoin, section 4; the low-latency handshake join stores its
tuples in the same way). Of ``window`` tuples each core then holds its share, whatever the window's
size, and the oldest of all is always the one that is dropped.

A ring in memory, slot number ``word * lanes + lane``, one memory for each lane, so that a word,
``lanes`` slots, is read in one cycle. A scan begins with the oldest word and takes ``words`` of
them, at most one more than the live tuples would fill.

Tuples of a side arrive at least two cycles apart. So all that a tuple may make of the sub-window is
in registers as it arrives, and it only chooses between them.
"""

from typing import Any

from amaranth.hdl import Assert, Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.memory import Position, advance, lane_memory, position_of, word_bits
from streamjoin_hw.rtl.streams import (
    Component,
    View,
    one_less,
    one_more,
    payload_of,
    signal_of,
)
from streamjoin_hw.rtl.turn import Turn


def words_bits(params: DesignParams) -> int:
    """Bits of a count of a sub-window's words."""
    return bits_for(params.segment_words)


def extent_layout(params: DesignParams) -> data.StructLayout:
    """Layout of how far a sub-window reaches.

    So many ``words`` are read by a scan: at most one if ``is_single``, at most two if
    ``is_short``. The ring ``wraps`` where its oldest and its newest tuple lie in the same word and
    it is all but full; this word is read once.
    """
    return data.StructLayout(
        {"words": words_bits(params), "wraps": 1, "is_single": 1, "is_short": 1}
    )


class SubWindow(Component):
    """The sub-window of one side in one core.

    Parameters
    ----------
    params : DesignParams
        The design: cores, lanes and words.
    body : StructLayout
        Layout of a tuple.

    Members
    -------
    index : In(bits_for(cores - 1))
        The core's number, constant.
    clear : In(1)
        Empty the sub-window in this cycle; needed once before the first tuple.
    comes : In(1)
        A tuple of this side arrives in the next cycle; never in two cycles one after the other,
        nor with ``clear``.
    full : In(1)
        With it: the window is full, the oldest tuple of the stream expires.
    arrives : Out(1)
        It came a cycle ago. Not while the sub-window is scanned.
    enter : In(body)
        With ``arrives``: the tuple.
    first_word : Out(word_bits(params)), extent : Out(extent_layout(params))
        Where a scan begins and how many words it takes, going round after the last word; right
        from the cycle after ``arrives`` on.
    is_empty : Out(1)
        A scan takes no word, whatever ``extent`` says.
    scan_word : In(word_bits(params)), scan_first, scan_last : In(1)
        Read this word, in a scan its first, its last. It is ``first_word`` with ``arrives`` if
        there are timestamps: what expires lies there.
    slots : Out(ArrayLayout(body, lanes))
        The word read a cycle ago.
    live : Out(lanes)
        Which of its slots are in the window, if it was read for a scan.
    evicted : Out(1)
        Pulse, if there are timestamps: a tuple expired by count before its time, two cycles ago.
    """

    index: Signal
    clear: Signal
    comes: Signal
    full: Signal
    arrives: Signal
    enter: View
    first_word: Signal
    extent: View
    is_empty: Signal
    scan_word: Signal
    scan_first: Signal
    scan_last: Signal
    slots: View
    live: Signal
    evicted: Signal

    def __init__(self, params: DesignParams, body: data.StructLayout) -> None:
        self.params = params
        self.body = body
        flags = ("clear", "comes", "full", "scan_first", "scan_last")
        super().__init__(
            {
                "index": In(bits_for(params.cores - 1)),
                **{name: In(1) for name in flags},
                "arrives": Out(1),
                "enter": In(body),
                "first_word": Out(word_bits(params)),
                "extent": Out(extent_layout(params)),
                "is_empty": Out(1),
                "scan_word": In(word_bits(params)),
                "slots": Out(data.ArrayLayout(body, params.lanes)),
                "live": Out(params.lanes),
                "evicted": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build turns and pointers, memories and the mask."""
        m = Module()
        words, lanes = self.params.segment_words, self.params.lanes
        store, expire = (Turn(self.params.cores, is_far=True) for _ in range(2))
        m.submodules.store, m.submodules.expire = store, expire
        # Where the next tuple is stored, and where the oldest one is. `clear` alone resets what is
        # here: beside the domain's reset it would pass a LUT.
        head, tail = (position_of(word_bits(self.params), lanes, name) for name in ("head", "tail"))
        # What a tuple does is decided as it comes: that it is stored, that the oldest one expires,
        # that it opens a word, that the oldest word is left.
        stored, expired, opens, leaves = (
            Signal(name=name) for name in ("stored", "expired", "opens", "leaves")
        )
        stores, expires = self.comes & store.mine, self.comes & self.full & expire.mine
        m.d.sync += [
            self.arrives.eq(self.comes),
            stored.eq(stores),
            expired.eq(expires),
            opens.eq(stores & (head.lane == 0)),
            leaves.eq(expires & (tail.lane == lanes - 1)),
        ]
        for turn, event in ((store, self.comes), (expire, self.comes & self.full)):
            m.d.comb += [turn.index.eq(self.index), turn.clear.eq(self.clear), turn.event.eq(event)]
        too_close = Signal()
        m.d.sync += too_close.eq(self.comes & (self.arrives | self.clear))
        m.d.comb += Assert(~too_close, "tuples of a side come too close to each other")

        advance(m, head, stored, words, lanes)
        advance(m, tail, expired, words, lanes)
        extent = self._reach(m, opens, leaves)
        alone, empty = payload_of(1, name="alone"), payload_of(1, name="empty")
        after = Mux(tail.lane == lanes - 1, 0, tail.lane + 1)
        # One tuple is left.
        m.d.sync += alone.eq(extent.is_single & ~extent.wraps & (after == head.lane))
        with m.If(stored | expired):
            m.d.sync += empty.eq(~stored & alone)
        with m.If(self.clear):
            m.d.sync += [empty.eq(1), *(each.eq(0) for each in (*head.registers, *tail.registers))]
        m.d.comb += [
            self.first_word.eq(tail.word),
            self.extent.eq(extent),
            self.is_empty.eq(empty),
        ]
        self._mask(m, head.lane, tail.lane, extent.wraps)
        self._memories(m, head, tail, (stored, expired))
        return m

    def _reach(self, m: Module, opens: Signal, leaves: Signal) -> Any:
        """Build how far the ring reaches, and would with a word more and with a word fewer."""
        words, lanes = self.params.segment_words, self.params.lanes
        layout = extent_layout(self.params)
        extent, longer, shorter = (
            payload_of(layout, name=name) for name in ("reach", "longer", "shorter")
        )
        is_single, is_short = extent.is_single, extent.is_short
        more: Value = Cat(
            one_more(extent.words), Const(0, 1), is_single & ~extent.words[0], is_single
        )
        fewer: Value = Cat(one_less(extent.words), Const(0, 1), is_short, ~extent.words[2:].any())
        if lanes > 1:
            # A word of one slot has no room for both ends.
            wraps = extent.words == words
            more = Mux(wraps, Cat(extent.words, Const(1, 1), is_single, is_short), more)
            fewer = Mux(extent.wraps, Cat(extent.words, Const(0, 1), is_single, is_short), fewer)
        m.d.sync += [longer.eq(more), shorter.eq(fewer)]
        with m.If(opens ^ leaves):
            m.d.sync += extent.eq(Mux(opens, longer.as_value(), shorter.as_value()))
        with m.If(self.clear):
            m.d.sync += extent.eq(layout.const({"is_single": 1, "is_short": 1}))
        return extent

    def _mask(self, m: Module, head_lane: Value, tail_lane: Value, wraps: Value) -> None:
        """Build which slots of the word that is read are in the window."""
        lanes = self.params.lanes
        after_tail = ~((Const(1, lanes + 1) << tail_lane) - 1)
        before_head = (Const(1, lanes + 1) << head_lane) - 1
        older = Mux(self.scan_first, after_tail[:lanes], ~Const(0, lanes))
        whole = head_lane == 0
        newer = Mux(self.scan_last & ~whole, before_head[:lanes], ~Const(0, lanes))
        both = after_tail[:lanes] | before_head[:lanes]
        mask = Mux(self.scan_first & wraps, both, older & newer)
        # The word where a full ring closes is the first and is not met again at the end.
        closed = self.scan_last & ~self.scan_first & wraps
        m.d.sync += self.live.eq(Mux(closed, ~Const(0, lanes), mask))

    def _memories(
        self, m: Module, head: Position, tail: Position, changes: tuple[Signal, Signal]
    ) -> None:
        """Build a memory for each lane, and look at the time of what expires."""
        params, (stored, expired) = self.params, changes
        oldest = signal_of(self.body)
        expiring_lane = payload_of(len(tail.lane), name="expiring_lane")
        for lane in range(params.lanes):
            memory = lane_memory(params, self.body)
            m.submodules[f"lane{lane}"] = memory
            write, read = memory.write_port(), memory.read_port()
            m.d.comb += [
                write.addr.eq(head.word),
                write.data.eq(self.enter),
                write.en.eq(stored & (head.lane == lane)),
                read.addr.eq(self.scan_word),
                self.slots[lane].eq(read.data),
            ]
            with m.If(expiring_lane == lane):
                m.d.comb += oldest.eq(read.data)
        if params.timestamp_bits:
            expiring, now = Signal(name="expiring"), payload_of(params.timestamp_bits, name="now")
            m.d.sync += [
                expiring.eq(expired),
                expiring_lane.eq(tail.lane),
                now.eq(self.enter.ts),
                self.evicted.eq(expiring & (oldest.end > now)),
            ]
