"""A core of SplitJoin for bands with one pool of comparators for both halves.

A band asks where a tuple of R lies in an interval that a tuple of S has, or, which is the same,
where the S tuple lies in an interval that the R tuple has. Here the arriving tuple has the
interval, whichever side it is of, and the stored one is a point. So the keys of both sub-windows
lie in the same memories, a code a term, and all comparators serve whichever half has a batch, as in
:class:`~streamjoin_hw.rtl.split.shared_core.SharedCore`.

**Why no pair is missed or met twice.** A pair's earlier tuple is stored in one core, its home, and
only there; its later tuple is a probe in every core's half of the other side and is in exactly one
batch. A batch's pass begins when its probes are collected, and looks at every slot that was live
when the first of them arrived or was written since: what was live for any of them. Of its probe's
matches the emitter drops those in the first slots, as many as had expired when the probe arrived,
and in the last ones, as many as were stored after it. No slot is written that a pass looks at,
or a result still to be given, but in a place where it is dropped: since the first probe of the
oldest unfinished batch at most :func:`~streamjoin_hw.rtl.split.layouts.max_recent` tuples have
expired, and a ring has so many slots to spare
(:func:`~streamjoin_hw.rtl.split.layouts.ring_words`).

**Why no half waits for the other for ever** is as in
:mod:`~streamjoin_hw.rtl.split.shared_core`.
"""

from functools import reduce
from operator import and_
from typing import Any

from amaranth.hdl import Assert, Cat, Const, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.utils import bits_for

from streamjoin_common.contract import SIDE_R, SIDE_S, DesignParams
from streamjoin_hw.rtl.memory import memory_of
from streamjoin_hw.rtl.split.core import SplitCore
from streamjoin_hw.rtl.split.hits import hit_layout
from streamjoin_hw.rtl.split.layouts import (
    edge_words,
    ordered_port,
    ring_words,
    row_bits,
)
from streamjoin_hw.rtl.split.points.emitter import PointEmitter
from streamjoin_hw.rtl.split.points.gatherer import PointGatherer
from streamjoin_hw.rtl.split.points.layouts import (
    pass_layout,
    point_key_layout,
    points_match,
    probe_key_layout,
)
from streamjoin_hw.rtl.split.points.ring import PointRing
from streamjoin_hw.rtl.split.subwindow import word_bits
from streamjoin_hw.rtl.streams import payload_of, probe_layout, signal_of


