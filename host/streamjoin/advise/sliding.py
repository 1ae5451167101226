"""Choosing an engine for a sliding window: a scan or an index.

CPU time of whole calls on two shared cores with AVX-512, one thread, medians of three interleaved
rounds, nanoseconds a tuple. Equality and a band of one term with a quarter of a pair a tuple, an
equality with 16, and a band of two terms; ``kang``, ``ibwj-bptree``, ``ibwj-pim``, ``ibwj-flat``:

======  ====================  ====================  ====================  ====================
window  equality              16 pairs a tuple      band                  band, two terms
======  ====================  ====================  ====================  ====================
        kang bptr  pim flat   kang bptr  pim flat   kang bptr  pim flat   kang bptr  pim flat
2^6      158  130  320  118    297  327  479  208    164  175  366  205    186  243  414  289
2^8      168  150  333  116    372  363  466  212    171  174  347  203    206  263  443  306
2^10     217  162  314  104    570  381  485  215    212  242  352  182    265  341  538  345
2^12     282  167  270  111   1239  419  436  230    284  190  308  194    366  455  535  399
2^14     505  190  222  111   2742  379  351  190    485  212  242  203    740  719  739  617
2^16    1364  163  155   60   4849  308  242  151   1263  177  164   98   2076 1180  884  793
2^18    4838  193  142   41   8331  383  273  337   4654  192  153   52
======  ====================  ====================  ====================  ====================

Of the indexes ``ibwj-flat`` is the fastest in most cells; ``ibwj-pim`` was 1.23 times as fast at
2^18 with 16 pairs a tuple. It is so too where an equality or a band of one term has up to a
thousand pairs a tuple. Measured again on another machine with 60,000 tuples a stream, ``kang`` and
``ibwj-flat``: an equality 199 and 79 ns at windows of 8, 208 and 81 at 64; a band of one term 198
and 84 at 64, 241 and 91 at 512; two terms 263 and 199 at 1,024, 494 and 261 at 4,096. An index
costs a millisecond at the beginning, which 2,000 tuples do not earn: 0.7 and 1.05 us a tuple. The
branches are where it overtakes the scan.
"""

from dataclasses import asdict, dataclass

import numpy as np

from streamjoin.engines.arrivals import met_by_r, met_by_s
from streamjoin.engines.encode import encode_intervals
from streamjoin.engines.job import Job
from streamjoin.engines.sliding.ibwj import passed_by_term
from streamjoin_common.language.predicates import Band

SAMPLE_TUPLES = 1 << 10
SCANNED = 1_500
"""Comparisons of an arrival below which a scan is cheaper for several terms with a band, of which
an index covers one."""

INDEX_NS = 1e6
"""Nanoseconds that an index costs at the beginning, more than a scan."""

SAVED_NS, SAVED_NS_A_COMPARISON = 110, 0.15
"""Nanoseconds by which an arrival is faster in an index, for equalities and a band of one term."""

DENSE = 1 / 16
"""Share of pairs that the most selective of several terms passes, from which on a scan is
cheaper."""

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
    bands : int
        Terms that are bands.
    """

    r_tuples: int
    s_tuples: int
    comparisons: float
    terms: int
    passed: float
    bands: int

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


def measure(job: Job, sample_tuples: int = SAMPLE_TUPLES) -> SlidingFeatures:
    """Measure a workload on a sample of at most so many tuples of each stream."""
    rng = np.random.default_rng(0)
    r_rows, s_rows = (
        np.unique(rng.integers(0, stream.rows, min(stream.rows, sample_tuples)))
        if stream.rows
        else np.empty(0, int)
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
    terms = job.predicate.terms
    bands = sum(isinstance(term, Band) for term in terms)
    return SlidingFeatures(job.r.rows, job.s.rows, comparisons, len(terms), passed / pairs, bands)


def walk(features: SlidingFeatures, threads: int) -> tuple[str, tuple[str, ...]]:
    """Walk the tree; return the engine's name and a sentence for each branch."""
    met = f"an arrival meets {features.comparisons:,.0f} tuples"
    several = features.terms > 1 and features.bands > 0
    tuples = features.r_tuples + features.s_tuples
    saved_ns = SAVED_NS + SAVED_NS_A_COMPARISON * features.comparisons
    reasons = []
    if several and features.passed >= DENSE:
        dense = f"{features.passed:.0%} of the pairs pass the most selective term"
        reasons.append(f"{dense}, from {DENSE:.0%} on an index does not help: a scan")
    elif several and features.comparisons < SCANNED:
        reasons.append(f"{met}, below {SCANNED:,} a scan is cheaper")
    elif tuples * saved_ns < INDEX_NS:
        reasons.append(f"{met}: an index does not pay for {tuples:,} tuples: a scan")
    else:
        reasons.append(f"{met}: an index; flat blocks are the fastest")
        return "ibwj-flat", tuple(reasons)
    if threads > 1 and features.comparisons >= SHARED:
        reasons.append(f"{threads} threads, and {met}: shared between them")
        return "splitjoin", tuple(reasons)
    return "kang", tuple(reasons)
