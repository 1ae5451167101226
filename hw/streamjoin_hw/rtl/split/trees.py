"""The trees around the cores: tuples spread to all, results collected side by side."""

from typing import Any

from amaranth.hdl import Cat, Module, Mux, Shape, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.fifo import SyncFIFO
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.split.layouts import is_star, row_bits, star_member, token_layout
from streamjoin_hw.rtl.streams import Component, PipeReg, one_of
from streamjoin_hw.rtl.trees import MergeTree, tree_levels


class Fork(Component):
    """Hand every payload to several takers, each in its own time.

    Throughput 1 payload a cycle if all takers are ready. Latency 1 cycle.

    Parameters
    ----------
    layout : Layout
        Layout of the payload.
    outputs : int
        Takers, at least 1.

    Members
    -------
    i : In(stream.Signature(layout))
    o<k> : Out(stream.Signature(layout)), k from 0 to outputs - 1
    busy : Out(1)
        A payload is inside.
    """

    i: stream.Interface
    busy: Signal

    def __init__(self, layout: data.Layout, outputs: int) -> None:
        self.layout = layout
        self.outputs = outputs
        super().__init__(
            {
                "i": In(stream.Signature(layout)),
                **{f"o{k}": Out(stream.Signature(layout)) for k in range(outputs)},
                "busy": Out(1),
            }
        )

    def output(self, k: int) -> stream.Interface:
        """Return output stream ``k``."""
        port: stream.Interface = getattr(self, f"o{k}")
        return port

    def elaborate(self, _platform: object) -> Module:
        """Build the register stage and a bit for each taker that was served already."""
        m = Module()
        m.submodules.front = stage = PipeReg(self.layout)
        wiring.connect(m, wiring.flipped(self.i), stage.i)
        m.d.comb += self.busy.eq(stage.busy)
        front = stage.o
        served, ready = Signal(self.outputs), Signal(self.outputs)
        for k in range(self.outputs):
            each = self.output(k)
            m.d.comb += [
                each.payload.eq(front.payload),
                each.valid.eq(front.valid & ~served[k]),
                ready[k].eq(each.ready | served[k]),
            ]
        m.d.comb += front.ready.eq(ready.all())
        m.d.sync += served.eq(Mux(front.valid & ~ready.all(), ready, 0))
        return m


class DistributionTree(Component):
    """A tree of forks: every payload reaches every leaf, in order.

    Latency ``levels`` cycles. SplitJoin, section 4.3.

    Parameters
    ----------
    layout : Layout
        Layout of the payload.
    leaves : int
        Takers, at least 1.
    arity : int
        Maximum outputs of one fork, at least 2.

    Members
    -------
    i : In(stream.Signature(layout))
    o<k> : Out(stream.Signature(layout)), k from 0 to leaves - 1
    busy : Out(1)
        A payload is inside; from a register, one cycle late.
    """

    i: stream.Interface
    busy: Signal

    def __init__(self, layout: data.Layout, leaves: int, arity: int) -> None:
        self.levels = tree_levels(leaves, arity)
        self.layout = layout
        self.leaves = leaves
        self.arity = arity
        super().__init__(
            {
                "i": In(stream.Signature(layout)),
                **{f"o{k}": Out(stream.Signature(layout)) for k in range(leaves)},
                "busy": Out(1),
            }
        )

    def output(self, k: int) -> stream.Interface:
        """Return output stream ``k``."""
        port: stream.Interface = getattr(self, f"o{k}")
        return port

    def elaborate(self, _platform: object) -> Module:
        """Build level after level from the leaves to the root."""
        m = Module()
        takers: list[Any] = [wiring.flipped(self.output(k)) for k in range(self.leaves)]
        busy = []
        for level in range(self.levels):
            above: list[Any] = []
            for first in range(0, len(takers), self.arity):
                group = takers[first : first + self.arity]
                fork = Fork(self.layout, len(group))
                m.submodules[f"fork{level}_{len(above)}"] = fork
                for k, each in enumerate(group):
                    wiring.connect(m, fork.output(k), each)
                above.append(fork.i)
                busy.append(fork.busy)
            takers = above
        wiring.connect(m, wiring.flipped(self.i), takers[0])
        m.d.sync += self.busy.eq(Cat(*busy).any())
        return m


