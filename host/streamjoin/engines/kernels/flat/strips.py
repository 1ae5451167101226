"""Codes by two parts of a predicate: strips of one part, in each the order of a band.

The high bits of a code are its strip: by a hash of what must be equal, or by a band's values, each
strip with as many. The low bits order the band's values within a strip. So what an arrival meets
of one strip is one range of codes.
"""

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.flat.cuts import (
    CUT_WORDS,
    GOLDEN,
    Map,
    Words,
    block_at,
    map_of,
)
from streamjoin.engines.kernels.flat.live import Band, coded, range_of
from streamjoin.engines.kernels.jit import fused, kernel, uncounted

Codes = NDArray[np.uint32]
Int64s = NDArray[np.int64]

U32, U64 = np.uint32, np.uint64


@fused
def _strip_of(tables: Words, by: Map, code: np.uint32, strip_bits: np.uint64) -> np.uint64:
    """Return the strip of a code."""
    if by.hashed:
        return ((U64(code) * GOLDEN) & U64(0xFFFFFFFF)) >> (U64(32) - strip_bits)
    return block_at(tables, by, U64(code))


@fused
def _place(
    tables: Words,
    by: Map,
    within: Map,
    bits: np.uint64,
    row: np.uint64,
    keys: Codes,
    lows: Codes,
    highs: Codes,
    order: tuple[np.uint32, np.uint32, np.uint32],
) -> None:
    """Replace the codes of a row's strips by those of strips and the order within."""
    strip_bits, (order_key, order_low, order_high) = U64(32) - bits, order
    strip = _strip_of(tables, by, keys[row], strip_bits)
    at = block_at(tables, within, U64(order_key))
    empty = lows[row] > highs[row] or order_low > order_high
    low, high = strip, strip
    if not by.hashed:
        low = _strip_of(tables, by, lows[row], strip_bits)
        high = _strip_of(tables, by, highs[row], strip_bits)
    keys[row] = U32((strip << bits) | at)
    if empty:
        lows[row], highs[row] = U32(1), U32(0)
    else:
        lows[row] = U32((low << bits) | block_at(tables, within, U64(order_low)))
        highs[row] = U32((high << bits) | block_at(tables, within, U64(order_high)))


@uncounted
def code_strips(
    cuts: Words,
    tables: Words,
    order_bits: int,
    first: int,
    end: int,
    keys: Codes,
    lows: Codes,
    highs: Codes,
    order_keys: Codes,
    order_lows: Codes,
    order_highs: Codes,
) -> None:
    """Replace codes of strips by codes of strips and the order within.

    Parameters
    ----------
    cuts, tables : ndarray of uint64
        The map from codes to strips, of which ``HASHED`` says that it is a hash, and the map from
        codes to positions in a strip.
    order_bits : int
        Bits of a position.
    first, end : int
        Rows to code.
    keys, lows, highs : ndarray of uint32
        Codes of the strips, and ranges of opposite ones, empty with ``low > high``. They receive
        the result.
    order_keys, order_lows, order_highs : ndarray of uint32
        Codes of the band within strips, and ranges of opposite ones.
    """
    by, within = map_of(cuts, U64(0)), map_of(cuts, U64(CUT_WORDS))
    for row in range(U64(first), U64(end)):
        placed = (order_keys[row], order_lows[row], order_highs[row])
        _place(tables, by, within, U64(order_bits), row, keys, lows, highs, placed)


@uncounted
def code_words_in_strips(
    cuts: Words,
    tables: Words,
    order_bits: int,
    values: Int64s,
    lows64: Int64s,
    highs64: Int64s,
    given_band: tuple[int, int, int, int],
    first: int,
    end: int,
    keys: Codes,
    lows: Codes,
    highs: Codes,
) -> tuple[int, int]:
    """As :func:`code_strips`, where the order within is that of a band's words.

    ``given_band`` are the fields of a :class:`~.live.Band`, without its name as a call is shorter.

    Returns
    -------
    lowest, highest : int
        Range of the words; if one has no code, none is coded.
    """
    band = Band(*given_band)
    lowest, highest = range_of(values, band.term, first, end)
    if lowest < band.base or highest > band.top:
        return lowest, highest
    by, within = map_of(cuts, U64(0)), map_of(cuts, U64(CUT_WORDS))
    for row in range(U64(first), U64(end)):
        placed = coded(values, lows64, highs64, band, row)
        _place(tables, by, within, U64(order_bits), row, keys, lows, highs, placed)
    return lowest, highest


@kernel
def count_passed(
    r_values: Int64s, s_lows: Int64s, s_highs: Int64s, members: NDArray[np.bool_], passed: Int64s
) -> None:
    """Count the pairs of samples that satisfy some terms together, for each choice of terms.

    Parameters
    ----------
    r_values : ndarray of int64, shape (terms, r rows)
    s_lows, s_highs : ndarray of int64, shape (terms, s rows)
    members : ndarray of bool, shape (choices, terms)
        Which terms belong to a choice.
    passed : ndarray of int64, shape (choices,)
        Receives the counts.
    """
    terms, rows = r_values.shape
    met = np.empty((terms, rows), dtype=np.uint8)
    hits = np.empty(rows, dtype=np.uint8)
    passed[:] = 0
    for s_row in range(s_lows.shape[1]):
        for term in range(terms):
            low, high = s_lows[term, s_row], s_highs[term, s_row]
            for row in range(rows):
                value = r_values[term, row]
                met[term, row] = np.uint8(low <= value) & np.uint8(value <= high)
        for choice in range(len(passed)):
            hits[:] = np.uint8(1)
            for term in range(terms):
                if members[choice, term]:
                    for row in range(rows):
                        hits[row] &= met[term, row]
            count = 0
            for row in range(rows):
                count += np.int64(hits[row])
            passed[choice] += count
