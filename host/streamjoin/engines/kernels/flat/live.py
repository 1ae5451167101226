"""Tuples that stay from one call to the next: codes of 64-bit words, and names of pairs.

Words are signed 64-bit integers (:mod:`~streamjoin.engines.kernels.flat.words`). A term's are a row
of ``values``, shape (terms, room), of which each call codes the rows from ``first`` to below
``end``.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.flat.checking import Terms
from streamjoin.engines.kernels.flat.cuts import CUT_WORDS, NEXT_FREE
from streamjoin.engines.kernels.flat.entries import Flat
from streamjoin.engines.kernels.flat.joining import (
    CANDIDATES,
    DONE,
    SCANNED,
    STATE_WORDS,
    join_alone,
)
from streamjoin.engines.kernels.flat.plans import EXPIRED, FIRST, ROW, Keys, Times, plan
from streamjoin.engines.kernels.flat.words import HIGHEST, LOWEST
from streamjoin.engines.kernels.jit import fused, kernel, uncounted
from streamjoin.engines.kernels.prefetch import AHEAD, prefetch

Codes = NDArray[np.uint32]
Int64s = NDArray[np.int64]
Words = NDArray[np.uint64]

U32, U64 = np.uint32, np.uint64
NEVER = HIGHEST
"""Arrival time of a row that has no tuple yet."""

NOTES = 8
"""Words that :func:`join_few` notes."""


@fused
def _mix(word: np.uint64) -> np.uint64:
    """Mix the bits of a word: the finaliser of SplitMix64."""
    word += U64(0x9E3779B97F4A7C15)
    word = (word ^ (word >> U64(30))) * U64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> U64(27))) * U64(0x94D049BB133111EB)
    return word ^ (word >> U64(31))


@kernel
def code_equal(
    values: Int64s,
    terms: Int64s,
    first: int,
    end: int,
    mixed: bool,
    keys: Codes,
    lows: Codes,
    highs: Codes,
) -> tuple[int, int]:
    """Code words of equalities: by their low 32 bits, or by a hash of all these terms' words.

    Returns
    -------
    lowest, highest : int
        Range of the first of these terms' words.
    """
    lowest, highest = HIGHEST, LOWEST
    for row in range(first, end):
        value = values[terms[0], row]
        lowest, highest = min(lowest, value), max(highest, value)
        code = U32(U64(value) & U64(0xFFFFFFFF))
        if mixed:
            word = U64(0)
            for term in terms:
                word = _mix(word ^ U64(values[term, row]))
            code = U32(word & U64(0xFFFFFFFF))
        keys[row] = lows[row] = highs[row] = code
    return lowest, highest


@fused
def range_of(values: Int64s, term: int, first: int, end: int) -> tuple[int, int]:
    """Return the lowest and the highest word of a term; of no rows the lowest is above."""
    lowest, highest = HIGHEST, LOWEST
    for row in range(first, end):
        value = values[term, row]
        lowest, highest = min(lowest, value), max(highest, value)
    return lowest, highest


@kernel
def find_range(values: Int64s, term: int, first: int, end: int) -> tuple[int, int]:
    """Return the lowest and the highest word of a term, as :func:`range_of`."""
    return range_of(values, term, first, end)


class Band(NamedTuple):
    """Codes of a band's words: distances from ``base``, ``shift`` bits shorter.

    Words from ``base`` to ``top`` have codes.
    """

    term: int
    base: int
    top: int
    shift: int


@fused
def coded(
    values: Int64s, lows64: Int64s, highs64: Int64s, band: Band, row: np.uint64
) -> tuple[np.uint32, np.uint32, np.uint32]:
    """Return the code of a word, and the range of those that it meets, ``low > high`` if none."""
    base, top, shift = band.base, band.top, U64(band.shift)
    low, high = lows64[band.term, row], highs64[band.term, row]
    key = U32((U64(values[band.term, row]) - U64(base)) >> shift)
    if low > high or high < base or low > top:
        return key, U32(1), U32(0)
    lowest = U32((U64(max(low, base)) - U64(base)) >> shift)
    return key, lowest, U32((U64(min(high, top)) - U64(base)) >> shift)


@kernel
def code_band(
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
    """Code words of a band in their order, and what they meet.

    ``given_band`` are the fields of a :class:`Band`, without its name as a call is shorter.

    Returns
    -------
    lowest, highest : int
        Range of the words; if one has no code, none is coded.
    """
    band = Band(*given_band)
    lowest, highest = range_of(values, band.term, first, end)
    if lowest < band.base or highest > band.top:
        return lowest, highest
    for row in range(U64(first), U64(end)):
        keys[row], lows[row], highs[row] = coded(values, lows64, highs64, band, row)
    return lowest, highest


@uncounted
def join_few(
    given_times: tuple[Any, ...],
    given_keys: tuple[Any, ...],
    given_flat: tuple[Any, ...],
    given_terms: tuple[Any, ...],
    checked: bool,
    inner: bool,
    begin: tuple[int, int],
    arrivals: int,
    planned: Codes,
    state: Words,
    out: Codes,
    first: int,
    notes: Int64s,
) -> None:
    """Plan and join a batch in one call, as :func:`~.joining.join_alone`.

    Parameters
    ----------
    given_times, given_keys, given_flat, given_terms : tuple
        The fields of the named tuples: a call with plain tuples takes a tenth of the time, as
        Numba knows their types without Python code.
    notes : ndarray of int64, shape (NOTES,)
        Receives the pairs, the arrivals done, the first live rows of R and of S after the last
        arrival, the blocks scanned and the candidates, and each index's next free block.
    """
    times, keys = Times(*given_times), Keys(*given_keys)
    flat, terms = Flat(*given_flat), Terms(*given_terms)
    for word in range(U64(STATE_WORDS)):
        state[word] = U64(0)
    plan(times, keys, flat.tables, flat.cuts, begin, 0, arrivals, planned)
    pairs = join_alone(
        flat,
        (keys.r_keys, keys.s_keys),
        terms,
        checked,
        keys.order_bits,
        inner,
        planned,
        arrivals,
        state,
        out,
        first,
    )
    notes[0], notes[1] = pairs, np.int64(state[U64(DONE)])
    last, r_rows = U64(arrivals - 1), np.int64(len(keys.r_keys))
    first_live = np.int64(planned[last, U64(FIRST)]) - 1
    expired = np.int64(planned[last, U64(EXPIRED)]) - 1
    of_s = np.int64(planned[last, U64(ROW)]) > r_rows
    notes[2] = first_live if of_s else expired
    notes[3] = (expired if of_s else first_live) - r_rows
    notes[4], notes[5] = np.int64(state[U64(SCANNED)]), np.int64(state[U64(CANDIDATES)])
    notes[6] = np.int64(flat.cuts[U64(NEXT_FREE)])
    notes[7] = np.int64(flat.cuts[U64(CUT_WORDS + NEXT_FREE)])


@kernel
def name_pairs(
    r_rows: Codes,
    s_rows: Codes,
    r_ts: Int64s,
    s_ts: Int64s,
    r_numbers: Int64s,
    s_numbers: Int64s,
    rows: Codes,
    named: Int64s,
) -> int:
    """Copy pairs, and look up what results say of them.

    Parameters
    ----------
    r_rows, s_rows : ndarray of uint32, shape (pairs,)
        Rows of the buffers.
    r_ts, s_ts, r_numbers, s_numbers : ndarray of int64
        Arrival times and numbers of the buffers' rows.
    rows : ndarray of uint32, shape (2, pairs)
        Receives the rows.
    named : ndarray of int64, shape (3, pairs)
        Receives numbers of R's and S's tuples, and the later arrival times.

    Returns
    -------
    int
        The pairs' digest (:attr:`streamjoin.tuples.Pairs.digest`), as a signed integer.
    """
    total, pairs = U64(0), U64(len(r_rows))
    for pair in range(pairs):
        ahead = pair + U64(AHEAD)
        if ahead < pairs:
            r, s = U64(r_rows[ahead]), U64(s_rows[ahead])
            prefetch(r_ts, r)
            prefetch(r_numbers, r)
            prefetch(s_ts, s)
            prefetch(s_numbers, s)
        r, s = U64(r_rows[pair]), U64(s_rows[pair])
        rows[U64(0), pair], rows[U64(1), pair] = U32(r), U32(s)
        r_number, s_number = r_numbers[r], s_numbers[s]
        named[U64(0), pair], named[U64(1), pair] = r_number, s_number
        named[U64(2), pair] = max(r_ts[r], s_ts[s])
        total += _mix(_mix(U64(r_number) + U64(1)) ^ U64(s_number))
    return int(np.int64(total))
