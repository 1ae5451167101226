"""The expiry step of a semi-stream join's loop.

See :mod:`streamjoin.engines.kernels.semi.layout` for the tables.
"""

import numpy as np

from streamjoin.engines.kernels.jit import inlined, kernel
from streamjoin.engines.kernels.prefetch import AHEAD, prefetch
from streamjoin.engines.kernels.semi.layout import (
    ABSENT,
    ABSENT_NODES,
    COUNT_MASK,
    ENTRIES,
    FIRST_PAGE,
    FREE_PAGES,
    FREE_VALUES,
    KEPT_VALUES,
    LOW,
    MATCHED,
    MISSING,
    NEXT,
    NEXT_LEFT,
    NODE_WORDS,
    OLDEST,
    OLDEST_AT,
    OLDEST_LEFT,
    PAGE_LIMIT,
    PAGE_NODES,
    PAGE_WORDS,
    PAGES_USED,
    SLOTS,
    SPECIAL,
    U64,
    USE_LIMIT,
    USE_SHIFT,
    VALUE_SHIFT,
    Codes,
    TableArrays,
    Uint64s,
    _hash,
    _home,
    _mix,
    _special,
    _tag,
    _tag_of,
    remove,
)
from streamjoin.engines.kernels.semi.values import new_value


@kernel
def expire(upto: int, start_uses: int, tables: TableArrays) -> None:
    """Delete the oldest nodes up to a sequence number; return emptied pages to the free list.

    A tuple that expires unmatched has shown that R lacks its value. If values are kept and other
    tuples of the same value wait, it is kept as absent: the more tuples wait, the fewer free
    values are required. If no value is free, the count word is marked as missing, and later tuples
    of the value are skipped while the others wait.

    Parameters
    ----------
    upto : int
        Sequence number.
    start_uses : int
        Uses of a new value for each of its waiting tuples; below 0: no values are kept.
    tables : TableArrays
        The tables.
    """
    numbers, arena, directory = tables.numbers, tables.arena, tables.directory
    values, statuses = tables.values, tables.statuses
    queue, free_pages = tables.queue, tables.free_pages
    slots, node_words, page_words = numbers[SLOTS], numbers[NODE_WORDS], numbers[PAGE_WORDS]
    while numbers[OLDEST] < U64(upto):
        at = numbers[OLDEST_AT]
        if numbers[OLDEST_LEFT] > U64(2 * AHEAD):
            far, near = at + U64(2 * AHEAD) * node_words, at + U64(AHEAD) * node_words
            prefetch(directory, _home(_hash(arena[far]), slots))
            entry = directory[_home(_hash(arena[near]), slots)]
            if entry & SPECIAL == U64(0):
                prefetch(arena, entry & LOW)
        key = arena[at]
        mixed = _mix(key)
        tag = _tag_of(mixed)
        slot = _home(tag, slots)
        while _tag(directory[slot]) < tag:
            slot += U64(1)
        while _tag(directory[slot]) == tag:
            entry = directory[slot]
            if entry & SPECIAL == U64(0) and arena[entry & LOW] == key:
                break  # a join value with a node has its node's address here
            slot += U64(1)
        newest = directory[slot] & LOW
        count = arena[newest + U64(2)]
        nodes, value = count & COUNT_MASK, count >> VALUE_SHIFT
        if nodes > U64(1):
            missing = start_uses >= 0 and nodes >= U64(ABSENT_NODES) and value == U64(0)
            missing &= count & (MATCHED | MISSING) == U64(0)
            if missing and nodes * numbers[FREE_VALUES] > U64(ABSENT_NODES) * numbers[KEPT_VALUES]:
                uses = min(nodes * U64(start_uses), numbers[USE_LIMIT])
                status = uses << USE_SHIFT | ABSENT
                value = new_value(numbers, values, statuses, mixed, status)
                count |= (value + U64(1)) << VALUE_SHIFT
            elif missing:
                count |= MISSING
            arena[newest + U64(2)] = count - U64(1)
        elif value != U64(0):
            directory[slot] = _special(mixed, value - U64(1))
        else:
            remove(directory, slots, slot)
            numbers[ENTRIES] -= U64(1)
        numbers[OLDEST] += U64(1)
        numbers[OLDEST_LEFT] -= U64(1)
        numbers[OLDEST_AT] = at + node_words
        if numbers[OLDEST_LEFT] == U64(0):
            _next_page(numbers, queue, free_pages, page_words)
    if numbers[OLDEST] == numbers[NEXT] and numbers[PAGES_USED] > U64(0):
        _next_page(numbers, queue, free_pages, page_words)  # a page without live nodes
        numbers[NEXT_LEFT] = U64(0)


@inlined
def _next_page(numbers: Uint64s, queue: Codes, free_pages: Codes, page_words: np.uint64) -> None:
    page = queue[numbers[FIRST_PAGE]]
    if U64(page) < numbers[PAGE_LIMIT]:
        free_pages[numbers[FREE_PAGES]] = page
        numbers[FREE_PAGES] += U64(1)
    numbers[PAGES_USED] -= U64(1)
    behind = numbers[FIRST_PAGE] + U64(1)
    numbers[FIRST_PAGE] = U64(0) if behind == U64(len(queue)) else behind
    numbers[OLDEST_AT] = U64(queue[numbers[FIRST_PAGE]]) * page_words
    numbers[OLDEST_LEFT] = numbers[PAGE_NODES]
