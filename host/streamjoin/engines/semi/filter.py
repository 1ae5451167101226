"""The filter over R's keys: when it is learned, used, made anew and given up.

R is read in a cycle, so its keys are seen for nothing. Stream tuples whose key is not in the filter
have no row in R and leave at once. A false positive only waits in H_S like any other tuple.

Why no pair is lost while R changes: every cycle adds all keys that it reads, nothing is removed but
all at once, and the filter is used only after a whole cycle was added since then. When a tuple is
taken, a row that was there for the last cycle has therefore been read and added. A row that was
inserted since then may be missed, as by a tuple that waits and meets only what lies ahead of it.
While the join waits for tuples nothing is read, so the filter is used again only after a cycle.
"""

from streamjoin.engines.kernels.semi import filters
from streamjoin.engines.kernels.semi.layout import ADDED, FILTER_WORDS, REJECTED, REJECTS
from streamjoin.engines.semi.layout import ENTRY_BYTES, WORD_BYTES
from streamjoin.engines.semi.tables import Tables

MAX_BUDGET_SHARE = 1 / 5
"""Maximum share of a budget for the filter."""

MIN_BITS = 3
"""Minimum bits for each row of R: with fewer, too many bits are set."""

MAX_FILL = 0.65
"""Maximum share of bits set: three of them are then set by chance for a quarter of all keys. Four
bits for each of R's keys are filled to a half."""

TRIAL_CYCLES = 2
"""Whole cycles of use before the filter may be given up."""


def filter_words(row_count: int, bits_a_row: int, budget: int | None) -> int:
    """Return the 64-bit words of a filter; 0 if a budget has no room for a useful one."""
    bits = float(row_count * bits_a_row)
    if budget is not None:
        bits = min(bits, budget * MAX_BUDGET_SHARE * 8)
    if bits < row_count * min(MIN_BITS, bits_a_row):
        return 0
    return int(bits) // 64 + 1 if bits else 0


class KeyFilter:
    """The filter of a join.

    Parameters
    ----------
    tables : Tables
        With a filter, or none.

    Attributes
    ----------
    used_cycles, cleared : int
        Whole cycles in which it was used, and how often it was cleared as too full.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._whole = False  # whether the cycle that ends was added from its begin on
        self._rejected_before = 0
        self._trial = 0
        self._cleared_last = False
        self.used_cycles = self.cleared = 0

    @property
    def rejected(self) -> int:
        """Tuples that have left at once."""
        return int(self._tables.numbers[REJECTED])

    def new_cycle(self, chunks: int) -> None:
        """Decide about the filter between two cycles, of so many chunks."""
        numbers = self._tables.numbers
        if not numbers[FILTER_WORDS]:
            return
        used, whole = bool(numbers[REJECTS]), self._whole
        self._whole = True
        if used:
            self.used_cycles += 1
            self._trial += 1
            rejected, self._rejected_before = self.rejected - self._rejected_before, self.rejected
            if not self._pays(rejected, chunks) and self._trial >= TRIAL_CYCLES:
                self._give_up()
                return
            if whole and not numbers[ADDED]:
                return
        if not whole:
            return
        numbers[ADDED] = 0
        if self._fill() <= MAX_FILL:
            numbers[REJECTS], self._cleared_last = 1, False
        elif self._cleared_last and not self._tables.grows:  # too small for what R holds now
            self._give_up()
        else:
            self._clear()

    def pause(self) -> None:
        """Stop the use of the filter until a whole cycle was read: the join has waited."""
        self._tables.numbers[REJECTS] = 0
        self._whole = False

    def _pays(self, rejected: int, chunks: int) -> bool:
        """Whether the tuples that leave in a cycle would take more bytes in H_S (theorem 2).

        Where that many bytes are free beside those of the next chunk, nothing else needs them.
        """
        tables = self._tables
        held = int(tables.numbers[FILTER_WORDS]) * WORD_BYTES
        spared = rejected * (tables.node_bytes + ENTRY_BYTES)
        free = tables.free_pages
        idle = max(0, free - -(-(tables.node_pages + free) // (chunks + 1)))
        return tables.grows or spared + idle * tables.page_bytes > held

    def _fill(self) -> float:
        words = self._tables.shared.filter
        return filters.bits_set(words) / (64 * len(words))

    def _clear(self) -> None:
        """Begin anew: keys that R no longer holds fill it, or it was too small from the begin."""
        words = int(self._tables.numbers[FILTER_WORDS])
        self._tables.resize_filter(2 * words if self._tables.grows else words)
        self._tables.numbers[REJECTS] = 0
        self._cleared_last = True
        self.cleared += 1

    def _give_up(self) -> None:
        self._tables.numbers[REJECTS] = 0
        if not self._tables.turn_filter_into_pages():
            self._whole, self._trial = False, TRIAL_CYCLES  # the next cycle tries again
