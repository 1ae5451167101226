"""How long a tuple occupies the design and how long a match takes: closed forms and measurements.

Simulated cycles are exact, so that both can be held against each other to the cycle. The windows
are as large as the design holds; both are full when an S tuple arrives at the idle design, and
tuples of R and S go on arriving in turn, as fast as they are taken. The latency of its match with
one stored tuple of R is counted from the cycle that took it to the cycle that handed over the
result.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from streamjoin_common.contract import SIDE_R, SIDE_S, DesignParams, KeyType
from streamjoin_hw.rtl.chain.line import line_lengths
from streamjoin_hw.rtl.chain.spread import spread_levels
from streamjoin_hw.rtl.encode import bound_stages
from streamjoin_hw.rtl.queues import LANDING_PLACES
from streamjoin_hw.rtl.split.layouts import is_single
from streamjoin_hw.rtl.split.queue import has_root_queues
from streamjoin_hw.rtl.split.trees import tree_stages
from streamjoin_hw.rtl.trees import tree_levels
from streamjoin_hw.sim.model import Model, ModelError
from streamjoin_hw.sim.testing import Arrival, step_cycles

QUIET_READS = 64
"""Register accesses, some cycles each, after which a design without input is at rest."""

SETTLED_TUPLES = 3 * LANDING_PLACES
"""Tuples after which the ingress is full and every other one waits for the chain."""

COUNTED_TUPLES = 4 * LANDING_PLACES
"""Tuples at least whose acceptance is looked at from then on."""


CODE_CYCLES = 2
"""In the encoder behind the bounds: codes, queue."""

SCAN_CYCLES = {"step": 9, "fast": 7}
"""To the line: registers of sequencer and core in lock step; memory, parts, match, word, FIFO in
and out, the core's place."""

SERIALISER_CYCLES = 1
"""Of a chain with more than one lane, behind the FIFO."""

QUEUE_CYCLES = 2
"""At the end of a line: memory, and the register behind it."""

MERGER_CYCLES = 5
"""For each level of mergers of lines: a register in front, the link behind it (3), a stage behind
the tree."""

SPLIT_CYCLES = 7
"""From tree to tree in SplitJoin: collector, begin of a pass, memory, mask, list, the word that is
looked at, payload memory."""

SINGLE_CYCLES = 4
"""More of them where a batch is one probe: the register of the tuple, the cycle in which a pass is
known to be due, the parts of a match, and the second cycle of a list that is a queue, which every
design of one probe slot has."""

SHARED_CYCLES = 1
"""More of them where comparators are shared: lists are in memories that are read in a cycle."""

COMBINER_TURN_CYCLES = 1
"""Of SplitJoin's combiner without order: its first turn is that of matches of R tuples."""

OUTPUT_CYCLES = 1


@dataclass(frozen=True)
class Match:
    """What decides when a match is given.

    Parameters
    ----------
    later_tuples : int
        Tuples that have to arrive after the younger one before the two meet.
    hops : int
        Cores that the younger one passes first.
    word : int
        Index of the stored tuple's word in the scan that reads it.
    core : int
        The core in which they meet.
    """

    later_tuples: int
    hops: int
    word: int
    core: int


