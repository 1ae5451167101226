"""Inputs of any length as columns: drawn, joined and checked chunk by chunk, in flat memory.

The join is the one of :func:`streamjoin_hw.sim.testing.reference`, on arrays: every tuple is
compared with the last tuples of the other side that arrived before it. It shares no code with the
design.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from streamjoin_common.contract import (
    SIDE_R,
    SIDE_S,
    DesignParams,
    KeyType,
    Term,
    TermKind,
    ThetaError,
    TupleView,
)

CHUNK_TUPLES = 1 << 16

Pairs = npt.NDArray[np.uint64]
"""Pairs as numbers: R's payload in the upper half, S's in the lower."""


@dataclass(frozen=True)
class Chunk:
    """Tuples in arrival order.

    Parameters
    ----------
    sides : uint8 array, shape (tuples,)
    keys : uint32 array, shape (tuples, terms)
        The bits of the keys.
    payloads : uint32 array, shape (tuples,)
    times : uint32 array, shape (tuples,)
        Zeros for a design without timestamps.
    """

    sides: npt.NDArray[np.uint8]
    keys: npt.NDArray[np.uint32]
    payloads: npt.NDArray[np.uint32]
    times: npt.NDArray[np.uint32]

    def columns(self, params: DesignParams) -> list[npt.NDArray[np.uint32]]:
        """Return the fields of the tuples' beats, in the order of the layout."""
        times = [self.times] if params.timestamp_bits else []
        return [*self.keys.T, self.payloads, *times]

    def cut(self, at: int) -> tuple["Chunk", "Chunk"]:
        """Return the tuples before one, and those from it on; views of this chunk."""
        before, behind = slice(None, at), slice(at, None)
        return self._part(before), self._part(behind)

    def _part(self, rows: slice) -> "Chunk":
        return Chunk(self.sides[rows], self.keys[rows], self.payloads[rows], self.times[rows])


