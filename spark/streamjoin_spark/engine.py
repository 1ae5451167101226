"""The engines ``spark`` and ``spark-sql``, as the host's catalog finds them by entry points.

An engine is given its input in memory. Before the clock starts it is written to Parquet files, in
parts, as a big input lies on disk; what is timed begins with reading them and ends when the pairs
are in Parquet files and have been read back. In a replay the files appear as their tuples arrive,
and a streaming query joins them; a window that never ends is joined when all have arrived. Inputs
beyond memory are joined by ``streamjoin spark-join`` or
:func:`~streamjoin_spark.batch.join.distributed_join`.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from streamjoin.engines.base import Capabilities, Engine, Knob, Report, without_numba
from streamjoin.engines.job import Job
from streamjoin.errors import UnavailableError
from streamjoin.inputs.conversion import check_known
from streamjoin.metrics import Meter
from streamjoin.tuples import Stream
from streamjoin_common.installed.checks import not_installed
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import AllWindow
from streamjoin_common.storage import TemporaryFolder
from streamjoin_spark.sql import ROW_COLUMN

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamjoin_datagen.session import Session
    from streamjoin_spark.replay import Feed, Follower

PART_ROWS = 1 << 20
ROW_GROUP_ROWS = 1 << 16


@dataclass(frozen=True)
class Written:
    """A job's input in files.

    Attributes
    ----------
    job : Job
        The job, its rows by their position.
    folder : TemporaryFolder
        Holds the files, and is removed with this object.
    feed : Feed or None
        Files that appear during a replay; None if the whole input lies in ``r`` and ``s``.
    """

    job: Job
    folder: TemporaryFolder
    feed: "Feed | None"


class SparkEngine(Engine):
    """A join on Spark of files that are written before it is measured."""

    capabilities: ClassVar[Capabilities] = Capabilities(
        predicates=frozenset({"equi", "band"}),
        windows=frozenset({"all", "tumbling", "time"}),
        order="none",
        platform="spark",
        parallel=True,
    )
    knobs: ClassVar[tuple[Knob, ...]] = (
        Knob("file_tuples", 100_000, "Tuples of both sides in files that appear at once.", 1),
        Knob("most_files", 0, "Maximum files of a side in a streaming batch; 0: all."),
        Knob(
            "session",
            "any",
            "any: one of every core; own: a session of just the threads asked for.",
            choices=("any", "own"),
        ),
    )

    def check(self, job: Job) -> None:
        """Refuse what is beyond the declared capabilities, and keys that Spark does not take."""
        super().check(job)
        check_known(job.r, job.s, job.predicate)

    def unusable(self) -> str | None:
        """Say so where PySpark or Java is missing."""
        if not find_spec("pyspark"):
            return not_installed("pyspark", needed_by="the engine spark")
        from streamjoin_datagen.errors import GenerationError
        from streamjoin_datagen.session.java import find_java

        try:
            find_java()
        except GenerationError as error:
            return str(error)
        return without_numba()

    def prepare(self, job: Job, report: Report) -> Written:
        """Start Spark if there is no session, and write the input."""
        self._session(job, report)
        temporary, written = TemporaryFolder("spark"), by_place(job)
        sides, feed = _sides(written), None
        if job.arrival == "replay" and job.tuples and not isinstance(job.window, AllWindow):
            from streamjoin_spark.replay import write_feed

            feed = write_feed(temporary.path, job, sides, int(job.knobs["file_tuples"]))
        else:
            for name, stream, columns in sides:
                write_stream(temporary.path / name, stream, columns)
        return Written(written, temporary, feed)

    def run(self, job: Job, prepared: Written, meter: Meter) -> None:
        """Join the files, and read the pairs back."""
        from streamjoin_datagen.errors import GenerationError

        folder, feed, job = prepared.folder.path, prepared.feed, prepared.job
        session = self._session(job, lambda _: None)
        try:
            if feed is not None:
                session.run(lambda: _explaining(lambda: self._replay(session, job, meter, feed)))
            else:
                meter.sleep_until_arrived(job)
                session.run(lambda: _explaining(lambda: self.join(session, folder, job, meter)))
                read_pairs(folder / "pairs", meter)
        except GenerationError as error:
            raise UnavailableError(str(error)) from error
        meter.progress(job.tuples, job.tuples)

    def _replay(self, session: "Session", job: Job, meter: Meter, feed: "Feed") -> None:
        from streamjoin_spark.replay import replay

        replay(job, meter, feed, self.follower(session, job))

    @abstractmethod
    def follower(self, session: "Session", job: Job) -> "Follower":
        """Return the streaming query of a job."""

    @staticmethod
    def _session(job: Job, report: Report) -> "Session":
        from streamjoin_datagen import session

        if not session.is_running():
            report("starting Spark")
        return session.shared_session(job.threads if job.knobs["session"] == "own" else None)

    @abstractmethod
    def join(self, session: "Session", folder: Path, job: Job, meter: Meter) -> None:
        """Join ``folder/r`` and ``folder/s`` into Parquet files in ``folder/pairs``."""


def _explaining(work: "Callable[[], None]") -> None:
    """Do something on Spark; what fails fails in a sentence."""
    from streamjoin_spark.batch.failures import explained

    try:
        work()
    except Exception as error:  # PySpark's and Py4J's classes have no common base
        raise explained(error) from error


class Spark(SparkEngine):
    """Compiled kernels inside Spark's workers: by slices of time, key classes and shares."""

    name: ClassVar[str] = "spark"
    knobs: ClassVar[tuple[Knob, ...]] = (
        *SparkEngine.knobs,
        Knob("partition_tuples", 1 << 21, "Tuples of both sides that a task should have.", 1),
        Knob(
            "path",
            "auto",
            "files: tasks read their part of the files; shuffle: Spark brings rows to tasks.",
            choices=("auto", "files", "shuffle"),
        ),
    )

    def prepare(self, job: Job, report: Report) -> Written:
        """Write the input, and load the kernels into Spark's workers."""
        from streamjoin_spark.batch.join import load_kernels

        written = super().prepare(job, report)
        session = self._session(job, report)
        session.run(lambda: load_kernels(session.spark))
        return written

    def join(self, session: "Session", folder: Path, job: Job, meter: Meter) -> None:
        """Plan and run the tasks."""
        from streamjoin_spark.batch.join import distributed_join

        planned = distributed_join(
            session.spark,
            folder / "r",
            folder / "s",
            on=job.predicate.on,
            band=job.predicate.band,
            window=job.window,
            path=str(job.knobs["path"]),
            partition_tuples=int(job.knobs["partition_tuples"]),
            slots=job.threads,
        )
        pairs = folder / "pairs"
        _emptied(pairs)
        for row in planned.reports(pairs):
            meter.spend("partition", row["read_ns"])
            meter.spend("probe", row["join_ns"])

    def follower(self, session: "Session", job: Job) -> "Follower":
        """Join the folders by :func:`stream_join_files`, a class for each thread."""
        from streamjoin_spark.replay import Follower
        from streamjoin_spark.streaming.query import stream_join_files

        def start(folder: Path) -> Any:
            return stream_join_files(
                session.spark,
                folder / "r",
                folder / "s",
                out=folder / "pairs",
                checkpoint=folder / "checkpoint",
                on=job.predicate.on,
                band=job.predicate.band,
                window=job.window,
                row=ROW_COLUMN,
                classes=job.threads,
                most_files=int(job.knobs["most_files"]) or None,
            ).start()

        return Follower(start, _batches)


