"""Both inputs of a join as streams: from files, Python data, and relations in stores."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from streamjoin.errors import InputError
from streamjoin.inputs.agreement import comparable
from streamjoin.inputs.batches import Batch, as_batch, from_arrow, warn_of_hint
from streamjoin.inputs.files import read_table
from streamjoin.relations import Relation, relation
from streamjoin.relations.source import GIVEN
from streamjoin.relations.stream import StoredStream, stored_stream
from streamjoin.tuples import Stream
from streamjoin_common.language.arrivals import ArrivalColumn, Arrivals
from streamjoin_common.language.predicates import Predicate

DEFAULT_ARRIVALS = Arrivals()
ONLY_R = "S is the stream that arrives: only R can be a relation in a store"


def read_streams(
    r: Path | Relation,
    s: Path,
    predicate: Predicate,
    arrivals: Arrivals = DEFAULT_ARRIVALS,
    lateness_us: int | None = None,
) -> tuple[Stream, Stream]:
    """Read both inputs of a join, only the columns that the predicate needs.

    Parameters
    ----------
    r, s : Path
        Parquet file or folder, Arrow IPC file or CSV file each; R may be a relation in a store.
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
        If a file cannot be read, a column is missing or of a type that the predicate cannot
        compare, or arrival times go back; the sentence names file, column and row.
    """

    def batch(path: Path, columns: list[str], arrival: ArrivalColumn) -> Batch:
        return warn_of_hint(
            from_arrow(read_table(path, columns, arrival), columns, arrival, str(path))
        )

    s_names = predicate.s_columns
    if not isinstance(r, Path):
        stored = stored_stream(r, predicate.r_columns, _of_relation(arrivals))
        return _with_stored(stored, batch(s, s_names, arrivals.s), str(s), predicate, lateness_us)
    batches = [batch(r, predicate.r_columns, arrivals.r), batch(s, s_names, arrivals.s)]
    return _streams(batches, [str(r), str(s)], predicate, lateness_us)


def as_streams(
    r: Any,
    s: Any,
    predicate: Predicate,
    arrivals: Arrivals = DEFAULT_ARRIVALS,
    lateness_us: int | None = None,
) -> tuple[Stream, Stream]:
    """Take both inputs from Python: Arrow-like data or mappings of NumPy arrays.

    R may be a relation in a store, given by its string or open.

    Raises
    ------
    InputError
        As :func:`read_streams`, calling the inputs ``r`` and ``s``.
    """
    if isinstance(r, GIVEN):
        stored = stored_stream(relation(r), predicate.r_columns, _of_relation(arrivals))
        batch = as_batch(s, predicate.s_columns, arrivals.s, "s")
        return _with_stored(stored, batch, "s", predicate, lateness_us)
    if isinstance(s, GIVEN):
        raise InputError(ONLY_R)
    batches = [
        as_batch(r, predicate.r_columns, arrivals.r, "r"),
        as_batch(s, predicate.s_columns, arrivals.s, "s"),
    ]
    return _streams(batches, ["r", "s"], predicate, lateness_us)


def _of_relation(arrivals: Arrivals) -> ArrivalColumn:
    """Return R's arrival column where R is a relation in a store, which is at rest.

    It needs none; a single name denotes the stream's column.
    """
    return replace(arrivals.r, window="", named=arrivals.r.named and arrivals.r != arrivals.s)


def _with_stored(
    r: StoredStream, batch: Batch, source: str, predicate: Predicate, lateness_us: int | None
) -> tuple[Stream, Stream]:
    """Check the stream's types against those of a sample of the relation."""
    if lateness_us is not None and batch.ts is None:
        raise InputError(f"{source}: a lateness needs the arrival times: there is no ts")
    sample, _ = r.store.sample()
    return r, comparable(sample, batch.stream(source, lateness_us), predicate)[1]


def _streams(
    batches: list[Batch], sources: list[str], predicate: Predicate, lateness_us: int | None
) -> tuple[Stream, Stream]:
    if lateness_us is not None and all(batch.ts is None for batch in batches):
        raise InputError(f"{sources[0]}: a lateness needs the arrival times: there is no ts")
    r, s = (
        batch.stream(source, lateness_us) for batch, source in zip(batches, sources, strict=True)
    )
    return comparable(r, s, predicate)
