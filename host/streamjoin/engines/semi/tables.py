"""The memory of a semi-stream join: one arena for both hash tables, within one budget."""

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.semi import layout as semistream
from streamjoin.engines.kernels.semi import migration
from streamjoin.engines.kernels.semi.layout import (
    ENTRIES,
    FILTER_WORDS,
    FIRST_PAGE,
    FREE_PAGES,
    FREE_VALUE,
    FREE_VALUES,
    KEPT_VALUES,
    MAX_ENTRIES,
    MAX_INLINE,
    NEXT,
    NODE_HEADER,
    NODE_WORDS,
    NUMBER,
    NUMBERS,
    OLDEST,
    PAGE_LIMIT,
    PAGE_NODES,
    PAGE_RECORDS_LOG2,
    PAGE_WORDS,
    PAGES_USED,
    QUOTA,
    RECORD_WORDS,
    SLOTS,
    STATE_MASK,
    USE_SCALE,
    USES,
    VALUE_BYTES,
    VALUE_COLUMNS,
    TableArrays,
)
from streamjoin.engines.semi.layout import (
    ENTRY_BYTES,
    LOAD,
    MAX_LOAD,
    MIN_PAGES,
    WORD_BYTES,
    page_records_log2,
    whole_page_bytes,
)

FIRST_VALUES = 16
FIRST_VALUES_SHARE = 1 / 256
"""Initial share of a budget for the table of values."""

MAX_VALUES_SHARE = 1 / 2
"""Maximum share of a budget for the table of values."""

FIXED_BYTES = (semistream.OVERFLOW + 4 + NUMBERS) * WORD_BYTES + 3 * 4
"""Bytes of the directory, the numbers, the page lists and the filter that do not grow."""

GROWTH = 1.25
START_BYTES = 1 << 20

NO_LIMIT = (1 << 63) - 1


