"""The ``splitjoin-index`` design: a band join that reads a few words of an ordered index.

As in SplitJoin (Najafi, Sadoghi and Jacobsen, USENIX ATC 2016) storing and processing are two
steps that do not wait for each other: an arrival is stored in its own stream's index and looks for
partners in the other's, in the same cycle if both take one.

A tuple's codes are looked up among the splitters in a pipeline that never stops and ends in a
queue. From there on one tuple after the other is worked on, in the order of arrival. What is read
for it is compared with it by the whole predicate, so that results are grouped by the later tuple.
"""

from typing import Any

from amaranth.hdl import Assert, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import COUNT_BITS, KEY_BITS, SIDE_R, SIDE_S, DesignParams
from streamjoin_hw.rtl.core_array import gathered_members
from streamjoin_hw.rtl.index.half import Half, errand_layout
from streamjoin_hw.rtl.index.layouts import sequence_bits, word_bits
from streamjoin_hw.rtl.index.splitters import Splitters, row_layout, search_cycles
from streamjoin_hw.rtl.intake import ordered_layout
from streamjoin_hw.rtl.matching import Matcher
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
    that name; ignored while an input runs. ``reads`` and ``displaced`` are pulses, ``held_r`` and
    ``held_s`` tuples in the windows.
    """
    if params.design != "splitjoin-index":
        return {}
    return {
        "splitter_load": In(1),
        "splitter_side": In(1),
        "splitter_number": In(word_bits(params)),
        "splitter_value": In(KEY_BITS),
        "bucket_words": In(32),
        "reads": Out(1),
        "displaced": Out(1),
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
    }


def _queue_tuples(params: DesignParams) -> int:
    """Tuples that the queue behind the search holds: all in the search, and a few that wait."""
    return 1 << (search_cycles(params) + 8).bit_length()


class IndexJoin(Component):
    """Both streams' splitters and indexes, the queue between them, and the comparators.

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
    evicted : Out(1), if there are timestamps
        Pulse: a tuple left by count before its time.

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

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        super().__init__(index_members(params))

    def elaborate(self, _platform: object) -> Module:
        """Build the search, the queue, the indexes and what is behind them."""
        m = Module()
        params = self.params
        halves, tables = [], []
        for name, layout in (("r", r_layout(params)), ("s", s_layout(params))):
            m.submodules[f"splitters_{name}"] = table = Splitters(params)
            m.submodules[f"index_{name}"] = half = Half(params, layout)
            tables.append(table)
            halves.append(half)
        m.submodules.matcher = matcher = Matcher(params)
        found = self._search(m, tables)
        tuples, starts = Signal(range(_queue_tuples(params) + 1)), Signal()
        self._admit(m, halves, tuples, starts)
        probe = self._work(m, found, halves, starts)
        self._compare(m, probe, halves, matcher)
        wiring.connect(m, matcher.results, wiring.flipped(self.results))
        r, s = halves
        m.d.comb += [
            self.held.eq(matcher.hold),
            self.reads.eq(matcher.scan),
            self.displaced.eq(r.displaced | s.displaced),
            self.held_r.eq(r.held),
            self.held_s.eq(s.held),
        ]
        takes = self.i.valid & self.i.ready
        working = ~r.done | ~s.done | starts
        m.d.sync += self.busy.eq(takes | (tuples != 0) | working | matcher.scan | matcher.busy)
        if params.timestamp_bits:
            m.d.comb += self.evicted.eq(r.evicted | s.evicted)
        return m

    def _admit(self, m: Module, halves: list[Half], tuples: Signal, starts: Signal) -> None:
        """Accept tuples as long as the queue has room for all that are on their way to it."""
        takes = self.i.valid & self.i.ready
        after = Signal(len(tuples))
        m.d.comb += after.eq(tuples + takes - starts)
        m.d.sync += [
            tuples.eq(after),
            self.i.ready.eq(
                (after < _queue_tuples(self.params))
                & ~self.clear
                & ~halves[SIDE_R].clearing
                & ~halves[SIDE_S].clearing
            ),
        ]
        for half in halves:
            m.d.comb += half.clear.eq(self.clear)

    def _search(self, m: Module, tables: list[Splitters]) -> Any:
        """Look the codes up while the tuple travels beside them; return the end of the pipeline."""
        params = self.params
        wanted = self.i.p.wanted
        for side, table in enumerate(tables):
            m.d.comb += [
                table.codes[0].eq(Mux(self.i.p.side == side, wanted.home, wanted.low)),
                table.codes[1].eq(wanted.high),
                table.load.eq(self.splitter_load & (self.splitter_side == side)),
                table.number.eq(self.splitter_number),
                table.value.eq(self.splitter_value),
                table.several.eq(self.bucket_words[-1]),
                table.row.eq(self.bucket_words[: row_layout().size]),
            ]
        layout = data.StructLayout(
            {"valid": 1, "side": 1, "full": 1, "looks": 1, "body": len(self.i.p.body)}
        )
        before: Any = signal_of(layout)
        m.d.comb += [
            before.valid.eq(self.i.valid & self.i.ready),
            before.side.eq(self.i.p.side),
            before.full.eq(self.i.p.full),
            before.looks.eq(wanted.low <= wanted.high),
            before.body.eq(self.i.p.body),
        ]
        for level in range(search_cycles(params)):
            after = registers_of(layout, "valid", name=f"search{level}")
            m.d.sync += after.eq(before)
            before = after
        return self._queue(m, before, tables)

    def _queue(self, m: Module, searched: View, tables: list[Splitters]) -> Any:
        """Queue tuples with what they do in each index."""
        params = self.params
        errands = data.ArrayLayout(errand_layout(params), len(tables))
        layout = data.StructLayout(
            {"side": 1, "full": 1, "looks": 1, "errands": errands, "body": len(searched.body)}
        )
        task = signal_of(layout)
        m.submodules.queue = queue = SyncFIFOBuffered(
            width=layout.size, depth=_queue_tuples(params) + 1
        )
        m.d.comb += [
            *(task[name].eq(searched[name]) for name in ("side", "full", "looks", "body")),
            queue.w_data.eq(task),
            queue.w_en.eq(searched.valid),
            Assert(~queue.w_en | queue.w_rdy, "the queue of the index overflowed"),
        ]
        for side, table in enumerate(tables):
            errand = task.errands[side]
            words = Signal(COUNT_BITS, name=f"words{side}")
            # More words than the index has are all of them.
            is_all = words[word_bits(params) :].any()
            m.d.comb += [
                words.eq(table.words[1] - table.words[0]),
                errand.stores.eq(searched.side == side),
                errand.word.eq(table.words[0]),
                errand.extent.eq(Mux(searched.side == side, 0, Mux(is_all, ~0, words))),
            ]
        self._queue_head = queue
        return data.View(layout, queue.r_data)

    def _work(self, m: Module, task: View, halves: list[Half], starts: Signal) -> View:
        """Give both indexes their errands; return the tuple that is compared."""
        queue = self._queue_head
        working = payload_of(data.StructLayout({"side": 1, "full": 1, "body": len(task.body)}))
        r, s = halves
        m.d.comb += [starts.eq(queue.r_rdy & r.done & s.done), queue.r_en.eq(starts)]
        with m.If(starts):
            m.d.sync += [working[name].eq(task[name]) for name in ("side", "full", "body")]
        for side, half in enumerate(halves):
            errand = task.errands[side]
            m.d.comb += [
                half.errand.eq(errand),
                half.start.eq(starts & (errand.stores | task.looks)),
                half.enter.eq(working.body[: half.body.size]),
                half.full.eq(working.full),
            ]
        probe: View = payload_of(working.shape())
        m.d.sync += probe.eq(working)
        return probe

    def _compare(self, m: Module, probe: View, halves: list[Half], matcher: Matcher) -> None:
        """Compare what was read with the tuple for which it was read."""
        m.d.comb += [
            matcher.scan.eq(halves[SIDE_R].scan | halves[SIDE_S].scan),
            matcher.probe_side.eq(probe.side),
        ]
        scanned = Signal()
        m.d.sync += scanned.eq(matcher.scan)
        for side, half, name in ((SIDE_R, halves[0], "r"), (SIDE_S, halves[1], "s")):
            slots, live = getattr(matcher, f"{name}_slots"), getattr(matcher, f"{name}_live")
            own = getattr(matcher, f"{name}_probe")
            m.d.comb += [
                half.hold.eq(matcher.hold),
                live.eq(Mux(scanned, half.live, 0)),
                own.valid.eq(probe.side == side),
                own.body.eq(probe.body[: half.body.size]),
            ]
            for lane in range(self.params.lanes):
                m.d.comb += [slots[lane].valid.eq(1), slots[lane].body.eq(half.tuples[lane])]
