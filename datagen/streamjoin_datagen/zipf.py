"""Zipf distributed ranks by an alias table of integers, the same on every machine.

An alias table answers each draw with one comparison: ``domain`` buckets of equal weight hold
one rank each, topped up with a part of one more frequent rank. Walker, "An Efficient Method
for Generating Discrete Random Variables with General Distributions"; the table is built without
a sequential loop by cumulated sums over light and heavy ranks, as the sweep of Huebschle-Schneider
and Sanders, "Parallel Weighted Random Sampling" (section 4), which meets them in that order.
"""

import functools
from dataclasses import dataclass

import numpy as np

from streamjoin_datagen.seeds import UInt64s, exact_exp, exact_log, scaled

_TOTAL_LOG2 = 62


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


def zipf_weights(domain: int, skew: float) -> tuple[UInt64s, int]:
    """Integer weights of the ranks, proportional to ``(rank + 1)**-skew``.

    Returns
    -------
    weights : ndarray of uint64, shape (domain,)
        In descending order; their sum is ``domain * 2**bucket_log2``.
    bucket_log2 : int
    """
    bucket_log2 = _TOTAL_LOG2 - domain.bit_length()
    places = np.arange(1, domain + 1, dtype=np.float64)
    real = exact_exp(exact_log(places) * -skew)
    # cumsum adds from left to right on every machine; sum does not promise an order.
    share = real * (domain / np.cumsum(real)[-1])
    weights = np.ldexp(share, bucket_log2).astype(np.int64)
    # What rounding left over goes to the most frequent rank.
    weights[0] += (domain << bucket_log2) - int(weights.sum())
    return weights.astype(np.uint64), bucket_log2


@functools.lru_cache(maxsize=2)
def zipf_table(domain: int, skew: float) -> AliasTable:
    """Build the table; the last two are kept in a process."""
    unsigned, bucket_log2 = zipf_weights(domain, skew)
    weights, bucket = unsigned.astype(np.int64), 1 << bucket_log2
    # Weights descend, so the heavy ranks, which fill more than a bucket, come first.
    heavies = int(np.count_nonzero(weights > bucket))
    thresholds = np.minimum(weights, bucket)
    aliases = np.arange(domain, dtype=np.int64)
    if heavies:
        surplus = np.cumsum(weights[:heavies] - bucket)
        lack = np.cumsum(bucket - weights[heavies:])
        before = lack - (bucket - weights[heavies:])
        # A light rank is topped up by the first heavy rank with surplus left.
        donors = np.searchsorted(surplus, before, side="right")
        aliases[heavies:] = np.minimum(donors, heavies - 1)
        # The light rank that ends a heavy one's surplus may take more than that: the heavy
        # rank then lacks something itself, which the next heavy rank gives.
        enders = np.searchsorted(lack, surplus, side="left")
        thresholds[:heavies] = bucket - (lack[enders] - surplus)
        aliases[:heavies] = np.minimum(np.arange(1, heavies + 1), heavies - 1)
    return AliasTable(thresholds.astype(np.uint64), aliases.astype(np.uint64), bucket_log2)


def zipf_ranks(values: UInt64s, domain: int, skew: float) -> UInt64s:
    """Map uniform 64-bit values to ranks 0 .. ``domain - 1``, rank 0 the most frequent.

    Parameters
    ----------
    values : ndarray of uint64
        Uniform values.
    domain : int
        1 to 2**24.
    skew : float
        Exponent, 0 to 2; 0 is uniform.
    """
    table = zipf_table(domain, skew)
    points = scaled(values, domain << table.bucket_log2)
    buckets = points >> np.uint64(table.bucket_log2)
    rests = points & np.uint64((1 << table.bucket_log2) - 1)
    keep = rests < table.thresholds[buckets]
    found: UInt64s = np.where(keep, buckets, table.aliases[buckets])
    return found
