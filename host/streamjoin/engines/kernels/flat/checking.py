"""Checking the candidates of an index: codes meet where a predicate may hold."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.jit import fused
from streamjoin.engines.kernels.prefetch import prefetch_cell

Codes = NDArray[np.uint32]
Int64s = NDArray[np.int64]

U32, U64 = np.uint32, np.uint64
MANY = 16
"""Candidates of an arrival beyond which most fail."""

LINE_BYTES = 64

ASKED = 256
"""Candidates of which what a check reads is prefetched."""


class Terms(NamedTuple):
    """The whole predicate, for candidates that must be checked.

    Attributes
    ----------
    r : ndarray of uint32 or int64, shape (terms, r rows)
    s_lo, s_hi : ndarray of uint32 or int64, shape (terms, s rows)
    """

    r: Codes | Int64s
    s_lo: Codes | Int64s
    s_hi: Codes | Int64s


@fused
def ask_pairs(
    terms: Terms, out: Codes, r_at: np.uint64, s_at: np.uint64, start: np.uint64, end: np.uint64
) -> None:
    """Prefetch what a check reads of the first candidates."""
    # One of the words of a row that lie side by side is enough.
    step = U64(max(1, LINE_BYTES // max(1, terms.s_lo.strides[0])))  # 0 where there are no rows
    apart = abs(terms.s_hi.ctypes.data - terms.s_lo.ctypes.data) >= LINE_BYTES
    for at in range(start, min(end, start + U64(ASKED))):
        r_row, s_row = U64(out[r_at + at]), U64(out[s_at + at])
        for term in range(U64(0), U64(terms.r.shape[0]), step):
            prefetch_cell(terms.r, term, r_row)
            prefetch_cell(terms.s_lo, term, s_row)
            if apart:
                prefetch_cell(terms.s_hi, term, s_row)


@fused
def check(
    terms: Terms,
    are_many: bool,
    out: Codes,
    r_at: np.uint64,
    s_at: np.uint64,
    start: np.uint64,
    end: np.uint64,
    kept: np.uint64,
) -> np.uint64:
    """Move the pairs that satisfy the whole predicate to ``kept``; return where they end.

    Rows of R lie from ``r_at`` on, those of S from ``s_at`` on. All terms are compared without a
    branch, as nothing predicts which one fails. If there are many candidates, most fail by the same
    term: the term by which the last one failed is then compared before.
    """
    likely = U64(terms.r.shape[0]) - U64(1)
    for at in range(start, end):
        r_number, s_number = out[r_at + at], out[s_at + at]
        r_row, s_row = U64(r_number), U64(s_number)
        if are_many:
            key = terms.r[likely, r_row]
            if key < terms.s_lo[likely, s_row] or key > terms.s_hi[likely, s_row]:
                continue
        hit = U64(1)
        for term in range(U64(terms.r.shape[0])):
            key = terms.r[term, r_row]
            met = U64(terms.s_lo[term, s_row] <= key) & U64(key <= terms.s_hi[term, s_row])
            hit &= met
            likely = likely if met else term
        out[r_at + kept], out[s_at + kept] = r_number, s_number
        kept += hit
    return kept
