"""One half of a core: it stores one stream's tuples and compares the other's with them.

SplitJoin, section 4: storing and processing are two things that a half does at the same time,
each by its own counters. Here ``probes`` tuples are compared in one pass over the sub-window.

**Why no pair is missed or met twice.** All cores receive all tuples in one order. A pair's earlier
tuple is stored in one core, its home, and only there; its later tuple is a probe in every core's
half of the other side and is in exactly one batch. So the pair is looked at in its home, in the
one pass of that batch, if the earlier tuple's slot is within the pass, and the slot counts for this
probe. While a batch is collected at most one tuple is stored and at most one expires. The pass
looks at every slot that was live before the batch and at the one stored during it: what is live for
any of its probes. For each probe these two slots, and no others, may differ from the state at its
arrival, and the batch keeps for each probe whether it arrived before or after them. The ring
changes only as a pass begins and the slot then written is in no pass before it
(:func:`~streamjoin_hw.rtl.split.layouts.ring_words`), so what a pass reads, and reads again for
a list that was too short, is what it saw at its beginning.
"""

from typing import Any, NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from streamjoin_common.contract import SIDE_R, DesignParams
from streamjoin_hw.rtl.chain.core import evicted_member
from streamjoin_hw.rtl.memory import word_after
from streamjoin_hw.rtl.predicates import matches, parts_of_a_match
from streamjoin_hw.rtl.split.collector import Collector, SingleCollector, batch_layout, pass_plan
from streamjoin_hw.rtl.split.emitter import Emitter
from streamjoin_hw.rtl.split.hits import hit_layout
from streamjoin_hw.rtl.split.layouts import (
    is_single,
    ordered_port,
    ring_words,
    routed_layout,
    row_bits,
    token_layout,
)
from streamjoin_hw.rtl.split.subwindow import SubWindow, left_bits, range_layout, word_bits
from streamjoin_hw.rtl.streams import Component, one_less, payload_of


