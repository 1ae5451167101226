"""Checking the candidates of an index: codes meet where a predicate may hold."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.kernels.flat.plans import ROW
from streamjoin.engines.kernels.jit import fused
from streamjoin.engines.kernels.prefetch import prefetch_cell

Codes = NDArray[np.uint32]
Int64s = NDArray[np.int64]

U32, U64 = np.uint32, np.uint64
MANY = 16
"""Candidates beyond which most fail."""


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
def ask_candidates(terms: Terms, of_s: bool, out: Codes, start: np.uint64, end: np.uint64) -> None:
    """Prefetch what a check reads of the first candidates."""
    for at in range(start, min(end, start + U64(MANY))):
        other = U64(out[at])
        for term in range(U64(terms.r.shape[0])):
            if of_s:
                prefetch_cell(terms.r, term, other)
            else:
                prefetch_cell(terms.s_lo, term, other)
                prefetch_cell(terms.s_hi, term, other)


@fused
def check(
    terms: Terms,
    plan: Codes,
    arrival: np.uint64,
    out: Codes,
    start: np.uint64,
    end: np.uint64,
    kept: np.uint64,
) -> np.uint64:
    """Move the candidates that satisfy the whole predicate to ``kept``; return where they end.

    All terms are compared without a branch, as nothing predicts which one fails. Of many candidates
    most fail, by the same term: the term by which the last one failed is then compared before.
    """
    r_rows, likely = U64(terms.r.shape[1]), U64(terms.r.shape[0]) - U64(1)
    row = U64(plan[arrival, U64(ROW)]) - U64(1)
    of_s, are_many = row >= r_rows, end - start > U64(MANY)
    for at in range(start, end):
        other = U64(out[at])
        r_row, s_row = (other, row - r_rows) if of_s else (row, other)
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
        out[kept] = U32(other)
        kept += hit
    return kept
