"""Loads of a known match rate and skew, and what a design makes of them.

Both windows are full when the measurement begins. Tuples of R and S arrive in random turn or in
another, one offered in every cycle, and every result is taken at once. Every result is checked, and
so is their order where the design promises one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from streamjoin_common.contract import (
    SIDE_R,
    SIDE_S,
    DesignParams,
    KeyType,
    TermKind,
    active_cores,
)
from streamjoin_hw.sim.bulk import Chunk, Owed, SlidingJoin
from streamjoin_hw.sim.model import Model, ModelError
from streamjoin_hw.sim.order import ArrivalOrder
from streamjoin_hw.sim.testing import step_cycles

KEYS = ("uniform", "zipf", "zipf-both", "gauss", "shifting", "one", "reference")
"""How keys are drawn from the domain: evenly; R by Zipf's law (exponent 1) and S evenly, so that a
tuple still owes the match rate on average; both by Zipf's law, so that it owes far more; by a
normal distribution, whose mean stays or moves through the domain; one key; or as in the band query
of CellJoin, every column from 1 to 10,000 with bands of 10 on each side, whatever the match rate.
"""

REFERENCE_KEYS, REFERENCE_WIDTH = 10_000, 10

SIDES = {
    "alternate": 0.5,
    "random": 0.5,
    "runs-64": 0.5,
    "bursts-1024": 0.5,
    "r-90": 0.9,
    "one-sided": 1.0,
}
"""How the sides of the measured tuples follow each other, and the share of the more frequent one:
in turn; at random, evenly; 64 or 1,024 of a side, then of the other; at random, 90 % of R; R alone.
"""


@dataclass(frozen=True)
class Load:
    """An input to draw.

    Parameters
    ----------
    window : int
        Count window of both sides in tuples.
    match_rate : float
        Matches that a tuple owes on average where at least one side is uniform, at most
        ``window``: there are ``window / match_rate`` keys. At 0 no key is on both sides, and each
        has ``window`` keys.
    keys : str
        One of :data:`KEYS`.
    tuples : int
        Tuples of both sides that are measured.
    seed : int
        Source of randomness.
    sides : str
        One of :data:`SIDES`; tuples that fill the windows have random sides.
    group : int
        Arrivals of a group, 0 for all, where stars are grouped.
    """

    window: int
    match_rate: float
    keys: str
    tuples: int
    seed: int
    sides: str = "random"
    group: int = 1


@dataclass(frozen=True)
class Rate:
    """What a run gave: results and cycles for each tuple.

    ``cycles`` runs from the first measured tuple's acceptance to the last result's handover. Where
    cores scan it runs from acceptance to acceptance, without the first fifth of the tuples: what
    waits in queues is then about as much in the beginning as in the end.
    """

    owed: float
    cycles: float


def _ranks(rng: np.random.Generator, domain: int, count: int, zipf: bool) -> Any:
    """Draw key numbers: evenly, or number ``k`` with a weight of ``1 / (k + 1)``."""
    if not zipf:
        return rng.integers(0, domain, count)
    weights = np.cumsum(1 / np.arange(1, domain + 1))
    return np.searchsorted(weights, rng.random(count) * weights[-1], side="right")


def _sides(rng: np.random.Generator, kind: str, count: int) -> npt.NDArray[np.uint8]:
    """Draw the sides of the measured tuples."""
    name, _, length = kind.partition("-")
    if name in ("runs", "bursts", "alternate"):
        numbers = np.arange(count) // int(length or 1) % 2
    else:
        numbers = np.where(rng.random(count) < SIDES[kind], SIDE_R, SIDE_S)
    return numbers.astype(np.uint8)


def most_comparisons(params: DesignParams, load: Load) -> float:
    """Return the comparisons a cycle that a scanning design cannot exceed under a load.

    A chain compares one tuple in each step. A half of SplitJoin compares ``probes`` tuples of one
    side in each pass; the side that more tuples are of cannot be faster than its half. Where
    comparators are shared, sides do not matter, but a core is given a tuple twice, once for each
    half.

    Parameters
    ----------
    params : DesignParams
        A design without an index.
    load : Load
        The input.
    """
    cycles = step_cycles(params, load.window, active_cores(params, load.window, load.window))
    if params.has_shared_comparators:
        return min(0.5, params.probes / cycles) * load.window
    if params.design == "splitjoin":
        return min(1.0, params.probes / (cycles * SIDES[load.sides])) * load.window
    return load.window / cycles


def _scattered(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    """Spread numbers over all 32-bit keys, each to one of its own."""
    bits = numbers.astype(np.uint32)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35), (16, 1)):
        bits = (bits ^ (bits >> np.uint32(shift))) * np.uint32(factor)
    return bits


def _spaced(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.uint32]:
    """Return numbers as keys of the same order."""
    return numbers.astype(np.uint32)


def is_band(params: DesignParams, load: Load) -> bool:
    """Return whether a load is of a band over all 32-bit keys: uniform, with an ordered index."""
    kinds = [term.kind for term in params.terms]
    ordered = params.design == "splitjoin-index" and load.keys == "uniform"
    return ordered and kinds == [TermKind.BAND] and params.terms[0].type is not KeyType.FLOAT32


def widths(params: DesignParams, load: Load) -> dict[str, int]:
    """Return the widths of the bands, as 32 bits, by register name.

    0, but for :func:`is_band`, where a band holds as many tuples of a window as a tuple owes
    matches, and the reference query.
    """
    widths: dict[str, int] = {}
    for index, term in enumerate(params.terms):
        if term.kind is not TermKind.BAND:
            continue
        share = load.match_rate / load.window if is_band(params, load) else 0
        width = min(round(share * (1 << 31)), (1 << 31) - 1)
        if load.keys == "reference":
            is_float = term.type is KeyType.FLOAT32
            width = int(np.float32(REFERENCE_WIDTH).view(np.uint32)) if is_float else 10
        widths |= {f"band_lo{index}": width, f"band_hi{index}": width}
    return widths


def _drawn(rng: np.random.Generator, load: Load, domain: int, count: int, zipf: bool) -> Any:
    """Draw key numbers of one side."""
    if load.keys in ("gauss", "shifting"):
        # Shifting: from the first tuple to the last the mean passes half of the domain.
        mean = np.linspace(0.25, 0.75, count) if load.keys == "shifting" else np.full(count, 0.5)
        numbers = rng.normal(mean * domain, domain / 16)
        return np.clip(numbers, 0, domain - 1).astype(np.int64)
    return _ranks(rng, domain, count, zipf)


def _free_columns(
    rng: np.random.Generator, load: Load, types: Sequence[KeyType], count: int
) -> npt.NDArray[np.uint32]:
    """Draw columns that have nothing to do with one another."""
    columns = []
    for kind in types:
        if load.keys != "reference":
            columns.append(rng.integers(0, 1 << 32, count, np.uint32))
        elif kind is KeyType.FLOAT32:
            numbers = rng.uniform(1, REFERENCE_KEYS, count).astype(np.float32)
            columns.append(numbers.view(np.uint32))
        else:
            columns.append(rng.integers(1, REFERENCE_KEYS + 1, count).astype(np.uint32))
    return np.stack(columns, axis=1)


def draw(load: Load, params: DesignParams) -> tuple[Chunk, Chunk]:
    """Draw the tuples that fill the windows, and those that are measured.

    All key columns hold the same number, so that bands of width 0 match where equalities do; but
    for bands over all keys and for the reference query.
    """
    types = [term.type for term in params.terms]
    rng = np.random.default_rng(load.seed)
    # Enough that both windows are full, although sides are drawn at random.
    filling = 2 * load.window + 8 * int(np.sqrt(2 * load.window)) + 16
    count = filling + load.tuples
    sides = rng.integers(0, 2, count, np.uint8)
    if load.sides != "random":
        sides[filling:] = _sides(rng, load.sides, load.tuples)
    rows = np.where(sides == SIDE_S, np.cumsum(sides == SIDE_S), np.cumsum(sides == SIDE_R)) - 1
    payloads, times = rows.astype(np.uint32), np.zeros(count, np.uint32)
    if is_band(params, load) or load.keys == "reference":
        return Chunk(sides, _free_columns(rng, load, types, count), payloads, times).cut(filling)
    domain = max(1, round(load.window / load.match_rate)) if load.match_rate else load.window
    domain = 1 if load.keys == "one" else domain
    numbers = np.empty(count, np.int64)
    for side in (SIDE_R, SIDE_S):
        mine = sides == side
        zipf = load.keys == "zipf-both" or (load.keys == "zipf" and side == SIDE_R)
        drawn = _drawn(rng, load, domain, int(mine.sum()), zipf)
        numbers[mine] = drawn if load.match_rate else 2 * drawn + side
    # A normal distribution is one of neighbours.
    scatter = _spaced if load.keys in ("gauss", "shifting") else _scattered
    columns = {
        whole: scatter(numbers) if whole else numbers.astype(np.float32).view(np.uint32)
        for whole in {kind is not KeyType.FLOAT32 for kind in types}
    }
    keys = np.stack([columns[kind is not KeyType.FLOAT32] for kind in types], axis=1)
    return Chunk(sides, keys, payloads, times).cut(filling)


def measure(params: DesignParams, folder: Path, load: Load) -> Rate:
    """Run a load on a model.

    Parameters
    ----------
    params : DesignParams
        The design; its terms equalities and bands, without timestamps.
    folder : Path
        What :func:`streamjoin_hw.flow.build.build_model` returned.
    load : Load
        The input.

    Raises
    ------
    ModelError
        If a result is missing, surplus or out of a promised order.
    """
    windows = (load.window, load.window)
    bands = widths(params, load)
    join, owed, order = (
        SlidingJoin(params, windows, bands),
        Owed(),
        ArrivalOrder(params, load.group),
    )
    results = first = last = 0
    with Model(params, folder) as model:
        model.set_registers({"window_r": load.window, "window_s": load.window, **bands})
        if params.has_groups:
            model.set_registers({"group_arrivals": load.group})
        chunks = draw(load, params)
        model.load_splitters(windows, *chunks)
        for chunk, is_last in zip(chunks, (False, True), strict=True):
            order.take(chunk)
            accepted = np.empty(len(chunk.sides), np.int64)
            pieces = list(model.feed(chunk, last=is_last, accepted=accepted, max_cycles=1 << 40))
            for piece in pieces:
                order.see(piece.r, piece.s)
            received = np.concatenate([piece.r << np.uint64(32) | piece.s for piece in pieces])
            expected = join.join(chunk)
            owed.update(expected, received)
            if is_last:
                results = len(expected)
                first, last = (
                    int(accepted[0]),
                    max(int(p.stamps[-1]) for p in pieces if len(p.stamps)),
                )
    wrong = owed.difference() or order.fault
    if wrong:
        raise ModelError(
            f"window {load.window}, {load.keys} keys, {load.sides} sides, seed {load.seed}: {wrong}"
        )
    cycles = (last - first) / load.tuples
    if not params.has_index and load.tuples > 1:
        begin = load.tuples // 5
        cycles = int(accepted[-1] - accepted[begin]) / (load.tuples - 1 - begin)
    return Rate(results / load.tuples, cycles)
