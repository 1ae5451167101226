"""What a core of points is to do next: a batch of one half, and changes of both windows."""

from typing import Any

from amaranth.hdl import Module, Mux, Signal, signed
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from streamjoin_common.contract import SIDE_R, SIDE_S, DesignParams
from streamjoin_hw.rtl.split.gatherer import BALANCE_BITS, Expired
from streamjoin_hw.rtl.split.layouts import max_changes, max_recent, routed_layout
from streamjoin_hw.rtl.split.points.layouts import point_key_layout, probe_key_layout, seen_layout
from streamjoin_hw.rtl.streams import Component, View, payload_of, probe_layout, signal_of
from streamjoin_hw.rtl.turn import Turn

_HALVES = (SIDE_R, SIDE_S)


class PointGatherer(Component):
    """Collect a batch of one half while the last batch, of either, is compared.

    As :class:`~streamjoin_hw.rtl.split.gatherer.Gatherer`, which chooses the half in the same way;
    but a window changes at once, in the cycle after its tuple, whether probes are collected or not.
    So a batch may see up to :func:`~streamjoin_hw.rtl.split.layouts.max_changes` tuples stored and
    as many expire. With each probe goes how many it has seen (``put_seen``).

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    index : In(bits_for(cores - 1))
        The core's number, constant.
    clear : In(1)
        Count anew; only beside a reset, and once before the first tuple.
    i : In(stream.Signature(routed_layout(params))).array(2)
        All tuples in arrival order, for the half that stores R, for the one that stores S. A
        stream's ``ready`` depends on the payloads of both.
    idle : In(1)
        Nothing is compared.
    free : In(2)
        A bit for each half: its emitter has room for a batch. Stays until ``begin``.
    finished : In(2)
        A bit for each half: all results of its oldest batch have been given.
    begin : In(1)
        The batch is taken over; a new one begins. Keys stay a cycle longer.
    waiting : Out(1)
        There are probes, and no window changes.
    side : Out(1)
        The half of the batch, or of the window that changes.
    keeps : Out(2)
        A bit for each half: the batch is its, and has probes.
    stores, expires : Out(2)
        A bit for each half: a tuple is stored, one expires; with it ``enter`` :
        Out(point_key_layout), and ``payload`` : Out(payload_bits).array(2).
    count : Out, probes : Out(ArrayLayout(probe_key_layout, probes))
        The batch.
    put : Out(2), put_index : Out, put_seen : Out(seen_layout(params))
        A bit for each half: a probe is collected in this cycle, that of its stream.
    seen : Out(seen_layout(params))
        What the batch has seen so far.
    busy : Out(1)
        There is something to do.
    """

    index: Signal
    clear: Signal
    i: Any
    idle: Signal
    free: Signal
    finished: Signal
    begin: Signal
    waiting: Signal
    side: Signal
    keeps: Signal
    stores: Signal
    expires: Signal
    enter: View
    payload: Any
    count: Signal
    probes: View
    put: Signal
    put_index: Signal
    seen: View
    busy: Signal

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        super().__init__(
            {
                "index": In(bits_for(params.cores - 1)),
                **{name: In(1) for name in ("clear", "idle", "begin")},
                "i": In(stream.Signature(routed_layout(params))).array(2),
                **{name: In(2) for name in ("free", "finished")},
                **{name: Out(2) for name in ("put", "keeps", "stores", "expires")},
                **{name: Out(1) for name in ("waiting", "side", "busy")},
                "enter": Out(point_key_layout(params)),
                "payload": Out(params.payload_bits).array(2),
                "count": Out(bits_for(params.probes)),
                "probes": Out(data.ArrayLayout(probe_key_layout(params), params.probes)),
                "put_index": Out(bits_for(params.probes - 1)),
                "seen": Out(seen_layout(params)),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the choice of a half, the turns, and the registers of a batch."""
        m = Module()
        params, bits = self.params, _Bits()
        streams = self.i
        prefer = self._balance(m, bits)
        self._halves(m, bits, prefer)
        count = Signal(bits_for(params.probes))
        kept = Signal()
        at = Signal()
        empty = Signal()
        store = Signal()
        expire = Signal()
        changing = Signal()
        seen = payload_of(seen_layout(params))
        most = max_changes(params)
        able = bits.able.bit_select(at, 1)
        m.d.comb += [
            changing.eq(store | expire),
            empty.eq(count == 0),
            at.eq(Mux(empty, prefer ^ ~bits.able.bit_select(prefer, 1)[0], kept)),
            self.side.eq(kept),
            self.waiting.eq(~empty & ~changing),
            self.busy.eq(~empty | changing),
            self.count.eq(count),
            self.put_index.eq(count),
            self.seen.eq(seen),
        ]
        is_probe, stays, fits, accepts = (
            Signal(name=name) for name in ("is_probe", "stays", "fits", "accepts")
        )
        stores, expires = bits.stores.bit_select(at, 1), bits.expires.bit_select(at, 1)
        m.d.comb += [
            is_probe.eq(bits.probes.bit_select(at, 1)),
            stays.eq(
                ~(stores & (seen.there == most))
                & ~(expires & ((seen.gone == most) | bits.spent.bit_select(at, 1)))
            ),
            fits.eq(Mux(empty, able, Mux(is_probe, count != params.probes, stays))),
        ]
        for half, each in enumerate(streams):
            m.d.comb += [
                each.ready.eq((at == half) & fits & ~self.begin & ~changing),
                bits.arrives[half].eq(each.valid & each.ready),
                self.put[half].eq(bits.arrives[half] & is_probe),
                self.keeps[half].eq(~empty & (kept == half)),
                self.stores[half].eq(store & (kept == half)),
                self.expires[half].eq(expire & (kept == half)),
            ]
        m.d.comb += accepts.eq(bits.arrives.any())
        arrived = self._bodies(m, bits, at)
        enter = payload_of(self.enter.shape())
        probes = payload_of(self.probes.shape())
        m.d.comb += [self.enter.eq(enter), self.probes.eq(probes)]
        m.d.sync += [
            store.eq(accepts & ~is_probe & stores),
            expire.eq(accepts & ~is_probe & expires),
        ]
        with m.If(accepts):
            m.d.sync += kept.eq(at)
            with m.If(is_probe):
                m.d.sync += count.eq(count + 1)
                for name in probe_key_layout(params).members:
                    m.d.sync += probes[count][name].eq(arrived[name])
            with m.Else():
                for name in point_key_layout(params).members:
                    # In an interval's place is its lower end.
                    at_end = name if name in arrived.shape().members else name.replace("code", "lo")
                    m.d.sync += enter[name].eq(arrived[at_end])
        with m.If(empty | self.begin):
            m.d.sync += [seen.gone.eq(0), seen.there.eq(0)]
        with m.Else():
            m.d.sync += [seen.gone.eq(seen.gone + expire), seen.there.eq(seen.there + store)]
        with m.If(self.begin):
            m.d.sync += count.eq(0)
        return m

    def _balance(self, m: Module, bits: "_Bits") -> Signal:
        """Return the half that was given fewer tuples; where it is even, one that has a probe."""
        # How many more the half that stores R was given; it is as far behind as queues hold.
        ahead = Signal(signed(BALANCE_BITS))
        prefer = Signal()
        m.d.sync += ahead.eq(ahead + bits.arrives[SIDE_R] - bits.arrives[SIDE_S])
        with m.If(ahead == 0):
            m.d.comb += prefer.eq(Mux(self.i[0].valid & bits.probes[SIDE_R], SIDE_R, SIDE_S))
        with m.Else():
            m.d.comb += prefer.eq(Mux(ahead < 0, SIDE_R, SIDE_S))
        return prefer

    def _halves(self, m: Module, bits: "_Bits", prefer: Signal) -> None:
        """Say of each half what it is offered, and whether it can begin a batch with that."""
        for half, each in enumerate(self.i):
            turns = []
            for name, event in (("storing", 1), ("expiring", each.p.full)):
                m.submodules[f"{name}{half}"] = turn = Turn(self.params.cores)
                m.d.comb += [
                    turn.index.eq(self.index),
                    turn.clear.eq(self.clear),
                    turn.event.eq(bits.arrives[half] & ~bits.probes[half] & event),
                ]
                turns.append(turn.mine & event)
            m.submodules[f"expired{half}"] = expired = Expired(max_recent(self.params))
            m.d.comb += [
                expired.clear.eq(self.clear),
                # What a batch reads is settled by its first probe.
                expired.begin.eq(self.put[half] & (self.put_index == 0)),
                expired.expire.eq(self.expires[half]),
                expired.finished.eq(self.finished[half]),
            ]
            may_open = self.free[half] & ((prefer == half) | self.idle)
            m.d.comb += [
                bits.probes[half].eq(each.p.side != half),
                bits.stores[half].eq(turns[0]),
                bits.expires[half].eq(turns[1]),
                bits.spent[half].eq(expired.spent),
                bits.able[half].eq(
                    each.valid
                    & Mux(bits.probes[half], may_open, ~(bits.expires[half] & bits.spent[half]))
                ),
            ]

    def _bodies(self, m: Module, bits: "_Bits", at: Signal) -> Any:
        """Choose the key that arrives; payloads have ways of their own."""
        layout = probe_layout(self.params)
        bodies = [layout(each.p.body) for each in self.i]
        key = signal_of(probe_key_layout(self.params))
        for name in key.shape().members:
            m.d.comb += key[name].eq(Mux(at, bodies[1][name], bodies[0][name]))
        for half in _HALVES:
            payload = payload_of(self.params.payload_bits, name=f"entering{half}")
            with m.If(bits.arrives[half]):
                m.d.sync += payload.eq(bodies[half].payload)
            m.d.comb += self.payload[half].eq(payload)
        return key


class _Bits:
    """A bit for each half, of the tuple that it is offered."""

    def __init__(self) -> None:
        self.arrives, self.probes, self.stores, self.expires = (
            Signal(2, name=name) for name in ("arrives", "probes", "stores", "expires")
        )
        self.spent = Signal(2)
        self.able = Signal(2)
