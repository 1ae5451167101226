"""What a streaming join remembers from batch to batch: a record of each, and the kept tuples."""

import json
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from streamjoin.errors import InputError
from streamjoin.tuples import Stream
from streamjoin_common import storage
from streamjoin_common.documents import read_json
from streamjoin_common.language.arrivals import ArrivalColumn
from streamjoin_common.language.predicates import Band, Predicate
from streamjoin_spark.batch.classes import Classes, OneClass, Radix, Ranges
from streamjoin_spark.batch.frames import renamed, tuples_of
from streamjoin_spark.batch.local import NO_TIME
from streamjoin_spark.batch.worker import Tuples

FORMAT = 2
END = "end.json"
"""Name of the file that says that both streams have ended."""

RECORDS = 100
"""Maximum records that are kept, as many as Spark keeps of its batches."""

FOLDER = "streamjoin"
"""Name of the state's folder in the query's checkpoint folder."""

FIRST_PAIR = "first_pair_us"
"""Column of the kept tuples, the last, where the kind of join asks for it."""

BEGINNING: dict[str, Any] = {
    "batch": -1,
    "classes": None,
    "r_last": NO_TIME,
    "s_last": NO_TIME,
    "watermark_us": NO_TIME,
    "kept": 0,
    "pairs_so_far": 0,
    "late_so_far": 0,
}
"""What is before the first batch."""


def last_record(state: Path) -> dict[str, Any]:
    """Return the record of the last batch that was done, or what is before the first.

    Raises
    ------
    InputError
        If another version wrote it.
    """
    numbers = [int(path.stem.removeprefix("batch-")) for path in state.glob("batch-*.json")]
    if not numbers:
        return dict(BEGINNING)
    path = record_path(state, max(numbers))
    record = read_json(path)
    if not isinstance(record, dict) or {"format", *BEGINNING} - set(record):
        raise InputError(f"{path}: is no record of a batch; choose another folder")
    if record["format"] != FORMAT:
        raise InputError(
            f"{state.parent}: is a checkpoint of format {record['format']}, not {FORMAT}; "
            "choose another folder"
        )
    return record


def record_path(state: Path, number: int) -> Path:
    """Return the path of a batch's record."""
    return state / f"batch-{number}.json"


def kept_folder(state: Path, number: int) -> Path:
    """Return the folder of the tuples that a batch keeps for the next one."""
    return state / f"batch-{number}"


def write_record(state: Path, record: dict[str, Any]) -> None:
    """Write a record, whole or not at all: with it the batch is done."""
    path = record_path(state, int(record["batch"]))
    storage.write_text(path, json.dumps(record, indent=1) + "\n")


def write_end(state: Path, batch: int) -> None:
    """Write down that both streams have ended with a batch: no other follows it."""
    storage.write_text(state / END, json.dumps({"batch": batch}) + "\n")


def end_of(state: Path) -> int | None:
    """Return the last batch of streams that have ended; None where they have not.

    Raises
    ------
    InputError
        If it cannot be read.
    """
    path = state / END
    if not path.exists():
        return None
    end = read_json(path)
    if not isinstance(end, dict) or not isinstance(end.get("batch"), int):
        raise InputError(f"{path}: does not say with which batch the streams have ended")
    return int(end["batch"])


def forget(state: Path, number: int) -> None:
    """Remove what was kept before a batch, and records that are no longer needed."""
    for path in state.glob("batch-*"):
        own = int(path.stem.removeprefix("batch-"))
        if path.is_dir() and own < number:
            shutil.rmtree(path, ignore_errors=True)
        elif path.suffix == ".json" and own <= number - RECORDS:
            path.unlink(missing_ok=True)


def read_kept(
    folder: Path,
    number: int,
    side: str,
    columns: tuple[str, ...],
    payload: pa.Schema | None = None,
) -> Tuples | None:
    """Read the tuples of a class, mapped into memory rather than copied; None without any."""
    path = _kept_path(folder, number, side)
    if not path.exists():
        return None
    with pa.memory_map(str(path)) as mapped:
        table = pa.ipc.open_file(mapped).read_all()
    first_pair_us = None
    if table.column_names[-1] == FIRST_PAIR:
        first_pair_us = table.column(FIRST_PAIR).to_numpy().copy()  # in which pairs are noted
        table = table.drop_columns([FIRST_PAIR])
    row, ts, *names = table.column_names
    own, more = names[: len(columns)], names[len(columns) :]
    carried = None
    if payload is not None:
        carried = pa.schema([table.schema.field(name) for name in more])
    tuples = tuples_of(table, row, ArrivalColumn(ts), own, side, payload=carried)
    return replace(renamed(tuples, columns, payload), first_pair_us=first_pair_us)


