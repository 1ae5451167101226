"""Long ways: registers that never wait, and a queue at the far end that has room for all of them.

What crosses a large part must not ask on its way whether it may go on: a register that waits is
enabled by something on its other side, and its wires are as long as the way. So a payload and its
``valid`` move on in every cycle, and the far end takes whatever arrives. It says early that little
room is left; what is on its way until the sender sees that still finds a place.
"""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Const, Module, Signal, Value
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from streamjoin_hw.rtl.queues import LANDING_PLACES, Landing, landing_places
from streamjoin_hw.rtl.streams import Component, flags_apart, payload_of
from streamjoin_hw.rtl.trees import tree_levels


def gathered_or(m: Module, bits: Sequence[Value], arity: int, *, init: int = 0) -> Value:
    """OR bits through registers, ``arity`` a gate; as many cycles late as such a tree has levels.

    With few inputs a gate the wires are as short as those of a tree over the same cores. At
    power-up all are ``init``; no reset reaches them.
    """
    for _ in range(tree_levels(len(bits), arity)):
        groups: list[Value] = []
        for first in range(0, len(bits), arity):
            group = Signal(name="some", init=init, reset_less=True)
            m.d.sync += group.eq(Cat(*bits[first : first + arity]).any())
            groups.append(group)
        bits = groups
    return bits[0]


def spread_bit(m: Module, bit: Value, leaves: int, arity: int) -> list[Signal]:
    """Hand a bit to many through registers, ``arity`` each, in :func:`leaf_levels` cycles.

    Until its registers are there (:func:`~streamjoin_hw.rtl.streams.flags_apart`) a leaf gets 1.
    """
    takers: list[Any] = [bit]
    counts = node_counts(leaves, arity, leaf_levels(leaves, arity))
    there = iter(flags_apart(m, sum(counts)))
    for level, count in reversed(list(enumerate(counts))):
        nodes = [Signal(name=f"spread{level}_{k}", init=1, reset_less=True) for k in range(count)]
        for k, node in enumerate(nodes):
            with m.If(next(there)):
                m.d.sync += node.eq(takers[k // arity])
        takers = nodes
    return takers


def node_counts(leaves: int, arity: int, levels: int) -> list[int]:
    """Count the registers of a tree on each level, from the leaves, one each, to the root's."""
    return [-(-leaves // arity**level) for level in range(levels)]


def leaf_levels(leaves: int, arity: int) -> int:
    """Count the cycles that a payload takes through a :class:`Spread`."""
    return max(2, tree_levels(leaves, arity))


class Spread(Component):
    """A tree of registers: every payload reaches every leaf, in order, and waits in its queue.

    Latency ``levels`` cycles, throughput 1 payload a cycle until some leaf's queue is nearly full.
    SplitJoin, section 4.3.

    Parameters
    ----------
    layout : StructLayout
        Layout of the payload.
    leaves : int
        Takers, at least 1.
    arity : int
        Maximum takers of one register, at least 2.
    places : int
        Payloads that a leaf's queue holds, at least.
    deciding : tuple of str
        See :class:`~streamjoin_hw.rtl.queues.Landing`.
    clears : sequence of Signal, optional
        For each leaf: empties its queue at the next edge, in place of the domain's reset, which
        then reaches nothing here. It comes once what was on its way to the leaf has arrived.

    Members
    -------
    i : In(stream.Signature(layout))
        ``ready`` is a register.
    o : Out(stream.Signature(layout)).array(leaves)
    busy : Out(1)
        A payload is inside; from registers, a cycle late for each level.
    """

    i: stream.Interface
    o: Any
    busy: Signal

    def __init__(
        self,
        layout: data.StructLayout,
        leaves: int,
        arity: int,
        places: int = LANDING_PLACES,
        *,
        deciding: tuple[str, ...] = (),
        clears: Sequence[Signal] = (),
    ) -> None:
        # At least one register: what decides that a payload sets out is far from the queues.
        self.levels = leaf_levels(leaves, arity)
        self.layout = layout
        self.leaves = leaves
        self.arity = arity
        self.deciding = deciding
        self.clears = clears
        # Down through a register for each level but the queues', up through one for each level.
        self.reserve = 2 * self.levels + 2
        self.places = landing_places(self.reserve, places)
        super().__init__(
            {
                "i": In(stream.Signature(layout)),
                "o": Out(stream.Signature(layout)).array(leaves),
                "busy": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build registers from the root to the queues, and what these say back to the root."""
        m = Module()
        above: list[tuple[Any, Value]] = [(self.i.payload, self.i.valid & self.i.ready)]
        busy: list[list[Value]] = []
        counts = node_counts(self.leaves, self.arity, self.levels)
        flags = flags_apart(m, sum(counts))
        there = iter(flags)
        for level, count in reversed(list(enumerate(counts))[1:]):
            nodes: list[tuple[Any, Value]] = []
            for k in range(count):
                payload = payload_of(self.layout)
                valid = Signal(name=f"valid{level}_{k}", reset_less=bool(self.clears))
                given, arrives = above[k // self.arity]
                with m.If(next(there)):
                    m.d.sync += [payload.eq(given), valid.eq(arrives)]
                nodes.append((payload, valid))
            above = nodes
            busy.append([valid for _, valid in nodes])
        few: list[Value] = []
        held = []
        for k in range(self.leaves):
            clear = self.clears[k] if self.clears else None
            queue = Landing(self.layout, self.places, self.reserve, self.deciding, clear)
            m.submodules[f"queue{k}"] = queue
            given, arrives = above[k // self.arity]
            each = self.o[k]
            m.d.comb += [
                queue.payload.eq(given),
                queue.arrives.eq(arrives & next(there)),
                each.payload.eq(queue.o.payload),
                each.valid.eq(queue.o.valid),
                queue.o.ready.eq(each.ready),
            ]
            few.append(queue.few)
            held.append(queue.o.valid)
        # Nothing comes before all are there.
        few[-1] = few[-1] | ~flags[-1]
        m.d.comb += self.i.ready.eq(~gathered_or(m, few, self.arity, init=1))
        # On its way up each level adds what is in its own registers.
        bits: list[Value] = held
        for level in range(1, self.levels + 1):
            own = busy[-level] if level < self.levels else [Const(0)]
            groups: list[Value] = []
            for k, here in enumerate(own):
                group = Signal(name=f"busy{level}_{k}", reset_less=True)
                below = bits[k * self.arity : (k + 1) * self.arity]
                m.d.sync += group.eq(here | Cat(*below).any())
                groups.append(group)
            bits = groups
        m.d.comb += self.busy.eq(bits[0])
        return m
