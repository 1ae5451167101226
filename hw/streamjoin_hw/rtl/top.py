"""The top level: the design behind flat AXI names, as other people's tools want them."""

from typing import Any

from amaranth.hdl import Cat, ClockDomain, DomainRenamer, Module, Signal, Value
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import (
    SIDE_S,
    DesignParams,
    TUser,
    beat_bits,
    registers,
    result_beat_layout,
    tuple_layout,
    tuser_bits,
)
from streamjoin_hw.rtl.encode import band_layout
from streamjoin_hw.rtl.join import Join
from streamjoin_hw.rtl.registers import Counters, RegisterFile, axi_lite_members, live
from streamjoin_hw.rtl.split.array import setting_members
from streamjoin_hw.rtl.streams import Component, payload_of

TOP_MODULE = "streamjoin_top"
"""Verilog module of the top level."""


class Top(Component):
    """A design with AXI4-Stream in and out and AXI4-Lite control.

    No output depends on an input of the same cycle. ``aresetn`` is synchronous; the cycle after
    it nothing is accepted or offered, and then the design is empty. A soft reset does the same
    to everything but the registers, and waits for a beat that is offered: AXI4-Stream lets
    ``aresetn`` alone withdraw it. From the write's response until then no tuple is accepted.

    Parameters
    ----------
    params : DesignParams
        The design.
    by_reference : bool
        See :class:`~streamjoin_hw.rtl.chain.array.Chain`.
    waits : Signal, optional
        1 in a cycle in which a beat is offered and not taken, where the beats that leave the
        chip are not these results.

    Attributes
    ----------
    restart, closed : Signal
        1 in the cycle in which reset or soft reset empties the design, and from the request for
        it on; no ports.

    Members
    -------
    aclk, aresetn : In(1)
    s_axis_tuples_tdata : In, tdest : In(1), tvalid : In(1), tready : Out(1), tlast : In(1)
        One tuple a beat, laid out by ``contract.tuple_layout``; ``tdest`` 0 for R, 1 for S.
    m_axis_results_tdata : Out, tuser : Out, tvalid : Out(1), tready : In(1), tlast : Out(1)
        Laid out by ``contract.result_beat_layout``, ``tuser`` by ``contract.TUser``.
    s_axil_ctrl_*
        Registers, by ``contract.registers``.
    """

    aclk: Signal
    aresetn: Signal
    s_axis_tuples_tdata: Signal
    s_axis_tuples_tdest: Signal
    s_axis_tuples_tvalid: Signal
    s_axis_tuples_tready: Signal
    s_axis_tuples_tlast: Signal
    m_axis_results_tdata: Signal
    m_axis_results_tuser: Signal
    m_axis_results_tvalid: Signal
    m_axis_results_tready: Signal
    m_axis_results_tlast: Signal

    def __init__(
        self, params: DesignParams, *, by_reference: bool = False, waits: Signal | None = None
    ) -> None:
        self.params = params
        self.by_reference = by_reference
        self.waits = waits
        self.restart = Signal(init=1)
        self.closed = Signal(init=1)
        control = {f"s_axil_ctrl_{name}": port for name, port in axi_lite_members().items()}
        super().__init__(
            {
                "aclk": In(1),
                "aresetn": In(1),
                "s_axis_tuples_tdata": In(beat_bits(tuple_layout(params))),
                "s_axis_tuples_tdest": In(1),
                "s_axis_tuples_tvalid": In(1),
                "s_axis_tuples_tready": Out(1),
                "s_axis_tuples_tlast": In(1),
                "m_axis_results_tdata": Out(beat_bits(result_beat_layout(params))),
                "m_axis_results_tuser": Out(tuser_bits(params)),
                "m_axis_results_tvalid": Out(1),
                "m_axis_results_tready": In(1),
                "m_axis_results_tlast": Out(1),
                **control,
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build clock domains, registers, counters and the design."""
        m = Module()
        # Two domains on one clock: registers keep their values through a soft reset.
        control: Any = ClockDomain("control", local=True)
        work: Any = ClockDomain("sync", local=True)
        control.clk = work.clk = self.aclk
        m.domains += [control, work]
        m.submodules.registers = file = DomainRenamer("control")(RegisterFile(self.params))
        m.submodules.counters = counters = Counters(self.params.beat_results)
        m.submodules.design = design = Join(self.params, by_reference=self.by_reference)

        restart = self.restart
        m.d.comb += [control.rst.eq(~self.aresetn), work.rst.eq(restart)]
        offered_waits = design.o.valid & ~self.m_axis_results_tready
        waits = offered_waits if self.waits is None else self.waits
        asked = Signal()
        pending = Signal()
        m.d.comb += [
            asked.eq(file.soft_reset | pending),
            file.resetting.eq(self.closed),
        ]
        # Much depends on `closed`: a flip-flop, 1 while the reset is asked for and while it lasts.
        m.d.control += [
            restart.eq(asked & ~waits),
            pending.eq(asked & waits),
            self.closed.eq(file.soft_reset_next | asked),
        ]

        for name, port in axi_lite_members().items():
            inner, outer = getattr(file, name), getattr(self, f"s_axil_ctrl_{name}")
            m.d.comb += inner.eq(outer) if port.flow == In else outer.eq(inner)

        # What is accepted or ended from now on belongs to the design after the reset.
        m.d.comb += [
            design.enable.eq(file.enable & ~self.closed & self.aresetn),
            design.writing.eq(file.writing),
            design.drain.eq(file.drain & ~self.closed),
            file.drained.eq(design.drained & ~self.closed),
            design.windows_written.eq(file.windows_written),
            design.window_r.eq(file.set_window_r),
            design.window_s.eq(file.set_window_s),
        ]
        self._settings(m, design, file)

        beat = design.i.p.beat
        for field in tuple_layout(self.params):
            bits = self.s_axis_tuples_tdata[field.offset : field.offset + field.width]
            m.d.comb += beat[field.name].eq(bits)
        m.d.comb += [
            beat.side.eq(self.s_axis_tuples_tdest),
            design.i.p.last.eq(self.s_axis_tuples_tlast),
            design.i.valid.eq(self.s_axis_tuples_tvalid),
            self.s_axis_tuples_tready.eq(design.i.ready),
        ]
        result = design.o.p
        for field in result_beat_layout(self.params):
            bits = self.m_axis_results_tdata[field.offset : field.offset + field.width]
            m.d.comb += bits.eq(result[field.name])
        m.d.comb += [
            self.m_axis_results_tuser.eq(result.user),
            self.m_axis_results_tlast.eq(result.last),
            self.m_axis_results_tvalid.eq(design.o.valid & ~restart),
            design.o.ready.eq(self.m_axis_results_tready),
        ]

        output_stalled = self._count(m, design, counters)
        if self.params.timestamp_bits:
            m.d.comb += [design.time_r.eq(file.set_time_r), design.time_s.eq(file.set_time_s)]
        status = self._status(m, design, output_stalled)
        driven = self._index(m, design, file) if self.params.design == "splitjoin-index" else {}
        for name in live(self.params):
            target = getattr(file, f"get_{name}")
            if name in driven:
                m.d.comb += target.eq(driven[name])
            elif name == "status":
                m.d.comb += target.eq(status)
            elif name == "cycles_low":
                m.d.comb += target.eq(counters.cycles[:32])
            elif name == "cycles_high":
                m.d.comb += target.eq(counters.cycles[32:])
            else:
                m.d.comb += target.eq(getattr(counters, name))
        return m

    def _count(self, m: Module, design: Any, counters: Counters) -> Value:
        """Say what is counted; return whether the output is stalled, a cycle late."""
        # A cycle late: what the ports say comes from far, and each part of it ends in a flip-flop.
        offered, ready, is_s = (Signal(name=f"input_{n}") for n in ("offered", "ready", "is_s"))
        gives, accepted = (Signal(name=f"output_{n}") for n in ("offered", "ready"))
        user = payload_of(len(design.o.p.user), name="output_user")
        running = Signal()
        m.d.sync += [
            running.eq(design.running),
            offered.eq(self.s_axis_tuples_tvalid),
            ready.eq(self.s_axis_tuples_tready),
            is_s.eq(self.s_axis_tuples_tdest == SIDE_S),
            gives.eq(self.m_axis_results_tvalid),
            accepted.eq(self.m_axis_results_tready),
            user.eq(design.o.p.user),
        ]
        taken, given = offered & ready, gives & accepted
        m.d.comb += [
            # Until the punctuation is taken, however long it waits.
            counters.cycle.eq(running | gives | taken),
            counters.tuple_r.eq(taken & ~is_s),
            counters.tuple_s.eq(taken & is_s),
            counters.result.eq(given & user[TUser.RESULT]),
            counters.input_stall.eq(offered & ~ready),
            counters.results_backpressure.eq(gives & ~accepted & user[TUser.RESULT]),
            counters.hold.eq(design.hold_cycle),
        ]
        if self.params.beat_results > 1:
            with m.If(given & user[TUser.SECOND]):
                m.d.comb += counters.result.eq(2)
        if self.params.timestamp_bits:
            m.d.comb += counters.evict.eq(design.evicted)
        return gives & ~accepted

    def _settings(self, m: Module, design: Any, file: Any) -> None:
        """Hand over what is set at run time beside the windows."""
        for name in band_layout(self.params).members:
            m.d.comb += design.band[name].eq(getattr(file, f"set_band_{name}"))
        settings = setting_members(self.params)
        if "order" in settings:
            m.d.comb += [
                design.order.eq(file.set_order[:2]),
                design.punctuate.eq(file.set_order[4]),
            ]
        if "interval" in settings:
            m.d.comb += design.interval.eq(file.set_interval)
        if "group" in settings:
            m.d.comb += design.group.eq(file.set_group_arrivals)
        if self.params.decides_kinds:
            m.d.comb += design.kind.eq(file.set_kind[: len(design.kind)])
        if "masked" in settings:
            masks = [each for each in file.written if each.name.startswith("masked")]
            words = [getattr(file, f"set_{each.name}") for each in masks]
            m.d.comb += design.masked.eq(Cat(*words))

    def _index(self, m: Module, design: Any, file: Any) -> dict[str, Any]:
        """Hand splitters over; return what the registers of an ordered index read."""
        reads = Signal(32)
        displaced = Signal(32)
        m.d.comb += [
            design.splitter_load.eq(file.splitter_written),
            design.splitter_side.eq(file.set_splitter_index[16]),
            design.splitter_number.eq(file.set_splitter_index),
            design.splitter_value.eq(file.set_splitter),
            design.bucket_words.eq(file.set_bucket_words),
        ]
        m.d.sync += [reads.eq(reads + design.reads), displaced.eq(displaced + design.displaced)]
        held = {"held_r": design.held_r, "held_s": design.held_s}
        return {"index_reads": reads, "displaced": displaced, **held}

    def _status(self, m: Module, design: Any, output_stalled: Any) -> Signal:
        """Put the status together, each bit where the contract has it, two cycles late or three."""
        (status_register,) = (each for each in registers(self.params) if each.name == "status")
        status = Signal(32)
        for flag in status_register.fields:
            is_stalled = flag.name == "output_stalled"
            bit = output_stalled if is_stalled else getattr(design, flag.name)
            # It comes from far and goes far.
            known = Signal(name=flag.name)
            m.d.control += [known.eq(bit), status[flag.bit].eq(known)]
        return status
