"""Words of a live join's values: signed 64-bit integers, and the intervals of those they meet."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.jit import inlined, kernel

Int64s = NDArray[np.int64]
Reals = NDArray[Any]

LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1
BELOW, ABOVE = -1, 1
PART = 1 << 62
"""Maximum that is added to a word at once."""


@inlined
def _shifted(word: int, parts: Int64s) -> tuple[int, int]:
    """Add integers of one sign; say whether the sum is beyond 64 bits."""
    for part in range(len(parts)):
        distance = parts[part]
        if distance > 0 and word > HIGHEST - distance:
            return HIGHEST, ABOVE
        if distance < 0 and word < LOWEST - distance:
            return LOWEST, BELOW
        word += distance
    return word, 0


@kernel
def shift_words(
    words: Int64s, first: int, end: int, down: Int64s, up: Int64s, lows: Int64s, highs: Int64s
) -> None:
    """Compute the intervals that words meet: from ``down`` to ``up`` away.

    Parameters
    ----------
    words : ndarray of int64
    first, end : int
        Rows to compute.
    down, up : ndarray of int64
        Distances of the lower and of the upper end, as parts of one sign.
    lows, highs : ndarray of int64
        Receive the ends; an interval beyond 64 bits is cut, and is empty (``low > high``) if all
        of it is beyond.
    """
    is_short = len(down) == 1 and len(up) == 1
    for row in range(first, end):
        word = words[row]
        if is_short and -PART < word < PART:  # as the parts are: no sum is beyond
            lows[row], highs[row] = word + down[0], word + up[0]
            continue
        low, low_beyond = _shifted(words[row], down)
        high, high_beyond = _shifted(words[row], up)
        nothing = low_beyond == ABOVE or high_beyond == BELOW
        lows[row], highs[row] = (1, 0) if nothing else (low, high)


@kernel
def _word(value: float) -> int:
    """Return the bits of a number, in the order of the numbers; float32 is widened, exactly."""
    bits = np.float64(value + 0.0).view(np.int64)  # adding +0 turns -0 into +0
    return int(bits ^ ((bits >> 63) & HIGHEST))


@kernel
def real_words(
    values: Reals,
    of_s: bool,
    lo: Any,
    hi: Any,
    step: Any,
    least: Any,
    words: Int64s,
    lows: Int64s,
    highs: Int64s,
    at: int,
) -> int:
    """Compute the words of floating-point numbers, and the intervals that they meet in a band.

    A word has the order of the numbers, and 0 stands for -0.0 too. A tuple of S meets exactly the
    numbers from ``value - lo`` to ``value + hi``, each bound rounded once. For one of R bounds are
    outside of what it meets.

    Parameters
    ----------
    values : ndarray of float32 or float64
    of_s : bool
        Whether they are of S.
    lo, hi : float32 or float64
        The widths, of the values' type.
    step, least : float32 or float64
        The distance from 1 to the next number, and the least positive number, of that type.
    words, lows, highs : ndarray of int64
        Receive the results from position ``at`` on; the interval of one that meets nothing is
        empty.
    at : int

    Returns
    -------
    int
        How many are NaN; their word is 0.
    """
    missing = 0
    below, above = values.dtype.type(-np.inf), values.dtype.type(np.inf)
    for row in range(len(values)):
        value = values[row]
        if np.isnan(value):
            words[at + row], lows[at + row], highs[at + row] = 0, 1, 0
            missing += 1
            continue
        words[at + row] = _word(value)
        if of_s:
            low, high = value - lo, value + hi
            nothing = np.isnan(low) or np.isnan(high)
        else:
            nothing = False
            # At least one number further, before and after the sum is rounded.
            away = abs(value) * step + least
            low, high = (value - away) - hi, (value + away) + lo
            low -= abs(low) * step + least
            high += abs(high) * step + least
            if np.isnan(low):
                low = below
            if np.isnan(high):
                high = above
        lows[at + row] = 1 if nothing else _word(low)
        highs[at + row] = 0 if nothing else _word(high)
    return missing
