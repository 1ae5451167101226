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
    HALF,
    HEAD,
    KEPT_VALUES,
    LOW,
    MATCHED,
    MISSING,
    NEXT,
    NEXT_LEFT,
    NODE_WORDS,
    NODES,
    OLDEST,
    OLDEST_AT,
    OLDEST_LEFT,
    PAGE_LIMIT,
    PAGE_NODES,
    PAGE_WORDS,
    PAGES_USED,
    SINCE,
    SLOTS,
    SPECIAL,
    STATE,
    U32,
    U64,
    Codes,
    TableArrays,
    Uint64s,
    _hash,
    _home,
    _tag,
    new_value,
    remove,
)


@kernel
def expire(upto: int, cycle: int, tables: TableArrays) -> None:
    """Delete the oldest nodes up to a sequence number; return emptied pages to the free list.

    A tuple that expires unmatched has shown that R lacks its value. In a cycle above 0, if other
    tuples of the same value wait, the value is kept as absent: the more tuples wait, the fewer free
    values are required. If no value is free, the count word is marked as missing, and later tuples
    of the value are skipped while the others wait.
    """
    numbers, arena, directory = tables.numbers, tables.arena, tables.directory
    value_keys, values, free_values = tables.value_keys, tables.values, tables.free_values
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
        tag = _hash(key)
        slot = _home(tag, slots)
        while _tag(directory[slot]) < tag:
            slot += U64(1)
        while _tag(directory[slot]) == tag:
            entry = directory[slot]
            if (value_keys[entry & LOW] if entry & SPECIAL else arena[entry & LOW]) == key:
                break
            slot += U64(1)
        entry = directory[slot]
        if entry & SPECIAL:
            values[entry & LOW, NODES] -= U32(1)
        else:
            newest = entry & LOW
            count = arena[newest + U64(2)]
            nodes = count & COUNT_MASK
            missing = cycle > 0 and nodes >= U64(ABSENT_NODES)
            missing &= count & (MATCHED | MISSING) == U64(0)
            if missing and nodes * numbers[FREE_VALUES] > U64(ABSENT_NODES) * numbers[KEPT_VALUES]:
                value = new_value(numbers, value_keys, values, free_values, key)
                values[value, STATE], values[value, SINCE] = U32(ABSENT), U32(cycle)
                values[value, HEAD], values[value, NODES] = U32(newest), U32(nodes - U64(1))
                directory[slot] = SPECIAL | tag << HALF | value
            elif nodes > U64(1):
                if missing:
                    count |= MISSING
                arena[newest + U64(2)] = count - U64(1)
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
