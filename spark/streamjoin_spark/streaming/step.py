"""One batch of a streaming join, class by class: what its tasks do, wherever they run."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streamjoin.errors import InputError
from streamjoin.inputs.agreement import comparable
from streamjoin.inputs.files import require_columns
from streamjoin.inputs.payload import written_out
from streamjoin.tuples import Int64s
from streamjoin_common.language.arrivals import ArrivalColumn
from streamjoin_common.language.kinds import R_ONLY
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import Window
from streamjoin_spark.batch.classes import Classes
from streamjoin_spark.batch.files import bounds_us, footer, hint_unit, reading
from streamjoin_spark.batch.frames import tuples_of
from streamjoin_spark.batch.local import join_rows
from streamjoin_spark.batch.matched import asked_sides
from streamjoin_spark.batch.partition import LAST_TIME
from streamjoin_spark.batch.parts import Batch, write_part
from streamjoin_spark.batch.rows import RowColumns, plain_schema, row_bytes, single_rows
from streamjoin_spark.batch.worker import Tuples, some_of
from streamjoin_spark.streaming.decided import decided, note, without_pairs
from streamjoin_spark.streaming.state import merged, read_kept, write_kept

SIDES = ("r", "s")

REPORT = "task long, pairs long, digest string, late long, kept long, r_last long, s_last long"
"""What a task says of a class, as Spark writes a schema."""

REPORT_SCHEMA = pa.schema(
    [
        (name, pa.string() if kind == "string" else pa.int64())
        for name, kind in (field.split() for field in REPORT.split(", "))
    ]
)


@dataclass(frozen=True)
class Step:
    """What is done with every class of a batch.

    Attributes
    ----------
    predicate, window
        What joins.
    classes : Classes
        How keys are classed.
    watermark_us : int
        Tuples behind it are late.
    names : tuple of tuple of str
        For R and for S: the row, the arrival and the join columns.
    before, after : Path
        Folders of the tuples kept before the batch and after it.
    out : Path
        Folder of its pairs.
    columns : RowColumns or None
        What joined rows have; None for row numbers.
    payload : tuple of pyarrow.Schema or None
        Columns of R and of S that joined rows have.
    how : str
        The kind of join.
    last_us : int
        The last arrival of streams that have ended, whose watermark is ``LAST_TIME``.
    """

    predicate: Predicate
    window: Window
    classes: Classes
    watermark_us: int
    names: tuple[tuple[str, ...], tuple[str, ...]]
    before: Path
    after: Path
    out: Path
    columns: RowColumns | None = None
    payload: tuple[pa.Schema | None, pa.Schema | None] = (None, None)
    how: str = "inner"
    last_us: int = LAST_TIME

    def classed(self, r: Tuples, s: Tuples) -> tuple["Classed", "Classed"]:
        """Class new tuples of R and of S."""
        return (
            Classed(r, *self.classes.of(r.stream, of_r=True)),
            Classed(s, *self.classes.of(s.stream, of_r=False)),
        )

    def run(self, number: int, sides: "tuple[Classed, Classed] | None" = None) -> dict[str, Any]:
        """Join a class's new tuples, write its rows and what it keeps, and report.

        Without new tuples both streams have ended, and what is kept is decided.
        """
        late = 0
        lasts: list[int | None] = [None, None]
        known: list[tuple[Tuples | None, Tuples | None]] = []
        for index, side in enumerate(SIDES):
            new = None
            if sides is not None:
                behind, new = sides[index].of(number, self.watermark_us)
                if side in asked_sides(self.how):
                    new = replace(new, first_pair_us=without_pairs(len(new.rows)))
                late += behind
                ts = sides[index].tuples.stream.ts
                lasts[index] = int(ts[-1]) if len(ts) else None
            known.append((self._kept(number, index), new))
        (r_old, r_new), (s_old, s_new) = known
        meeting = ((r_new, s_old), (r_new, s_new), (r_old, s_new))
        batches = (batch for r, s in meeting for batch in self._joined(r, s))
        parts = [write_part(self.out, f"part-{number:05d}.parquet", batches)]
        kept = 0
        for index, side in enumerate(SIDES):
            both = merged(tuples for tuples in known[index] if tuples is not None)
            if both is None:
                continue
            rows, waiting = self._decided(number, index, both)
            parts.append(write_part(self.out, f"part-{number:05d}-{side}.parquet", rows))
            kept += len(waiting.rows)
            write_kept(self.after, number, side, waiting)
        return {
            "task": number,
            "pairs": sum(part.pairs for part in parts),
            "digest": f"{sum(part.digest for part in parts) % (1 << 64):016x}",
            "late": late,
            "kept": kept,
            "r_last": lasts[0],
            "s_last": lasts[1],
        }

    def _kept(self, number: int, index: int) -> Tuples | None:
        """Read what the batch before kept of a class and a side."""
        names, payload = self.names[index][2:], self.payload[index]
        return read_kept(self.before, number, SIDES[index], names, payload)

    def _joined(self, r: Tuples | None, s: Tuples | None) -> Iterator[Batch]:
        """Join, and note for kinds that ask for it which tuples are in a pair."""
        if r is None or s is None:
            return
        (r_all, r_at_all, r), (s_all, s_at_all, s) = (_with_keys(tuples) for tuples in (r, s))
        if not len(r.rows) or not len(s.rows):
            return
        r_stream, s_stream = comparable(r.stream, s.stream, self.predicate)
        sizes = [] if self.columns is None else [row_bytes(x.payload, len(x.rows)) for x in (r, s)]
        for r_at, s_at in join_rows(r_stream, s_stream, self.predicate, self.window):
            ts = np.maximum(r_stream.ts[r_at], s_stream.ts[s_at])
            note(r_all, r_at if r_at_all is None else r_at_all[r_at], ts)
            note(s_all, s_at if s_at_all is None else s_at_all[s_at], ts)
            if self.how in R_ONLY:
                continue
            batch = Batch(r.rows[r_at], s.rows[s_at], ts)
            if self.columns is None:
                yield batch
            else:
                sides = (r.payload, sizes[0], r_at), (s.payload, sizes[1], s_at)
                yield from self.columns.joined(batch, *sides)

    def _decided(self, number: int, index: int, tuples: Tuples) -> tuple[Iterator[Batch], Tuples]:
        """Return the rows of a side's tuples that the watermark decides, and what is kept."""
        of_r = index == 0
        rows, ts, kept = decided(
            tuples,
            of_r,
            self.how,
            window=self.window,
            watermark_us=self.watermark_us,
            last_us=self.last_us,
        )
        waiting = tuples if kept.all() else some_of(tuples, kept)
        if not rows.any():
            return iter(()), waiting
        single, ts = some_of(tuples, rows), ts[rows]
        if not of_r:
            own = self._without_partner_elsewhere(number, single)
            single, ts = some_of(single, own), ts[own]
        return single_rows(SIDES[index], single.rows, ts, single.payload, self.columns), waiting

    def _without_partner_elsewhere(self, number: int, s: Tuples) -> Any:
        """Mark those of S that are this class's to report: in no pair of their other classes.

        A tuple of S is reported by the first of its classes. Its window has ended, so whatever pair
        it is in was complete in an earlier batch, and lies in what that batch kept.
        """
        first, last = self.classes.of(s.stream, of_r=False)
        own = first == number
        if s.stream.missing is not None:  # in one class, by values that are kept no more
            own |= s.stream.missing
        for other in range(number + 1, int(last[own].max(initial=number)) + 1):
            there = self._kept(other, 1)
            if there is not None and there.first_pair_us is not None:
                with_pair = there.rows[there.first_pair_us < LAST_TIME]
                own &= ~np.isin(s.rows, with_pair)
        return own


