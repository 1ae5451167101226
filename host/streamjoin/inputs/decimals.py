"""Decimals as integers of their last digit: of 64 bits where all values fit, else of 256.

The type of such an array says its scale, so that arrays are sliced, joined and compared by type as
others are. A decimal is rescaled exactly, or has no partner.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Values = NDArray[Any]
Bools = NDArray[np.bool_]
Limbs = NDArray[np.uint64]

FIELD = "scale"
"""Name of the only field of a decimal's type, before its scale."""

STEP_DIGITS = 9
"""Maximum decimal digits by which 32-bit limbs are scaled at once: 10**9 is below 2**32."""

LIMBS = 8
LOW = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
SIGNED = np.iinfo(np.int64)


def decimal_type(scale: int, *, is_wide: bool) -> "np.dtype[Any]":
    """Return the type of arrays of decimals with so many digits behind the point."""
    field = (f"{FIELD}{scale}", np.int64, (4,)) if is_wide else (f"{FIELD}{scale}", np.int64)
    return np.dtype([field])


def is_decimal(dtype: "np.dtype[Any]") -> bool:
    """Say whether a type is that of decimals."""
    return dtype.names is not None and len(dtype.names) == 1 and dtype.names[0].startswith(FIELD)


def scale_of(dtype: "np.dtype[Any]") -> int:
    """Return the digits behind the point of a type of decimals."""
    assert dtype.names is not None
    return int(dtype.names[0].removeprefix(FIELD))


def is_wide(dtype: "np.dtype[Any]") -> bool:
    """Say whether decimals of a type have 256 bits."""
    return dtype.itemsize > 8


def common_type(one: "np.dtype[Any]", other: "np.dtype[Any]") -> "np.dtype[Any]":
    """Return a type of decimals that has the digits of two: 256 bits, unless they are the same."""
    if one == other:
        return one
    return decimal_type(max(scale_of(one), scale_of(other)), is_wide=True)


