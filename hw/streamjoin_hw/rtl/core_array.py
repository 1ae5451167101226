"""What every array of cores shares: cores by reference, what is gathered from all, how far it is.

Words take cycles to all cores and back; the reset comes to all of them in the same one.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from amaranth.hdl import (
    Cat,
    ClockSignal,
    Const,
    DomainRenamer,
    Instance,
    Module,
    ResetSignal,
    Signal,
    Value,
)
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.streams import Component, result_layout
from streamjoin_hw.rtl.trees import MergeTree

CORE_MODULE = "streamjoin_core"
"""Verilog module of a core."""

FANIN = 32
"""Inputs of one registered OR or sum."""

FANOUT = 32
"""Registers that one register of the reset tree feeds."""


def gather_levels(params: DesignParams) -> int:
    """Count the registers between the cores' flags and what is ORed of them."""
    levels, flags = 1, math.ceil(params.cores / FANIN)
    while flags > 1:
        levels, flags = levels + 1, math.ceil(flags / FANIN)
    return levels


def hold_words(params: DesignParams) -> int:
    """Count the words that must be free in a core's result FIFO for it not to ask for a hold.

    After the write that leaves fewer free, the level shows it (1 cycle), ``hold`` is registered
    (1), ORed over the cores (:func:`gather_levels`), and the next scan command is withheld; the
    commands of these cycles, and the two words between command and FIFO (memory, mask), still
    arrive. One word more is free than arrives, and the hold begins one below the limit.
    """
    return 6 + gather_levels(params)


def quiet_cycles(params: DesignParams) -> int:
    """Count the cycles without a sign of life after which nothing is left inside.

    A word reaches the sequencer's ``busy`` so many cycles after its command: command to the core's
    register (1), the OR over the cores (:func:`gather_levels`), the OR with the tree (1). A result
    that leaves a core is inside the tree in the next cycle, and the tree is seen sooner than the
    cores. Twice as many are waited for.
    """
    return 2 * (2 + gather_levels(params))


def core_domains(params: DesignParams) -> list[str]:
    """Return the clock domain of each core where each has a reset of its own, none of an index."""
    if params.design == "splitjoin-hash":
        return []
    return [f"core{index}" for index in range(params.cores)]


def with_reset(core: Component, index: int, *, own_resets: bool) -> Any:
    """Return a core in the domain of its own (:func:`core_domains`), or as it is."""
    return DomainRenamer(f"core{index}")(core) if own_resets else core


def registered_or(m: Module, bits: Sequence[Value]) -> Value:
    """OR many bits through registers, ``FANIN`` a level; ``gather_levels`` cycles late."""
    while True:
        groups: list[Value] = []
        for first in range(0, len(bits), FANIN):
            group = Signal(name="or_group")
            m.d.sync += group.eq(Cat(*bits[first : first + FANIN]).any())
            groups.append(group)
        if len(groups) == 1:
            return groups[0]
        bits = groups


def registered_sum(m: Module, numbers: Sequence[Value]) -> Value:
    """Add many numbers through registers, ``FANIN`` a level; ``gather_levels`` cycles late."""
    while True:
        groups: list[Value] = []
        for first in range(0, len(numbers), FANIN):
            total = sum(numbers[first : first + FANIN], Const(0, 1))
            group = Signal(len(total), name="sum_group")
            m.d.sync += group.eq(total)
            groups.append(group)
        if len(groups) == 1:
            return groups[0]
        numbers = groups


class CoreInstance(Component):
    """A core by reference to its Verilog module.

    All cores are then emitted and compiled once. Amaranth's simulator cannot look inside.
    """

    def __init__(self, members: Mapping[str, wiring.Member]) -> None:
        super().__init__(dict(members))

    def elaborate(self, _platform: object) -> Module:
        """Connect every port by its flat name."""
        m = Module()
        ports: dict[str, object] = {"i_clk": ClockSignal(), "i_rst": ResetSignal()}
        for path, member, value in self.signature.flatten(self):
            direction = "i" if member.flow == In else "o"
            ports[f"{direction}_{'__'.join(str(part) for part in path)}"] = value
        m.submodules.core = Instance(CORE_MODULE, **ports)
        return m


def evicted_count(params: DesignParams) -> dict[str, wiring.Member]:
    """Return the port ``evicted`` of an array, none for a design without timestamps."""
    sides = 2 if params.design == "splitjoin" else 1
    return {"evicted": Out(bits_for(sides * params.cores))} if params.timestamp_bits else {}


def gathered_members(params: DesignParams) -> dict[str, wiring.Member]:
    """Ports of an array that :func:`collect` drives, but the results."""
    return {"held": Out(1), "busy": Out(1), **evicted_count(params)}


def collect(m: Module, params: DesignParams, cores: Sequence[Any], out: Any) -> None:
    """Connect what all cores give to the array ``out``.

    ``results`` through a merge tree; ``held``, some core's ``hold``; ``busy``, something is inside;
    with timestamps ``evicted``, how many tuples left before their time; all from registers.
    """
    m.submodules.tree = tree = MergeTree(result_layout(params), params.cores, params.merge_arity)
    for index, core in enumerate(cores):
        wiring.connect(m, core.results, tree.input(index))
    wiring.connect(m, tree.o, wiring.flipped(out.results))
    m.d.comb += out.held.eq(registered_or(m, [core.hold for core in cores]))
    cores_busy = registered_or(m, [core.busy for core in cores])
    m.d.sync += out.busy.eq(cores_busy | tree.busy)
    if params.timestamp_bits:
        m.d.comb += out.evicted.eq(registered_sum(m, [core.evicted for core in cores]))


class ResetTree(Component):
    """Registers that take a reset to many places in the same cycle.

    Every leaf is as many registers behind the input as any other, and every register feeds
    :data:`FANOUT` others at most. They have no reset themselves.

    Parameters
    ----------
    leaves : int
        Places, at least 1.

    Members
    -------
    i : In(1)
        From a register.
    o : Out(leaves)
        The same some cycles later, from registers of their own.
    busy : Out(1)
        A reset is on its way, or arrives in this cycle.
    """

    i: Signal
    o: Signal
    busy: Signal

    def __init__(self, leaves: int) -> None:
        counts = [leaves]
        while counts[0] > FANOUT:
            counts.insert(0, math.ceil(counts[0] / FANOUT))
        self.counts = counts
        super().__init__({"i": In(1), "o": Out(leaves), "busy": Out(1)})

    def elaborate(self, _platform: object) -> Module:
        """Build the levels, the input's side first."""
        m = Module()
        above, firsts = [self.i], [self.i]
        for level, count in enumerate(self.counts):
            # Tools would make one register of those that hold the same.
            here = [
                Signal(init=1, reset_less=True, attrs={"keep": 1}, name=f"reset{level}_{index}")
                for index in range(count)
            ]
            m.d.sync += [each.eq(above[index // FANOUT]) for index, each in enumerate(here)]
            firsts.append(here[0])
            above = here
        m.d.comb += [self.o.eq(Cat(above)), self.busy.eq(Cat(firsts).any())]
        return m
