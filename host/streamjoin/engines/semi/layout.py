"""Bytes of a semi-stream join's structures, and of the pages that its two tables share."""

from dataclasses import dataclass

from streamjoin.engines.kernels.semi.layout import NODE_HEADER, VALUE_BYTES

WORD_BYTES = 8
STREAM_HEADER_BYTES = 12
"""Bytes of a stream tuple's key and row number."""

LOAD = 0.75
"""Maximum share of the directory's slots that are used."""

ENTRY_BYTES = WORD_BYTES / LOAD
"""Bytes of a join value in the directory."""

MAX_LOAD = 0.9
"""Maximum share of the directory's slots that are used after values were added."""

PAGE_NUMBER_BYTES = 3 * 4
"""Bytes of a page's numbers in three lists of pages."""

PARTLY_FILLED = 3
"""Partly filled pages: the queue's first and last, the last one of the records."""

MIN_PAGES = 8


@dataclass(frozen=True)
class Sizes:
    """Bytes of the tables' elements.

    Attributes
    ----------
    node, entry, record, value : float
        A stream tuple, a join value's entry, a cached row of R, a cached join value.
    row : int
        A row of R in the disk buffer.
    """

    node: float
    entry: float
    record: float
    value: float
    row: int


def layout_bytes(row_bytes: int, stream_bytes: int, kept_bytes: int = 0) -> Sizes:
    """Return the bytes of the tables' elements for rows of R and stream tuples of these widths.

    Parameters
    ----------
    row_bytes : int
        Of a row of R: key and row number take 16.
    stream_bytes : int
        Of a stream tuple: key and row number take :data:`STREAM_HEADER_BYTES`.
    kept_bytes : int
        Of a row of R in the cache; 0: key and row number alone.
    """
    words, kept_words = (
        max(0, -(-(width - 2 * WORD_BYTES) // WORD_BYTES)) for width in (row_bytes, kept_bytes)
    )
    return Sizes(
        node=float((NODE_HEADER + stream_words(stream_bytes)) * WORD_BYTES),
        entry=ENTRY_BYTES,
        record=float((1 + kept_words) * WORD_BYTES),
        value=float(VALUE_BYTES),
        row=(2 + words) * WORD_BYTES,
    )


def stream_words(stream_bytes: int) -> int:
    """Return the payload words of a stream tuple."""
    return max(0, -(-(stream_bytes - STREAM_HEADER_BYTES) // WORD_BYTES))


def whole_page_bytes(page_words: int, node_words: int) -> float:
    """Return the bytes of a page, its nodes' directory entries, and its numbers in page lists."""
    return page_words * WORD_BYTES + page_words // node_words * ENTRY_BYTES + PAGE_NUMBER_BYTES


def page_records_log2(budget: float, node_words: int, record_words: int) -> int:
    """Return log2 of the records of a page that wastes the smallest part of a budget.

    Waste is the rest of a page after its last whole node, partly filled pages, and the lists of
    pages.

    Parameters
    ----------
    budget : float
        Bytes of both tables' pages, directory entries and lists.
    node_words, record_words : int
        64-bit words of a stream tuple and of a row of R.
    """
    log2 = minimum = max(0, (-(-node_words // record_words) - 1).bit_length())
    best, best_waste = minimum, 1.0
    while whole_page_bytes(record_words << log2, node_words) * MIN_PAGES <= budget:
        words = record_words << log2
        waste = (words % node_words) / words + PAGE_NUMBER_BYTES / (words * WORD_BYTES)
        waste += PARTLY_FILLED * words * WORD_BYTES / budget
        if waste < best_waste:
            best, best_waste = log2, waste
        log2 += 1
    return best
