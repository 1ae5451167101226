"""Whether the join columns of both sides compare; a side without values takes the other's types."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamjoin.inputs.columns import Missing, column_kind
from streamjoin.inputs.conversion import as_compared, check_known, equal_columns, targets
from streamjoin.tuples import Stream
from streamjoin_common.language.predicates import Equi, Predicate, Term, check_kinds

Types = Mapping[str, "np.dtype[Any]"]
"""Types of a side's join columns."""

FIRST_ROWS = 64
"""Rows in which a value is looked for first."""


def comparable(r: Stream, s: Stream, predicate: Predicate) -> tuple[Stream, Stream]:
    """Refuse what does not compare, and convert the rest to types that engines compare.

    A side without any value takes the other's types.
    """
    r_types, s_types = _types(r), _types(s)
    sources = (r.source, s.source)
    r_agreed, s_agreed = agreed_types(r_types, s_types, predicate, sources)
    r = _without_values(r, r_agreed) if r_types is None else r
    s = _without_values(s, s_agreed) if s_types is None else s
    r_targets, s_targets = targets(r_agreed, s_agreed, predicate, sources)
    r_equal, s_equal = equal_columns(predicate)
    return (
        as_compared(r, predicate.r_columns, r_targets, r_equal),
        as_compared(s, predicate.s_columns, s_targets, s_equal),
    )


def comparable_on_spark(r: Stream, s: Stream, predicate: Predicate) -> tuple[Stream, Stream]:
    """As :func:`comparable`, and refuse types that joins on Spark do not take.

    Raises
    ------
    UnsupportedError
        Naming the column, and an engine that takes it.
    """
    made = comparable(r, s, predicate)
    check_known(r, s, predicate)
    return made


def _types(stream: Stream) -> Types | None:
    if holds_nothing(stream.columns, stream.missing):
        return None
    return {name: column.dtype for name, column in stream.columns.items()}


def agreed_types(
    r: Types | None, s: Types | None, predicate: Predicate, sources: tuple[str, str] = ("r", "s")
) -> tuple[Types, Types]:
    """Types of both sides' join columns.

    Parameters
    ----------
    r, s : mapping of str to dtype, or None
        Types by column; None for a side that has no value, which takes the other's.
    sources : tuple of str
        What errors call the sides.

    Raises
    ------
    InputError
        If two columns do not compare, naming source, column, type and what is right.
    """
    r_agreed, s_agreed = dict(r or {}), dict(s or {})
    # Bands first: they restrict what a column without any value may hold.
    for term in sorted(predicate.terms, key=lambda term: isinstance(term, Equi)):
        if r is None:
            anything = r_agreed.get(term.r_column, _any_type(term))
            r_agreed[term.r_column] = s_agreed.get(term.s_column, anything)
        if s is None:
            s_agreed[term.s_column] = r_agreed[term.r_column]
        _check_term(r_agreed[term.r_column], s_agreed[term.s_column], term, sources)
    targets(r_agreed, s_agreed, predicate, sources)
    return r_agreed, s_agreed


def holds_nothing(columns: Mapping[str, Any], missing: Missing) -> bool:
    """Say whether no row has a value in every column; NaN is none."""
    rows = max((len(column) for column in columns.values()), default=0)
    for end in (min(rows, FIRST_ROWS), rows):  # mostly one of the first has
        lacking = np.zeros(end, np.bool_) if missing is None else missing[:end].copy()
        for column in columns.values():
            if column.dtype.kind == "f":
                lacking |= np.isnan(column[:end])
        if not lacking.all():
            return False
    return True


def _without_values(stream: Stream, types: Types) -> Stream:
    """Give a stream without any value columns of these types."""
    columns = {name: no_values(stream.rows, dtype) for name, dtype in types.items()}
    missing = np.ones(stream.rows, np.bool_) if stream.rows else None
    return replace(stream, columns={**stream.columns, **columns}, missing=missing)


def no_values(rows: int, dtype: "np.dtype[Any]") -> NDArray[Any]:
    """Return a column of a type in which all values are missing."""
    return np.full(rows, "", dtype=object) if dtype.kind == "O" else np.zeros(rows, dtype)


def _any_type(term: Term) -> "np.dtype[Any]":
    """Return a type that a term compares."""
    if isinstance(term, Equi):
        return np.dtype(np.int64)
    if term.is_duration:
        return np.dtype("M8[ns]")
    return np.dtype(np.int64 if isinstance(term.lo, int) and isinstance(term.hi, int) else float)


def _check_term(
    r: "np.dtype[Any]", s: "np.dtype[Any]", term: Term, sources: tuple[str, str]
) -> None:
    """Refuse columns that a term cannot compare."""
    r_kind = column_kind(r, term.r_column, sources[0])
    s_kind = column_kind(s, term.s_column, sources[1])
    check_kinds(term, r_kind, s_kind, *sources)
