"""Cache migration: moving join values between H_S and the cache H_R.

See :mod:`streamjoin.engines.kernels.semi.layout` for the tables. These steps run between two cycles
through R, never within one.
"""

import numpy as np

from streamjoin.engines.kernels.jit import inlined, kernel
from streamjoin.engines.kernels.semi.layout import (
    COUNT_MASK,
    COUNTING,
    EMPTY,
    ENTRIES,
    FIRST,
    FREE,
    FREE_VALUES,
    HALF,
    HEAD,
    LOW,
    MATCHED,
    NODES,
    PAGE_RECORDS_LOG2,
    PAGE_WORDS,
    RECORD_WORDS,
    RECORDS,
    SLOTS,
    SPECIAL,
    STATE,
    TAG_MASK,
    U32,
    U64,
    Codes,
    TableArrays,
    Uint64s,
    _hash,
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
    value_keys, values, free_values = tables.value_keys, tables.values, tables.free_values
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
        value = new_value(numbers, value_keys, values, free_values, arena[newest])
        values[value, STATE] = U32(COUNTING)
        values[value, HEAD], values[value, NODES] = U32(newest), U32(nodes)
        directory[slot] = SPECIAL | (entry & (TAG_MASK << HALF)) | value
    return int(denied)


@inlined
def _nominee_nodes(entry: np.uint64, arena: Uint64s) -> np.uint64:
    """Return the nodes of a plain join value with a row in R; 0 for any other entry."""
    if entry & SPECIAL:  # of an empty slot, too
        return U64(0)
    count = arena[(entry & LOW) + U64(2)]
    return count & COUNT_MASK if count & MATCHED else U64(0)


@kernel
def demote(chosen: Codes, tables: TableArrays) -> None:
    """Turn values back into plain join values; those without nodes are removed."""
    numbers, arena, directory = tables.numbers, tables.arena, tables.directory
    value_keys, values, free_values = tables.value_keys, tables.values, tables.free_values
    slots = numbers[SLOTS]
    for value in chosen:
        tag = _hash(value_keys[value])
        slot = find(directory, slots, arena, value_keys, value_keys[value], tag)
        if values[value, NODES] == U32(0):
            remove(directory, slots, slot)
            numbers[ENTRIES] -= U64(1)
        else:
            newest = U64(values[value, HEAD])
            arena[newest + U64(2)] = U64(values[value, NODES]) | MATCHED
            directory[slot] = tag << HALF | newest
        values[value, STATE] = U32(FREE)
        free_values[numbers[FREE_VALUES]] = value
        numbers[FREE_VALUES] += U64(1)


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
        first, many = U64(values[value, FIRST]), U64(values[value, RECORDS])
        values[value, FIRST] = U32(end)
        for number in range(first, first + many):
            if number != end:
                page = U64(record_pages[number >> log2])
                source = page * page_words + (number & mask) * record_words
                page = U64(record_pages[end >> log2])
                to = page * page_words + (end & mask) * record_words
                for word in range(record_words):
                    arena[to + word] = arena[source + word]
            end += U64(1)
    return int(end)


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
