"""Spark jobs that write workloads.

A job's rows are tasks, one a part file. A worker builds its part block by block with NumPy,
writes the file itself and hands back one manifest row, so no tuple passes through Java, and
how Spark splits the tasks changes nothing about the files.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from streamjoin_common.language.windows import AllWindow, TumblingWindow, parse_window
from streamjoin_common.storage import system_reason, without_drafts
from streamjoin_datagen.errors import SpecError
from streamjoin_datagen.pairs import window_pairs
from streamjoin_datagen.rows.arrivals import Poisson
from streamjoin_datagen.session import Session
from streamjoin_datagen.session.tasks import Manifest, Progress, run_tasks
from streamjoin_datagen.spec import WorkloadSpec
from streamjoin_datagen.store import (
    BLOCK_ROWS,
    PART_ROWS,
    STREAMS,
    Outcome,
    identity,
    part_ranges,
    read_column,
    staged,
    stream_entry,
    write_description,
    write_part,
)
from streamjoin_datagen.tables import build, schema

COUNTED_ROWS = 1 << 27
"""Maximum rows of a workload whose pairs this process counts itself; Spark counts those of more."""

MAX_PAIRS = 1e9
"""Maximum expected pairs of a workload, unless the user insists."""

BYTES_A_PAIR = 8
"""Bytes of a pair in a result: two 32-bit row numbers."""


@dataclass(frozen=True)
class Task:
    """One part of one stream.

    ``start_ns`` is the time of the row before ``first_row`` where arrivals are Poisson.
    """

    stream: str
    path: str
    first_row: int
    row_count: int
    start_ns: int = 0

    @property
    def blocks(self) -> Iterator[tuple[int, int]]:
        """First row and row count of each row group."""
        end = self.first_row + self.row_count
        for first_row in range(self.first_row, end, BLOCK_ROWS):
            yield first_row, min(BLOCK_ROWS, end - first_row)


def known(spec: WorkloadSpec, name: str | None = None) -> dict[str, Any]:
    """What ``workload.json`` says of a spec before its rows are made."""
    return identity(
        name or spec.name,
        spec.kind,
        params=spec.params,
        seed=None if spec.seedless else spec.seed,
        predicate=spec.predicate,
        window=spec.window_text,
    )


def check_size(spec: WorkloadSpec) -> None:
    """Refuse a workload of which the result would be very large.

    Raises
    ------
    SpecError
        Naming the pairs to be expected and their size.
    """
    pairs = spec.estimated_pairs() or 0.0
    if pairs > MAX_PAIRS:
        raise SpecError(
            f"{spec.name} would have about {pairs:.2g} pairs, a result of "
            f"{pairs * BYTES_A_PAIR / 1e9:,.0f} GB and above {MAX_PAIRS:g} pairs: give --yes if "
            "that is meant"
        )


def generate(
    spec: WorkloadSpec,
    out: Path,
    session: Session,
    *,
    name: str | None = None,
    partitions: int | None = None,
    part_rows: int = PART_ROWS,
    count: bool = True,
    progress: Progress | None = None,
) -> Outcome:
    """Write a workload; the same bytes whatever ``partitions`` and the session's threads.

    Parameters
    ----------
    spec : WorkloadSpec
        What to write.
    out : Path
        Folder that appears whole at the end and replaces an earlier workload.
    session : Session
        Where the jobs run.
    name : str, optional
        Name of the workload, made from its parameters by default.
    partitions : int, optional
        Spark partitions, four a thread by default.
    part_rows : int
        Rows of a part file.
    count : bool
        Whether to count the pairs of an equi-join, which reads the files again.
    progress : callable, optional
        Is called with the parts done and the number of parts, now and then.

    Raises
    ------
    SpecError
        If ``out`` holds something that is not a workload, or a program is missing.
    GenerationError
        If a worker could not write its part or the job ended before it was done.
    """
    started = time.monotonic()
    missing = spec.missing()
    if missing:
        raise SpecError(missing)
    tasks = [
        Task(stream, *part)
        for stream in STREAMS
        for part in part_ranges(stream, spec.rows(stream), spec.part_rows(stream, part_rows))
    ]
    partitions = partitions or 4 * session.threads
    with staged(out) as folder:
        tasks = _with_start_times(session, spec, tasks, partitions)
        # Made here: a worker that outlives the job must not bring a removed folder back.
        for task in tasks:
            (folder / task.path).parent.mkdir(exist_ok=True)
        rows = run_tasks(
            session,
            len(tasks),
            partitions,
            _writer(spec, tasks, folder),
            parts=[folder / task.path for task in tasks],
            progress=progress,
        )
        streams = {}
        for stream in STREAMS:
            both = zip(tasks, rows, strict=True)
            size = sum(row["bytes"] for task, row in both if task.stream == stream)
            streams[stream] = stream_entry(stream, schema(spec, stream), spec.rows(stream), size)
        described = known(spec, name)
        write_description(
            folder,
            described,
            streams,
            _counted(spec, folder, session) if count else None,
            session.java_version,
            estimated_pairs=spec.estimated_pairs(),
        )
    return Outcome(
        workload=described["name"],
        status="generated",
        folder=out,
        rows=sum(spec.rows(stream) for stream in STREAMS),
        bytes=sum(entry["bytes"] for entry in streams.values()),
        seconds=time.monotonic() - started,
        worker_cpu_s=sum(row["cpu_s"] for row in rows),
    )


def _counted(spec: WorkloadSpec, folder: Path, session: Session) -> tuple[str, int] | None:
    """Count the pairs of an equi-join: under its own window where that is all or tumbling."""
    if spec.counted_key is None:
        return None
    window = spec.window_text
    if not isinstance(parse_window(window), AllWindow | TumblingWindow):
        window = "all"
    if sum(spec.rows(stream) for stream in STREAMS) > COUNTED_ROWS:
        return window, spark_pairs(session, folder, spec.counted_key, window)
    keys = [read_column(folder, stream, spec.counted_key) for stream in STREAMS]
    times = [read_column(folder, stream, "ts") for stream in STREAMS] if window != "all" else None
    return window, window_pairs(keys, times, window, spec.key_domain)


def spark_pairs(session: Session, folder: Path, key: str, window: str) -> int:
    """Count an equi-join's pairs with Spark, of files that one process should not hold.

    Parameters
    ----------
    key : str
        Column of both streams.
    window : str
        ``all`` or a tumbling window.
    """
    chosen = parse_window(window)
    number = f"ts div {chosen.length_us}L" if isinstance(chosen, TumblingWindow) else "0L"

    def counted() -> int:
        sides = [
            session.spark.read.parquet((folder / f"{stream}.parquet").absolute().as_uri())
            .selectExpr(f"{key} as key", f"{number} as number")
            .groupBy("key", "number")
            .agg({"*": "count"})
            .withColumnRenamed("count(1)", f"{stream}_rows")
            for stream in STREAMS
        ]
        met = sides[0].join(sides[1], on=["key", "number"])
        total = met.selectExpr("sum(cast(r_rows as decimal(19, 0)) * s_rows)").collect()[0][0]
        return int(total or 0)

    return session.run(counted)


def _writer(spec: WorkloadSpec, tasks: Sequence[Task], folder: Path) -> Manifest:
    def write(index: int) -> dict[str, Any]:
        task, started = tasks[index], time.process_time()
        try:
            size = write_part(folder / task.path, schema(spec, task.stream), blocks(task))
        except OSError as error:
            path = without_drafts(str(folder / task.path))
            return {"task": index, "error": f"{path}: {system_reason(error)}"}
        return {"task": index, "bytes": size, "cpu_s": time.process_time() - started}

    def blocks(task: Task) -> Iterator[pa.Table]:
        start_ns = task.start_ns
        for first_row, row_count in task.blocks:
            yield build(spec, task.stream, first_row, row_count, start_ns)
            start_ns += _gaps_ns(spec, task.stream, first_row, row_count)

    return write


def _gaps_ns(spec: WorkloadSpec, stream: str, first_row: int, row_count: int) -> int:
    """Sum of the Poisson gaps of a range of rows; 0 where arrivals are of another kind."""
    timing = spec.timing(stream)
    return int(timing.gaps_ns(first_row, row_count).sum()) if isinstance(timing, Poisson) else 0


def _with_start_times(
    session: Session, spec: WorkloadSpec, tasks: list[Task], partitions: int
) -> list[Task]:
    """Sum the Poisson gaps of every part, and set the start of each part."""
    if not any(isinstance(spec.timing(stream), Poisson) for stream in STREAMS):
        return tasks

    def summed(index: int) -> dict[str, Any]:
        task = tasks[index]
        total = sum(_gaps_ns(spec, task.stream, *block) for block in task.blocks)
        return {"task": index, "gaps_ns": total}

    sums = run_tasks(session, len(tasks), partitions, summed)
    started, now_ns = [], dict.fromkeys(STREAMS, 0)
    for task, row in zip(tasks, sums, strict=True):
        part = (task.path, task.first_row, task.row_count)
        started.append(Task(task.stream, *part, start_ns=now_ns[task.stream]))
        now_ns[task.stream] += row["gaps_ns"]
    return started
