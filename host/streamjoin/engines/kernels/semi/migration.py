"""Cache migration: moving join values between H_S and the cache H_R.

See :mod:`streamjoin.engines.kernels.semi.layout` for the tables. These steps run between two cycles
through R, never within one.
"""

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.jit import inlined, kernel
from streamjoin.engines.kernels.semi.layout import (
    ABSENT,
    BELOW_VALUE,
    BROKEN,
    CACHED,
    COUNT_MASK,
    COUNTING,
    EMPTY,
    ENTRIES,
    FREE,
    FREE_VALUE,
    FREE_VALUES,
    LAST,
    LOADING,
    LOW,
    MATCHED,
    MAX_USES,
    MISSING,
    NUMBER,
    PAGE_RECORDS_LOG2,
    PAGE_WORDS,
    RECORD_WORDS,
    SEEN_MASK,
    SLOTS,
    SPECIAL,
    STATE_MASK,
    STATUS,
    U32,
    U64,
    USE_SHIFT,
    VALUE_SHIFT,
    Codes,
    TableArrays,
    Uint64s,
    _hash,
    _home,
    _tag,
    find,
    insert,
    new_value,
    remove,
)

MAX_NODES = 1 << 12
"""Maximum nodes that :func:`nominate` tells apart; join values with more count as equal."""


@kernel
def nominate(more_than: int, tables: TableArrays) -> int:
    """Give a value to every join value with more than ``more_than`` nodes and a row in R.

    Their rows are counted from now on. If free values are too few, the join values with the largest
    numbers of nodes get them.

    Returns
    -------
    int
        Join values that got no free value.
    """
    numbers, arena, directory = tables.numbers, tables.arena, tables.directory
    value_keys, values = tables.value_keys, tables.values
    fewest = U64(more_than + 1)
    threshold = min(fewest, U64(MAX_NODES))
    having = np.zeros(MAX_NODES + 1, dtype=np.uint64)
    for slot in range(U64(len(directory))):
        nodes = _nominee_nodes(directory[slot], arena)
        if nodes >= fewest:
            having[min(nodes, U64(MAX_NODES))] += U64(1)
    nominees = having.sum()
    # Join values of at least `threshold` nodes get a value; those of one node less share the rest.
    left, denied = numbers[FREE_VALUES], U64(0)
    if nominees > left:
        denied = nominees - left
        threshold = U64(MAX_NODES + 1)
        while having[threshold - U64(1)] <= left:
            threshold -= U64(1)
            left -= having[threshold]
    else:
        left = U64(0)
    for slot in range(U64(len(directory))):
        entry = directory[slot]
        nodes = _nominee_nodes(entry, arena)
        if nodes < fewest:
            continue
        counted = min(nodes, U64(MAX_NODES))
        if counted + U64(1) == threshold and left > U64(0):
            left -= U64(1)
        elif counted < threshold:
            continue
        newest = entry & LOW
        status = U32(min(nodes, U64(MAX_USES)) << U64(USE_SHIFT) | U64(COUNTING))
        value = new_value(numbers, value_keys, values, arena[newest], status)
        arena[newest + U64(2)] |= (value + U64(1)) << VALUE_SHIFT
    return int(denied)


@inlined
def _nominee_nodes(entry: np.uint64, arena: Uint64s) -> np.uint64:
    """Return the nodes of a join value with a row in R and no value; 0 for any other entry."""
    if entry & SPECIAL:  # of an empty slot, too
        return U64(0)
    count = arena[(entry & LOW) + U64(2)]
    return count & COUNT_MASK if count & MATCHED and count >> VALUE_SHIFT == U64(0) else U64(0)


@kernel
def demote(chosen: Codes, tables: TableArrays) -> None:
    """Turn values back into plain join values; those without nodes are removed."""
    numbers, arena, directory = tables.numbers, tables.arena, tables.directory
    value_keys, values = tables.value_keys, tables.values
    slots = numbers[SLOTS]
    for value in chosen:
        tag = _hash(value_keys[value])
        slot = find(directory, slots, arena, value_keys, value_keys[value], tag)
        entry = directory[slot]
        if entry & SPECIAL:
            remove(directory, slots, slot)
            numbers[ENTRIES] -= U64(1)
        else:
            at = (entry & LOW) + U64(2)
            arena[at] = (arena[at] & BELOW_VALUE & ~MISSING) | MATCHED
        values[value, STATUS] = U32(FREE)
        values[value, NUMBER] = U32(numbers[FREE_VALUE])
        numbers[FREE_VALUE] = U64(value)
        numbers[FREE_VALUES] += U64(1)


@kernel
def waiting_nodes(tables: TableArrays, nodes: Codes) -> None:
    """Write the number of nodes of every value; ``nodes`` is 0 before, and stays for the others."""
    arena = tables.arena
    for entry in tables.directory:
        if entry & SPECIAL == U64(0):
            count = arena[(entry & LOW) + U64(2)]
            if count >> VALUE_SHIFT:
                nodes[(count >> VALUE_SHIFT) - U64(1)] = U32(count & COUNT_MASK)


