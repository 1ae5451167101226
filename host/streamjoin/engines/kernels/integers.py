"""Codes for integers of more than 32 bits: cut, or numbered by a hash table that compares.

A value's number is the row of R in which it first occurs. A slot holds 32 bits of a value's hash
and that row plus one; 0 is empty. At most half of the slots are used, so that a value without a
partner mostly costs its hash and one slot. Memory is asked for some rows ahead.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.jit import inlined, kernel
from streamjoin.engines.kernels.prefetch import AHEAD, prefetch

Uint64s = NDArray[np.uint64]
Uint32s = NDArray[np.uint32]

U64 = np.uint64
HALF, LOW = U64(32), U64(0xFFFFFFFF)


@inlined
def mixed_bits(value: np.uint64) -> np.uint64:
    """Mix the bits of a value: the finaliser of SplitMix64."""
    mixed = (value ^ (value >> U64(30))) * U64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> U64(27))) * U64(0x94D049BB133111EB)
    return mixed ^ (mixed >> U64(31))


@kernel
def cut_integers(values: NDArray[Any], codes: Uint32s, ends: NDArray[Any]) -> None:
    """Keep the lower 32 bits of integers, and find the lowest and highest, in one pass.

    Parameters
    ----------
    values : ndarray of int64 or uint64
        At least one.
    codes : ndarray of uint32, shape of ``values``
        Receives the bits.
    ends : ndarray, type of ``values``, shape (2,)
        Receives the lowest and the highest value.
    """
    lowest = highest = values[0]
    for row in range(len(values)):
        value = values[row]
        codes[row] = np.uint32(value)
        lowest, highest = min(lowest, value), max(highest, value)
    ends[0], ends[1] = lowest, highest


@kernel
def number_integers(values: Uint64s, slots: Uint64s, numbers: Uint32s) -> None:
    """Number values and enter them into a table.

    Parameters
    ----------
    values : ndarray of uint64
    slots : ndarray of uint64
        Zeros; as many as a power of two, at least twice the values.
    numbers : ndarray of uint32, shape of ``values``
        Receives the first row that holds the same value.
    """
    mask, last = U64(len(slots)) - U64(1), U64(len(values))
    for row in range(last):
        ahead = row + U64(AHEAD)
        prefetch(slots, mixed_bits(values[ahead if ahead < last else row]) & mask)
        value = values[row]
        mixed = mixed_bits(value)
        slot, number = mixed & mask, row
        while True:
            entry = slots[slot]
            if entry == U64(0):
                slots[slot] = (mixed >> HALF) << HALF | (row + U64(1))
                break
            first = (entry & LOW) - U64(1)
            if entry >> HALF == mixed >> HALF and values[first] == value:
                number = first
                break
            slot = (slot + U64(1)) & mask
        numbers[row] = number


@kernel
def find_integers(
    values: Uint64s, known: Uint64s, slots: Uint64s, numbers: Uint32s, absent: int
) -> None:
    """Find the numbers of values.

    Parameters
    ----------
    values : ndarray of uint64
    known, slots
        What :func:`number_integers` was given, and made.
    numbers : ndarray of uint32, shape of ``values``
        Receives each one's number, or ``absent`` where it has none.
    absent : int
        Stands for no number.
    """
    mask, last = U64(len(slots)) - U64(1), U64(len(values))
    for row in range(last):
        far, near = row + U64(2 * AHEAD), row + U64(AHEAD)
        prefetch(slots, mixed_bits(values[far if far < last else row]) & mask)
        prefetch(known, (slots[mixed_bits(values[near if near < last else row]) & mask] & LOW))
        value = values[row]
        mixed = mixed_bits(value)
        slot, number = mixed & mask, U64(absent)
        while True:
            entry = slots[slot]
            if entry == U64(0):
                break
            first = (entry & LOW) - U64(1)
            if entry >> HALF == mixed >> HALF and known[first] == value:
                number = first
                break
            slot = (slot + U64(1)) & mask
        numbers[row] = number