def draw_chunks(
    params: DesignParams,
    rng: np.random.Generator,
    tuples: int,
    domain: int,
    *,
    chunk_tuples: int = CHUNK_TUPLES,
) -> Iterator[Chunk]:
    """Draw an input: sides at random, keys uniform in a domain around zero, rows as payloads.

    With timestamps half of the tuples have the time of the one before, others up to 3 more.

    Parameters
    ----------
    params : DesignParams
        The design.
    rng : Generator
        Source of randomness.
    tuples : int
        Tuples of both sides together.
    domain : int
        Distinct keys of each term.
    chunk_tuples : int
        Tuples of a chunk.
    """
    counts = [0, 0]
    now = 0
    for first in range(0, tuples, chunk_tuples):
        sides = rng.integers(0, 2, min(chunk_tuples, tuples - first), np.uint8)
        keys = np.empty((len(sides), len(params.terms)), np.uint32)
        for index, term in enumerate(params.terms):
            numbers = rng.integers(0, domain, len(sides))
            if term.type is KeyType.FLOAT32:
                keys[:, index] = (numbers / 2 - domain / 4).astype(np.float32).view(np.uint32)
            elif term.type is KeyType.INT32:
                keys[:, index] = (numbers - domain // 2).astype(np.int32).view(np.uint32)
            else:
                keys[:, index] = numbers
        rows = np.empty(len(sides), np.uint64)
        for side in (SIDE_R, SIDE_S):
            mine = sides == side
            rows[mine] = np.arange(counts[side], counts[side] + np.count_nonzero(mine))
            counts[side] += int(np.count_nonzero(mine))
        mask = (1 << params.payload_bits) - 1
        times = np.zeros(len(sides), np.int64)
        if params.timestamp_bits:
            times = now + np.cumsum(rng.choice(np.array([0, 0, 0, 1, 2, 3]), len(sides)))
            times = np.minimum(times, (1 << params.timestamp_bits) - 2)
            now = int(times[-1])
        yield Chunk(
            sides, keys, (rows & np.uint64(mask)).astype(np.uint32), times.astype(np.uint32)
        )


def _numbers(bits: npt.NDArray[np.uint32], key_type: KeyType) -> npt.NDArray[Any]:
    """Read the bits of keys as the numbers they mean; integers with room for a band."""
    if key_type is KeyType.FLOAT32:
        return bits.view(np.float32)
    return (bits.view(np.int32) if key_type is KeyType.INT32 else bits).astype(np.int64)


class SlidingJoin:
    """The join of an input that is given in chunks.

    Parameters
    ----------
    params : DesignParams
        The design.
    windows : (int, int)
        Count windows of R and S in tuples.
    bands : dict of str to int
        Band widths by register name, as 32 bits.
    times : (int, int), optional
        Time windows of R and S.
    """

    def __init__(
        self,
        params: DesignParams,
        windows: tuple[int, int],
        bands: dict[str, int],
        times: tuple[int, int] | None = None,
    ) -> None:
        self.params = params
        self.windows = windows
        self.bands = bands
        self.times = times
        # The last tuples of each side: payloads, for each term the lower and upper bounds, times.
        self._kept: list[list[npt.NDArray[Any]]] = [self._columns(side, None) for side in (0, 1)]

    def _bounds(
        self, index: int, term: Term, side: int, bits: npt.NDArray[np.uint32]
    ) -> list[npt.NDArray[Any]]:
        if term.kind is TermKind.KEY:
            whole = bits.view(np.int32) if term.type is KeyType.INT32 else bits
            return [whole, whole]
        keys = _numbers(bits, term.type)
        if side == SIDE_R or term.kind is TermKind.EQUI:
            return [keys, keys]
        width_type = KeyType.FLOAT32 if term.type is KeyType.FLOAT32 else KeyType.INT32
        lo, hi = (
            _numbers(np.array([self.bands.get(f"band_{end}{index}", 0)], np.uint32), width_type)
            for end in ("lo", "hi")
        )
        with np.errstate(all="ignore"):
            return [keys - lo, keys + hi]

    def _columns(self, side: int, chunk: Chunk | None) -> list[npt.NDArray[Any]]:
        """Return payloads and bounds of a chunk's tuples of one side, empty ones without it."""
        terms = self.params.terms
        if chunk is None:
            nothing = np.empty(0, np.uint32)
            keys = np.empty((0, len(terms)), np.uint32)
            chunk = Chunk(np.empty(0, np.uint8), keys, nothing, nothing)
        mine = chunk.sides == side
        columns: list[npt.NDArray[Any]] = [chunk.payloads[mine]]
        for index, term in enumerate(terms):
            bits = np.ascontiguousarray(chunk.keys[mine, index])
            columns += self._bounds(index, term, side, bits)
        return [*columns, chunk.times[mine].astype(np.int64)]

    def _partners(
        self,
        side: int,
        columns: tuple[list[npt.NDArray[Any]], list[npt.NDArray[Any]]],
        ends: npt.NDArray[np.int64],
    ) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
        """Yield numbers of tuples and of partners in their windows, all that could match.

        With an equality only those of the same key, looked up in a sorted list; else all, one
        position of the window after the other.
        """
        mine, theirs = columns
        window = self.windows[1 - side]
        starts = np.maximum(ends - window, 0)
        equal = [i for i, term in enumerate(self.params.terms) if term.kind is TermKind.EQUI]
        if not equal:
            for back in range(1, window + 1):
                (at,) = np.nonzero(ends - back >= 0)
                yield at, ends[at] - back
            return
        column = 1 + 2 * equal[0]
        count = len(theirs[column])
        _, ranks = np.unique(np.concatenate([theirs[column], mine[column]]), return_inverse=True)
        # Sorted by key, then by arrival: the partners of a tuple lie side by side.
        positions = np.sort(ranks[:count] * (count + 1) + np.arange(count))
        own = ranks[count:] * (count + 1)
        first = np.searchsorted(positions, own + starts)
        counts = np.searchsorted(positions, own + ends) - first
        at = np.repeat(np.arange(len(own)), counts)
        within = np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts)
        yield at, positions[first[at] + within] % (count + 1)

    def _own_condition(
        self,
        r: tuple[list[npt.NDArray[Any]], npt.NDArray[np.int64]],
        s: tuple[list[npt.NDArray[Any]], npt.NDArray[np.int64]],
    ) -> npt.NDArray[np.bool_]:
        """Evaluate the user's own predicate on columns of Python's numbers, which never wrap.

        Raises
        ------
        ThetaError
            If it cannot be evaluated on numbers.
        """
        theta = self.params.theta
        assert theta is not None  # as the caller saw
        assert theta.function is not None  # as the design was built
        views = []
        for side, (columns, at) in (("R", r), ("S", s)):
            fields = {
                f"key{index}": columns[1 + 2 * index][at].astype(object)
                for index, term in enumerate(self.params.terms)
                if term.kind is TermKind.KEY
            }
            views.append(TupleView(side, {**fields, "payload": columns[0][at].astype(object)}))
        try:
            holds = np.broadcast_to(np.asarray(theta.function(*views)), len(r[1]))
            return holds.astype(bool)
        except ThetaError:
            raise
        except Exception as error:
            raise ThetaError(
                f"theta {theta.name} cannot be evaluated on numbers, so its results cannot be "
                f"checked: {error}"
            ) from None

    def join(self, chunk: Chunk) -> Pairs:
        """Take the next tuples and return the pairs that they make with those before them."""
        columns = [self._columns(side, chunk) for side in (SIDE_R, SIDE_S)]
        stored = [
            [np.concatenate(pair) for pair in zip(kept, new, strict=True)]
            for kept, new in zip(self._kept, columns, strict=True)
        ]
        pairs = []
        for side in (SIDE_R, SIDE_S):
            mine, theirs = columns[side], stored[1 - side]
            kept = len(self._kept[1 - side][0])
            arrived = np.cumsum(chunk.sides == 1 - side)[chunk.sides == side]
            # Where the other side's window ends, exclusive, when each of these tuples arrives.
            ends = kept + arrived
            for at, partner in self._partners(side, (mine, theirs), ends):
                hit = np.ones(len(at), bool)
                for index, term in enumerate(self.params.terms):
                    if term.kind is TermKind.KEY:
                        continue
                    low, high = 1 + 2 * index, 2 + 2 * index
                    other = theirs[low][partner]
                    if side == SIDE_R:
                        hit &= (other <= mine[low][at]) & (mine[low][at] <= theirs[high][partner])
                    else:
                        hit &= (mine[low][at] <= other) & (other <= mine[high][at])
                if self.times is not None:
                    hit &= mine[-1][at] < theirs[-1][partner] + self.times[1 - side]
                if self.params.theta is not None:
                    both = [(mine, at[hit]), (theirs, partner[hit])]
                    r_tuples, s_tuples = both if side == SIDE_R else reversed(both)
                    hit[hit] = self._own_condition(r_tuples, s_tuples)
                payloads = [mine[0][at[hit]], theirs[0][partner[hit]]]
                r, s = payloads if side == SIDE_R else reversed(payloads)
                pairs.append(r.astype(np.uint64) << np.uint64(32) | s)
        for side, window in enumerate(self.windows):
            self._kept[side] = [column[-window:] for column in stored[side]]
        return np.concatenate([np.empty(0, np.uint64), *pairs])