QUEUED_TUPLES = 32
"""Tuples that a core with shared comparators may be behind the others: as many as a LUT RAM has
words."""


class QueuedTree(DistributionTree):
    """A tree of forks whose leaves are queues, so that it sees the cores' ready through registers.

    Members, latency and throughput are those of :class:`DistributionTree`; a group of queues stands
    where that has a fork of the last level. Cores with shared comparators do not always collect for
    the same half at the same time: with long queues none waits for the others while it has tuples.

    Parameters
    ----------
    layout, leaves, arity
        As of :class:`DistributionTree`.
    tuples : int
        Tuples that a queue holds: 2, a register stage, or more, in a memory.
    """

    def __init__(self, layout: data.Layout, leaves: int, arity: int, tuples: int) -> None:
        self.tuples = tuples
        super().__init__(layout, leaves, arity)

    def elaborate(self, _platform: object) -> Module:
        """Build groups of queues and a tree above them, if there is more than one."""
        m = Module()
        firsts = range(0, self.leaves, self.arity)
        heads: list[Any] = [wiring.flipped(self.i)]
        busy: list[Value] = []
        if len(firsts) > 1:
            m.submodules.tree = tree = DistributionTree(self.layout, len(firsts), self.arity)
            wiring.connect(m, wiring.flipped(self.i), tree.i)
            heads = [tree.output(number) for number in range(len(firsts))]
            busy.append(tree.busy)
        for head, first in zip(heads, firsts, strict=True):
            entries = []
            for k in range(first, min(first + self.arity, self.leaves)):
                entry, end = self._queue(m, f"queue{k}")
                entries.append(entry)
                each = self.output(k)
                m.d.comb += [
                    each.payload.eq(end.payload),
                    each.valid.eq(end.valid),
                    end.ready.eq(each.ready),
                ]
                busy.append(end.valid)
            room = Signal(name=f"room{first}")
            m.d.comb += [room.eq(Cat(entry.ready for entry in entries).all()), head.ready.eq(room)]
            for entry in entries:
                m.d.comb += [entry.payload.eq(head.payload), entry.valid.eq(head.valid & room)]
        m.d.sync += self.busy.eq(Cat(*busy).any())
        return m

    def _queue(self, m: Module, name: str) -> tuple[Any, Any]:
        """Build a queue; return its streams."""
        if self.tuples == 2:
            m.submodules[name] = stage = PipeReg(self.layout)
            return stage.i, stage.o
        m.submodules[name] = fifo = SyncFIFO(width=Shape.cast(self.layout).width, depth=self.tuples)
        return fifo.w_stream, fifo.r_stream


def control_layout(params: DesignParams) -> data.StructLayout:
    """Layout of what is set for a whole input: which order, how exact.

    ``outer``: stars are there and separate the results of tuples. ``inner``: between two stars
    results are also ordered by ``row & row_mask``.
    """
    inner = {"inner": 1, "row_mask": row_bits(params)} if params.order == "inner" else {}
    return data.StructLayout({"outer": 1, **inner})


