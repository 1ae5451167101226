"""The ``splitjoin-hash`` design: an index instead of a scan, an input tuple in every cycle.

As in SplitJoin (Najafi, Sadoghi and Jacobsen, USENIX ATC 2016) storing and processing are two
steps that do not wait for each other. An accepted tuple passes a pipeline that never stops:
its key is hashed, its bucket is read in both streams' indexes, its name is pushed into its own
stream's and it is stored; and what the other stream's bucket names is held against that stream's
window and the tuple's tag. If nothing is left the tuple is done with. If something is, it becomes a
task in a queue. One walker takes the tasks in order and reads what they ask for, up to ``lanes``
tuples a cycle; the whole predicate is compared there. Results are thus grouped by the later
tuple, in its order of arrival: the design never does anything out of order.

A tuple a cycle is accepted as long as the queue does not fill up, that is, as long as the matches
owed, one or two a cycle at the output, and the reads in vain are no more than the tuples.
"""

from typing import Any

from amaranth.hdl import Assert, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFOBuffered
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import SIDE_R, SIDE_S, DesignParams
from streamjoin_hw.rtl.core_array import gathered_members
from streamjoin_hw.rtl.hash.index import (
    GENERATION_BITS,
    TAG_BITS,
    bucket_bits,
    hashed,
    ring_bits,
    round_of,
    sequence_bits,
)
from streamjoin_hw.rtl.hash.ring import Ring, Span
from streamjoin_hw.rtl.hash.stream_index import StreamIndex
from streamjoin_hw.rtl.hash.walk import Walker, stamp_bits, task_layout
from streamjoin_hw.rtl.intake import ordered_layout
from streamjoin_hw.rtl.matching import Matcher
from streamjoin_hw.rtl.streams import (
    Component,
    View,
    arrival_layout,
    payload_of,
    r_layout,
    registers_of,
    result_layout,
    s_layout,
    signal_of,
)


def hash_members(params: DesignParams) -> dict[str, wiring.Member]:
    """Ports of the join, the same for the component and for its instance in Verilog."""
    return {
        "i": In(stream.Signature(ordered_layout(params))),
        "clear": In(1),
        "results": Out(stream.Signature(result_layout(params))),
        **gathered_members(params),
    }


def _stage_layout(params: DesignParams, **others: Any) -> data.StructLayout:
    """Layout of a tuple on its way: its number and tag, the other stream's window and round."""
    return data.StructLayout(
        {
            "valid": 1,
            "tuple": arrival_layout(params),
            "sequence": sequence_bits(params),
            "tag": TAG_BITS,
            "tail": sequence_bits(params),
            "span": ring_bits(params),
            "round": GENERATION_BITS,
            "stamp": stamp_bits(params),
            **others,
        }
    )


