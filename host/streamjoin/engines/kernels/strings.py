"""Numbers of strings, by hash tables that compare them.

As of integers (:mod:`~streamjoin.engines.kernels.integers`), whose slots these are too.
"""

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.integers import HALF, LOW, mixed_bits
from streamjoin.engines.kernels.jit import inlined, kernel
from streamjoin.engines.kernels.loads import load_u64
from streamjoin.engines.kernels.prefetch import AHEAD, prefetch

Int64s = NDArray[np.int64]
Uint64s = NDArray[np.uint64]
Numbers = NDArray[np.uint32] | NDArray[np.int64]
Bytes = NDArray[np.uint8]

U64 = np.uint64
MULTIPLIER = U64(0x9E3779B97F4A7C15)


@kernel
def hash_strings(offsets: Int64s, data: Bytes, hashes: Uint64s) -> None:
    """Hash strings, eight bytes at a time; the last eight may overlap those before.

    Parameters
    ----------
    offsets : ndarray of int64, shape (strings + 1,)
    data : ndarray of uint8
        The strings.
    hashes : ndarray of uint64, shape (strings,)
        Receives their hashes.
    """
    for row in range(U64(len(hashes))):
        begin, end = U64(offsets[row]), U64(offsets[row + U64(1)])
        length = end - begin
        mixed = length * MULTIPLIER
        if length >= U64(8):
            at, final = begin, end - U64(8)
            while at < final:
                mixed = (mixed ^ load_u64(data, at)) * MULTIPLIER
                mixed ^= mixed >> U64(32)
                at += U64(8)
            mixed ^= load_u64(data, final)
        else:
            word = U64(0)
            for at in range(begin, end):
                word = word << U64(8) | U64(data[at])
            mixed ^= word
        hashes[row] = mixed_bits(mixed)


@inlined
def _are_equal(
    data: Bytes, begin: np.uint64, end: np.uint64, other_data: Bytes, other: np.uint64
) -> bool:
    """Whether the bytes of a string are those of another of the same length."""
    at, theirs = begin, other
    while at + U64(8) <= end and load_u64(data, at) == load_u64(other_data, theirs):
        at += U64(8)
        theirs += U64(8)
    while at < end and data[at] == other_data[theirs]:
        at += U64(1)
        theirs += U64(1)
    return at == end


@kernel
def number_strings(
    offsets: Int64s, data: Bytes, hashes: Uint64s, slots: Uint64s, numbers: Numbers
) -> None:
    """Number strings and enter them into a table.

    Parameters
    ----------
    offsets, data, hashes
        The strings, and what :func:`hash_strings` made of them.
    slots : ndarray of uint64
        Zeros; as many as a power of two, at least twice the strings.
    numbers : ndarray of uint32 or int64, shape (strings,)
        Receives the first row that holds the same string.
    """
    mask, last = U64(len(slots)) - U64(1), U64(len(hashes))
    for row in range(last):
        ahead = row + U64(AHEAD)
        prefetch(slots, hashes[ahead if ahead < last else row] & mask)
        mixed = hashes[row]
        slot, number = mixed & mask, row
        while True:
            entry = slots[slot]
            if entry == U64(0):
                slots[slot] = (mixed >> HALF) << HALF | (row + U64(1))
                break
            if entry >> HALF == mixed >> HALF:
                first = (entry & LOW) - U64(1)
                begin, end = U64(offsets[row]), U64(offsets[row + U64(1)])
                other = U64(offsets[first])
                same_length = U64(offsets[first + U64(1)]) - other == end - begin
                if same_length and _are_equal(data, begin, end, data, other):
                    number = first
                    break
            slot = (slot + U64(1)) & mask
        numbers[row] = number


