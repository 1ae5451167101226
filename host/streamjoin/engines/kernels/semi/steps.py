"""The two phases of a semi-stream join's loop: take stream tuples, probe with rows of R.

See :mod:`streamjoin.engines.kernels.semi.layout` for the tables.
"""

from streamjoin.engines.kernels.jit import kernel
from streamjoin.engines.kernels.prefetch import AHEAD, prefetch
from streamjoin.engines.kernels.semi.filters import _filter_bits, _filter_word
from streamjoin.engines.kernels.semi.layout import (
    ABSENT,
    ADDED,
    AT,
    AT_QUOTA,
    BROKEN,
    CACHED,
    CHAIN,
    COUNT_MASK,
    DONE,
    EMPTY,
    ENTRIES,
    FILTER_WORDS,
    FIRST_PAGE,
    FORM_MASK,
    FREE_PAGES,
    FROM_CACHE,
    FULL_OUTPUT,
    HALF,
    HASH,
    LAST,
    LAST_EXTRA,
    LOW,
    MATCHED,
    MAX_ENTRIES,
    MAX_INLINE,
    MISSED,
    MISSING,
    NEXT,
    NEXT_AT,
    NEXT_LEFT,
    NO_ENTRY,
    NO_PAGE,
    NODE_HEADER,
    NODE_WORDS,
    NUMBER,
    OLDEST,
    OLDEST_AT,
    OLDEST_LEFT,
    OVERFLOW,
    PAGE_NODES,
    PAGE_RECORDS_LOG2,
    PAGE_WORDS,
    PAGES_USED,
    POSITION,
    QUOTA,
    RECORD_WORDS,
    RECORDS,
    REJECTED,
    REJECTS,
    REST,
    REST_SHIFT,
    SLOTS,
    SPECIAL,
    STATE_MASK,
    U32,
    U64,
    USE_LIMIT,
    USES,
    VALUE_MASK,
    VALUE_SHIFT,
    WITHIN,
    Codes,
    TableArrays,
    Uint64s,
    _hash,
    _home,
    _mix,
    _tag,
    _tag_of,
    _value_of,
    insert,
)
from streamjoin.engines.kernels.semi.values import read_row, use, uses_of_records


