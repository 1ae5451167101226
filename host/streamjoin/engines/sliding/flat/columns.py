"""The predicate as a flat index takes it: keys, ranges to look up, and what is left to check."""

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.codes import Codes, ends
from streamjoin.engines.crew import Crew
from streamjoin.engines.encode import IntervalCodes, encode_intervals, encode_keys
from streamjoin.engines.job import Job
from streamjoin.engines.sliding.flat.ways import (
    CODE_BITS,
    HASHED,
    MAPPED_ROWS,
    SAMPLED,
    Strips,
    Way,
    sample,
    ways_of,
)
from streamjoin.engines.sliding.ibwj import index_columns
from streamjoin_common.language.predicates import Equi

if TYPE_CHECKING:
    from streamjoin.engines.kernels.flat.checking import Terms
    from streamjoin.engines.kernels.flat.plans import Keys

TOP = (1 << 32) - 1
WIDE = 1 << 62
"""Limit of sums of 64-bit integers that are computed without a check."""


class Coded(Protocol):
    """The predicate's codes, as an index takes them."""

    terms: "Terms"

    @property
    def keys(self) -> "Keys":
        """Keys and ranges of both sides."""
        ...

    @property
    def hashed(self) -> bool:
        """Whether codes have no order."""
        ...

    @property
    def checked(self) -> bool:
        """Whether candidates are checked."""
        ...

    def of(self, side: int) -> tuple[Codes, Codes, Codes]:
        """Return keys and ranges of R or S."""
        ...


class FlatColumns:
    """The predicate's codes, as the index and the check of candidates take them.

    Parameters
    ----------
    job : Job
        The join.
    crew : Crew
        Threads that code parts.
    live : float
        Tuples of a window.
    """

    def __init__(self, job: Job, crew: Crew, live: float) -> None:
        from streamjoin.engines.kernels.flat.checking import Terms

        none = np.zeros((0, 0), dtype=np.uint32)
        self.terms: Terms = Terms(none, none, none)
        self.hashed, self.checked = True, False
        if job.predicate.kind == "equi":
            self.keys = _equal(*encode_keys(job.r, job.s, job.predicate))
            return
        if self._take_integers(job, crew):
            return
        codes = encode_intervals(job.r, job.s, job.predicate)
        self.terms = Terms(codes.r, codes.s_lo, codes.s_hi)
        self.checked = len(codes.r) > 1
        equal = [at for at, term in enumerate(job.predicate.terms) if isinstance(term, Equi)]
        way, strips = _way_of(codes, equal, live, job.threads)
        self.hashed = way == Way(HASHED)
        self.keys = _hashed(codes, equal) if way.by == HASHED else self._band(codes, way.by)
        if way.order is not None:
            self.keys = _in_strips(self.keys, self._band(codes, way.order), way, strips)

    def _take_integers(self, job: Job, crew: Crew) -> bool:
        """Code a single band of integers without a check, in one pass; return whether it fits."""
        from streamjoin.engines.kernels.flat.bands import code_points, code_ranges
        from streamjoin.engines.kernels.flat.plans import Keys

        term = job.predicate.terms[0]
        r, s = np.asarray(job.r.held(term.r_column)), np.asarray(job.s.held(term.s_column))
        plain = r.dtype.kind == s.dtype.kind == "i" and job.r.missing is job.s.missing is None
        if len(job.predicate.terms) > 1 or isinstance(term, Equi) or not plain or not len(r):
            return False
        (lowest, highest), (s_lowest, s_highest) = _ends(r, crew), _ends(s, crew)
        reach, span = int(term.lo) + int(term.hi), highest - lowest
        offset = int(term.hi) - lowest
        sums = (lowest, s_lowest + offset - reach, s_highest + offset)
        if not 0 <= reach <= TOP - span or max(map(abs, (*sums, offset, reach))) > WIDE:
            return False
        r_keys = np.empty(len(r), dtype=np.uint32)
        s_keys, s_lows = (np.empty(len(s), dtype=np.uint32) for _ in range(2))
        crew.on_parts(lambda first, end: code_points(r, first, end, lowest, r_keys), len(r))
        crew.on_parts(
            lambda first, end: code_ranges(s, first, end, offset, reach, span, s_keys, s_lows),
            len(s),
        )
        self.hashed = False
        self.keys = Keys(r_keys, r_keys, r_keys, s_keys, s_lows, s_keys, reach)
        return True

    def _band(self, codes: IntervalCodes, term: int) -> "Keys":
        """Index S's intervals by one end if they are equally long, else by the lower end."""
        from streamjoin.engines.kernels.flat.bands import shifted_ends
        from streamjoin.engines.kernels.flat.plans import Keys

        r, s_lo, s_hi = codes.r[term], codes.s_lo[term], codes.s_hi[term]
        s_keys = np.empty_like(s_lo)
        reach = int(shifted_ends(r, s_lo, s_hi, s_keys))
        if reach >= 0:
            return Keys(r, r, r, s_keys, s_lo, s_hi, reach)
        columns = index_columns(IntervalCodes(r[None], s_lo[None], s_hi[None]))
        self.checked |= columns.checked
        return Keys(r, columns.lows[: len(r)], r, s_lo, s_lo, s_hi, 0)

    def of(self, side: int) -> tuple[Codes, Codes, Codes]:
        """Return keys and ranges of R or S."""
        keys = self.keys
        if side:
            return keys.s_keys, keys.s_lows, keys.s_highs
        return keys.r_keys, keys.r_lows, keys.r_highs


