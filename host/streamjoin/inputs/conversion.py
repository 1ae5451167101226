"""Join columns of two types as one: what engines and oracle compare.

Of two types that compare one is the target. A value of the other type that the target has not is
equal to none, so its row lacks a value and arrives without a partner.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.errors import InputError, UnsupportedError
from streamjoin.inputs.columns import KINDS, Missing, nanoseconds
from streamjoin.inputs.decimals import digits, is_wide, of_integers, rescaled, to_integers
from streamjoin.inputs.strings import Strings
from streamjoin.tuples import Stream
from streamjoin_common.callers import warn_caller
from streamjoin_common.language.predicates import Band, Equi, Predicate, Term

Column = NDArray[Any] | Strings
Types = Mapping[str, "np.dtype[Any]"]

EXACT_FLOAT = float(1 << 53)
"""Floating-point numbers from here on may have lost digits of integers."""


def targets(
    r: Types, s: Types, predicate: Predicate, sources: tuple[str, str]
) -> tuple[dict[str, "np.dtype[Any]"], dict[str, "np.dtype[Any]"]]:
    """Return the type to which each join column is converted; the kinds compare.

    Raises
    ------
    InputError
        If a band counts two units, or a column is compared with several types.
    """
    wanted = _targets(r, s, predicate, sources, one_unit=False)
    if wanted is None:  # only nanoseconds are common to all terms that name a column
        wanted = _targets(r, s, predicate, sources, one_unit=True)
    assert wanted is not None
    return wanted


def _targets(
    r: Types, s: Types, predicate: Predicate, sources: tuple[str, str], *, one_unit: bool
) -> "tuple[dict[str, np.dtype[Any]], dict[str, np.dtype[Any]]] | None":
    """Return the types; None if times must be in nanoseconds for it."""
    wanted: tuple[dict[str, np.dtype[Any]], ...] = ({}, {})
    for term in predicate.terms:
        names = (term.r_column, term.s_column)
        pair = _target(r[names[0]], s[names[1]], term, sources, one_unit=one_unit)
        for types, name, target, source in zip(wanted, names, pair, sources, strict=True):
            if types.setdefault(name, target) == target:
                continue
            if target.kind in "mM" and not one_unit:
                return None
            raise InputError(
                f"{source}: column {name!r} is compared with columns of several types: cast them "
                "to one, or write widths of times as durations such as 5s"
            )
    return wanted[0], wanted[1]


def _target(
    r: "np.dtype[Any]", s: "np.dtype[Any]", term: Term, sources: tuple[str, str], *, one_unit: bool
) -> "tuple[np.dtype[Any], np.dtype[Any]]":
    if r.kind in "mM":
        if isinstance(term, Band) and not term.is_duration:
            units = [np.datetime_data(dtype)[0] for dtype in (r, s)]
            if units[0] != units[1]:
                raise InputError(
                    f"band {term.text}: {sources[0]} counts {units[0]} and {sources[1]} "
                    f"{units[1]}: write the widths as durations, such as 5s"
                )
            return r, s
        if isinstance(term, Equi) and r == s and not one_unit:
            return r, s
        fine = np.dtype(f"{r.kind}8[ns]")
        return fine, fine
    kinds = (r.kind, s.kind)
    if isinstance(term, Band):
        return r, s
    if kinds[0] == "V":
        return r, r
    if kinds[0] == "f" and kinds[1] in "iu":
        return _widest(s), s
    if kinds[0] in "iu" and kinds[1] in "fV":
        return r, _widest(r)
    return r, s


def _widest(dtype: "np.dtype[Any]") -> "np.dtype[Any]":
    """Return the type of 64-bit integers of the same sign."""
    return np.dtype(np.uint64 if dtype.kind == "u" else np.int64)


def converted(
    column: Column, target: "np.dtype[Any]", name: str, source: str
) -> tuple[Column, Missing]:
    """Convert a column to a type that it compares with.

    Returns
    -------
    column : ndarray or Strings
        The same values.
    lost : ndarray of bool, or None
        Which the type has not.
    """
    dtype = column.dtype
    if dtype == target or dtype.kind not in "iufVmM":
        return column, None
    values = np.asarray(column)
    if dtype.kind in "mM":
        return nanoseconds(values, name, source), None
    if dtype.kind == "f":
        return _integers_of_floats(values, target)
    if target.kind == "V":
        return rescaled(values if dtype.kind == "V" else of_integers(values), target)
    return to_integers(values, unsigned=target.kind == "u")


def _integers_of_floats(values: NDArray[Any], target: "np.dtype[Any]") -> tuple[Column, Missing]:
    low, end = (0.0, 2.0**64) if target.kind == "u" else (-(2.0**63), 2.0**63)
    wide = values.astype(np.float64)
    fits = (wide >= low) & (wide < end) & (np.trunc(wide) == wide)
    return np.where(fits, wide, 0.0).astype(target), ~fits


def plain(column: Column) -> Column:
    """Return a column as engines compare it: integers, floating-point numbers or objects."""
    kind = column.dtype.kind
    if kind == "S":
        return Strings.of(column).as_objects
    if isinstance(column, Strings) or kind not in "bmMV":
        return column
    if kind == "b":
        return column.view(np.uint8)
    if kind == "V" and is_wide(column.dtype):
        return Strings.of_rows(digits(column).view(np.uint8)).as_objects
    return column.view(np.int64)


def as_compared(stream: Stream, columns: list[str], types: Types, equal: set[str]) -> Stream:
    """Return a stream with its join columns as engines compare them.

    Parameters
    ----------
    stream : Stream
    columns : list of str
        The join columns.
    types : mapping of str to dtype
        What some are converted to.
    equal : set of str
        Those of an equality, in which NaN has no partner.
    """
    held, masks = dict(stream.columns), []
    for name in columns:
        column = held[name]
        if column.dtype.kind == "f" and name in equal:
            masks.append(np.isnan(column))
        column, lost = converted(column, types.get(name, column.dtype), name, stream.source)
        held[name] = plain(column)
        if lost is not None:
            masks.append(lost)
    if not masks and all(held[name] is stream.columns[name] for name in columns):
        return stream
    missing = stream.missing
    for mask in masks:
        if mask.any():
            missing = mask if missing is None else missing | mask
    return replace(stream, columns=held, missing=missing)


def equal_columns(predicate: Predicate) -> tuple[set[str], set[str]]:
    """Return the columns of R and of S that occur in equalities."""
    terms = [term for term in predicate.terms if isinstance(term, Equi)]
    return {term.r_column for term in terms}, {term.s_column for term in terms}


def stored_as_compared(stream: Stream, predicate: Predicate) -> Stream:
    """Return rows of a relation in a store as engines compare them: nothing is converted."""
    return as_compared(stream, predicate.r_columns, {}, equal_columns(predicate)[0])


def in_nanoseconds(stream: Stream) -> Stream:
    """Return a stream whose times all count nanoseconds."""
    columns = {
        name: nanoseconds(column, name, stream.source) if column.dtype.kind in "mM" else column
        for name, column in stream.columns.items()
    }
    return replace(stream, columns=columns)


def warn_of_integers_as_floats(r: Stream, s: Stream, predicate: Predicate) -> None:
    """Warn where integers with missing values have become floating-point numbers, as by pandas."""
    for term in predicate.terms:
        if not isinstance(term, Equi):
            continue
        pairs = ((r, term.r_column, s, term.s_column), (s, term.s_column, r, term.r_column))
        for stream, name, other, other_name in pairs:
            column, against = stream.columns[name], other.columns[other_name]
            if column.dtype.kind != "f" or against.dtype.kind not in "iuf":
                continue
            missing = np.isnan(column)
            if not missing.any() or missing.all() or (np.trunc(column) != column)[~missing].any():
                continue
            if np.abs(column[~missing]).max() < EXACT_FLOAT:
                continue
            warn_caller(
                f"{stream.source}: column {name!r} is {column.dtype} and holds integers beside "
                "missing values: floating-point numbers lose digits of integers above 2**53; if "
                f'pandas made it so, pass .astype({{{name!r}: "Int64"}})'
            )


def check_known(r: Stream, s: Stream, predicate: Predicate) -> None:
    """Refuse types that joins on Spark do not compare.

    Raises
    ------
    UnsupportedError
        Naming the column, and an engine that takes it.
    """
    for term in predicate.terms:
        for stream, name in ((r, term.r_column), (s, term.s_column)):
            kind = stream.columns[name].dtype.kind
            if kind in ("iuOmM" if isinstance(term, Equi) else "iuf"):
                continue
            engine = "npj" if isinstance(term, Equi) else "ibwj-im"
            raise UnsupportedError(
                f"{stream.source}: column {name!r} is {KINDS.get(kind, 'of another type')}, which "
                f"joins on Spark do not take under {term.kind}: join with engine {engine} of "
                "sj.join, or cast it to integers"
            )