@kernel
def take(
    keys: Uint64s,
    end: int,
    first_row: int,
    stream_payload: Uint64s,
    tables: TableArrays,
    out_r: Codes,
    out_s: Codes,
) -> tuple[int, int]:
    """Cache phase: join stream tuples with the cache; insert those that it lacks into H_S.

    Parameters
    ----------
    keys : ndarray of uint64
        The stream's keys; taken from index ``numbers[POSITION]`` on.
    end : int
        Index to stop before.
    first_row : int
        Row number of the first key.
    stream_payload : ndarray of uint64
        Payload words, tuple after tuple, or of one tuple that stands for all.
    tables : TableArrays
        The tables.
    out_r, out_s : ndarray of uint32
        Receive rows of R and S.

    Returns
    -------
    matches : int
        Pairs written.
    status : int
        Why it ended; after FULL_OUTPUT the next call resumes where this one ended.
    """
    numbers, arena, directory = tables.numbers, tables.arena, tables.directory
    values, statuses, queue = tables.values, tables.statuses, tables.queue
    record_pages, free_pages = tables.record_pages, tables.free_pages
    slots, node_words = numbers[SLOTS], numbers[NODE_WORDS]
    page_words, record_words = numbers[PAGE_WORDS], numbers[RECORD_WORDS]
    log2 = numbers[PAGE_RECORDS_LOG2]
    mask = (U64(1) << log2) - U64(1)
    stream_words = node_words - U64(NODE_HEADER)
    shared = U64(len(stream_payload)) == stream_words
    position, last = numbers[POSITION], U64(end)
    matches, room = U64(0), U64(len(out_r))
    filter_words, word_count = tables.filter, numbers[FILTER_WORDS]
    rejects = numbers[REJECTS] != U64(0)
    status = DONE
    while position < last:
        far, near = position + U64(2 * AHEAD), position + U64(AHEAD)
        far, near = (far if far < last else position), (near if near < last else position)
        tag = _hash(keys[far])
        prefetch(directory, _home(tag, slots))
        if rejects:
            prefetch(filter_words, _filter_word(tag, word_count))
        entry = directory[_home(_hash(keys[near]), slots)]
        if entry & SPECIAL == U64(0):
            prefetch(arena, entry & LOW)
        key = keys[position]
        mixed = _mix(key)
        tag, rest = _tag_of(mixed), (mixed >> REST_SHIFT) & REST
        slot = _home(tag, slots)
        while _tag(directory[slot]) < tag:
            slot += U64(1)
        while _tag(directory[slot]) == tag:
            entry = directory[slot]
            if entry & SPECIAL == U64(0):
                if arena[entry & LOW] == key:
                    break
            elif U64(values[entry & VALUE_MASK, HASH]) == mixed & LOW and (entry & REST) == rest:
                break
            slot += U64(1)
        entry = directory[slot]
        older, count = U64(0), U64(0)
        known = _tag(entry) == tag
        if known:
            if entry & SPECIAL:
                count = _value_of(entry, count) << VALUE_SHIFT
            else:
                older = entry & LOW
                count = arena[older + U64(2)]
            value = count >> VALUE_SHIFT
            if value != U64(0):
                value -= U64(1)
                # A value whose rows of R have changed waits for R like any other.
                status_bits = U64(statuses[value])
                state, form = status_bits & (STATE_MASK | BROKEN), status_bits & FORM_MASK
                if state == ABSENT:
                    use(statuses, value, numbers[USES + 1], numbers[USE_LIMIT])
                    numbers[MISSED] += U64(1)
                    position += U64(1)
                    continue
                if state == CACHED:
                    uses, stream_row = numbers[USES + 1], U32(U64(first_row) + position)
                    if form == RECORDS:
                        done, more = numbers[WITHIN], True
                        first = U64(values[value, NUMBER])
                        while more and matches < room:
                            number = first + done
                            page = U64(record_pages[number >> log2])
                            head = arena[page * page_words + (number & mask) * record_words]
                            out_r[matches] = U32(head & LOW)
                            out_s[matches] = stream_row
                            matches += U64(1)
                            done += U64(1)
                            more = head & LAST == U64(0)
                        if more:
                            numbers[WITHIN] = done
                            status = FULL_OUTPUT
                            break
                        numbers[WITHIN] = U64(0)
                        uses = uses_of_records(done, position, numbers)
                    elif matches + U64(MAX_INLINE) > room:
                        status = FULL_OUTPUT
                        break
                    else:
                        held = U64(values[value, NUMBER])
                        if form == CHAIN:
                            rows, last_extra = U64(1), False
                            while not last_extra:
                                out_r[matches] = values[held, HASH]
                                out_s[matches] = stream_row
                                matches += U64(1)
                                rows += U64(1)
                                last_extra = U64(statuses[held]) & LAST_EXTRA != U64(0)
                                held = U64(values[held, NUMBER])
                            uses = numbers[U64(USES) + rows]
                        out_r[matches] = U32(held)
                        out_s[matches] = stream_row
                        matches += U64(1)
                    use(statuses, value, uses, numbers[USE_LIMIT])
                    numbers[FROM_CACHE] += U64(1)
                    position += U64(1)
                    continue
            elif count & MISSING:
                numbers[MISSED] += U64(1)
                position += U64(1)
                continue
        elif rejects:
            bits = _filter_bits(mixed)
            if filter_words[_filter_word(tag, word_count)] & bits != bits:
                numbers[REJECTED] += U64(1)
                position += U64(1)
                continue
        if numbers[NEXT] >= numbers[QUOTA]:
            status = AT_QUOTA
            break
        if not known and (
            numbers[ENTRIES] >= numbers[MAX_ENTRIES]
            or directory[slots + U64(OVERFLOW - 1)] != EMPTY
        ):
            status = NO_ENTRY
            break
        if numbers[NEXT_LEFT] == U64(0):
            if numbers[FREE_PAGES] == U64(0):
                status = NO_PAGE
                break
            numbers[FREE_PAGES] -= U64(1)
            page = U64(free_pages[numbers[FREE_PAGES]])
            behind = numbers[FIRST_PAGE] + numbers[PAGES_USED]
            queue[behind if behind < U64(len(queue)) else behind - U64(len(queue))] = U32(page)
            numbers[PAGES_USED] += U64(1)
            numbers[NEXT_AT], numbers[NEXT_LEFT] = page * page_words, numbers[PAGE_NODES]
            if numbers[OLDEST] == numbers[NEXT]:
                numbers[OLDEST_AT] = numbers[NEXT_AT]
                numbers[OLDEST_LEFT] = numbers[PAGE_NODES]
        at = numbers[NEXT_AT]
        arena[at] = key
        arena[at + U64(1)] = (U64(first_row) + position) | older << HALF
        start = U64(0) if shared else position * stream_words
        for word in range(stream_words):
            arena[at + U64(NODE_HEADER) + word] = stream_payload[start + word]
        arena[at + U64(2)] = count + U64(1)
        if known:
            directory[slot] = tag << HALF | at
        else:
            insert(directory, slot, tag << HALF | at)
            numbers[ENTRIES] += U64(1)
        numbers[NEXT_AT] += node_words
        numbers[NEXT_LEFT] -= U64(1)
        numbers[NEXT] += U64(1)
        position += U64(1)
    numbers[POSITION] = position
    return int(matches), status


