"""Weighted ranks: Zipf and other laws by alias tables of integers, the same on every machine.

An alias table answers each draw with one comparison: ``domain`` buckets of equal weight hold
one rank each, topped up with a part of one more frequent rank. Walker, "An Efficient Method
for Generating Discrete Random Variables with General Distributions"; the table is built without
a sequential loop by cumulated sums over light and heavy ranks, as the sweep of Huebschle-Schneider
and Sanders, "Parallel Weighted Random Sampling" (section 4), which meets them in that order.

A Zipf domain of any size takes a table of its ``HEAD_RANKS`` first ranks alone: beyond them the
sum over ranks and the integral of ``x**-skew`` over half a rank to either side agree to twelve
digits, and the integral is inverted.
"""

import functools
from dataclasses import dataclass

import numpy as np

from streamjoin_datagen.rows.seeds import (
    Float64s,
    UInt64s,
    exact_exp,
    exact_log,
    rehashed,
    scaled,
    unit,
)

_TOTAL_LOG2 = 62

HEAD_RANKS = 1 << 20
"""Maximum ranks of a table, which takes 16 bytes each."""


@dataclass(frozen=True)
class AliasTable:
    """Buckets of the weight ``2**bucket_log2``, one for each rank.

    Attributes
    ----------
    thresholds : ndarray of uint64, shape (domain,)
        Weight of a bucket that belongs to its own rank.
    aliases : ndarray of uint64, shape (domain,)
        Rank that the rest of the bucket belongs to.
    """

    thresholds: UInt64s
    aliases: UInt64s
    bucket_log2: int

    def drawn(self, values: UInt64s) -> UInt64s:
        """Map uniform 64-bit values to ranks 0 and up."""
        domain = len(self.thresholds)
        points = scaled(values, domain << self.bucket_log2)
        buckets = points >> np.uint64(self.bucket_log2)
        points &= np.uint64((1 << self.bucket_log2) - 1)
        keep = points < self.thresholds[buckets]
        ranks: UInt64s = np.where(keep, buckets, self.aliases[buckets])
        return ranks


def integer_weights(real: Float64s) -> tuple[UInt64s, int]:
    """Integer weights in the proportions of real ones.

    Parameters
    ----------
    real : ndarray of float64, shape (domain,)
        In descending order.

    Returns
    -------
    weights : ndarray of uint64, shape (domain,)
        In descending order; their sum is ``domain * 2**bucket_log2``.
    bucket_log2 : int
    """
    domain = len(real)
    bucket_log2 = _TOTAL_LOG2 - domain.bit_length()
    # cumsum adds from left to right on every machine; sum does not promise an order.
    share = real * (domain / np.cumsum(real)[-1])
    weights = np.ldexp(share, bucket_log2).astype(np.int64)
    # The remainder of rounding is added to the most frequent rank.
    weights[0] += (domain << bucket_log2) - int(weights.sum())
    return weights.astype(np.uint64), bucket_log2


def alias_table(real: Float64s) -> AliasTable:
    """Build the table of weights in descending order."""
    domain = len(real)
    unsigned, bucket_log2 = integer_weights(real)
    weights, bucket = unsigned.astype(np.int64), 1 << bucket_log2
    # Weights descend, so the heavy ranks, which fill more than a bucket, are first.
    heavies = int(np.count_nonzero(weights > bucket))
    thresholds = np.minimum(weights, bucket)
    aliases = np.arange(domain, dtype=np.int64)
    if heavies:
        surplus = np.cumsum(weights[:heavies] - bucket)
        lack = np.cumsum(bucket - weights[heavies:])
        before = lack - (bucket - weights[heavies:])
        # A light rank is topped up by the first heavy rank that has surplus.
        donors = np.searchsorted(surplus, before, side="right")
        aliases[heavies:] = np.minimum(donors, heavies - 1)
        # The light rank that ends a heavy one's surplus may take more than that: the heavy
        # rank then lacks something itself, which the next heavy rank gives.
        enders = np.searchsorted(lack, surplus, side="left")
        thresholds[:heavies] = bucket - (lack[enders] - surplus)
        aliases[:heavies] = np.minimum(np.arange(1, heavies + 1), heavies - 1)
    return AliasTable(thresholds.astype(np.uint64), aliases.astype(np.uint64), bucket_log2)


def zipf_weights(domain: int, skew: float) -> Float64s:
    """Weights ``(rank + 1)**-skew`` of ranks 0 to ``domain - 1``."""
    numbers = np.arange(1, domain + 1, dtype=np.float64)
    return exact_exp(exact_log(numbers) * -skew)


@functools.lru_cache(maxsize=4)
def _zipf_table(domain: int, skew: float) -> AliasTable:
    return alias_table(zipf_weights(domain, skew))


@functools.lru_cache(maxsize=4)
def _zipf_tail_share(domain: int, skew: float) -> float:
    """Share of the draws that fall beyond the head."""
    head = float(np.cumsum(zipf_weights(HEAD_RANKS, skew))[-1])
    ends = np.array([HEAD_RANKS + 0.5, domain + 0.5])
    low, high = _summed(ends, skew)
    tail = float(high - low)
    return tail / (head + tail)


def _summed(ranks: Float64s, skew: float) -> Float64s:
    """Antiderivative of ``x**-skew``, up to a constant."""
    if skew == 1:
        return exact_log(ranks)
    return exact_exp(exact_log(ranks) * (1 - skew)) / (1 - skew)


def _tail_ranks(units: Float64s, domain: int, skew: float) -> UInt64s:
    """Ranks beyond the head, counted from 0, for uniform values in [0, 1)."""
    low, high = _summed(np.array([HEAD_RANKS + 0.5, domain + 0.5]), skew)
    sums = low + units * (high - low)
    powers = sums if skew == 1 else exact_log(sums * (1 - skew)) / (1 - skew)
    ranks = np.rint(exact_exp(powers)).astype(np.int64) - 1
    return np.clip(ranks, HEAD_RANKS, domain - 1).astype(np.uint64)


def zipf_ranks(values: UInt64s, domain: int, skew: float) -> UInt64s:
    """Map uniform 64-bit values to ranks 0 .. ``domain - 1``, rank 0 the most frequent.

    Parameters
    ----------
    values : ndarray of uint64
        Uniform values.
    domain : int
        1 to 2**31.
    skew : float
        Exponent, 0 to 2; 0 is uniform.
    """
    if skew == 0:
        return scaled(values, domain)
    if domain <= HEAD_RANKS:
        return _zipf_table(domain, skew).drawn(values)
    is_tail = unit(values) < _zipf_tail_share(domain, skew)
    fresh = rehashed(values)
    ranks = _zipf_table(HEAD_RANKS, skew).drawn(fresh)
    ranks[is_tail] = _tail_ranks(unit(fresh[is_tail]), domain, skew)
    return ranks


@functools.lru_cache(maxsize=4)
def _falling_table(domain: int, shape: float) -> AliasTable:
    remaining = 1.0 - np.arange(domain, dtype=np.float64) / domain
    return alias_table(exact_exp(exact_log(remaining) * shape))


def falling_ranks(values: UInt64s, domain: int, shape: float) -> UInt64s:
    """Map uniform 64-bit values to ranks of weight ``(1 - rank / domain)**shape``."""
    return _falling_table(domain, shape).drawn(values)
