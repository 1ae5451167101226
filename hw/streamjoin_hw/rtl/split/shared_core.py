"""A core of SplitJoin with one pool of comparators for both halves.

Half the comparators of a core with two halves stand still where the tuples of one stream are the
more frequent ones. Equality is the same whichever of the two tuples is stored. So here the keys of
both sub-windows lie in the same memories, R's and S's in different words, and a pass reads the
words of one of them: all comparators serve whichever half has a batch, and nothing is chosen
between in front of them. Rings, lists of matches and the ways to the results stay apart.

**Why no pair is missed or met twice** is as in :mod:`~streamjoin_hw.rtl.split.half`, but for the
slots that are written. A change of a window before a batch's first probe is none of the batch's,
and is made at once, while older batches of the same ring are compared or given. These read the
slots that were live when they began. Since the oldest of them began at most ``MAX_RECENT`` tuples
have expired (:mod:`~streamjoin_hw.rtl.split.gatherer`), and a ring has a slot more to spare
(:func:`~streamjoin_hw.rtl.split.layouts.ring_words`). So none of theirs has been written.

**Why no half waits for the other for ever.** A pass never waits: its list has room for as many as
are begun (:func:`~streamjoin_hw.rtl.split.hits.list_words`). Probes are collected only for a half
whose emitter takes another batch, so that their pass begins when the pass before it ends. Of the
tuples that have not yet been served in all cores look at the oldest. Its batch is the oldest one of
its half: it is given, as it is due, or it waits in the list for nothing but that, or it is
collected and will be compared, or it arrives and will be collected once the other half's batch has
begun. Where stars are grouped look at the oldest group instead, and at a half that has not given
its star: what it gives is taken, the last arrival of the group, for which it may have to begin a
batch with a blank probe, is in its queue as well, and a batch of its own is always given.
"""

from typing import Any

from amaranth.hdl import Assert, Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.utils import bits_for

from streamjoin_common.contract import SIDE_R, SIDE_S, DesignParams
from streamjoin_hw.rtl.memory import memory_of
from streamjoin_hw.rtl.predicates import matches
from streamjoin_hw.rtl.split.core import SplitCore
from streamjoin_hw.rtl.split.emitter import Emitter
from streamjoin_hw.rtl.split.gatherer import Gatherer, keys_layout
from streamjoin_hw.rtl.split.hits import hit_layout
from streamjoin_hw.rtl.split.layouts import (
    body_layout,
    key_layout,
    ordered_port,
    ring_words,
    row_bits,
)
from streamjoin_hw.rtl.split.subwindow import SubWindow, range_layout, word_bits
from streamjoin_hw.rtl.streams import payload_of, signal_of