class HashJoin(Component):
    """Both streams' indexes and rings, the queue, the walker and the comparators.

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    i : In(stream.Signature(ordered_layout(params)))
        Tuples in arrival order. ``ready`` is a register.
    clear : In(1)
        Empty both windows; not while a tuple is inside.
    results : Out(stream.Signature(result_layout(params)))
        Grouped by the later tuple, in its order of arrival.
    held : Out(1)
        The result FIFO is nearly full; from a register.
    busy : Out(1)
        Something is inside; from a register.
    evicted : Out(1), if there are timestamps
        Pulse: a tuple left by count before its time.
    """

    i: stream.Interface
    clear: Signal
    results: stream.Interface
    held: Signal
    busy: Signal
    evicted: Signal

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        super().__init__(hash_members(params))

    def elaborate(self, _platform: object) -> Module:
        """Build the pipeline, the queue and what is behind it."""
        m = Module()
        params = self.params
        sides = tuple(zip("rs", (r_layout(params), s_layout(params)), strict=True))
        spans, indexes, rings = [], [], []
        for name, layout in sides:
            m.submodules[f"span_{name}"] = span = Span(params)
            m.submodules[f"index_{name}"] = index = StreamIndex(params)
            m.submodules[f"ring_{name}"] = ring = Ring(params, layout)
            spans.append(span)
            indexes.append(index)
            rings.append(ring)
        m.submodules.walker = walker = Walker(params)
        m.submodules.matcher = matcher = Matcher(params)

        # A tuple's three stages: its bucket's number, the buckets, what the other one names.
        kept = {"held": ring_bits(params)} if params.own_buckets else {}
        numbered = _stage_layout(params, bucket=bucket_bits(params), **kept)
        hashes = registers_of(numbered, "valid", "stamp", name="hashes")
        reads = registers_of(numbered, "valid", name="reads")
        # Positions are counted from the tail; what has left the window lies beyond the span.
        places = registers_of(
            _stage_layout(
                params,
                link=sequence_bits(params),
                places=data.ArrayLayout(sequence_bits(params), params.ways),
                slots=data.ArrayLayout(ring_bits(params), params.ways),
                alike=params.ways,
                behind=1,
            ),
            "valid",
            name="places",
        )
        for member in _stage_layout(params).members:
            m.d.sync += [reads[member].eq(hashes[member]), places[member].eq(reads[member])]
        m.d.sync += [reads[name].eq(hashes[name]) for name in ("bucket", *kept)]
        self._accept(m, hashes, spans)
        self._look_up(m, (hashes, reads, places), indexes)
        asks = self._ask(m, places, rings, walker)
        waiting = self._admit(m, (hashes.stamp, places), asks, walker)
        m.d.comb += [walker.hold.eq(matcher.hold), self.held.eq(matcher.hold)]
        self._compare(m, walker, rings, matcher)
        wiring.connect(m, matcher.results, wiring.flipped(self.results))
        moving = hashes.valid | reads.valid | places.valid | (self.i.valid & self.i.ready)
        scanned = Signal()
        m.d.sync += [
            scanned.eq(matcher.scan),
            self.busy.eq(moving | waiting | matcher.scan | scanned | matcher.busy),
        ]
        return m

    def _accept(self, m: Module, hashes: View, spans: list[Span]) -> None:
        """Number the tuple, hash it, and take down the other stream's window."""
        params = self.params
        r, s = spans
        takes = Signal()
        is_s = Signal()
        m.d.comb += [takes.eq(self.i.valid & self.i.ready), is_s.eq(self.i.p.side == SIDE_S)]
        views: list[Any] = [
            data.View(layout, self.i.p.body[: layout.size])
            for layout in (r_layout(params), s_layout(params))
        ]
        for side, span in enumerate(spans):
            m.d.comb += [
                span.clear.eq(self.clear),
                span.arrive.eq(takes & (is_s == side)),
                span.full.eq(self.i.p.full),
            ]
            if params.timestamp_bits:
                m.d.comb += [
                    span.end.eq(views[side].end),
                    span.passes.eq(takes),
                    span.now.eq(Mux(is_s, views[SIDE_S].ts, views[SIDE_R].ts)),
                ]
        if params.timestamp_bits:
            m.d.comb += self.evicted.eq(r.evicted | s.evicted)
        (bucket_r, tag_r), (bucket_s, tag_s) = (hashed(params, view) for view in views)
        # The number of this arrival; beyond the pipeline it says how far a task is behind.
        m.d.sync += [
            hashes.valid.eq(takes),
            hashes.tuple.side.eq(self.i.p.side),
            hashes.tuple.body.eq(self.i.p.body),
            hashes.sequence.eq(Mux(is_s, s.head, r.head)),
            hashes.bucket.eq(Mux(is_s, bucket_s, bucket_r)),
            hashes.tag.eq(Mux(is_s, tag_s, tag_r)),
            hashes.tail.eq(Mux(is_s, r.tail, s.tail)),
            hashes.span.eq(Mux(is_s, r.head - r.tail, s.head - s.tail)),
            hashes.round.eq(round_of(params, Mux(is_s, r.head, s.head))),
            hashes.stamp.eq(hashes.stamp + takes),
        ]
        if params.own_buckets:
            m.d.sync += hashes.held.eq(Mux(is_s, s.head - s.tail, r.head - r.tail))

    def _look_up(
        self, m: Module, stages: tuple[View, View, View], indexes: list[StreamIndex]
    ) -> None:
        """Read the buckets, push the name, and locate what the other bucket names."""
        params = self.params
        hashes, reads, places = stages
        is_s = reads.tuple.side == SIDE_S
        for side, index in enumerate(indexes):
            m.d.comb += [
                index.next_bucket.eq(hashes.bucket),
                index.bucket.eq(reads.bucket),
                index.tag.eq(reads.tag),
                index.sequence.eq(reads.sequence),
                index.push.eq(reads.valid & (is_s == side)),
                index.round.eq(reads.round),
            ]
            if params.own_buckets:
                m.d.comb += index.held.eq(reads.held)
        of_r, of_s = indexes
        m.d.sync += [
            places.link.eq(Mux(is_s, of_s.link, of_r.link)),
            places.alike.eq(Mux(is_s, of_r.alike, of_s.alike)),
            places.behind.eq(Mux(is_s, of_r.behind, of_s.behind)),
        ]
        for way in range(params.ways):
            number = Signal(sequence_bits(params), name=f"number{way}")
            m.d.comb += number.eq(Mux(is_s, of_r.names[way], of_s.names[way]))
            m.d.sync += [
                places.places[way].eq(number - reads.tail),
                places.slots[way].eq(number[: ring_bits(params)]),
            ]

    def _ask(self, m: Module, places: View, rings: list[Ring], walker: Walker) -> Value:
        """Store the tuple, and queue a task if anything is left to look at."""
        params = self.params
        for side, ring in enumerate(rings):
            m.d.comb += [
                ring.store.eq(places.valid & (places.tuple.side == side)),
                ring.slot.eq(places.sequence[: ring_bits(params)]),
                ring.enter.eq(places.tuple.body[: ring.body.size]),
                ring.link.eq(places.link),
            ]
        m.submodules.queue = queue = SyncFIFOBuffered(
            width=task_layout(params).size, depth=params.lead_tuples
        )
        task = signal_of(task_layout(params))
        seen = Signal(params.ways)
        before: Value = Const(1, 1)
        bound: Value = places.span
        for way in range(params.ways):
            # Newest first; the first that is not older than the one before ends the bucket.
            before = before & (places.places[way] < bound)
            bound = places.places[way]
            m.d.comb += seen[way].eq(before)
        asks = Signal()
        m.d.comb += [
            asks.eq(places.valid & (task.deep | task.wanted.any())),
            task.tuple.eq(places.tuple),
            task.slots.eq(places.slots),
            task.wanted.eq(seen & places.alike),
            task.deep.eq(seen[-1] & places.behind),
            task.last.eq(places.places[params.ways - 1][: ring_bits(params)]),
            task.tail.eq(places.tail),
            task.stamp.eq(places.stamp),
            queue.w_data.eq(task),
            queue.w_en.eq(asks),
            walker.i.payload.eq(queue.r_data),
            walker.i.valid.eq(queue.r_rdy),
            queue.r_en.eq(walker.i.ready),
            Assert(~queue.w_en | queue.w_rdy, "the queue of tasks overflowed"),
        ]
        return asks

    def _admit(self, m: Module, stages: tuple[Signal, View], asks: Value, walker: Walker) -> Value:
        """Accept tuples up to ``lead_tuples`` behind the oldest that is not done with."""
        params = self.params
        stamp, places = stages
        takes = self.i.valid & self.i.ready
        tasks = Signal(range(params.lead_tuples + 2))
        # At most what the oldest task's number is, where there are tasks; else what went last.
        waits = Signal(stamp_bits(params))
        went = Signal(stamp_bits(params))
        oldest = Signal(stamp_bits(params))
        behind = Signal(stamp_bits(params))
        m.d.sync += tasks.eq(tasks + asks - walker.done)
        with m.If(places.valid):
            m.d.sync += went.eq(places.stamp)
        with m.If(asks & (tasks == walker.done)):
            m.d.sync += waits.eq(places.stamp)
        with m.Elif(walker.done):
            m.d.sync += waits.eq(walker.stamp)
        m.d.comb += [
            oldest.eq(Mux(tasks == 0, went, Mux(walker.busy, walker.stamp, waits))),
            behind.eq(stamp + takes - oldest),
        ]
        m.d.sync += self.i.ready.eq(behind < params.lead_tuples - 1)
        return tasks != 0

    def _compare(self, m: Module, walker: Walker, rings: list[Ring], matcher: Matcher) -> None:
        """Read from both rings, and compare what was read from the other side's."""
        params = self.params
        r, s = rings
        was_read = Signal(params.lanes)
        probe = payload_of(arrival_layout(params))
        m.d.sync += [was_read.eq(walker.reads), probe.eq(walker.tuple)]
        m.d.comb += [
            r.rows.eq(walker.rows),
            s.rows.eq(walker.rows),
            matcher.scan.eq(walker.reads.any()),
            matcher.probe_side.eq(probe.side),
        ]
        asks_r = payload_of(1)
        m.d.sync += asks_r.eq(walker.tuple.side == SIDE_S)
        for side, ring, name in ((SIDE_R, r, "r"), (SIDE_S, s, "s")):
            slots, live = getattr(matcher, f"{name}_slots"), getattr(matcher, f"{name}_live")
            own = getattr(matcher, f"{name}_probe")
            m.d.comb += [
                live.eq(was_read),
                own.valid.eq(probe.side == side),
                own.body.eq(probe.body[: ring.body.size]),
            ]
            for lane in range(params.lanes):
                m.d.comb += [
                    slots[lane].valid.eq(Const(1, 1)),
                    slots[lane].body.eq(ring.tuples[lane]),
                ]
        for lane in range(params.lanes):
            m.d.comb += walker.links[lane].eq(Mux(asks_r, r.links[lane], s.links[lane]))