def met(params: DesignParams, age: int) -> Match:
    """Return how the arriving S tuple meets a stored R tuple.

    In lock step both have to walk to one core: R is ``(age + r) // segment`` cores from the left
    after ``r`` more tuples of R, S ``s // segment`` from the right. For the newest R tuple these
    are ``segment * (cores - 1)`` tuples of both, if ``cores`` is odd, and
    ``segment * cores - 1``, if it is even.

    Parameters
    ----------
    params : DesignParams
        The design.
    age : int
        R tuples that arrived after the stored one, 0 to the capacity less one.
    """
    number = params.window_capacity - 1 - age
    if params.stores_in_turn:
        stored, core = divmod(number, params.cores)
        hops = core if params.forward == "fast" else 0
        return Match(0, hops, stored // params.lanes, core)
    segment = params.segment_tuples
    later = 0
    while (age + (later + 1) // 2) // segment + (later // 2) // segment < params.cores - 1:
        later += 1
    # Who moved last finds the other, in the slot that it has had in every core.
    slot = params.window_capacity if later % 2 else number
    core = (age + (later + 1) // 2) // segment
    return Match(later, 0, slot % segment // params.lanes, core)


def turn_cycles(params: DesignParams, leaf: int, levels: int) -> int:
    """Count the cycles in which mergers on the way of a tree's leaf turn to it.

    A merger that had nothing to do needs three to turn to another than its first input, or one if
    no link is behind it, as at the root where a queue follows.
    """
    no_link = params.design == "splitjoin" and has_root_queues(params) and levels > 1
    return sum(
        1 if no_link and level == levels - 1 else 3
        for level in range(levels)
        if leaf // params.merge_arity**level % params.merge_arity != 0
    )


def line_cycles(params: DesignParams, core: int) -> int:
    """Count the cycles from a core's place on its line to the output of the chain.

    Added to the neighbours that a result passes are the queue and, if there are several lines, the
    tree behind them and as many register stages as it has levels.
    """
    lengths = line_lengths(params.cores)
    line, place = 0, core
    while place >= lengths[line]:
        line, place = line + 1, place - lengths[line]
    levels = tree_levels(len(lengths), params.merge_arity) if len(lengths) > 1 else 0
    hops = lengths[line] - 1 - place
    behind = MERGER_CYCLES * levels + turn_cycles(params, line, levels)
    return hops + QUEUE_CYCLES + behind


def latency_cycles(params: DesignParams, age: int) -> int:
    """Return the cycles from the acceptance of the S tuple to its match with an R tuple.

    The way through encoder, core, trees and output register is the same for every match. Added
    to it are the wait for the two to meet, the hops, the words scanned before, and in a chain the
    way of the command to the lines, of the result along its line, and the turns of mergers that had
    nothing to do yet.
    """
    capacity = params.window_capacity
    match = met(params, age)
    period = step_cycles(params, capacity, params.cores)
    if params.design == "splitjoin":
        inside = tree_stages(params) + SPLIT_CYCLES
        if params.has_shared_comparators:
            inside += SHARED_CYCLES
        elif params.probes == 1:
            inside += SINGLE_CYCLES if is_single(params) else 1
        if params.order == "none":
            levels = tree_levels(params.cores, params.merge_arity)
            inside += turn_cycles(params, match.core, levels) + COMBINER_TURN_CYCLES
    else:
        inside = SCAN_CYCLES[params.forward] + line_cycles(params, match.core)
        inside += SERIALISER_CYCLES if params.lanes > 1 else 0
        inside += spread_levels(params) if params.forward == "step" else 0
    around = bound_stages(params) + CODE_CYCLES + inside + OUTPUT_CYCLES
    return around + match.later_tuples * period + match.hops + match.word


@dataclass(frozen=True)
class Measured:
    """What a run gave."""

    cycles_per_tuple: float
    latency_cycles: int


def measure(params: DesignParams, folder: Path, age: int) -> Measured:
    """Run the case that the closed forms are of, on a model.

    Parameters
    ----------
    params : DesignParams
        The design.
    folder : Path
        What :func:`streamjoin_hw.flow.build.build_model` returned.
    age : int
        R tuples that arrived after the one that matches.

    Raises
    ------
    ModelError
        If the match is not given, or not alone.
    """
    capacity = params.window_capacity
    filling = [_arrival(params, number % 2, number) for number in range(2 * capacity)]
    partner = filling[2 * (capacity - 1 - age)]
    younger = Arrival(SIDE_S, partner.keys, capacity & _mask(params))
    counted = max(COUNTED_TUPLES, 2 * capacity)
    later = met(params, age).later_tuples + SETTLED_TUPLES + counted
    rest = [_arrival(params, number % 2, 2 * capacity + number) for number in range(later)]
    with Model(params, folder) as model:
        early = model.run(filling, last=False)
        for _ in range(QUIET_READS):
            model.read("status")
        outcome = model.run([younger, *rest])
    wanted = (partner.payload, younger.payload)
    if early.pairs or outcome.pairs != [wanted]:
        raise ModelError(f"the pairs are {early.pairs + outcome.pairs}, not {[wanted]}")
    return Measured(
        steady_cycles(outcome.accepted[SETTLED_TUPLES:]),
        int(outcome.stamps[0] - outcome.accepted[0]),
    )


def steady_cycles(accepted: npt.NDArray[np.int64]) -> float:
    """Return the cycles a tuple of tuples that wait for the design.

    The ingress takes a few at once when its queue has room, so that the mean is exact over a whole
    number of such turns alone: of the shortest that all tuples repeat; over all, if there is none.
    """
    gaps = np.diff(accepted)
    for turn in range(1, len(gaps) // 3 + 1):
        if (gaps[turn:] == gaps[:-turn]).all():
            return float(gaps[:turn].mean())
    return float(gaps.mean())


def _mask(params: DesignParams) -> int:
    return (1 << params.payload_bits) - 1


def _arrival(params: DesignParams, side: int, number: int) -> Arrival:
    """Make a tuple whose keys no other has."""
    keys = []
    for term in params.terms:
        is_real = term.type is KeyType.FLOAT32
        keys.append(int(np.float32(number).view(np.uint32)) if is_real else number)
    return Arrival(SIDE_S if side else SIDE_R, tuple(keys), number // 2 & _mask(params))
