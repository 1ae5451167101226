"""The design between its streams: encoder, sequencer or intake, array of cores, output.

Which array it holds is looked up in :mod:`streamjoin_hw.rtl.designs`. All designs have these ports.
"""

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import (
    WINDOW_BITS,
    DesignParams,
    TUser,
    result_beat_layout,
    tuser_bits,
)
from streamjoin_hw.rtl.chain.sequencer import Sequencer
from streamjoin_hw.rtl.core_array import evicted_count
from streamjoin_hw.rtl.designs import design_of
from streamjoin_hw.rtl.encode import Encoder, band_layout, band_members, input_layout, time_members
from streamjoin_hw.rtl.index.join import index_settings
from streamjoin_hw.rtl.intake import Intake
from streamjoin_hw.rtl.kinds.oldest import OldestFirst
from streamjoin_hw.rtl.kinds.stage import KindStage, kind_setting
from streamjoin_hw.rtl.split.array import setting_members
from streamjoin_hw.rtl.streams import Component, PingPongReg, View, payload_of


def output_layout(params: DesignParams) -> data.StructLayout:
    """Layout of an output beat: the fields of a result, ``user`` (``TUser``) and ``last``."""
    return data.StructLayout(
        {
            **{field.name: field.width for field in result_beat_layout(params)},
            "user": tuser_bits(params),
            "last": 1,
        }
    )