@kernel
def survey(tables: TableArrays, records: Codes, whole: NDArray[np.bool_]) -> None:
    """Write the records of every value, and whether this cycle has read exactly these rows.

    For values that are counted, ``records`` are the rows so far; an absent value is whole if no
    row was read.
    """
    numbers, arena, values = tables.numbers, tables.arena, tables.values
    record_pages = tables.record_pages
    page_words, record_words = numbers[PAGE_WORDS], numbers[RECORD_WORDS]
    log2 = numbers[PAGE_RECORDS_LOG2]
    mask = (U64(1) << log2) - U64(1)
    for value in range(len(values)):
        status = values[value, STATUS]
        state = status & STATE_MASK
        records[value] = values[value, NUMBER] if state == COUNTING else U32(0)
        whole[value] = state == ABSENT and status & BROKEN == U32(0)
        if state in (CACHED, LOADING):
            number, seen, many = U64(values[value, NUMBER]), U64(0), U64(0)
            while True:
                page = U64(record_pages[number >> log2])
                head = arena[page * page_words + (number & mask) * record_words]
                if many == U64(0):
                    seen = (head >> U64(32)) & SEEN_MASK
                many += U64(1)
                number += U64(1)
                if head & LAST:
                    break
            records[value] = U32(many)
            whole[value] = seen == many and status & BROKEN == U32(0)


@kernel
def begin_cycle(tables: TableArrays) -> None:
    """Start a new count of the rows of every value in the cache."""
    numbers, arena, values = tables.numbers, tables.arena, tables.values
    log2 = numbers[PAGE_RECORDS_LOG2]
    mask = (U64(1) << log2) - U64(1)
    for value in range(len(values)):
        if values[value, STATUS] & STATE_MASK == CACHED:
            number = U64(values[value, NUMBER])
            page = U64(tables.record_pages[number >> log2])
            at = page * numbers[PAGE_WORDS] + (number & mask) * numbers[RECORD_WORDS]
            arena[at] &= LOW | LAST


@kernel
def reserve(chosen: Codes, records: Codes, nodes: Codes, first: int, tables: TableArrays) -> int:
    """Give consecutive records, from number ``first`` on, to values that will be loaded.

    Parameters
    ----------
    chosen, records, nodes : ndarray of uint32
        Values, and the records and waiting tuples of each.
    first : int
        Number of the first record.
    tables : TableArrays
        The tables.

    Returns
    -------
    int
        Number of the record after the last one.
    """
    numbers, arena, values = tables.numbers, tables.arena, tables.values
    log2 = numbers[PAGE_RECORDS_LOG2]
    mask = (U64(1) << log2) - U64(1)
    number = U64(first)
    for index in range(len(chosen)):
        value = chosen[index]
        uses = min(U64(nodes[index]), U64(MAX_USES))
        values[value, NUMBER] = U32(number)
        values[value, STATUS] = U32(uses << U64(USE_SHIFT) | U64(LOADING))
        end = number + U64(records[index])
        while number < end:
            page = U64(tables.record_pages[number >> log2])
            at = page * numbers[PAGE_WORDS] + (number & mask) * numbers[RECORD_WORDS]
            number += U64(1)
            arena[at] = LAST if number == end else U64(0)
    return int(number)


@kernel
def compact(order: Codes, tables: TableArrays) -> int:
    """Move the records of these values, ordered by their first record, down over unused ones.

    Returns
    -------
    int
        Records in use.
    """
    numbers, arena, values = tables.numbers, tables.arena, tables.values
    record_pages = tables.record_pages
    page_words, record_words = numbers[PAGE_WORDS], numbers[RECORD_WORDS]
    log2 = numbers[PAGE_RECORDS_LOG2]
    mask = (U64(1) << log2) - U64(1)
    end = U64(0)
    for value in order:
        number, more = U64(values[value, NUMBER]), True
        values[value, NUMBER] = U32(end)
        while more:
            page = U64(record_pages[number >> log2])
            source = page * page_words + (number & mask) * record_words
            more = arena[source] & LAST == U64(0)
            if number != end:
                page = U64(record_pages[end >> log2])
                to = page * page_words + (end & mask) * record_words
                for word in range(record_words):
                    arena[to + word] = arena[source + word]
            number += U64(1)
            end += U64(1)
    return int(end)


@kernel
def spread(tables: TableArrays) -> None:
    """Move the entries of a directory that was enlarged to their slots, within its own memory.

    They are pushed to its end and distributed from there. No slot is needed before it was read: as
    many entries follow in the result as follow at the end.
    """
    directory, slots = tables.directory, tables.numbers[SLOTS]
    begin = len(directory)
    for at in range(len(directory) - 1, -1, -1):
        entry = directory[at]
        if entry != EMPTY:
            begin -= 1
            directory[at] = EMPTY
            directory[begin] = entry
    free = U64(0)
    for at in range(begin, len(directory)):
        entry = directory[at]
        directory[at] = EMPTY
        free = max(free, _home(_tag(entry), slots))
        directory[free] = entry
        free += U64(1)


@kernel
def rehash(old: Uint64s, tables: TableArrays) -> None:
    """Enter all entries of an old directory into a new, empty one."""
    numbers, arena, directory = tables.numbers, tables.arena, tables.directory
    value_keys = tables.value_keys
    slots = numbers[SLOTS]
    for entry in old:
        if entry != EMPTY:
            key = value_keys[entry & LOW] if entry & SPECIAL else arena[entry & LOW]
            insert(directory, find(directory, slots, arena, value_keys, key, _hash(key)), entry)
