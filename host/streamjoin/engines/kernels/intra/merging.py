"""Range partitioning, merging of sorted runs and merge joins, for the sort-merge joins.

A tuple is one uint64: key in the upper half, row in the lower, so that sorting the numbers sorts by
key, then row.
"""

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.intra.bitonic import (
    INDEX,
    LANES,
    LEFT,
    LEFT_END,
    RIGHT,
    RIGHT_END,
    STATE_WORDS,
    merge_vectors,
)
from streamjoin.engines.kernels.jit import inlined, kernel

Codes = NDArray[np.uint32]
Tuples = NDArray[np.uint64]
Int64s = NDArray[np.int64]

U32, U64 = np.uint32, np.uint64
ROW_MASK = U64(0xFFFFFFFF)
LAST = U64(0xFFFFFFFFFFFFFFFF)

TREE_TUPLES = 1 << 12
"""Maximum heads of runs that are merged together: two buffers of 32 KiB."""

GUIDE_BITS = 12
"""log2 of the maximum steps into which the keys are cut; for each step the guide names the splitter
at which the search for a key's range begins."""


@kernel
def make_guide(splitters: Codes, lowest: np.uint32, shift: np.uint32, guide: Int64s) -> None:
    """Write for each step of ``2 ** shift`` keys from ``lowest`` up its first possible range.

    Range ``i`` holds the keys from ``splitters[i - 1]`` to below ``splitters[i]``.
    """
    at = 0
    for step in range(len(guide)):
        first = U64(lowest) + (U64(step) << U64(shift))
        while at < len(splitters) and U64(splitters[at]) <= first:
            at += 1
        guide[step] = at


@inlined
def _range_of(
    key: np.uint32, splitters: Codes, lowest: np.uint32, shift: np.uint32, guide: Int64s
) -> np.uint64:
    at = U64(guide[U64((key - lowest) >> shift)])
    while at < U64(len(splitters)) and splitters[at] <= key:
        at += U64(1)
    return at


@kernel
def range_histogram(
    keys: Codes,
    first: int,
    end: int,
    splitters: Codes,
    lowest: np.uint32,
    shift: np.uint32,
    guide: Int64s,
    counts: Int64s,
) -> None:
    """Count keys by range."""
    for row in range(U64(first), U64(end)):
        counts[_range_of(keys[row], splitters, lowest, shift, guide)] += 1


@kernel
def range_scatter(
    keys: Codes,
    first: int,
    end: int,
    splitters: Codes,
    lowest: np.uint32,
    shift: np.uint32,
    guide: Int64s,
    offsets: Int64s,
    out: Tuples,
) -> None:
    """Pack tuples and move them to their ranges; ``offsets`` is advanced."""
    for row in range(U64(first), U64(end)):
        key = keys[row]
        at = _range_of(key, splitters, lowest, shift, guide)
        out[U64(offsets[at])] = U64(key) << U64(32) | row
        offsets[at] += 1


@inlined
def _merge_rest(
    runs: Tuples, left: int, left_end: int, right: int, right_end: int, out: Tuples, index: int
) -> None:
    while left < left_end and right < right_end:
        a, b = runs[left], runs[right]
        take = a <= b
        out[index] = a if take else b
        left += U64(take)
        right += U64(not take)
        index += U64(1)
    while left < left_end:
        out[index] = runs[left]
        left += U64(1)
        index += U64(1)
    while right < right_end:
        out[index] = runs[right]
        right += U64(1)
        index += U64(1)


@kernel
def _merge_kept(runs: Tuples, states: Int64s, kept: Tuples, number: int, out: Tuples) -> None:
    """Merge what is kept of a merge by vectors with what is left of its two runs."""
    state, held = number * STATE_WORDS, U64(number * LANES)
    left, left_end = U64(states[state + LEFT]), U64(states[state + LEFT_END])
    right, right_end = U64(states[state + RIGHT]), U64(states[state + RIGHT_END])
    index, last = U64(states[state + INDEX]), held + U64(LANES)
    while held < last:
        lowest, from_left, from_right = kept[held], False, False
        if left < left_end and runs[left] < lowest:
            lowest, from_left = runs[left], True
        if right < right_end and runs[right] < lowest:
            lowest, from_left, from_right = runs[right], False, True
        out[index] = lowest
        index += U64(1)
        left += U64(from_left)
        right += U64(from_right)
        held += U64(not (from_left or from_right))
    _merge_rest(runs, left, left_end, right, right_end, out, index)


