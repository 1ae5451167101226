"""Tuples into beats and results out of beats, by the contract's layouts."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from streamjoin_common.contract import LayoutField, beat_bits

Uint32s = NDArray[np.uint32]
Bytes = NDArray[np.uint8]


def pack(layout: tuple[LayoutField, ...], columns: Mapping[str, Uint32s], rows: int) -> Bytes:
    """Pack columns into little-endian beats.

    Parameters
    ----------
    layout : tuple of LayoutField
        Fields of at most 32 bits.
    columns : mapping of str to ndarray of uint32, shape (rows,)
        A column for each field.
    rows : int
        Number of beats.

    Returns
    -------
    ndarray of uint8, shape (rows, beat bytes)
    """
    packed = np.zeros((rows, beat_bits(layout) // 8 + 8), dtype=np.uint8)
    for field in layout:
        first, shift = divmod(field.offset, 8)
        mask = np.uint64((1 << field.width) - 1)
        shifted = (columns[field.name].astype(np.uint64) & mask) << np.uint64(shift)
        packed[:, first : first + 8] |= shifted.astype("<u8").view(np.uint8).reshape(rows, 8)
    return np.ascontiguousarray(packed[:, : beat_bits(layout) // 8])


def unpack(layout: tuple[LayoutField, ...], beats: Bytes) -> dict[str, Uint32s]:
    """Take the fields out of little-endian beats, each as uint32, shape (rows,)."""
    padded = np.zeros((len(beats), beats.shape[1] + 8), dtype=np.uint8)
    padded[:, : beats.shape[1]] = beats
    columns = {}
    for field in layout:
        first, shift = divmod(field.offset, 8)
        words = np.ascontiguousarray(padded[:, first : first + 8]).view("<u8")[:, 0]
        mask = np.uint64((1 << field.width) - 1)
        columns[field.name] = (words >> np.uint64(shift) & mask).astype(np.uint32)
    return columns