class Join(Component):
    """The design between its streams, without AXI and registers.

    In lock step a step costs ``max(2, ceil(ceil(window / active) / lanes))`` cycles, ``window``
    being that of the other side and ``active`` the cores that take part
    (:func:`streamjoin_common.contract.active_cores`). Forwarded at once, a tuple costs a cycle for
    each word of the other side's sub-window, at least two and at most one more than its tuples
    fill.

    Parameters
    ----------
    params : DesignParams
        The design.
    by_reference : bool
        See :class:`~streamjoin_hw.rtl.chain.array.Chain`.

    Members
    -------
    i : In(stream.Signature({"beat": input_layout(params), "last": 1}))
        Tuples in arrival order; ``ready`` is a register.
    o : Out(stream.Signature(output_layout(params)))
        Results, then one punctuation with ``last``.
    band : In(band_layout(params)), if there are band terms
    time_r, time_s : In(params.timestamp_bits), evicted : Out(count), if there are timestamps
    enable, drain, windows_written : In(1)
    writing : In(1)
        A setting or ``enable`` changes at the next clock edge. No tuple is accepted in the cycle
        after it.
    window_r, window_s : In(32)
    kind : In, if all kinds of join are decided
    drained, idle, draining, window_error, running, held, hold_cycle, starved : Out(1)
        See :class:`~streamjoin_hw.rtl.chain.sequencer.Sequencer`.
    """

    i: stream.Interface
    o: stream.Interface
    band: View
    time_r: Signal
    time_s: Signal
    evicted: Signal
    enable: Signal
    drain: Signal
    windows_written: Signal
    writing: Signal
    window_r: Signal
    window_s: Signal
    drained: Signal
    idle: Signal
    draining: Signal
    window_error: Signal
    running: Signal
    held: Signal
    hold_cycle: Signal
    starved: Signal
    splitter_load: Signal
    kind: Signal

    def __init__(self, params: DesignParams, *, by_reference: bool = False) -> None:
        self.params = params
        self.by_reference = by_reference
        beat = data.StructLayout({"beat": input_layout(params), "last": 1})
        phases = ("drained", "idle", "draining", "window_error", "running")
        flags = (*phases, "held", "hold_cycle", "starved")
        super().__init__(
            {
                "i": In(stream.Signature(beat)),
                "o": Out(stream.Signature(output_layout(params))),
                **band_members(params),
                **time_members(params),
                **evicted_count(params),
                **{name: In(1) for name in ("enable", "drain", "windows_written", "writing")},
                "window_r": In(32),
                "window_s": In(32),
                **setting_members(params),
                **index_settings(params),
                **kind_setting(params),
                **{name: Out(1) for name in flags},
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Connect the parts."""
        m = Module()
        params = self.params.array
        m.submodules.encoder = encoder = Encoder(params)
        sequencer: Any = Intake(params) if params.stores_in_turn else Sequencer(params)
        array = design_of(params).array(params, by_reference=self.by_reference)
        m.submodules.sequencer = sequencer
        m.submodules.chain = array
        if params.stores_in_turn:
            self._forward(m, sequencer, array)
        else:
            for name in ("command", "plan", "r_entry", "s_entry"):
                m.d.comb += getattr(array, name).eq(getattr(sequencer, name))
            m.d.comb += sequencer.complete.eq(array.complete)
        kinds = self._kinds(m, sequencer, array)
        is_open = sequencer.open if kinds is None else sequencer.open & kinds.room
        results: Any = array.results if kinds is None else kinds.o
        m.submodules.output = output = PingPongReg(output_layout(self.params))

        # A cycle ahead, so that `ready` is a register: nothing that it depends on changes meanwhile
        # but whether the last tuple is taken in this cycle, and what is written to a register.
        is_last = self.i.valid & self.i.ready & self.i.p.last
        m.d.comb += [
            *self._enter(encoder, kinds),
            encoder.opens.eq(is_open & ~is_last & ~self.writing),
            encoder.i.valid.eq(self.i.valid),
            self.i.ready.eq(encoder.i.ready),
            self.starved.eq(self.i.ready & ~self.i.valid),
        ]
        self._report_taken(m, sequencer)
        wiring.connect(m, encoder.o, sequencer.i)
        if band_layout(params).size:
            m.d.comb += encoder.band.eq(self._band(m, sequencer.idle))
        if params.timestamp_bits:
            m.d.comb += [
                encoder.time_r.eq(self.time_r),
                encoder.time_s.eq(self.time_s),
                self.evicted.eq(array.evicted),
            ]
        for name in ("enable", "drain", "windows_written", "window_r", "window_s"):
            m.d.comb += getattr(sequencer, name).eq(getattr(self, name))
        for name in ("drained", "draining", "window_error", "running", "hold_cycle"):
            m.d.comb += getattr(self, name).eq(getattr(sequencer, name))
        m.d.comb += [
            self.idle.eq(sequencer.idle & ~output.busy),
            self.held.eq(array.held),
            sequencer.held.eq(array.held),
            sequencer.busy.eq(array.busy if kinds is None else kinds.working | kinds.busy),
        ]

        star = results.p.star if params.design == "splitjoin" else Const(0)
        self._give(m, output, results, sequencer.end, star)
        wiring.connect(m, output.o, wiring.flipped(self.o))
        return m

    def _report_taken(self, m: Module, sequencer: Any) -> None:
        """Tell the sequencer of a beat that was taken, a cycle late.

        What the ports say comes from far, and each part of it ends in a flip-flop of its own.
        """
        offered, ready = Signal(name="offered"), Signal(name="ready")
        last = payload_of(1, name="last")
        m.d.sync += [
            offered.eq(self.i.valid),
            ready.eq(self.i.ready),
            last.eq(self.i.p.last),
        ]
        m.d.comb += [sequencer.took.eq(offered & ready), sequencer.took_last.eq(last)]

    def _forward(self, m: Module, intake: Any, array: Any) -> None:
        """Connect the intake and its settings to an array that stores tuples in turn."""
        params = self.params.array
        wiring.connect(m, intake.o, array.i)
        m.d.comb += array.clear.eq(intake.clear)
        for name in setting_members(params):
            m.d.comb += getattr(array, name).eq(getattr(self, name))
        if params.design in ("handshake", "splitjoin"):
            m.d.comb += intake.settling.eq(array.settling)
        if params.design == "splitjoin":
            m.d.comb += array.idle.eq(intake.idle)
        if params.has_groups:
            m.d.comb += array.draining.eq(intake.draining)
        for name, member in index_settings(params).items():
            port, inner = getattr(self, name), getattr(array, name)
            m.d.comb += inner.eq(port) if member.flow == In else port.eq(inner)
        if params.design == "splitjoin-index":
            m.d.comb += array.splitter_load.eq(self.splitter_load & intake.idle)

    def _kinds(self, m: Module, sequencer: Any, array: Any) -> KindStage | None:
        """Put the stage that decides all kinds of join around the array, if there is one."""
        if not self.params.decides_kinds:
            return None
        m.submodules.kinds = kinds = KindStage(self.params, array.results.p.shape())
        results, working = array.results, array.busy
        if self.params.orders_by_age:
            m.submodules.oldest = oldest = OldestFirst(self.params)
            wiring.connect(m, results, oldest.i)
            m.d.comb += [oldest.whole.eq(array.whole), oldest.starts.eq(kinds.starts)]
            results, working = oldest.o, working | oldest.busy
        wiring.connect(m, results, kinds.results)
        m.d.comb += [
            kinds.clear.eq(sequencer.clear),
            kinds.idle.eq(sequencer.idle),
            kinds.kind.eq(self.kind),
            kinds.window_r.eq(self.window_r[:WINDOW_BITS]),
            kinds.window_s.eq(self.window_s[:WINDOW_BITS]),
            kinds.taken.eq(self.i.valid & self.i.ready),
            kinds.side.eq(self.i.p.beat.side),
            kinds.payload.eq(self.i.p.beat.payload),
            kinds.passed.eq(sequencer.o.valid & sequencer.o.ready),
            kinds.working.eq(working),
            kinds.draining.eq(sequencer.draining),
        ]
        return kinds

    def _enter(self, encoder: Encoder, kinds: KindStage | None) -> list[Any]:
        """Hand a beat to the encoder, with its row's slot for a payload if that is kept."""
        if kinds is None:
            return [encoder.i.payload.eq(self.i.p.beat)]
        return [
            encoder.i.p[name].eq(kinds.slot if name == "payload" else self.i.p.beat[name])
            for name in encoder.i.p.shape().members
        ]

    def _band(self, m: Module, idle: Signal) -> Any:
        """Return the band widths that count: those of an input's begin where R tuples need them.

        What an R tuple looks for, with an ordered index or in windows that keep points, is computed
        with its widths, and the S tuples' with theirs.
        """
        if self.params.design != "splitjoin-index" and not self.params.has_point_windows:
            return self.band
        kept = payload_of(band_layout(self.params))
        with m.If(idle):
            m.d.sync += kept.eq(self.band)
        return Mux(idle, self.band.as_value(), kept.as_value())

    @staticmethod
    def _give(m: Module, output: PingPongReg, results: Any, end: Any, star: Any) -> None:
        """Put results and the end into the output, never both: one is due without the other.

        Only ``user`` and ``last`` tell a punctuation, whose other fields do not count: no bit of
        them waits for the end.
        """
        beat = output.i.p
        marks = end.valid | star
        m.d.comb += [
            output.i.valid.eq(results.valid | end.valid),
            results.ready.eq(output.i.ready),
            end.ready.eq(output.i.ready),
            *(
                beat[name].eq(results.p[name])
                for name in beat.shape().members
                if name not in ("user", "last")
            ),
            beat.last.eq(end.valid),
            beat.user[TUser.PUNCTUATION].eq(marks),
            beat.user[TUser.RESULT].eq(~marks),
            beat.user[TUser.SIDE].eq(results.p.side & ~end.valid),
        ]
        if "second" in results.p.shape().members:
            m.d.comb += beat.user[TUser.SECOND].eq(results.p.second & ~marks)
