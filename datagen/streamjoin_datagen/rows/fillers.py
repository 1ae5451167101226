"""Columns that are only carried along or compared plainly: numbers, strings, Booleans."""

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from streamjoin_datagen.rows.seeds import Float64s, UInt64s, column_key, hashes, unit

Int32s = NDArray[np.int32]
Column: TypeAlias = "NDArray[Any] | pa.Array[Any] | pa.ChunkedArray[Any]"
"""The values of a column for a range of rows."""

STRING_CHARACTERS = 20
_ALPHABET = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_", dtype=np.uint8
)
# Two characters by 12 bits, the first one by the lower six.
_PAIRS = np.stack([np.tile(_ALPHABET, 64), np.repeat(_ALPHABET, 64)], axis=1).view(np.uint16)[:, 0]
_PAIRS_A_HASH = 5


def payloads(seed: int, stream: str, first_row: int, row_count: int) -> Int32s:
    """31 random bits a row."""
    values = hashes(column_key(seed, stream, "v"), first_row, row_count)
    values >>= np.uint64(33)
    return values.astype(np.int32)


def from_one(values: UInt64s) -> Int32s:
    """Values from 0 as int32 from 1."""
    numbers = values.astype(np.int32)
    numbers += np.int32(1)
    return numbers


def reals(values: UInt64s, domain: int) -> Float64s:
    """Floating-point numbers uniform in [1, domain]."""
    return unit(values) * (domain - 1) + 1.0


def truths(values: UInt64s) -> NDArray[np.bool_]:
    """True or false with equal probability."""
    drawn: NDArray[np.bool_] = values >> np.uint64(63) != 0
    return drawn


def strings(values: list[UInt64s]) -> "pa.Array[Any]":
    """Strings of 20 characters, ten from 60 bits of each value."""
    rows = len(values[0])
    pairs = np.empty((rows, STRING_CHARACTERS // 2), dtype=np.uint16)
    for pair in range(STRING_CHARACTERS // 2):
        turn, digit = divmod(pair, _PAIRS_A_HASH)
        pairs[:, pair] = _PAIRS[(values[turn] >> np.uint64(12 * digit)) & np.uint64(4095)]
    offsets = np.arange(0, STRING_CHARACTERS * rows + 1, STRING_CHARACTERS, dtype=np.int32)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets.data), pa.py_buffer(pairs.data))
