"""All of SplitJoin between intake and output: trees, cores, combiner."""

from typing import Any

from amaranth.hdl import Cat, Const, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from streamjoin_common.contract import ORDERS, SIDE_R, SIDE_S, DesignParams
from streamjoin_hw.rtl.chain.sequencer import QUIET_CYCLES
from streamjoin_hw.rtl.core_array import CoreInstance, gathered_members, registered_sum
from streamjoin_hw.rtl.intake import ordered_layout
from streamjoin_hw.rtl.queues import LANDING_PLACES
from streamjoin_hw.rtl.split.combiner import Combiner, combined_layout
from streamjoin_hw.rtl.split.core import SplitCore, split_core_members
from streamjoin_hw.rtl.split.groups.combiner import GroupCombiner
from streamjoin_hw.rtl.split.groups.counter import SIZE_BITS, GroupCounter
from streamjoin_hw.rtl.split.layouts import (
    ordered_port,
    routed_layout,
    row_bits,
    token_layout,
)
from streamjoin_hw.rtl.split.links import Spread, gathered_or, leaf_levels, spread_bit
from streamjoin_hw.rtl.split.points.core import PointCore
from streamjoin_hw.rtl.split.queue import Queue, has_root_queues, queue_places
from streamjoin_hw.rtl.split.shared_core import SharedCore
from streamjoin_hw.rtl.split.trees import CollectionTree, control_layout
from streamjoin_hw.rtl.streams import (
    Component,
    PipeReg,
    crossing_layout,
    payload_of,
    probe_layout,
    signal_of,
)

OUTER, INNER = ORDERS.index("outer"), ORDERS.index("inner")


QUEUED_TUPLES = 32
"""Tuples that a core with shared comparators may be behind the others: as many as a LUT RAM has
words."""


def split_core(params: DesignParams) -> Any:
    """Make a core: two halves, or one pool of comparators for both."""
    if params.has_point_windows:
        return PointCore(params)
    return SharedCore(params) if params.has_shared_comparators else SplitCore(params)


