"""Key columns of the equi workloads: unique, duplicated and Zipf distributed.

Every function is pure: (spec, stream, range of rows) to int32 keys in 1 .. domain.
"""

import numpy as np
from numpy.typing import NDArray

from streamjoin_datagen.seeds import (
    UInt64s,
    column_key,
    hashes,
    permuted,
    scaled,
)
from streamjoin_datagen.spec import EquiSpec
from streamjoin_datagen.zipf import zipf_ranks

Int32s = NDArray[np.int32]


def equi_keys(spec: EquiSpec, stream: str, first_row: int, row_count: int) -> Int32s:
    """Keys of a range of rows.

    Returns
    -------
    ndarray of int32, shape (row_count,)
        Keys in 1 .. ``spec.key_domain``.
    """
    if spec.keys == "zipf" or (spec.keys == "foreign" and stream == "s"):
        found = _zipf(spec, stream, first_row, row_count)
    elif stream == "r" and spec.keys != "foreign":
        found = _dealt(spec, first_row, row_count)
    else:
        values = hashes(column_key(spec.seed, stream, "k"), first_row, row_count)
        found = scaled(values, spec.key_domain)
    return (found + np.uint64(1)).astype(np.int32)


def _dealt(spec: EquiSpec, first_row: int, row_count: int) -> UInt64s:
    """Keys of R that occur a given number of times, in random order.

    The rows are shuffled, cut into runs of ``duplicates``, and each run is given a key of its
    own; for unique keys a run is one row.
    """
    rows = np.arange(first_row, first_row + row_count, dtype=np.uint64)
    if spec.duplicates > 1:
        rows = permuted(column_key(spec.seed, "r", "deal"), spec.r_tuples, rows)
        rows //= np.uint64(spec.duplicates)
    return permuted(column_key(spec.seed, "both", "key"), spec.key_domain, rows)


def _zipf(spec: EquiSpec, stream: str, first_row: int, row_count: int) -> UInt64s:
    """Keys of either stream from one Zipf distribution; which key is frequent is random.

    Both streams share the permutation from ranks to keys, so their frequent keys meet.
    """
    values = hashes(column_key(spec.seed, stream, "k"), first_row, row_count)
    ranks = zipf_ranks(values, spec.key_domain, spec.skew)
    return permuted(column_key(spec.seed, "both", "key"), spec.key_domain, ranks)
