"""Values that are a function of (seed, stream, column, row number), alike on every machine.

Nothing here has state: row ``i`` of a column has the same value whichever rows are made
together, so a workload does not depend on how it is split. Real-valued functions are built from
IEEE additions, multiplications, divisions and integer operations only, each of which is rounded
in one way everywhere; NumPy's own ``log`` and ``exp`` may differ in the last bit between
machines.

Sources: Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators" (SplitMix64,
figure 17), for the hash; Black and Rogaway, "Ciphers with Arbitrary Finite Domains" (sections 4
and 5), for the Feistel permutation and cycle walking.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

UInt64s = NDArray[np.uint64]
Int64s = NDArray[np.int64]
Float64s = NDArray[np.float64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_HALF = np.uint64(32)
_LOW = np.uint64(0xFFFFFFFF)

_LOG_2 = 0.6931471805599453
_FEISTEL_ROUNDS = 4
_CACHED_ITEMS = 1 << 14
"""Items that are permuted at a time: what is worked on stays in the nearest caches."""

_ATANH_TERMS = 12
_EXP_TERMS = 16


def column_key(seed: int, stream: str, column: str) -> int:
    """64-bit key of one column: where its sequence starts."""
    name = f"{seed}/{stream}/{column}".encode()
    return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), "little")


def _mix(values: UInt64s) -> UInt64s:
    """SplitMix64's finaliser, in place on a fresh array."""
    values ^= values >> np.uint64(30)
    values *= _MIX_1
    values ^= values >> np.uint64(27)
    values *= _MIX_2
    values ^= values >> np.uint64(31)
    return values


def hashes(key: int, first_row: int, row_count: int) -> UInt64s:
    """Uniform 64-bit values of the rows ``first_row`` and following.

    Returns
    -------
    ndarray of uint64, shape (row_count,)
        Element ``j`` is output ``first_row + j`` of the SplitMix64 sequence that starts at
        ``key``.
    """
    counters = np.arange(first_row + 1, first_row + 1 + row_count, dtype=np.uint64)
    counters *= _GOLDEN
    counters += np.uint64(key)
    return _mix(counters)


def rehashed(values: UInt64s) -> UInt64s:
    """Second uniform values, one from each of the first, that look independent of them."""
    return _mix(values + _GOLDEN)


def scaled(values: UInt64s, bound: int) -> UInt64s:
    """Map uniform 64-bit values to 0 .. ``bound - 1``: the high word of the 128-bit product.

    Parameters
    ----------
    values : ndarray of uint64
        Uniform values.
    bound : int
        1 to 2**63. No outcome is likelier than another by more than ``bound / 2**64``.
    """
    low, high = values & _LOW, values >> _HALF
    bound_low, bound_high = np.uint64(bound & 0xFFFFFFFF), np.uint64(bound >> 32)
    cross: UInt64s = high * bound_low + (low * bound_low >> _HALF)
    if not bound_high:
        return cross >> _HALF
    middle: UInt64s = low * bound_high + (cross & _LOW)
    product_high: UInt64s = high * bound_high + (cross >> _HALF) + (middle >> _HALF)
    return product_high


def unit(values: UInt64s) -> Float64s:
    """Map uniform 64-bit values to multiples of 2**-53 in [0, 1)."""
    return (values >> np.uint64(11)).astype(np.float64) * 2.0**-53


def exact_log(values: Float64s) -> Float64s:
    """Natural logarithm of positive numbers to about 1e-15, the same bits everywhere.

    ``log(m * 2**e) = e log 2 + 2 atanh((m - 1) / (m + 1))`` with ``m`` in [0.7, 1.42).
    """
    mantissas, exponents = np.frexp(values)
    small = mantissas < 0.7071067811865476
    mantissas = np.where(small, mantissas * 2.0, mantissas)
    exponents = exponents - small
    ratio = (mantissas - 1.0) / (mantissas + 1.0)
    square = ratio * ratio
    series = np.zeros_like(ratio)
    for term in range(_ATANH_TERMS, -1, -1):
        series = series * square
        series = series + 1.0 / (2 * term + 1)
    return exponents * _LOG_2 + 2.0 * ratio * series


def exact_exp(values: Float64s) -> Float64s:
    """Exponential of numbers within +-700 to about 1e-14, the same bits everywhere."""
    exponents = np.rint(values / _LOG_2)
    rest = values - exponents * _LOG_2
    series = np.ones_like(rest)
    for term in range(_EXP_TERMS, 0, -1):
        series = series * rest / term
        series = series + 1.0
    powers: Float64s = np.ldexp(series, exponents.astype(np.int32))
    return powers


def permuted(key: int, domain: int, items: UInt64s) -> UInt64s:
    """Map each of 0 .. ``domain - 1`` to another of them, one to one.

    A Feistel network of four rounds, of halves that differ by a bit at most, permutes the next
    power of two; a value that falls outside the domain is walked on until it is inside.

    Parameters
    ----------
    key : int
        Which permutation, 64 bits.
    domain : int
        1 to 2**62.
    items : ndarray of uint64
        Values below ``domain``.
    """
    bits = max(2, (domain - 1).bit_length())
    halves = (bits - bits // 2, bits // 2)
    round_keys = hashes(key, 0, _FEISTEL_ROUNDS)
    permuted_items = np.empty_like(items)
    for first in range(0, len(items), _CACHED_ITEMS):
        walked = _feistel(round_keys, halves, items[first : first + _CACHED_ITEMS])
        outside = np.flatnonzero(walked >= np.uint64(domain))
        while outside.size:
            # At least half of the power of two is inside, so few turns are needed.
            again = _feistel(round_keys, halves, walked[outside])
            walked[outside] = again
            outside = outside[again >= np.uint64(domain)]
        permuted_items[first : first + _CACHED_ITEMS] = walked
    return permuted_items


def _feistel(round_keys: UInt64s, halves: tuple[int, int], items: UInt64s) -> UInt64s:
    left_bits, right_bits = halves
    left_mask, right_mask = np.uint64((1 << left_bits) - 1), np.uint64((1 << right_bits) - 1)
    left, right = items >> np.uint64(right_bits), items & right_mask
    for number in range(0, _FEISTEL_ROUNDS, 2):
        left ^= _mixed(right, round_keys[number]) & left_mask
        right ^= _mixed(left, round_keys[number + 1]) & right_mask
    left <<= np.uint64(right_bits)
    left |= right
    return left


def _mixed(half: UInt64s, round_key: np.uint64) -> UInt64s:
    values = half * _GOLDEN
    values += round_key
    return _mix(values)