@kernel
def find_strings(
    offsets: Int64s,
    data: Bytes,
    hashes: Uint64s,
    known_offsets: Int64s,
    known_data: Bytes,
    slots: Uint64s,
    numbers: Numbers,
    absent: int,
) -> None:
    """Find the numbers of strings.

    Parameters
    ----------
    offsets, data, hashes
        Strings, and what :func:`hash_strings` made of them.
    known_offsets, known_data, slots
        What :func:`number_strings` was given, and made.
    numbers : ndarray of uint32 or int64, shape (strings,)
        Receives each one's number, or ``absent`` where it has none.
    absent : int
        Stands for no number.
    """
    mask, last = U64(len(slots)) - U64(1), U64(len(hashes))
    for row in range(last):
        far, middle, near = row + U64(3 * AHEAD), row + U64(2 * AHEAD), row + U64(AHEAD)
        prefetch(slots, hashes[far if far < last else row] & mask)
        prefetch(known_offsets, slots[hashes[middle if middle < last else row] & mask] & LOW)
        near_entry = slots[hashes[near if near < last else row] & mask]
        if near_entry != U64(0):
            prefetch(known_data, U64(known_offsets[(near_entry & LOW) - U64(1)]))
        mixed = hashes[row]
        slot = mixed & mask
        numbers[row] = absent
        while True:
            entry = slots[slot]
            if entry == U64(0):
                break
            if entry >> HALF == mixed >> HALF:
                first = (entry & LOW) - U64(1)
                begin, end = U64(offsets[row]), U64(offsets[row + U64(1)])
                other = U64(known_offsets[first])
                same_length = U64(known_offsets[first + U64(1)]) - other == end - begin
                if same_length and _are_equal(data, begin, end, known_data, other):
                    numbers[row] = first
                    break
            slot = (slot + U64(1)) & mask


@kernel
def enter_hashes(hashes: Uint64s, slots: Uint64s) -> None:
    """Enter different strings, by their hashes, into an empty table as :func:`number_strings`."""
    mask = U64(len(slots)) - U64(1)
    for row in range(U64(len(hashes))):
        mixed = hashes[row]
        slot = mixed & mask
        while slots[slot] != U64(0):
            slot = (slot + U64(1)) & mask
        slots[slot] = (mixed >> HALF) << HALF | (row + U64(1))


@kernel
def learn_strings(
    offsets: Int64s,
    data: Bytes,
    hashes: Uint64s,
    known_offsets: Int64s,
    known_data: Bytes,
    known_hashes: Uint64s,
    known_numbers: Int64s,
    slots: Uint64s,
    notes: Int64s,
    numbers: Int64s,
) -> None:
    """Find the numbers of strings among known ones, to which others are appended.

    Parameters
    ----------
    offsets, data
        The strings.
    hashes : ndarray of uint64, shape (strings,)
        Receives what :func:`hash_strings` makes of them.
    known_offsets, known_data, known_hashes, known_numbers
        The known ones, with room behind them for all of these.
    slots : ndarray of uint64
        Table of the known ones; at least twice as many slots as there is room for strings.
    notes : ndarray of int64, shape (2,)
        How many are known, and the number of the next one that was not.
    numbers : ndarray of int64, shape (strings,)
        Receives each one's number.
    """
    hash_strings(offsets, data, hashes)
    mask, known, last = U64(len(slots)) - U64(1), U64(notes[0]), U64(len(hashes))
    for row in range(last):
        far, middle, near = row + U64(3 * AHEAD), row + U64(2 * AHEAD), row + U64(AHEAD)
        prefetch(slots, hashes[far if far < last else row] & mask)
        middle_entry = slots[hashes[middle if middle < last else row] & mask]
        if middle_entry != U64(0):
            prefetch(known_offsets, (middle_entry & LOW) - U64(1))
            prefetch(known_numbers, (middle_entry & LOW) - U64(1))
        near_entry = slots[hashes[near if near < last else row] & mask]
        if near_entry != U64(0):
            prefetch(known_data, U64(known_offsets[(near_entry & LOW) - U64(1)]))
        mixed = hashes[row]
        slot = mixed & mask
        begin, end = U64(offsets[row]), U64(offsets[row + U64(1)])
        while True:
            entry = slots[slot]
            if entry == U64(0):
                at = U64(known_offsets[known])
                for byte in range(end - begin):
                    known_data[at + byte] = data[begin + byte]
                known_offsets[known + U64(1)] = at + (end - begin)
                known_hashes[known] = mixed
                known_numbers[known] = numbers[row] = notes[1]
                notes[1] += 1
                known += U64(1)
                slots[slot] = (mixed >> HALF) << HALF | known
                break
            if entry >> HALF == mixed >> HALF:
                first = (entry & LOW) - U64(1)
                other = U64(known_offsets[first])
                same_length = U64(known_offsets[first + U64(1)]) - other == end - begin
                if same_length and _are_equal(data, begin, end, known_data, other):
                    numbers[row] = known_numbers[first]
                    break
            slot = (slot + U64(1)) & mask
    notes[0] = known
