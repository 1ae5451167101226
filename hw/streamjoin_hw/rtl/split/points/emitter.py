"""From words with matches to results in order, of what each probe saw of the window."""

from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.memory import lane_bits
from streamjoin_hw.rtl.split.hits import BANKS, hit_layout, index_of, long_list
from streamjoin_hw.rtl.split.layouts import ordered_port, row_member, token_layout
from streamjoin_hw.rtl.split.outlet import Outlet
from streamjoin_hw.rtl.split.points.layouts import change_bits, pass_layout, seen_layout
from streamjoin_hw.rtl.split.subwindow import word_bits
from streamjoin_hw.rtl.streams import Component, View, payload_of, registers_of


def _begun_layout(params: DesignParams) -> data.StructLayout:
    """Layout of what is kept of a batch: its probes, and what its pass looks at more than they."""
    edge = bits_for((1 << change_bits(params)) + params.lanes)
    return data.StructLayout({"count": bits_for(params.probes), "start": edge, "end": edge})


class PointEmitter(Component):
    """Give the results of a batch probe by probe, and a star after those of each.

    All probes of a batch were compared with every slot that was there for any of them. Matches are
    kept in a list of words that is read once for each probe, and here those are dropped whose
    stored tuple had expired before the probe arrived, or was stored after it: what is a bit for
    each comparison elsewhere is a mask of lanes here, made of two numbers that a probe has.

    The list holds all words of :data:`~streamjoin_hw.rtl.split.hits.BANKS` batches, so that no pass
    waits for results.

    Parameters
    ----------
    params : DesignParams
        The design.
    side : int
        The side that is stored; probes are of the other one.

    Members
    -------
    ordered : In(1)
        Give a star after each probe's results.
    hit : In(hit_layout(params)), push : In(1)
        A word for the list.
    put : In(1), put_index : In, put_payload : In(payload_bits), seen : In(seen_layout(params))
        A probe of the batch that is collected: its payload and what it has seen.
    begun : In(1), count : In, range : In(pass_layout(params)), seen : In(seen_layout(params))
        The batch begins: how many probes it has, what its pass looks at, what it has seen in all.
    free : Out(1), finished : Out(1)
        Another batch may be collected, and begin; all results of the oldest one have been given.
    fetch : Out(1), fetch_word, fetch_lane : Out, payload : In(payload_bits)
        Read of a stored payload, there a cycle later.
    o : Out(stream.Signature(token_layout(params)))
    busy : Out(1)
        There is something to give.
    """

    ordered: Signal
    hit: View
    push: Signal
    put: Signal
    put_index: Signal
    put_payload: Signal
    seen: View
    begun: Signal
    count: Signal
    range: View
    free: Signal
    finished: Signal
    fetch: Signal
    fetch_word: Signal
    fetch_lane: Signal
    payload: Signal
    o: stream.Interface
    busy: Signal

    def __init__(self, params: DesignParams, side: int) -> None:
        self.params = params
        self.side = side
        super().__init__(
            {
                **{name: In(1) for name in (*ordered_port(params), "push", "put", "begun")},
                **{name: Out(1) for name in ("free", "finished", "fetch", "busy")},
                "hit": In(hit_layout(params)),
                "put_index": In(bits_for(params.probes - 1)),
                "put_payload": In(params.payload_bits),
                "seen": In(seen_layout(params)),
                "count": In(bits_for(params.probes)),
                "range": In(pass_layout(params)),
                "fetch_word": Out(word_bits(params)),
                "fetch_lane": Out(lane_bits(params)),
                "payload": In(params.payload_bits),
                "o": Out(stream.Signature(token_layout(params))),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the list, the walk through it, and the read of payloads."""
        m = Module()
        params, lanes = self.params, self.params.lanes
        ordered: Value = self.ordered if params.order != "none" else Const(0, 1)
        active = Signal()
        closing = Signal()
        settles = Signal()
        probe = Signal(bits_for(params.probes - 1))
        m.submodules.outlet = outlet = Outlet(params, self.side)
        wiring.connect(m, outlet.o, wiring.flipped(self.o))
        b = self._batches(m, active, probe, outlet)
        take, last_probe = b.take, b.last_probe
        edges = self._edges(m, b)

        # What is left of the matches of one probe in the word that is being looked at.
        rest = registers_of(
            data.StructLayout({"left": lanes, "word": word_bits(params), **row_member(params)}),
            "left",
            name="rest",
        )
        left = rest.left
        lowest = left & (~left + 1)[:lanes]
        step, ends, loads, nothing_left, many = (
            Signal(name=name) for name in ("step", "ends", "loads", "nothing_left", "many")
        )
        next_word, empty, list_ports = long_list(self, m, params, many)
        chosen = reduce(
            or_, (Mux(probe == p, next_word.mask[p], 0) for p in range(params.probes))
        ) & edges(next_word)
        m.d.comb += [
            many.eq(~last_probe),
            nothing_left.eq((left == 0) | (step & (left == lowest))),
            loads.eq(active & ~settles & nothing_left & ~closing & ~empty),
            ends.eq(active & (left == 0) & closing),
            list_ports["look"].eq(loads),
        ]
        with m.If(loads):
            m.d.sync += [
                left.eq(chosen),
                rest.word.eq(next_word.word),
                closing.eq(next_word.last),
            ]
            if params.order == "inner":
                m.d.sync += rest.row.eq(next_word.row)
        with m.Elif(step):
            m.d.sync += left.eq(left & ~lowest)

        # The end of a probe's results. What the next one saw is read in the cycle after.
        m.d.sync += settles.eq(take | (ends & step))
        with m.If(take):
            m.d.sync += active.eq(1)
        with m.Elif(ends & step):
            m.d.sync += closing.eq(0)
            with m.If(last_probe):
                m.d.sync += [active.eq(0), probe.eq(0)]
                m.d.comb += self.finished.eq(1)
            with m.Else():
                m.d.sync += probe.eq(probe + 1)
                m.d.comb += list_ports["rewind"].eq(1)

        order = outlet.i.p
        m.d.comb += [
            step.eq(outlet.i.ready & ((left != 0) | ends)),
            outlet.i.valid.eq((left != 0) | (ends & ordered)),
            order.lane.eq(index_of(lowest, lanes)),
            order.probe.eq(probe),
            order.word.eq(rest.word),
            outlet.payload.eq(self.payload),
            self.fetch.eq(outlet.fetch),
            self.fetch_word.eq(outlet.fetch_word),
            self.fetch_lane.eq(outlet.fetch_lane),
            self.busy.eq(active | b.ready | list_ports["held"] | self.o.valid),
        ]
        if params.order != "none":
            m.d.comb += order.star.eq(left == 0)
        if params.order == "inner":
            m.d.comb += order.row.eq(rest.row + order.lane)
        return m

    def _batches(self, m: Module, active: Signal, probe: Signal, outlet: Outlet) -> "_Batches":
        """Keep what is known of batches that were begun, and of their probes and the next one's."""
        params = self.params
        take = Signal()
        last_probe = Signal()
        pending = Signal(range(BANKS))
        collected = Signal(range(BANKS))
        first = Signal(range(BANKS))
        given = payload_of(range(BANKS))
        batch = payload_of(_begun_layout(params))
        ready = pending != 0
        m.d.comb += [
            self.free.eq(pending != BANKS - 1),
            take.eq(ready & ~active),
            last_probe.eq(probe + 1 == batch.count),
        ]
        m.d.sync += [
            pending.eq(pending + self.begun - take),
            collected.eq(collected + self.begun),
        ]
        begun: Any = Memory(shape=_begun_layout(params), depth=BANKS, init=[])
        m.submodules.begun_batches = begun
        write, read = begun.write_port(), begun.read_port(domain="comb")
        m.d.comb += [
            write.addr.eq(collected),
            write.data.count.eq(self.count),
            write.data.start.eq(self.range.first_lane),
            write.data.end.eq(self.range.pad + self.seen.there),
            write.en.eq(self.begun),
            read.addr.eq(first),
        ]
        with m.If(take):
            m.d.sync += [first.eq(first + 1), given.eq(first), batch.eq(read.data)]
        probing = self._probes(m, "probing", self.put_payload, Cat(outlet.probe, given), collected)
        m.d.comb += outlet.probing.eq(probing)
        seen = self._probes(m, "seen", self.seen, Cat(probe, given), collected)
        return _Batches(batch, ready, take, last_probe, seen)

    def _probes(self, m: Module, name: str, value: Any, where: Value, collected: Signal) -> Any:
        """Keep what is put for each probe of each batch; return that of one."""
        memory: Any = Memory(shape=value.shape(), depth=BANKS << len(self.put_index), init=[])
        m.submodules[name] = memory
        write, read = memory.write_port(), memory.read_port(domain="comb")
        m.d.comb += [
            write.addr.eq(Cat(self.put_index, collected)),
            write.data.eq(value),
            write.en.eq(self.put),
            read.addr.eq(where),
        ]
        return read.data

    def _edges(self, m: Module, b: "_Batches") -> Any:
        """Return a function from a word of the list to the lanes of it that the probe looks at.

        ``start`` slots from the pass's first word on, and ``end`` slots up to its last one's end,
        are not for the probe.
        """
        lanes = self.params.lanes
        start, end = (payload_of(len(b.batch.start), name=name) for name in ("start", "end"))
        m.d.sync += [
            start.eq(b.batch.start + b.seen.gone),
            end.eq(b.batch.end - b.seen.there),
        ]

        def rest_of(slots: Signal, words: Value) -> Value:
            """Return the lanes of a word that are left if so many slots of it and others go."""
            gone = slots - words * lanes
            outside = ((Const(1, lanes + 1) << gone[: bits_for(lanes)]) - 1)[:lanes]
            return ~Mux(gone <= 0, 0, Mux(gone >= lanes, ~Const(0, lanes), outside))[:lanes]

        def looked_at(word: Any) -> Value:
            upper = rest_of(end, word.behind)
            return rest_of(start, word.before) & Cat(*reversed([upper[k] for k in range(lanes)]))

        return looked_at


class _Batches(NamedTuple):
    """The batch whose results are given, whether another is ready, that it is taken; whether the
    last probe of it is served; what the probe that is served saw."""

    batch: Any
    ready: Value
    take: Signal
    last_probe: Signal
    seen: Any
