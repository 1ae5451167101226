"""Choosing an engine for a sliding window: a scan or an index, and which one.

Measured on two cores with AVX-512, one thread, equality and a two-dimensional band, 0.5 and 32
pairs a tuple, windows of 2^8 to 2^18, nanoseconds a tuple:

===========  ==================  ==================  ==================
window       equality            32 pairs a tuple    band, two terms
===========  ==================  ==================  ==================
             kang bptree pim     kang bptree pim     kang bptree pim
2^8          98   73     185     148  245    245     80   115    226
2^10         159  95     210     294  267    240     98   146    252
2^12         208  92     167     890  226    221     165  174    229
2^14         338  115    121     2725 254    188     384  238    241
2^16         896  122    109     5269 242    155     1362 790    489
2^18         3058 168    109     8375 369    266     4986 3363   2045
===========  ==================  ==================  ==================

The branches are between the rows at which the fastest engine changes; there, the choice takes up to
1.35 times the best engine's time.
"""

from dataclasses import asdict, dataclass

import numpy as np

from streamjoin.engines.arrivals import met_by_r, met_by_s
from streamjoin.engines.encode import encode_intervals
from streamjoin.engines.job import Job
from streamjoin.engines.sliding.ibwj import passed_by_term
from streamjoin_common.language.order import ORDERS

SAMPLE_TUPLES = 1 << 10
SCANNED = {1: 300, 2: 4096}
"""Comparisons of an arrival below which a scan is cheaper, by number of terms: an index covers
one."""

DENSE = 1 / 16
"""Share of pairs that the most selective term passes, from which on a scan is cheaper."""

LARGE = 12_000
"""Comparisons of an arrival from which on merge trees beat B+-trees."""

SHARED = 1 << 14
"""Comparisons of an arrival from which on several threads are faster."""


@dataclass(frozen=True)
class SlidingFeatures:
    """A workload's features under a sliding window.

    Attributes
    ----------
    r_tuples, s_tuples : int
        Tuples of the input.
    comparisons : float
        Mean tuples of the opposite window that an arrival meets.
    terms : int
        Terms of the predicate.
    passed : float
        Share of sampled pairs that the most selective term passes.
    """

    r_tuples: int
    s_tuples: int
    comparisons: float
    terms: int
    passed: float

    def to_dict(self) -> dict[str, float | int | None]:
        """Plain JSON values."""
        return asdict(self)

    def table_rows(self) -> list[tuple[str, str]]:
        """Names and values, for a table."""
        return [
            ("tuples, R and S", f"{self.r_tuples:,}, {self.s_tuples:,}"),
            ("tuples that an arrival meets", f"{self.comparisons:,.0f}"),
            ("terms of the predicate", str(self.terms)),
            ("pairs that the best term passes", f"{self.passed:.3%}"),
        ]


def measure(job: Job) -> SlidingFeatures:
    """Measure a workload on a sample."""
    rng = np.random.default_rng(0)
    r_rows, s_rows = (
        np.unique(rng.integers(0, stream.rows, SAMPLE_TUPLES)) if stream.rows else np.empty(0, int)
        for stream in (job.r, job.s)
    )
    r_first, r_end = met_by_r(job.r.ts[r_rows], job.s.ts, job.window)
    s_first, s_end = met_by_s(job.r.ts, job.s.ts[s_rows], job.window)
    shares = [
        (stream.rows, float((end - first).mean()) if len(end) else 0.0)
        for stream, first, end in ((job.r, r_first, r_end), (job.s, s_first, s_end))
    ]
    comparisons = sum(rows * mean for rows, mean in shares) / max(1, job.tuples)
    codes = encode_intervals(job.r.take(r_rows), job.s.take(s_rows), job.predicate)
    passed = min(passed_by_term(codes), default=0)
    pairs = max(1, len(r_rows) * len(s_rows))
    return SlidingFeatures(
        job.r.rows, job.s.rows, comparisons, len(job.predicate.terms), passed / pairs
    )


def walk(features: SlidingFeatures, order: str, threads: int) -> tuple[str, tuple[str, ...]]:
    """Walk the tree; return the engine's name and a sentence for each branch."""
    met = f"an arrival meets {features.comparisons:,.0f} tuples"
    scan_limit = SCANNED[min(features.terms, max(SCANNED))]
    reasons = []
    if ORDERS.index(order) > ORDERS.index("outer"):
        reasons.append(f"order {order}: of the indexes none keeps it, so a scan")
    elif features.passed >= DENSE:
        dense = f"{features.passed:.0%} of the pairs pass the most selective term"
        reasons.append(f"{dense}, from {DENSE:.0%} on an index does not help: a scan")
    elif features.comparisons < scan_limit:
        reasons.append(f"{met}, below {scan_limit:,} a scan is cheaper")
    elif features.comparisons < LARGE:
        reasons.append(f"{met}: an index; below {LARGE:,} B+-trees")
        return "ibwj-bptree", tuple(reasons)
    else:
        reasons.append(f"{met}: an index; from {LARGE:,} on merge trees")
        return "ibwj-pim", tuple(reasons)
    if threads > 1 and features.comparisons >= SHARED:
        reasons.append(f"{threads} threads, and {met}: shared between them")
        return "splitjoin", tuple(reasons)
    return "kang", tuple(reasons)
