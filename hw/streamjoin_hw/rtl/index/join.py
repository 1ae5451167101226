"""The ``splitjoin-index`` design: a band join that reads a few words of an ordered index.

As in SplitJoin (Najafi, Sadoghi and Jacobsen, USENIX ATC 2016) storing and processing are two
steps that do not wait for each other: an arrival is stored in its own stream's index and looks for
partners in the other's, in the same cycle if both take one.

A tuple's codes are looked up among the splitters in a pipeline that never stops and ends in a
queue for each index. From there on each index works on one tuple after the other, in the order of
arrival. What is read for one is compared with it by the whole predicate. The results of both
indexes are merged in the order of arrival, so that they are grouped by the later tuple.
"""

from typing import Any

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import COUNT_BITS, KEY_BITS, SIDE_R, SIDE_S, DesignParams
from streamjoin_hw.rtl.core_array import gathered_members
from streamjoin_hw.rtl.index.layouts import (
    own_interval,
    sequence_bits,
    word_bits,
)
from streamjoin_hw.rtl.index.merge import InOrder, whole_member
from streamjoin_hw.rtl.index.side import Side, queue_tuples
from streamjoin_hw.rtl.index.splitters import Splitters, row_layout, search_cycles
from streamjoin_hw.rtl.intake import ordered_layout
from streamjoin_hw.rtl.streams import (
    Component,
    View,
    payload_of,
    r_layout,
    registers_of,
    result_layout,
    s_layout,
    signal_of,
)


def index_settings(params: DesignParams) -> dict[str, wiring.Member]:
    """Ports of ``splitjoin-index`` to set splitters and to count; none for other designs.

    ``splitter_load`` sets splitter ``splitter_number`` of side ``splitter_side`` to
    ``splitter_value``, and the words of the bucket above it to ``bucket_words``, the register of
    that name; ignored while an input runs. ``reads`` and ``displaced`` count events of a cycle,
    ``held_r`` and ``held_s`` are tuples in the windows.
    """
    if params.design != "splitjoin-index":
        return {}
    return {
        "splitter_load": In(1),
        "splitter_side": In(1),
        "splitter_number": In(word_bits(params)),
        "splitter_value": In(KEY_BITS),
        "bucket_words": In(32),
        "reads": Out(2),
        "displaced": Out(2),
        "held_r": Out(sequence_bits(params)),
        "held_s": Out(sequence_bits(params)),
    }


def index_members(params: DesignParams) -> dict[str, wiring.Member]:
    """Ports of the join, the same for the component and for its instance in Verilog."""
    return {
        "i": In(stream.Signature(ordered_layout(params))),
        "clear": In(1),
        "results": Out(stream.Signature(result_layout(params))),
        **index_settings(params),
        **gathered_members(params),
        **whole_member(params),
    }


