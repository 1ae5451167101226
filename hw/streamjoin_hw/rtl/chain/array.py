"""The cores of the lock-step chain side by side, and the tree that collects their results."""

from amaranth.hdl import Const, Module, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.chain.collection import collect, make_cores
from streamjoin_hw.rtl.chain.core import Core, command_layout, core_members, plan_layout
from streamjoin_hw.rtl.chain.line import lines_of_cores
from streamjoin_hw.rtl.chain.spread import Spread, delayed
from streamjoin_hw.rtl.core_array import gathered_members
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
    complete : Out(1)
        Commands reach every core; for ever from some cycles after power-up on, from a register.
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
    complete: Signal
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
                "complete": Out(1),
                **gathered_members(params),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Wire each core to its neighbours."""
        m = Module()
        params = self.params
        # A core registers the command; what enters, and its time, wait for it once for all. So does
        # the plan, which is there long before.
        r_entry = registers_of(self.r_entry.shape(), "valid", name="r_entry")
        s_entry = registers_of(self.s_entry.shape(), "valid", name="s_entry")
        command = signal_of(command_layout(params))
        plan = payload_of(plan_layout(params), name="plan")
        m.d.sync += [r_entry.eq(self.r_entry), s_entry.eq(self.s_entry), plan.eq(self.plan)]
        m.d.comb += command.eq(self.command)
        if params.timestamp_bits:
            arrival = Signal()
            ts = payload_of(params.timestamp_bits)
            m.d.sync += [arrival.eq(self.command.arrival), ts.eq(self.command.ts)]
            m.d.comb += [command.arrival.eq(arrival), command.ts.eq(ts)]
        spread = Spread(params)
        spread.grow(m)
        m.d.comb += self.complete.eq(spread.complete)
        resets = spread.resets(m)
        known = core_members(params) if self.by_reference else None
        cores = make_cores(m, params, lambda: Core(params), resets, known)
        r_first = delayed(m, r_entry.shape(), r_entry, spread.levels, name="r_late")
        branches = {
            name: spread.branches(m, given.shape(), given, name=name)
            for name, given in (("command", command), ("plan", plan), ("s_entry", s_entry))
        }
        for index, (core, line) in enumerate(zip(cores, lines_of_cores(params.cores), strict=True)):
            m.d.comb += [
                core.index.eq(Const(index, len(core.index))),
                *(getattr(core, name).eq(branch[line]) for name, branch in branches.items()),
                core.r_left.eq(cores[index - 1].r_oldest if index else r_first),
            ]
            # The last core has no right neighbour: whenever it is active it takes what arrives.
            if index + 1 < params.cores:
                m.d.comb += core.s_right.eq(cores[index + 1].s_oldest)
        settling, renewed = spread.settling(m), spread.renewed
        collect(m, params, cores, self, resets=resets, renewed=renewed, settling=settling)
        return m
