"""The predicate as a flat index takes it: keys, ranges to look up, and what is left to check."""

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.codes import Codes, ends
from streamjoin.engines.crew import Crew
from streamjoin.engines.encode import IntervalCodes, encode_intervals, encode_keys
from streamjoin.engines.job import Job
from streamjoin.engines.sliding.ibwj import index_columns, most_selective
from streamjoin_common.language.predicates import Equi

if TYPE_CHECKING:
    from streamjoin.engines.kernels.flat.joining import Terms
    from streamjoin.engines.kernels.flat.plans import Keys

TOP = (1 << 32) - 1
WIDE = 1 << 62
"""Limit of sums of 64-bit integers that are computed without a check."""


class Coded(Protocol):
    """The predicate's codes, as an index takes them."""

    keys: "Keys"
    terms: "Terms"

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
    """The predicate's codes, as the index and the check of candidates take them."""

    def __init__(self, job: Job, crew: Crew) -> None:
        from streamjoin.engines.kernels.flat.joining import Terms

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
        term = most_selective(codes)
        if isinstance(job.predicate.terms[term], Equi):
            keys = _equal(codes.r[term], codes.s_lo[term])
            self.keys = keys._replace(s_highs=codes.s_hi[term])
            return
        self.hashed = False
        self._take_band(codes, term)

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

    def _take_band(self, codes: IntervalCodes, term: int) -> None:
        """Index S's intervals by one end if they are equally long, else by the lower end."""
        from streamjoin.engines.kernels.flat.bands import shifted_ends
        from streamjoin.engines.kernels.flat.plans import Keys

        r, s_lo, s_hi = codes.r[term], codes.s_lo[term], codes.s_hi[term]
        s_keys = np.empty_like(s_lo)
        reach = int(shifted_ends(r, s_lo, s_hi, s_keys))
        if reach >= 0:
            self.keys = Keys(r, r, r, s_keys, s_lo, s_hi, reach)
            return
        columns = index_columns(IntervalCodes(r[None], s_lo[None], s_hi[None]))
        self.checked |= columns.checked
        self.keys = Keys(r, columns.lows[: len(r)], r, s_lo, s_lo, s_hi, 0)

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
