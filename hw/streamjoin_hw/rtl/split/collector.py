"""What a half of a core is to do next: probes side by side, and what changes between them."""

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.split.layouts import body_layout, is_single, routed_layout
from streamjoin_hw.rtl.split.subwindow import SubWindow, left_bits, range_layout
from streamjoin_hw.rtl.streams import Component, View, payload_of, registers_of, signal_of
from streamjoin_hw.rtl.turn import Turn


def batch_layout(params: DesignParams, side: int) -> data.StructLayout:
    """Layout of a batch of probes against the stored ``side``.

    ``count`` probes, in arrival order; for each of them whether the tuple that expires is already
    ``gone`` and whether the one that is stored is already ``there``. See also
    :func:`group_members`.
    """
    probe = body_layout(params, 1 - side)
    return data.StructLayout(
        {
            "count": bits_for(params.probes),
            "probes": data.ArrayLayout(probe, params.probes),
            "gone": params.probes,
            "there": params.probes,
            **group_members(params),
        }
    )


def group_members(params: DesignParams) -> dict[str, int]:
    """Members of a batch where stars are grouped.

    ``ends``, a bit for each probe that a star follows; ``blank``: the first probe is none and
    matches nothing, a star alone is owed for probes of batches before.
    """
    return {"ends": params.probes, "blank": 1} if params.has_groups else {}


def pass_plan(m: Module, ring: SubWindow, collector: Any, masked: Value) -> Any:
    """Return what a pass for what a collector has is to look at if it begins now."""
    params, batch = ring.params, collector.batch
    layout = data.StructLayout(
        {
            "range": range_layout(params),
            **dict.fromkeys(("probing", "filled", "none", "last", "second_last"), 1),
            "left": left_bits(params),
        }
    )
    plan = signal_of(layout)
    probing = batch.count != 0
    none = masked
    if params.has_groups:
        # A blank probe alone has nothing to look at.
        none = none | (batch.blank & (batch.count == 1))
    # Where a batch is one probe, a pass that is to find nothing walks through as many words.
    skips = Const(0, 1) if is_single(params) else none
    words, is_none, is_few = (
        Mux(skips, 0, ring.range.words),
        ring.few[0] | skips,
        ring.few[1] | skips,
    )
    looks_back = collector.expire if params.timestamp_bits else Const(0, 1)
    m.d.comb += [
        plan.range.eq(ring.range),
        plan.range.words.eq(words),
        plan.probing.eq(probing),
        plan.filled.eq(probing & ~is_none & ~none if is_single(params) else probing & ~is_none),
        # A pass of no word still ends for its probes; one without probes reads the tuple
        # that expires, if anybody wants to know its time.
        plan.left.eq(ring.rest if is_single(params) else Mux(probing, words | is_none, looks_back)),
        plan.none.eq(~probing & ~looks_back),
        plan.last.eq(Mux(probing, is_few, looks_back)),
        plan.second_last.eq(ring.few[2]),
    ]
    return plan