class IndexJoin(Component):
    """Both streams' splitters, their indexes and what puts results in order.

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    i : In(stream.Signature(ordered_layout(params)))
        Tuples in arrival order. ``ready`` is a register.
    clear : In(1)
        Empty both windows; not while a tuple is inside. Takes a cycle for ``ways`` buckets.
    results : Out(stream.Signature(result_layout(params)))
        Grouped by the later tuple, in its order of arrival.
    held : Out(1)
        The result FIFO is nearly full; from a register.
    busy : Out(1)
        Something is inside; from a register.
    evicted : Out(count), if there are timestamps
        Tuples that left by count before their time, in the last cycle.
    whole : Out(1), if the order is inner
        As of :class:`~streamjoin_hw.rtl.index.merge.InOrder`.

    The other members are those of :func:`index_settings`.
    """

    i: stream.Interface
    clear: Signal
    results: stream.Interface
    splitter_load: Signal
    splitter_side: Signal
    splitter_number: Signal
    splitter_value: Signal
    bucket_words: Signal
    reads: Signal
    displaced: Signal
    held_r: Signal
    held_s: Signal
    held: Signal
    busy: Signal
    evicted: Signal
    whole: Signal

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        super().__init__(index_members(params))

    def elaborate(self, _platform: object) -> Module:
        """Build the search, both sides and what is behind them."""
        m = Module()
        params = self.params
        tables, sides = [], []
        for side, name in ((SIDE_R, "r"), (SIDE_S, "s")):
            m.submodules[f"splitters_{name}"] = table = Splitters(params)
            m.submodules[f"index_{name}"] = index = Side(params, side)
            tables.append(table)
            sides.append(index)
        m.submodules.in_order = in_order = InOrder(params)
        searched = self._search(m, tables)
        for side, index in enumerate(sides):
            self._put(m, searched, tables[side], index)
        is_waiting = self._admit(m, sides)
        for side, index in enumerate(sides):
            m.d.comb += [
                in_order.is_found[side].eq(index.is_found),
                in_order.number[side].eq(index.found_number),
                index.choose.eq(in_order.choose[side]),
                in_order.found[side].eq(index.found),
                in_order.passed[side].eq(index.passed),
                in_order.next_number[side].eq(index.next_number),
                index.take.eq(in_order.take[side]),
                index.wait.eq(in_order.far[side]),
            ]
        wiring.connect(m, in_order.results, wiring.flipped(self.results))
        r, s = sides
        m.d.comb += [
            self.held.eq(r.hold | s.hold),
            self.reads.eq(r.reads + s.reads),
            self.displaced.eq(r.displaced + s.displaced),
            self.held_r.eq(r.held),
            self.held_s.eq(s.held),
        ]
        takes = self.i.valid & self.i.ready
        m.d.sync += self.busy.eq(takes | is_waiting | r.busy | s.busy | in_order.busy)
        if params.timestamp_bits:
            m.d.comb += self.evicted.eq(r.evicted + s.evicted)
        if whole_member(params):
            m.d.comb += self.whole.eq(in_order.whole)
        return m

    def _admit(self, m: Module, sides: list[Side]) -> Signal:
        """Accept tuples while both queues have room for all that are on their way to them.

        Returns whether any has not left both queues yet.
        """
        takes = self.i.valid & self.i.ready
        has_room = Signal(2)
        is_waiting = Signal()
        for side, index in enumerate(sides):
            waiting = Signal(range(queue_tuples(self.params) + 2), name=f"waiting{side}")
            after = Signal(len(waiting), name=f"after{side}")
            m.d.comb += [
                after.eq(waiting + takes - index.begun),
                has_room[side].eq(after < queue_tuples(self.params)),
                index.clear.eq(self.clear),
            ]
            m.d.sync += waiting.eq(after)
            with m.If(waiting != 0):
                m.d.comb += is_waiting.eq(1)
        clearing = sides[SIDE_R].clearing | sides[SIDE_S].clearing
        m.d.sync += self.i.ready.eq(has_room.all() & ~self.clear & ~clearing)
        return is_waiting

    def _search(self, m: Module, tables: list[Splitters]) -> Any:
        """Look the codes up while the tuple travels beside them; return the end of the pipeline.

        ``low`` is for a tuple of S its own code, which is stored.
        """
        params = self.params
        wanted, is_s = self.i.p.wanted, self.i.p.side == SIDE_S
        number = payload_of(word_bits(params))
        value = payload_of(KEY_BITS)
        several = payload_of(1)
        row = payload_of(row_layout().size)
        m.d.sync += [
            number.eq(self.splitter_number),
            value.eq(self.splitter_value),
            several.eq(self.bucket_words[-1]),
            row.eq(self.bucket_words[: row_layout().size]),
        ]
        for side, table in enumerate(tables):
            m.d.comb += [
                table.codes[0].eq(Mux(self.i.p.side == side, wanted.home, wanted.low)),
                table.codes[1].eq(wanted.high),
                table.number.eq(number),
                table.value.eq(value),
                table.several.eq(several),
                table.row.eq(row),
            ]
            # A cycle late, from registers: an input begins with more cycles in which none is read.
            m.d.sync += table.load.eq(self.splitter_load & (self.splitter_side == side))
        interval = {"low": KEY_BITS, "high": KEY_BITS}
        layout = data.StructLayout(
            {
                **dict.fromkeys(("valid", "side", "full", "looks"), 1),
                "body": len(self.i.p.body),
                **(interval if own_interval(params) is not None else {}),
            }
        )
        before: Any = signal_of(layout)
        m.d.comb += [
            before.valid.eq(self.i.valid & self.i.ready),
            before.side.eq(self.i.p.side),
            before.full.eq(self.i.p.full),
            before.looks.eq(wanted.low <= wanted.high),
            before.body.eq(self.i.p.body),
        ]
        if own_interval(params) is not None:
            low = Mux(is_s, wanted.home, wanted.low)
            m.d.comb += [before.low.eq(low), before.high.eq(wanted.high)]
        for level in range(search_cycles(params)):
            after = registers_of(layout, "valid", name=f"search{level}")
            m.d.sync += after.eq(before)
            before = after
        return before

    def _put(self, m: Module, searched: View, table: Splitters, index: Side) -> None:
        """Give an arrival to the index of a side."""
        params, side = self.params, index.side
        stores = searched.side == side
        bodies = {SIDE_R: r_layout(params), SIDE_S: s_layout(params)}
        for view, its_side in ((index.enters, side), (index.asks, 1 - side)):
            body = bodies[its_side](searched.body[: bodies[its_side].size])
            for name, _ in view.shape():
                own = name in bodies[its_side].members
                # What the stream's own layout lacks is a code, the lower end, or the upper one.
                part = body[name] if own else searched["high" if name == "high" else "low"]
                m.d.comb += view[name].eq(part)
        words = Signal(COUNT_BITS, name=f"words{side}")
        # More words than the index has are all of them.
        is_all = words[word_bits(params) :].any()
        m.d.comb += [
            words.eq(table.words[1] - table.words[0]),
            index.put.eq(searched.valid),
            index.full.eq(searched.full),
            index.errand.stores.eq(stores),
            index.errand.looks.eq(searched.looks),
            index.errand.word.eq(table.words[0]),
            index.errand.extent.eq(Mux(is_all, ~0, words)),
            index.errand.until.eq(Mux(is_all, table.words[0] - 1, table.words[1])),
        ]