@kernel
def merge_pair(
    runs: Tuples, first: int, first_end: int, second: int, second_end: int, out: Tuples, at: int
) -> None:
    """Merge two sorted runs of an array to index ``at`` of ``out``.

    Both halves of the output are written in turn, for a merge waits for its last comparison: where
    the second half begins in both runs is found by bisection.
    """
    lefts, rights = first_end - first, second_end - second
    half = (lefts + rights) // 2
    low, high = max(0, half - rights), min(half, lefts)
    while low < high:  # how many of the lower half are of the first run
        taken = (low + high) // 2
        if runs[U64(first + taken)] < runs[U64(second + half - taken - 1)]:
            low = taken + 1
        else:
            high = taken
    left, right, index = U64(first), U64(second), U64(at)
    left_2, right_2, index_2 = U64(first + low), U64(second + half - low), U64(at + half)
    left_end, right_end = left_2, right_2
    last_left, last_right = U64(first_end), U64(second_end)
    shortest = min(low, half - low, lefts - low, rights - (half - low))
    if shortest >= LANES:
        states, kept = (
            np.empty(2 * STATE_WORDS, dtype=np.int64),
            np.empty(2 * LANES, dtype=np.uint64),
        )
        states[LEFT], states[LEFT_END], states[RIGHT] = left, left_end, right
        states[RIGHT_END], states[INDEX] = right_end, index
        states[STATE_WORDS + LEFT], states[STATE_WORDS + LEFT_END] = left_2, last_left
        states[STATE_WORDS + RIGHT], states[STATE_WORDS + RIGHT_END] = right_2, last_right
        states[STATE_WORDS + INDEX] = index_2
        merge_vectors(runs, out, states, kept)
        _merge_kept(runs, states, kept, 0, out)
        _merge_kept(runs, states, kept, 1, out)
        return
    while left < left_end and right < right_end and left_2 < last_left and right_2 < last_right:
        a, b, c, d = runs[left], runs[right], runs[left_2], runs[right_2]
        take, take_2 = a <= b, c <= d
        out[index] = a if take else b
        out[index_2] = c if take_2 else d
        left += U64(take)
        right += U64(not take)
        left_2 += U64(take_2)
        right_2 += U64(not take_2)
        index += U64(1)
        index_2 += U64(1)
    _merge_rest(runs, left, left_end, right, right_end, out, index)
    _merge_rest(runs, left_2, last_left, right_2, last_right, out, index_2)


def merge_in_passes(runs: Tuples, bounds: Int64s) -> Tuples:
    """Merge neighbouring sorted runs in passes that merge two each; ``runs`` is overwritten.

    Parameters
    ----------
    runs : ndarray of uint64
        The runs.
    bounds : ndarray of int64, shape (runs + 1,)
        First index of each run, and the end of the last.
    """
    spare = np.empty_like(runs) if len(bounds) > 2 else runs
    while len(bounds) > 2:
        if len(bounds) % 2 == 0:  # an odd run is merged with nothing
            bounds = np.append(bounds, bounds[-1])
        for index in range(0, len(bounds) - 1, 2):
            first, middle, end = bounds[index : index + 3].tolist()
            merge_pair(runs, first, middle, middle, end, spare, first)
        runs, spare = spare, runs
        bounds = bounds[::2]
    return runs


