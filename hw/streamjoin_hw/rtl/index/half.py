"""One stream's index: it stores the stream's tuples, and shows them to the other stream's.

Why it is exact. Both indexes take the arrivals one after the other, so that a tuple meets those
that were stored before it and have not expired: a slot is used from the arrival that is stored in
it until the arrival with which that tuple expires, however often it is used again later. A tuple is
stored in the first word with a free slot from its bucket's on, and its bucket's spread is then at
least that far. An arrival that looks for codes of the buckets ``b`` to ``b + k`` reads every word
from ``b`` on, once each, until it has passed word ``b + k`` and the spreads of all these buckets.
What is read beyond that is compared as well, and the whole predicate decides.

Spreads are kept for the round in which tuples are stored and for the round before, and nothing
older is in the window (:class:`~streamjoin_hw.rtl.index.ages.Ages`).
"""

from functools import reduce
from typing import Any

from amaranth.hdl import Array, Assert, Module, Mux, Signal, Value
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.index.ages import Ages
from streamjoin_hw.rtl.index.layouts import (
    bank_of,
    errand_layout,
    position_layout,
    sequence_bits,
    spread_layout,
    word_bits,
)
from streamjoin_hw.rtl.index.occupancy import Occupancy
from streamjoin_hw.rtl.index.words import Words
from streamjoin_hw.rtl.streams import Component, View, payload_of, registers_of, signal_of


