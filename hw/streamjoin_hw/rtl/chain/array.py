"""The cores of the lock-step chain side by side, and the tree that collects their results."""

from typing import Any

from amaranth.hdl import Const, Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.chain.core import Core, command_layout, core_members, plan_layout
from streamjoin_hw.rtl.core_array import CoreInstance, collect, gathered_members
from streamjoin_hw.rtl.streams import (
    Component,
    View,
    payload_of,
    r_layout,
    registers_of,
    result_layout,
    s_layout,
    signal_of,
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
        # A core registers the command; what enters, and its time, wait for it once for all.
        r_entry = registers_of(self.r_entry.shape(), "valid", name="r_entry")
        s_entry = registers_of(self.s_entry.shape(), "valid", name="s_entry")
        command = signal_of(command_layout(params))
        m.d.sync += [r_entry.eq(self.r_entry), s_entry.eq(self.s_entry)]
        m.d.comb += command.eq(self.command)
        if params.timestamp_bits:
            arrival, ts = Signal(), payload_of(params.timestamp_bits)
            m.d.sync += [arrival.eq(self.command.arrival), ts.eq(self.command.ts)]
            m.d.comb += [command.arrival.eq(arrival), command.ts.eq(ts)]
        cores: list[Any] = []
        for index in range(params.cores):
            core = CoreInstance(core_members(params)) if self.by_reference else Core(params)
            m.submodules[f"core{index}"] = core
            cores.append(core)
        for index, core in enumerate(cores):
            m.d.comb += [
                core.index.eq(Const(index, len(core.index))),
                core.plan.eq(self.plan),
                core.command.eq(command),
                core.r_left.eq(cores[index - 1].r_oldest if index else r_entry),
                core.s_entry.eq(s_entry),
            ]
            # The last core has no right neighbour: whenever it is active it takes what arrives.
            if index + 1 < params.cores:
                m.d.comb += core.s_right.eq(cores[index + 1].s_oldest)
        collect(m, params, cores, self)
        return m