def _with_keys(tuples: Tuples) -> tuple[Tuples, Int64s | None, Tuples]:
    """Return tuples, the indices of those that lack no key (None for all), and these alone."""
    missing = tuples.stream.missing
    if missing is None:
        return tuples, None, tuples
    return tuples, np.flatnonzero(~missing), some_of(tuples, ~missing)


@dataclass(frozen=True)
class Classed:
    """Tuples of a side with the first and last class of each."""

    tuples: Tuples
    first: Any
    last: Any

    def of(self, number: int, watermark_us: int) -> tuple[int, Tuples]:
        """Return how many tuples of a class are late, and those that are not.

        A tuple of several classes is late in the first of them.
        """
        stream = self.tuples.stream
        own = (self.first <= number) & (number <= self.last)
        behind = stream.ts < watermark_us
        late = int(np.count_nonzero(behind & (self.first == number)))
        return late, some_of(self.tuples, own & ~behind)


@dataclass(frozen=True)
class SideFiles:
    """Files of one side.

    Attributes
    ----------
    side : str
        ``"r"`` or ``"s"``.
    names : tuple of str
        The row, the arrival and the join columns.
    schema : pyarrow.Schema
        Their types, and those of the columns that joined rows have.
    arrival : ArrivalColumn
        The arrival column.
    payload : pyarrow.Schema or None
        The columns that joined rows have, in the types that these have; None without any.
    paths : tuple of str
        The files; there may be none.
    """

    side: str
    names: tuple[str, ...]
    schema: pa.Schema
    arrival: ArrivalColumn
    payload: pa.Schema | None
    paths: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """Rows of all files, as their footers say."""
        return sum(footer(path).num_rows for path in self.paths)

    def read(self) -> Tuples:
        """Read the files.

        Raises
        ------
        InputError
            If one cannot be read, or lacks a column, or has it in another type.
        """
        tables = [self.schema.empty_table()]
        for path in self.paths:
            table = self._table(path)
            if [(f.name, f.type) for f in table.schema] != [(f.name, f.type) for f in self.schema]:
                raise InputError(f"{path}: its columns have other types than the files before it")
            tables.append(table.cast(self.schema))
        row, _, *columns = self.names
        table = pa.concat_tables(tables)
        if self.payload is not None:
            table = written_out(table, dictionaries=True)
        return tuples_of(table, row, self.arrival, columns, self.side, payload=self.payload)

    def _table(self, path: str) -> pa.Table:
        names = self.schema.names
        with reading(path), pq.ParquetFile(path, page_checksum_verification=True) as file:
            require_columns(file.schema_arrow.names, names, None, path)
            return file.read(columns=names, use_threads=False).select(names)