def _batches(out: Path, known: set[str]) -> list[Path]:
    """Part files of batches that are done: their folders appear whole."""
    fresh = {path.name: path for path in out.glob("batch=*") if path.name not in known}
    known.update(fresh)
    return [part for path in fresh.values() for part in path.glob("*.parquet")]


def by_place(job: Job) -> Job:
    """Name a job's columns by their positions.

    The files have a row and an arrival column beside them, which join columns may be called as
    well, and to Spark's own plans names differ by more than upper and lower case.
    """
    sides = (job.r, job.predicate.r_columns), (job.s, job.predicate.s_columns)
    r_names, s_names = (
        {name: f"c{index}" for index, name in enumerate(names)} for _, names in sides
    )
    terms = [
        replace(term, r_column=r_names[term.r_column], s_column=s_names[term.s_column])
        for term in job.predicate.terms
    ]
    r, s = (
        replace(stream, columns={f"c{n}": stream.column(name) for n, name in enumerate(names)})
        for stream, names in sides
    )
    return replace(job, r=r, s=s, predicate=Predicate(tuple(terms)))


def _sides(job: Job) -> tuple[tuple[str, Stream, list[str]], ...]:
    return (
        ("r", job.r, job.predicate.r_columns),
        ("s", job.s, job.predicate.s_columns),
    )


def write_stream(folder: Path, stream: Stream, columns: list[str]) -> None:
    """Write a stream as a folder of Parquet files, with its row numbers."""
    import pyarrow.parquet as pq

    from streamjoin_spark.batch.parts import table_of

    folder.mkdir(parents=True, exist_ok=True)
    table = table_of(stream, columns)
    for part, first in enumerate(range(0, max(stream.rows, 1), PART_ROWS)):
        pq.write_table(
            table.slice(first, PART_ROWS),
            folder / f"part-{part:05d}.parquet",
            row_group_size=ROW_GROUP_ROWS,
            compression="none",
            use_dictionary=False,
            version="2.6",
        )


def _emptied(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for part in folder.iterdir():
        part.unlink()


def read_pairs(folder: Path, meter: Meter) -> None:
    """Read the part files of a result back and hand the pairs over."""
    import pyarrow.parquet as pq

    for part in sorted(folder.glob("*.parquet")):
        table = pq.read_table(part, columns=["r_row", "s_row"])
        meter.emit(table.column("r_row").to_numpy(), table.column("s_row").to_numpy())