def _ends(column: NDArray[Any], crew: Crew) -> tuple[int, int]:
    """Return the lowest and the highest integer, by all threads."""
    found: list[tuple[int, int]] = []

    def search(first: int, end: int) -> None:
        found.append(ends(column[first:end], None))

    if len(column) < crew.threads:
        return ends(column, None)
    crew.on_parts(search, len(column))
    return min(low for low, _ in found), max(high for _, high in found)


def _equal(r: Codes, s: Codes) -> "Keys":
    from streamjoin.engines.kernels.flat.plans import Keys

    return Keys(r, r, r, s, s, s, 0)


def _way_of(codes: IntervalCodes, equal: list[int], live: float, threads: int) -> tuple[Way, int]:
    """Choose how to index by samples of both streams; return it and the strips."""
    bands = [term for term in range(len(codes.r)) if term not in equal]
    ways = ways_of(bool(equal), bands)
    if len(ways) == 1:
        return ways[0], 0
    r, s = (
        slice(None, None, max(1, -(-part.shape[1] // rows)))
        for part, rows in ((codes.r, SAMPLED), (codes.s_lo, SAMPLED // 2))
    )
    sampled = sample(
        ways,
        np.array(equal, dtype=np.int64),
        codes.r[:, r].astype(np.int64),
        (codes.s_lo[:, s].astype(np.int64), codes.s_hi[:, s].astype(np.int64)),
        live,
    )
    best, strips = sampled.best(ways)
    if threads > 1 and not best.is_shared:  # one thread must do better than all together
        other, its_strips = sampled.best([way for way in ways if way.is_shared])
        if sampled.cost(other)[0] <= threads * sampled.cost(best)[0]:
            return other, its_strips
    return best, strips


def _hashed(codes: IntervalCodes, equal: list[int]) -> "Keys":
    """Return a hash of all equalities; of S's tuples that lack a value the range is empty."""
    if len(equal) == 1:
        return _equal(codes.r[equal[0]], codes.s_lo[equal[0]])._replace(
            s_highs=codes.s_hi[equal[0]]
        )
    r, s = (_mixed([part[term] for term in equal]) for part in (codes.r, codes.s_lo))
    lows, highs, first = s.copy(), s.copy(), equal[0]
    nothing = codes.s_lo[first] > codes.s_hi[first]
    lows[nothing], highs[nothing] = 1, 0
    return _equal(r, s)._replace(s_lows=lows, s_highs=highs)


def _mixed(columns: list[Codes]) -> Codes:
    """Return a hash of the codes of each row."""
    mixed = columns[0]
    for column in columns[1:]:
        mixed = (mixed ^ (mixed >> np.uint32(15))) * np.uint32(0x9E3779B1) + column
    return mixed


def _in_strips(by: "Keys", order: "Keys", way: Way, strips: int) -> "Keys":
    """Return codes of strips, and of the order in each."""
    from streamjoin.engines.kernels.flat.plans import Keys

    maps = Strips()
    sides: list[Codes] = []
    maps.cut(strips, None if way.by == HASHED else _sampled(by), _sampled(order))
    for of_s in (False, True):
        both = [_copied(keys, of_s=of_s) for keys in (by, order)]
        maps.code(0, len(both[0][0]), *both)
        sides += both[0]
    bits = CODE_BITS if way.is_shared else maps.order_bits
    r_keys, r_lows, r_highs, s_keys, s_lows, s_highs = sides
    return Keys(r_keys, r_lows, r_highs, s_keys, s_lows, s_highs, 0, bits)


def _sampled(keys: "Keys") -> Codes:
    return np.concatenate(
        [part[:: max(1, len(part) // MAPPED_ROWS)] for part in (keys.r_keys, keys.s_keys)]
    )


def _copied(keys: "Keys", *, of_s: bool) -> tuple[Codes, Codes, Codes]:
    """Return copies of a side's keys and ranges, with the reach of R's."""
    if of_s:
        return keys.s_keys.copy(), keys.s_lows.copy(), keys.s_highs.copy()
    highs = np.minimum(keys.r_highs, np.uint32(TOP - keys.reach)) + np.uint32(keys.reach)
    return keys.r_keys.copy(), keys.r_lows.copy(), highs
