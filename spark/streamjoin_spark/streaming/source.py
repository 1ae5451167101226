"""What a batch brings to a streaming join: the names of files, or rows.

Of folders Spark lists names alone: it decides which files are a batch's, once and for all,
and the tuples never pass through the JVM. A small batch is then joined by the driver itself, a
larger one by the workers, each reading the files for its classes. Rows of other sources are
sent to the workers of their classes by Spark's shuffle.
"""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from streamjoin_common.language.windows import AllWindow
from streamjoin_spark.batch.failures import collected
from streamjoin_spark.batch.frames import StreamFrame, quoted, received
from streamjoin_spark.batch.partition import Partitioning
from streamjoin_spark.batch.plan import Side
from streamjoin_spark.batch.worker import Tuples, prepare_worker
from streamjoin_spark.streaming.step import REPORT, REPORT_SCHEMA, SIDES, SideFiles, Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DRIVER_TUPLES = 1 << 20
"""A batch of files is joined by the driver if it and what is kept have no more tuples: a job of
the workers takes longer to start."""

_SPECIAL = re.compile(r"[\\{}\[\]*?]")
"""Characters of a folder's name that Spark would take for a pattern."""

_FILE = "path string, modificationTime timestamp, length long, content binary"
"""What Spark makes of a file; the content is not read unless it is selected."""

BEAT = 2
"""Side of what is sent to every class, so that all take part; R is 0, S is 1."""


class Arrived(Protocol):
    """What a batch brought."""

    def sides(self) -> list[Side]:
        """Count and sample both streams for the choice of classes."""

    def run(self, step: Step, kept: int) -> list[dict[str, Any]]:
        """Do every class of a batch, where so many tuples are kept; return what is reported."""


@dataclass(frozen=True)
class Folders:
    """Two folders into which files are moved.

    Attributes
    ----------
    spark : pyspark.sql.SparkSession or None
        Where the workers are; None where nothing is to be read.
    r, s : Path
        The folders.
    sides : tuple of SideFiles
        What is in them.
    most_files : int or None
        Maximum files of each side in a batch.
    """

    spark: "SparkSession | None"
    r: Path
    s: Path
    sides: tuple[SideFiles, SideFiles]
    most_files: int | None

    @property
    def payload(self) -> tuple[pa.Schema | None, pa.Schema | None]:
        """Columns of R and of S that joined rows have."""
        return self.sides[0].payload, self.sides[1].payload

    def stream(self) -> "DataFrame":
        """Return the names of files as they appear: ``side, path``."""
        from pyspark.sql import functions

        assert self.spark is not None
        frames = []
        for side_number, folder in enumerate((self.r, self.s)):
            reader = self.spark.readStream.format("binaryFile").schema(_FILE)
            reader = reader.option("pathGlobFilter", "*.parquet")
            if self.most_files is not None:
                reader = reader.option("maxFilesPerTrigger", self.most_files)
            files = reader.load(_SPECIAL.sub(r"\\\g<0>", str(folder.absolute())))
            frames.append(files.select(functions.lit(side_number).alias("side"), "path"))
        return frames[0].unionByName(frames[1])

    def arrived(self, batch: "DataFrame") -> Arrived:
        """Take a batch of names."""
        assert self.spark is not None
        rows = [(row["side"], row["path"].removeprefix("file:")) for row in collected(batch)]
        r, s = (
            replace(side, paths=tuple(sorted(path for own, path in rows if own == side_number)))
            for side_number, side in enumerate(self.sides)
        )
        return ArrivedFiles(self.spark, r, s)


@dataclass(frozen=True)
class ArrivedFiles:
    """Files of a batch."""

    spark: "SparkSession"
    r: SideFiles
    s: SideFiles

    def sides(self) -> list[Side]:
        """Read them."""
        return [
            Side(len(tuples.rows), tuples.stream.ts, tuples.stream)
            for tuples in (self.r.read(), self.s.read())
        ]

    def run(self, step: Step, kept: int) -> list[dict[str, Any]]:
        """Join in this process, or in workers that each read the files for some classes."""
        r, s, count = self.r, self.s, step.classes.count
        slots = int(self.spark.sparkContext.defaultParallelism)
        if max(r.rows + s.rows, kept) <= DRIVER_TUPLES:
            sides = step.classed(r.read(), s.read())
            with ThreadPoolExecutor(min(slots, count)) as threads:
                return [*threads.map(lambda number: step.run(number, sides), range(count))]
        tasks = min(slots, count)

        def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            prepare_worker()
            sides = step.classed(r.read(), s.read())
            for batch in batches:
                for task in batch.column(0).to_numpy().tolist():
                    rows = [step.run(number, sides) for number in range(task, count, tasks)]
                    yield pa.RecordBatch.from_pylist(rows, schema=REPORT_SCHEMA)

        numbered = self.spark.range(0, tasks, 1, tasks)
        return [row.asDict() for row in collected(numbered.mapInArrow(work, REPORT))]


