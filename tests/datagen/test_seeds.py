"""Values as functions of row numbers."""

import math

import numpy as np
import pytest

from streamjoin_datagen.rows.ranks import alias_table, integer_weights, zipf_ranks, zipf_weights
from streamjoin_datagen.rows.seeds import (
    column_key,
    exact_exp,
    exact_log,
    hashes,
    permuted,
    scaled,
    unit,
)

DRAWS = 200_000
BOUNDS = [1, 2, 7, 10_000, (1 << 31) - 1, 1 << 32, (1 << 40) + 3, 1 << 63]


def test_hashes_are_those_of_splitmix64() -> None:
    # First outputs of the reference implementation for the seed 1234567.
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert hashes(1234567, 0, 3).tolist() == expected


def test_a_range_of_hashes_is_a_slice_of_the_whole() -> None:
    whole = hashes(99, 0, 1000)
    assert hashes(99, 600, 50).tolist() == whole[600:650].tolist()


def test_column_keys_differ_by_seed_stream_and_column() -> None:
    keys = {column_key(s, st, c) for s in range(3) for st in ("r", "s") for c in ("k", "v")}
    assert len(keys) == 12
    assert column_key(1, "r", "k") == 15403331626033170593


@pytest.mark.parametrize("bound", BOUNDS)
def test_scaling_takes_the_high_word_of_the_product(bound: int) -> None:
    values = hashes(5, 0, 2000)
    assert [int(v) for v in scaled(values, bound)] == [int(v) * bound >> 64 for v in values]


def test_unit_values_are_uniform() -> None:
    values = unit(hashes(column_key(7, "r", "x"), 0, DRAWS))
    assert values.min() >= 0
    assert values.max() < 1
    counts = np.bincount((values * 100).astype(int), minlength=100)
    # Chi-square with 99 degrees of freedom stays below 150 but for one seed in a thousand.
    assert ((counts - DRAWS / 100) ** 2 / (DRAWS / 100)).sum() < 150


def test_logarithm_and_exponential_are_right_to_the_last_digits() -> None:
    values = np.concatenate([np.linspace(1e-12, 3, 10_001), [2.0**-53, 1.0, 1e15]])
    assert np.allclose(exact_log(values), [math.log(v) for v in values], rtol=4e-15, atol=1e-16)
    powers = np.linspace(-60, 5, 10_001)
    assert np.allclose(exact_exp(powers), [math.exp(v) for v in powers], rtol=2e-14, atol=0)


@pytest.mark.parametrize("domain", [1, 2, 3, 4, 5, 7, 8, 9, 63, 64, 65, 1000, 4095, 4096, 4097])
@pytest.mark.parametrize("key", [0, 3, (1 << 64) - 1])
def test_permutations_are_one_to_one(domain: int, key: int) -> None:
    found = permuted(key, domain, np.arange(domain, dtype=np.uint64))
    assert np.sort(found).tolist() == list(range(domain))


def test_permutations_of_two_keys_differ() -> None:
    items = np.arange(1000, dtype=np.uint64)
    assert np.count_nonzero(permuted(1, 1000, items) == permuted(2, 1000, items)) < 20


def test_permutations_leave_their_input_alone() -> None:
    items = np.arange(100, dtype=np.uint64)
    permuted(1, 100, items)
    assert items.tolist() == list(range(100))


@pytest.mark.parametrize("domain", [1, 2, 3, 10, 1000, 4097])
@pytest.mark.parametrize("skew", [0.0, 0.3, 0.8, 1.0, 2.0])
def test_an_alias_table_holds_exactly_the_weights(domain: int, skew: float) -> None:
    weights, bucket_log2 = integer_weights(zipf_weights(domain, skew))
    table = alias_table(zipf_weights(domain, skew))
    mass = table.thresholds.astype(np.int64)
    np.add.at(mass, table.aliases.astype(np.int64), (1 << bucket_log2) - mass)
    assert mass.tolist() == weights.tolist()
    ideal = np.arange(1, domain + 1) ** -skew
    assert np.allclose(weights / weights.sum(), ideal / ideal.sum(), rtol=1e-9)


@pytest.mark.parametrize("skew", [0.0, 0.8, 1.5])
def test_zipf_frequencies_follow_the_law(skew: float) -> None:
    ranks = zipf_ranks(hashes(column_key(11, "r", "k"), 0, DRAWS), 200, skew)
    ideal = np.arange(1, 201) ** -skew
    expected = DRAWS * ideal / ideal.sum()
    counts = np.bincount(ranks.astype(np.int64), minlength=200)
    assert ((counts - expected) ** 2 / expected).sum() < 270  # 199 degrees of freedom
