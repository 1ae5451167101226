"""What design parameters are chosen from: names and limits."""

from typing import TypeGuard

OLDER_INTERFACE_VERSION = 2
"""That of designs which have none of the newer layouts and registers."""

KINDS_INTERFACE_VERSION = 3
"""That of designs with the register ``kind`` or ``bucket_words``, and none of the newer."""

GROUPS_INTERFACE_VERSION = 4
"""That of designs with the register ``group_arrivals``."""

HOLD_WORDS = 8
"""Half of the minimum words of a result FIFO, and how many must be free in an ordered index.

In a core that scans by itself one less is enough. After the write that leaves fewer free, the level
shows it (1 cycle), the hold is registered (1), and the next word is not read, or of a tuple that
begins the one after it (1). What was read in these cycles still arrives, and so do the words of
three more, which are between memory and FIFO (parts, match, word): at most 6. In lock step a hold
goes to all cores and back, and what has to be free grows with the number of lines that they lie on,
from 10 to 16, where a FIFO has at least 17 words.
"""

KEY_BITS = 32
"""Bits of a key column."""

MIN_PAYLOAD_BITS = 8
"""Minimum bits of payload."""

MAX_TERMS = 4
"""Maximum terms of a predicate."""

WINDOW_BITS = 24
"""Bits of a count window's length in tuples."""

COUNTS = {
    "cores": (1, 1024),
    "segment_tuples": (1, 65536),
    "lanes": (1, 64),
    "payload_bits": (MIN_PAYLOAD_BITS, 32),
    "merge_arity": (2, 16),
    "result_fifo_words": (2 * HOLD_WORDS, 4096),
    "probes": (1, 16),
    "beat_results": (1, 2),
}
"""Minimum and maximum of the parameters that every design checks alike."""

DESIGNS = ("handshake", "splitjoin", "splitjoin-hash", "splitjoin-index")
FORWARDS = ("step", "fast")
ORDERS = ("none", "outer", "inner")
MEMORIES = ("auto", "registers", "lutram", "bram", "uram")
COMPARATORS = ("own", "shared")
STARS = ("each", "grouped")
KIND_CHOICES = ("inner", "all")
JOIN_KINDS = ("inner", "left", "right", "full", "semi", "anti")
"""Kinds of join by the number that a register has for each."""

CHOICES = {
    "design": DESIGNS,
    "forward": FORWARDS,
    "order": ORDERS,
    "window_memory": MEMORIES,
    "comparators": COMPARATORS,
    "kinds": KIND_CHOICES,
    "stars": STARS,
}
"""What each parameter is one of that is a name."""

_HASH_ALONE = ("own_buckets", "beat_results")

FOREIGN = {
    "handshake": ("probes", "order", "comparators", "stars", *_HASH_ALONE),
    "splitjoin": ("forward", *_HASH_ALONE),
    "splitjoin-hash": ("forward", "probes", "order", "comparators", "stars"),
    "splitjoin-index": ("forward", "probes", "comparators", "lead_tuples", "stars", *_HASH_ALONE),
}
"""Parameters that mean nothing in a design."""

SWEPT_ROWS = 32
"""Rows that are looked at together when it is decided which of them had no partner."""

MIN_SPARE_ROWS = 64
"""Minimum rows that are kept of each stream beyond its window where all kinds are decided."""


def rows_kept(window_tuples: int) -> int:
    """Return the rows of each stream whose payload is kept where all kinds are decided.

    A row stays until it is certain whether it had a partner: a window's rows, and a quarter as many
    again.
    """
    rows = window_tuples + max(MIN_SPARE_ROWS, window_tuples // 4)
    return -(-rows // SWEPT_ROWS) * SWEPT_ROWS


def is_count(value: object, minimum: int, maximum: int) -> TypeGuard[int]:
    """Return whether a value is an integer within limits, both included."""
    return isinstance(value, int) and not isinstance(value, bool) and minimum <= value <= maximum


def is_power(value: object, minimum: int, maximum: int) -> bool:
    """Return whether a value is a power of two within limits, both included."""
    return is_count(value, minimum, maximum) and value & (value - 1) == 0
