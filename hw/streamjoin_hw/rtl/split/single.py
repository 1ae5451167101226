"""A batch of one probe: changes of the window come before it, so that no slot has to be spare."""

from amaranth.hdl import Module, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.split.collector import batch_layout
from streamjoin_hw.rtl.split.layouts import body_layout, routed_layout
from streamjoin_hw.rtl.streams import Component, View, payload_of
from streamjoin_hw.rtl.turn import Turn


class SingleCollector(Component):
    """Collect one probe, and changes of the window that come before it.

    As :class:`~streamjoin_hw.rtl.split.collector.Collector` for a design with one probe slot, but
    what changes the window behind a probe waits for the next batch. So a pass looks at the window
    that its probe met and at nothing else, and what expires with a batch can be written over as it
    begins. Whether the batch begins decides no tuple's ``ready``.

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
        The batch is taken over; a new one begins. The probe itself stays a cycle longer.
    waiting : Out(1)
        There is something to do.
    batch : Out(batch_layout(params, side))
        Its probe has met all changes: ``gone`` and ``there`` are 1.
    store, expire : Out(1), enter : Out(body_layout(params, side))
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
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the turns and the registers of a batch."""
        m = Module()
        probing, probe = Signal(), payload_of(body_layout(self.params, 1 - self.side))
        enter = payload_of(self.enter.shape())
        is_probe, turns = Signal(), {}
        for name in ("storing", "expiring"):
            m.submodules[name] = turns[name] = turn = Turn(self.params.cores)
            m.d.comb += [turn.index.eq(self.index), turn.clear.eq(self.clear)]
        # What does not depend on the tuple is known before the tuple is; and of what decides
        # about a register no more is asked than that one has to know.
        no_store = turns["storing"].mine & (probing | self.store)
        no_expiry = turns["expiring"].mine & (probing | self.expire)
        refused = no_store | (no_expiry & self.i.p.full)
        changes = self.i.valid & ~is_probe
        m.d.comb += [
            is_probe.eq(self.i.p.side != self.side),
            self.i.ready.eq(Mux(is_probe, ~probing, ~refused)),
            turns["storing"].event.eq(changes & ~refused),
            turns["expiring"].event.eq(changes & self.i.p.full & ~(no_store | no_expiry)),
            self.waiting.eq(probing | self.store | self.expire),
            self.enter.eq(enter),
            self.batch.count.eq(probing),
            self.batch.probes[0].eq(probe),
            self.batch.gone.eq(1),
            self.batch.there.eq(1),
        ]
        # Whatever is offered is copied; it counts once a bit says so.
        with m.If(~probing):
            m.d.sync += probe.eq(self.i.p.body[: probe.shape().size])
        with m.If(~self.store):
            m.d.sync += enter.eq(self.i.p.body[: enter.shape().size])
        for bit, sets in (
            (probing, self.i.valid & is_probe & ~probing),
            (self.store, turns["storing"].event & turns["storing"].mine),
            (self.expire, turns["expiring"].event & turns["expiring"].mine),
        ):
            m.d.sync += bit.eq(((bit & ~self.begin) | sets) & ~self.clear)
        return m