class Tables:
    """Arena, directory and values.

    Parameters
    ----------
    node_payload_words, record_payload_words : int
        Payload words of a stream tuple and of a row of R.
    memory_bytes : int or None
        The budget; None lets the tables grow as needed.
    caching : bool
        Whether values are needed.
    filter_words : int
        64-bit words of the filter over R's keys.

    Attributes
    ----------
    shared : TableArrays
        The arrays that every kernel takes.
    records : int
        Records in use, including gaps.
    pages : int
        Pages of both tables, including free ones.
    """

    def __init__(
        self,
        node_payload_words: int,
        record_payload_words: int,
        memory_bytes: int | None,
        caching: bool,
        filter_words: int = 0,
    ) -> None:
        node_words, record_words = NODE_HEADER + node_payload_words, 1 + record_payload_words
        self.grows = memory_bytes is None
        budget = START_BYTES if memory_bytes is None else memory_bytes
        value_count = max(FIRST_VALUES, int(budget * FIRST_VALUES_SHARE) // VALUE_BYTES)
        value_count = value_count if caching else 1
        left = budget - FIXED_BYTES - value_count * (VALUE_BYTES + ENTRY_BYTES)
        left -= filter_words * WORD_BYTES if memory_bytes is not None else 0
        log2 = page_records_log2(left, node_words, record_words)
        self.page_words = record_words << log2
        self.page_bytes = self.page_words * WORD_BYTES
        page_nodes = self.page_words // node_words
        max_values = int(budget * MAX_VALUES_SHARE) // VALUE_BYTES if caching else 1
        self._max_values = max(value_count, max_values)
        pages = max(MIN_PAGES, int(left / whole_page_bytes(self.page_words, node_words)))
        self.numbers = np.zeros(NUMBERS, dtype=np.uint64)
        for index, number in (
            (NODE_WORDS, node_words),
            (PAGE_WORDS, self.page_words),
            (PAGE_NODES, page_nodes),
            (RECORD_WORDS, record_words),
            (PAGE_RECORDS_LOG2, log2),
            (QUOTA, NO_LIMIT),
        ):
            self.numbers[index] = number
        self.record_bytes, self.node_bytes = record_words * WORD_BYTES, node_words * WORD_BYTES
        self.inline_rows = MAX_INLINE if record_words == 1 else 0
        saved = self.node_bytes + int(ENTRY_BYTES)
        self.numbers[USES] = self.node_bytes
        for rows in range(1, MAX_INLINE + 1):
            value_bytes = rows * VALUE_BYTES + int(ENTRY_BYTES)
            self.numbers[USES + rows] = max(1, USE_SCALE * saved // value_bytes)
        self.page_records = 1 << log2
        self.record_pages_used = 0
        self.records = 0
        self.pages = 0
        self._arena = np.empty(0, dtype=np.uint64)
        self._lists = [np.empty(0, dtype=np.uint32) for _ in range(3)]
        self._values = np.zeros((0, VALUE_COLUMNS), dtype=np.uint32)
        self._statuses = np.zeros(0, dtype=np.uint16)
        self._filter = np.zeros(0, dtype=np.uint64)
        self.resize_filter(filter_words)
        self._directory = np.empty(0, dtype=np.uint64)
        self._add_values(value_count)
        self._add_pages(pages)
        self._make_directory(int((pages * page_nodes + value_count) / LOAD) + 2)
        self._spare_entries = int(self.numbers[SLOTS] * (MAX_LOAD - LOAD))

    @property
    def shared(self) -> TableArrays:
        """The arrays that every kernel takes."""
        queue, record_pages, free_pages = self._lists
        return TableArrays(
            self.numbers,
            self._arena,
            self._directory,
            self._values,
            self._statuses,
            queue,
            record_pages,
            free_pages,
            self._filter,
        )

    @property
    def values(self) -> NDArray[np.uint32]:
        """The table of values, a row each."""
        return self._values

    @property
    def statuses(self) -> NDArray[np.uint16]:
        """The values' statuses."""
        return self._statuses

    @property
    def states(self) -> NDArray[np.uint16]:
        """The values' states."""
        return np.asarray(self._statuses & np.uint16(STATE_MASK))

    @property
    def live(self) -> int:
        """Tuples in H_S."""
        return int(self.numbers[NEXT] - self.numbers[OLDEST])

    @property
    def free_pages(self) -> int:
        """Pages that neither table uses."""
        return int(self.numbers[FREE_PAGES])

    @property
    def free_values(self) -> int:
        """Values that are not used."""
        return int(self.numbers[FREE_VALUES])

    @property
    def node_pages(self) -> int:
        """Pages that hold stream tuples."""
        return int(self.numbers[PAGES_USED])

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.shared)

    def components(self) -> dict[str, int]:
        """Return the bytes by component, and those of the arena that are free."""
        lists = sum(pages.nbytes for pages in self._lists)
        values = self._values.nbytes + self._statuses.nbytes
        return {
            "h_s": self.node_pages * self.page_bytes + self._directory.nbytes,
            "h_r": self.record_pages_used * self.page_bytes + values,
            "filter": self._filter.nbytes,
            "queue": lists + self.numbers.nbytes,
            "free": self._arena.nbytes
            - (self.node_pages + self.record_pages_used) * self.page_bytes,
        }

    def grow(self) -> None:
        """Enlarge the structures that are full; only without a budget."""
        if self.free_pages == 0:
            self._add_pages(max(MIN_PAGES, int(self.pages * (GROWTH - 1))))
        overflown = self._directory[-2] != semistream.EMPTY
        if overflown or self.numbers[ENTRIES] >= self.numbers[MAX_ENTRIES]:
            old = self._directory
            self._make_directory(int(self.numbers[SLOTS] * GROWTH) + 2)
            migration.rehash(old, self.shared)

    def grow_values(self, count: int) -> None:
        """Make room for ``count`` more values: at once, or with a budget by giving up pages.

        These are the last pages of the arena. Stream tuples leave them within a cycle, records are
        moved; :meth:`reclaim_pages` does the rest.
        """
        if self.grows:
            self._add_values(count)
        elif self.pages == self._arena_pages:
            count = min(count, self._max_values - len(self._values))
            more_bytes = count * VALUE_BYTES + self._lacking_entries(count) * ENTRY_BYTES
            wanted = int(-(-more_bytes // self.page_bytes))
            spare = self.pages - self.record_pages_used - MIN_PAGES
            self.pages -= max(0, min(wanted, spare // 2))
            self.numbers[PAGE_LIMIT] = self.pages
            free_pages, free = self._lists[2], self.free_pages
            kept = free_pages[:free][free_pages[:free] < self.pages]
            free_pages[: len(kept)] = kept
            self.numbers[FREE_PAGES] = len(kept)
            self.reclaim_pages()

    def reclaim_pages(self) -> None:
        """Turn the pages that are given up into values, once they are empty."""
        if self.pages == self._arena_pages:
            return
        queue, record_pages, free_pages = self._lists
        arena = self._arena.reshape(self._arena_pages, self.page_words)
        for index in np.flatnonzero(record_pages[: self.record_pages_used] >= self.pages):
            if self.free_pages == 0:
                return
            self.numbers[FREE_PAGES] -= np.uint64(1)
            page = free_pages[self.free_pages]
            arena[page] = arena[record_pages[index]]
            record_pages[index] = page
        del arena
        indices = (int(self.numbers[FIRST_PAGE]) + np.arange(self.node_pages)) % len(queue)
        if (queue[indices] >= self.pages).any():
            return
        freed = (self._arena_pages - self.pages) * self.page_bytes
        values = freed // VALUE_BYTES
        lacking = self._lacking_entries(values)
        if lacking:  # bytes of the pages become entries, too
            share = lacking / values
            values = int((freed - WORD_BYTES) / (VALUE_BYTES + share * ENTRY_BYTES))
            lacking = int(values * share)
        self._arena.resize(self.pages * self.page_words, refcheck=False)
        self._use_spare_entries(self._wanted_entries(values) - lacking)
        self._add_entries(lacking)
        self._add_values(values)

    def _wanted_entries(self, more_values: int) -> int:
        """Return the entries that all values need, and what waits in H_S or half of what may."""
        may_wait = self.pages * int(self.numbers[PAGE_NODES]) // 2
        not_here = max(0, may_wait - self.live)
        return int(self.numbers[ENTRIES]) + self.free_values + more_values + not_here

    def _lacking_entries(self, more_values: int) -> int:
        """Return the directory entries that have to be added for so many more values."""
        known = int(self.numbers[MAX_ENTRIES]) + self._spare_entries
        return max(0, self._wanted_entries(more_values) - known)

    def _use_spare_entries(self, wanted: int) -> None:
        """Use spare entries until there are as many as wanted."""
        used = min(self._spare_entries, max(0, wanted - int(self.numbers[MAX_ENTRIES])))
        self._spare_entries -= used
        self.numbers[MAX_ENTRIES] += np.uint64(used)

    def resize_filter(self, words: int) -> None:
        """Replace the filter by an empty one of so many words; 0: by none."""
        self._filter = np.zeros(max(1, words), dtype=np.uint64)
        self.numbers[FILTER_WORDS] = words

    def turn_filter_into_pages(self) -> bool:
        """Give the filter's bytes to the arena; return False if that must wait for a cycle."""
        if self.pages != self._arena_pages:
            return False
        freed = self._filter.nbytes
        self.resize_filter(0)
        if self.grows:
            return True
        node_words = int(self.numbers[NODE_WORDS])
        count = int((freed - 2 * WORD_BYTES) / whole_page_bytes(self.page_words, node_words))
        if count > 0:
            self._add_entries(count * int(self.numbers[PAGE_NODES]))
            self._add_pages(count)
        return True

    def take_record_pages(self, records: int) -> int:
        """Take free pages for ``records`` more records; return for how many there was room."""
        room = self.record_pages_used * self.page_records - self.records
        wanted = max(0, -(-(records - room) // self.page_records))
        if self.grows and wanted > self.free_pages:
            self._add_pages(wanted - self.free_pages)
        taken = min(wanted, self.free_pages)
        _, record_pages, free_pages = self._lists
        for _ in range(taken):
            self.numbers[FREE_PAGES] -= np.uint64(1)
            record_pages[self.record_pages_used] = free_pages[int(self.numbers[FREE_PAGES])]
            self.record_pages_used += 1
        return min(records, room + taken * self.page_records)

    def give_back_record_pages(self) -> None:
        """Return the pages after the last record to the free list."""
        needed = -(-self.records // self.page_records)
        _, record_pages, free_pages = self._lists
        while self.record_pages_used > needed:
            self.record_pages_used -= 1
            page = record_pages[self.record_pages_used]
            if page < self.pages:
                free_pages[self.free_pages] = page
                self.numbers[FREE_PAGES] += np.uint64(1)

    @property
    def _arena_pages(self) -> int:
        return len(self._arena) // self.page_words

    def _add_pages(self, count: int) -> None:
        """Add free pages; the arena is extended in place, its pages are not copied."""
        before, self.pages = self.pages, self.pages + count
        self.numbers[PAGE_LIMIT] = self.pages
        self._arena.resize(self.pages * self.page_words, refcheck=False)
        queue = self._lists[0]
        used, first = self.node_pages, int(self.numbers[FIRST_PAGE])
        unrolled = np.roll(queue, -first) if len(queue) else queue
        lists = [np.zeros(self.pages + 1, dtype=np.uint32) for _ in range(3)]
        lists[0][:used] = unrolled[:used]
        self.numbers[FIRST_PAGE] = 0
        lists[1][: self.record_pages_used] = self._lists[1][: self.record_pages_used]
        free = self.free_pages
        lists[2][:free] = self._lists[2][:free]
        # The lowest page is taken first.
        lists[2][free : free + count] = np.arange(self.pages - 1, before - 1, -1)
        self.numbers[FREE_PAGES] += np.uint64(count)
        self._lists = lists

    def _add_values(self, count: int) -> None:
        before = len(self._values)
        self._values.resize((before + count, VALUE_COLUMNS), refcheck=False)
        self._statuses.resize(before + count, refcheck=False)
        # The free values are a list: each holds the number of the next one.
        following = np.arange(before + 1, before + count + 1, dtype=np.uint32)
        if count:
            following[-1] = self.numbers[FREE_VALUE]
            self.numbers[FREE_VALUE] = before
        self._values[before:, NUMBER] = following
        self.numbers[FREE_VALUES] += np.uint64(count)
        self.numbers[KEPT_VALUES] = (before + count) // 4

    def _add_entries(self, count: int) -> None:
        """Enlarge the directory, within its own memory, for ``count`` more entries."""
        more = int(count / LOAD)
        if more <= 0:
            return
        before = len(self._directory)
        self._directory.resize(before + more, refcheck=False)
        self._directory[before:] = semistream.EMPTY
        self.numbers[SLOTS] += np.uint64(more)
        self.numbers[MAX_ENTRIES] += np.uint64(int(more * LOAD))
        migration.spread(self.shared)

    def _make_directory(self, slots: int) -> None:
        whole = slots + semistream.OVERFLOW + 1
        self._directory = np.full(whole, semistream.EMPTY, dtype=np.uint64)
        self.numbers[SLOTS] = slots
        self.numbers[MAX_ENTRIES] = int(slots * LOAD)