def setting_members(params: DesignParams) -> dict[str, wiring.Member]:
    """Ports for what is set at run time beside windows and widths; none for other designs."""
    if params.design != "splitjoin":
        return {}
    ordering = {"order": In(2), "punctuate": In(1)} if params.order != "none" else {}
    interval = {"interval": In(32)} if params.order == "inner" else {}
    group = {"group": In(SIZE_BITS)} if params.has_groups else {}
    return {**ordering, **interval, **group, "masked": In(params.cores)}


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
        Between two inputs: the settings are looked at, a cycle later, and kept while one runs.
    order : In(2), punctuate : In(1), if there is an order
        Which order, an index of ``contract.ORDERS``, at most the one that the design is built for;
        whether stars are given.
    interval : In(32), if there is the inner order
        Rows of tuples, ``cores`` each, whose results need not be in order among each other; the
        largest power of two that divides it counts. 0 is all.
    group : In(SIZE_BITS), draining : In(1), where stars are grouped
        Under the outer order, arrivals of a group; 0 is all. No tuple comes any more: the open
        group's star is due when nothing is inside.
    masked : In(cores)
        Cores that find nothing.
    results : Out(stream.Signature(combined_layout(params)))
    settling : Out(1)
        1 after a reset of the domain as long as something of before may be inside: ``clear`` alone
        empties cores and trees, so it follows such a reset, and no tuple comes meanwhile.
    held, busy, evicted
        As of :func:`~streamjoin_hw.rtl.core_array.collect`.
    """

    i: stream.Interface
    clear: Signal
    idle: Signal
    order: Signal
    punctuate: Signal
    interval: Signal
    group: Signal
    draining: Signal
    masked: Signal
    results: stream.Interface
    settling: Signal
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
                **({"draining": In(1)} if params.has_groups else {}),
                "results": Out(stream.Signature(combined_layout(params))),
                "settling": Out(1),
                **gathered_members(params),
            }
        )

    def elaborate(self, _platform: object) -> Module:
        """Put the cores between the trees."""
        m = Module()
        params = self.params
        queued = QUEUED_TUPLES if params.has_shared_comparators else LANDING_PLACES
        if not has_root_queues(params):
            queued = max(queued, queue_places(params))
        clears = spread_bit(m, self.clear, params.cores, params.merge_arity)
        settling = self._settle(m)
        left, right = (
            Spread(
                routed_layout(params),
                params.cores,
                params.merge_arity,
                queued,
                deciding=("side", "full"),
                clears=clears,
            )
            for _ in range(2)
        )
        m.submodules.left_spread, m.submodules.right_spread = left, right
        m.submodules.r_tree = r_tree = CollectionTree(params, clears)
        m.submodules.s_tree = s_tree = CollectionTree(params, clears)
        combiner: Any = (GroupCombiner if params.has_groups else Combiner)(params)
        m.submodules.combiner = combiner
        control, punctuate, masked = self._settings(m)

        cores = self._cores(m, clears, ((left, right), (r_tree, s_tree)), (control, masked))
        for tree in (r_tree, s_tree, *([] if params.has_groups else [combiner])):
            m.d.comb += tree.control.eq(control)
        arriving: Any = self.i
        stages: list[PipeReg | Queue] = []
        if not has_root_queues(params):
            # The intake counts tuples by this register, not by whether all trees have room.
            m.submodules.entry = entry = PipeReg(ordered_layout(params))
            wiring.connect(m, wiring.flipped(self.i), entry.i)
            arriving, stages = entry.o, [entry]
        stages += self._queues(m, arriving, ((left, right), (r_tree, s_tree)), combiner)

        # Stars end here unless they are wanted.
        m.submodules.given = given = PipeReg(combined_layout(params))
        out = combiner.o
        hidden = out.p.star & ~punctuate
        m.d.comb += [
            given.i.payload.eq(out.payload),
            given.i.valid.eq(out.valid & ~hidden),
            out.ready.eq(given.i.ready | hidden),
            self.held.eq(gathered_or(m, [core.hold for core in cores], params.merge_arity)),
        ]
        cores_busy = gathered_or(m, [core.busy for core in cores], params.merge_arity)
        wiring.connect(m, given.o, wiring.flipped(self.results))
        trees_busy = given.busy | left.busy | right.busy | r_tree.busy | s_tree.busy | combiner.busy
        trees_busy |= Cat(*(stage.busy for stage in stages)).any()
        inside = cores_busy | trees_busy
        if params.has_groups:
            inside |= self._owed(m, combiner, punctuate, inside)
        m.d.sync += self.busy.eq(inside)
        if params.timestamp_bits:
            evicted = registered_sum(m, [core.evicted for core in cores])
            m.d.comb += self.evicted.eq(Mux(settling, 0, evicted))
        return m

    def _cores(
        self, m: Module, clears: list[Signal], trees: tuple[tuple[Any, ...], ...], settings: Any
    ) -> list[Any]:
        """Make the cores between the trees, each emptied by its own of ``clears``."""
        params, (spreads, collections), (control, masked) = self.params, trees, settings
        cores: list[Any] = []
        for index, reset in enumerate(clears):
            # A core obeys its reset a cycle late; its window is emptied in that cycle.
            late = Signal(init=1, name="late_reset", reset_less=True)
            m.d.sync += late.eq(reset)
            members = split_core_members(params)
            known = CoreInstance(members, reset) if self.by_reference else None
            core: Any = known or split_core(params)
            m.submodules[f"core{index}"] = known or ResetInserter(late)(core)
            for spread, taker in zip(spreads, (core.left, core.right), strict=True):
                wiring.connect(m, spread.o[index], taker)
            for tree, results in zip(collections, (core.r_results, core.s_results), strict=True):
                wiring.connect(m, results, tree.i[index])
            m.d.comb += [
                core.index.eq(Const(index, len(core.index))),
                core.clear.eq(late),
                core.masked.eq(masked[index]),
                *(getattr(core, name).eq(control.outer) for name in ordered_port(params)),
            ]
            cores.append(core)
        return cores

    def _settle(self, m: Module) -> Value:
        """Return :attr:`settling`, which holds back what cores and trees give of before a reset.

        ``clear`` comes in the cycle after the reset, takes ``levels`` to the cores and is obeyed a
        cycle later. What they say then takes as many back at most, two for sums and a register. One
        is spare.
        """
        levels = leaf_levels(self.params.cores, self.params.merge_arity)
        left = Signal(2 * levels + 6, init=-1)
        m.d.sync += left.eq(left >> 1)
        m.d.comb += self.settling.eq(left[0])
        return left[0]

    def _queues(
        self, m: Module, arriving: Any, trees: tuple[tuple[Any, ...], ...], combiner: Any
    ) -> list[Queue]:
        """Queue tuples in front of each half's tree, and what it gives in front of the combiner.

        So a half works while the other has more to do; without block RAM the queues of the trees'
        leaves and roots do for that. No queue waits for another of its kind: the
        side that is due has all its tuples, since every tuple enters both queues at once, and its
        results are taken.
        """
        params, (spreads, collections) = self.params, trees
        places = queue_places(params)
        tuples, results = (
            [Queue(layout, places, params.window_memory) for _ in range(2)]
            if has_root_queues(params)
            else []
            for layout in (routed_layout(params), token_layout(params))
        )
        for name, made in (("tuples", tuples), ("results", results)):
            for number, queue in enumerate(made):
                m.submodules[f"{name}{number}"] = queue
        for queue, spread in zip(tuples, spreads, strict=bool(tuples)):
            wiring.connect(m, queue.o, spread.i)
        entries: Any = tuples or spreads
        tuple_in = arriving.p
        tuples_in = [self._routed(m, tuple_in, combiner) if params.has_groups else tuple_in] * 2
        if params.has_point_windows:
            tuples_in = [self._as_point_or_probe(m, tuple_in, side) for side in (SIDE_S, SIDE_R)]
        # A tuple sets out once its side can be remembered.
        room = combiner.room & entries[0].i.ready & entries[1].i.ready
        for entry, entering in zip(entries, tuples_in, strict=True):
            m.d.comb += [
                entry.i.payload.eq(entering),
                entry.i.valid.eq(arriving.valid & room),
            ]
        m.d.comb += [
            arriving.ready.eq(room),
            combiner.side.eq(tuple_in.side),
            combiner.arrives.eq(arriving.valid & arriving.ready),
        ]
        for number, (tree, taker) in enumerate(zip(collections, combiner.i, strict=True)):
            first: Any = results[number].i if results else taker
            m.d.comb += [
                first.valid.eq(tree.o.valid & ~self.settling),
                first.payload.eq(tree.o.payload),
                tree.o.ready.eq(first.ready),
            ]
            if results:
                wiring.connect(m, results[number].o, taker)
        return [*tuples, *results]

    def _as_point_or_probe(self, m: Module, tuple_in: Any, stored: int) -> Any:
        """Return what arrives as the half that stores a side is given it."""
        params, is_point = self.params, tuple_in.side == stored
        given = crossing_layout(params)(tuple_in.body)
        both = signal_of(probe_layout(params))
        for name in probe_layout(params).members:
            m.d.comb += both[name].eq(given[name])
            if name.startswith("lo"):
                code = given[name.replace("lo", "code")]
                m.d.comb += both[name].eq(Mux(is_point, code, given[name]))
        routed = signal_of(routed_layout(params))
        for name in routed.shape().members:
            m.d.comb += routed[name].eq(both.as_value() if name == "body" else tuple_in[name])
        return routed

    def _routed(self, m: Module, tuple_in: Any, combiner: Any) -> Any:
        """Count arrivals into groups; return the tuple that arrives, marked where it ends one."""
        m.submodules.groups = groups = GroupCounter()
        routed = signal_of(routed_layout(self.params))
        m.d.comb += [
            groups.idle.eq(self.idle),
            groups.size.eq(Mux(self.order == OUTER, self.group, self.order >= INNER)),
            groups.arrives.eq(combiner.arrives),
            combiner.clear.eq(self.clear),
            combiner.closes.eq(groups.closes),
            *(routed[name].eq(tuple_in[name]) for name in tuple_in.shape().members),
            routed.closes.eq(groups.closes),
        ]
        return routed

    def _owed(self, m: Module, combiner: GroupCombiner, punctuate: Signal, inside: Value) -> Signal:
        """Have the last group's star given, if it is open; return whether it is still owed."""
        quiet = Signal(range(QUIET_CYCLES + 1))
        owed = Signal()
        m.d.comb += [
            owed.eq(self.draining & combiner.open & punctuate),
            combiner.end.eq(owed & (quiet == QUIET_CYCLES)),
        ]
        with m.If(~owed | inside):
            m.d.sync += quiet.eq(0)
        with m.Elif(quiet != QUIET_CYCLES):
            m.d.sync += quiet.eq(quiet + 1)
        return owed

    def _settings(self, m: Module) -> tuple[Any, Signal, Signal]:
        """Keep what is set for an input: order, whether to give stars, masked cores."""
        params = self.params
        control = signal_of(control_layout(params))
        punctuate = Signal()
        masked = Signal(params.cores, reset_less=True)
        # A cycle late, as what is kept lies apart, and so is what is given: a register that is
        # written while the first tuple is accepted counts for the next input.
        idle, outer = Signal(), Signal(name="outer")
        gives_stars = Signal(name="gives_stars")
        masks = Signal.like(self.masked, name="masks")
        m.d.sync += [idle.eq(self.idle), masks.eq(self.masked)]
        with m.If(idle):
            m.d.sync += masked.eq(masks)
        if params.order != "none":
            m.d.sync += [
                outer.eq(self.order >= OUTER),
                gives_stars.eq(self.punctuate & (self.order >= OUTER)),
            ]
            with m.If(idle):
                m.d.sync += [control.outer.eq(outer), punctuate.eq(gives_stars)]
        if params.order == "inner":
            # Of the interval its lowest 1; rows from that bit up count, the highest always.
            bits = row_bits(params)
            low = (self.interval & (~self.interval + 1))[:32]
            mask = (~(low - 1)[:bits]) | (1 << (bits - 1))
            inner, row_mask = Signal(name="inner"), payload_of(bits, name="row_mask")
            m.d.sync += [
                inner.eq(self.order >= INNER),
                row_mask.eq(Mux(self.interval == 0, 0, mask)),
            ]
            with m.If(idle):
                m.d.sync += [control.inner.eq(inner), control.row_mask.eq(row_mask)]
        return control, punctuate, masked