def decimals_of_arrow(column: Any, missing: Bools | None) -> Values:
    """Copy an Arrow column of decimals; what is missing is 0."""
    kind = column.type
    parts = [_words(chunk, kind.bit_width // 8) for chunk in column.chunks]
    words = np.concatenate(parts) if parts else np.empty((0, 1), np.int64)
    if missing is not None:
        words[missing] = 0
    low = words[:, 0]
    if all(np.array_equal(word, low >> 63) for word in words[:, 1:].T):
        return _as_type(np.ascontiguousarray(low), decimal_type(kind.scale, is_wide=False))
    return _as_type(_extended(words), decimal_type(kind.scale, is_wide=True))


def of_integers(column: Values) -> Values:
    """Return integers as decimals without a digit behind the point."""
    if column.dtype == np.uint64 and len(column) and int(column.max()) > SIGNED.max:
        words = np.zeros((len(column), 4), np.int64)
        words[:, 0] = column.view(np.int64)
        return _as_type(words, decimal_type(0, is_wide=True))
    return _as_type(column.astype(np.int64), decimal_type(0, is_wide=False))


def to_integers(values: Values, *, unsigned: bool) -> tuple[Values, Bools]:
    """Return decimals as 64-bit integers, and which are none of these."""
    whole, lost = rescaled(values, decimal_type(0, is_wide=unsigned))
    if not unsigned:
        return whole.view(np.int64), lost
    words = digits(whole)
    return np.ascontiguousarray(words[:, 0]).view(np.uint64), lost | (words[:, 1:] != 0).any(axis=1)


def digits(values: Values) -> Values:
    """Return the integers: of shape (rows,), or of little-endian words (rows, 4)."""
    assert values.dtype.names is not None
    return np.ascontiguousarray(values[values.dtype.names[0]])


def rescaled(values: Values, dtype: "np.dtype[Any]") -> tuple[Values, Bools]:
    """Convert decimals to another type of decimals.

    Returns
    -------
    converted : ndarray
        The same numbers; 0 where the type has not that number.
    lost : ndarray of bool
        Where that is so.
    """
    if values.dtype == dtype:
        return values, np.zeros(len(values), np.bool_)
    step = scale_of(dtype) - scale_of(values.dtype)
    if not is_wide(dtype) and not is_wide(values.dtype):
        converted, lost = _rescaled_64(digits(values), step)
        return _as_type(converted, dtype), lost
    words, lost = _rescaled_256(_extended(_as_words(values)), step)
    if is_wide(dtype):
        return _as_type(words, dtype), lost
    low = words[:, 0]
    lost |= (words[:, 1:] != (low >> 63)[:, None]).any(axis=1)
    return _as_type(np.where(lost, 0, low), dtype), lost


def _as_words(values: Values) -> Values:
    held = digits(values)
    return held if held.ndim == 2 else held[:, None]


def _as_type(integers: Values, dtype: "np.dtype[Any]") -> Values:
    return np.ascontiguousarray(integers).view(dtype).reshape(len(integers))


def _words(array: Any, value_bytes: int) -> Values:
    """Copy the little-endian words of an Arrow array of decimals."""
    first, rows = array.offset, len(array)
    buffer = array.buffers()[1]
    if buffer is None or not rows:
        return np.zeros((rows, max(1, value_bytes // 8)), np.int64)
    if value_bytes == 4:
        narrow = np.frombuffer(buffer, np.int32, count=first + rows)[first:]
        return narrow.astype(np.int64)[:, None]
    each = value_bytes // 8
    held = np.frombuffer(buffer, np.int64, count=(first + rows) * each)
    return held.reshape(-1, each)[first:].copy()


def _extended(words: Values) -> Values:
    """Return signed integers of any number of words as four words."""
    have = words.shape[1]
    if have == 4:
        return words
    sign = np.repeat(words[:, -1:] >> 63, 4 - have, axis=1)
    return np.concatenate([words, sign], axis=1)


def _rescaled_64(values: Values, step: int) -> tuple[Values, Bools]:
    factor = 10 ** abs(step)
    if factor > SIGNED.max:
        lost = values != 0
        return np.where(lost, 0, values), lost
    if step < 0:
        quotients, rests = np.divmod(values, np.int64(factor))
        lost = rests != 0
        return np.where(lost, 0, quotients), lost
    limit = SIGNED.max // factor
    lost = (values > limit) | (values < -limit)
    return np.where(lost, 0, values) * np.int64(factor), lost


def _rescaled_256(words: Values, step: int) -> tuple[Values, Bools]:
    """Scale by a power of ten, some digits at a time."""
    negative = words[:, 3] < 0
    limbs = _limbs(words)
    limbs = np.where(negative, _negated(limbs), limbs)
    lost = np.zeros(len(words), np.bool_)
    for start in range(0, abs(step), STEP_DIGITS):
        factor = np.uint64(10 ** min(STEP_DIGITS, abs(step) - start))
        lost |= (_divide if step < 0 else _multiply)(limbs, factor)
    lost |= limbs[-1] >> np.uint64(31) != 0
    limbs = np.where(negative, _negated(limbs), limbs)
    joined = limbs[0::2] | limbs[1::2] << HALF
    joined[:, lost] = 0
    return np.ascontiguousarray(joined.T).view(np.int64), lost


def _limbs(words: Values) -> Limbs:
    """Split words into limbs of 32 bits, the lowest first, shape (8, rows)."""
    limbs = np.empty((LIMBS, len(words)), np.uint64)
    unsigned = words.view(np.uint64).T
    limbs[0::2], limbs[1::2] = unsigned & LOW, unsigned >> HALF
    return limbs


def _negated(limbs: Limbs) -> Limbs:
    """Return the two's complement."""
    negated = limbs ^ LOW
    carry = np.ones(limbs.shape[1], np.uint64)
    for limb in negated:
        whole = limb + carry
        limb[:], carry = whole & LOW, whole >> HALF
    return negated


def _divide(limbs: Limbs, divisor: np.uint64) -> Bools:
    """Divide in place; say where a rest is left."""
    rest = np.zeros(limbs.shape[1], np.uint64)
    for limb in limbs[::-1]:
        whole = rest << HALF | limb
        limb[:], rest = whole // divisor, whole % divisor
    return np.asarray(rest != 0)


def _multiply(limbs: Limbs, factor: np.uint64) -> Bools:
    """Multiply in place; say where it overflows."""
    carry = np.zeros(limbs.shape[1], np.uint64)
    for limb in limbs:
        whole = limb * factor + carry
        limb[:], carry = whole & LOW, whole >> HALF
    return np.asarray(carry != 0)
