"""The map from a code to a block: hashed, or equi-depth and in the order of codes.

The ordered map has two levels. A cell is an equal share of the codes from the lowest to the highest
that a sample holds; codes outside belong to the first and to the last cell. A cell's position and
span among the blocks follow from the share of the sample below it and in it, and codes are spread
evenly within the cell. A cell with a large share of the sample has a table of finer cells instead,
so that blocks are equally full however codes crowd together.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.jit import fused, kernel

Codes = NDArray[np.uint32]
Words = NDArray[np.uint64]

U32, U64 = np.uint32, np.uint64
LOW, TOP, SHIFT, FRACTION, BLOCKS, BASE, TABLE, HASHED, NEXT_FREE = range(9)
"""Words of a cut: lowest code, highest distance from it, log2 of a cell's codes, fractional bits of
a position, blocks, first block, the table's first word, whether codes are hashed, first free block
of the chains."""

CUT_WORDS = 16
CELLS_LOG2 = 12
FINER_LOG2 = 10
CROWDED = 64
"""A cell is crowded from this share of the sample on: one part in so many."""

SAMPLES_LOG2 = 6
"""log2 of the samples of a cell, at least."""

GROUPS = 64
TABLE_WORDS = (1 << CELLS_LOG2) + (CROWDED << FINER_LOG2)
FINER = U64(0xFFFFFFFF)
MASK = U64(0xFFFFFFFF)
GOLDEN = U64(0x9E3779B97F4A7C15)


class Map(NamedTuple):
    """A cut's words, read once: what is written between look-ups might be words of a cut."""

    low: np.uint64
    top: np.uint64
    shift: np.uint64
    fraction: np.uint64
    blocks: np.uint64
    base: np.uint64
    table: np.uint64
    hashed: np.uint64


@fused
def map_of(cuts: Words, cut: np.uint64) -> Map:
    """Read the cut whose words begin at ``cut``."""
    return Map(
        cuts[cut + U64(LOW)],
        cuts[cut + U64(TOP)],
        cuts[cut + U64(SHIFT)],
        cuts[cut + U64(FRACTION)],
        cuts[cut + U64(BLOCKS)],
        cuts[cut + U64(BASE)],
        cuts[cut + U64(TABLE)],
        cuts[cut + U64(HASHED)],
    )


@fused
def position_of(by: Map, code: np.uint32) -> np.uint64:
    """Return a number that orders codes as their blocks."""
    if by.hashed:
        return (U64(code) * GOLDEN) >> U64(32)
    return U64(code)


@fused
def block_of(tables: Words, by: Map, code: np.uint32) -> np.uint64:
    """Return the block of a code."""
    return block_at(tables, by, position_of(by, code))


@fused
def block_at(tables: Words, by: Map, position: np.uint64) -> np.uint64:
    """Return the block of a position (:func:`position_of`)."""
    if by.hashed:
        return by.base + ((position * by.blocks) >> U64(32))
    distance = min(max(position, by.low) - by.low, by.top)
    entry = tables[by.table + (distance >> by.shift)]
    within = (distance << (U64(32) - by.shift)) & MASK
    if entry & MASK == FINER:
        entry = tables[(entry >> U64(32)) + (within >> U64(32 - FINER_LOG2))]
        within = (within << U64(FINER_LOG2)) & MASK
    at = (entry >> U64(32)) + (((entry & MASK) * within) >> U64(32))
    return by.base + (at >> by.fraction)


@kernel
def cut_evenly(sample: Codes, blocks: int, cut: int, cuts: Words, tables: Words) -> None:
    """Cut codes into ranges of equally many samples.

    Parameters
    ----------
    sample : ndarray of uint32, shape (samples,)
        Codes in any order; may be empty.
    blocks : int
        Ranges to make.
    cut : int
        First of the cut's words.
    cuts : ndarray of uint64
        ``TABLE`` is set before; the map's words are written.
    tables : ndarray of uint64
        Receives the cells from ``TABLE`` on, at most :data:`TABLE_WORDS`.
    """
    words, count = U64(cut), U64(len(sample))
    low, high = U64(0xFFFFFFFF), U64(0)
    for index in range(count):
        low, high = min(low, U64(sample[index])), max(high, U64(sample[index]))
    if count == U64(0):
        low, high = U64(0), U64(0xFFFFFFFF)
    bits = U64(4)
    while bits < U64(CELLS_LOG2) and (count >> (bits + U64(SAMPLES_LOG2))) != U64(0):
        bits += U64(1)
    shift = U64(0)
    while (high - low) >> (shift + bits) != U64(0):
        shift += U64(1)
    cells = ((high - low) >> shift) + U64(1)
    fraction = U64(31)
    while (U64(blocks) << fraction) > MASK:
        fraction -= U64(1)
    table = cuts[words + U64(TABLE)]
    cuts[words + U64(LOW)], cuts[words + U64(TOP)] = low, high - low
    cuts[words + U64(SHIFT)], cuts[words + U64(FRACTION)] = shift, fraction
    cuts[words + U64(BLOCKS)] = U64(blocks)
    counts = np.zeros(cells, dtype=np.uint64)
    for index in range(count):
        counts[(U64(sample[index]) - low) >> shift] += U64(1)
    # A cell without samples still has codes; an empty sample has all cells alike.
    if count == U64(0):
        counts[:] = U64(1)
        count = cells
    finer_at = np.zeros(cells, dtype=np.uint64)
    tabled = U64(0)
    crowd = max(count // U64(CROWDED), U64(4) * count // cells)
    for cell in range(cells):
        if counts[cell] > crowd and tabled < U64(CROWDED) and shift > U64(0):
            tabled += U64(1)
            finer_at[cell] = tabled
    finer = np.zeros(tabled << U64(FINER_LOG2), dtype=np.uint64)
    if tabled:
        for index in range(U64(len(sample))):
            distance = U64(sample[index]) - low
            own = finer_at[distance >> shift]
            if own:
                within = (distance << (U64(32) - shift)) & MASK
                at = within >> U64(32 - FINER_LOG2)
                finer[((own - U64(1)) << U64(FINER_LOG2)) + at] += U64(1)
    room = U64(blocks) << fraction
    below = U64(0)
    for cell in range(cells):
        if finer_at[cell]:
            first = (finer_at[cell] - U64(1)) << U64(FINER_LOG2)
            goal = table + cells + first
            tables[table + cell] = (goal << U64(32)) | FINER
            for each in range(U64(1) << U64(FINER_LOG2)):
                tables[goal + each] = _cell(below, finer[first + each], count, room)
                below += finer[first + each]
        else:
            tables[table + cell] = _cell(below, counts[cell], count, room)
            below += counts[cell]


@fused
def _cell(below: np.uint64, held: np.uint64, count: np.uint64, room: np.uint64) -> np.uint64:
    """Return the word of a cell: its position, and how far it reaches."""
    start = min(below * room // count, room - U64(1))
    end = (below + held) * room // count
    span = min(end - min(start, end), FINER - U64(1))
    return (start << U64(32)) | span


@kernel
def fullest(sample: Codes, cut: int, cuts: Words, tables: Words) -> int:
    """Count the samples in the fullest of :data:`GROUPS` equal groups of blocks."""
    counts, by = np.zeros(GROUPS, dtype=np.int64), map_of(cuts, U64(cut))
    for index in range(U64(len(sample))):
        block = block_of(tables, by, sample[index]) - by.base
        counts[block * U64(GROUPS) // by.blocks] += 1
    return int(counts.max())