class PointCore(SplitCore):
    """Both halves of a core: what one stores the other one compares, one batch at a time.

    A batch of up to ``probes`` tuples costs a cycle for each word that holds a tuple, at least
    one. Members are those of :class:`~streamjoin_hw.rtl.split.core.SplitCore`; ``hold``: a half
    waits for its results to be taken, and nothing is compared.
    """

    def elaborate(self, _platform: object) -> Module:
        """Put rings and lists around the pool."""
        m = Module()
        params = self.params
        m.submodules.gatherer = gatherer = PointGatherer(params)
        rings, emitters = [], []
        for name, side in (("r", SIDE_R), ("s", SIDE_S)):
            m.submodules[f"{name}_ring"] = ring = PointRing(params)
            m.submodules[f"{name}_emitter"] = emitter = PointEmitter(params, side)
            rings.append(ring)
            emitters.append(emitter)
        # The left half stores S and compares R.
        wiring.connect(m, wiring.flipped(self.left), gatherer.i[1])
        wiring.connect(m, wiring.flipped(self.right), gatherer.i[0])
        wiring.connect(m, emitters[SIDE_S].o, wiring.flipped(self.r_results))
        wiring.connect(m, emitters[SIDE_R].o, wiring.flipped(self.s_results))
        w = _Pass(params)
        m.d.comb += [
            w.begin.eq(gatherer.waiting & (w.left <= 1)),
            gatherer.index.eq(self.index),
            gatherer.clear.eq(self.clear),
            gatherer.idle.eq(w.left == 0),
            gatherer.begin.eq(w.begin),
        ]
        for half, (ring, emitter) in enumerate(zip(rings, emitters, strict=True)):
            body = probe_layout(params)(gatherer.i[half].p.body)
            begins = w.begin & (gatherer.side == half)
            m.d.comb += [
                gatherer.free[half].eq(emitter.free),
                gatherer.finished[half].eq(emitter.finished),
                ring.clear.eq(self.clear),
                ring.store.eq(gatherer.stores[half]),
                ring.expire.eq(gatherer.expires[half]),
                ring.payload.eq(gatherer.payload[half]),
                ring.keeps.eq(gatherer.keeps[half]),
                ring.fetch.eq(emitter.fetch),
                ring.fetch_word.eq(emitter.fetch_word),
                ring.fetch_lane.eq(emitter.fetch_lane),
                emitter.payload.eq(ring.payload_out),
                *(getattr(emitter, name).eq(getattr(self, name)) for name in ordered_port(params)),
                emitter.put.eq(gatherer.put[half]),
                emitter.put_index.eq(gatherer.put_index),
                emitter.put_payload.eq(body.payload),
                emitter.seen.eq(gatherer.seen),
                emitter.begun.eq(begins),
                emitter.count.eq(gatherer.count),
                emitter.range.eq(ring.range),
            ]
            hasty = Signal(name=f"hasty{half}")
            m.d.sync += hasty.eq(begins & ~emitter.free)
            m.d.comb += Assert(~hasty, "a batch began that its emitter has no room for")
        self._walk(m, w, gatherer, rings)
        slots = self._keys(m, w, gatherer, rings)
        self._compare(m, w, slots, emitters)
        emitting = Cat(emitter.busy for emitter in emitters).any()
        working = gatherer.busy | (w.left != 0) | w.compares | emitting
        full = Cat(~emitter.free for emitter in emitters).any()
        m.d.sync += [self.busy.eq(working), self.hold.eq(full & (w.left == 0))]
        return m

    def _walk(self, m: Module, w: "_Pass", gatherer: PointGatherer, rings: list[Any]) -> None:
        """Take a batch over and read its words."""
        params = self.params
        given = signal_of(pass_layout(params))
        ranges = [rings[side].range.as_value() for side in (SIDE_R, SIDE_S)]
        m.d.comb += given.eq(Mux(gatherer.side == SIDE_S, ranges[SIDE_S], ranges[SIDE_R]))
        words = Mux(self.masked, 0, given.words)
        edge = edge_words(params)
        with m.If(w.begin):
            m.d.sync += [
                w.filled.eq(words != 0),
                w.side.eq(gatherer.side),
                w.first_lane.eq(given.first_lane),
                w.pad.eq(given.pad),
                w.word.eq(given.first_word),
                w.before.eq(0),
                # A pass of no word still ends for its probes.
                w.left.eq(Mux(words == 0, 1, words)),
            ]
            if params.order == "inner":
                m.d.sync += w.row.eq(given.row)
        with m.Elif(w.left != 0):
            m.d.sync += [
                w.left.eq(w.left - 1),
                w.before.eq(Mux(w.before == edge, edge, w.before + 1)),
                w.word.eq(Mux(w.word == ring_words(params) - 1, 0, w.word + 1)),
            ]
            if params.order == "inner":
                m.d.sync += w.row.eq(w.row + params.lanes)
        # The second cycle: probes are still there.
        m.d.sync += w.loads.eq(w.begin)
        with m.If(w.begin):
            m.d.sync += w.wanted.eq(Cat(*(gatherer.count > p for p in range(params.probes))))
        with m.If(w.loads):
            m.d.sync += [w.probes.eq(gatherer.probes), w.wants.eq(w.wanted)]

    def _keys(self, m: Module, w: "_Pass", gatherer: PointGatherer, rings: list[Any]) -> list[Any]:
        """Build the memories of both sides' codes, one a lane; returns the word read."""
        params = self.params
        layout = point_key_layout(params)
        is_s = gatherer.side == SIDE_S
        word = Mux(is_s, rings[SIDE_S].head_word, rings[SIDE_R].head_word)
        at = Mux(is_s, rings[SIDE_S].head_lane, rings[SIDE_R].head_lane)
        stores = gatherer.stores.any()
        slots = []
        for lane in range(params.lanes):
            depth = 2 << word_bits(params)
            memory: Any = memory_of(params.window_memory, layout, depth, is_free=True)
            m.submodules[f"lane{lane}"] = memory
            write, read = memory.write_port(), memory.read_port()
            m.d.comb += [
                write.addr.eq(Cat(word[: word_bits(params)], is_s)),
                write.data.eq(gatherer.enter),
                write.en.eq(stores & (at == lane)),
                read.addr.eq(Cat(w.word, w.side)),
            ]
            slots.append(read.data)
        return slots

    def _compare(
        self, m: Module, w: "_Pass", slots: list[Any], emitters: list[PointEmitter]
    ) -> None:
        """Compare the word that was read with all probes, and hand over what matches.

        Whether a slot counts for a probe is left to the emitter; that it holds a tuple for any of
        them keeps words without a match out of the list.
        """
        params, lanes = self.params, self.params.lanes
        reads, last = w.left != 0, w.left == 1
        from_first = ~((Const(1, lanes + 1) << w.first_lane) - 1)[:lanes]
        to_last = (~Const(0, lanes) >> w.pad)[:lanes]
        live = Mux(w.before == 0, from_first, ~Const(0, lanes))
        live &= Mux(last, to_last, ~Const(0, lanes))
        hit = w.hit
        hit_side = payload_of(1)
        edge = edge_words(params)
        m.d.sync += [
            w.live.eq(Mux(reads & w.filled, live, 0)),
            w.scanned.eq(reads),
            w.scanned_last.eq(last),
            w.scanned_word.eq(w.word),
            w.scanned_side.eq(w.side),
            w.scanned_before.eq(w.before),
            w.scanned_behind.eq(Mux(w.left > edge, edge, w.left - 1)),
            hit.word.eq(w.scanned_word),
            hit.last.eq(w.scanned_last),
            hit.before.eq(w.scanned_before),
            hit.behind.eq(w.scanned_behind),
            hit_side.eq(w.scanned_side),
            w.compared.eq(w.scanned),
        ]
        for p in range(params.probes):
            for lane in range(lanes):
                conditions = points_match(params, slots[lane], w.probes[p])
                counts = w.live[lane] & w.wants[p]
                m.d.sync += hit.mask[p][lane].eq(reduce(and_, conditions, counts))
        if params.order == "inner":
            m.d.sync += [w.scanned_row.eq(w.row), hit.row.eq(w.scanned_row)]
        push = w.compared & (hit.mask.as_value().any() | hit.last)
        for half, emitter in enumerate(emitters):
            m.d.comb += [emitter.hit.eq(hit), emitter.push.eq(push & (hit_side == half))]
        m.d.comb += w.compares.eq(w.scanned | w.compared)


