"""The ``handshake`` design: encoder, sequencer or intake, chain of cores, result tree.

Handshake join (Teubner and Mueller, SIGMOD 2011), lock-step forwarding of section 6.2: R enters
the chain at the left, S at the right, and a pair is compared in the one core in which its tuples
meet. Differences from the paper: segments are rings in memory, a core compares ``lanes`` tuples a
cycle, windows are exact for any size set at run time, and an input ends with a drain. With
``forward="fast"`` tuples do not walk but are forwarded and stored
(:mod:`streamjoin_hw.rtl.chain.forwarding`).
"""

from typing import Any

from amaranth.hdl import Const, Module, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import DesignParams, TUser
from streamjoin_hw.rtl.chain.core import Core, command_layout, core_members, plan_layout
from streamjoin_hw.rtl.chain.forwarding import FastChain
from streamjoin_hw.rtl.chain.sequencer import Sequencer
from streamjoin_hw.rtl.core_array import CoreInstance, collect, evicted_count, gathered_members
from streamjoin_hw.rtl.encode import Encoder, band_layout, band_members, input_layout, time_members
from streamjoin_hw.rtl.hash.join import HashJoin, hash_members
from streamjoin_hw.rtl.intake import Intake
from streamjoin_hw.rtl.split.array import SplitArray, setting_members
from streamjoin_hw.rtl.streams import (
    Component,
    PipeReg,
    View,
    r_layout,
    result_layout,
    s_layout,
    slot_layout,
)


