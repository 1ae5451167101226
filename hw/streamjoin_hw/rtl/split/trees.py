"""The trees behind the cores: results collected side by side, in the order that is promised."""

from collections.abc import Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Mux, Signal, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.split.layouts import is_star, row_bits, star_member, token_layout
from streamjoin_hw.rtl.split.links import gathered_or, leaf_levels
from streamjoin_hw.rtl.split.queue import has_root_queues, queue_places
from streamjoin_hw.rtl.streams import Component, PipeReg, bits_of, empty_at, one_of
from streamjoin_hw.rtl.trees import Link, Merger, tree_levels


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
    output : Component, optional
        What takes the results: a :class:`~streamjoin_hw.rtl.trees.Link`, or else a register
        stage.
    clear : Signal, optional
        As of :class:`~streamjoin_hw.rtl.trees.Merger`, for all but ``output``.

    Members
    -------
    control : In(control_layout(params))
        Constant while a payload is inside.
    i : In(stream.Signature(token_layout(params))).array(inputs)
    o : Out(stream.Signature(token_layout(params)))
    busy : Out(1)
        A payload is inside.
    """

    control: Any
    i: Any
    o: stream.Interface
    busy: Signal

    def __init__(
        self,
        params: DesignParams,
        inputs: int,
        output: Any = None,
        clear: Signal | None = None,
    ) -> None:
        self.params = params
        self.inputs = inputs
        self.clear = clear
        layout = token_layout(params)
        self.output: Any = PipeReg(layout) if output is None else output
        super().__init__(
            {
                "control": In(control_layout(params)),
                "i": In(stream.Signature(layout)).array(inputs),
                "o": Out(stream.Signature(layout)),
                "busy": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build the choice and the output register."""
        m = Module()
        m.submodules.output = output = self.output
        streams = list(self.i)
        # An input is held at its star: it offers no result.
        results = Signal(self.inputs)
        stars = Signal(self.inputs)
        for k, each in enumerate(streams):
            star = is_star(self.params, each.p)
            m.d.comb += [results[k].eq(each.valid & ~star), stars[k].eq(each.valid & star)]
        together = stars.all()
        waits = Signal(self.inputs)
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
        pairs = [(a, b) for b in inputs for a in range(b)]
        bits = bits_of(self.clear, *(f"second{a}_{b}" for a, b in pairs))
        second = dict(zip(pairs, bits, strict=True))
        for k, each in enumerate(streams):
            with m.If(results[k] & each.ready):
                m.d.sync += [bit.eq(a <= k < b) for (a, b), bit in second.items()]
        empty_at(m, self.clear, bits)
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


class CollectionTree(Component):
    """A tree of mergers over the halves of one side, the leaves in the order of the cores.

    SplitJoin, section 5. Latency ``stages`` cycles: a merger for each level, and behind it a queue
    at the far end of a link, so that nothing waits for what is decided elsewhere; at the root a
    register stage, where a queue in block RAM follows. Mergers without order need another cycle
    where it is not the turn of what is alone.

    Parameters
    ----------
    params : DesignParams
        The design: its cores, and the arity of the tree.
    clears : sequence of Signal
        A reset for each core, which obeys it a cycle late. So does what is behind the cores: no
        other reset reaches more of it than a register stage at the root.

    Members
    -------
    control : In(control_layout(params))
    i : In(stream.Signature(token_layout(params))).array(cores)
    o : Out(stream.Signature(token_layout(params)))
    busy : Out(1)
        A payload is inside; from registers, a cycle late for each level.
    """

    control: Any
    i: Any
    o: stream.Interface
    busy: Signal

    def __init__(self, params: DesignParams, clears: Sequence[Signal]) -> None:
        self.params = params
        self.clears = clears
        self.levels = tree_levels(params.cores, params.merge_arity)
        token = stream.Signature(token_layout(params))
        super().__init__(
            {
                "control": In(control_layout(params)),
                "i": In(token).array(params.cores),
                "o": Out(token),
                "busy": Out(1),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Build level after level until one stream is left."""
        m = Module()
        params, arity = self.params, self.params.merge_arity
        streams: list[Any] = [wiring.flipped(each) for each in self.i]
        busy: list[Value] = []
        for level in range(self.levels):
            mergers: list[Any] = []
            for first in range(0, len(streams), arity):
                group = streams[first : first + arity]
                clear = self._clear(m, level, first)
                output = self._output(level, clear)
                if params.order == "none":
                    merger: Any = Merger(token_layout(params), len(group), clear, output)
                else:
                    merger = StarMerger(params, len(group), output, clear)
                    m.d.comb += merger.control.eq(self.control)
                m.submodules[f"merger{level}_{len(mergers)}"] = merger
                for k, each in enumerate(group):
                    wiring.connect(m, each, merger.i[k])
                mergers.append(merger)
                busy.append(merger.busy)
            streams = [merger.o for merger in mergers]
        wiring.connect(m, streams[0], wiring.flipped(self.o))
        m.d.comb += self.busy.eq(gathered_or(m, busy, arity))
        return m

    def _clear(self, m: Module, level: int, first: int) -> Signal:
        """Make what empties a merger of ``level`` whose first input is ``first``, near it.

        All of a tree is emptied in the cycle in which the cores are reset. Each level follows
        other cores, so that few of these registers are given the same: synthesis takes such for
        one, whose wires then are longer.
        """
        core = min(first * self.params.merge_arity**level + level, self.params.cores - 1)
        clear = Signal(init=1, name="clear", reset_less=True)
        m.d.sync += clear.eq(self.clears[core])
        return clear

    def _output(self, level: int, clear: Signal) -> Any:
        """Make what is behind a merger: at the root a long queue, if none is to follow."""
        layout = token_layout(self.params)
        if level < self.levels - 1 or (level == 0 and has_root_queues(self.params)):
            return Link(layout, clear=clear)
        if has_root_queues(self.params):
            return PipeReg(layout)
        return Link(layout, queue_places(self.params), clear=clear)


def tree_stages(params: DesignParams) -> int:
    """Count the cycles that a tuple spends in a distribution tree and its match in the other one.

    A level of the first takes one, of which there are two at least, and so does a register in front
    of it where no queue is; a link behind a merger three, a register stage behind the last one, and
    the combiner, one.
    """
    cores, arity = params.cores, params.merge_arity
    levels = tree_levels(cores, arity)
    entry = 0 if has_root_queues(params) else 1
    root = 1 if has_root_queues(params) and levels > 1 else 3
    return entry + leaf_levels(cores, arity) + 3 * (levels - 1) + root + 1
