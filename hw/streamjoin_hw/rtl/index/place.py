"""Where a tuple is stored: the first free slot from its bucket's word on."""

from functools import reduce
from operator import and_, or_
from typing import Any

from amaranth.hdl import Array, Assert, Cat, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.index.layouts import (
    ROUND_BITS,
    bank_bits,
    bank_of,
    planned_layout,
    position_layout,
    row_of,
    rows_layout,
    rows_of,
    spread_layout,
    word_bits,
)
from streamjoin_hw.rtl.streams import Component, View, payload_of


class Place(Component):
    """Two stages: the words of a bucket are looked at, and a slot is chosen.

    Where all of these words' slots are used, the second stage goes on with the words behind, two
    cycles for every ``ways`` of them: first where the bucket's last tuple was displaced to, as
    what lies behind is the oldest, the slots of a bucket being taken in turn. From the end of the
    spread on it comes around, and then tries every word.

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    comes : In(1), i : In(planned_layout(params)), rows : In(rows_layout(params))
        A tuple is about to enter the first stage; the addresses of the words from its ``at`` on.
    moves : In(1)
        All go on by a stage; only if the second one's tuple is stored.
    restart : In(1)
        Forget all tuples after this cycle.
    into : Out(rows_layout(params))
        Words to look at, one of each bank, in every cycle.
    used, entered : In(ArrayLayout(bucket_slots, ways))
        What is known of those of the cycle before (:class:`Occupancy`).
    is_there, is_placed : Out(1)
        A tuple is in the second stage; its slot is known, and it may be stored.
    position : Out(position_layout(params)), bits : Out(bucket_slots)
        That slot, and among others what its bit is to be.
    is_displaced : Out(1)
        It lies behind its bucket's word.
    is_stale : Out(1)
        Its bucket's spread has been raised since it was planned: it must not be stored.
    stores : In(1), round : In(ROUND_BITS)
        It is stored in this cycle, in this round.
    stretch : Out(1), bucket : Out(word_bits(params)), spread : Out(spread_layout(params))
        Set a bucket's spread.
    raised : Out(1)
        It is more than before; tuples in both stages have been marked after this cycle. They must
        not move in it.
    """

    comes: Signal
    i: View
    rows: View
    moves: Signal
    restart: Signal
    into: View
    used: View
    entered: View
    is_there: Signal
    is_placed: Signal
    position: View
    bits: Signal
    is_displaced: Signal
    is_stale: Signal
    stores: Signal
    round: Signal
    stretch: Signal
    bucket: Signal
    spread: View
    raised: Signal

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        words = data.ArrayLayout(params.bucket_slots, params.ways)
        super().__init__(
            {
                **{name: In(1) for name in ("comes", "moves", "restart", "stores")},
                "i": In(planned_layout(params)),
                "rows": In(rows_layout(params)),
                "into": Out(rows_layout(params)),
                "used": In(words),
                "entered": In(words),
                **{name: Out(1) for name in ("is_there", "is_placed", "is_displaced", "is_stale")},
                "position": Out(position_layout(params)),
                "bits": Out(params.bucket_slots),
                "round": In(ROUND_BITS),
                "stretch": Out(1),
                "bucket": Out(word_bits(params)),
                "spread": Out(spread_layout(params)),
                "raised": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build both stages."""
        m = Module()
        params, bits, ways = self.params, word_bits(self.params), self.params.ways
        planned = planned_layout(params)
        looked, looked_rows = (
            payload_of(planned, name="looked"),
            payload_of(self.into.shape(), name="looked_rows"),
        )
        # Where the search for a slot goes on behind those of the first stage, and of the second.
        tried, tried_end = payload_of(bits, name="tried"), payload_of(1, name="tried_end")
        beyond, at_end = payload_of(bits, name="beyond"), payload_of(1, name="at_end")
        # Addresses of the bucket's word and those behind it: an offset is whole rows.
        looked_home, placed_home, next_rows = (
            payload_of(self.into.shape(), name=name)
            for name in ("looked_home", "placed_home", "next_rows")
        )
        is_looked, is_there, is_placed = (
            Signal(name="is_looked"),
            Signal(name="is_there"),
            Signal(name="is_placed"),
        )
        placed = payload_of(planned)
        # Behind the bucket's word: the words that were looked at last, and the next ones.
        offset, following, reach = (
            payload_of(bits, name="offset"),
            payload_of(bits, name="following"),
            payload_of(bits, name="reach"),
        )
        around, twice = payload_of(1, name="around"), payload_of(1, name="twice")
        next_word: Any = payload_of(bits)
        asks, again, is_displaced, raises = (
            Signal(name="asks"),
            Signal(name="again"),
            Signal(name="is_displaced"),
            Signal(name="raises"),
        )
        position, fresh = (
            payload_of(position_layout(params), name="position"),
            payload_of(params.bucket_slots, name="fresh"),
        )
        distance: Any = payload_of(bits)
        # What is read is of the tuple that is about to come, or of the words that are tried next.
        m.d.comb += self.into.eq(Mux(asks, next_rows.as_value(), self.rows.as_value()))
        recent, is_recent = (
            payload_of(position_layout(params), name="recent"),
            Signal(name="is_recent"),
        )
        m.d.sync += [recent.eq(position), is_recent.eq(self.stores)]
        first = Mux(again, bank_of(params, placed.word), bank_of(params, looked.word))
        same, was_same = self._same(m, looked_rows, (next_rows, again), position)
        places = [(position, same, is_placed & ~again), (recent, was_same, is_recent)]
        seen = self._seen(m, places, again)
        found, which, slot, entered = self._find(m, first, seen)
        words = Mux(
            again,
            self._words(m, asks, next_word, "again"),
            self._words(m, self.moves, self.i.at, "looked"),
        )
        behind = Mux(again, offset, looked.start)
        # Which of the words would raise the spread, found before one is chosen.
        at_first = self._raises(m, self.moves, self.i.start, self.i.now, "looked")
        further = Mux(again, self._raises(m, asks, following, placed.now, "again"), at_first)
        with m.If(self.moves | again):
            m.d.sync += [
                is_placed.eq(found & ~placed.stale),
                position.word.eq(words.word_select(which, bits)),
                position.slot.eq(slot),
                fresh.eq(~entered),
                distance.eq(behind | which),
                is_displaced.eq((which != 0) | (behind != 0)),
                raises.eq(further.bit_select(which, 1)),
            ]
        # A slot that was freed as its word was looked at is found the next time.
        no_slot, at_last = Signal(name="no_slot"), Signal(name="at_last")
        m.d.comb += at_last.eq(again & ~found & around & (offset | (ways - 1)).all())
        m.d.sync += no_slot.eq(at_last & twice)
        with m.If(self.moves):
            first_end = self.i.start | (ways - 1)
            is_end = (first_end >= self.i.now) & (first_end >= self.i.before)
            m.d.sync += [
                tried.eq(
                    Mux(
                        self.i.start != 0,
                        Mux(is_end, 0, self.i.start + ways),
                        Mux(self.i.hint != 0, self.i.hint, ways),
                    )
                ),
                tried_end.eq(Mux(self.i.start != 0, is_end, self.i.hint == 0)),
                is_looked.eq(self.comes),
                looked.eq(self.i),
                looked_rows.eq(self.rows),
                *(looked_home[k].eq(row) for k, row in enumerate(rows_of(params, self.i.word))),
                placed_home.eq(looked_home),
                is_there.eq(is_looked),
                is_placed.eq(found & is_looked & ~looked.stale),
                placed.eq(looked),
                offset.eq(looked.start),
                following.eq(tried),
                next_word.eq(looked.word + tried),
                *self._advance(next_rows, looked_home, tried),
                around.eq(tried_end),
                twice.eq(0),
                reach.eq(Mux(looked.now > looked.before, looked.now, looked.before)),
                asks.eq(is_looked & ~found),
                again.eq(0),
            ]
        with m.Elif(asks):
            is_end = ~around & ((following | (ways - 1)) >= reach)
            m.d.sync += [
                offset.eq(following),
                beyond.eq(Mux(is_end, 0, following + ways)),
                at_end.eq(is_end),
                asks.eq(0),
                again.eq(1),
            ]
        with m.Elif(again):
            m.d.sync += [
                following.eq(beyond),
                next_word.eq(placed.word + beyond),
                *self._advance(next_rows, placed_home, beyond),
                around.eq(around | at_end),
                twice.eq(twice | at_last),
                asks.eq(~found),
                again.eq(0),
            ]
        with m.If(self.restart):
            m.d.sync += [each.eq(0) for each in (is_looked, is_there, is_placed, asks, again)]
        m.d.comb += [
            self.is_there.eq(is_there),
            self.is_placed.eq(is_placed),
            self.position.eq(position),
            self.bits.eq(fresh),
            self.is_displaced.eq(is_displaced),
            self.is_stale.eq(placed.stale),
            Assert(~no_slot, "the index has no slot for a tuple"),
        ]
        bucket, spread = (
            payload_of(bits, name="bucket"),
            payload_of(spread_layout(params), name="spread"),
        )
        m.d.sync += [
            self.stretch.eq(self.stores & is_displaced),
            bucket.eq(placed.word),
            spread.round.eq(self.round),
            spread.now.eq(Mux(raises, _rounded(distance), placed.now)),
            spread.before.eq(placed.before),
            spread.latest.eq(Mux(offset == 0, placed.hint, distance)),
            self.raised.eq(self.stores & raises),
        ]
        m.d.comb += [self.bucket.eq(bucket), self.spread.eq(spread)]
        self._mark(m, (looked, placed), bucket, is_placed)
        return m

    def _mark(self, m: Module, stages: tuple[Any, Any], bucket: Value, is_placed: Signal) -> None:
        """Mark the tuples of a bucket whose spread was raised: they must not be stored."""
        for each in stages:
            with m.If(self.raised & (each.word == bucket)):
                m.d.sync += each.stale.eq(1)
        with m.If(self.raised & (stages[1].word == bucket)):
            m.d.sync += is_placed.eq(0)

    def _words(self, m: Module, when: Signal, first: Value, name: str) -> Any:
        """Return a word and those after it, one of each bank, kept when they are looked at."""
        bits, ways = word_bits(self.params), self.params.ways
        words: Any = payload_of(bits * ways, name=f"{name}_words")
        with m.If(when):
            m.d.sync += words.eq(Cat((first + k)[:bits] for k in range(ways)))
        return words

    def _advance(self, rows: View, home: View, offset: Value) -> list[Any]:
        """Set addresses to those of the words at an offset, which is whole rows."""
        ahead = offset[bank_bits(self.params) :]
        return [rows[k].eq(home[k] + ahead) for k in range(self.params.ways)]

    def _raises(self, m: Module, when: Signal, offset: Value, now: Value, name: str) -> Signal:
        """Return which of the words at an offset lie further than those of this round."""
        raises: Signal = payload_of(self.params.ways, name=f"{name}_raises")
        with m.If(when):
            m.d.sync += raises.eq(Cat((offset | k) > now for k in range(self.params.ways)))
        return raises

    def _same(
        self, m: Module, looked: View, tried: tuple[View, Signal], position: View
    ) -> tuple[Value, Value]:
        """Return in which banks the words that are looked at are those in which slots are taken.

        Of the slot that is taken next, whose word is of those that were looked at or ``tried``
        before, and of the one that was stored last. Known a cycle ahead, as slots are not.
        """
        same, was_same = (
            payload_of(self.params.ways, name="same"),
            payload_of(self.params.ways, name="was_same"),
        )
        rows, again = tried
        stored = [row_of(self.params, position.word)] * self.params.ways
        with m.If(self.moves):
            m.d.sync += [
                same.eq(_equal(self.rows, looked)),
                was_same.eq(_equal(self.rows, stored)),
            ]
        with m.Elif(again):
            m.d.sync += same.eq(_equal(rows, looked))
        return same, was_same

    def _seen(
        self, m: Module, places: list[tuple[View, Value, Value]], again: Signal
    ) -> tuple[list[Any], list[Any]]:
        """Return the used slots of the words that were looked at, and their bits, by bank.

        What is stored in this cycle or was in the one before, at ``places``, is not among those
        that are read: each says whether it lies in the word of a bank, if its bank is that one.
        Words that were looked at are read once, and kept while their tuple waits.
        """
        params = self.params
        words = self.used.shape()
        kept_used, kept_bits, is_kept = (
            payload_of(words, name="kept_used"),
            payload_of(words, name="kept_bits"),
            Signal(name="is_kept"),
        )
        with m.If(self.moves | self.restart):
            m.d.sync += is_kept.eq(0)
        with m.Else():
            m.d.sync += is_kept.eq(1)
        is_old, used, bits = is_kept & ~again, [], []
        for bank in range(params.ways):
            slots = Signal(params.bucket_slots, name=f"used{bank}")
            new: list[Any] = []
            for position, same, is_new in places:
                mine = is_new & (bank_of(params, position.word) == bank) & same[bank]
                new.append(Mux(mine, position.slot, 0))
            known = Mux(is_old, kept_used[bank], self.used[bank])
            m.d.comb += slots.eq(reduce(or_, new, known))
            used.append(slots)
            bits.append(Mux(is_old, kept_bits[bank], self.entered[bank]))
            with m.If(~is_kept):
                m.d.sync += [kept_used[bank].eq(slots), kept_bits[bank].eq(self.entered[bank])]
        return used, bits

    def _find(
        self, m: Module, first: Value, seen: tuple[list[Any], list[Any]]
    ) -> tuple[Signal, Signal, Signal, Signal]:
        """Choose a slot: is there one, in which of the words, which, and the word's bits.

        ``first`` is the bank of the first word.
        """
        params, (used, entered) = self.params, seen
        found, which = Signal(name="found"), Signal(bank_bits(params), name="which")
        slot, bits = (
            Signal(params.bucket_slots, name="slot"),
            Signal(params.bucket_slots, name="bits"),
        )
        # Of each bank first, then of the words in turn.
        free, is_full = Array(map(_first_free, used)), Array(word.all() for word in used)
        for number in reversed(range(params.ways)):
            chosen = (first + number)[: bank_bits(params)]
            with m.If(~is_full[chosen]):
                m.d.comb += [
                    found.eq(1),
                    which.eq(number),
                    slot.eq(free[chosen]),
                    bits.eq(Array(entered)[chosen]),
                ]
        return found, which, slot, bits


def _rounded(distance: Value) -> Value:
    """Return a distance or up to a quarter more, so that a spread is seldom raised."""
    tail = distance >> 2
    return distance | reduce(or_, (tail >> k for k in range(len(tail))))


def _first_free(used: Value) -> Value:
    """Return a bit for the lowest slot that is free; none if all are used."""
    return Cat(reduce(and_, used[:k], ~used[k]) for k in range(len(used)))


def _equal(rows: Any, others: Any) -> Value:
    """Return in which banks two addresses are the same."""
    return Cat(row == other for row, other in zip(rows, others, strict=True))