@kernel
def probe(
    r_keys: Uint64s,
    r_rows: Uint64s,
    payload: Uint64s,
    first: int,
    stride: int,
    tables: TableArrays,
    out_r: Codes,
    out_s: Codes,
) -> tuple[int, int]:
    """Disk phase: probe H_S with the rows of a partition, from ``numbers[POSITION]`` on.

    It also counts the rows of values that may be moved, loads the rows of those that are being
    moved, and refreshes the rows of those in the cache; every cycle reads rows in the same order.

    Parameters
    ----------
    r_keys, r_rows, payload, first, stride
        The partition.
    tables, out_r, out_s
        As for :func:`take`.

    Returns
    -------
    matches, status : int
        As for :func:`take`.
    """
    numbers, arena, directory = tables.numbers, tables.arena, tables.directory
    values = tables.values
    slots = numbers[SLOTS]
    position, last = numbers[POSITION], U64(len(r_keys))
    matches, room = U64(0), U64(len(out_r))
    filter_words, word_count = tables.filter, numbers[FILTER_WORDS]
    while position < last:
        far, near = position + U64(2 * AHEAD), position + U64(AHEAD)
        far, near = (far if far < last else position), (near if near < last else position)
        tag = _hash(r_keys[far])
        prefetch(directory, _home(tag, slots))
        if word_count:
            prefetch(filter_words, _filter_word(tag, word_count))
        entry = directory[_home(_hash(r_keys[near]), slots)]
        if entry & SPECIAL == U64(0):
            prefetch(arena, entry & LOW)
        key = r_keys[position]
        mixed = _mix(key)
        tag, rest = _tag_of(mixed), (mixed >> REST_SHIFT) & REST
        if word_count:
            word, bits = _filter_word(tag, word_count), _filter_bits(mixed)
            if filter_words[word] & bits != bits:
                filter_words[word] |= bits
                numbers[ADDED] += U64(1)
        slot = _home(tag, slots)
        while _tag(directory[slot]) < tag:
            slot += U64(1)
        while _tag(directory[slot]) == tag:
            entry = directory[slot]
            if entry & SPECIAL == U64(0):
                if arena[entry & LOW] == key:
                    break
            elif U64(values[entry & VALUE_MASK, HASH]) == mixed & LOW and (entry & REST) == rest:
                break
            slot += U64(1)
        entry = directory[slot]
        if _tag(entry) != tag:
            position += U64(1)
            continue
        left, at = numbers[WITHIN], numbers[AT]
        if left == U64(0):
            count = U64(0)
            if entry & SPECIAL == U64(0):
                at = entry & LOW
                count = arena[at + U64(2)]
                left = count & COUNT_MASK
                arena[at + U64(2)] = (count | MATCHED) & ~MISSING
            value = _value_of(entry, count)
            if value != U64(0):
                source = U64(first) + position * U64(stride)
                read_row(value - U64(1), r_rows[position] & LOW, payload, source, tables)
        upto = min(left, room - matches)
        for _ in range(upto):
            link = arena[at + U64(1)]
            out_r[matches] = U32(r_rows[position])
            out_s[matches] = U32(link & LOW)
            matches += U64(1)
            at = link >> HALF
        numbers[WITHIN], numbers[AT] = left - upto, at
        if upto < left:
            numbers[POSITION] = position
            return int(matches), FULL_OUTPUT
        position += U64(1)
    numbers[POSITION] = position
    return int(matches), DONE
