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
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import AllWindow
from streamjoin_spark.batch.files import StreamFiles
from streamjoin_spark.batch.local import join_rows
from streamjoin_spark.batch.partition import Partitioning, Task
from streamjoin_spark.batch.parts import SCHEMA, Batch, gathered, write_part

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
    """Some tuples of a side, with their row numbers in the whole input."""

    stream: Stream
    rows: Int64s


@dataclass(frozen=True)
class Join:
    """What every task of a join needs to know."""

    predicate: Predicate
    partitioning: Partitioning

    def pairs(self, task: Task, r: Tuples, s: Tuples, meter: Meter) -> Iterator[Batch]:
        """Join the tuples of a task."""
        if not len(r.rows) or not len(s.rows):
            return
        r_stream, s_stream = comparable(r.stream, s.stream, self.predicate)
        window = self.partitioning.window
        matches = join_rows(r_stream, s_stream, self.predicate, window, task.from_us)
        while True:
            with meter.phase("probe"):
                some = next(matches, None)
                if some is None:
                    return
                r_at, s_at = some
                ts = np.maximum(r_stream.ts[r_at], s_stream.ts[s_at])
                batch = r.rows[r_at], s.rows[s_at], ts
            yield batch


@dataclass(frozen=True)
class FileJoin(Join):
    """A join whose tasks read their own part of the files."""

    r: StreamFiles
    s: StreamFiles

    def run(self, number: int, meter: Meter) -> Iterator[Batch]:
        """Read a task's tuples and join them."""
        task = self.partitioning.task(number)
        with meter.phase("partition"):
            s = self.tuples(task, of_r=False)
            r = self.tuples(task, of_r=True) if len(s.rows) else s
        yield from self.pairs(task, r, s, meter)

    def tuples(self, task: Task, of_r: bool) -> Tuples:
        """Read one side's tuples of a task."""
        files = self.r if of_r else self.s
        stream, first_row = files.read(*self.partitioning.arrivals(task, of_r))
        rows = np.arange(first_row, first_row + stream.rows)
        kept = self.partitioning.keeps(task, stream, rows, of_r)
        return Tuples(stream, rows) if kept is None else some_of(stream, rows, kept)


def some_of(stream: Stream, rows: Int64s, kept: Any) -> Tuples:
    """Take rows of a stream, by mask or indices."""
    columns = {name: column[kept] for name, column in stream.columns.items()}
    missing = None if stream.missing is None else stream.missing[kept]
    return Tuples(Stream(columns, stream.ts[kept], stream.source, missing=missing), rows[kept])


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
    """Hand pairs over to Spark."""
    for batch in gathered(batches):
        yield pa.RecordBatch.from_arrays([pa.array(c) for c in batch], schema=SCHEMA)
