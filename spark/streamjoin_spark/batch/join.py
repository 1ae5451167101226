"""Joins on Spark: the driver's part."""

import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from streamjoin.errors import UnsupportedError
from streamjoin.inputs.agreement import comparable_on_spark
from streamjoin.metrics import Meter
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import Window
from streamjoin_spark.batch.failures import collected
from streamjoin_spark.batch.files import StreamFiles
from streamjoin_spark.batch.frames import StreamFrame, kinds_sent, received, sent_files
from streamjoin_spark.batch.inputs import Inputs, opened_inputs, side_of
from streamjoin_spark.batch.lone import Lone, lone_of_files, lone_of_frame
from streamjoin_spark.batch.matched import FOLDER as MATCHED
from streamjoin_spark.batch.matched import Noted, asked_sides
from streamjoin_spark.batch.partition import Partitioning
from streamjoin_spark.batch.parts import SCHEMA, Batch, Part, staged, write_manifest
from streamjoin_spark.batch.plan import PARTITION_TUPLES, Side, plan
from streamjoin_spark.batch.rows import RowColumns, spark_schema
from streamjoin_spark.batch.worker import (
    REPORT_SCHEMA,
    REPORT_SPARK,
    FileJoin,
    Join,
    as_batches,
    prepare_worker,
    report,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

TASKS_A_PARTITION = 8
"""Tasks of a Spark partition, which are repeated together after a lost worker, in joins of many."""

MAX_READS = 8
"""Maximum times that tasks read a byte of the files; beyond it Spark's shuffle brings the rows,
unless it has no type for a column."""


@dataclass(frozen=True)
class SparkJoin:
    """A join that is planned and not yet done.

    Attributes
    ----------
    spark : pyspark.sql.SparkSession
        Where it runs.
    predicate, window
        What joins.
    partitioning : Partitioning
        Its tasks.
    path : str
        ``"files"``: each task reads its part of the files; ``"shuffle"``: Spark's shuffle brings
        the rows to the tasks.
    r, s : StreamFiles or StreamFrame
        The inputs.
    slots : int
        Tasks that may run at the same time.
    how : str
        The kind of join.
    columns : RowColumns or None
        What joined rows have; None for row numbers.
    """

    spark: "SparkSession"
    predicate: Predicate
    window: Window
    partitioning: Partitioning
    path: str
    r: StreamFiles | StreamFrame
    s: StreamFiles | StreamFrame
    slots: int
    how: str = "inner"
    columns: RowColumns | None = None

    @property
    def schema(self) -> pa.Schema:
        """Columns of the result."""
        return SCHEMA if self.columns is None else self.columns.schema

    def frame(self) -> "DataFrame":
        """Return the result as a DataFrame: ``r_row, s_row, ts``, or the columns asked for.

        Nothing runs until it is used.

        Raises
        ------
        UnsupportedError
            If the join is not an inner one.
        InputError
            If Spark has no type for a column.
        """
        if self.how != "inner":
            raise UnsupportedError(
                f"frame() gives inner joins, not {self.how}: write(DIR), then "
                "spark.read.parquet(DIR)"
            )
        kinds = spark_schema(self.schema)
        if self.path == "files":
            join = self._file_join()

            def find(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
                for number in _numbers(batches):
                    yield from as_batches(join.run(number, Meter()))

            return self._numbered().mapInArrow(find, kinds)
        sent, schema = self._sent_join(), self.schema

        def find_sent(r: pa.Table, s: pa.Table) -> pa.Table:
            _, pairs = sent.run(r, s, Meter())
            return pa.Table.from_batches(list(as_batches(pairs)), schema=schema)

        return self._cogrouped(find_sent, kinds)

    def write(
        self, out: Path, about: Mapping[str, Any] | None = None, *, force: bool = False
    ) -> dict[str, Any]:
        """Write the pairs as part files and a manifest, whole or not at all.

        Parameters
        ----------
        out : Path
            A folder that every worker can reach under this name.
        about : mapping, optional
            What the manifest is to say besides.
        force : bool
            Whether an earlier result in that folder is replaced.

        Returns
        -------
        dict
            The manifest.

        Raises
        ------
        InputError
            If the input is not what it must be or ``out`` cannot be written.
        EngineError
            If the job failed.
        """
        with staged(Path(out), force=force) as folder:
            parts = [
                Part(row["name"], row["pairs"], row["bytes"], int(row["digest"], 16))
                for row in self.reports(folder)
            ]
            described = {
                "predicate": self.predicate.text,
                "window": self.window.text,
                "r": self.r.source,
                "s": self.s.source,
                "how": self.how,
                "path": self.path,
                "tasks": len(self.partitioning),
            }
            if self.columns is not None:
                described["columns"] = self.columns.schema.names
            shutil.rmtree(folder / MATCHED, ignore_errors=True)
            return write_manifest(folder, parts, {**described, **(about or {})}, self.schema)

    def reports(self, folder: Path) -> list[dict[str, Any]]:
        """Let the workers write their parts into a folder that is there; return what they say.

        Raises
        ------
        InputError, EngineError
            As :meth:`write`.
        """
        folder, how = folder.absolute(), self.how
        sides = asked_sides(how)
        if sides:
            (folder / MATCHED).mkdir()
        if self.path == "files":
            join = self._file_join()

            def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
                for number in _numbers(batches):
                    meter, noted = Meter(), Noted(how, folder, number) if sides else None
                    yield report(number, join.run(number, meter, noted), folder, meter)

            frame = self._numbered().mapInArrow(work, REPORT_SPARK)
        else:
            sent = self._sent_join()

            def work_sent(r: pa.Table, s: pa.Table) -> pa.Table:
                meter = Meter()
                number, pairs = sent.run(r, s, meter, folder if sides else None)
                rows = [report(number, pairs, folder, meter)] if number >= 0 else []
                return pa.Table.from_batches(rows, schema=REPORT_SCHEMA)

            frame = self._cogrouped(work_sent, REPORT_SPARK)
        reports = [row.asDict() for row in collected(frame)]
        if sides:
            reports += self._lone(folder)
        return sorted(reports, key=lambda row: int(row["task"]))

    def _lone(self, folder: Path) -> list[dict[str, Any]]:
        """Write the rows of single tuples, when all tasks have noted which are in a pair."""
        lasts = [side.last_us() for side in (self.r, self.s)]
        last_us = max((last for last in lasts if last is not None), default=0)
        number, reports = len(self.partitioning), []
        for side in asked_sides(self.how):
            stream = self.r if side == "r" else self.s
            lone = Lone(self.how, side, self.partitioning, last_us, self.columns, folder)
            if isinstance(stream, StreamFiles):
                frame, count = lone_of_files(self.spark, lone, stream, number, self._parts)
            else:
                frame, count = lone_of_frame(self.spark, lone, stream, number)
            number += count
            reports += [row.asDict() for row in collected(frame)]
        return reports

    def _file_join(self) -> FileJoin:
        assert isinstance(self.r, StreamFiles)
        assert isinstance(self.s, StreamFiles)
        return FileJoin(self.predicate, self.partitioning, self.how, self.columns, self.r, self.s)

    def _sent_join(self) -> "SentJoin":
        named = ((side.columns, side.payload) for side in (self.r, self.s))
        return SentJoin(self.predicate, self.partitioning, self.how, self.columns, *named)

    def _numbered(self) -> "DataFrame":
        """Task numbers, each a Spark task where the session has the slots that were asked for."""
        tasks = len(self.partitioning)
        return self.spark.range(0, tasks, 1, self._parts(tasks))

    def _parts(self, tasks: int) -> int:
        """Spark partitions for so many tasks: a partition costs some ten milliseconds itself.

        Never more at a time than the slots that were asked for, where the session has others.
        """
        if self.slots < self.spark.sparkContext.defaultParallelism:
            return max(1, min(tasks, self.slots))
        return max(1, min(tasks, max(4 * self.slots, tasks // TASKS_A_PARTITION)))

    def _cogrouped(self, task: Callable[..., pa.Table], schema: "StructType | str") -> "DataFrame":
        sides = []
        for side, of_r in ((self.r, True), (self.s, False)):
            if isinstance(side, StreamFrame):
                sides.append(side.sent(self.partitioning, of_r))
            else:
                parts = self._parts(len(side.blocks.groups))
                sides.append(sent_files(self.spark, side, self.partitioning, of_r, parts))
        parts = self._parts(len(self.partitioning))
        r, s = (side.repartition(parts, "task").groupBy("task") for side in sides)
        return r.cogroup(s).applyInArrow(task, schema)


@dataclass(frozen=True)
class SentJoin(Join):
    """A join whose tasks are given their tuples by Spark's shuffle."""

    r_names: tuple[tuple[str, ...], pa.Schema | None]
    s_names: tuple[tuple[str, ...], pa.Schema | None]

    def run(
        self, r: pa.Table, s: pa.Table, meter: Meter, folder: Path | None = None
    ) -> tuple[int, Iterator[Batch]]:
        """Join what was sent to a task; return the task's number, -1 without pairs, and them."""
        prepare_worker()
        if not r.num_rows or not s.num_rows:
            return -1, iter(())
        number = int(r.column("task").to_numpy()[0])
        with meter.phase("partition"):
            columns, payload = self.r_names
            r_tuples = received(r, columns, "r", payload)
            columns, payload = self.s_names
            s_tuples = received(s, columns, "s", payload)
        noted = None if folder is None else Noted(self.how, folder, number)
        task = self.partitioning.task(number)
        return number, self.pairs(task, r_tuples, s_tuples, meter, noted)


def load_kernels(spark: "SparkSession") -> None:
    """Compile the kernels, or load them from the cache, in the workers there are."""
    parts = 2 * spark.sparkContext.defaultParallelism
    frame = spark.range(0, parts, 1, parts)
    collected(frame.mapInArrow(lambda batches: (batches, prepare_worker())[0], "id long"))


def _numbers(batches: Iterator[pa.RecordBatch]) -> Iterator[int]:
    prepare_worker()
    for batch in batches:
        yield from batch.column(0).to_numpy().tolist()


def distributed_join(
    spark: "SparkSession",
    r: Any,
    s: Any,
    *,
    on: str | list[str] | None = None,
    band: str | list[str] | None = None,
    window: Window | str = "all",
    ts: str | None = None,
    ts_unit: str | None = None,
    row: str = "row",
    path: str = "auto",
    partition_tuples: int = PARTITION_TUPLES,
    slots: int | None = None,
    how: str = "inner",
    columns: str | Sequence[str] | None = None,
) -> SparkJoin:
    """Plan a join on Spark; the pairs are those of :func:`streamjoin.join`.

    Parameters
    ----------
    spark : pyspark.sql.SparkSession
        Where it runs.
    r, s : path or DataFrame
        Parquet file or folder, or a pattern, in arrival order; or a DataFrame with row numbers.
    on, band : str or list of str, optional
        The predicate, as :func:`streamjoin.join` takes it.
    window : Window or str
        ``all``, ``tumbling:DUR`` or ``time:DUR[,DUR]``.
    ts, ts_unit : str, optional
        The arrival columns and the unit of integers, as :func:`streamjoin.join` takes them.
    row : str
        A DataFrame's column of row numbers.
    path : str
        ``"auto"``, or ``"files"`` or ``"shuffle"`` (:class:`SparkJoin`).
    partition_tuples : int
        Tuples that a task should have.
    slots : int, optional
        Tasks that may run at the same time; what Spark has by default.
    how : str
        ``inner``, ``left``, ``right``, ``full``, ``semi`` or ``anti``.
    columns : str or sequence of str, optional
        Columns of joined rows, as ``"r.a,s.b"`` or ``"*"``; row numbers and time by default.

    Raises
    ------
    InputError
        If input or options are not what they must be, in one sentence.
    UnsupportedError
        If the window is a count window or the path does not go with the input.
    """
    inputs = opened_inputs(
        r,
        s,
        on=on,
        band=band,
        window=window,
        ts=ts,
        ts_unit=ts_unit,
        row=row,
        path=path,
        per_task=partition_tuples,
        how=how,
        columns=columns,
    )
    return planned(spark, inputs, slots)


def planned(spark: "SparkSession", inputs: Inputs, slots: int | None = None) -> SparkJoin:
    """Plan the join of inputs that are open; see :func:`distributed_join`."""
    predicate, path, opened = inputs.predicate, inputs.path, inputs.opened
    all_files = all(isinstance(side, StreamFiles) for side in opened)
    if path == "files" and not all_files:
        raise UnsupportedError("path files reads Parquet files: give paths, or choose shuffle")
    sides = [side_of(side) for side in opened]
    if sides[0].sample.rows and sides[1].sample.rows:
        # Refused here rather than by a worker; the plan compares the sides' samples too.
        samples = comparable_on_spark(sides[0].sample, sides[1].sample, predicate)
        sides = [Side(x.rows, x.times_us, y) for x, y in zip(sides, samples, strict=True)]
    slots = slots or spark.sparkContext.defaultParallelism
    how = {"slots": slots, "partition_tuples": inputs.partition_tuples}
    parts = plan(sides[0], sides[1], predicate, inputs.window, **how)
    if path == "auto":
        columns = [column for side in sides for column in side.sample.columns.values()]
        few = reads(parts) <= MAX_READS or any(column.dtype == np.uint64 for column in columns)
        path = "files" if all_files and (few or not _can_send(opened)) else "shuffle"
    return SparkJoin(
        spark, predicate, inputs.window, parts, path, *opened, slots, inputs.how, inputs.columns
    )


def _can_send(opened: Iterable[StreamFiles | StreamFrame]) -> bool:
    """Whether Spark's shuffle carries the columns of joined rows."""
    try:
        return all(kinds_sent(side.payload, side.source) is not None for side in opened)
    except UnsupportedError:
        return False


def reads(partitioning: Partitioning) -> float:
    """How often a byte of the files is read if every task reads its slice."""
    return float(partitioning.tasks_a_slice)
