"""What a Spark worker does: read its task's tuples, join them, hand over or write the pairs."""

import functools
import gc
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from streamjoin.inputs.agreement import comparable
from streamjoin.metrics import Meter
from streamjoin.tuples import Int64s, Stream
from streamjoin_common.language.kinds import R_ONLY
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import AllWindow
from streamjoin_spark.batch.files import StreamFiles
from streamjoin_spark.batch.local import join_rows
from streamjoin_spark.batch.matched import Noted
from streamjoin_spark.batch.partition import Partitioning, Task
from streamjoin_spark.batch.parts import Batch, gathered, write_part
from streamjoin_spark.batch.rows import RowColumns, row_bytes

REPORT_FIELDS: dict[str, pa.DataType] = {
    "task": pa.int64(),
    "name": pa.string(),
    "pairs": pa.int64(),
    "bytes": pa.int64(),
    "digest": pa.string(),
    "read_ns": pa.int64(),
    "join_ns": pa.int64(),
}
REPORT_SCHEMA = pa.schema(REPORT_FIELDS)
REPORT_SPARK = (
    "task long, name string, pairs long, bytes long, digest string, read_ns long, join_ns long"
)


@functools.cache
def load() -> None:
    """Load the kernels: joins of one tuple compile them, or find them in the cache."""
    one = Stream({"k": np.zeros(1, np.int32)}, np.zeros(1, np.int64), "one")
    for predicate in (Predicate.parse(on="k"), Predicate.parse(band="k=k:1:1")):
        assert sum(len(r_rows) for r_rows, _ in join_rows(one, one, predicate, AllWindow())) == 1


@functools.cache
def prepare_worker() -> None:
    """Load the kernels into a worker's process, and exempt them from garbage collection.

    Spark's workers collect garbage after every task, which would visit all of Numba's and
    Arrow's objects each time, a tenth of a second.
    """
    load()
    gc.collect()
    gc.freeze()


@dataclass(frozen=True)
class Tuples:
    """Some tuples of a side, with their row numbers in the whole input.

    Attributes
    ----------
    stream : Stream
        Their arrival times and join columns.
    rows : ndarray of int64
        Their row numbers.
    payload : pyarrow.Table or None
        Their columns that joined rows have, if there are any and they are at hand.
    first_pair_us : ndarray of int64 or None
        When the first pair of each was complete, ``LAST_TIME`` where there is none; None where the
        kind of join does not ask.
    """

    stream: Stream
    rows: Int64s
    payload: pa.Table | None = None
    first_pair_us: Int64s | None = None


@dataclass(frozen=True)
class Join:
    """What every task of a join needs to know.

    Attributes
    ----------
    predicate : Predicate
        What joins.
    partitioning : Partitioning
        The tasks.
    how : str
        The kind of join. Tasks give the pairs that it has, and note which tuples are in one.
    columns : RowColumns or None
        What joined rows have; None for row numbers.
    """

    predicate: Predicate
    partitioning: Partitioning
    how: str
    columns: RowColumns | None

    def payload(self, tuples: Tuples, of_r: bool) -> pa.Table | None:
        """Return the columns of tuples that joined rows have."""
        return tuples.payload

    def pairs(
        self, task: Task, r: Tuples, s: Tuples, meter: Meter, noted: Noted | None = None
    ) -> Iterator[Batch]:
        """Join the tuples of a task; note those that are in a pair."""
        if not len(r.rows) or not len(s.rows):
            return
        sides: list[tuple[pa.Table | None, Int64s]] = []
        if noted is not None:
            noted.begin(len(r.rows), len(s.rows))
        r_stream, s_stream = comparable(r.stream, s.stream, self.predicate)
        window = self.partitioning.window
        matches = join_rows(r_stream, s_stream, self.predicate, window, task.from_us)
        while True:
            with meter.phase("probe"):
                some = next(matches, None)
                if some is None:
                    break
                r_at, s_at = some
                ts = np.maximum(r_stream.ts[r_at], s_stream.ts[s_at])
                if noted is not None:
                    noted.note(r_at, s_at, ts)
                if self.how in R_ONLY or not len(ts):
                    continue
                batch = Batch(r.rows[r_at], s.rows[s_at], ts)
            if self.columns is None:
                yield batch
                continue
            if not sides:
                with meter.phase("partition"):
                    for side, of_r in ((r, True), (s, False)):
                        payload = self.payload(side, of_r)
                        sides.append((payload, row_bytes(payload, len(side.rows))))
            yield from self.columns.joined(batch, (*sides[0], r_at), (*sides[1], s_at))
        if noted is not None:
            noted.write(r.rows, s.rows)


@dataclass(frozen=True)
class FileJoin(Join):
    """A join whose tasks read their own part of the files."""

    r: StreamFiles
    s: StreamFiles

    def run(self, number: int, meter: Meter, noted: Noted | None = None) -> Iterator[Batch]:
        """Read a task's tuples and join them."""
        task = self.partitioning.task(number)
        with meter.phase("partition"):
            s = self.tuples(task, of_r=False)
            r = self.tuples(task, of_r=True) if len(s.rows) else s
        yield from self.pairs(task, r, s, meter, noted)

    def payload(self, tuples: Tuples, of_r: bool) -> pa.Table | None:
        """Read the columns of tuples that joined rows have."""
        return (self.r if of_r else self.s).rows_of(tuples.rows)

    def tuples(self, task: Task, of_r: bool) -> Tuples:
        """Read one side's tuples of a task."""
        files = self.r if of_r else self.s
        stream, first_row = files.read(*self.partitioning.arrivals(task, of_r))
        rows = np.arange(first_row, first_row + stream.rows)
        kept = self.partitioning.keeps(task, stream, rows, of_r)
        tuples = Tuples(stream, rows)
        return tuples if kept is None else some_of(tuples, kept)


def some_of(tuples: Tuples, kept: Any) -> Tuples:
    """Take some tuples, by a mask."""
    stream, payload = tuples.stream, tuples.payload
    columns = {name: column[kept] for name, column in stream.columns.items()}
    missing = None if stream.missing is None else stream.missing[kept]
    own = Stream(columns, stream.ts[kept], stream.source, missing=missing)
    if payload is not None:
        payload = payload.filter(pa.array(kept))
    first = tuples.first_pair_us
    return Tuples(own, tuples.rows[kept], payload, None if first is None else first[kept])


def report(number: int, batches: Iterator[Batch], folder: Path, meter: Meter) -> pa.RecordBatch:
    """Write a task's pairs as a part file, and say so in one row."""
    part = write_part(folder, f"part-{number:05d}.parquet", batches)
    spent = meter.phase_ns
    row = {
        "task": number,
        "name": part.name,
        "pairs": part.pairs,
        "bytes": part.bytes,
        "digest": f"{part.digest:016x}",
        "read_ns": spent["partition"],
        "join_ns": spent["probe"],
    }
    return pa.RecordBatch.from_pylist([row], schema=REPORT_SCHEMA)


def as_batches(batches: Iterator[Batch]) -> Iterator[pa.RecordBatch]:
    """Hand rows over to Spark."""
    for batch in gathered(batches):
        yield from batch.table().combine_chunks().to_batches()
