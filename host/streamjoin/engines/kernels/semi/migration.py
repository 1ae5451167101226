"""Cache migration: moving join values between H_S and the cache H_R.

See :mod:`streamjoin.engines.kernels.semi.layout` for the tables. These steps run between two cycles
through R, never within one.
"""

import numpy as np

from streamjoin.engines.kernels.jit import inlined, kernel
from streamjoin.engines.kernels.prefetch import AHEAD, prefetch
from streamjoin.engines.kernels.semi.layout import (
    BELOW_VALUE,
    COUNT_MASK,
    COUNTING,
    EMPTY,
    ENTRIES,
    LAST,
    LEAVING,
    LOADING,
    LOW,
    MATCHED,
    MAX_USES,
    MISSING,
    NUMBER,
    ONE,
    PAGE_RECORDS_LOG2,
    PAGE_WORDS,
    RECORD_WORDS,
    RECORDS,
    SLOTS,
    SPECIAL,
    STATE_MASK,
    U32,
    U64,
    USE_SHIFT,
    VALUE_MASK,
    VALUE_SHIFT,
    Codes,
    TableArrays,
    Uint64s,
    _home,
    _mix,
    _tag,
    insert,
    remove,
)
from streamjoin.engines.kernels.semi.values import U16, free_value, new_value

MAX_NODES = 1 << 12
"""Maximum nodes that :func:`nominate` tells apart; join values with more count as equal."""


@kernel
def nominate(more_than: int, room: int, tables: TableArrays) -> int:
    """Give a value to every join value with more than ``more_than`` nodes and a row in R.

    Their rows are counted from now on. If there are more than ``room``, the join values with the
    largest numbers of nodes get them.

    Returns
    -------
    int
        Join values that got none.
    """
    numbers, arena, directory = tables.numbers, tables.arena, tables.directory
    values, statuses = tables.values, tables.statuses
    form = ONE if numbers[RECORD_WORDS] == U64(1) else RECORDS
    fewest = U64(more_than + 1)
    threshold = min(fewest, U64(MAX_NODES))
    having = np.zeros(MAX_NODES + 1, dtype=np.uint64)
    for slot in range(U64(len(directory))):
        _prefetch_node(directory, slot, arena)
        nodes = _nominee_nodes(directory[slot], arena)
        if nodes >= fewest:
            having[min(nodes, U64(MAX_NODES))] += U64(1)
    nominees = having.sum()
    # Join values of at least `threshold` nodes get a value; those of one node less share the rest.
    left, denied = U64(room), U64(0)
    if nominees > left:
        denied = nominees - left
        threshold = U64(MAX_NODES + 1)
        while having[threshold - U64(1)] <= left:
            threshold -= U64(1)
            left -= having[threshold]
    else:
        left = U64(0)
    for slot in range(U64(len(directory))):
        _prefetch_node(directory, slot, arena)
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
        status = min(nodes, U64(MAX_USES)) << USE_SHIFT | form | COUNTING
        value = new_value(numbers, values, statuses, _mix(arena[newest]), status)
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
    statuses, slots = tables.statuses, tables.numbers[SLOTS]
    for value in chosen:
        statuses[value] = U16(U64(statuses[value]) & ~STATE_MASK | LEAVING)
    slot, length = U64(0), U64(len(directory))
    while slot < length:
        entry = directory[slot]
        if entry & SPECIAL == U64(0):
            _prefetch_node(directory, slot, arena)
            at = (entry & LOW) + U64(2)
            value = arena[at] >> VALUE_SHIFT
            if value != U64(0) and U64(statuses[value - U64(1)]) & STATE_MASK == LEAVING:
                arena[at] = (arena[at] & BELOW_VALUE & ~MISSING) | MATCHED
                free_value(value - U64(1), tables)
        elif entry != EMPTY:
            value = entry & VALUE_MASK
            if U64(statuses[value]) & STATE_MASK == LEAVING:
                remove(directory, slots, slot)
                numbers[ENTRIES] -= U64(1)
                free_value(value, tables)
                continue  # another entry may be here now
        slot += U64(1)


@inlined
def _prefetch_node(directory: Uint64s, slot: np.uint64, arena: Uint64s) -> None:
    ahead = directory[min(slot + U64(AHEAD), U64(len(directory) - 1))]
    if ahead & SPECIAL == U64(0):
        prefetch(arena, (ahead & LOW) + U64(2))


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
    statuses = tables.statuses
    log2 = numbers[PAGE_RECORDS_LOG2]
    mask = (U64(1) << log2) - U64(1)
    number = U64(first)
    for index in range(len(chosen)):
        value = chosen[index]
        uses = min(U64(nodes[index]), U64(MAX_USES))
        values[value, NUMBER] = U32(number)
        statuses[value] = U16(uses << USE_SHIFT | RECORDS | LOADING)
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
    directory, slots = tables.directory, tables.numbers[SLOTS]
    for entry in old:
        if entry != EMPTY:
            slot = _home(_tag(entry), slots)
            while _tag(directory[slot]) < _tag(entry):
                slot += U64(1)
            insert(directory, slot, entry)
