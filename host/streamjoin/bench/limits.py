"""The physical limits that joins run against: memory, comparisons of a scan, a store's read."""

import time

import numpy as np

from streamjoin_common.storage import TemporaryFolder

PROBE_BYTES = 1 << 26
"""Large enough to be in no cache."""

TUPLE_BYTES = 8
PAIR_BYTES = 8

CACHED_TUPLES = 2048
"""Tuples of two terms that stay in the nearest cache: 16 KiB."""

CACHED_PASSES = 2000

STORE_BYTES = 1 << 26
"""Of a relation that is read to see how fast its store is."""

READ_BYTES = (1 << 18, 1 << 22)
"""At a time: files like many, databases few."""


def copy_bandwidth() -> float:
    """Measure what one thread moves between memory and itself, in bytes a second read or written.

    Returns
    -------
    float
        The best of five copies: twice the copied bytes by the time.
    """
    source, target = np.ones(PROBE_BYTES, np.uint8), np.zeros(PROBE_BYTES, np.uint8)
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        np.copyto(target, source)
        best = min(best, time.perf_counter() - began)
    return 2 * PROBE_BYTES / best


def least_bytes(tuples: int, pairs: int) -> int:
    """Bytes that any join must move: every tuple read once, every pair written once."""
    return tuples * TUPLE_BYTES + pairs * PAIR_BYTES


def comparison_rate(terms: int) -> float:
    """Measure how many pairs one thread tests in a second when nothing else is to be done.

    The interval test of the scanning joins, on tuples in the nearest cache: no windows to respect,
    no results to write, no memory to wait for.

    Parameters
    ----------
    terms : int
        Terms of the predicate; scans test the first two of more.

    Returns
    -------
    float
        The best of five runs, comparisons a second.
    """
    from streamjoin.engines.kernels import vectors
    from streamjoin.engines.kernels.sliding.scan import passes

    codes = np.zeros((2, CACHED_TUPLES), dtype=np.uint32)
    probes = np.ones((3, 2, vectors.PROBES), dtype=np.uint32)
    passes(codes, probes, terms > 1, 1)  # compiled, or loaded from the cache
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        passes(codes, probes, terms > 1, CACHED_PASSES)
        best = min(best, time.perf_counter() - began)
    return CACHED_PASSES * CACHED_TUPLES * vectors.PROBES / best


def store_rate(kind: str, row_bytes: int, kept_bytes: int) -> float:
    """Measure how fast a store is read from its begin to its end, in bytes a second.

    Parameters
    ----------
    kind : str
        One of :data:`streamjoin.relations.KINDS`.
    row_bytes, kept_bytes : int
        Of a row as it is written, and of what is kept of it.

    Returns
    -------
    float
        The best of three scans by each of :data:`READ_BYTES`: bytes read of the rows, by the time.
    """
    from streamjoin.relations import write_store

    rows, best = STORE_BYTES // row_bytes, float("inf")
    with TemporaryFolder("store") as folder:
        keys = np.arange(rows, dtype=np.uint64)
        store = write_store(kind, folder, keys, row_bytes, kept_bytes)
        try:
            for read_bytes in 3 * READ_BYTES:
                step = max(1, read_bytes // store.read_bytes)
                began = time.perf_counter()
                for first in range(0, rows, step):
                    store.read(first, min(first + step, rows))
                best = min(best, time.perf_counter() - began)
            return rows * store.read_bytes / best
        finally:
            store.close()
            store.discard()