class Collector(Component):
    """Collect arriving tuples while the last batch is compared.

    A tuple of the other side is a probe; one of the stored side is stored, or makes the oldest one
    expire, when it is the core's turn, by the core's own count. A batch holds up to ``probes``
    probes, at most one tuple to store and at most one that expires; what would not fit waits at
    the input. A bit for each probe says whether it is before or after a change of the window.

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
        Count anew; only beside a reset, and once before the first tuple.
    i : In(stream.Signature(routed_layout(params)))
        Tuples of both sides in arrival order. ``ready`` depends on the payload.
    begin : In(1)
        The batch is taken over; a new one begins. The probes themselves stay a cycle longer.
    waiting : Out(1)
        There is something to do.
    batch : Out(batch_layout(params, side))
    store, expire : Out(1), enter : Out(body_layout(params, side))
    now : Out(timestamp_bits), if there are timestamps
        The time of the tuple that makes the oldest one expire.
    """

    index: Signal
    clear: Signal
    i: stream.Interface
    begin: Signal
    waiting: Signal
    batch: View
    store: Signal
    expire: Signal
    enter: View
    now: Signal

    def __init__(self, params: DesignParams, side: int) -> None:
        self.params = params
        self.side = side
        super().__init__(
            {
                "index": In(bits_for(params.cores - 1)),
                "clear": In(1),
                "i": In(stream.Signature(routed_layout(params))),
                "begin": In(1),
                "waiting": Out(1),
                "batch": Out(batch_layout(params, side)),
                "store": Out(1),
                "expire": Out(1),
                "enter": Out(body_layout(params, side)),
                **({"now": Out(params.timestamp_bits)} if params.timestamp_bits else {}),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the turns and the registers of a batch."""
        m = Module()
        params = self.params
        batch = registers_of(self.batch.shape(), "count", name="batch")
        enter = payload_of(self.enter.shape())
        m.d.comb += [self.batch.eq(batch), self.enter.eq(enter)]
        now = payload_of(params.timestamp_bits)
        if params.timestamp_bits:
            m.d.comb += self.now.eq(now)
        probe_layout = body_layout(params, 1 - self.side)
        arrives = Signal()
        is_probe = Signal()
        turns = {}
        for name, event in (("storing", 1), ("expiring", self.i.p.full)):
            m.submodules[name] = turn = Turn(params.cores)
            m.d.comb += [
                turn.index.eq(self.index),
                turn.clear.eq(self.clear),
                turn.event.eq(arrives & ~is_probe & event),
            ]
            turns[name] = turn.mine & event
        stores, expires = turns["storing"], turns["expiring"]

        with m.If(is_probe):
            m.d.comb += self.i.ready.eq((batch.count != params.probes) & ~self.begin)
        with m.Else():
            fits = (~stores | ~self.store) & (~expires | ~self.expire)
            m.d.comb += self.i.ready.eq(fits & ~self.begin)
        m.d.comb += [
            is_probe.eq(self.i.p.side != self.side),
            arrives.eq(self.i.valid & self.i.ready),
            self.waiting.eq((batch.count != 0) | self.store | self.expire),
        ]

        # Whatever is offered is copied to the first free place; it counts once `count`, `store` or
        # `expire` says so. So what decides whether a tuple arrives reaches few registers.
        with m.If(batch.count != params.probes):
            m.d.sync += [
                batch.probes[batch.count].eq(self.i.p.body[: probe_layout.size]),
                batch.gone.bit_select(batch.count, 1).eq(self.expire),
                batch.there.bit_select(batch.count, 1).eq(self.store),
            ]
        with m.If(~self.store):
            m.d.sync += enter.eq(self.i.p.body[: enter.shape().size])
        if params.timestamp_bits:
            entering = body_layout(params, self.side)(self.i.p.body[: enter.shape().size])
            with m.If(~self.expire):
                m.d.sync += now.eq(entering.ts)
        with m.If(arrives & is_probe):
            m.d.sync += batch.count.eq(batch.count + 1)
        with m.Elif(arrives):
            m.d.sync += [self.store.eq(self.store | stores), self.expire.eq(self.expire | expires)]
        if params.has_groups:
            self._end_groups(m, batch, arrives, is_probe)
        with m.If(self.begin):
            m.d.sync += [batch.count.eq(0), self.store.eq(0), self.expire.eq(0)]
        return m

    def _end_groups(self, m: Module, batch: View, arrives: Signal, is_probe: Signal) -> None:
        """Have a star follow the last probe of a group that has any here.

        If that probe is of a batch before, a blank one stands for it; then the batch is empty and
        has room.
        """
        pending = Signal()
        late = Signal()
        m.d.comb += late.eq(arrives & self.i.p.closes & ~is_probe & pending)
        with m.If(batch.count != self.params.probes):
            m.d.sync += batch.ends.bit_select(batch.count, 1).eq(self.i.p.closes)
        with m.If(batch.count == 0):
            m.d.sync += batch.blank.eq(~is_probe)
            with m.If(late):
                m.d.sync += batch.count.eq(1)
        for p in range(self.params.probes):
            with m.If(late & (batch.count == p + 1)):
                m.d.sync += batch.ends[p].eq(1)
        with m.If(arrives):
            m.d.sync += pending.eq(~self.i.p.closes & (pending | is_probe))


class SingleCollector(Component):
    """Collect one probe, and changes of the window that come before it.

    As :class:`~streamjoin_hw.rtl.split.collector.Collector` for a design with one probe slot, but
    what changes the window behind a probe waits for the next batch. So a pass looks at the window
    that its probe met and at nothing else, and what expires with a batch can be written over as it
    begins. What is decided about a tuple decides nothing in front: it lies in a register meanwhile,
    so that one is taken in two cycles. What it does if it need not wait, and whether it has to, is
    worked out as it is taken.

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
        Count anew; only beside a reset, and once before the first tuple.
    i : In(stream.Signature(routed_layout(params)))
        Tuples of both sides in arrival order. ``ready`` is a register, and ``side`` and ``full``
        come from registers.
    begin : In(1)
        The batch is taken over; a new one begins. The probe itself stays a cycle longer.
    waiting : Out(1)
        There is something to do.
    busy : Out(1)
        So it is, or a tuple was taken that nothing is decided about.
    batch : Out(batch_layout(params, side))
        Its probe has met all changes: ``gone`` and ``there`` are 1.
    store, expire : Out(1), enter : Out(body_layout(params, side))
    """

    index: Signal
    clear: Signal
    i: stream.Interface
    begin: Signal
    waiting: Signal
    busy: Signal
    batch: View
    store: Signal
    expire: Signal
    enter: View

    def __init__(self, params: DesignParams, side: int) -> None:
        self.params = params
        self.side = side
        super().__init__(
            {
                "index": In(bits_for(params.cores - 1)),
                "clear": In(1),
                "i": In(stream.Signature(routed_layout(params))),
                "begin": In(1),
                "waiting": Out(1),
                "busy": Out(1),
                "batch": Out(batch_layout(params, side)),
                "store": Out(1),
                "expire": Out(1),
                "enter": Out(body_layout(params, side)),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the turns and the registers of a batch."""
        m = Module()
        # One of these is 1: no tuple is here, a probe is, or a change of the window. Of a change
        # also whether it is stored in this core, and makes its oldest tuple expire.
        idle, asks, changes = Signal(init=1), Signal(name="asks"), Signal(name="changes")
        stores, expires = Signal(name="stores"), Signal(name="expires")
        probing = Signal()
        arrived = payload_of(self.i.payload.shape())
        probe = payload_of(body_layout(self.params, 1 - self.side))
        enter = payload_of(self.enter.shape())
        is_change, comes = self.i.p.side == self.side, idle & self.i.valid
        turns = {}
        for name, event in (
            ("storing", comes & is_change),
            ("expiring", comes & is_change & self.i.p.full),
        ):
            m.submodules[name] = turns[name] = turn = Turn(self.params.cores, is_late=True)
            m.d.comb += [
                turn.index.eq(self.index),
                turn.clear.eq(self.clear),
                turn.event.eq(event),
            ]
        # A probe keeps all behind it waiting, a tuple to store or that expires its like. In the
        # cycle in which a tuple is taken, and while one waits, a batch only becomes empty.
        no_probe, no_store, no_expiry = (
            payload_of(1, name=name) for name in ("no_probe", "no_store", "no_expiry")
        )
        stays = ~self.begin
        m.d.sync += [
            no_probe.eq(probing & stays),
            no_store.eq((probing | self.store) & stays),
            no_expiry.eq((probing | self.expire) & stays),
        ]
        refused = (stores & no_store) | (expires & no_expiry)
        still_stores = stores & (no_store | (expires & no_expiry))
        still_expires = expires & (no_expiry | (stores & no_store))
        may_store = self.i.valid & is_change & turns["storing"].mine
        may_expire = self.i.valid & is_change & self.i.p.full & turns["expiring"].mine
        m.d.sync += [
            idle.eq((idle & ~self.i.valid) | (asks & ~no_probe) | (changes & ~refused)),
            asks.eq((comes & ~is_change) | (asks & no_probe)),
            changes.eq((comes & is_change) | (changes & refused)),
            stores.eq(Mux(idle, may_store, still_stores)),
            expires.eq(Mux(idle, may_expire, still_expires)),
        ]
        with m.If(idle):
            m.d.sync += arrived.eq(self.i.payload)
        m.d.comb += [
            self.i.ready.eq(idle),
            self.waiting.eq(probing | self.store | self.expire),
            self.busy.eq(self.waiting | ~idle),
            self.enter.eq(enter),
            self.batch.count.eq(probing),
            self.batch.probes[0].eq(probe),
            self.batch.gone.eq(1),
            self.batch.there.eq(1),
        ]
        # Whatever is offered is copied; it counts once a bit says so.
        with m.If(~probing):
            m.d.sync += probe.eq(arrived.body[: probe.shape().size])
        with m.If(~self.store):
            m.d.sync += enter.eq(arrived.body[: enter.shape().size])
        for bit, sets in (
            (probing, asks & ~no_probe),
            (self.store, stores & ~refused),
            (self.expire, expires & ~refused),
        ):
            m.d.sync += bit.eq((bit & ~self.begin) | sets)
        return m
