"""How a predicate maps onto a design: its terms, the keys in the beats, the width registers."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.device.base import Device
from streamjoin.engines.encode import equi_codes
from streamjoin.engines.job import Job
from streamjoin.errors import UnsupportedError
from streamjoin_common.contract import KeyType, Term, TermKind
from streamjoin_common.language.predicates import Band, Equi
from streamjoin_common.language.predicates import Term as PredicateTerm

Uint32s = NDArray[np.uint32]

_INT32 = np.iinfo(np.int32)


def design_term(term: PredicateTerm, job: Job) -> Term:
    """Return the term of a design that a predicate's term needs.

    Raises
    ------
    UnsupportedError
        If the columns or widths do not fit 32 bits.
    """
    if isinstance(term, Equi):
        return Term(TermKind.EQUI, KeyType.UINT32)
    r, s = job.r.column(term.r_column), job.s.column(term.s_column)
    if r.dtype == s.dtype == np.float32:
        return Term(TermKind.BAND, KeyType.FLOAT32)
    if r.dtype.kind == "f":
        raise UnsupportedError(
            f"hardware engines: band {term.text} is on float64 columns; the design compares "
            "float32: cast both columns"
        )
    for width in (term.lo, term.hi):
        if not _INT32.min <= width <= _INT32.max:
            raise UnsupportedError(
                f"hardware engines: band {term.text}: a width must fit in 32 bits, not {width}: "
                "take engine ibwj-im"
            )
    return Term(TermKind.BAND, _integer_type(r, s, term))


def _integer_type(r: NDArray[Any], s: NDArray[Any], term: Band) -> KeyType:
    lows = [int(column.min()) for column in (r, s) if len(column)]
    highs = [int(column.max()) for column in (r, s) if len(column)]
    low, high = min(lows, default=0), max(highs, default=0)
    if low >= _INT32.min and high <= _INT32.max:
        return KeyType.INT32
    if low >= 0 and high <= np.iinfo(np.uint32).max:
        return KeyType.UINT32
    raise UnsupportedError(
        f"hardware engines: band {term.text}: the values run from {low} to {high}; the design "
        "compares 32 bits: take engine ibwj-im"
    )


def term_keys(term: PredicateTerm, job: Job) -> tuple[Uint32s, Uint32s]:
    """Return the 32-bit keys of R and of S that a term's field of the beats carries."""
    r, s = job.r.held(term.r_column), job.s.held(term.s_column)
    if isinstance(term, Equi):
        return equi_codes(r, s, job.r.missing, job.s.missing)
    if r.dtype == np.float32:
        return r.view(np.uint32), s.view(np.uint32)
    return _low_bits(r), _low_bits(s)


def _low_bits(column: NDArray[Any]) -> Uint32s:
    return np.asarray(column.astype(np.int64).astype(np.uint32))


def program_bands(device: Device, terms: tuple[PredicateTerm, ...]) -> None:
    """Write the band widths into the device's registers."""
    for number, (term, design) in enumerate(zip(terms, device.params.terms, strict=True)):
        if isinstance(term, Band):
            is_float = design.type is KeyType.FLOAT32
            widths = zip(("lo", "hi"), (term.lo, term.hi), term.real_widths, strict=True)
            for bound, width, float_width in widths:
                bits = _float32_bits(float_width) if is_float else int(width)
                device.write(f"band_{bound}{number}", bits)


def _float32_bits(value: float) -> int:
    with np.errstate(over="ignore"):
        return int(np.array(value, dtype=np.float32).view(np.uint32))
