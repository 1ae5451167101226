"""Semi-stream joins: how the stream's hash table H_S and the cache H_R lie in memory.

All tuples lie in one arena of 64-bit words, in pages of one size that either table takes from one
list and gives back to it, so that memory moves between the two as the cache inequality says.

- A *node* of H_S is a stream tuple: its key, ``row | next << 32`` (``next`` is where the tuple of
  the same key that came before it lies), a count word, its payload. Nodes are placed one behind
  the other and expire in that order, so the pages in use, in their order, are the queue Q.
- A *record* of H_R is a master row: row number and payload. Records are numbered; page and place
  follow from the number. The records of a join value have consecutive numbers.
- The *directory* has an entry for each join value that is in either table: 31 bits of its hash,
  and where its newest node lies or which *value* it is. The count word of that node holds how many
  nodes the value has. Open addressing, entries ordered by hash, deletion by shifting back.
- A *value* is a join value with a state of its own: on its way into the cache, or in it. Its nodes
  hang on it, so they can still expire when it has been moved.
"""

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.jit import inlined, kernel

Uint64s = NDArray[np.uint64]
Codes = NDArray[np.uint32]
Values = NDArray[np.uint32]

U32, U64 = np.uint32, np.uint64
EMPTY = U64(0xFFFFFFFFFFFFFFFF)
SPECIAL = U64(1 << 63)
LOW = U64(0xFFFFFFFF)
HALF = U64(32)
TAG_MASK = U64(0x7FFFFFFF)
TAG_BITS = 30
"""So that what is masked out of an empty slot is above every tag."""

OVERFLOW = 64
"""Slots behind the last that is anybody's best; one more, behind them, is always empty."""

NODE_HEADER = 3
"""Words of a node before its payload."""

COUNT_MASK = U64((1 << 32) - 1)
MATCHED = U64(1 << 32)
"""In a count word: a row of R with this join value came by since the value has been here."""

MISSING = U64(1 << 33)
"""In a count word: a tuple of the value has seen all of R without a match."""

# Columns of the table of values.
STATE, HEAD, NODES, RECORDS, FIRST, USES, SEEN, SINCE = range(8)
VALUE_COLUMNS = 8
VALUE_BYTES = 4 * VALUE_COLUMNS + 8 + 4
"""Its columns, its key, its place in the list of free ones."""

ABSENT_NODES = 3
"""Tuples of a value without a row in R that pass for more than the value's bytes: twice them, as
what was seen in one cycle is often seen by chance."""

# States of a value.
FREE, COUNTING, LOADING, CACHED, ABSENT = range(5)
BROKEN = U32(1 << 31)
"""SEEN when rows came otherwise than they were counted."""

# Places of the numbers that the steps share.
(
    OLDEST,
    NEXT,
    OLDEST_AT,
    OLDEST_LEFT,
    NEXT_AT,
    NEXT_LEFT,
    FIRST_PAGE,
    PAGES_USED,
    FREE_PAGES,
    ENTRIES,
    MAX_ENTRIES,
    SLOTS,
    NODE_WORDS,
    PAGE_WORDS,
    PAGE_NODES,
    RECORD_WORDS,
    PAGE_RECORDS_LOG2,
    QUOTA,
    POSITION,
    WITHIN,
    AT,
    FROM_CACHE,
    MISSED,
    FREE_VALUES,
    KEPT_VALUES,
    PAGE_LIMIT,
) = range(26)
NUMBERS = 26

# What a step ended with.
DONE, FULL_OUTPUT, NO_PAGE, NO_ENTRY, AT_QUOTA, NO_VALUE = range(6)


@inlined
def _hash(key: np.uint64) -> np.uint64:
    # Two rounds: a directory keeps only upper bits, and keys may differ in upper bits alone.
    mixed = (key ^ (key >> U64(32))) * U64(0x9E3779B97F4A7C15)
    return ((mixed ^ (mixed >> U64(29))) * U64(0xBF58476D1CE4E5B9)) >> U64(64 - TAG_BITS)


@inlined
def _tag(entry: np.uint64) -> np.uint64:
    return (entry >> HALF) & TAG_MASK


@inlined
def _home(tag: np.uint64, slots: np.uint64) -> np.uint64:
    return U64((tag * slots) >> U64(TAG_BITS))


@kernel
def find(
    directory: Uint64s,
    slots: np.uint64,
    arena: Uint64s,
    value_keys: Uint64s,
    key: np.uint64,
    tag: np.uint64,
) -> np.uint64:
    """Return a key's slot, or the one before which it would go: then its tag is another one.

    Entries are in the order of their tags, and so of the slots that they would like best: a search
    for what is not there ends at the first entry above it. The steps of a loop repeat these lines:
    a call with arrays costs more than the search.
    """
    slot = _home(tag, slots)
    while _tag(directory[slot]) < tag:
        slot += U64(1)
    while _tag(directory[slot]) == tag:
        entry = directory[slot]
        held = value_keys[entry & LOW] if entry & SPECIAL else arena[entry & LOW]
        if held == key:
            break
        slot += U64(1)
    return slot


@kernel
def insert(directory: Uint64s, slot: np.uint64, entry: np.uint64) -> None:
    """Enter where :func:`find` said, and move what is behind on by one."""
    carried = entry
    while carried != EMPTY:
        directory[slot], carried = carried, directory[slot]
        slot += U64(1)


@kernel
def remove(directory: Uint64s, slots: np.uint64, slot: np.uint64) -> None:
    """Empty a slot and shift back what had to step over it."""
    while True:
        behind = directory[slot + U64(1)]
        if behind == EMPTY or _home(_tag(behind), slots) == slot + U64(1):
            break
        directory[slot] = behind
        slot += U64(1)
    directory[slot] = EMPTY


@inlined
def new_value(
    numbers: Uint64s, value_keys: Uint64s, values: Values, free_values: Codes, key: np.uint64
) -> np.uint64:
    """Take a free value, of which there must be one, for a join value; its columns are 0."""
    numbers[FREE_VALUES] -= U64(1)
    value = U64(free_values[numbers[FREE_VALUES]])
    value_keys[value] = key
    for column in range(VALUE_COLUMNS):
        values[value, column] = U32(0)
    return value
