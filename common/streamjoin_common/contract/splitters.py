"""Splitters of an ordered index: which codes each bucket holds.

Splitter ``i``, from 1 to ``buckets - 1``, is the highest code below bucket ``i``: a code lies in
the bucket whose number is the count of splitters below it.
"""

from collections.abc import Iterable, Sequence

from streamjoin_common.contract.params import DesignParams
from streamjoin_common.contract.terms import KeyType

_SIGN = 1 << 31
_MASK = (1 << 32) - 1


def even_splitters(buckets: int) -> list[int]:
    """Return splitters that divide all codes evenly, as a design has them after power-up.

    >>> even_splitters(4) == [(1 << 30) - 1, (1 << 31) - 1, (3 << 30) - 1]
    True
    """
    return [(i << 32) // buckets - 1 for i in range(1, buckets)]


def used_buckets(params: DesignParams, window: int) -> int:
    """Return how many buckets to use for a window, so that they are half full: at most all.

    In too many buckets a band would reach over many that are nearly empty.
    """
    return max(1, min(params.buckets, -(-2 * window // params.bucket_slots)))


def splitters_of(codes: Sequence[int], buckets: int, used: int | None = None) -> list[int]:
    """Return splitters that give each bucket as many codes of a sample.

    A code that fills several buckets lies in the first of them and leaves the others empty: its
    tuples are displaced into those.

    Parameters
    ----------
    codes : sequence of int
        Ordered codes (:func:`order_codes`), in any order; if there are none, the buckets divide
        all codes evenly.
    buckets : int
        Buckets of the index.
    used : int, optional
        Share the codes out among so many of them, all if not given (:func:`used_buckets`).

    Examples
    --------
    >>> splitters_of([7, 1, 5, 3], 4)
    [1, 3, 5]
    >>> splitters_of([9] * 3 + [20], 4)
    [9, 9, 9]
    >>> splitters_of([7, 1, 5, 3], 4, 2) == [3, 0xFFFFFFFF, 0xFFFFFFFF]
    True
    """
    ordered = sorted(codes)
    if not ordered:
        return even_splitters(buckets)
    used = buckets if used is None else used
    shared = [ordered[max(0, i * len(ordered) // used - 1)] for i in range(1, used)]
    return [*shared, *[_MASK] * (buckets - used)]


def order_codes(keys: Iterable[int], key_type: KeyType) -> list[int]:
    """Return the unsigned codes by which a design orders keys, from the bits of the keys.

    >>> order_codes([0, 1, 0xFFFFFFFF], KeyType.INT32)
    [2147483648, 2147483649, 2147483647]
    """
    if key_type is KeyType.UINT32:
        return list(keys)
    if key_type is KeyType.INT32:
        return [key ^ _SIGN for key in keys]
    return [_float_code(bits) for bits in keys]


def _float_code(bits: int) -> int:
    """Return the code of a float32: NaN above all, both zeros alike."""
    magnitude = bits & (_SIGN - 1)
    if magnitude > 0x7F800000:
        return _MASK
    if not magnitude:
        return _SIGN
    return bits ^ _MASK if bits & _SIGN else bits ^ _SIGN
