"""Semi-stream joins: memory layout of the stream's hash table H_S and of the cache H_R.

All tuples are in one arena of 64-bit words, in pages of one size. Both tables take pages from one
free list and return them to it, so that memory moves between the two as the cache inequality says.

- A *node* of H_S is a stream tuple: its key, ``row | next << 32`` (``next`` is the address of the
  previous tuple with the same key), a count word, its payload. Nodes are appended and expire in
  that order, so the pages in use, in their order, are the queue Q.
- A *record* of H_R is a row of R: its head (row number and marks) and its payload. A record's
  number gives its page and its offset. The records of a join value have consecutive numbers. The
  head of the last one is marked; that of the first one counts the rows read in this cycle.
- The *directory* has an entry for each join value in either table: 31 bits of its hash, and the
  address of its newest node or, if it has no node, the number of its *value*. The count word of
  that node holds the join value's number of nodes, and the number of its value if it has one. Open
  addressing, entries ordered by hash, deletion by shifting back.
- A *value* is a join value with a state of its own: moving into the cache, or in it. It takes 16
  bytes: its key, one number, its state.
- The *filter* holds all keys of R that were read since it was cleared (see
  :mod:`streamjoin.engines.kernels.semi.filters`).
"""

from typing import NamedTuple

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
"""Bits of a tag: fewer than TAG_MASK has, so that the tag of an empty slot is above all others."""

OVERFLOW = 64
"""Slots after the last home slot; one more, after them, is always empty."""

NODE_HEADER = 3
"""64-bit words of a node before its payload."""

COUNT_MASK = U64((1 << 32) - 1)
MATCHED = U64(1 << 32)
"""Bit of a count word: a row of R with this join value was read since its nodes are here."""

MISSING = U64(1 << 33)
"""Bit of a count word: a tuple of the join value has met all of R without a match."""

VALUE_SHIFT = U64(34)
"""The bits of a count word from here on hold the number of the join value's value, plus 1."""

FLAGS = MATCHED | MISSING
BELOW_VALUE = (U64(1) << VALUE_SHIFT) - U64(1)

LAST = U64(1 << 63)
"""Bit of a record's head: it is the last one of its join value."""

SEEN_ONE = U64(1 << 32)
SEEN_MASK = U64(0x7FFFFFFF)
"""Bits of the first record's head, from bit 32 on: its join value's rows read in this cycle."""

# Columns of the table of values.
NUMBER, STATUS = range(2)
"""``NUMBER``: of the first record; of the rows while they are counted; of the next free value."""

VALUE_COLUMNS = 2
VALUE_BYTES = 4 * VALUE_COLUMNS + 8
"""Bytes of a value: its columns and its key."""

ABSENT_NODES = 3
"""Minimum waiting tuples of a value without a row in R that justify the value's bytes: they take
twice as many, as one cycle's count is often chance."""

# States of a value: the lower bits of STATUS.
FREE, COUNTING, LOADING, CACHED, ABSENT = range(5)
STATE_MASK = U32(7)
BROKEN = U32(8)
"""Bit of STATUS: the value's rows differ from those that were counted."""

USE = U32(16)
"""One use in STATUS: the bits from here on count the tuples since the last eviction."""

USE_SHIFT = 4
MAX_USES = (1 << 28) - 1

# Indices into the array of numbers that the kernels share.
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
    FREE_VALUE,
    FILTER_WORDS,
    REJECTS,
    REJECTED,
    ADDED,
) = range(31)
NUMBERS = 31

# Why a step ended.
DONE, FULL_OUTPUT, NO_PAGE, NO_ENTRY, AT_QUOTA, NO_VALUE = range(6)


class TableArrays(NamedTuple):
    """The arrays of both hash tables.

    Attributes
    ----------
    numbers : ndarray of uint64, shape (NUMBERS,)
        State that the kernels share, by the indices above.
    arena : ndarray of uint64
        Nodes and records.
    directory : ndarray of uint64, shape (slots + OVERFLOW + 1,)
    value_keys : ndarray of uint64, shape (values,)
        The values' join values.
    values : ndarray of uint32, shape (values, VALUE_COLUMNS)
    queue, record_pages, free_pages : ndarray of uint32
        Numbers of the pages of nodes, of the pages of records, and of free pages.
    filter : ndarray of uint64, shape (words,)
        Keys of R; ``numbers[FILTER_WORDS]`` is 0 without one.
    """

    numbers: Uint64s
    arena: Uint64s
    directory: Uint64s
    value_keys: Uint64s
    values: Values
    queue: Codes
    record_pages: Codes
    free_pages: Codes
    filter: Uint64s


@inlined
def _mix(key: np.uint64) -> np.uint64:
    # Two rounds: the directory keeps upper bits only, and keys may differ in upper bits alone.
    mixed = (key ^ (key >> U64(32))) * U64(0x9E3779B97F4A7C15)
    return U64((mixed ^ (mixed >> U64(29))) * U64(0xBF58476D1CE4E5B9))


@inlined
def _tag_of(mixed: np.uint64) -> np.uint64:
    return U64(mixed >> U64(64 - TAG_BITS))


@inlined
def _hash(key: np.uint64) -> np.uint64:
    return _tag_of(_mix(key))


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
    """Return a key's slot, or the slot to insert it at, whose entry then has another tag.

    Entries are ordered by tag, and so by home slot: the search for an absent key ends at the first
    larger tag. The steps of a loop repeat these lines: with a call, inlined by
    Numba or not, they take about twice as long.
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
    """Insert an entry at the slot from :func:`find`, and shift the entries after it by one."""
    carried = entry
    while carried != EMPTY:
        directory[slot], carried = carried, directory[slot]
        slot += U64(1)


@kernel
def remove(directory: Uint64s, slots: np.uint64, slot: np.uint64) -> None:
    """Empty a slot and shift back the entries that it displaced."""
    while True:
        behind = directory[slot + U64(1)]
        if behind == EMPTY or _home(_tag(behind), slots) == slot + U64(1):
            break
        directory[slot] = behind
        slot += U64(1)
    directory[slot] = EMPTY


@inlined
def _value_of(entry: np.uint64, count: np.uint64) -> np.uint64:
    """Return the number of an entry's value plus 1, or 0; ``count`` is its node's count word."""
    return (entry & LOW) + U64(1) if entry & SPECIAL else count >> VALUE_SHIFT


@inlined
def new_value(
    numbers: Uint64s, value_keys: Uint64s, values: Values, key: np.uint64, status: np.uint32
) -> np.uint64:
    """Take a free value for a join value; there must be one."""
    value = numbers[FREE_VALUE]
    numbers[FREE_VALUE] = U64(values[value, NUMBER])
    numbers[FREE_VALUES] -= U64(1)
    value_keys[value] = key
    values[value, NUMBER], values[value, STATUS] = U32(0), status
    return value
