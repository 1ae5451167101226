"""Rows of one tuple: without a partner, or with one (semi).

Ranges of rows are held against the row numbers that the tasks noted: whoever is in no task's is
without a partner. A range of files reads of each task's numbers only its own part; rows of a
DataFrame are joined with the numbers by Spark. Nothing is collected in the driver.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from streamjoin.inputs.columns import arrow_arrivals
from streamjoin.metrics import Meter
from streamjoin.tuples import Int64s
from streamjoin_common.language.arrivals import ArrivalColumn
from streamjoin_spark.batch.files import StreamFiles
from streamjoin_spark.batch.frames import StreamFrame, tables_of
from streamjoin_spark.batch.matched import read_matched
from streamjoin_spark.batch.partition import LAST_TIME, Partitioning, ends_us
from streamjoin_spark.batch.parts import Batch
from streamjoin_spark.batch.rows import RowColumns, recast, single_rows
from streamjoin_spark.batch.worker import REPORT_SPARK, prepare_worker, report

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

RANGE_ROWS = 1 << 20
"""Rows of a range, about: consecutive row groups are put together."""


@dataclass(frozen=True)
class Lone:
    """Rows of one tuple: without a partner, or with one (semi).

    Attributes
    ----------
    how : str
        The kind of join.
    side : str
        ``"r"`` or ``"s"``.
    partitioning : Partitioning
        The join's tasks.
    last_us : int
        The last arrival of the input.
    columns : RowColumns or None
        What the rows have; None for row numbers.
    folder : Path
        Folder of the result while it is written.
    """

    how: str
    side: str
    partitioning: Partitioning
    last_us: int
    columns: RowColumns | None
    folder: Path

    def moments_us(self, ts: Int64s) -> Int64s:
        """When it is decided that tuples have no partner: at the latest when the input ends."""
        ends = ends_us(ts, self.side == "r", self.partitioning.window)
        return np.minimum(ends, self.last_us)

    def rows(self, rows: Int64s, ts: Int64s, payload: pa.Table | None) -> Iterator[Batch]:
        """Make rows of a result."""
        return single_rows(self.side, rows, ts, payload, self.columns)

    def of_blocks(self, files: StreamFiles, first: int, end: int) -> Iterator[Batch]:
        """Hold blocks ``first`` to below ``end`` of files against what the tasks noted."""
        first_rows = files.blocks.first_rows
        firsts = self._firsts(files, first, end)
        for block in range(first, end):
            row, to = (int(x) for x in first_rows[block : block + 2])
            own = firsts[row - first_rows[first] : to - first_rows[first]]
            wanted = np.flatnonzero((own != LAST_TIME) == (self.how == "semi"))
            if not len(wanted):
                continue
            ts = own if self.how == "semi" else self.moments_us(files.arrivals(block))
            payload = None if self.columns is None else files.rows_of(wanted + row)
            yield from self.rows(wanted + row, ts[wanted], payload)

    def _firsts(self, files: StreamFiles, first: int, end: int) -> Int64s:
        """When each row's first pair was complete, ``LAST_TIME`` for a row that is in none."""
        blocks = files.blocks
        from_row, to_row = int(blocks.first_rows[first]), int(blocks.first_rows[end])
        firsts = np.full(to_row - from_row, LAST_TIME, dtype=np.int64)
        bounds_us = int(blocks.first_us[first]), int(blocks.last_us[end - 1])
        for number in self.partitioning.numbers_between(*bounds_us, of_r=self.side == "r"):
            table = read_matched(self.folder, number, self.side)
            if table is not None:
                rows = table.column("row").to_numpy()
                own = slice(*np.searchsorted(rows, [from_row, to_row]).tolist())
                at = rows[own] - from_row
                firsts[at] = np.minimum(firsts[at], table.column("ts").to_numpy()[own])
        return firsts


def ranges_of(files: StreamFiles) -> list[tuple[int, int]]:
    """First block of each range of rows, and the one after its last."""
    first_rows = files.blocks.first_rows
    found, first, count = [], 0, len(first_rows) - 1
    while first < count:
        end = int(np.searchsorted(first_rows, first_rows[first] + RANGE_ROWS, side="right")) - 1
        found.append((first, max(end, first + 1)))
        first = found[-1][1]
    return found


def lone_of_files(
    spark: "SparkSession",
    lone: Lone,
    files: StreamFiles,
    number: int,
    parts: Callable[[int], int],
) -> tuple["DataFrame", int]:
    """Write such rows of files, a part file for each range of rows from that number on.

    Returns
    -------
    frame : DataFrame
        What the workers report, when it is collected.
    count : int
        How many numbers it takes.
    """
    ranges = ranges_of(files)

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        prepare_worker()
        for batch in batches:
            for index in batch.column(0).to_numpy().tolist():
                rows = lone.of_blocks(files, *ranges[index])
                yield report(number + index, rows, lone.folder, Meter())

    numbered = spark.range(0, len(ranges), 1, parts(len(ranges)))
    return numbered.mapInArrow(work, REPORT_SPARK), len(ranges)


def lone_of_frame(
    spark: "SparkSession", lone: Lone, side: StreamFrame, number: int
) -> tuple["DataFrame", int]:
    """Write such rows of a DataFrame, as :func:`lone_of_files`; Spark joins the row numbers."""
    from pyspark.sql import functions

    folder, own = lone.folder, lone.side
    tasks = len(lone.partitioning)

    def noted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for task in batch.column(0).to_numpy().tolist():
                table = read_matched(folder, task, own)
                if table is not None:
                    yield from table.rename_columns(["matched", "first"]).to_batches()

    parts = min(tasks, 4 * spark.sparkContext.defaultParallelism)
    matched = spark.range(0, tasks, 1, parts).mapInArrow(noted, "matched long, first long")
    rows = side.selected
    if lone.how == "semi":
        firsts = matched.groupBy("matched").agg(functions.min("first").alias("first"))
        kept = rows.join(firsts, rows["c0"] == firsts["matched"]).drop("matched")
    else:
        kept = rows.join(matched, rows["c0"] == matched["matched"], "left_anti")

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        prepare_worker()
        context = TaskContext.get()
        assert context is not None
        rows = _of_tables(lone, named, tables_of(batches))
        yield report(number + context.partitionId(), rows, folder, Meter())

    named = (side.names, side.arrival, side.payload, side.source)
    return kept.repartition(parts).mapInArrow(work, REPORT_SPARK), parts


def _of_tables(
    lone: Lone,
    named: tuple[list[str], ArrivalColumn | None, pa.Schema | None, str],
    tables: Iterator[pa.Table],
) -> Iterator[Batch]:
    """Make rows of a result of a DataFrame's rows."""
    names, arrival, payload, source = named
    for own in tables:
        table = own.rename_columns([*names, *own.column_names[len(names) :]])
        rows = np.asarray(table.column(0).to_numpy()).astype(np.int64, copy=False)
        if lone.how == "semi":
            ts = table.column(len(names)).to_numpy()
        elif arrival is None:
            ts = lone.moments_us(np.zeros(len(rows), dtype=np.int64))
        else:
            column = table.column(arrival.name)
            ts = lone.moments_us(arrow_arrivals(pa, column, arrival.name, source, arrival.unit))
        yield from lone.rows(rows, ts, None if payload is None else recast(table, payload))
