"""The one table from a design's name to what it is made of.

Handshake join (Teubner and Mueller, SIGMOD 2011), lock-step forwarding of section 6.2: R enters
the chain at the left, S at the right, and a pair is compared in the one core in which its tuples
meet. Differences from the paper: segments are rings in memory, a core compares ``lanes`` tuples a
cycle, windows are exact for any size set at run time, and an input ends with a drain. With
``forward="fast"`` tuples do not walk but are forwarded and stored
(:mod:`streamjoin_hw.rtl.chain.forwarding`). SplitJoin's cores lie between trees
(:mod:`streamjoin_hw.rtl.split`), or are one core with an index, by hash
(:mod:`streamjoin_hw.rtl.hash`) or by order (:mod:`streamjoin_hw.rtl.index`).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from streamjoin_common.contract import DesignParams
from streamjoin_hw.rtl.chain.array import Chain
from streamjoin_hw.rtl.chain.core import Core
from streamjoin_hw.rtl.chain.forwarding import FastChain, ScanCore
from streamjoin_hw.rtl.core_array import CoreInstance, LateResetCore
from streamjoin_hw.rtl.hash.join import HashJoin, hash_members
from streamjoin_hw.rtl.index.join import IndexJoin, index_members
from streamjoin_hw.rtl.split.array import SplitArray, split_core


class Design(NamedTuple):
    """What a design is made of.

    Attributes
    ----------
    array : callable
        Makes all cores and what lies between them, from the parameters and ``by_reference``:
        whether cores are instances of the Verilog module that is emitted once.
    core : callable
        Makes that core from the parameters.
    """

    array: Callable[..., Any]
    core: Callable[[DesignParams], Any]


def _hash_array(params: DesignParams, *, by_reference: bool) -> Any:
    """Make the hash index: one core, which is the whole array."""
    return CoreInstance(hash_members(params)) if by_reference else HashJoin(params)


def _index_array(params: DesignParams, *, by_reference: bool) -> Any:
    """Make the ordered index: one core, which is the whole array."""
    return CoreInstance(index_members(params)) if by_reference else IndexJoin(params)


DESIGNS = {
    ("handshake", "step"): Design(Chain, lambda params: LateResetCore(Core(params))),
    ("handshake", "fast"): Design(FastChain, lambda params: LateResetCore(ScanCore(params))),
    ("splitjoin", ""): Design(SplitArray, lambda params: LateResetCore(split_core(params))),
    ("splitjoin-hash", ""): Design(_hash_array, HashJoin),
    ("splitjoin-index", ""): Design(_index_array, IndexJoin),
}
"""By design and, for the chain, how it forwards."""


def design_of(params: DesignParams) -> Design:
    """Look a design up."""
    forward = params.forward if params.design == "handshake" else ""
    return DESIGNS[params.design, forward]
