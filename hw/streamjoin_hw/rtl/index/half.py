"""One stream's index: it stores the stream's tuples, and shows them to the other stream's.

Why it is exact. Errands are carried out one after the other: a tuple meets those that were stored
before it and have not expired. A slot is used from the cycle in which a tuple is stored in it until
that tuple expires, however often it is used again later. A tuple is stored in the first word with
a free slot from its bucket's on, and its bucket's spread is then at least that far. An arrival that
looks for codes of the buckets ``b`` to ``b + k`` reads every word from ``b`` on, once each, until
it has passed word ``b + k`` and the spreads of all these buckets. What is read beyond that is
compared as well, and the whole predicate decides.

Spreads are kept for the round in which tuples are stored and for the round before, and nothing
older is in the window (:class:`~streamjoin_hw.rtl.index.ages.Ages`).

An errand goes through three stages. In the last one, and in no other, a tuple is stored, one
expires, words are read: so each sees what those before it did. Where a spread is raised, nothing
happens for a cycle, in which all errands inside that rely on it are marked; one that is marked is
not carried out, but planned anew with all behind it.
"""

from amaranth.hdl import Assert, Module, Mux, Signal
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.index.ages import Ages
from streamjoin_hw.rtl.index.choose import Chooser
from streamjoin_hw.rtl.index.layouts import (
    bank_of,
    errand_layout,
    row_bits,
    row_of,
    rows_layout,
    rows_of,
    sequence_bits,
    touches,
    word_bits,
)
from streamjoin_hw.rtl.index.occupancy import Occupancy
from streamjoin_hw.rtl.index.place import Place
from streamjoin_hw.rtl.index.plan import Planner
from streamjoin_hw.rtl.index.words import Words
from streamjoin_hw.rtl.streams import Component, View, payload_of, registers_of


