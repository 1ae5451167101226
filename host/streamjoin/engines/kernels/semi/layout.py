"""Semi-stream joins: memory layout of the stream's hash table H_S and of the cache H_R.

All tuples are in one arena of 64-bit words, in pages of one size. Both tables take pages from one
free list and return them to it, so that memory moves between the two as the cache inequality says.

- A *node* of H_S is a stream tuple: its key, ``row | next << 32`` (``next`` is the address of the
  previous tuple with the same key), a count word, its payload. Nodes are appended and expire in
  that order, so the pages in use, in their order, are the queue Q.
- A *record* of H_R is a row of R: its head (row number and marks) and its payload. A record's
  number gives its page and its offset. The records of a join value have consecutive numbers. The
  head of the last one is marked; that of the first one counts the rows read in this cycle.
- The *directory* has an entry for each join value in either table: 30 bits of its hash, and the
  address of its newest node or, if it has no node, the number of its *value* and two more bits of
  the hash. The count word of that node holds the join value's number of nodes, and the number of
  its value if it has one. Open addressing, entries ordered by hash, deletion by shifting back.
- A *value* is a join value with a state of its own: moving into the cache, or in it. It takes ten
  bytes: 32 bits of its hash, one number, its state. The hash is a bijection of the key, and the
  directory's entry has its other bits, so that the key itself is not held.
- Where a record is a row number alone, values hold up to :data:`MAX_INLINE` of them themselves:
  one as its number, more in a chain of *extra* values. An extra value has a row number and the
  number of the next one; the last one has two row numbers. The first one counts the rows that
  were read in this cycle.
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
Statuses = NDArray[np.uint16]

U32, U64 = np.uint32, np.uint64
EMPTY = U64(0xFFFFFFFFFFFFFFFF)
SPECIAL = U64(1 << 63)
LOW = U64(0xFFFFFFFF)
HALF = U64(32)
TAG_MASK = U64(0x7FFFFFFF)
VALUE_MASK = U64(0x3FFFFFFF)
"""Bits of a directory entry for the number of a value; the two above it are of the hash."""

REST = U64(3 << 30)
REST_SHIFT = U64(2)
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
NUMBER, HASH = range(2)
"""``NUMBER``: of the first record; of the rows while they are counted; of the next free value; a
row number; of the first extra value. ``HASH``: lower bits of the hash; an extra value's row."""

VALUE_COLUMNS = 2
VALUE_BYTES = 4 * VALUE_COLUMNS + 2
"""Bytes of a value: its columns and its status."""

ABSENT_NODES = 3
"""Minimum waiting tuples of a value without a row in R that justify the value's bytes: they take
twice as many, as one cycle's count is often chance."""

# States of a value: the lower bits of its status.
FREE, COUNTING, LOADING, CACHED, ABSENT, EXTRA, LEAVING = (U64(state) for state in range(7))
STATE_MASK = U64(7)
BROKEN = U64(8)
"""Bit of a status: the value's rows differ from those that were counted."""

LAST_EXTRA = BROKEN
"""Bit of an extra value's status: it is the last one of its chain."""

RECORDS, ONE, ONE_SEEN, CHAIN = (U64(form << 4) for form in range(4))
"""Form of a value's rows, in its status: in records, one row number, the same read in this cycle, a
chain."""

FORM_MASK = U64(3 << 4)
SEEN = ONE_SEEN - ONE

USE_SHIFT = U64(6)
"""A status has from this bit on the uses of a value: their average, weighted by what it saves
(:data:`USE_SCALE`). While its rows are counted: its waiting tuples. Of a chain's first extra value:
the rows that were read in this cycle."""

MAX_USES = (1 << 10) - 1
BELOW_USES = (U64(1) << USE_SHIFT) - U64(1)

EVEN_TIMES = 4
"""Maximum uses of a value, as a multiple of those of a value that takes as many bytes as it saves.
So a value that is used no more leaves after a few cycles, however often it was used before."""

MAX_INLINE = 4
"""Maximum rows of a value without records."""

USE_SCALE = 8
"""Uses that count for the tuples of a cycle which take as many bytes in H_S as the value does."""

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
    USE_LIMIT,
    USES,
) = range(33)
NUMBERS = 33 + MAX_INLINE
"""``USE_LIMIT``: maximum uses of a value. From ``USES`` on: the bytes that a tuple saves in
H_S, and the uses that a tuple counts for a value with 1 to :data:`MAX_INLINE` rows in it."""

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
    values : ndarray of uint32, shape (values, VALUE_COLUMNS)
    statuses : ndarray of uint16, shape (values,)
    queue, record_pages, free_pages : ndarray of uint32
        Numbers of the pages of nodes, of the pages of records, and of free pages.
    filter : ndarray of uint64, shape (words,)
        Keys of R; ``numbers[FILTER_WORDS]`` is 0 without one.
    """

    numbers: Uint64s
    arena: Uint64s
    directory: Uint64s
    values: Values
    statuses: Statuses
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
def insert(directory: Uint64s, slot: np.uint64, entry: np.uint64) -> None:
    """Insert an entry at the first slot whose tag is not smaller; entries after it move by one."""
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
    return (entry & VALUE_MASK) + U64(1) if entry & SPECIAL else count >> VALUE_SHIFT


@inlined
def _special(mixed: np.uint64, value: np.uint64) -> np.uint64:
    """Return the directory's entry of a value without nodes."""
    return U64(SPECIAL | _tag_of(mixed) << HALF | (mixed >> REST_SHIFT) & REST | value)