class _Pass:
    """Registers of the running pass."""

    def __init__(self, params: DesignParams) -> None:
        self.begin = Signal()
        self.loads = Signal()
        self.probes = payload_of(data.ArrayLayout(probe_key_layout(params), params.probes))
        self.wanted = payload_of(params.probes)
        self.wants = payload_of(params.probes)
        # The words: how many are to be read, the next one, how many were before.
        ends = pass_layout(params)
        self.first_lane, self.pad = (
            payload_of(ends[name].width, name=name) for name in ("first_lane", "pad")
        )
        self.filled = payload_of(1)
        self.side = Signal()
        self.left = Signal(bits_for(ring_words(params)))
        self.word = payload_of(word_bits(params))
        edge_bits = bits_for(edge_words(params))
        self.before = payload_of(edge_bits)
        # Read a cycle ago.
        self.live = payload_of(params.lanes)
        self.scanned = Signal()
        self.scanned_last = payload_of(1)
        self.scanned_word = payload_of(word_bits(params))
        self.scanned_side = payload_of(1)
        self.scanned_before = payload_of(edge_bits)
        self.scanned_behind = payload_of(edge_bits)
        # Compared a cycle ago.
        self.hit = payload_of(hit_layout(params))
        self.compared = Signal()
        self.compares = Signal()
        if params.order == "inner":
            self.row = payload_of(row_bits(params))
            self.scanned_row = payload_of(row_bits(params))
