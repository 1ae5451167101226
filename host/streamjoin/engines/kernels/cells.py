"""Joins of points with boxes: the points in cells by one coordinate, sorted by another.

Every condition of a band join, its window included, says that an integer of an R row lies in an
interval of the S row. The two narrowest conditions select the candidates: R rows are grouped into
cells of equal size along the first coordinate and sorted by the second within a cell; the other
conditions are checked. With cells as wide as the first interval, about three candidates are
compared for each pair that both conditions select.
"""

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.jit import inlined, kernel

Codes = NDArray[np.uint32]
Tuples = NDArray[np.uint64]
Int64s = NDArray[np.int64]

U32, U64 = np.uint32, np.uint64
ROW_MASK = U64(0xFFFFFFFF)


@inlined
def _below(values: Tuples, first: np.uint64, end: np.uint64, value: np.uint64) -> np.uint64:
    """Return the first index of a sorted range whose value is not below ``value``."""
    while first < end:
        middle = (first + end) >> U64(1)
        if values[middle] < value:
            first = middle + U64(1)
        else:
            end = middle
    return first


@kernel
def ranks(points: Tuples, lows: Codes, highs: Codes, firsts: Int64s, ends: Int64s) -> None:
    """Find the range of sorted points that lies in each interval.

    Parameters
    ----------
    points : ndarray of uint64, shape (points,)
        ``coordinate << 32 | row``, ascending.
    lows, highs : ndarray of uint32, shape (intervals,)
        Both ends included; empty if ``low > high``.
    firsts, ends : ndarray of int64, shape (intervals,)
        Receive the range of indices, ``first`` to below ``end``.
    """
    count = U64(len(points))
    for interval in range(U64(len(lows))):
        low, high = U64(lows[interval]), U64(highs[interval])
        first = _below(points, U64(0), count, low << U64(32))
        end = first
        if low <= high:
            end = _below(points, first, count, (high << U64(32) | ROW_MASK) + U64(1))
            if high == ROW_MASK:
                end = count
        firsts[interval], ends[interval] = first, end


@kernel
def fill(points: Tuples, cell_rows: int, positions: Codes, second: Tuples, cells: Tuples) -> None:
    """Put points that are sorted by the second coordinate into the cells of the first.

    Parameters
    ----------
    points : ndarray of uint64, shape (rows,)
        ``first coordinate << 32 | row``, ascending.
    cell_rows : int
        Rows of each cell but the last.
    positions : ndarray of uint32, shape (rows,)
        Receives each row's index in ``points``.
    second : ndarray of uint64, shape (rows,)
        ``second coordinate << 32 | row``, ascending.
    cells : ndarray of uint64, shape (rows,)
        Receives the points of ``second`` cell by cell, ascending within.
    """
    rows, each = U64(len(points)), U64(cell_rows)
    for position in range(rows):
        positions[points[position] & ROW_MASK] = position
    filled = np.zeros(rows // each + U64(1), dtype=np.uint32)
    for position in range(rows):
        cell = U64(positions[second[position] & ROW_MASK]) // each
        cells[cell * each + U64(filled[cell])] = second[position]
        filled[cell] += U32(1)


@kernel
def probe_cells(
    cells: Tuples,
    cell_rows: int,
    positions: Codes,
    firsts: Int64s,
    ends: Int64s,
    lows: Codes,
    highs: Codes,
    points: Codes,
    other_lows: Codes,
    other_highs: Codes,
    state: Int64s,
    out_r: Codes,
    out_s: Codes,
) -> int:
    """Find each S row's matches until the rows end or the output is full.

    Parameters
    ----------
    cells, cell_rows, positions
        As written by :func:`fill`.
    firsts, ends : ndarray of int64, shape (s rows,)
        Range of positions in the first coordinate that matches each S row.
    lows, highs : ndarray of uint32, shape (s rows,)
        Its interval of the second coordinate, both ends included.
    points : ndarray of uint32, shape (others, r rows)
        The other coordinates to check.
    other_lows, other_highs : ndarray of uint32, shape (others, s rows)
        Their intervals, both ends included.
    state : ndarray of int64, shape (2,)
        Where to resume: S row, and index into ``cells``, -1 for the row's first. The row is the
        number of S rows when all are done.
    out_r, out_s : ndarray of uint32, same shape
        Receive the pairs.

    Returns
    -------
    int
        Pairs written.
    """
    rows, each, count = U64(len(firsts)), U64(cell_rows), U64(len(cells))
    others = U64(len(points))
    matches, room = U64(0), U64(len(out_r))
    row = U64(state[0])
    going_on, resumed = state[1] >= 0, U64(max(state[1], 0))
    while row < rows:
        first, end = U64(firsts[row]), U64(ends[row])
        low, high = U64(lows[row]) << U64(32), U64(highs[row]) << U64(32) | ROW_MASK
        if first < end and low <= high:
            cell, last_cell = first // each, (end - U64(1)) // each
            if going_on:
                cell = resumed // each
            while cell <= last_cell:
                stop = min((cell + U64(1)) * each, count)
                at = resumed
                if not going_on:
                    at = _below(cells, cell * each, stop, low)
                going_on = False
                while at < stop:
                    packed = cells[at]
                    if packed > high:
                        break
                    r_row = packed & ROW_MASK
                    position = U64(positions[r_row])
                    hit = (position >= first) & (position < end)
                    for other in range(others):
                        code = points[other, r_row]
                        hit &= (other_lows[other, row] <= code) & (code <= other_highs[other, row])
                    if hit:
                        if matches == room:
                            state[0], state[1] = row, at
                            return int(matches)
                        out_r[matches] = U32(r_row)
                        out_s[matches] = U32(row)
                        matches += U64(1)
                    at += U64(1)
                cell += U64(1)
        going_on = False
        row += U64(1)
    state[0], state[1] = row, -1
    return int(matches)
