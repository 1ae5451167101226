"""Bytes of what a semi-stream join holds, and of the pages that its two tables share."""

from dataclasses import dataclass

from streamjoin.engines.kernels.semi.layout import NODE_HEADER, VALUE_BYTES

WORD_BYTES = 8
STREAM_HEADER_BYTES = 12
"""Of a stream tuple: key and row number."""

LOAD = 0.75
"""Share of the directory's slots that are used at most."""

ENTRY_BYTES = WORD_BYTES / LOAD
"""Of a join value in the directory."""

MAX_LOAD = 0.9
"""That share where values were given entries later."""

PAGE_NUMBER_BYTES = 3 * 4
"""A page's places in three lists of pages."""

PARTLY_FILLED = 3
"""Pages that are filled in part: the queue's first and last, the last of the records."""

MIN_PAGES = 8


@dataclass(frozen=True)
class Sizes:
    """Bytes of what the tables hold.

    Attributes
    ----------
    node, entry, record, value : float
        A stream tuple, a join value's entry, a cached master row, a cached join value.
    row : int
        A master row in the disk buffer.
    """

    node: float
    entry: float
    record: float
    value: float
    row: int


def layout_bytes(row_bytes: int, stream_bytes: int) -> Sizes:
    """Bytes of what the tables hold for master rows and stream tuples of these widths.

    Parameters
    ----------
    row_bytes : int
        Of a master row: key and number take 16.
    stream_bytes : int
        Of a stream tuple: key and row number take :data:`STREAM_HEADER_BYTES`.
    """
    words = max(0, -(-(row_bytes - 2 * WORD_BYTES) // WORD_BYTES))
    return Sizes(
        node=float((NODE_HEADER + stream_words(stream_bytes)) * WORD_BYTES),
        entry=ENTRY_BYTES,
        record=float((1 + words) * WORD_BYTES),
        value=float(VALUE_BYTES),
        row=(2 + words) * WORD_BYTES,
    )


def stream_words(stream_bytes: int) -> int:
    """Payload words of a stream tuple."""
    return max(0, -(-(stream_bytes - STREAM_HEADER_BYTES) // WORD_BYTES))


def whole_page_bytes(page_words: int, node_words: int) -> float:
    """Of a page, its nodes' entries in the directory, and its places in the lists of pages."""
    return page_words * WORD_BYTES + page_words // node_words * ENTRY_BYTES + PAGE_NUMBER_BYTES


def page_records_log2(budget: float, node_words: int, record_words: int) -> int:
    """Records of a page as a power of two, so that the least of a budget is of no use.

    What is of no use: the rest of a page behind its last whole node, pages that are filled in part,
    and the lists of pages.

    Parameters
    ----------
    budget : float
        Bytes of both tables' pages and what belongs to them.
    node_words, record_words : int
        Of a stream tuple and of a master row.
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
