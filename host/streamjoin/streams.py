"""Both inputs of a join as streams: from files, Python data, and relations in stores."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from streamjoin.errors import InputError, NoColumnError, StreamJoinError
from streamjoin.inputs.agreement import comparable, holds_nothing
from streamjoin.inputs.batches import Batch, as_batch, from_file, read_once
from streamjoin.inputs.conversion import warn_of_integers_as_floats
from streamjoin.relations import Relation, Store, relation
from streamjoin.relations.source import source
from streamjoin.relations.stream import StoredStream, stored_stream
from streamjoin.tuples import Stream
from streamjoin_common.callers import warn_caller
from streamjoin_common.language.arrivals import ArrivalColumn, Arrivals
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.spelling import argument, option

DEFAULT_ARRIVALS = Arrivals()
YEAR_US = 365 * 24 * 3600 * 1_000_000

ONLY_R = "S is the stream that arrives: only R can be a relation in a store"


def as_streams(
    r: Any,
    s: Any,
    predicate: Predicate,
    arrivals: Arrivals = DEFAULT_ARRIVALS,
    lateness_us: int | None = None,
) -> tuple[Stream, Stream]:
    """Take both inputs: Arrow-like data, mappings of arrays, or files.

    Of files only the columns that the predicate needs are read; others when they are looked up.

    Parameters
    ----------
    r, s : Path, str, Arrow data, data frame, or mapping of str to array-like
        A path is that of a Parquet file or folder, an Arrow IPC file or a CSV file, or a pattern
        of such. R may be a relation in a store, given by its string or open.
    predicate : Predicate
        Names the columns.
    arrivals : Arrivals, optional
        The arrival columns, and which window needs them. By default ``ts`` if there is one; data
        without it is at rest.
    lateness_us : int, optional
        Maximum lateness of tuples that are put in order; later ones are dropped and counted.

    Raises
    ------
    InputError
        If an input cannot be read, a column is missing or of a type that the predicate cannot
        compare, or arrival times go back; the sentence names file (or ``r`` and ``s``), column
        and row.
    """
    same = s is r
    r = source(r) if isinstance(r, str) else r
    s = source(s) if isinstance(s, str) else s
    if isinstance(s, Relation | Store):
        raise InputError(ONLY_R)
    if isinstance(r, Relation | Store):
        stored = stored_stream(relation(r), predicate.r_columns, _of_relation(arrivals))
        batch = _batch(s, predicate.s_columns, arrivals.s, "s")
        return _with_stored(stored, batch, _called(s, "s"), predicate, lateness_us)
    if same and hasattr(r, "read_next_batch"):  # a reader gives its rows once
        r = s = read_once(r, "r and s")
    try:
        r_batch = _batch(r, predicate.r_columns, arrivals.r, "r")
    except NoColumnError as error:
        _refuse_both(error, s, predicate, arrivals.s)
        raise
    batches = [r_batch, _batch(s, predicate.s_columns, arrivals.s, "s")]
    if arrivals.r.unit is not None and all(batch.clock.dated for batch in batches):
        raise InputError(
            f"{argument('ts_unit')} is for numbers, and the arrival times of both sides are "
            f"dates or timestamps, which have their unit: leave it out"
        )
    streams = _streams(batches, [_called(r, "r"), _called(s, "s")], predicate, lateness_us)
    if arrivals.r.window:
        _warn_of_distance(*streams)
    return streams


read_streams = as_streams
"""For those who have files."""


def _batch(given: Any, columns: list[str], arrival: ArrivalColumn, name: str) -> Batch:
    if isinstance(given, Path):
        return from_file(given, columns, arrival)
    return as_batch(given, columns, arrival, name)


def _refuse_both(
    error: NoColumnError, s: Any, predicate: Predicate, arrival: ArrivalColumn
) -> None:
    """Refuse R, which lacks a column, and S with it if S lacks one too."""
    try:
        _batch(s, predicate.s_columns, arrival, "s")
    except NoColumnError as of_s:
        differ = (
            ""
            if predicate.r_columns != predicate.s_columns
            else ": where names differ, write RCOL=SCOL"
        )
        raise NoColumnError(f"{error}; {of_s}{differ}") from None
    except StreamJoinError:  # another one, which is reported once R is right
        return


def _called(given: Any, name: str) -> str:
    """Return what errors call an input."""
    return str(given) if isinstance(given, Path) else name


def _of_relation(arrivals: Arrivals) -> ArrivalColumn:
    """Return R's arrival column where R is a relation in a store, which is at rest.

    It needs none; a single name denotes the stream's column.
    """
    return replace(arrivals.r, window="", named=arrivals.r.named and arrivals.r != arrivals.s)


def _with_stored(
    r: StoredStream, batch: Batch, called: str, predicate: Predicate, lateness_us: int | None
) -> tuple[Stream, Stream]:
    """Check the stream's types against those of a sample of the relation."""
    if lateness_us is not None and batch.ts is None:
        raise InputError(f"{called}: a lateness needs the arrival times: there is no ts")
    sample, _ = r.store.sample()
    given = batch.stream(called, lateness_us)
    compared, stream = comparable(sample, given, predicate)
    if holds_nothing(given.columns, given.missing):  # no value of R has a partner
        return r, stream
    for name in predicate.r_columns:
        if sample.columns[name].dtype.kind == "f" and compared.columns[name].dtype.kind != "f":
            raise InputError(
                f"{sample.source}: column {name!r} is floating-point, and lies in a store: cast "
                f"the column of {called} to double"
            )
    return r, stream


def _warn_of_distance(r: Stream, s: Stream) -> None:
    """Warn where all of one side arrives over a year before the other: two units, probably."""
    if not (r.rows and s.rows):
        return
    for early, late in ((r, s), (s, r)):
        if int(late.ts[0]) - int(early.ts[-1]) > YEAR_US:
            warn_caller(
                f"{early.source}: its last arrival time is over a year before the first of "
                f"{late.source}, so no pair shares a window: do both count the same unit from the "
                f"same origin? {option('ts_unit')} is for numbers, timestamps count from 1970"
            )


def _streams(
    batches: list[Batch], sources: list[str], predicate: Predicate, lateness_us: int | None
) -> tuple[Stream, Stream]:
    if lateness_us is not None and all(batch.ts is None for batch in batches):
        raise InputError(f"{sources[0]}: a lateness needs the arrival times: there is no ts")
    r, s = (
        batch.stream(called, lateness_us) for batch, called in zip(batches, sources, strict=True)
    )
    made = comparable(r, s, predicate)
    warn_of_integers_as_floats(r, s, predicate)
    return made