@kernel
def merge_many(runs: Tuples, bounds: Int64s, out: Tuples) -> None:
    """Merge neighbouring sorted runs in one pass over memory.

    The heads of all runs, up to a common bound, are merged by a tree of two-way merges whose
    buffers stay in the cache, as the multi-way merge of Balkesen et al. does; then the next ones.

    Parameters
    ----------
    runs : ndarray of uint64
        The runs.
    bounds : ndarray of int64, shape (runs + 1,)
        First index of each run, and the end of the last.
    out : ndarray of uint64
        Receives the merged runs at the same indices.
    """
    count = len(bounds) - 1
    share = max(1, TREE_TUPLES // count)
    nexts, ends = bounds[:-1].copy(), bounds[1:].copy()
    cuts = np.zeros(count // 2 + 2, dtype=np.int64)
    source = np.empty(share * count, dtype=np.uint64)
    target = np.empty(share * count, dtype=np.uint64)
    at = bounds[0]
    while at < bounds[count]:
        highest = LAST
        for run in range(count):
            if nexts[run] + share < bounds[run + 1]:
                highest = min(highest, runs[U64(nexts[run] + share - 1)])
        for run in range(count):  # no run has more than its share of heads up to the highest
            low, high = nexts[run], min(nexts[run] + share, bounds[run + 1])
            while low < high:
                middle = (low + high) // 2
                if runs[U64(middle)] <= highest:
                    low = middle + 1
                else:
                    high = middle
            ends[run] = low
        pieces = 0
        for run in range(0, count, 2):
            other = run + 1 if run + 1 < count else run
            second = nexts[other] if other > run else ends[run]
            length = ends[run] - nexts[run] + ends[other] - second
            into, index = (out, at) if count <= 2 else (source, cuts[pieces])
            merge_pair(runs, nexts[run], ends[run], second, ends[other], into, index)
            pieces += 1
            cuts[pieces] = cuts[pieces - 1] + length
        total = cuts[pieces]
        while pieces > 1:
            merged = 0
            for piece in range(0, pieces, 2):
                first, middle = cuts[piece], cuts[piece + 1]
                end = cuts[min(piece + 2, pieces)]
                into, index = (out, at) if pieces == 2 else (target, first)
                merge_pair(source, first, middle, middle, end, into, index)
                merged += 1
                cuts[merged] = end
            source, target, pieces = target, source, merged
        for run in range(count):
            nexts[run] = ends[run]
        at += total


@kernel
def merge_join(
    r: Tuples,
    s: Tuples,
    r_end: int,
    s_end: int,
    state: Int64s,
    out_r: Codes,
    out_s: Codes,
    at: int,
) -> int:
    """Join two sorted ranges in a single pass until they end or the output is full.

    Parameters
    ----------
    r, s : ndarray of uint64
        Sorted tuples.
    r_end, s_end : int
        End of each range.
    state : ndarray of int64, shape (3,)
        Where to resume: first R tuple of the current key, S tuple, R tuple to pair it with next (-1
        for the first). The S index is ``s_end`` when done.
    out_r, out_s : ndarray of uint32, same shape
        Receive the matching rows, from index ``at`` on.

    Returns
    -------
    int
        The index after the last match.
    """
    filled, room = U64(at), U64(len(out_r))
    at_r, at_s = U64(state[0]), U64(state[1])
    last_r, last_s = U64(r_end), U64(s_end)
    inside = state[2]
    while at_s < last_s and at_r < last_r:
        one, other = r[at_r], s[at_s]
        r_key, s_key = one >> U64(32), other >> U64(32)
        again = at_r + U64(1) < last_r and r[at_r + U64(1)] >> U64(32) == r_key
        if not again and filled < room:
            # A key that R has once: no branch depends on how the keys compare.
            out_r[filled], out_s[filled] = U32(one & ROW_MASK), U32(other & ROW_MASK)
            filled += U64(r_key == s_key)
            at_s += U64(s_key <= r_key)
            at_r += U64(r_key < s_key)
            inside = -1
        elif r_key < s_key:
            at_r += U64(1)
        elif s_key < r_key:
            at_s += U64(1)
        else:
            partner = at_r if inside < 0 else U64(inside)
            inside = -1
            while partner < last_r and r[partner] >> U64(32) == s_key:
                if filled == room:
                    state[0], state[1], state[2] = at_r, at_s, partner
                    return int(filled)
                out_r[filled] = U32(r[partner] & ROW_MASK)
                out_s[filled] = U32(other & ROW_MASK)
                filled += U64(1)
                partner += U64(1)
            at_s += U64(1)
    state[0], state[1], state[2] = at_r, last_s, -1
    return int(filled)


@kernel
def merge_join_across(
    r: Tuples,
    s: Tuples,
    r_cuts: Int64s,
    s_cuts: Int64s,
    state: Int64s,
    out_r: Codes,
    out_s: Codes,
    at: int,
) -> int:
    """Join two sorted streams except the pairs within one run, which were joined before.

    Parameters
    ----------
    r, s : ndarray of uint64
        Sorted tuples of all runs.
    r_cuts, s_cuts : ndarray of int64, shape (runs + 1,)
        Run ``i`` holds the rows from cut ``i`` to below cut ``i + 1``.
    state : ndarray of int64, shape (3,)
        As of :func:`merge_join`.
    out_r, out_s : ndarray of uint32, same shape
        Receive the matching rows, from index ``at`` on.

    Returns
    -------
    int
        The index after the last match.
    """
    filled, room = U64(at), U64(len(out_r))
    at_r, at_s = U64(state[0]), U64(state[1])
    last_r, last_s = U64(len(r)), U64(len(s))
    inside = state[2]
    while at_s < last_s and at_r < last_r:
        r_key, s_key = r[at_r] >> U64(32), s[at_s] >> U64(32)
        if r_key < s_key:
            at_r += U64(1)
        elif s_key < r_key:
            at_s += U64(1)
        else:
            other = at_r if inside < 0 else U64(inside)
            inside = -1
            row = s[at_s] & ROW_MASK
            run = np.searchsorted(s_cuts, np.int64(row), side="right") - 1
            met_first, met_end = U64(r_cuts[run]), U64(r_cuts[run + 1])
            while other < last_r and r[other] >> U64(32) == s_key:
                r_row = r[other] & ROW_MASK
                if r_row < met_first or r_row >= met_end:
                    if filled == room:
                        state[0], state[1], state[2] = at_r, at_s, other
                        return int(filled)
                    out_r[filled] = U32(r_row)
                    out_s[filled] = U32(row)
                    filled += U64(1)
                other += U64(1)
            at_s += U64(1)
    state[0], state[1], state[2] = at_r, last_s, -1
    return int(filled)