class Owed:
    """What a design still owes: pairs expected and not yet received.

    Attributes
    ----------
    missing, surplus : uint64 arrays
        Pairs not yet received, and pairs received that were not, or no longer, owed.
    """

    def __init__(self) -> None:
        self.missing: Pairs = np.empty(0, np.uint64)
        self.surplus: Pairs = np.empty(0, np.uint64)

    def update(self, expected: Pairs, received: Pairs) -> None:
        """Add what is expected and take off what was received, each as often as it occurs."""
        pairs = np.concatenate([self.missing, expected, received])
        distinct, inverse = np.unique(pairs, return_inverse=True)
        weights = np.ones(len(pairs), np.int64)
        weights[len(pairs) - len(received) :] = -1
        balance = np.zeros(len(distinct), np.int64)
        np.add.at(balance, inverse, weights)
        self.missing = np.repeat(distinct, np.maximum(balance, 0))
        wrong = np.repeat(distinct, np.maximum(-balance, 0))
        self.surplus = np.concatenate([self.surplus, wrong])

    def difference(self) -> str:
        """Say in one sentence what is missing or surplus; empty if nothing is."""
        if not len(self.missing) and not len(self.surplus):
            return ""
        first = [
            f"{name} {(int(pairs.min()) >> 32, int(pairs.min()) & 0xFFFFFFFF)}"
            for name, pairs in (("missing", self.missing), ("surplus", self.surplus))
            if len(pairs)
        ]
        counts = f"{len(self.missing)} pairs missing, {len(self.surplus)} surplus"
        return f"{counts}: first {', '.join(first)}"
