"""All of SplitJoin between intake and output: trees, cores, combiner."""

from typing import Any

from amaranth.hdl import Const, Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import ORDERS, DesignParams
from streamjoin_hw.rtl.core_array import (
    CoreInstance,
    gathered_members,
    registered_or,
    registered_sum,
)
from streamjoin_hw.rtl.intake import ordered_layout
from streamjoin_hw.rtl.split.combiner import Combiner, combined_layout
from streamjoin_hw.rtl.split.core import SplitCore, split_core_members
from streamjoin_hw.rtl.split.layouts import row_bits
from streamjoin_hw.rtl.split.trees import CollectionTree, DistributionTree, control_layout
from streamjoin_hw.rtl.streams import Component, signal_of

OUTER, INNER = ORDERS.index("outer"), ORDERS.index("inner")


def setting_members(params: DesignParams) -> dict[str, wiring.Member]:
    """Ports for what is set at run time beside windows and widths; none for other designs."""
    if params.design != "splitjoin":
        return {}
    ordering = {"order": In(2), "punctuate": In(1)} if params.order != "none" else {}
    interval = {"interval": In(32)} if params.order == "inner" else {}
    return {**ordering, **interval, "masked": In(params.cores)}


class SplitArray(Component):
    """The cores between their trees.

    Parameters
    ----------
    params : DesignParams
        The design.
    by_reference : bool
        Instantiate the cores' Verilog module instead of elaborating each.

    Members
    -------
    i : In(stream.Signature(ordered_layout(params)))
    clear : In(1)
    idle : In(1)
        Between two inputs: the settings are looked at now, and kept while an input runs.
    order : In(2), punctuate : In(1), if there is an order
        Which order, an index of ``contract.ORDERS``, at most the one that the design is built for;
        whether stars are given.
    interval : In(32), if there is the inner order
        Rows of tuples, ``cores`` each, whose results need not be in order among each other; the
        largest power of two that divides it counts. 0 is all.
    masked : In(cores)
        Cores that find nothing.
    results : Out(stream.Signature(combined_layout(params)))
    held, busy, evicted
        As of :func:`~streamjoin_hw.rtl.core_array.collect`.
    """

    i: stream.Interface
    clear: Signal
    idle: Signal
    order: Signal
    punctuate: Signal
    interval: Signal
    masked: Signal
    results: stream.Interface
    held: Signal
    busy: Signal
    evicted: Signal

    def __init__(self, params: DesignParams, *, by_reference: bool = False) -> None:
        self.params = params
        self.by_reference = by_reference
        super().__init__(
            {
                "i": In(stream.Signature(ordered_layout(params))),
                "clear": In(1),
                "idle": In(1),
                **setting_members(params),
                "results": Out(stream.Signature(combined_layout(params))),
                **gathered_members(params),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Put the cores between the trees."""
        m = Module()
        params = self.params
        m.submodules.spread = spread = DistributionTree(
            ordered_layout(params), params.cores, params.merge_arity
        )
        m.submodules.r_tree = r_tree = CollectionTree(params)
        m.submodules.s_tree = s_tree = CollectionTree(params)
        m.submodules.combiner = combiner = Combiner(params)
        control, punctuate, masked = self._settings(m)

        cores: list[Any] = []
        for index in range(params.cores):
            members = split_core_members(params)
            core: Any = CoreInstance(members) if self.by_reference else SplitCore(params)
            m.submodules[f"core{index}"] = core
            wiring.connect(m, spread.output(index), core.i)
            wiring.connect(m, core.r_results, r_tree.input(index))
            wiring.connect(m, core.s_results, s_tree.input(index))
            m.d.comb += [
                core.index.eq(Const(index, len(core.index))),
                core.clear.eq(self.clear),
                core.masked.eq(masked[index]),
                core.ordered.eq(control.outer),
            ]
            cores.append(core)

        # A tuple sets out once its side can be remembered.
        m.d.comb += [
            spread.i.payload.eq(self.i.payload),
            spread.i.valid.eq(self.i.valid & combiner.room),
            self.i.ready.eq(spread.i.ready & combiner.room),
            combiner.side.eq(self.i.p.side),
            combiner.arrives.eq(self.i.valid & self.i.ready),
        ]
        for tree in (r_tree, s_tree, combiner):
            m.d.comb += tree.control.eq(control)
        wiring.connect(m, r_tree.o, combiner.i0)
        wiring.connect(m, s_tree.o, combiner.i1)

        # Stars end here unless they are wanted.
        out = combiner.o
        hidden = out.p.star & ~punctuate
        m.d.comb += [
            self.results.payload.eq(out.payload),
            self.results.valid.eq(out.valid & ~hidden),
            out.ready.eq(self.results.ready | hidden),
            self.held.eq(registered_or(m, [core.hold for core in cores])),
        ]
        cores_busy = registered_or(m, [core.busy for core in cores])
        trees_busy = spread.busy | r_tree.busy | s_tree.busy | combiner.busy
        m.d.sync += self.busy.eq(cores_busy | trees_busy)
        if params.timestamp_bits:
            m.d.comb += self.evicted.eq(registered_sum(m, [core.evicted for core in cores]))
        return m

    def _settings(self, m: Module) -> tuple[Any, Signal, Signal]:
        """Keep what is set for an input: order, whether to give stars, masked cores."""
        params = self.params
        control, punctuate = signal_of(control_layout(params)), Signal()
        masked = Signal(params.cores)
        with m.If(self.idle):
            m.d.sync += masked.eq(self.masked)
            if params.order != "none":
                m.d.sync += [
                    control.outer.eq(self.order >= OUTER),
                    punctuate.eq(self.punctuate & (self.order >= OUTER)),
                ]
            if params.order == "inner":
                # Of the interval its lowest 1; rows from that bit up count, the highest always.
                bits = row_bits(params)
                low = (self.interval & (~self.interval + 1))[:32]
                mask = (~(low - 1)[:bits]) | (1 << (bits - 1))
                m.d.sync += [
                    control.inner.eq(self.order >= INNER),
                    control.row_mask.eq(Mux(self.interval == 0, 0, mask)),
                ]
        return control, punctuate, masked
