"""Semi-stream joins: the values' rows, in records or without, and how often a value is used.

See :mod:`streamjoin.engines.kernels.semi.layout` for the tables.
"""

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.jit import inlined, kernel
from streamjoin.engines.kernels.semi.layout import (
    ABSENT,
    BELOW_USES,
    BROKEN,
    CACHED,
    CHAIN,
    COUNTING,
    EXTRA,
    FORM_MASK,
    FREE,
    FREE_VALUE,
    FREE_VALUES,
    HALF,
    HASH,
    LAST,
    LAST_EXTRA,
    LOADING,
    LOW,
    MAX_INLINE,
    NUMBER,
    ONE,
    ONE_SEEN,
    PAGE_RECORDS_LOG2,
    PAGE_WORDS,
    RECORD_WORDS,
    RECORDS,
    SEEN,
    SEEN_MASK,
    SEEN_ONE,
    STATE_MASK,
    U32,
    U64,
    USE_SCALE,
    USE_SHIFT,
    USES,
    VALUE_BYTES,
    Codes,
    Statuses,
    TableArrays,
    Uint64s,
    Values,
)

U16 = np.uint16
RANDOM_BITS = U64(24)


@inlined
def new_value(
    numbers: Uint64s, values: Values, statuses: Statuses, low: np.uint64, status: np.uint64
) -> np.uint64:
    """Take a free value for a join value, of whose hash ``low`` has the lower bits."""
    value = numbers[FREE_VALUE]
    numbers[FREE_VALUE] = U64(values[value, NUMBER])
    numbers[FREE_VALUES] -= U64(1)
    values[value, HASH], values[value, NUMBER] = U32(low & LOW), U32(0)
    statuses[value] = U16(status)
    return value


@kernel
def free_value(value: np.uint64, tables: TableArrays) -> None:
    """Return a value, and its extra ones, to the free values."""
    numbers, values, statuses = tables.numbers, tables.values, tables.statuses
    if U64(statuses[value]) & FORM_MASK == CHAIN:
        free_chain(U64(values[value, NUMBER]), tables)
    statuses[value] = U16(FREE)
    values[value, NUMBER] = U32(numbers[FREE_VALUE])
    numbers[FREE_VALUE] = value
    numbers[FREE_VALUES] += U64(1)


@kernel
def free_chain(first: np.uint64, tables: TableArrays) -> None:
    """Return the extra values of a chain to the free values."""
    numbers, values, statuses = tables.numbers, tables.values, tables.statuses
    extra, last = first, False
    while not last:
        last = U64(statuses[extra]) & LAST_EXTRA != U64(0)
        following = U64(values[extra, NUMBER])
        statuses[extra] = U16(FREE)
        values[extra, NUMBER] = U32(numbers[FREE_VALUE])
        numbers[FREE_VALUE] = extra
        numbers[FREE_VALUES] += U64(1)
        extra = following


@inlined
def chain_rows(first: np.uint64, values: Values, statuses: Statuses) -> np.uint64:
    """Return the rows of a chain."""
    rows, extra = U64(2), first
    while U64(statuses[extra]) & LAST_EXTRA == U64(0):
        extra = U64(values[extra, NUMBER])
        rows += U64(1)
    return rows


@kernel
def read_row(
    value: np.uint64,
    row: np.uint64,
    payload: Uint64s,
    source: np.uint64,
    tables: TableArrays,
) -> None:
    """Compare a row of R with what is held of its join value, or count it, or load it.

    Parameters
    ----------
    value, row : int
        The value, and the row's number.
    payload, source
        The row's payload words begin there.
    tables : TableArrays
        The tables.
    """
    values, statuses = tables.values, tables.statuses
    status = U64(statuses[value])
    state, form = status & STATE_MASK, status & FORM_MASK
    if status & BROKEN:
        return
    if state == ABSENT:
        statuses[value] = U16(status | BROKEN)
    elif form == RECORDS:
        if state == COUNTING:
            values[value, NUMBER] += U32(1)
        else:
            _read_record(value, row, payload, source, tables)
    elif state == COUNTING:
        _add_row(value, row, tables)
    elif form == CHAIN:
        extra = U64(values[value, NUMBER])
        head = U64(statuses[extra])
        left, expected = head >> USE_SHIFT, False
        # Rows come in the same order in every cycle.
        while True:
            last = U64(statuses[extra]) & LAST_EXTRA != U64(0)
            if left == U64(0):
                expected = U64(values[extra, HASH]) == row
                break
            if last:
                expected = left == U64(1) and U64(values[extra, NUMBER]) == row
                break
            left -= U64(1)
            extra = U64(values[extra, NUMBER])
        if expected:
            statuses[values[value, NUMBER]] = U16(head + (U64(1) << USE_SHIFT))
        else:
            statuses[value] = U16(status | BROKEN)
    elif form == ONE and U64(values[value, NUMBER]) == row:
        statuses[value] = U16(status + SEEN)
    else:
        statuses[value] = U16(status | BROKEN)