def first_file(folder: Path, side: str) -> Path:
    """Return the file of a folder that gives the columns.

    Raises
    ------
    InputError
        If there is none.
    """
    # Files that are being written have hidden names; Spark does not see them either.
    shown = [path for path in folder.glob("*.parquet") if path.name[0] not in "._"]
    first = min((path for path in shown if path.is_file()), default=None)
    if first is None:
        raise InputError(f"--{side} {folder}: must be a folder with at least one Parquet file")
    return first


def open_side(
    first: Path,
    side: str,
    names: tuple[str, ...],
    arrival: ArrivalColumn,
    payload: Sequence[str] = (),
) -> SideFiles:
    """Learn the types of a folder's columns from its first file.

    Parameters
    ----------
    first : Path
        The file.
    side : str
        ``"r"`` or ``"s"``.
    names : tuple of str
        The row, the arrival and the join columns.
    arrival : ArrivalColumn
        The arrival column.
    payload : sequence of str
        The columns that joined rows have.

    Raises
    ------
    InputError
        If it cannot be read, or a column cannot be joined on.
    """
    schema = footer(first).schema.to_arrow_schema()
    row, ts, *columns = names
    require_columns(schema.names, [*columns, *payload], arrival, str(first))
    if row not in schema.names or not pa.types.is_integer(schema.field(row).type):
        raise InputError(f"{first}: needs a column {row!r} of integers that number its rows")
    # Of a field its name and type: others of the folder may say that it may be missing, or not.
    every = dict.fromkeys([*names, *payload])
    wanted = pa.schema([(name, schema.field(name).type) for name in every])
    kept = plain_schema(pa.schema([wanted.field(n) for n in payload])) if payload else None
    files = SideFiles(side, names, wanted, arrival, kept)
    files.read()
    with reading(first), pq.ParquetFile(first) as file:
        if file.metadata.num_rows and file.metadata.row_group(0).num_rows:
            ends = bounds_us(first, file, 0, arrival)
            hint_unit(arrival, wanted.field(ts).type, ends, str(first))
    return files