@dataclass(frozen=True)
class Rows:
    """Two streaming DataFrames."""

    r: StreamFrame
    s: StreamFrame

    @property
    def payload(self) -> tuple[pa.Schema | None, pa.Schema | None]:
        """Columns of R and of S that joined rows have."""
        return self.r.payload, self.s.payload

    def stream(self) -> "DataFrame":
        """Return the rows of both, each with its side's columns."""
        from pyspark.sql import functions

        frames = [
            side.frame.select(
                functions.lit(side_number).alias("side"),
                *(side.frame[quoted(name)].alias(f"{side.source}_{name}") for name in side.names),
            )
            for side_number, side in enumerate((self.r, self.s))
        ]
        return frames[0].unionByName(frames[1], allowMissingColumns=True)

    def arrived(self, batch: "DataFrame") -> Arrived:
        """Take a batch of rows."""
        frames = [
            StreamFrame(
                side.source,
                batch.where(f"side = {side_number}").select(
                    *(batch[quoted(f"{side.source}_{name}")].alias(name) for name in side.names)
                ),
                side.row_column,
                side.arrival,
                side.columns,
                side.payload,
            )
            for side_number, side in enumerate((self.r, self.s))
        ]
        return ArrivedRows(frames[0], frames[1])


@dataclass(frozen=True)
class ArrivedRows:
    """Rows of a batch."""

    r: StreamFrame
    s: StreamFrame

    def sides(self) -> list[Side]:
        """Count and sample them."""
        return [self.r.side(), self.s.side()]

    def run(self, step: Step, kept: int) -> list[dict[str, Any]]:
        """Send every row to the workers of its classes."""
        from pyspark.sql import functions

        count = step.classes.count
        ones = (1,) * count
        partitioning = Partitioning(AllWindow(), (), step.classes, ones, ones)
        frames = []
        for side_number, side in enumerate((self.r, self.s)):
            sent = side.sent(partitioning, of_r=side_number == 0)
            names = {
                f"{kind}{n}": f"{side.source}{kind}{n}"
                for kind, columns in (("c", side.columns), ("p", side.payload or ()))
                for n in range(len(columns))
            }
            frames.append(
                sent.withColumnsRenamed(names).withColumn("side", functions.lit(side_number))
            )
        beats = self.r.frame.sparkSession.range(count).select(
            functions.col("id").alias("task"), functions.lit(BEAT).alias("side")
        )
        every = frames[0].unionByName(frames[1], True).unionByName(beats, True)
        sides = (self.r.columns, self.r.payload), (self.s.columns, self.s.payload)

        def work(table: pa.Table) -> pa.Table:
            prepare_worker()
            number = int(table.column("task").to_numpy()[0])
            r, s = (
                _side(table, side_number, side, own)
                for side_number, (side, own) in enumerate(zip(SIDES, sides, strict=True))
            )
            row = step.run(number, step.classed(r, s))
            return pa.Table.from_pylist([row], schema=REPORT_SCHEMA)

        grouped = every.repartition(count, "task").groupBy("task")
        return [row.asDict() for row in collected(grouped.applyInArrow(work, REPORT))]


def _side(
    table: pa.Table,
    side_number: int,
    side: str,
    named: tuple[tuple[str, ...], pa.Schema | None],
) -> Tuples:
    columns, payload = named
    own = table.filter(pc.field("side") == side_number)
    names = ["task", "row", "ts", "missing", *(f"{side}c{n}" for n in range(len(columns)))]
    names += [f"{side}p{n}" for n in range(len(payload or ()))]
    return received(own.select(names), columns, side, payload)
