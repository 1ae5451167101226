"""Result collection: round-robin mergers, links between them and the tree made of both."""

import math
from typing import Any

from amaranth.hdl import Cat, Module, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from streamjoin_hw.rtl.queues import ResultQueue
from streamjoin_hw.rtl.streams import Component, PingPongReg, bits_of, empty_at, one_of, payload_of

LINK_WORDS = 8
"""Words of a link's queue: twice those that are on their way to it."""


class Link(Component):
    """A way from one stream to another, far from each other: a register, and a queue behind it.

    Latency 3 cycles, throughput 1 payload a cycle. ``i.ready`` and all of ``o`` are registers.

    Parameters
    ----------
    layout : StructLayout
        Layout of the payload.
    words : int
        Of the queue.
    clear : Signal, optional
        Empties it at the next edge, in place of the domain's reset, which then does not reach it.

    Members
    -------
    i : In(stream.Signature(layout))
    o : Out(stream.Signature(layout))
    busy : Out(1)
        A payload is inside.

    Attributes
    ----------
    soon : Signal
        ``i.ready`` in the next cycle.
    """

    RESERVE = 4
    """Of its queue: what ``few`` does not show yet, what has set out, and ``few`` on its way."""

    i: stream.Interface
    o: stream.Interface
    busy: Signal

    def __init__(
        self,
        layout: data.Layout,
        words: int = LINK_WORDS,
        *,
        clear: Signal | None = None,
    ) -> None:
        self.layout = layout
        self.words = words
        self.clear = clear
        self.soon = Signal()
        super().__init__(
            {
                "i": In(stream.Signature(layout)),
                "o": Out(stream.Signature(layout)),
                "busy": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the registers of both directions, and the queue."""
        m = Module()
        m.submodules.queue = queue = ResultQueue(self.layout, self.words, self.RESERVE, self.clear)
        payload = payload_of(self.layout)
        valid, shut = bits_of(self.clear, "valid", "shut")
        m.d.sync += [
            payload.eq(self.i.payload),
            valid.eq(self.i.valid & self.i.ready),
            shut.eq(queue.few),
        ]
        empty_at(m, self.clear, (valid,))
        m.d.comb += [
            self.i.ready.eq(~shut),
            queue.word.eq(payload),
            queue.write.eq(valid),
            self.o.payload.eq(queue.head),
            self.o.valid.eq(queue.is_there),
            queue.take.eq(self.o.ready),
            self.busy.eq(valid | queue.busy),
            self.soon.eq(~queue.few),
        ]
        return m


def following(turn: Signal, offered: Value) -> Value:
    """Return whose turn it is next: of the inputs that offer, the first one after that of ``turn``.

    A bit for each input, as in both arguments: 1 if it offers, some other one has its turn, and
    none between them offers. No bit waits for another.
    """
    inputs = len(turn)
    return Cat(
        offered[k]
        & Cat(
            turn[k - back] & ~Cat(offered[k - nearer] for nearer in range(1, back)).any()
            for back in range(1, inputs)
        ).any()
        for k in range(inputs)
    )


class Merger(Component):
    """Merge several streams into one, taking turns.

    After an input was served every other one with something to offer is served before it again,
    so a payload waits for at most ``inputs - 1`` others. A register holds whose turn it is, chosen
    one cycle ahead: latency 1 cycle for the input whose turn it is, 2 for another one, if
    nothing else is offered. Throughput 1 payload a cycle: a cycle is lost only when the last
    payload of one input was taken and the next one, of another input, arrives later. No path
    leads from the output to an input or back. In front of a link a register is on either way:
    latency 4 for another input, a payload may wait for two others more, and two cycles are lost
    after the last payload of an input while others go on.

    Parameters
    ----------
    layout : Layout
        Layout of the payload.
    inputs : int
        Streams to merge, at least 1.
    clear : Signal, optional
        Empties it at the next edge, in place of the domain's reset, which then does not reach it.
    output : Component, optional
        What takes the payloads, as a :class:`~streamjoin_hw.rtl.streams.Stage` does, in place of
        a register stage. If it says ``soon`` that ``i.ready`` will be 1 in the next cycle, it is a
        link, and the inputs' ``ready`` are registers.

    Members
    -------
    i : In(stream.Signature(layout)).array(inputs)
    o : Out(stream.Signature(layout))
    busy : Out(1)
        A payload is inside.
    """

    i: Any
    o: stream.Interface
    busy: Signal

    def __init__(
        self,
        layout: data.Layout,
        inputs: int,
        clear: Signal | None = None,
        output: Any = None,
    ) -> None:
        self.inputs = inputs
        self.clear = clear
        self.output = PingPongReg(layout, clear) if output is None else output
        super().__init__(
            {
                "i": In(stream.Signature(layout)).array(inputs),
                "o": Out(stream.Signature(layout)),
                "busy": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the turns."""
        m = Module()
        m.submodules.output = output = self.output
        streams = list(self.i)
        offered = Cat(*(each.valid for each in streams))
        # Bit k of `turn`: it is input k's turn. Never none, never two.
        turn = Signal(self.inputs, init=1, reset_less=self.clear is not None)
        soon = output.soon
        # An input that has its turn keeps it until it is served, and after that while no other
        # one offers anything.
        seen: Value = offered
        held_up = ~output.i.ready & (turn & offered).any()
        ready: Value = turn & output.i.ready.replicate(self.inputs)
        if soon is not None:
            # In front of a link the inputs are far, so there is a register in each direction: the
            # turn depends on what was offered a cycle ago and reaches the inputs a cycle later.
            # It moves on without regard to whether a payload was taken.
            seen = payload_of(self.inputs, name="seen")
            ready = Signal(self.inputs, name="ready", reset_less=self.clear is not None)
            held_up = ~soon
            m.d.sync += [seen.eq(offered), ready.eq(turn & soon.replicate(self.inputs))]
        alone = Cat(
            ~Cat(other for j, other in enumerate(seen) if j != k).any() for k in range(self.inputs)
        )
        held = held_up.replicate(self.inputs)
        m.d.sync += turn.eq((following(turn, seen) & ~held) | (turn & (alone | held)))
        empty_at(m, self.clear, (turn,))
        for k, each in enumerate(streams):
            m.d.comb += each.ready.eq(ready[k])
        chosen = turn if soon is None else ready
        payload = one_of([(chosen[k], each.payload) for k, each in enumerate(streams)])
        m.d.comb += [
            output.i.payload.eq(payload),
            output.i.valid.eq((chosen & offered).any()),
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
    """A tree of mergers over any number of streams, each at the near end of a link.

    So no path leads from a merger to the next one. Latency three cycles a level and, while nothing
    else is inside, six at most. Results of one input keep their order; between inputs there is
    none.

    Parameters
    ----------
    layout : Layout
        Layout of the payload.
    leaves : int
        Streams to merge, at least 1.
    arity : int
        Inputs of one merger, at least 2.
    clear : Signal, optional
        As of :class:`Merger`.
    **more : Member
        Ports of a tree that has more of them.

    Members
    -------
    i : In(stream.Signature(layout)).array(leaves)
    o : Out(stream.Signature(layout))
    busy : Out(1)
        A payload is inside; from a register, one cycle late.
    """

    i: Any
    o: stream.Interface
    busy: Signal

    def __init__(
        self,
        layout: data.Layout,
        leaves: int,
        arity: int,
        clear: Signal | None = None,
        **more: wiring.Member,
    ) -> None:
        self.clear = clear
        self.levels = tree_levels(leaves, arity)
        self.layout = layout
        self.leaves = leaves
        self.arity = arity
        super().__init__(
            {
                **more,
                "i": In(stream.Signature(layout)).array(leaves),
                "o": Out(stream.Signature(layout)),
                "busy": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build level after level until one stream is left."""
        m = Module()
        streams: list[Any] = [wiring.flipped(each) for each in self.i]
        busy = []
        for level in range(self.levels):
            merged: list[stream.Interface] = []
            for first in range(0, len(streams), self.arity):
                group = streams[first : first + self.arity]
                merger = self.merger(m, len(group))
                m.submodules[f"merger{level}_{len(merged)}"] = merger
                for k, each in enumerate(group):
                    wiring.connect(m, each, merger.i[k])
                merged.append(merger.o)
                busy.append(merger.busy)
            streams = merged
        wiring.connect(m, streams[0], wiring.flipped(self.o))
        some = Signal(reset_less=self.clear is not None)
        m.d.sync += some.eq(Cat(*busy).any())
        m.d.comb += self.busy.eq(some)
        return m

    def merger(self, _m: Module, inputs: int) -> Any:
        """Make one of its mergers; another tree may have others."""
        output = Link(self.layout, clear=self.clear)
        return Merger(self.layout, inputs, self.clear, output)