@kernel
def _add_row(value: np.uint64, row: np.uint64, tables: TableArrays) -> None:
    """Add a row to a value that is counted: beside it while there are few, else it is counted."""
    numbers, values, statuses = tables.numbers, tables.values, tables.statuses
    status = U64(statuses[value])
    form = status & FORM_MASK
    if form == ONE:
        values[value, NUMBER] = U32(row)
        statuses[value] = U16(status + SEEN)
        return
    first = U64(values[value, NUMBER])
    rows = U64(1) if form == ONE_SEEN else chain_rows(first, values, statuses)
    if rows == U64(MAX_INLINE):
        free_chain(first, tables)
        statuses[value] = U16(status & ~FORM_MASK | RECORDS)
        values[value, NUMBER] = U32(MAX_INLINE + 1)
    elif numbers[FREE_VALUES] == U64(0):
        statuses[value] = U16(status | BROKEN)
    elif form == ONE_SEEN:
        one_more = EXTRA | LAST_EXTRA | U64(2) << USE_SHIFT
        extra = new_value(numbers, values, statuses, first, one_more)
        values[extra, NUMBER], values[value, NUMBER] = U32(row), U32(extra)
        statuses[value] = U16(status & ~FORM_MASK | CHAIN)
    else:
        last = first
        while U64(statuses[last]) & LAST_EXTRA == U64(0):
            last = U64(values[last, NUMBER])
        held = U64(values[last, NUMBER])
        extra = new_value(numbers, values, statuses, held, EXTRA | LAST_EXTRA)
        values[extra, NUMBER], values[last, NUMBER] = U32(row), U32(extra)
        statuses[last] = U16(U64(statuses[last]) & ~LAST_EXTRA)
        statuses[first] = U16(U64(statuses[first]) + (U64(1) << USE_SHIFT))


@kernel
def _read_record(
    value: np.uint64, row: np.uint64, payload: Uint64s, source: np.uint64, tables: TableArrays
) -> None:
    numbers, arena, record_pages = tables.numbers, tables.arena, tables.record_pages
    page_words, record_words = numbers[PAGE_WORDS], numbers[RECORD_WORDS]
    log2 = numbers[PAGE_RECORDS_LOG2]
    mask = (U64(1) << log2) - U64(1)
    status = U64(tables.statuses[value])
    number = U64(tables.values[value, NUMBER])
    page = U64(record_pages[number >> log2])
    first_at = page * page_words + (number & mask) * record_words
    seen = (arena[first_at] >> HALF) & SEEN_MASK
    # The row belongs into the record after the last one that was read, if any.
    number += seen
    ended = False
    if seen != U64(0):
        page = U64(record_pages[(number - U64(1)) >> log2])
        to = page * page_words + ((number - U64(1)) & mask) * record_words
        ended = arena[to] & LAST != U64(0)
    to = first_at
    if seen != U64(0) and not ended:
        page = U64(record_pages[number >> log2])
        to = page * page_words + (number & mask) * record_words
    if status & STATE_MASK == LOADING and not ended:
        arena[to] = (arena[to] & ~LOW) | row
    if ended or arena[to] & LOW != row:
        tables.statuses[value] = U16(status | BROKEN)
    else:
        for word in range(record_words - U64(1)):
            arena[to + U64(1) + word] = payload[source + word]
        arena[first_at] += SEEN_ONE


