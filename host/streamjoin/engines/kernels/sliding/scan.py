"""Scans of arriving tuples over ranges of stored ones, on codes as offsets.

A piece of the arrivals is scanned at once: every block of the stored tuples is loaded into the
cache once and compared with the whole piece, :data:`~.vectors.PROBES` tuples in a pass. This first
pass only notes the blocks in which an arrival may have a match: it tests two terms and ignores the
exact bounds of the arrival's range. A second pass tests the noted blocks exactly and writes the
results, arrival by arrival, ascending within. Where a scan is the method of choice, few blocks hold
a match.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.encode import OffsetCodes
from streamjoin.engines.kernels import vectors
from streamjoin.engines.kernels.jit import inlined, kernel
from streamjoin.tuples import Int64s

Codes = NDArray[np.uint32]

U32, U64 = np.uint32, np.uint64
BLOCK_TUPLES = 512
PIECE_ARRIVALS = 64

ALL_ONES = U64(0xFFFFFFFFFFFFFFFF)
_BLOCK = U64(BLOCK_TUPLES)
_LANES, _PROBES = U64(vectors.LANES), U64(vectors.PROBES)
_s_1, _s_2 = vectors.s_met_by_r_1, vectors.s_met_by_r_2
_r_1, _r_2 = vectors.r_met_by_s_1, vectors.r_met_by_s_2

BEGIN, END, ARRIVAL, HIT, SCALAR = range(5)
"""Indices into a scan's state: the piece's arrivals, the one being written, its next block; and
whether the first pass is left out, so that every tuple is tested without vector instructions."""


class Arrivals(NamedTuple):
    """Arriving tuples: side, row, and the range of opposite slots that each meets."""

    is_s: NDArray[np.bool_]
    rows: Int64s
    firsts: Int64s
    ends: Int64s


class Work(NamedTuple):
    """State of a scan between calls: a piece's probes side by side, and the noted blocks."""

    keys: Codes
    lo: Codes
    width: Codes
    probe_arrivals: NDArray[np.int64]
    blocks: Codes
    noted: NDArray[np.int64]
    state: NDArray[np.int64]


