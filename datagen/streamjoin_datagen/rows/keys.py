"""Columns of keys: dealt out a number of times each, uniform, and from weighted ranks.

Every function is pure: (seed, stream, range of rows, law) to int32 keys in 1 .. domain. ``rows``
is the first row and the row count; ``labels`` names the permutation that turns ranks or numbers
into keys, which two streams that share it also share their frequent keys by.
"""

import functools

import numpy as np
from numpy.typing import NDArray

from streamjoin_datagen.rows import ranks
from streamjoin_datagen.rows.fillers import from_one
from streamjoin_datagen.rows.seeds import UInt64s, column_key, hashes, permuted, scaled

Int32s = NDArray[np.int32]
Labels = tuple[int, str]

LISTED_KEYS = 1 << 17
"""Domains up to this have their permutation listed."""


def uniform(seed: int, stream: str, rows: tuple[int, int], domain: int) -> Int32s:
    """Keys drawn uniformly, with repetition."""
    return from_one(scaled(hashes(column_key(seed, stream, "k"), *rows), domain))


def dealt(
    seed: int,
    stream: str,
    rows: tuple[int, int],
    size: tuple[int, int],
    domain: int,
    *,
    labels: Labels,
) -> Int32s:
    """Keys that occur a given number of times, in random order.

    The rows are shuffled, cut into runs of ``duplicates``, and each run is given a key of its
    own; for unique keys a run is one row.

    Parameters
    ----------
    size : tuple of int
        Rows of the stream, and duplicates a key.
    """
    first_row, row_count = rows
    stream_rows, duplicates = size
    numbers = np.arange(first_row, first_row + row_count, dtype=np.uint64)
    if duplicates > 1:
        numbers = permuted(column_key(seed, stream, "deal"), stream_rows, numbers)
        numbers //= np.uint64(duplicates)
    return _labelled(labels, domain, numbers)


def dealt_each_window(
    seed: int, stream: str, rows: tuple[int, int], window_rows: int, domain: int
) -> Int32s:
    """Keys of which every window holds each as often as any other, give or take one.

    The rows of a window are turned by a step of its own and shuffled, which puts the keys of
    two windows in different orders.
    """
    first_row, row_count = rows
    numbers = np.arange(first_row, first_row + row_count, dtype=np.uint64)
    windows = numbers // np.uint64(window_rows)
    numbers -= windows * np.uint64(window_rows)
    if first_row + row_count > window_rows:
        turn = column_key(seed, stream, "turn") % window_rows
        # Products stay below 2**62: fewer than 2**31 windows of fewer than 2**31 rows.
        numbers += windows * np.uint64(turn) % np.uint64(window_rows)
        numbers %= np.uint64(window_rows)
    shuffled = permuted(column_key(seed, stream, "deal"), window_rows, numbers)
    if domain < window_rows:
        shuffled %= np.uint64(domain)
    return from_one(shuffled)


def zipf(
    seed: int, stream: str, rows: tuple[int, int], domain: int, skew: float, *, labels: Labels
) -> Int32s:
    """Keys from a Zipf distribution; which key is frequent is random."""
    values = hashes(column_key(seed, stream, "k"), *rows)
    return _labelled(labels, domain, ranks.zipf_ranks(values, domain, skew))


def falling(
    seed: int, stream: str, rows: tuple[int, int], domain: int, shape: float, *, labels: Labels
) -> Int32s:
    """Keys of which the frequencies fall as a power of the remaining ranks."""
    values = hashes(column_key(seed, stream, "k"), *rows)
    return _labelled(labels, domain, ranks.falling_ranks(values, domain, shape))


def _labelled(labels: Labels, domain: int, numbers: UInt64s) -> Int32s:
    seed, stream = labels
    if domain <= LISTED_KEYS:
        return _label_list(seed, stream, domain)[numbers]
    return from_one(permuted(column_key(seed, stream, "key"), domain, numbers))


@functools.lru_cache(maxsize=4)
def _label_list(seed: int, stream: str, domain: int) -> Int32s:
    """Every number's key: looking it up is faster than finding it out again."""
    numbers = np.arange(domain, dtype=np.uint64)
    return from_one(permuted(column_key(seed, stream, "key"), domain, numbers))
