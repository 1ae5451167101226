"""What a chain gives: the results of all lines, and what is said of all cores."""

from collections.abc import Callable, Sequence
from typing import Any

from amaranth.hdl import Cat, Module, Mux, ResetInserter, Signal, Value
from amaranth.lib import stream, wiring

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.chain.line import connect_lines, line_lengths, lines_of_cores
from streamjoin_hw.rtl.chain.spread import gathered_or, gathered_sum
from streamjoin_hw.rtl.core_array import CoreInstance
from streamjoin_hw.rtl.matching import by_side
from streamjoin_hw.rtl.streams import PingPongReg, met_layout, result_layout
from streamjoin_hw.rtl.trees import MergeTree, tree_levels


def make_cores(
    m: Module, params: DesignParams, make: Callable[[], Any], resets: Sequence[Value], known: Any
) -> list[Any]:
    """Add the cores: made each, or, where their ports are ``known``, by reference to their module.

    ``resets`` are those of the lines; cores obey them a cycle late, by registers of their own
    (:class:`~streamjoin_hw.rtl.core_array.LateResetCore`). What is made is reset by its clock
    domain beside it.
    """
    cores = []
    if known is None:
        late = [Signal(init=1, name="late_reset", reset_less=True) for _ in resets]
        m.d.sync += [each.eq(reset) for each, reset in zip(late, resets, strict=True)]
    for index, line in enumerate(lines_of_cores(params.cores)):
        core = make() if known is None else CoreInstance(known, resets[line])
        m.submodules[f"core{index}"] = core if known else ResetInserter(late[line])(core)
        cores.append(core)
    return cores


def collect(
    m: Module,
    params: DesignParams,
    cores: Sequence[Any],
    out: Any,
    *,
    resets: Sequence[Value],
    renewed: Signal,
    settling: Value,
) -> None:
    """Connect what all cores give to the array ``out``.

    ``results`` by lines, and from their ends, which lie side by side, through a merge tree if there
    are several; ``held``, some core's ``hold``; ``busy``, something is inside; with timestamps
    ``evicted``, how many tuples left before their time; all from registers. Each line has one of
    ``resets``; while they are ``settling``, and in the cycle after a reset, when all is
    ``renewed``, nothing is given.
    """
    layout = met_layout(params)
    lengths = line_lengths(params.cores)
    hops = tree_levels(len(lengths), params.merge_arity) if len(lengths) > 1 else 0
    ends = connect_lines(m, layout, cores, resets, hops)
    busy = [end.busy for end in ends]
    met: Any = ends[0].o
    clear = Signal(init=1, reset_less=True)
    if len(ends) > 1:
        # A register beside it empties it, in place of the reset, whose wire is long. Until then no
        # line gives anything new.
        m.d.sync += clear.eq(settling)
        m.submodules.tree = tree = MergeTree(layout, len(ends), params.merge_arity, clear)
        for index, end in enumerate(ends):
            wiring.connect(m, end.o, tree.i[index])
        met = tree.o
        busy.append(tree.busy)
    given: Any = stream.Signature(result_layout(params)).create()
    m.d.comb += [
        given.valid.eq(met.valid),
        met.ready.eq(given.ready),
        given.p.side.eq(met.p.side),
        *by_side(given.p, met.p.side, met.p.probe, met.p.met),
    ]
    for level in range(hops):
        # The tree lies between the lines, and the output where results leave. The last register
        # stage is empty after one cycle, in which it gives nothing, and takes nothing of before.
        is_last = level + 1 == hops
        between = PingPongReg(result_layout(params), renewed if is_last else clear)
        m.submodules[f"between{level}"] = between
        _pass(m, given, between.i, ~settling if is_last else None)
        busy.append(between.busy)
        given = between.o
    _pass(m, given, out.results, ~renewed if hops else ~settling)
    m.d.comb += out.held.eq(gathered_or(m, params, [core.hold for core in cores]))
    cores_busy = gathered_or(m, params, [core.busy for core in cores])
    # The ends of lines lie apart, and `busy` where the sequencer is.
    ends_busy = Signal(reset_less=True)
    m.d.sync += [ends_busy.eq(Cat(*busy).any()), out.busy.eq(cores_busy | ends_busy)]
    if params.timestamp_bits:
        evicted = gathered_sum(m, params, [core.evicted for core in cores])
        m.d.comb += out.evicted.eq(Mux(settling, 0, evicted))


def _pass(m: Module, given: Any, taker: Any, counts: Value | None) -> None:
    """Connect a stream; what does not count is taken and dropped."""
    m.d.comb += [
        taker.valid.eq(given.valid if counts is None else given.valid & counts),
        taker.payload.eq(given.payload),
        given.ready.eq(taker.ready),
    ]