class Half(Component):
    """The index of one stream.

    An errand takes a cycle for every ``ways`` words that are read or searched for a free slot; the
    next one begins in the cycle after its last. A tuple that follows a search is stored in the last
    cycle of the search, if its word has a free slot.

    Parameters
    ----------
    params : DesignParams
        The design.
    body : StructLayout
        Layout of a tuple of the stream.

    Members
    -------
    clear : In(1), clearing : Out(1)
        Empty the index; nothing may begin until that is done.
    start : In(1), errand : In(errand_layout(params))
        Begin in the next cycle; only with ``done``.
    done : Out(1)
        Nothing is left to do after this cycle.
    hold : In(1)
        Read nothing in this cycle.
    enter : In(body), full : In(1)
        The tuple that is stored, and whether its count window was full; while the errand lasts, or
        with ``joins``.
    ahead : In(word_bits(params)), follows : In(1)
        The word of a tuple, and a cycle later whether that tuple is stored after this search.
    joins : Out(1)
        It will be stored in the last cycle of this search, that with ``done``.
    searching : Out(1)
        An errand looks for others.
    scan : Out(1)
        Words are read in this cycle.
    tuples : Out(ArrayLayout(body, lanes)), live : Out(lanes)
        What was read a cycle ago, and which of it is in the window.
    displaced : Out(1)
        Pulse: a tuple is stored outside its bucket's word.
    held : Out(sequence_bits(params))
        Tuples in the window.
    evicted : Out(1), if there are timestamps
        Pulse: in the last cycle a tuple left by count before its time.
    """

    clear: Signal
    clearing: Signal
    start: Signal
    errand: View
    done: Signal
    hold: Signal
    enter: View
    full: Signal
    ahead: Signal
    follows: Signal
    joins: Signal
    searching: Signal
    scan: Signal
    tuples: View
    live: Signal
    displaced: Signal
    held: Signal
    evicted: Signal

    def __init__(self, params: DesignParams, body: data.StructLayout) -> None:
        self.params = params
        self.body = body
        super().__init__(
            {
                "clear": In(1),
                "clearing": Out(1),
                "start": In(1),
                "errand": In(errand_layout(params)),
                "done": Out(1),
                "hold": In(1),
                "enter": In(body),
                "full": In(1),
                "ahead": In(word_bits(params)),
                "follows": In(1),
                "joins": Out(1),
                "searching": Out(1),
                "scan": Out(1),
                "tuples": Out(data.ArrayLayout(body, params.lanes)),
                "live": Out(params.lanes),
                "displaced": Out(1),
                "held": Out(sequence_bits(params)),
                **({"evicted": Out(1)} if params.timestamp_bits else {}),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the memories and the step from two words to the next two."""
        m = Module()
        params, bits, ways = self.params, word_bits(self.params), self.params.ways
        m.submodules.occupancy = occupancy = Occupancy(params)
        m.submodules.words = words = Words(params, self.body)
        m.submodules.ages = ages = Ages(params)
        active = Signal()
        errand = registers_of(errand_layout(params), name="errand")
        # The first of the words that are looked at now, and how far it is behind the errand's.
        word, offset, further = payload_of(bits), payload_of(bits), Signal(bits)
        steps, finishes = Signal(), Signal()
        m.d.comb += [
            self.done.eq(~active | finishes),
            occupancy.look.eq(
                Mux(
                    self.start,
                    self.errand.word,
                    Mux(steps & ~finishes, errand.word + further, word),
                )
            ),
            occupancy.clear.eq(self.clear),
            ages.clear.eq(self.clear),
            self.clearing.eq(occupancy.clearing),
            self.held.eq(ages.held),
        ]
        with m.If(finishes):
            m.d.sync += active.eq(0)
        with m.Elif(steps):
            m.d.sync += [word.eq(errand.word + further), offset.eq(further)]
        with m.If(self.start):
            m.d.sync += [
                active.eq(1),
                errand.eq(self.errand),
                word.eq(self.errand.word),
                offset.eq(0),
            ]

        # Looking for others: every word is read until the last that may hold one.
        m.d.comb += [
            words.word.eq(word),
            self.tuples.eq(words.tuples),
            self.searching.eq(active & ~errand.stores),
            self.scan.eq(self.searching & ~self.hold),
        ]
        m.d.sync += self.live.eq(occupancy.used.as_value())
        # In the order of their numbers, from the first on.
        used = _from(bank_of(params, word), [occupancy.used[bank] for bank in range(ways)])
        spreads = [
            data.View(spread_layout(params), each)
            for each in _from(
                bank_of(params, word), [occupancy.spreads[bank].as_value() for bank in range(ways)]
            )
        ]
        last = self._last_word(m, ages, spreads, (errand.extent, offset))

        # Being stored: in the first free slot.
        arrives, joined = Signal(), Signal()
        seen = payload_of(bits)
        m.d.sync += seen.eq(self.ahead)
        m.d.comb += [
            occupancy.ahead.eq(self.ahead),
            self.joins.eq(self.searching & self.follows & ~occupancy.used_ahead.all()),
            joined.eq(self.joins & finishes),
        ]
        distance = Signal(bits)
        place = signal_of(position_layout(params))
        for which in reversed(range(ways)):
            with m.If(~used[which].all()):
                m.d.comb += [
                    distance.eq(offset | which),
                    place.word.eq(word + which),
                    place.slot.eq(_first_free(used[which])),
                ]
        m.d.comb += [
            arrives.eq(active & errand.stores & place.slot.any()),
            self.displaced.eq(arrives & (distance != 0)),
        ]
        into = signal_of(position_layout(params))
        m.d.comb += into.eq(place)
        with m.If(self.joins):
            m.d.comb += [into.word.eq(seen), into.slot.eq(_first_free(occupancy.used_ahead))]
        m.d.comb += occupancy.beside.eq(self.joins)
        self._store(m, (occupancy, words, ages), arrives | joined, into)
        spread = self._stretch(m, (occupancy, ages), spreads[0], (errand.word, offset, distance))
        around = self._skip(m, (spread, ages.round), active & errand.stores, offset, further)
        # From a register: words and offset do not settle together in Amaranth's simulator.
        no_slot = Signal()
        m.d.sync += no_slot.eq(
            active & errand.stores & ~arrives & around & (offset | (ways - 1)).all()
        )
        m.d.comb += [
            Assert(~no_slot, "the index has no slot for a tuple"),
            steps.eq((active & errand.stores) | self.scan),
            finishes.eq(arrives | (self.scan & ((offset | (ways - 1)) >= last))),
        ]
        return m

    def _last_word(
        self, m: Module, ages: Ages, spreads: list[Any], where: tuple[Value, Value]
    ) -> Signal:
        """Return how far behind the errand's first word the last is that has to be read."""
        extent, offset = where
        bits = word_bits(self.params)
        before, last = payload_of(bits), Signal(bits)
        known: Value = Mux(offset == 0, extent, before)
        now, ends = ages.round, []
        for which, spread in enumerate(spreads):
            bucket = offset | which
            end = bucket + _reach(spread, now)
            end = Mux(end[bits], ~0, end[:bits])[:bits]
            ends.append(Mux(bucket <= extent, end, 0))
        m.d.comb += last.eq(reduce(lambda a, b: Mux(a > b, a, b), [known, *ends]))
        m.d.sync += before.eq(last)
        return last

    def _store(
        self, m: Module, parts: tuple[Occupancy, Words, Ages], arrives: Value, place: View
    ) -> None:
        """Store the tuple, and let the oldest one expire if the window asks for it."""
        occupancy, words, ages = parts
        m.d.comb += [
            occupancy.take.eq(arrives),
            occupancy.taken.eq(place),
            words.store.eq(arrives),
            words.position.eq(place),
            words.enter.eq(self.enter),
            ages.arrive.eq(arrives),
            ages.position.eq(place),
            ages.full.eq(self.full),
            occupancy.free.eq(arrives & ages.expires),
            occupancy.freed.eq(ages.oldest),
        ]
        if self.params.timestamp_bits:
            m.d.comb += [
                ages.end.eq(self.enter.end),
                ages.now.eq(self.enter.ts),
                self.evicted.eq(ages.evicted),
            ]

    def _stretch(
        self,
        m: Module,
        parts: tuple[Occupancy, Ages],
        first: View,
        where: tuple[Value, Value, Value],
    ) -> View:
        """Put down in its bucket how far a tuple is displaced; return the spread of before."""
        occupancy, ages = parts
        bucket, offset, distance = where
        layout = spread_layout(self.params)
        kept, after = payload_of(layout), signal_of(layout)
        spread: View = signal_of(layout)
        now = ages.round
        is_same, is_last = spread.round == now, (spread.round + 1)[: len(now)] == now
        with m.If(offset == 0):
            m.d.sync += kept.eq(first)
        m.d.comb += [
            spread.eq(Mux(offset == 0, first.as_value(), kept.as_value())),
            after.round.eq(now),
            after.now.eq(Mux(is_same & (spread.now > distance), spread.now, distance)),
            after.before.eq(Mux(is_same, spread.before, Mux(is_last, spread.now, 0))),
            occupancy.stretch.eq(self.displaced),
            occupancy.bucket.eq(bucket),
            occupancy.spread.eq(after),
            after.latest.eq(distance),
        ]
        return spread

    def _skip(
        self, m: Module, known: tuple[View, Value], stores: Value, offset: Signal, further: Signal
    ) -> Signal:
        """Say which words are next; return whether a search has come around.

        A search that finds the first words full goes on where the bucket's last tuple was
        displaced to: what lies behind is the oldest, as the slots of a bucket are taken in turn. It
        comes around at the end of the spread, and then tries every word.
        """
        ways, (spread, now) = self.params.ways, known
        around: Signal = payload_of(1)
        latest = spread.latest & ~(ways - 1)
        skips = (offset == 0) & (latest > ways)
        at_end = ~around & (offset != 0) & ((offset | (ways - 1)) >= _reach(spread, now))
        m.d.comb += further.eq(offset + ways)
        with m.If(stores & skips):
            m.d.comb += further.eq(latest)
        with m.Elif(stores & at_end):
            m.d.comb += further.eq(ways)
        m.d.sync += around.eq(Mux(offset == 0, ~skips, around | at_end))
        return around


def _from(first: Value, banks: list[Value]) -> list[Value]:
    """Return what all banks show, that of the first one first."""
    ways = Array(banks)
    return [ways[(first + which)[: len(first)]] for which in range(len(banks))]


def _first_free(used: Value) -> Value:
    """Return a bit for the lowest slot that is free; none if all are used."""
    return ~used & (used + 1)[: len(used)]


def _reach(spread: View, now: Value) -> Value:
    """Return how far behind its word a bucket's tuples may lie in a round of the ring."""
    is_same, is_last = spread.round == now, (spread.round + 1)[: len(now)] == now
    both = Mux(spread.now > spread.before, spread.now, spread.before)
    return Mux(is_same, both, Mux(is_last, spread.now, 0))