def write_kept(folder: Path, number: int, side: str, tuples: Tuples) -> None:
    """Write the tuples of a class, in arrival order; no file where there is none."""
    if not len(tuples.rows):
        return
    stream = tuples.stream
    arrays: list[Any] = [pa.array(tuples.rows), pa.array(stream.ts)]
    arrays += [_without_missing(column, stream.missing) for column in stream.columns.values()]
    arrays += [] if tuples.payload is None else tuples.payload.columns
    table = pa.table(arrays, names=[str(index) for index in range(len(arrays))])
    if tuples.first_pair_us is not None:
        table = table.append_column(FIRST_PAIR, pa.array(tuples.first_pair_us))
    with (
        pa.OSFile(str(_kept_path(folder, number, side)), "wb") as file,
        pa.ipc.new_file(file, table.schema) as writer,
    ):
        writer.write_table(table)


def _without_missing(column: Any, missing: NDArray[np.bool_] | None) -> Any:
    """Make an Arrow array of a column, null where a key is missing."""
    array: Any = pa.array(column)
    if missing is None or not missing.any():
        return array
    return pc.if_else(pa.array(missing), pa.scalar(None, array.type), array)


def _kept_path(folder: Path, number: int, side: str) -> Path:
    return folder / f"{number:05d}-{side}.arrow"


def merged(parts: Iterable[Tuples]) -> Tuples | None:
    """Put tuples together, in arrival order; None without any."""
    some = [part for part in parts if len(part.rows)]
    if len(some) < 2:
        return some[0] if some else None
    streams = [part.stream for part in some]
    ts = np.concatenate([stream.ts for stream in streams])
    rows = np.concatenate([part.rows for part in some])
    columns: dict[str, Any] = {
        name: np.concatenate([stream.columns[name] for stream in streams])
        for name in streams[0].columns
    }
    masks = [np.zeros(x.rows, np.bool_) if x.missing is None else x.missing for x in streams]
    missing = np.concatenate(masks)
    noted = [part.first_pair_us for part in some if part.first_pair_us is not None]
    first_pair_us = np.concatenate(noted) if noted else None
    tables = [part.payload for part in some if part.payload is not None]
    payload: Any = pa.concat_tables(tables).combine_chunks() if tables else None
    later, same = ts[1:] > ts[:-1], ts[1:] == ts[:-1]
    if not (later | (same & (rows[1:] > rows[:-1]))).all():
        order = np.lexsort((rows, ts))  # as what is kept is read again
        ts, rows = ts[order], rows[order]
        payload = None if payload is None else payload.take(pa.array(order))
        columns = {name: column[order] for name, column in columns.items()}
        missing = missing[order]
        first_pair_us = None if first_pair_us is None else first_pair_us[order]
    mask = missing if missing.any() else None
    return Tuples(
        Stream(columns, ts, streams[0].source, missing=mask), rows, payload, first_pair_us
    )


def classes_to(classes: Classes) -> dict[str, Any]:
    """Write classes down."""
    if isinstance(classes, Radix):
        return {"kind": "radix", "count": classes.count}
    if isinstance(classes, Ranges):
        term = classes.term
        return {"kind": "ranges", "term": term.text, "bounds": list(classes.bounds)}
    return {"kind": "one"}


def classes_from(plain: dict[str, Any], predicate: Predicate) -> Classes:
    """Read what :func:`classes_to` wrote."""
    if plain["kind"] == "radix":
        return Radix(predicate, int(plain["count"]))
    if plain["kind"] == "ranges":
        (term,) = (term for term in predicate.terms if term.text == plain["term"])
        assert isinstance(term, Band)
        return Ranges(term, tuple(plain["bounds"]))
    return OneClass()
