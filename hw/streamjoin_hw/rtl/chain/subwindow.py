"""One core's sub-window of one stream, where tuples are stored round robin.

A core stores every ``cores``-th tuple of a stream and drops the oldest in that tuple's turn to
expire, both by its own counts (SplitJoin, section 4; the low-latency handshake join stores its
tuples in the same way). Of ``window`` tuples each core then holds its share, whatever the window's
size, and the oldest of all is always the one that is dropped.

A ring in memory, slot number ``word * lanes + lane``, one memory for each lane, so that a word,
``lanes`` slots, is read in one cycle. A scan begins with the oldest word and takes ``words`` of
them, at most one more than the live tuples would fill.
"""

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.memory import lane_memory, position_layout, word_after, word_bits
from streamjoin_hw.rtl.streams import Component, View, payload_of, signal_of
from streamjoin_hw.rtl.turn import Turn


def words_bits(params: DesignParams) -> int:
    """Bits of a count of a sub-window's words."""
    return bits_for(params.segment_words + 1)


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
    arrive : In(1)
        A tuple of this side arrives; not while the sub-window is scanned.
    full : In(1)
        With it: the window is full, the oldest tuple of the stream expires.
    enter : In(body)
        The tuple.
    first_word : Out(word_bits(params)), words : Out(words_bits(params))
        Where a scan begins and how many words it takes, going round after the last word; no
        word while the sub-window is empty.
    is_empty, is_single : Out(1)
        A scan takes no word, one.
    scan_word : In(word_bits(params)), scan_first, scan_last : In(1)
        Read this word, in a scan its first, its last. It is ``first_word`` with ``arrive``: what
        expires lies there.
    slots : Out(ArrayLayout(body, lanes))
        The word read a cycle ago.
    live : Out(lanes)
        Which of its slots are in the window, if it was read for a scan.
    evicted : Out(1)
        Pulse, if there are timestamps: a tuple expired by count before its time, two cycles ago.
    """

    index: Signal
    clear: Signal
    arrive: Signal
    full: Signal
    enter: View
    first_word: Signal
    words: Signal
    is_empty: Signal
    is_single: Signal
    scan_word: Signal
    scan_first: Signal
    scan_last: Signal
    slots: View
    live: Signal
    evicted: Signal

    def __init__(self, params: DesignParams, body: data.StructLayout) -> None:
        self.params = params
        self.body = body
        flags = ("clear", "arrive", "full", "scan_first", "scan_last")
        super().__init__(
            {
                "index": In(bits_for(params.cores - 1)),
                **{name: In(1) for name in flags},
                "enter": In(body),
                "first_word": Out(word_bits(params)),
                "words": Out(words_bits(params)),
                "is_empty": Out(1),
                "is_single": Out(1),
                "scan_word": In(word_bits(params)),
                "slots": Out(data.ArrayLayout(body, params.lanes)),
                "live": Out(params.lanes),
                "evicted": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build turns, pointers, memories and the mask."""
        m = Module()
        params, lanes = self.params, self.params.lanes
        turns = {}
        for name, event in (("store", self.arrive), ("expire", self.arrive & self.full)):
            m.submodules[name] = turn = Turn(params.cores)
            m.d.comb += [
                turn.index.eq(self.index),
                turn.clear.eq(self.clear),
                turn.event.eq(event),
            ]
            turns[name] = event & turn.mine
        store, expire = turns["store"], turns["expire"]

        # Where the next tuple is stored, and where the oldest one is. `clear` alone resets what is
        # here: beside the domain's reset it would pass a LUT.
        head = payload_of(position_layout(params))
        tail = payload_of(position_layout(params))
        count = payload_of(range(params.segment_words * lanes + 1))
        # Words from the oldest tuple's to the newest's; the ring's length and one more, `wraps`,
        # where both lie in the same word and the ring is all but full. What a scan needs comes
        # from registers: `empty` and `wraps` follow the counts.
        span = payload_of(words_bits(params))
        empty, wraps = payload_of(1), payload_of(1)
        opens, leaves = Signal(name="opens"), Signal(name="leaves")
        m.d.comb += [
            opens.eq(store & (head.lane == 0)),
            leaves.eq(expire & (tail.lane == lanes - 1)),
            self.first_word.eq(tail.word),
            self.words.eq(Mux(empty, 0, Mux(wraps, params.segment_words, span))),
            self.is_empty.eq(empty),
            self.is_single.eq(self.words == 1),
        ]
        self._advance(m, head, store)
        self._advance(m, tail, expire)
        # What counts is a clock enable, and which way it counts known before.
        for number, more, less in ((count, store, expire), (span, opens, leaves)):
            with m.If(more != less):
                m.d.sync += number.eq(Mux(more, number + 1, number - 1))
        with m.If(store):
            m.d.sync += empty.eq(0)
        with m.Elif(expire & (count == 1)):
            m.d.sync += empty.eq(1)
        with m.If(opens & ~leaves & (span == params.segment_words)):
            m.d.sync += wraps.eq(1)
        with m.Elif(leaves & ~opens):
            m.d.sync += wraps.eq(0)
        with m.If(self.clear):
            m.d.sync += [head.eq(0), tail.eq(0), count.eq(0), span.eq(0)]
            m.d.sync += [empty.eq(1), wraps.eq(0)]

        after_tail = ~((Const(1, lanes + 1) << tail.lane) - 1)
        before_head = (Const(1, lanes + 1) << head.lane) - 1
        older = Mux(self.scan_first, after_tail[:lanes], ~Const(0, lanes))
        whole = head.lane == 0
        newer = Mux(self.scan_last & ~whole, before_head[:lanes], ~Const(0, lanes))
        both = after_tail[:lanes] | before_head[:lanes]
        mask = Mux(self.scan_first & wraps, both, older & newer)
        # The word where a full ring closes is the first and is not met again at the end.
        closed = self.scan_last & ~self.scan_first & wraps
        m.d.sync += self.live.eq(Mux(closed, ~Const(0, lanes), mask))

        oldest = signal_of(self.body)
        expired = payload_of(position_layout(params), name="expired")
        for lane in range(lanes):
            memory = lane_memory(params, self.body)
            m.submodules[f"lane{lane}"] = memory
            write, read = memory.write_port(), memory.read_port()
            m.d.comb += [
                write.addr.eq(head.word),
                write.data.eq(self.enter),
                write.en.eq(store & (head.lane == lane)),
                read.addr.eq(self.scan_word),
                self.slots[lane].eq(read.data),
            ]
            with m.If(expired.lane == lane):
                m.d.comb += oldest.eq(read.data)
        if params.timestamp_bits:
            expiring, now = Signal(name="expiring"), payload_of(params.timestamp_bits, name="now")
            m.d.sync += [
                expiring.eq(expire),
                expired.eq(tail),
                now.eq(self.enter.ts),
                self.evicted.eq(expiring & (oldest.end > now)),
            ]
        return m

    def _advance(self, m: Module, position: View, step: Value) -> None:
        """Move a position by one slot round the ring."""
        # A tool cannot know that the only lane is always the last one.
        is_last = (position.lane == self.params.lanes - 1) | (self.params.lanes == 1)
        with m.If(step & is_last):
            m.d.sync += [
                position.lane.eq(0),
                position.word.eq(word_after(position.word, self.params.segment_words)),
            ]
        with m.Elif(step):
            m.d.sync += position.lane.eq(position.lane + 1)