class StarMerger(Component):
    """Merge the halves of one side: none gets past its star until all have theirs.

    Results in front of the stars are taken in turns; under the inner order the one of the lowest
    row, of equal ones the first input's, once every input offers something. The stars of all
    inputs become one. SplitJoin, algorithm 5. Latency 1 cycle, throughput 1 payload a cycle.

    Parameters
    ----------
    params : DesignParams
        The design.
    inputs : int
        Streams to merge, at least 1.

    Members
    -------
    control : In(control_layout(params))
        Constant while a payload is inside.
    i<k> : In(stream.Signature(token_layout(params))), k from 0 to inputs - 1
    o : Out(stream.Signature(token_layout(params)))
    busy : Out(1)
        A payload is inside.
    """

    control: Any
    o: stream.Interface
    busy: Signal

    def __init__(self, params: DesignParams, inputs: int) -> None:
        self.params = params
        self.inputs = inputs
        layout = token_layout(params)
        super().__init__(
            {
                "control": In(control_layout(params)),
                **{f"i{k}": In(stream.Signature(layout)) for k in range(inputs)},
                "o": Out(stream.Signature(layout)),
                "busy": Out(1),
            }
        )

    def input(self, k: int) -> stream.Interface:
        """Return input stream ``k``."""
        port: stream.Interface = getattr(self, f"i{k}")
        return port

    def elaborate(self, _platform: object) -> Module:
        """Build the choice and the output register."""
        m = Module()
        m.submodules.output = output = PipeReg(token_layout(self.params))
        streams = [self.input(k) for k in range(self.inputs)]
        # An input is held at its star: it offers no result.
        results, stars = Signal(self.inputs), Signal(self.inputs)
        for k, each in enumerate(streams):
            star = is_star(self.params, each.p)
            m.d.comb += [results[k].eq(each.valid & ~star), stars[k].eq(each.valid & star)]
        together, waits = stars.all(), Signal(self.inputs)
        m.d.comb += waits.eq(self._beaten(m, streams, results))
        if self.params.order == "inner":
            with m.If(self.control.inner):
                complete = (results | stars).all()
                m.d.comb += waits.eq(Mux(complete, self._behind(streams, results), -1))
        # An input may be ready although it offers nothing: it waits for the others alone.
        for k, each in enumerate(streams):
            held = waits[k] | is_star(self.params, each.p)
            m.d.comb += each.ready.eq((~held | together) & output.i.ready)
        grant = results & ~waits
        granted = zip(grant, streams, strict=True)
        m.d.comb += [
            output.i.payload.eq(one_of([(bit, each.payload) for bit, each in granted])),
            output.i.valid.eq(grant.any() | together),
            self.busy.eq(output.busy),
        ]
        # A star carries nothing else: no payload waits for whether all have theirs.
        if star_member(self.params):
            m.d.comb += output.i.p.star.eq(together)
        wiring.connect(m, output.o, wiring.flipped(self.o))
        return m

    def _beaten(self, m: Module, streams: list[Any], results: Signal) -> Value:
        """Return for each input whether one with a result is before it, in turns.

        For each two inputs a register says whether the later one is first. So an input sees of
        each other one that bit, ``valid`` and star: a LUT.
        """
        inputs = range(self.inputs)
        # Those behind the input served last are before the others, otherwise the first is.
        second = {(a, b): Signal(name=f"second{a}_{b}") for b in inputs for a in range(b)}
        for k, each in enumerate(streams):
            with m.If(results[k] & each.ready):
                m.d.sync += [bit.eq(a <= k < b) for (a, b), bit in second.items()]
        beaten = []
        for k in inputs:
            others = [results[a] & ~second[a, k] for a in range(k)]
            others += [results[b] & second[k, b] for b in range(k + 1, self.inputs)]
            beaten.append(Cat(*others).any())
        return Cat(*beaten)

    def _behind(self, streams: list[Any], results: Signal) -> Value:
        """Return which inputs are not the one whose result has the lowest row.

        Of one group the first input's is. Rows are cyclic and near each other; their groups are
        not, so that rows are compared whole.
        """
        rows = [each.p.row for each in streams]

        def before(a: int, b: int) -> Value:
            less: Value = (rows[a] - rows[b])[row_bits(self.params) - 1]
            apart: Value = ((rows[a] ^ rows[b]) & self.control.row_mask).any()
            return less & apart

        behind = []
        for k in range(self.inputs):
            beaten = [results[a] & ~before(k, a) for a in range(k)]
            beaten += [results[a] & before(a, k) for a in range(k + 1, self.inputs)]
            behind.append(Cat(*beaten).any())
        return Cat(*behind)


class CollectionTree(MergeTree):
    """A tree of star mergers over the halves of one side, the leaves in the order of the cores.

    SplitJoin, section 5.

    Parameters
    ----------
    params : DesignParams
        The design: its cores, and the arity of the tree.

    Members
    -------
    control : In(control_layout(params))

    The other members are those of :class:`~streamjoin_hw.rtl.trees.MergeTree`.
    """

    control: Any

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        super().__init__(
            token_layout(params),
            params.cores,
            params.merge_arity,
            control=In(control_layout(params)),
        )

    def merger(self, m: Module, inputs: int) -> Any:
        """Make a star merger."""
        made = StarMerger(self.params, inputs)
        m.d.comb += made.control.eq(self.control)
        return made
