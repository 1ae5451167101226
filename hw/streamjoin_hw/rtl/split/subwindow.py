"""A core's share of one stream's window: a ring of words, stored and expired in turn."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.memory import (
    Position,
    advance,
    lane_bits,
    memory_of,
    position_of,
    word_after,
)
from streamjoin_hw.rtl.split.layouts import (
    body_layout,
    is_single,
    key_layout,
    pass_words,
    ring_words,
    row_bits,
    row_member,
)
from streamjoin_hw.rtl.streams import (
    Component,
    View,
    one_less,
    one_more,
    payload_of,
    signal_of,
)


def word_bits(params: DesignParams) -> int:
    """Bits of a word number of a ring."""
    return bits_for(ring_words(params) - 1)


def rest_bits(params: DesignParams) -> int:
    """Bits of the number of words of a pass behind its first two."""
    return bits_for(max(1, pass_words(params) - 2))


def left_bits(params: DesignParams) -> int:
    """Bits of the number of words that are left of a pass; with one probe slot, behind two."""
    return rest_bits(params) if is_single(params) else bits_for(pass_words(params))


def range_layout(params: DesignParams) -> data.StructLayout:
    """Layout of the slots that a pass looks at.

    ``words`` from ``first_word`` on, round the ring; of the first one the lanes from
    ``first_lane`` on, of the last one those below ``end_lane``, all if it is 0. The oldest slot is
    the one that expires if ``old``, the newest the one that is stored if ``new``. ``row`` is the
    number of lane 0 of the first word.
    """
    return data.StructLayout(
        {
            "words": bits_for(pass_words(params)),
            "first_word": word_bits(params),
            "first_lane": lane_bits(params),
            "end_lane": lane_bits(params),
            "old": 1,
            "new": 1,
            **row_member(params),
        }
    )


class SubWindow(Component):
    """The ring of one side in one core, and what a pass over it looks at.

    Keys lie in one memory a lane, so that a word of ``lanes`` slots is read in one cycle; payloads
    in a memory of their own, read one at a time for results. Where comparators are shared, so are
    the memories of keys, which are then outside.

    Parameters
    ----------
    params : DesignParams
        The design.
    side : int
        The side that is stored.

    Members
    -------
    clear : In(1)
        Empty it; only beside a reset, and once before the first tuple.
    begin : In(1)
        A pass begins; with it ``store``, ``expire`` : In(1), what is done to the ring.
    enter : In(body_layout(params, side))
        The tuple to store.
    range : Out(range_layout(params))
        With ``begin``: what the pass looks at, both the tuple that expires and the one stored.
    few : Out(3), rest : Out
        Whether these are no words, at most one, two; the words behind these.
    read_word : In(word_bits(params))
    slots : Out(ArrayLayout(key_layout, lanes))
        The word read a cycle ago. Where a batch is one probe, the tuple to store is not in it yet
        in the cycle after ``begin``.
    stores : Out(1), head_word, head_lane : Out
        Instead of these where comparators are shared: the tuple is stored in this slot.
    fetch : In(1), fetch_word, fetch_lane : In, payload : Out(payload_bits)
        The payload of a slot, a cycle later; it stays until the next ``fetch``.
    kept : In(1), where a batch is one probe
        Results of a batch before may still be read: the payload that is stored waits.
    drop : In(1), drop_slots : In, drop_all : In(1), if there are timestamps
        The oldest word's tuples, so many, are past their time; all that the ring holds.
    """

    clear: Signal
    begin: Signal
    store: Signal
    expire: Signal
    enter: View
    range: View
    few: Signal
    rest: Signal
    read_word: Signal
    slots: View
    stores: Signal
    head_word: Signal
    head_lane: Signal
    fetch: Signal
    fetch_word: Signal
    fetch_lane: Signal
    payload: Signal
    kept: Signal
    drop: Signal
    drop_slots: Signal
    drop_all: Signal

    def __init__(self, params: DesignParams, side: int) -> None:
        self.params = params
        self.body = body_layout(params, side)
        self.key = key_layout(params, side)
        if params.has_shared_comparators:
            keys = {
                "stores": Out(1),
                "head_word": Out(word_bits(params)),
                "head_lane": Out(lane_bits(params)),
            }
        else:
            keys = {
                "read_word": In(word_bits(params)),
                "slots": Out(data.ArrayLayout(self.key, params.lanes)),
            }
        flags = ("clear", "begin", "store", "expire", "fetch", "drop", "drop_all")
        super().__init__(
            {
                **{name: In(1) for name in flags},
                "enter": In(self.body),
                "range": Out(range_layout(params)),
                "few": Out(3),
                "rest": Out(rest_bits(params)),
                **keys,
                "fetch_word": In(word_bits(params)),
                "fetch_lane": In(lane_bits(params)),
                "payload": Out(params.payload_bits),
                **({"kept": In(1)} if is_single(params) else {}),
                "drop_slots": In(bits_for(params.lanes)),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build pointers and memories."""
        m = Module()
        params, lanes = self.params, self.params.lanes
        # `clear` alone resets what is here: beside the domain's reset it would pass a LUT.
        head, tail = (position_of(word_bits(params), lanes, name) for name in ("head", "tail"))
        count = payload_of(range(pass_words(params) * lanes))
        # Words from the oldest tuple's to the one that the next tuple is stored in, if that holds
        # a tuple or held one since it was entered.
        span = payload_of(range(pass_words(params) + 1))

        stores, moves = Signal(name="stores"), Signal(name="moves")
        m.d.comb += [stores.eq(self.begin & self.store), moves.eq(self.begin & self.expire)]
        if params.timestamp_bits:
            # Tuples that were dropped before it was their turn to expire.
            ahead = payload_of(count.shape())
            m.d.comb += moves.eq(self.begin & self.expire & (ahead == 0))
            with m.If(self.begin & self.expire & (ahead != 0)):
                m.d.sync += ahead.eq(ahead - 1)
        # A pass that begins with the change looks at both tuples; that it begins is decided late.
        enters: Value = stores
        expires: Value = moves
        if not params.has_shared_comparators:
            enters, expires = self.store, self.expire
            if params.timestamp_bits:
                expires = self.expire & (ahead == 0)

        opens, leaves = Signal(name="opens"), Signal(name="leaves")
        extent = self._extent(m, head, count, span, enters)
        m.d.comb += [
            opens.eq(enters & (head.lane == 0)),
            leaves.eq(moves & (tail.lane == lanes - 1)),
            self.range.words.eq(extent.words),
            self.few.eq(extent.few),
            self.rest.eq(extent.rest),
            self.range.first_word.eq(tail.word),
            self.range.first_lane.eq(tail.lane),
            self.range.end_lane.eq(extent.end_lane),
            self.range.old.eq(expires),
            self.range.new.eq(enters),
        ]
        advance(m, head, stores, ring_words(params), lanes)
        advance(m, tail, moves, ring_words(params), lanes)
        if params.timestamp_bits:
            m.d.sync += [
                count.eq(count + stores - moves),
                span.eq(span + (opens & stores) - leaves),
            ]
        else:
            # Which way it counts is known before it is decided that a pass begins.
            ends = self.expire & (tail.lane == lanes - 1)
            begins = self.store & (head.lane == 0)
            for number, more, less in ((count, self.store, self.expire), (span, begins, ends)):
                up, down = one_more(number), one_less(number)
                if is_single(params):
                    # At least a cycle is between two passes that begin.
                    late_up, late_down = (payload_of(len(number), name=n) for n in ("up", "down"))
                    m.d.sync += [late_up.eq(up), late_down.eq(down)]
                    up, down = late_up, late_down
                with m.If(self.begin & (more ^ less)):
                    m.d.sync += number.eq(Mux(more, up, down))
        if params.order == "inner":
            row = payload_of(row_bits(params))
            m.d.comb += self.range.row.eq(row - tail.lane)
            m.d.sync += row.eq(row + moves)
        if params.timestamp_bits:
            gone = [(count, -self.drop_slots), (ahead, self.drop_slots)]
            gone += [(row, self.drop_slots)] if params.order == "inner" else []
            self._drop(m, head, tail, span, gone)
        cleared = [*head.registers, *tail.registers, count, span]
        cleared += [ahead] if params.timestamp_bits else []
        cleared += [row] if params.order == "inner" else []
        with m.If(self.clear):
            m.d.sync += [each.eq(0) for each in cleared]

        self._memories(m, head, stores)
        return m

    def _extent(self, m: Module, head: Position, count: Signal, span: Signal, enters: Value) -> Any:
        """Return how many words a pass reads, with or without a tuple that is stored.

        Where a batch is one probe it was worked out for both a cycle ago: no sum and no comparison
        lies behind the decision that a pass begins.
        """
        params, lanes = self.params, self.params.lanes
        layout = data.StructLayout(
            {
                "words": self.range.words.shape(),
                "rest": len(self.rest),
                "end_lane": lane_bits(params),
                "few": 3,
            }
        )

        def extent(enters: Value) -> Value:
            opens = enters & (head.lane == 0)
            # A word of one slot holds a tuple if it is counted.
            has_holes = lanes > 1 or params.timestamp_bits > 0
            none = (count == 0) & ~enters if has_holes else Const(0, 1)
            next_lane = Mux(head.lane == lanes - 1, 0, head.lane + 1)
            by_two = Cat(span[0], one_less(span[1:]))
            zero, one, two = (span == words for words in range(3))
            if is_single(params):
                # By gates, with what is above two in common, so that none is three LUTs.
                many = span[2:].any()
                zero, one, two = (~many & (span[:2] == words) for words in range(3))
            return Cat(
                Mux(none, 0, span + opens)[: len(self.range.words)],
                Mux(opens, one_less(span), by_two)[: len(self.rest)],
                Mux(enters, next_lane, head.lane)[: lane_bits(params)],
                # Not from the sum: much depends on it in the same cycle.
                none | (zero & ~opens),
                none | zero | (one & ~opens),
                ~none & Mux(opens, one, two),
            )

        given = signal_of(layout, name="extent")
        if not is_single(params):
            m.d.comb += given.eq(extent(enters))
            return given
        without, with_it = (payload_of(layout, name=f"extent_{k}") for k in range(2))
        m.d.sync += [without.eq(extent(Const(0, 1))), with_it.eq(extent(Const(1, 1)))]
        m.d.comb += given.eq(Mux(enters, with_it.as_value(), without.as_value()))
        return given

    def _drop(
        self,
        m: Module,
        head: Position,
        tail: Position,
        span: Signal,
        gone: list[tuple[Signal, Value]],
    ) -> None:
        """Drop the oldest word, or all; ``gone`` are the numbers that count what is dropped."""
        with m.If(self.drop):
            m.d.sync += [number.eq(number + by) for number, by in gone]
            with m.If(self.drop_all):
                m.d.sync += tail.becomes(head)
            with m.Else():
                m.d.sync += [each.eq(0) for each in tail.registers[1:]]
                m.d.sync += span.eq(span - 1)
                m.d.sync += tail.word.eq(word_after(tail.word, ring_words(self.params)))

    def _memories(self, m: Module, head: Position, stores: Signal) -> None:
        """Build one memory of keys a lane, and the one of payloads."""
        params = self.params
        if params.has_shared_comparators:
            m.d.comb += [
                self.stores.eq(stores),
                self.head_word.eq(head.word),
                self.head_lane.eq(head.lane),
            ]
        elif is_single(params):
            # That one is stored is decided late. It is known in the cycle after: `store`, which but
            # for a `clear` stays until its batch begins, is gone, and the tuple is still there.
            stores_soon, known = Signal(name="stores_soon"), Signal(name="known")
            m.d.sync += stores_soon.eq(self.store)
            m.d.comb += known.eq(stores_soon & ~self.store)
            before = position_of(word_bits(params), params.lanes, "before")
            m.d.sync += before.becomes(head)
            self._keys(m, before, known)
        else:
            self._keys(m, head, stores)
        # Lanes that are no power of two leave addresses unused.
        used = 0 if params.lanes == 1 else lane_bits(params)
        depth = ring_words(params) << used
        payloads: Any = memory_of(params.window_memory, params.payload_bits, depth)
        m.submodules.payloads = payloads
        write, read = payloads.write_port(), payloads.read_port()
        slot: Value = Cat(head.lane[:used], head.word)
        payload, due = self.enter.payload, stores
        if is_single(params):
            slot = Cat(before.lane[:used], before.word)
            slot, payload, due = self._later(m, slot, known)
        m.d.comb += [
            write.addr.eq(slot),
            write.data.eq(payload),
            write.en.eq(due),
            read.addr.eq(Cat(self.fetch_lane[:used], self.fetch_word)),
            read.en.eq(self.fetch),
            self.payload.eq(read.data),
        ]

    def _later(self, m: Module, slot: Value, stored: Signal) -> tuple[Value, Value, Signal]:
        """Keep a payload until the one that it is written over is not read any more.

        No other one is stored until then: a batch begins when the one before it is taken. Whatever
        is offered is copied meanwhile, so that no decision enables so many registers.
        """
        waits, due = (Signal(name=name) for name in ("waits", "due"))
        at, payload = (
            payload_of(len(slot), name="at"),
            payload_of(self.params.payload_bits, name="payload"),
        )
        m.d.comb += due.eq(waits & ~self.kept)
        m.d.sync += waits.eq(stored | (waits & self.kept))
        with m.If(due | ~waits):
            m.d.sync += [at.eq(slot), payload.eq(self.enter.payload)]
        return at, payload, due

    def _keys(self, m: Module, head: Position, stores: Signal) -> None:
        """Build one memory of keys a lane."""
        params = self.params
        entering = signal_of(self.key)
        for name in self.key.members:
            m.d.comb += entering[name].eq(self.enter[name])
        for lane in range(params.lanes):
            memory: Any = memory_of(params.window_memory, self.key, ring_words(params))
            m.submodules[f"lane{lane}"] = memory
            write, read = memory.write_port(), memory.read_port()
            m.d.comb += [
                write.addr.eq(head.word),
                write.data.eq(entering),
                write.en.eq(stores & (head.lane == lane)),
                read.addr.eq(self.read_word),
                self.slots[lane].eq(read.data),
            ]