class Chain(Component):
    """The cores side by side, and the tree that collects their results.

    Parameters
    ----------
    params : DesignParams
        The design.
    by_reference : bool
        Instantiate the cores' Verilog module instead of elaborating each.

    Members
    -------
    command : In(command_layout(params)), plan : In(plan_layout(params))
    r_entry, s_entry : In(slot)
        The tuple that enters with a step.
    results : Out(stream.Signature(result_layout(params)))
    held : Out(1)
        Some core asks to hold; from a register.
    busy : Out(1)
        Something is inside; from a register.
    evicted : Out(count), if there are timestamps
        Tuples that left before their time.
    """

    command: View
    plan: View
    r_entry: View
    s_entry: View
    results: stream.Interface
    held: Signal
    busy: Signal
    evicted: Signal

    def __init__(self, params: DesignParams, *, by_reference: bool = False) -> None:
        self.params = params
        self.by_reference = by_reference
        super().__init__(
            {
                "command": In(command_layout(params)),
                "plan": In(plan_layout(params)),
                "r_entry": In(slot_layout(r_layout(params))),
                "s_entry": In(slot_layout(s_layout(params))),
                "results": Out(stream.Signature(result_layout(params))),
                **gathered_members(params),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Wire each core to its neighbours."""
        m = Module()
        params = self.params
        cores: list[Any] = []
        for index in range(params.cores):
            core = CoreInstance(core_members(params)) if self.by_reference else Core(params)
            m.submodules[f"core{index}"] = core
            cores.append(core)
        for index, core in enumerate(cores):
            m.d.comb += [
                core.index.eq(Const(index, len(core.index))),
                core.plan.eq(self.plan),
                core.command.eq(self.command),
                core.r_left.eq(cores[index - 1].r_oldest if index else self.r_entry),
                core.s_entry.eq(self.s_entry),
            ]
            # The last core has no right neighbour: whenever it is active it takes what arrives.
            if index + 1 < params.cores:
                m.d.comb += core.s_right.eq(cores[index + 1].s_oldest)
        collect(m, params, cores, self)
        return m


def output_layout(params: DesignParams) -> data.StructLayout:
    """Layout of an output beat: both payloads, ``user`` (``TUser``) and ``last``."""
    return data.StructLayout(
        {
            "r_payload": params.payload_bits,
            "s_payload": params.payload_bits,
            "user": TUser.BITS,
            "last": 1,
        }
    )


class HandshakeJoin(Component):
    """The design between its streams, without AXI and registers.

    In lock step a step costs ``max(2, ceil(ceil(window / active) / lanes))`` cycles, ``window``
    being that of the other side and ``active`` the cores that take part
    (:func:`streamjoin_common.contract.active_cores`). Forwarded at once, a tuple costs a cycle for
    each word of the other side's sub-window, at least one and at most one more than its tuples
    fill.

    Parameters
    ----------
    params : DesignParams
        The design.
    by_reference : bool
        See :class:`Chain`.

    Members
    -------
    i : In(stream.Signature({"beat": input_layout(params), "last": 1}))
        Tuples in arrival order.
    o : Out(stream.Signature(output_layout(params)))
        Results, then one punctuation with ``last``.
    band : In(band_layout(params)), if there are band terms
    time_r, time_s : In(params.timestamp_bits), evicted : Out(count), if there are timestamps
    enable, drain, windows_written : In(1)
    window_r, window_s : In(32)
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
                **{name: In(1) for name in ("enable", "drain", "windows_written")},
                "window_r": In(32),
                "window_s": In(32),
                **setting_members(params),
                **{name: Out(1) for name in flags},
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Connect the parts."""
        m = Module()
        params = self.params
        m.submodules.encoder = encoder = Encoder(params)
        sequencer: Any
        chain: Any
        if params.stores_in_turn:
            m.submodules.sequencer = sequencer = Intake(params)
            kinds: dict[str, Any] = {"splitjoin": SplitArray, "handshake": FastChain}
            if params.design in kinds:
                chain = kinds[params.design](params, by_reference=self.by_reference)
            elif self.by_reference:
                chain = CoreInstance(hash_members(params))
            else:
                chain = HashJoin(params)
            m.submodules.chain = chain
            wiring.connect(m, sequencer.o, chain.i)
            m.d.comb += chain.clear.eq(sequencer.clear)
            for name in setting_members(params):
                m.d.comb += getattr(chain, name).eq(getattr(self, name))
            if params.design == "splitjoin":
                m.d.comb += chain.idle.eq(sequencer.idle)
        else:
            m.submodules.sequencer = sequencer = Sequencer(params)
            m.submodules.chain = chain = Chain(params, by_reference=self.by_reference)
            for name in ("command", "plan", "r_entry", "s_entry"):
                m.d.comb += getattr(chain, name).eq(getattr(sequencer, name))
        m.submodules.output = output = PipeReg(output_layout(params))

        m.d.comb += [
            encoder.i.payload.eq(self.i.p.beat),
            encoder.i.valid.eq(self.i.valid & sequencer.open),
            self.i.ready.eq(encoder.i.ready & sequencer.open),
            sequencer.taken.eq(self.i.valid & self.i.ready),
            sequencer.taken_last.eq(self.i.p.last),
            self.starved.eq(self.i.ready & ~self.i.valid),
        ]
        wiring.connect(m, encoder.o, sequencer.i)
        if band_layout(params).size:
            m.d.comb += encoder.band.eq(self.band)
        if params.timestamp_bits:
            m.d.comb += [
                encoder.time_r.eq(self.time_r),
                encoder.time_s.eq(self.time_s),
                self.evicted.eq(chain.evicted),
            ]
        for name in ("enable", "drain", "windows_written", "window_r", "window_s"):
            m.d.comb += getattr(sequencer, name).eq(getattr(self, name))
        for name in ("drained", "draining", "window_error", "running", "hold_cycle"):
            m.d.comb += getattr(self, name).eq(getattr(sequencer, name))
        m.d.comb += [
            self.idle.eq(sequencer.idle & ~output.busy),
            self.held.eq(chain.held),
            sequencer.held.eq(chain.held),
            sequencer.busy.eq(chain.busy),
        ]

        star = chain.results.p.star if params.design == "splitjoin" else Const(0)
        self._give(m, output, chain.results, sequencer.end, star)
        wiring.connect(m, output.o, wiring.flipped(self.o))
        return m

    @staticmethod
    def _give(m: Module, output: PipeReg, results: Any, end: Any, star: Any) -> None:
        """Put results and the end into the output, never both: one is due without the other."""
        beat = output.i.p
        m.d.comb += [
            output.i.valid.eq(results.valid | end.valid),
            results.ready.eq(output.i.ready),
            end.ready.eq(output.i.ready),
        ]
        with m.If(end.valid):
            m.d.comb += [beat.user[TUser.PUNCTUATION].eq(1), beat.last.eq(1)]
        with m.Elif(star):
            m.d.comb += [
                beat.user[TUser.PUNCTUATION].eq(1),
                beat.user[TUser.SIDE].eq(results.p.side),
            ]
        with m.Else():
            m.d.comb += [
                beat.user[TUser.RESULT].eq(1),
                beat.r_payload.eq(results.p.r_payload),
                beat.s_payload.eq(results.p.s_payload),
                beat.user[TUser.SIDE].eq(results.p.side),
            ]