def work_for(terms: int, longest: int) -> Work:
    """Allocate the state for scans of ``terms`` terms over ranges of at most ``longest`` tuples."""
    keys, lo, width = np.zeros((3, terms, PIECE_ARRIVALS), dtype=np.uint32)
    return Work(
        keys,
        lo,
        width,
        np.zeros(PIECE_ARRIVALS, dtype=np.int64),
        np.empty((PIECE_ARRIVALS, longest // BLOCK_TUPLES + 2), dtype=np.uint32),
        np.zeros(PIECE_ARRIVALS, dtype=np.int64),
        np.zeros(5, dtype=np.int64),
    )


# Inlined helpers take arrays, not the tuples that hold them: taking an array out of a tuple counts
# a reference, which costs more than the loop's own work.


@inlined
def _inside(code: np.uint32, lo: np.uint32, width: np.uint32) -> np.uint64:
    """Return 1 if a term holds, else 0."""
    return U64(U32(code - lo) <= width)


@inlined
def _near(first: np.int64, end: np.int64, block: np.uint64, block_end: np.uint64) -> np.bool_:
    """Whether a range overlaps a block."""
    return (U64(first) < block_end) & (U64(end) > block)


@inlined
def _gather(
    of_s: bool,
    row: np.uint64,
    a_r: Codes,
    a_lo: Codes,
    a_width: Codes,
    keys: Codes,
    lo: Codes,
    width: Codes,
    probe: np.uint64,
) -> None:
    """Copy an arriving tuple's codes beside those of the other probes."""
    for term in range(U64(a_r.shape[0])):
        if of_s:
            lo[term, probe] = a_lo[term, row]
            width[term, probe] = a_width[term, row]
        else:
            keys[term, probe] = a_r[term, row]


@inlined
def _pick(
    of_s: bool,
    row: np.uint64,
    first: np.uint64,
    end: np.uint64,
    a_r: Codes,
    a_lo: Codes,
    a_width: Codes,
    r: Codes,
    s_lo: Codes,
    s_width: Codes,
    slots: Codes,
    start: np.uint64,
) -> np.uint64:
    """Write the slots of a block that join with a tuple; return the index after the last.

    Every slot is written and kept if it matches: no branch to mispredict. The first term selects
    from the block, each other term from the slots that are left.
    """
    kept = start
    if of_s:
        lo_0, width_0 = a_lo[U64(0), row], a_width[U64(0), row]
        for slot in range(first, end):
            slots[kept] = U32(slot)
            kept += _inside(r[U64(0), slot], lo_0, width_0)
    else:
        code_0 = a_r[U64(0), row]
        for slot in range(first, end):
            slots[kept] = U32(slot)
            kept += _inside(code_0, s_lo[U64(0), slot], s_width[U64(0), slot])
    for term in range(U64(1), U64(a_r.shape[0])):
        candidates, kept = kept, start
        for candidate in range(start, candidates):
            slot = U64(slots[candidate])
            slots[kept] = U32(slot)
            if of_s:
                kept += _inside(r[term, slot], a_lo[term, row], a_width[term, row])
            else:
                kept += _inside(a_r[term, row], s_lo[term, slot], s_width[term, slot])
    return kept


@kernel
def _note(
    arriving: OffsetCodes, stored: OffsetCodes, arrivals: Arrivals, of_s: bool, work: Work
) -> None:
    """Note for each of the piece's tuples of one side the blocks that may hold a match."""
    is_s, rows, firsts, ends = arrivals.is_s, arrivals.rows, arrivals.firsts, arrivals.ends
    r, s_lo, s_width = stored.r, stored.s_lo, stored.s_width
    a_r, a_lo, a_width = arriving.r, arriving.s_lo, arriving.s_width
    keys, lo, width = work.keys, work.lo, work.width
    probe_arrivals, blocks, noted = work.probe_arrivals, work.blocks, work.noted
    begin, end = U64(work.state[BEGIN]), U64(work.state[END])
    terms = U64(a_r.shape[0])
    count, block, last = U64(0), ALL_ONES, U64(0)
    for arrival in range(begin, end):
        if is_s[arrival] == of_s and firsts[arrival] < ends[arrival]:
            row = U64(rows[arrival])
            _gather(of_s, row, a_r, a_lo, a_width, keys, lo, width, count)
            probe_arrivals[count] = arrival
            count += U64(1)
            block = min(block, U64(firsts[arrival]))
            last = max(last, U64(ends[arrival]))
    while block < last:
        block_end = min(block + _BLOCK, last)
        span = (block_end - block + _LANES - U64(1)) // _LANES
        for probe in range(U64(0), count, _PROBES):
            group_end = min(probe + _PROBES, count)
            near = False
            for member in range(probe, group_end):
                arrival = U64(probe_arrivals[member])
                near |= _near(firsts[arrival], ends[arrival], block, block_end)
            if not near:
                continue
            # Probes after the last are old ones: their matches are not noted.
            if of_s and terms == U64(1):
                met = _r_1(r, s_lo, s_width, block, span, keys, lo, width, probe)
            elif of_s:
                met = _r_2(r, s_lo, s_width, block, span, keys, lo, width, probe)
            elif terms == U64(1):
                met = _s_1(r, s_lo, s_width, block, span, keys, lo, width, probe)
            else:
                met = _s_2(r, s_lo, s_width, block, span, keys, lo, width, probe)
            for member in range(probe, group_end):
                arrival = U64(probe_arrivals[member])
                near = _near(firsts[arrival], ends[arrival], block, block_end)
                if near and ((met >> U32(member - probe)) & U32(1)) != U32(0):
                    number = arrival - begin
                    blocks[number, U64(noted[number])] = U32(block)
                    noted[number] += 1
        block += _BLOCK


@kernel
def _note_all(arrivals: Arrivals, work: Work) -> None:
    """Note for each of the piece's tuples every block of its range."""
    blocks, noted, state = work.blocks, work.noted, work.state
    for arrival in range(U64(state[BEGIN]), U64(state[END])):
        number = arrival - U64(state[BEGIN])
        block = U64(arrivals.firsts[arrival])
        while block < U64(arrivals.ends[arrival]):
            blocks[number, U64(noted[number])] = U32(block)
            noted[number] += 1
            block += _BLOCK


@kernel
def passes(codes: Codes, probes: NDArray[np.uint32], two_terms: bool, times: int) -> int:
    """Compare one group of probes with the same tuples ``times`` times, to time the bare test.

    Parameters
    ----------
    codes : ndarray of uint32, shape (2, tuples)
        Of R, by term.
    probes : ndarray of uint32, shape (3, 2, probes)
        Keys, lower ends and widths by term.
    """
    span, met = U64(codes.shape[1]) // _LANES, U64(0)
    keys, lo, width = probes[0], probes[1], probes[2]
    for turn in range(U64(times)):
        lo[0, 0] = U32(turn)  # passes differ, or the compiler would merge them into one
        if two_terms:
            met += U64(_r_2(codes, codes, codes, U64(0), span, keys, lo, width, U64(0)))
        else:
            met += U64(_r_1(codes, codes, codes, U64(0), span, keys, lo, width, U64(0)))
    return int(met)


@kernel
def scan(
    arriving: OffsetCodes,
    stored: OffsetCodes,
    rows_of: tuple[int, int, int],
    arrivals: Arrivals,
    work: Work,
    out: Codes,
    max_pieces: int,
) -> int:
    """Join arriving tuples, in order, with their ranges of slots; resumable.

    Parameters
    ----------
    arriving : OffsetCodes
        Codes of whole streams, by row.
    stored : OffsetCodes
        Codes of the stored tuples, by slot; :data:`~.vectors.LANES` more must be readable.
    rows_of : tuple of int
        Stride, offset of R, offset of S: the row of a slot is ``slot * stride + offset``.
    arrivals : Arrivals
        The arriving tuples.
    work : Work
        From :func:`work_for`; its state is zero at first, and is set to zero for other arrivals,
        but for ``state[SCALAR]``.
        ``state[ARRIVAL]`` is ``len(rows)`` when all is done.
    out : ndarray of uint32, shape (3, room)
        Receives each result's arrival, row of R, row of S: by arrival, ascending within.
    max_pieces : int
        Maximum pieces of a call: a kernel cannot be interrupted.

    Returns
    -------
    int
        Results written. It returns when all is done, after ``max_pieces`` pieces, or when there is
        room for fewer than :data:`BLOCK_TUPLES` more results.
    """
    is_s, rows, firsts, ends = arrivals.is_s, arrivals.rows, arrivals.firsts, arrivals.ends
    r, s_lo, s_width = stored.r, stored.s_lo, stored.s_width
    a_r, a_lo, a_width = arriving.r, arriving.s_lo, arriving.s_width
    blocks, noted, state = work.blocks, work.noted, work.state
    count = len(rows)
    room, kept, pieces = U64(out.shape[1]), U64(0), 0
    slots = out[0]
    stride, r_offset, s_offset = U64(rows_of[0]), U64(rows_of[1]), U64(rows_of[2])
    while True:
        while state[ARRIVAL] < state[END]:
            arrival = U64(state[ARRIVAL])
            of_s, row = is_s[arrival], U64(rows[arrival])
            number = arrival - U64(state[BEGIN])
            while state[HIT] < noted[number]:
                if room - kept < _BLOCK:
                    return int(kept)
                block = U64(blocks[number, U64(state[HIT])])
                first, end = (
                    max(block, U64(firsts[arrival])),
                    min(block + _BLOCK, U64(ends[arrival])),
                )
                state[HIT] += 1
                start = kept
                kept = _pick(
                    of_s, row, first, end, a_r, a_lo, a_width, r, s_lo, s_width, slots, start
                )
                for result in range(start, kept):
                    stored_row = U64(slots[result]) * stride + (r_offset if of_s else s_offset)
                    slots[result] = U32(arrival)
                    out[U64(1), result] = U32(stored_row if of_s else row)
                    out[U64(2), result] = U32(row if of_s else stored_row)
            state[ARRIVAL] += 1
            state[HIT] = 0
        if state[END] == count or pieces == max_pieces:
            return int(kept)
        pieces += 1
        state[BEGIN] = state[END]
        state[END] = min(state[BEGIN] + PIECE_ARRIVALS, count)
        noted[:] = 0
        if state[SCALAR]:
            _note_all(arrivals, work)
        else:
            _note(arriving, stored, arrivals, False, work)
            _note(arriving, stored, arrivals, True, work)
