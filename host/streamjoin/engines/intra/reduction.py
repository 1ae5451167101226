"""Semi-join reduction: rows without a partner are dropped, where one side is far shorter.

Integers, floating-point numbers or hashes of strings of the shorter side make a filter
(:mod:`~streamjoin.engines.kernels.filtering`), and the longer side's rows that do not pass take no
part. Those that pass by chance are told apart by the join itself, so that nothing of the result
depends on the filter.
"""

from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.engines.codes import bits_of_floats
from streamjoin.engines.job import Job
from streamjoin.engines.numbering import hashes
from streamjoin.inputs.strings import Strings
from streamjoin.tuples import Stream
from streamjoin_common.language.predicates import Equi
from streamjoin_common.language.windows import AllWindow

Codes = NDArray[np.uint32]
Integers = NDArray[Any]
Missing = NDArray[np.bool_] | None

LONG = 1 << 16
"""Rows of a side from which on it is worth a filter."""

FEW = 8
"""The shorter side has at most one row for so many of the longer one."""

FILTER_BITS = 16, 64
"""Bits of the filter for each row, at least and where they fit: by chance one row in 64 passes."""

FILTER_LIMIT = 1 << 23
"""Bits of the longest filter, 1 MB: a longer one would not stay in a core's cache."""

SAMPLE = 1024
"""Rows of the longer side that tell whether the filter is worth its time."""

MAXIMUM_SHARE = 0.25
"""Share of the sample that may pass; of all rows twice as much."""

PIECE = 1 << 17
"""Rows that pass before their share is looked at."""


def reduced(job: Job) -> tuple[Job, Codes | None, Codes | None]:
    """Return a job without many of the rows that have no partner.

    Returns
    -------
    job : Job
        The same, or with fewer rows of one side.
    r_rows, s_rows : ndarray of uint32, or None
        Which rows of a side are left; None if all are.
    """
    if not _are_unequal(job):
        return job, None, None
    r, s = job.r, job.s
    few, many = (r, s) if r.rows < s.rows else (s, r)
    compared = _words(job)
    if compared is None:
        return job, None, None
    known, values = compared if few is r else compared[::-1]
    rows = _passing(_present(known, few.missing), values, many.missing)
    if rows is None:
        return job, None, None
    if many is r:
        names = [term.r_column for term in job.predicate.terms]
        return replace(job, r=_taken(r, names, rows)), rows, None
    names = [term.s_column for term in job.predicate.terms]
    return replace(job, s=_taken(s, names, rows)), None, rows


def compile_filter(job: Job) -> None:
    """Compile the filter for the columns of a job, or load it from the cache."""
    if _are_unequal(job):
        for column in _words(job, slice(1)) or ():
            _passing(column, column, None)


def _are_unequal(job: Job) -> bool:
    """Whether one side is far shorter, and all tuples are in one window, at once."""
    few, many = sorted((job.r.rows, job.s.rows))
    is_whole = isinstance(job.window, AllWindow) and job.arrival == "instant"
    return is_whole and many >= max(LONG, FEW * few) and find_spec("numba") is not None


def _words(job: Job, rows: slice = slice(None)) -> tuple[Integers, Integers] | None:
    """Return integers for the columns of an equality: alike where the values are."""
    for term in job.predicate.terms:
        columns = job.r.held(term.r_column)[rows], job.s.held(term.s_column)[rows]
        kinds = {column.dtype.kind for column in columns}
        if not isinstance(term, Equi):
            continue
        if kinds == {"f"}:
            columns = bits_of_floats(*columns)
        elif all(isinstance(column, Strings) for column in columns):
            columns = hashes(columns[0]), hashes(columns[1])
        elif not kinds <= {"i", "u"}:
            continue
        return _read_only(columns[0]), _read_only(columns[1])
    return None


def _read_only(column: Integers) -> Integers:
    """Return the column as the one type that kernels are compiled for."""
    view = np.ascontiguousarray(column).view()
    view.flags.writeable = False
    return view


def _present(values: Integers, missing: Missing) -> Integers:
    """Return the values that are not missing."""
    return values if missing is None else _read_only(values[~missing])


def _passing(known: Integers, values: Integers, missing: Missing) -> Codes | None:
    """Return the rows that may have a partner; None where so many have that it is not worth it."""
    from streamjoin.engines.kernels import filtering

    least, wanted = FILTER_BITS
    if least * len(known) > FILTER_LIMIT:
        return None
    bits = max(6, (min(wanted * len(known), FILTER_LIMIT) - 1).bit_length())
    words, shift = np.zeros(1 << (bits - 6), dtype=np.uint64), 64 - bits
    filtering.fill(known, words, shift)
    rows = np.empty(len(values), dtype=np.uint32)
    # Drawn, not every so many: values may come in turns.
    drawn = np.random.default_rng(0).integers(0, max(1, len(values)), SAMPLE)[: len(values)]
    sample = _read_only(values[drawn] if missing is None else values[drawn][~missing[drawn]])
    if filtering.passing(sample, words, shift, rows) > MAXIMUM_SHARE * len(sample):
        return None
    passed = 0
    for first in range(0, len(values), PIECE):
        room = rows[passed : passed + PIECE]
        hits = room[: filtering.passing(values[first : first + PIECE], words, shift, room)]
        hits += np.uint32(first)
        if missing is not None:
            present = hits[~missing[hits]]
            hits = room[: len(present)]
            hits[:] = present
        passed += len(hits)
        if passed > 2 * MAXIMUM_SHARE * len(values):
            return None
    return rows[:passed]


def _taken(stream: Stream, names: list[str], rows: Codes) -> Stream:
    """Return some rows of the columns that are joined."""
    missing = None if stream.missing is None else stream.missing[rows]
    columns = {name: stream.held(name)[rows] for name in names}
    at_rest = np.zeros(len(rows), dtype=np.int64)  # arrival times do not count
    return Stream(columns, at_rest, stream.source, missing=missing, in_order=True)
