"""The tuples of a self-test, and what their join must add up to: the software's side.

Tuples are drawn from a shift register with feedback, 32 bits wide: xorshift with 13, 17 and 5
(Marsaglia, Xorshift RNGs, Journal of Statistical Software 8(14), 2003), one step a tuple. The
highest bit is the side, the lower ones the keys; the payload is the tuple's number.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from streamjoin_common.contract import KEY_BITS, DesignParams
from streamjoin_common.errors import UsageError
from streamjoin_hw.sim.bulk import CHUNK_TUPLES, Chunk, SlidingJoin

SEED = 0x2545F491
"""The register's first state; any but 0."""

SHIFTS = (13, -17, 5)
"""Bits by which the state is shifted to the left before it is XORed to itself, in turn."""

STATE_BITS = 32
CHECKSUM_BITS = 32
FACTOR_BITS = 16
"""Of a payload, in a checksum."""


@dataclass(frozen=True)
class Expected:
    """What the results must be.

    Parameters
    ----------
    results : int
        How many there are.
    checksum : int
        The sum of :func:`weights` modulo 2 to the power of ``CHECKSUM_BITS``.
    """

    results: int
    checksum: int


def key_bits(params: DesignParams) -> int:
    """Return how many bits of each key are random: a tuple owes about one match.

    Raises
    ------
    UsageError
        If the design has timestamps, which a self-test does not give, or beats of two results,
        of which it would add up the first.
    """
    if params.timestamp_bits:
        raise UsageError("a self-test gives no times: set timestamp_bits=0")
    if params.beat_results > 1:
        raise UsageError("a self-test takes one result a beat: set beat_results=1")
    maximum = (STATE_BITS - 1) // len(params.terms)
    wanted = params.window_capacity.bit_length()
    return min(maximum, KEY_BITS, max(1, -(-wanted // len(params.terms))))


def weights(r: npt.NDArray[np.uint64], s: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return what each result adds to the checksum.

    The product of two odd numbers made of the payloads: it depends on who met whom, the sum does
    not depend on the order, and no wrong bit is multiplied by nothing.

    Parameters
    ----------
    r, s : uint64 arrays, shape (results,)
        Payloads.
    """
    one, mask = np.uint64(1), np.uint64((1 << FACTOR_BITS) - 1)
    product: npt.NDArray[np.uint64] = ((r & mask) << one | one) * ((s & mask) << one | one)
    return product


def _states(count: int) -> Iterator[int]:
    state = SEED
    for _ in range(count):
        yield state
        for shift in SHIFTS:
            moved = state << shift if shift > 0 else state >> -shift
            state = (state ^ moved) & ((1 << STATE_BITS) - 1)


def chunks(params: DesignParams, tuples: int) -> Iterator[Chunk]:
    """Yield the tuples, as many at a time as the join takes.

    Raises
    ------
    UsageError
        See :func:`key_bits`.
    """
    bits = key_bits(params)
    states = np.fromiter(_states(tuples), np.uint32, tuples)
    payload_mask = (1 << params.payload_bits) - 1
    for first in range(0, tuples, CHUNK_TUPLES):
        part = states[first : first + CHUNK_TUPLES]
        shifts = [np.uint32(index * bits) for index in range(len(params.terms))]
        keys = np.stack([part >> shift & np.uint32((1 << bits) - 1) for shift in shifts], axis=1)
        yield Chunk(
            (part >> np.uint32(STATE_BITS - 1)).astype(np.uint8),
            keys,
            ((np.arange(len(part)) + first) & payload_mask).astype(np.uint32),
            np.zeros(len(part), np.uint32),
        )


def expected(params: DesignParams, tuples: int) -> Expected:
    """Join the tuples in software.

    Windows are as large as the design holds and bands 0, as after reset.

    Raises
    ------
    UsageError
        See :func:`key_bits`.
    """
    windows = (params.window_capacity, params.window_capacity)
    join = SlidingJoin(params, windows, {})
    results = checksum = 0
    for chunk in chunks(params, tuples):
        pairs = join.join(chunk)
        added = weights(pairs >> np.uint64(32), pairs & np.uint64(0xFFFFFFFF))
        results += len(added)
        # Sums of uint64 wrap at a multiple of the checksum's modulus.
        checksum += int(added.sum(dtype=np.uint64))
    return Expected(results, checksum & ((1 << CHECKSUM_BITS) - 1))