class SharedCore(SplitCore):
    """Both halves of a core: what one stores the other one compares, one batch at a time.

    A batch of up to ``probes`` tuples costs a cycle for each word that holds a tuple, at least
    one. Members are those of :class:`~streamjoin_hw.rtl.split.core.SplitCore`; ``hold``: a half
    waits for its results to be taken, and nothing is compared.
    """

    def elaborate(self, _platform: object) -> Module:
        """Put rings and lists around the pool."""
        m = Module()
        params = self.params
        m.submodules.gatherer = gatherer = Gatherer(params)
        rings, emitters = [], []
        for name, side in (("r", SIDE_R), ("s", SIDE_S)):
            m.submodules[f"{name}_ring"] = ring = SubWindow(params, side)
            m.submodules[f"{name}_emitter"] = emitter = Emitter(params, side)
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
            changes = gatherer.changes[half]
            body = gatherer.i[half].p.body[: body_layout(params, half).size]
            begins = w.begin & (gatherer.side == half)
            m.d.comb += [
                gatherer.free[half].eq(emitter.free),
                gatherer.finished[half].eq(emitter.finished),
                ring.clear.eq(self.clear),
                ring.begin.eq(changes),
                ring.store.eq(gatherer.store),
                ring.expire.eq(gatherer.expire),
                ring.enter.payload.eq(gatherer.payload[half]),
                ring.fetch.eq(emitter.fetch),
                ring.fetch_word.eq(emitter.fetch_word),
                ring.fetch_lane.eq(emitter.fetch_lane),
                emitter.payload.eq(ring.payload),
                *(getattr(emitter, name).eq(getattr(self, name)) for name in ordered_port(params)),
                emitter.begun.eq(begins),
                emitter.put.eq(gatherer.put[half]),
                emitter.put_index.eq(gatherer.put_index),
                emitter.put_payload.eq(body_layout(params, half)(body).payload),
                emitter.count.eq(gatherer.batch.count),
            ]
            if params.has_groups:
                m.d.comb += emitter.ends.eq(gatherer.batch.ends)
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

    def _walk(self, m: Module, w: "_Pass", gatherer: Gatherer, rings: list[Any]) -> None:
        """Take a batch over and read its words."""
        with_r, with_s = rings[SIDE_R].range, rings[SIDE_S].range
        given = signal_of(range_layout(self.params))
        m.d.comb += given.eq(Mux(gatherer.side == SIDE_S, with_s.as_value(), with_r.as_value()))
        none = self.masked
        if self.params.has_groups:
            # A blank probe alone has nothing to look at.
            none = none | (gatherer.batch.blank & (gatherer.batch.count == 1))
        words = Mux(none, 0, given.words)
        with m.If(w.begin):
            m.d.sync += [
                w.range.eq(given),
                w.filled.eq(words != 0),
                w.side.eq(gatherer.side),
                w.count.eq(gatherer.batch.count),
                w.word.eq(given.first_word),
                w.first.eq(1),
                # A pass of no word still ends for its probes.
                w.left.eq(Mux(words == 0, 1, words)),
            ]
            if self.params.order == "inner":
                m.d.sync += w.row.eq(given.row)
        with m.Elif(w.left != 0):
            m.d.sync += [
                w.left.eq(w.left - 1),
                w.first.eq(0),
                w.word.eq(Mux(w.word == ring_words(self.params) - 1, 0, w.word + 1)),
            ]
            if self.params.order == "inner":
                m.d.sync += w.row.eq(w.row + self.params.lanes)
        # The second cycle: keys and bits are still there.
        m.d.sync += w.loads.eq(w.begin)
        with m.If(w.loads):
            m.d.sync += [w.batch.eq(gatherer.batch), w.batch.count.eq(w.count)]

    def _keys(self, m: Module, w: "_Pass", gatherer: Gatherer, rings: list[Any]) -> list[Any]:
        """Build the memories of both sides' keys, one a lane; returns the word read."""
        params = self.params
        key = key_layout(params, SIDE_R)
        is_s = gatherer.side == SIDE_S
        word = Mux(is_s, rings[SIDE_S].head_word, rings[SIDE_R].head_word)
        at = Mux(is_s, rings[SIDE_S].head_lane, rings[SIDE_R].head_lane)
        stores = rings[SIDE_S].stores | rings[SIDE_R].stores
        slots = []
        for lane in range(params.lanes):
            memory: Any = memory_of(params.window_memory, key, 2 << word_bits(params))
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

    def _compare(self, m: Module, w: "_Pass", slots: list[Any], emitters: list[Emitter]) -> None:
        """Compare the word that was read with all probes, and hand over what matches."""
        params, lanes = self.params, self.params.lanes
        reads, last = w.left != 0, w.left == 1
        from_first = ~((Const(1, lanes + 1) << w.range.first_lane) - 1)[:lanes]
        below_end = ((Const(1, lanes + 1) << w.range.end_lane) - 1)[:lanes]
        live = Mux(w.first, from_first, ~Const(0, lanes))
        live &= Mux(last & (w.range.end_lane != 0), below_end, ~Const(0, lanes))
        oldest = Cat(*(w.range.first_lane == lane for lane in range(lanes)))
        newest = Cat(*(w.range.end_lane == (lane + 1) % lanes for lane in range(lanes)))
        hit = w.hit
        hit_side = payload_of(1)
        m.d.sync += [
            w.live.eq(Mux(reads & w.filled, live, 0)),
            w.old.eq(Mux(w.first & w.range.old, oldest, 0)),
            w.new.eq(Mux(last & w.range.new, newest, 0)),
            w.scanned.eq(reads),
            w.scanned_last.eq(last),
            w.scanned_word.eq(w.word),
            w.scanned_side.eq(w.side),
            hit.word.eq(w.scanned_word),
            hit.last.eq(w.scanned_last),
            hit_side.eq(w.scanned_side),
            w.compared.eq(w.scanned),
        ]
        for p in range(params.probes):
            wanted = w.batch.count > p
            if params.has_groups and p == 0:
                wanted &= ~w.batch.blank
            for lane in range(lanes):
                counts = (
                    wanted
                    & w.live[lane]
                    & ~(w.old[lane] & w.batch.gone[p])
                    & ~(w.new[lane] & ~w.batch.there[p])
                )
                # Either tuple may be the stored one.
                is_equal = matches(params, slots[lane], w.batch.probes[p])
                m.d.sync += hit.mask[p][lane].eq(counts & is_equal)
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
        self.batch = payload_of(keys_layout(params))
        self.count = payload_of(bits_for(params.probes))
        # The words: how many are to be read, the next one, whether it is the first.
        self.range = payload_of(range_layout(params))
        self.filled = Signal()
        self.side = Signal()
        self.left = Signal(bits_for(ring_words(params)))
        self.word = payload_of(word_bits(params))
        self.first = payload_of(1)
        # Read a cycle ago.
        self.live, self.old, self.new = (
            payload_of(params.lanes, name=name) for name in ("live", "old", "new")
        )
        self.scanned = Signal()
        self.scanned_last = payload_of(1)
        self.scanned_word = payload_of(word_bits(params))
        self.scanned_side = payload_of(1)
        # Compared a cycle ago.
        self.hit = payload_of(hit_layout(params))
        self.compared = Signal()
        self.compares = Signal()
        if params.order == "inner":
            self.row = payload_of(row_bits(params))
            self.scanned_row = payload_of(row_bits(params))