@inlined
def uses_of_records(rows: np.uint64, position: np.uint64, numbers: Uint64s) -> np.uint64:
    """Return the uses that a stream tuple of a value with records counts, rounded by chance."""
    value_bytes = rows * numbers[RECORD_WORDS] * U64(8) + U64(VALUE_BYTES)
    chance = (position * U64(0x9E3779B97F4A7C15)) >> (U64(64) - RANDOM_BITS)
    below = (chance * value_bytes) >> RANDOM_BITS
    return U64((U64(USE_SCALE) * numbers[USES] + below) // value_bytes)


@inlined
def use(statuses: Statuses, value: np.uint64, uses: np.uint64, limit: np.uint64) -> None:
    """Count uses of a value."""
    status = U64(statuses[value])
    total = min((status >> USE_SHIFT) + uses, limit)
    statuses[value] = U16(status & BELOW_USES | total << USE_SHIFT)


@kernel
def age(cycles: int, rare_uses: int, tables: TableArrays, rare: NDArray[np.bool_]) -> None:
    """Say which values in the cache are used too rarely; the uses of the others fade.

    Parameters
    ----------
    cycles : int
        Cycles of which the uses are averaged.
    rare_uses : int
        Maximum uses of a value that is used too rarely.
    tables : TableArrays
        The tables.
    rare : ndarray of bool, shape (values,)
        Receives it.
    """
    statuses = tables.statuses
    for value in range(len(statuses)):
        status = U64(statuses[value])
        state = status & STATE_MASK
        rare[value] = False
        if state in (CACHED, ABSENT):
            uses = status >> USE_SHIFT
            rare[value] = uses <= U64(rare_uses)
            uses -= uses // U64(cycles)
            statuses[value] = U16(status & BELOW_USES | uses << USE_SHIFT)


@kernel
def survey(tables: TableArrays, rows: Codes, whole: NDArray[np.bool_]) -> None:
    """Write the rows of every value, and whether this cycle has read exactly these.

    For values that are counted these are the rows so far; an absent value is whole if no row was
    read.
    """
    numbers, arena, values = tables.numbers, tables.arena, tables.values
    statuses, record_pages = tables.statuses, tables.record_pages
    page_words, record_words = numbers[PAGE_WORDS], numbers[RECORD_WORDS]
    log2 = numbers[PAGE_RECORDS_LOG2]
    mask = (U64(1) << log2) - U64(1)
    for value in range(len(statuses)):
        status = U64(statuses[value])
        state, form = status & STATE_MASK, status & FORM_MASK
        many, seen = U64(0), U64(0)
        if state in (COUNTING, CACHED, LOADING):
            if form == CHAIN:
                first = U64(values[value, NUMBER])
                many = chain_rows(first, values, statuses)
                seen = U64(statuses[first]) >> USE_SHIFT
            elif form != RECORDS:
                seen = U64(1) if form == ONE_SEEN else U64(0)
                many = seen if state == COUNTING else U64(1)
            elif state == COUNTING:
                many = seen = U64(values[value, NUMBER])
            else:
                number = U64(values[value, NUMBER])
                while True:
                    page = U64(record_pages[number >> log2])
                    head = arena[page * page_words + (number & mask) * record_words]
                    if many == U64(0):
                        seen = (head >> HALF) & SEEN_MASK
                    many += U64(1)
                    number += U64(1)
                    if head & LAST:
                        break
        elif state != ABSENT:
            seen = U64(1)  # a free value is not whole
        rows[value] = U32(many)
        whole[value] = seen == many and status & BROKEN == U64(0)


@kernel
def begin_cycle(tables: TableArrays) -> None:
    """Start a new count of the rows of every value in the cache."""
    numbers, arena, values = tables.numbers, tables.arena, tables.values
    statuses = tables.statuses
    log2 = numbers[PAGE_RECORDS_LOG2]
    mask = (U64(1) << log2) - U64(1)
    for value in range(len(statuses)):
        status = U64(statuses[value])
        if status & STATE_MASK != CACHED:
            continue
        form = status & FORM_MASK
        if form == RECORDS:
            number = U64(values[value, NUMBER])
            page = U64(tables.record_pages[number >> log2])
            at = page * numbers[PAGE_WORDS] + (number & mask) * numbers[RECORD_WORDS]
            arena[at] &= LOW | LAST
        elif form == CHAIN:
            first = values[value, NUMBER]
            statuses[first] = U16(U64(statuses[first]) & BELOW_USES)
        elif form == ONE_SEEN:
            statuses[value] = U16(status - SEEN)
