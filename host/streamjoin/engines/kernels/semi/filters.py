"""The filter over R's keys: a stream tuple whose key it lacks has no row in R.

A blocked Bloom filter (Putze, Sanders, Singler, "Cache-, hash- and space-efficient Bloom filters",
2007) with a block of one 64-bit word: three bits of it stand for a key, so a lookup reads one cache
line. A key that was added is always found again; one that was not is found by chance.

It is only added to, in every cycle, and used once a whole cycle was added. So it holds every row
that was there for the cycle before a tuple is taken, whatever changes in R: a row that was inserted
is added when it is read, one that was deleted stays, which costs a false positive.
"""

import numpy as np

from streamjoin.engines.kernels.jit import inlined, kernel
from streamjoin.engines.kernels.semi.layout import TAG_BITS, U64, Uint64s

BITS_A_KEY = 3


@inlined
def _filter_word(tag: np.uint64, words: np.uint64) -> np.uint64:
    return U64((tag * words) >> U64(TAG_BITS))


@inlined
def _filter_bits(mixed: np.uint64) -> np.uint64:
    # Bits of the hash that the tag, which gives the word, does not hold.
    six = U64(63)
    bits = U64(1) << ((mixed >> U64(28)) & six)
    bits |= U64(1) << ((mixed >> U64(22)) & six)
    return U64(bits | U64(1) << ((mixed >> U64(16)) & six))


@kernel
def bits_set(words: Uint64s) -> int:
    """Return how many bits of the filter are set."""
    found = 0
    for word in words:
        left = word
        while left:
            left &= left - U64(1)
            found += 1
    return found