class Half(Component):
    """The index of one stream.

    A search takes a cycle for every ``ways`` words, and a tuple that is stored takes one, or none
    if it follows a search: it is then stored in that one's last cycle. Where the first words are
    full, two more for every ``ways`` words that are searched for a free slot.

    Parameters
    ----------
    params : DesignParams
        The design.
    body : StructLayout
        Layout of a tuple of the stream.
    depth : int
        Errands that may wait, a power of two.

    Members
    -------
    clear : In(1), clearing : Out(1)
        Empty the index; no errand may come until that is done.
    put : In(1), errand : In(errand_layout(params))
        An errand, at most ``depth`` that are neither stored nor searched.
    enter : In(body), full : In(1)
        The next tuple that is stored, and whether its count window is full.
    stored, searched : Out(1)
        The oldest errand is done in this cycle, or two: a search and the tuple behind it.
    hold : In(1)
        Read nothing in this cycle.
    wait : In(1)
        Do nothing in this cycle.
    scan : Out(1)
        Words are read in this cycle for the oldest errand.
    tuples : Out(ArrayLayout(body, lanes)), live : Out(lanes)
        What was read a cycle ago, and which of it is in the window.
    displaced : Out(1)
        Pulse: a tuple is stored outside its bucket's word.
    held : Out(sequence_bits(params))
        Tuples that were in the window in the cycle before.
    evicted : Out(1), if there are timestamps
        Pulse: two cycles ago a tuple left by count before its time.
    """

    clear: Signal
    clearing: Signal
    put: Signal
    errand: View
    enter: View
    full: Signal
    stored: Signal
    searched: Signal
    hold: Signal
    wait: Signal
    scan: Signal
    tuples: View
    live: Signal
    displaced: Signal
    held: Signal
    evicted: Signal

    def __init__(self, params: DesignParams, body: data.StructLayout, depth: int) -> None:
        self.params = params
        self.body = body
        self.depth = depth
        super().__init__(
            {
                "clear": In(1),
                "clearing": Out(1, init=1),  # type: ignore[call-arg]  # known at run time
                "put": In(1),
                "errand": In(errand_layout(params)),
                "enter": In(body),
                "full": In(1),
                "stored": Out(1),
                "searched": Out(1),
                "hold": In(1),
                "wait": In(1),
                "scan": Out(1),
                "tuples": Out(data.ArrayLayout(body, params.lanes)),
                "live": Out(params.lanes),
                "displaced": Out(1),
                "held": Out(sequence_bits(params)),
                **({"evicted": Out(1)} if params.timestamp_bits else {}),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the memories and the last stage."""
        m = Module()
        params = self.params
        m.submodules.planner = planner = Planner(params, self.depth)
        m.submodules.occupancy = occupancy = Occupancy(params)
        m.submodules.words = words = Words(params, self.body)
        m.submodules.ages = ages = Ages(params)
        m.submodules.place = place = Place(params)
        self._sweep(m, (planner, occupancy))
        moves = Signal()
        restarts = Signal()
        searches = Signal()
        stores = Signal()
        ready = self._choose(m, (planner, place), moves, restarts)
        last: View = registers_of(ready.shape(), "search", name="last")
        is_idle = Signal()
        is_stale = Signal()
        can_search = Signal()
        is_bare = Signal()
        is_over = Signal()
        has_begun = Signal()
        is_free = Signal()
        m.d.comb += [
            # A round ends in a cycle of its own, not in the middle of a search, which would begin
            # anew.
            ages.turn.eq(is_over & ~has_begun),
            is_idle.eq(self.wait | place.raised | ages.turn),
            is_stale.eq(Mux(last.search, last.stale, place.is_there & place.is_stale)),
            can_search.eq(last.search & ~last.stale & ~(last.scans & self.hold)),
            searches.eq(can_search & ~is_idle),
            # Whether to search is not waited for: in a cycle that is not idle it will be done.
            is_bare.eq(~last.search | can_search),
            is_free.eq(place.is_placed & ~ages.blocked & ~is_idle),
            stores.eq(is_free & is_bare),
            # In short: where there is a search, it is done, and a tuple behind it is stored.
            moves.eq((searches | ~last.search) & (is_free | ~place.is_there) & ~place.raised),
            restarts.eq(is_stale | ages.turn),
            self.scan.eq(searches & last.scans),
            self.searched.eq(searches & last.ends),
            self.stored.eq(stores),
            self.displaced.eq(stores & place.is_displaced),
            planner.retired.eq(self.searched + self.stored),
            planner.restart.eq(restarts),
        ]
        m.d.sync += is_over.eq(ages.over & ~ages.turn)
        with m.If(searches):
            m.d.sync += has_begun.eq(~last.ends)
        with m.If(moves):
            m.d.sync += last.eq(ready)
        with m.Elif(searches):
            m.d.sync += last.search.eq(0)
        for row in (ready, last):
            with m.If(place.raised & touches(place.bucket, row.home, row.until)):
                m.d.sync += row.stale.eq(1)
        with m.If(restarts | self.clear):
            m.d.sync += last.search.eq(0)
        with m.If(self.clear):
            m.d.sync += [is_over.eq(0), has_begun.eq(0)]
        self._store(m, (occupancy, words, ages, place), stores)
        self._check(m, last.rows, place.position, stores)
        m.d.comb += [
            planner.clear.eq(self.clear),
            planner.put.eq(self.put),
            planner.errand.eq(self.errand),
            planner.round.eq(ages.round),
            planner.stretch.eq(place.stretch),
            planner.bucket.eq(place.bucket),
            planner.spread.eq(place.spread),
            planner.raised.eq(place.raised),
            place.moves.eq(moves),
            place.restart.eq(restarts | self.clear),
            place.stores.eq(stores),
            place.round.eq(ages.round),
            place.used.eq(occupancy.taken),
            place.entered.eq(occupancy.entered),
            occupancy.into.eq(place.into),
            occupancy.rows.eq(last.rows),
            words.rows.eq(last.rows),
            self.tuples.eq(words.tuples),
            self.live.eq(occupancy.used.as_value()),
            self.held.eq(ages.held),
        ]
        return m

    def _check(self, m: Module, rows: View, position: View, stores: Signal) -> None:
        """Assert that no slot counts that was read as a tuple was stored in it."""
        params, slots = self.params, self.params.bucket_slots
        read, written, is_written = (
            payload_of(rows.shape(), name="read"),
            payload_of(position.shape(), name="written"),
            Signal(name="is_written"),
        )
        m.d.sync += [read.eq(rows), written.eq(position), is_written.eq(stores)]
        counts, has_counted = Signal(params.ways, name="counts"), Signal(name="has_counted")
        for bank in range(params.ways):
            is_here = is_written & (bank_of(params, written.word) == bank)
            is_here &= row_of(params, written.word) == read[bank]
            live = self.live[bank * slots : (bank + 1) * slots]
            m.d.comb += counts[bank].eq(is_here & (live & written.slot).any())
        # From a register: inputs do not settle together in Amaranth's simulator.
        m.d.sync += has_counted.eq(counts.any())
        m.d.comb += Assert(~has_counted, "a slot counts in which a tuple was just being stored")

    def _sweep(self, m: Module, parts: tuple[Planner, Occupancy]) -> None:
        """Empty a row of words in each cycle."""
        swept = Signal(row_bits(self.params))
        with m.If(self.clear):
            m.d.sync += [self.clearing.eq(1), swept.eq(0)]
        with m.Elif(self.clearing):
            m.d.sync += [swept.eq(swept + 1), self.clearing.eq(~swept.all())]
        for part in parts:
            m.d.comb += [part.sweep.eq(self.clearing), part.swept.eq(swept)]

    def _choose(
        self, m: Module, parts: tuple[Planner, Place], moves: Signal, restarts: Signal
    ) -> View:
        """Build the first two stages; return the row of words that is in the second."""
        params, (planner, place) = self.params, parts
        m.submodules.chooser = chooser = Chooser(params)
        chosen = chooser.o
        kinds = dict.fromkeys(("search", "scans", "ends", "stale"), 1)
        words = dict.fromkeys(("home", "until"), word_bits(params))
        ready: View = registers_of(
            data.StructLayout({**kinds, **words, "rows": rows_layout(params)}),
            "search",
            name="ready",
        )
        m.d.comb += [
            chooser.has_first.eq(planner.has_first),
            chooser.has_second.eq(planner.has_second),
            chooser.first.eq(planner.first),
            chooser.second.eq(planner.second),
            planner.take_first.eq(chooser.take_first),
            planner.take_both.eq(chooser.take_both),
            chooser.clear.eq(restarts | self.clear),
            chooser.raised.eq(place.raised),
            chooser.bucket.eq(place.bucket),
            chooser.moves.eq(moves),
            place.comes.eq(chooser.is_there & chosen.stores),
            place.i.eq(chosen.tuple),
            place.rows.eq(chosen.rows),
        ]
        with m.If(moves):
            m.d.sync += [
                *(ready[name].eq(chosen[name]) for name in (*kinds, *words)),
                ready.search.eq(chooser.is_there & chosen.search),
                *(ready.rows[k].eq(each) for k, each in enumerate(rows_of(params, chosen.word))),
            ]
        with m.If(restarts | self.clear):
            m.d.sync += ready.search.eq(0)
        return ready

    def _store(
        self, m: Module, parts: tuple[Occupancy, Words, Ages, Place], stores: Signal
    ) -> None:
        """Store the tuple, and let the oldest one expire if the window asks for it."""
        occupancy, words, ages, place = parts
        m.d.comb += [
            occupancy.take.eq(stores),
            occupancy.position.eq(place.position),
            occupancy.bits.eq(place.bits),
            occupancy.free.eq(ages.free),
            occupancy.freed.eq(ages.freed),
            occupancy.bit.eq(ages.freed_bit),
            words.store.eq(stores),
            words.position.eq(place.position),
            words.enter.eq(self.enter),
            ages.clear.eq(self.clear),
            ages.full.eq(self.full),
            ages.arrive.eq(stores),
            ages.position.eq(place.position),
            ages.bit.eq((place.bits & place.position.slot).any()),
        ]
        if self.params.timestamp_bits:
            m.d.comb += [
                ages.end.eq(self.enter.end),
                ages.now.eq(self.enter.ts),
                self.evicted.eq(ages.evicted),
            ]