class Half(Component):
    """Store the tuples of one side in turn, compare those of the other, give results.

    A batch of up to ``probes`` tuples costs a cycle for each word that holds a tuple, at least
    one.

    Parameters
    ----------
    params : DesignParams
        The design.
    side : int
        The side that is stored.

    Members
    -------
    index : In(bits_for(cores - 1))
        The core's number, constant.
    clear : In(1)
        Empty it; only beside a reset, and once before the first tuple.
    masked : In(1)
        Find no match: the core counts and stores as ever and is taken for failed.
    ordered : In(1), unless stars are grouped
        Give results by probe, and a star after each probe's.
    i : In(stream.Signature(routed_layout(params)))
        Tuples of both sides in arrival order.
    o : Out(stream.Signature(token_layout(params)))
        Results and stars.
    held : Out(1)
        Scanning waits for the output; from a register.
    busy : Out(1)
        Something is inside; from a register.
    evicted : Out(1), if there are timestamps
        Pulse: a tuple expired by count before its time.
    """

    index: Signal
    clear: Signal
    masked: Signal
    ordered: Signal
    i: stream.Interface
    o: stream.Interface
    held: Signal
    busy: Signal
    evicted: Signal

    def __init__(self, params: DesignParams, side: int) -> None:
        self.params = params
        self.side = side
        super().__init__(
            {
                "index": In(bits_for(params.cores - 1)),
                **{name: In(1) for name in ("clear", "masked", *ordered_port(params))},
                "i": In(stream.Signature(routed_layout(params))),
                "o": Out(stream.Signature(token_layout(params))),
                "held": Out(1),
                "busy": Out(1),
                **evicted_member(params),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the pass over the sub-window."""
        m = Module()
        params = self.params
        made: Any = SingleCollector if is_single(params) else Collector
        m.submodules.collector = collector = made(params, self.side)
        m.submodules.ring = ring = SubWindow(params, self.side)
        m.submodules.emitter = emitter = Emitter(params, self.side)
        wiring.connect(m, wiring.flipped(self.i), collector.i)
        wiring.connect(m, emitter.o, wiring.flipped(self.o))
        w = _Wires(params, self.side)
        plan = pass_plan(m, ring, collector, self.masked)

        # A pass may begin with the last read of the one before: the batch is taken over in two
        # cycles, where to read in the first, what to compare with in the second.
        reads: Any = Signal(name="reads")
        reads_last = Signal()
        m.d.comb += reads_last.eq(reads & w.last)
        # A batch waits until the one before it was taken, so that at most one tuple is stored
        # while results of a batch are given; without probes there is nothing to take. What the
        # emitter is given comes from a batch that waited.
        m.d.sync += w.gives.eq(emitter.busy)
        may_go = (collector.batch.count != 0) | ~w.gives
        if is_single(params):
            # That a batch is due is known a cycle before, as it stays so until the batch begins.
            # What the ring says of itself is a cycle late: one more between two that begin.
            due, is_due = Signal(), collector.waiting & ~w.waits & may_go
            m.d.sync += due.eq(is_due & ~w.begin)
            m.d.comb += w.begin.eq(due & (w.none | reads_last))
            # The key that the ring stores is late too: a pass of one word waits a cycle for it.
            # Whether there is room for what is read is as late.
            early = w.begin & plan.last & collector.store
            m.d.sync += w.may_read.eq(~emitter.nearly_full & ~early)
            m.d.comb += reads.eq(~w.none & w.may_read)
        else:
            m.d.comb += reads.eq(~w.none & ~emitter.nearly_full)
            may_begin = (w.none | reads_last) & ~w.waits & ~emitter.alone & may_go
            if params.timestamp_bits:
                # What has expired by its time is dropped before the ring changes again.
                may_begin &= w.none & ~w.compares
            m.d.comb += w.begin.eq(collector.waiting & may_begin)
        m.d.comb += [
            collector.index.eq(self.index),
            collector.clear.eq(self.clear),
            collector.begin.eq(w.begin),
            ring.clear.eq(self.clear),
            ring.begin.eq(w.begin),
            ring.store.eq(collector.store),
            ring.expire.eq(collector.expire),
            ring.enter.eq(collector.enter),
            ring.fetch.eq(emitter.fetch),
            ring.fetch_word.eq(emitter.fetch_word),
            ring.fetch_lane.eq(emitter.fetch_lane),
            emitter.payload.eq(ring.payload),
        ]
        for name in ordered_port(params):
            m.d.comb += getattr(emitter, name).eq(getattr(self, name))
        if is_single(params):
            m.d.comb += ring.kept.eq(w.waits)
        self._walk(m, w, _Parts(collector, ring, emitter, plan), reads)
        self._compare(m, w, ring, emitter)
        if params.timestamp_bits:
            self._expire(m, w, ring, collector, emitter.alone)

        m.d.comb += [
            emitter.ready_batch.eq(w.loaded),
            emitter.count.eq(Const(1) if is_single(params) else w.batch.count),
            emitter.settled.eq(~w.none & ~w.compares & ~w.loads),
        ]
        if params.has_groups:
            m.d.comb += emitter.ends.eq(w.batch.ends)
        for p in range(params.probes):
            m.d.comb += emitter.payloads[p].eq(w.batch.probes[p].payload)
        # A batch that begins was waiting. One probe's waits until the emitter looks at its words,
        # which it then does until the last of them is there.
        collects = collector.busy if is_single(params) else collector.waiting | ~w.none | w.compares
        working = collects | w.waits | emitter.busy
        m.d.sync += [self.busy.eq(working), self.held.eq(emitter.nearly_full)]
        return m

    def _walk(self, m: Module, w: "_Wires", parts: "_Parts", reads: Value) -> None:
        """Take a batch over and read its words, again from the first where the emitter asks."""
        collector, ring, emitter, plan = parts
        with m.If(w.begin):
            m.d.sync += [
                w.range.eq(plan.range),
                w.count.eq(collector.batch.count),
                w.gone.eq(collector.batch.gone),
                w.there.eq(collector.batch.there),
                w.probing.eq(plan.probing),
                w.filled.eq(plan.filled),
                w.word.eq(plan.range.first_word),
                w.first.eq(1),
                w.left.eq(plan.left),
                w.none.eq(plan.none),
                w.last.eq(plan.last),
            ]
            if is_single(self.params):
                m.d.sync += w.second_last.eq(plan.second_last)
            if self.params.order == "inner":
                m.d.sync += w.row.eq(plan.range.row)
        words = Mux(w.range.words == 0, 1, w.range.words)
        with m.Elif(emitter.again):
            m.d.sync += [
                w.word.eq(w.range.first_word),
                w.first.eq(1),
                w.left.eq(words),
                w.none.eq(0),
                w.last.eq(words == 1),
            ]
            if self.params.order == "inner":
                m.d.sync += w.row.eq(w.range.row)
        with m.Elif(reads):
            m.d.sync += [
                w.left.eq(one_less(w.left)),
                w.none.eq(w.last),
                w.last.eq(w.second_last),
                w.first.eq(0),
                w.word.eq(word_after(w.word, ring_words(self.params))),
            ]
            if is_single(self.params):
                m.d.sync += w.second_last.eq(w.left == 1)
            if self.params.order == "inner":
                m.d.sync += w.row.eq(w.row + self.params.lanes)
        if not is_single(self.params):
            m.d.comb += w.second_last.eq(w.left == 2)

        # The second cycle: the probes are still there.
        m.d.sync += w.loads.eq(w.begin & plan.probing)
        with m.If(w.loads):
            m.d.sync += [
                w.batch.eq(collector.batch),
                w.batch.count.eq(w.count),
                w.batch.gone.eq(w.gone),
                w.batch.there.eq(w.there),
            ]
        m.d.sync += [
            w.waits.eq((w.waits & ~emitter.take) | (w.begin & plan.probing)),
            w.loaded.eq((w.loaded & ~emitter.take) | w.loads),
        ]
        m.d.comb += [ring.read_word.eq(w.word), w.reads.eq(reads)]

    def _compare(self, m: Module, w: "_Wires", ring: SubWindow, emitter: Emitter) -> None:
        """Compare the word that was read with all probes, and hand over what matches."""
        params, lanes = self.params, self.params.lanes
        last = w.last
        from_first = ~((Const(1, lanes + 1) << w.range.first_lane) - 1)[:lanes]
        below_end = ((Const(1, lanes + 1) << w.range.end_lane) - 1)[:lanes]
        live = Mux(w.first, from_first, ~Const(0, lanes))
        live &= Mux(last & (w.range.end_lane != 0), below_end, ~Const(0, lanes))
        oldest = Cat(*(w.range.first_lane == lane for lane in range(lanes)))
        newest = Cat(*(w.range.end_lane == (lane + 1) % lanes for lane in range(lanes)))
        m.d.sync += [
            w.live.eq(live & (w.reads & w.filled).replicate(lanes)),
            w.old.eq(oldest & (w.reads & w.first & w.range.old).replicate(lanes)),
            w.new.eq(newest & (w.reads & last & w.range.new).replicate(lanes)),
        ]
        m.d.sync += [
            w.scanned.eq(w.reads & w.probing),
            w.scanned_last.eq(last),
            w.scanned_word.eq(w.word),
        ]
        hit, seen = w.hit, w.seen
        if is_single(params):
            # Whether a pair matches takes two cycles, by the parts of its comparison.
            m.d.sync += [later.eq(now) for later, now in zip(w.parted, w.seen, strict=True)]
            seen = w.parted
        is_seen, last_seen, word_seen, *row_seen = seen
        found = []
        for p in range(params.probes):
            probe = w.batch.probes[p]
            if params.has_groups:
                wanted = Mux(emitter.alone, emitter.serves[p], w.batch.count > p)
                wanted = wanted & ~w.batch.blank if p == 0 else wanted
            else:
                wanted = Mux(emitter.alone, emitter.probe == p, w.batch.count > p)
            for lane in range(lanes):
                slot = ring.slots[lane]
                r, s = (slot, probe) if self.side == SIDE_R else (probe, slot)
                if is_single(params):
                    compared = [w.live[lane] & ~w.old[lane], *parts_of_a_match(params, r, s)]
                    parts = payload_of(len(compared), name="parts")
                    m.d.sync += [parts.eq(Cat(*compared)), hit.mask[p][lane].eq(parts.all())]
                    found.append(parts.all())
                    continue
                counts = (
                    wanted
                    & w.live[lane]
                    & ~(w.old[lane] & w.batch.gone[p])
                    & ~(w.new[lane] & ~w.batch.there[p])
                )
                m.d.sync += hit.mask[p][lane].eq(counts & matches(params, r, s))
        m.d.sync += [hit.word.eq(word_seen), hit.last.eq(last_seen), w.compared.eq(is_seen)]
        if params.order == "inner":
            m.d.sync += [w.scanned_row.eq(w.row), hit.row.eq(*row_seen)]
        push: Value = w.compared & (hit.mask.as_value().any() | hit.last)
        if is_single(params):
            # From a register: a word goes far into its list.
            push = Signal(name="push")
            m.d.sync += push.eq((is_seen & last_seen) | (is_seen & Cat(*found).any()))
        m.d.comb += [
            emitter.hit.eq(hit),
            emitter.push.eq(push),
            w.compares.eq(w.scanned | is_seen | w.compared | w.old.any()),
        ]

    def _expire(
        self, m: Module, w: "_Wires", ring: SubWindow, collector: Collector, alone: Signal
    ) -> None:
        """Drop leading words that are past their time for the batch's first probe, so for all.

        SplitJoin, algorithm 4; a word at a time, in the pass that finds them so. A tuple that
        expired by count is looked at once more: it should be past its time as well. A pass that
        is repeated has been through this.
        """
        params = self.params
        early = payload_of(params.timestamp_bits)
        leading = payload_of(1)
        dropping = Signal()
        with m.If(w.begin):
            m.d.sync += [early.eq(collector.now), leading.eq(1)]
        ends = [ring.slots[lane].end for lane in range(params.lanes)]
        too_early = Cat(*(w.old[lane] & (end > early) for lane, end in enumerate(ends)))
        m.d.sync += self.evicted.eq(too_early.any() & ~alone)
        now = w.batch.probes[0].ts
        held = w.live & ~w.old
        any_alive = Cat(*(held[lane] & (end > now) for lane, end in enumerate(ends))).any()
        if params.has_groups:
            # A blank probe has no time.
            any_alive = any_alive | w.batch.blank
        m.d.comb += [
            dropping.eq(w.scanned & leading & ~any_alive & held.any() & ~alone),
            ring.drop.eq(dropping),
            ring.drop_slots.eq(sum((held[lane] for lane in range(params.lanes)), Const(0, 1))),
            ring.drop_all.eq(w.scanned_last & (w.range.end_lane != 0)),
        ]
        with m.If(w.scanned & any_alive):
            m.d.sync += leading.eq(0)


class _Parts(NamedTuple):
    """The components of a half, and what a pass that begins looks at."""

    collector: Collector
    ring: SubWindow
    emitter: Emitter
    plan: Any


class _Wires:
    """Registers of the running pass."""

    def __init__(self, params: DesignParams, side: int) -> None:
        self.begin = Signal()
        self.reads = Signal()
        # The batch: `waits` until the emitter has taken it, `loaded` once its probes are here.
        self.batch = payload_of(batch_layout(params, side))
        self.count = payload_of(bits_for(params.probes))
        self.gone = payload_of(params.probes)
        self.there = payload_of(params.probes)
        # Some word holds what the probes are compared with.
        self.filled = payload_of(1)
        self.probing, self.waits, self.loads, self.loaded = (
            Signal(name=name) for name in ("probing", "waits", "loads", "loaded")
        )
        # Results are given; a cycle late.
        self.gives = Signal()
        # The words: how many are to be read, the next one, whether it is the first.
        self.range = payload_of(range_layout(params))
        self.left = payload_of(left_bits(params))
        self.none = Signal(init=1)
        self.last = Signal()
        # One is left behind the next one. With one probe slot `left` counts those behind that.
        self.second_last = Signal()
        self.word = payload_of(word_bits(params))
        self.first = payload_of(1)
        # There is room for what is read, and it is written.
        self.may_read = Signal()
        # Read a cycle ago.
        self.live, self.new = (payload_of(params.lanes, name=name) for name in ("live", "new"))
        self.old = Signal(params.lanes)
        self.scanned = Signal()
        self.scanned_last = payload_of(1)
        self.scanned_word = payload_of(word_bits(params))
        # Compared a cycle ago.
        self.hit = payload_of(hit_layout(params))
        self.compared = Signal()
        self.compares = Signal()
        if params.order == "inner":
            self.row = payload_of(row_bits(params))
            self.scanned_row = payload_of(row_bits(params))
        # What was read a cycle ago, and where a comparison takes two, two cycles ago.
        self.seen = [self.scanned, self.scanned_last, self.scanned_word]
        self.seen += [self.scanned_row] if params.order == "inner" else []
        self.parted = [Signal(name="parted")]
        self.parted += [payload_of(len(each), name=f"parted_{each.name}") for each in self.seen[1:]]
