"""What an index does next: a row of a search, a tuple that is stored, or both at a time."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.index.layouts import (
    bank_bits,
    chosen_layout,
    planned_layout,
    row_bits,
    rows_of,
    touches,
    word_bits,
)
from streamjoin_hw.rtl.streams import Component, View, payload_of, signal_of


class Chooser(Component):
    """Planned errands, cut into rows of words.

    A tuple that is stored behind a search joins the last row of it. Two are kept, so that no path
    leads from the last stage to the planner.

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    clear : In(1)
        Forget all.
    has_first, has_second : In(1), first, second : In(planned_layout(params))
        The oldest errand that has not begun and the one behind it.
    take_first, take_both : Out(1)
        One begins, or both.
    raised : In(1), bucket : In(word_bits(params))
        A bucket's spread has been raised: mark all to which it matters.
    moves : In(1), is_there : Out(1), o : Out(chosen_layout(params))
        What is next, and whether it is taken; not while ``raised``.
    """

    clear: Signal
    has_first: Signal
    has_second: Signal
    first: View
    second: View
    take_first: Signal
    take_both: Signal
    raised: Signal
    bucket: Signal
    moves: Signal
    is_there: Signal
    o: View

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        planned = planned_layout(params)
        super().__init__(
            {
                "clear": In(1),
                **{name: In(1) for name in ("has_first", "has_second")},
                **{name: In(planned) for name in ("first", "second")},
                **{name: Out(1) for name in ("take_first", "take_both")},
                "raised": In(1),
                "bucket": In(word_bits(params)),
                "moves": In(1),
                "is_there": Out(1),
                "o": Out(chosen_layout(params)),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the choice and the two registers behind it."""
        m = Module()
        layout = chosen_layout(self.params)
        front = payload_of(layout)
        spare = payload_of(layout)
        has_front = Signal()
        has_spare = Signal()
        takes = Signal()
        m.d.comb += [
            takes.eq(self.has_first & ~has_spare & ~self.raised),
            self.is_there.eq(has_front),
            self.o.eq(front),
        ]
        chosen = self._choose(m, takes)
        with m.If(self.moves | ~has_front):
            m.d.sync += [
                front.eq(Mux(has_spare, spare.as_value(), chosen.as_value())),
                has_front.eq(takes | has_spare),
                has_spare.eq(0),
            ]
        with m.Elif(takes):
            m.d.sync += has_spare.eq(1)
        # Whatever there is is copied; it counts once ``has_spare`` is set.
        with m.If(~has_spare):
            m.d.sync += spare.eq(chosen)
        for kept in (front, spare):
            for each, begin in ((kept, kept.home), (kept.tuple, kept.tuple.word)):
                is_hit = touches(self.bucket, begin, each.until)
                with m.If(self.raised & is_hit):
                    m.d.sync += each.stale.eq(1)
        with m.If(self.clear):
            m.d.sync += [has_front.eq(0), has_spare.eq(0)]
        return m

    def _choose(self, m: Module, takes: Signal) -> Any:
        """Return the next row of the first errand, and the tuple that is stored with it."""
        first, second = self.first, self.second
        row = Signal(row_bits(self.params))
        is_search = Signal()
        ends = Signal()
        joins = Signal()
        # Whether the next row is the last one is known before it is that row's turn.
        has_begun = Signal()
        is_last = payload_of(1)
        chosen: Any = signal_of(chosen_layout(self.params))
        m.d.comb += [
            is_search.eq(~first.stores),
            ends.eq(Mux(has_begun, is_last, first.short)),
            joins.eq(is_search & ends & self.has_second & second.stores),
            self.take_both.eq(takes & joins),
            self.take_first.eq(takes & (first.stores | ends) & ~joins),
            chosen.search.eq(is_search),
            chosen.scans.eq(first.looks),
            chosen.ends.eq(ends),
            chosen.stale.eq(first.stale),
            chosen.word.eq(first.word + (row << bank_bits(self.params))),
            chosen.home.eq(first.word),
            chosen.until.eq(first.until),
            chosen.stores.eq(joins | first.stores),
            chosen.tuple.eq(Mux(joins, second.as_value(), first.as_value())),
            chosen.rows.eq(Mux(joins, self._rows(second), self._rows(first))),
        ]
        with m.If(takes):
            m.d.sync += [
                row.eq(Mux(is_search & ~ends, row + 1, 0)),
                has_begun.eq(is_search & ~ends),
                is_last.eq(row + 1 == first.rows),
            ]
        with m.If(self.clear):
            m.d.sync += [row.eq(0), has_begun.eq(0)]
        return chosen

    def _rows(self, errand: View) -> Value:
        """Return the addresses of the words in which a tuple may be stored."""
        return Cat(rows_of(self.params, errand.at))
