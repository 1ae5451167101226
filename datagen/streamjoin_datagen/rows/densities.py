"""Integers from a density given on a grid of bins, the same on every machine.

A density is cut into ``BINS`` bins of equal width; a draw takes a bin by an alias table and a
value within it uniformly. With 4096 bins the distribution function differs from the density's
own by less than 1e-6 for the laws here, far below what any sample shows. As a law of bins it is
also exact in what matters for a join: how likely two values are close is a finite sum.
"""

import functools
import math
from dataclasses import dataclass

import numpy as np

from streamjoin_datagen.rows.ranks import AliasTable, alias_table
from streamjoin_datagen.rows.seeds import (
    Float64s,
    Int64s,
    UInt64s,
    exact_exp,
    exact_log,
    rehashed,
    scaled,
)

BINS = 1 << 12
_STEPS_A_BIN = 8

GAMMA_SPANS = 10
"""A gamma distribution is cut off at ``scale * (shape + 10 sqrt(shape) + 10)``."""


@dataclass(frozen=True, eq=False)
class Law:
    """Bins of equal width, in descending order of probability.

    Attributes
    ----------
    order : ndarray of uint64, shape (BINS,)
        Index of each bin.
    weights : ndarray of float64, shape (BINS,)
        Probability of each bin, in the order of the bins; their sum is 1.
    """

    table: AliasTable
    order: UInt64s
    weights: Float64s

    def drawn(self, values: UInt64s, domain: int) -> Int64s:
        """Map uniform 64-bit values to integers 0 to ``domain - 1``.

        Parameters
        ----------
        domain : int
            A multiple of ``BINS``.
        """
        drawn = self.order[self.table.drawn(values)]
        width = domain // BINS
        drawn *= np.uint64(width)
        drawn += scaled(rehashed(values), width)
        return drawn.astype(np.int64)

    def closeness(self, reach: int, domain: int) -> float:
        """Probability that two draws differ by at most ``reach``."""
        width = domain // BINS
        summed = np.concatenate([[0.0], np.cumsum(self.weights)])
        edges = np.arange(BINS + 1) * float(width)
        # The middles of equal steps: the integrand is linear but for a kink a bin.
        steps = (np.arange(BINS * _STEPS_A_BIN) + 0.5) * (width / _STEPS_A_BIN)
        # An integer x stands for [x, x + 1), so reach integers are reach + 1/2 long.
        above = np.interp(steps + reach + 0.5, edges, summed)
        below = np.interp(steps - reach - 0.5, edges, summed)
        shares = np.repeat(self.weights, _STEPS_A_BIN) / _STEPS_A_BIN
        return float(np.dot(above - below, shares))


def _law(density: Float64s) -> Law:
    weights = density / np.cumsum(density)[-1]
    order = np.argsort(-weights, kind="stable")
    return Law(alias_table(weights[order]), order.astype(np.uint64), weights)


def _middles() -> Float64s:
    return (np.arange(BINS, dtype=np.float64) + 0.5) / BINS


@functools.lru_cache(maxsize=4)
def gaussian(mean: float, sigma: float) -> Law:
    """Normal distribution, cut off outside [0, 1)."""
    away = (_middles() - mean) / sigma
    # Beyond 37 standard deviations nothing is drawn in a lifetime, and exp would be subnormal.
    return _law(exact_exp(-0.5 * np.minimum(away * away, 1369.0)))


@functools.lru_cache(maxsize=4)
def gamma(shape: float, scale: float) -> Law:
    """Gamma distribution; the bins divide [0, ``gamma_span``)."""
    points = _middles() * gamma_span(shape, scale)
    powers = exact_log(points) * (shape - 1.0) - points / scale
    powers -= powers.max()
    return _law(exact_exp(np.maximum(powers, -700.0)))


def gamma_span(shape: float, scale: float) -> float:
    """Where a gamma distribution is cut off; above it lies less than 1e-6 of it."""
    return scale * (shape + GAMMA_SPANS * math.sqrt(shape) + GAMMA_SPANS)


def reach_for(law: Law, chance: float, domain: int) -> int:
    """Smallest difference that two draws keep with at least a given probability."""
    low, high = 0, domain
    while low < high:
        middle = (low + high) // 2
        if law.closeness(middle, domain) < chance:
            low = middle + 1
        else:
            high = middle
    # The one below may be nearer.
    if low and chance - law.closeness(low - 1, domain) < law.closeness(low, domain) - chance:
        low -= 1
    return low


def uniform_reach(chance: float, domain: int) -> int:
    """Difference that two uniform integers below ``domain`` keep with a probability."""
    # P = 1 - (1 - d)**2 for a difference d of the domain, and integers are half wider.
    share = 1.0 - math.sqrt(max(0.0, 1.0 - chance))
    return max(0, round(share * domain - 0.5))
