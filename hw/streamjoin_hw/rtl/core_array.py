"""What every array of cores shares: cores by reference, and what is gathered from all of them."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from amaranth.hdl import (
    Cat,
    ClockDomain,
    ClockSignal,
    Const,
    Instance,
    Module,
    ResetInserter,
    ResetSignal,
    Signal,
    Value,
)
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.streams import Component

CORE_MODULE = "streamjoin_core"
"""Verilog module of a core."""

FANIN = 32
"""Inputs of one registered OR or sum: at most two levels serve 1024 cores (``HOLD_WORDS``)."""


def _fanin(inputs: int) -> int:
    """Inputs of each gate of a level: all, or so that two levels have about as many."""
    return inputs if inputs <= FANIN else math.isqrt(inputs - 1) + 1


def registered_or(m: Module, bits: Sequence[Value]) -> Value:
    """OR many bits through registers, at most :data:`FANIN` a gate; 1 or 2 cycles late."""
    while True:
        groups: list[Value] = []
        fanin = _fanin(len(bits))
        for first in range(0, len(bits), fanin):
            group = Signal(name="or_group")
            m.d.sync += group.eq(Cat(*bits[first : first + fanin]).any())
            groups.append(group)
        if len(groups) == 1:
            return groups[0]
        bits = groups


def registered_sum(m: Module, numbers: Sequence[Value]) -> Value:
    """Add many numbers through registers, at most :data:`FANIN` a sum; 1 or 2 cycles late."""
    while True:
        groups: list[Value] = []
        fanin = _fanin(len(numbers))
        for first in range(0, len(numbers), fanin):
            total = sum(numbers[first : first + fanin], Const(0, 1))
            group = Signal(len(total), name="sum_group")
            m.d.sync += group.eq(total)
            groups.append(group)
        if len(groups) == 1:
            return groups[0]
        numbers = groups


class CoreInstance(Component):
    """A core by reference to its Verilog module.

    All cores are then emitted and compiled once. Amaranth's simulator cannot look inside. Its
    ``reset`` is that of the clock domain unless another one is given.
    """

    def __init__(self, members: Mapping[str, wiring.Member], reset: Value | None = None) -> None:
        self.reset = ResetSignal() if reset is None else reset
        super().__init__(dict(members))

    def elaborate(self, _platform: object) -> Module:
        """Connect every port by its flat name."""
        m = Module()
        ports: dict[str, object] = {"i_clk": ClockSignal(), "i_rst": self.reset}
        for path, member, value in self.signature.flatten(self):
            direction = "i" if member.flow == In else "o"
            ports[f"{direction}_{'__'.join(str(part) for part in path)}"] = value
        m.submodules.core = Instance(CORE_MODULE, **ports)
        return m


class LateResetCore(Component):
    """A core, to be emitted as a module, whose reset ends in a register inside.

    So the wire of a reset is no longer than to there. What is reset is so a cycle late.

    Parameters
    ----------
    core : Component
        What is reset late.
    """

    clk: Signal
    rst: Signal

    def __init__(self, core: Any) -> None:
        self.core = core
        super().__init__({"clk": In(1), "rst": In(1), **core.signature.members})

    def elaborate(self, _platform: object) -> Module:
        """Build the register; the core's clock domain has no other reset."""
        m = Module()
        domain: Any = ClockDomain("sync", local=True, reset_less=True)
        domain.clk = self.clk
        m.domains += domain
        reset = Signal(init=1)
        m.d.sync += reset.eq(self.rst)
        m.submodules.core = ResetInserter(reset)(self.core)
        for name, member in self.core.signature.members.items():
            outer, inner = getattr(self, name), getattr(self.core, name)
            if member.is_signature:
                wiring.connect(m, wiring.flipped(outer), inner)
            else:
                m.d.comb += inner.eq(outer) if member.flow == In else outer.eq(inner)
        return m


def evicted_count(params: DesignParams) -> dict[str, wiring.Member]:
    """Return the port ``evicted`` of an array, none for a design without timestamps."""
    sides = 2 if params.design in ("splitjoin", "splitjoin-index") else 1
    return {"evicted": Out(bits_for(sides * params.cores))} if params.timestamp_bits else {}


def gathered_members(params: DesignParams) -> dict[str, wiring.Member]:
    """Ports of an array for what is gathered from all cores, beside the results."""
    return {"held": Out(1), "busy": Out(1), **evicted_count(params)}
