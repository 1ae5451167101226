"""A core of SplitJoin: two halves that know nothing of each other."""

from amaranth.hdl import Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import bits_for

from streamjoin_common.contract import SIDE_R, SIDE_S, DesignParams
from streamjoin_hw.rtl.split.half import Half
from streamjoin_hw.rtl.split.layouts import (
    ordered_port,
    routed_layout,
    token_layout,
)
from streamjoin_hw.rtl.streams import Component


def split_core_members(params: DesignParams) -> dict[str, wiring.Member]:
    """Ports of a core, the same for the component and for its instance in Verilog."""
    return {
        "index": In(bits_for(params.cores - 1)),
        **{name: In(1) for name in ("clear", "masked", *ordered_port(params))},
        "left": In(stream.Signature(routed_layout(params))),
        "right": In(stream.Signature(routed_layout(params))),
        "r_results": Out(stream.Signature(token_layout(params))),
        "s_results": Out(stream.Signature(token_layout(params))),
        "hold": Out(1),
        "busy": Out(1),
        **({"evicted": Out(2)} if params.timestamp_bits else {}),
    }


class SplitCore(Component):
    """The left half stores S and compares R, the right one stores R and compares S.

    Parameters
    ----------
    params : DesignParams
        The design.

    Members
    -------
    index : In(bits_for(cores - 1))
        Its number, a constant.
    clear : In(1)
        Empty it; only beside a reset, and once before the first tuple.
    masked, ordered : In(1), no ``ordered`` where stars are grouped
        See :class:`~streamjoin_hw.rtl.split.half.Half`.
    left, right : In(stream.Signature(routed_layout(params)))
        All tuples in arrival order, for each half in its own time.
    r_results, s_results : Out(stream.Signature(token_layout(params)))
        Matches of arriving R tuples, of arriving S tuples.
    hold : Out(1)
        A half waits for the output; from a register.
    busy : Out(1)
        Something is inside; from a register.
    evicted : Out(2), if there are timestamps
        Tuples that expired by count before their time, in this cycle.
    """

    index: Signal
    clear: Signal
    masked: Signal
    ordered: Signal
    left: stream.Interface
    right: stream.Interface
    r_results: stream.Interface
    s_results: stream.Interface
    hold: Signal
    busy: Signal
    evicted: Signal

    def __init__(self, params: DesignParams) -> None:
        self.params = params
        super().__init__(split_core_members(params))

    def elaborate(self, _platform: object) -> Module:
        """Put the halves side by side."""
        m = Module()
        m.submodules.left_region = left = Half(self.params, SIDE_S)
        m.submodules.right_region = right = Half(self.params, SIDE_R)
        wiring.connect(m, wiring.flipped(self.left), left.i)
        wiring.connect(m, wiring.flipped(self.right), right.i)
        for half in (left, right):
            m.d.comb += [
                half.index.eq(self.index),
                half.clear.eq(self.clear),
                half.masked.eq(self.masked),
            ]
            for name in ordered_port(self.params):
                m.d.comb += getattr(half, name).eq(getattr(self, name))
        wiring.connect(m, left.o, wiring.flipped(self.r_results))
        wiring.connect(m, right.o, wiring.flipped(self.s_results))
        m.d.comb += [
            self.hold.eq(left.held | right.held),
            self.busy.eq(left.busy | right.busy),
        ]
        if self.params.timestamp_bits:
            m.d.comb += self.evicted.eq(left.evicted + right.evicted)
        return m
