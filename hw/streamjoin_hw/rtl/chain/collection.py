"""What a chain gives: the results of all lines, and what is said of all cores."""

from collections.abc import Callable, Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import data, stream, wiring

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.chain.line import connect_lines, lines_of_cores
from streamjoin_hw.rtl.chain.spread import gathered_or, gathered_sum
from streamjoin_hw.rtl.core_array import CoreInstance
from streamjoin_hw.rtl.matching import by_side
from streamjoin_hw.rtl.streams import Component, PipeReg, met_layout
from streamjoin_hw.rtl.trees import Merger, MergeTree


class FarMerger(Component):
    """A merger with a register stage at every input, which can lie between it and what is far.

    Parameters, members and throughput are those of :class:`~streamjoin_hw.rtl.trees.Merger`; the
    latency is a cycle more.
    """

    o: stream.Interface
    busy: Signal

    def __init__(self, layout: data.Layout, inputs: int) -> None:
        self.merger = Merger(layout, inputs)
        super().__init__(dict(self.merger.signature.members))

    def input(self, k: int) -> stream.Interface:
        """Return input stream ``k``."""
        port: stream.Interface = getattr(self, f"i{k}")
        return port

    def elaborate(self, _platform: object) -> Module:
        """Build the stages in front of the merger."""
        m = Module()
        m.submodules.merger = merger = self.merger
        busy = [merger.busy]
        for k in range(merger.inputs):
            m.submodules[f"stage{k}"] = stage = PipeReg(merger.layout)
            wiring.connect(m, wiring.flipped(self.input(k)), stage.i)
            wiring.connect(m, stage.o, merger.input(k))
            busy.append(stage.busy)
        wiring.connect(m, merger.o, wiring.flipped(self.o))
        m.d.comb += self.busy.eq(Cat(*busy).any())
        return m


class FarTree(MergeTree):
    """The tree of a chain's lines: two cycles a level, and one more for each turn."""

    def merger(self, _m: Module, inputs: int) -> Any:
        """Make one of its mergers."""
        return FarMerger(self.layout, inputs)


def make_cores(
    m: Module, params: DesignParams, make: Callable[[], Any], resets: Sequence[Value], known: Any
) -> list[Any]:
    """Add the cores: made each, or, where their ports are ``known``, by reference to their module.

    ``resets`` are those of the lines. What is made is reset by its clock domain beside it.
    """
    cores = []
    for index, line in enumerate(lines_of_cores(params.cores)):
        core = make() if known is None else CoreInstance(known, resets[line])
        m.submodules[f"core{index}"] = core if known else ResetInserter(resets[line])(core)
        cores.append(core)
    return cores


def collect(
    m: Module,
    params: DesignParams,
    cores: Sequence[Any],
    out: Any,
    *,
    resets: Sequence[Value],
    settling: Value,
) -> None:
    """Connect what all cores give to the array ``out``.

    ``results`` by lines, and from their ends through a merge tree if there are several; ``held``,
    some core's ``hold``; ``busy``, something is inside; with timestamps ``evicted``, how many
    tuples left before their time; all from registers. Each line has one of ``resets``; while they
    are ``settling``, nothing is given.
    """
    layout = met_layout(params)
    ends = connect_lines(m, layout, cores, resets)
    given, busy = [], [end.busy for end in ends]
    for end in ends:
        stream_o = stream.Signature(layout).create()
        m.d.comb += [
            stream_o.valid.eq(end.o.valid & ~settling),
            stream_o.payload.eq(end.o.payload),
            end.o.ready.eq(stream_o.ready),
        ]
        given.append(stream_o)
    met: Any = given[0]
    if len(ends) > 1:
        m.submodules.tree = tree = FarTree(layout, len(ends), params.merge_arity)
        for index, stream_o in enumerate(given):
            wiring.connect(m, stream_o, tree.input(index))
        met = tree.o
        busy.append(tree.busy)
    m.d.comb += [
        out.results.valid.eq(met.valid),
        met.ready.eq(out.results.ready),
        out.results.p.side.eq(met.p.side),
        *by_side(out.results.p, met.p.side, met.p.probe, met.p.met),
    ]
    m.d.comb += out.held.eq(gathered_or(m, params, [core.hold for core in cores]))
    cores_busy = gathered_or(m, params, [core.busy for core in cores])
    m.d.sync += out.busy.eq(cores_busy | Cat(*busy).any())
    if params.timestamp_bits:
        evicted = gathered_sum(m, params, [core.evicted for core in cores])
        m.d.comb += out.evicted.eq(Mux(settling, 0, evicted))
