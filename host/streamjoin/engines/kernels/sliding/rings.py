"""Lock-free queues from one thread to another: handshake join, section 4.2.

A ring is one array of int64: the messages taken so far, the messages put so far, each on a cache
line of its own, then the messages. Each count has one writer: it is stored with release after the
message was read or written, and loaded with acquire by the other side.
"""

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.atomics import load_acquire, pause, store_release
from streamjoin.engines.kernels.jit import kernel

Ring = NDArray[np.int64]

U64 = np.uint64
TAKEN, PUT, MESSAGES = U64(0), U64(16), U64(32)
NONE = -1
"""Returned if there is no message; messages are never negative."""


def ring(capacity: int) -> Ring:
    """Allocate a ring with a capacity in messages."""
    return np.zeros(int(MESSAGES) + capacity, dtype=np.int64)


@kernel
def put(ring: Ring, message: int) -> bool:
    """Append a message; return False if there is no room. The sender calls it."""
    capacity = len(ring) - int(MESSAGES)
    count = ring[PUT]
    if count - load_acquire(ring, TAKEN) >= capacity:
        return False
    ring[MESSAGES + U64(count % capacity)] = message
    store_release(ring, PUT, count + 1)
    return True


@kernel
def has_room(ring: Ring) -> bool:
    """Whether :func:`put` would succeed. The sender calls it."""
    return bool(ring[PUT] - load_acquire(ring, TAKEN) < len(ring) - int(MESSAGES))


@kernel
def take(ring: Ring) -> int:
    """Take the first message; return :data:`NONE` if there is none. The receiver calls it."""
    count = ring[TAKEN]
    if count == load_acquire(ring, PUT):
        return NONE
    message = ring[MESSAGES + U64(count % (len(ring) - int(MESSAGES)))]
    store_release(ring, TAKEN, count + 1)
    return int(message)


@kernel
def await_any(one: Ring, other: Ring, max_spins: int) -> bool:
    """Spin until a ring has a message, at most ``max_spins`` times. The receiver calls it."""
    for _ in range(max_spins):
        if one[TAKEN] != load_acquire(one, PUT) or other[TAKEN] != load_acquire(other, PUT):
            return True
        pause()
    return False


@kernel
def publish(shared: Ring, index: int, value: int) -> None:
    """Publish a value to other threads."""
    store_release(shared, U64(index), value)


@kernel
def published(shared: Ring, index: int) -> int:
    """Read what another thread published last."""
    return int(load_acquire(shared, U64(index)))
