"""What a half of a core is to do next: probes side by side, and what changes between them."""

from amaranth.hdl import Module, Signal
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.split.layouts import body_layout, routed_layout
from streamjoin_hw.rtl.streams import Component, View, payload_of, registers_of
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
        Begin to count anew; needed once before the first tuple.
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
        with m.If(self.begin | self.clear):
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
        with m.If(self.clear):
            m.d.sync += pending.eq(0)
        with m.Elif(arrives):
            m.d.sync += pending.eq(~self.i.p.closes & (pending | is_probe))


class SingleCollector(Component):
    """Collect one probe, and changes of the window that come before it.

    As :class:`~streamjoin_hw.rtl.split.collector.Collector` for a design with one probe slot, but
    what changes the window behind a probe waits for the next batch. So a pass looks at the window
    that its probe met and at nothing else, and what expires with a batch can be written over as it
    begins. What is decided about a tuple decides nothing in front: it lies in a register meanwhile,
    so that one is taken in two cycles.

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
        Begin to count anew; needed once before the first tuple.
    i : In(stream.Signature(routed_layout(params)))
        Tuples of both sides in arrival order. ``ready`` is a register.
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
        idle, probing = Signal(init=1), Signal()
        arrived = payload_of(self.i.payload.shape())
        probe = payload_of(body_layout(self.params, 1 - self.side))
        enter = payload_of(self.enter.shape())
        is_probe = Signal()
        turns = {}
        for name in ("storing", "expiring"):
            m.submodules[name] = turns[name] = turn = Turn(self.params.cores)
            m.d.comb += [turn.index.eq(self.index), turn.clear.eq(self.clear)]
        # What does not depend on the tuple is known before the tuple is; and of what decides
        # about a register no more is asked than that one has to know.
        no_store = turns["storing"].mine & (probing | self.store)
        no_expiry = turns["expiring"].mine & (probing | self.expire)
        refused = no_store | (no_expiry & arrived.full)
        changes = ~idle & ~is_probe
        decided = (is_probe & ~probing) | (~is_probe & ~refused)
        m.d.sync += idle.eq((idle & ~self.i.valid) | (~idle & decided) | self.clear)
        with m.If(idle):
            m.d.sync += arrived.eq(self.i.payload)
        m.d.comb += [
            is_probe.eq(arrived.side != self.side),
            self.i.ready.eq(idle),
            turns["storing"].event.eq(changes & ~refused),
            turns["expiring"].event.eq(changes & arrived.full & ~(no_store | no_expiry)),
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
            (probing, ~idle & is_probe & ~probing),
            (self.store, turns["storing"].event & turns["storing"].mine),
            (self.expire, turns["expiring"].event & turns["expiring"].mine),
        ):
            m.d.sync += bit.eq(((bit & ~self.begin) | sets) & ~self.clear)
        return m
