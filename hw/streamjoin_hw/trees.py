"""Result collection: round-robin mergers and the tree made of them."""

import math
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from streamjoin_hw.streams import Component, PipeReg, one_of


class Merger(Component):
    """Merge several streams into one, taking turns.

    After an input was served every other one with something to offer is served before it again,
    so a payload waits for at most ``inputs - 1`` others. Latency 1 cycle, throughput 1 payload
    a cycle. The output comes from registers; an input's ``ready`` depends on the inputs'
    ``valid`` and on registers.

    Parameters
    ----------
    layout : Layout
        Layout of the payload.
    inputs : int
        Streams to merge, at least 1.

    Members
    -------
    i<k> : In(stream.Signature(layout)), k from 0 to inputs - 1
    o : Out(stream.Signature(layout))
    busy : Out(1)
        A payload is inside.
    """

    o: stream.Interface
    busy: Signal

    def __init__(self, layout: data.Layout, inputs: int) -> None:
        self.layout = layout
        self.inputs = inputs
        super().__init__(
            {
                **{f"i{k}": In(stream.Signature(layout)) for k in range(inputs)},
                "o": Out(stream.Signature(layout)),
                "busy": Out(1),
            }
        )

    def input(self, k: int) -> stream.Interface:
        """Return input stream ``k``."""
        found: stream.Interface = getattr(self, f"i{k}")
        return found

    def elaborate(self, _platform: object) -> Module:
        """Build the arbiter and the output register."""
        m = Module()
        m.submodules.output = output = PipeReg(self.layout)
        streams = [self.input(k) for k in range(self.inputs)]
        offered = Cat(*(each.valid for each in streams))
        # Bit k of `later`: input k comes after the one served last.
        later = Signal(self.inputs)
        behind = Signal(self.inputs)
        grant = Signal(self.inputs)
        m.d.comb += behind.eq(offered & later)
        candidates = Mux(behind.any(), behind, offered)[: self.inputs]
        m.d.comb += grant.eq(candidates & (~candidates + 1)[: self.inputs])
        for k, each in enumerate(streams):
            m.d.comb += each.ready.eq(grant[k] & output.i.ready)
            with m.If(grant[k] & output.i.ready):
                m.d.sync += later.eq(((1 << self.inputs) - 1) & ~((2 << k) - 1))
        chosen = one_of([(grant[k], each.payload) for k, each in enumerate(streams)])
        m.d.comb += [
            output.i.payload.eq(chosen),
            output.i.valid.eq(offered.any()),
            self.busy.eq(output.busy),
        ]
        wiring.connect(m, output.o, wiring.flipped(self.o))
        return m


def tree_levels(leaves: int, arity: int) -> int:
    """Count the mergers that a payload passes in a tree.

    Raises
    ------
    ValueError
        If there are no leaves, or a merger would have fewer than two inputs.
    """
    if arity < 2:
        raise ValueError(f"arity must be at least 2, not {arity!r}")
    if leaves < 1:
        raise ValueError(f"leaves must be at least 1, not {leaves!r}")
    levels, streams = 1, math.ceil(leaves / arity)
    while streams > 1:
        levels, streams = levels + 1, math.ceil(streams / arity)
    return levels


class MergeTree(Component):
    """A tree of mergers over any number of streams.

    Latency ``levels`` cycles. Results of one input keep their order; between inputs there is
    none.

    Parameters
    ----------
    layout : Layout
        Layout of the payload.
    leaves : int
        Streams to merge, at least 1.
    arity : int
        Inputs of one merger, at least 2.
    **more : Member
        Ports of a tree that has more of them.

    Members
    -------
    i<k> : In(stream.Signature(layout)), k from 0 to leaves - 1
    o : Out(stream.Signature(layout))
    busy : Out(1)
        A payload is inside; from a register, one cycle late.
    """

    o: stream.Interface
    busy: Signal

    def __init__(self, layout: data.Layout, leaves: int, arity: int, **more: wiring.Member) -> None:
        self.levels = tree_levels(leaves, arity)
        self.layout = layout
        self.leaves = leaves
        self.arity = arity
        super().__init__(
            {
                **more,
                **{f"i{k}": In(stream.Signature(layout)) for k in range(leaves)},
                "o": Out(stream.Signature(layout)),
                "busy": Out(1),
            }
        )

    def input(self, k: int) -> stream.Interface:
        """Return input stream ``k``."""
        found: stream.Interface = getattr(self, f"i{k}")
        return found

    def elaborate(self, _platform: object) -> Module:
        """Build level after level until one stream is left."""
        m = Module()
        streams: list[Any] = [wiring.flipped(self.input(k)) for k in range(self.leaves)]
        busy = []
        for level in range(self.levels):
            merged: list[stream.Interface] = []
            for first in range(0, len(streams), self.arity):
                group = streams[first : first + self.arity]
                merger = self.merger(m, len(group))
                m.submodules[f"merger{level}_{len(merged)}"] = merger
                for k, each in enumerate(group):
                    wiring.connect(m, each, merger.input(k))
                merged.append(merger.o)
                busy.append(merger.busy)
            streams = merged
        wiring.connect(m, streams[0], wiring.flipped(self.o))
        m.d.sync += self.busy.eq(Cat(*busy).any())
        return m

    def merger(self, _m: Module, inputs: int) -> Any:
        """Make one of its mergers; another tree may have others."""
        return Merger(self.layout, inputs)
