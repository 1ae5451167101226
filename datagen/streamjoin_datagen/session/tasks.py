"""Numbered tasks on Spark: run by its workers, watched, ended at a deadline.

A worker hands back one row a task, so no tuple passes through Java.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from streamjoin_datagen.errors import GenerationError
from streamjoin_datagen.session.spark import Session

JOB_DEADLINE_S = 3600.0

_POLL_S = 0.2


Progress = Callable[[int, int], None]
"""Is called with the number of parts done and of all parts."""


Manifest = Callable[[int], dict[str, Any]]

_MANIFEST = "task long, bytes long, gaps_ns long, cpu_s double, error string"

_MANIFEST_FIELDS: dict[str, pa.DataType] = {
    "task": pa.int64(),
    "bytes": pa.int64(),
    "gaps_ns": pa.int64(),
    "cpu_s": pa.float64(),
    "error": pa.string(),
}


def run_tasks(
    session: Session,
    tasks: int,
    partitions: int,
    function: Manifest,
    *,
    parts: Sequence[Path] = (),
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Call a function for every task number on Spark.

    Parameters
    ----------
    tasks, partitions : int
        How many tasks there are, and how many Spark partitions they are dealt to.
    function : callable
        Does the task of a number in a worker; returns the fields of its row.
    parts : sequence of Path
        Files that appear as tasks are done, for the progress.
    progress : callable, optional
        Is called with the parts that are there and their number.

    Returns
    -------
    list of dict
        The rows, in the order of the tasks.

    Raises
    ------
    GenerationError
        If a part could not be written, the job failed or did not end within its deadline.
    """

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        schema = pa.schema(_MANIFEST_FIELDS)
        for batch in batches:
            for index in batch.column(0).to_numpy(zero_copy_only=False):
                row = {**dict.fromkeys(schema.names), **function(int(index))}
                yield pa.RecordBatch.from_pylist([row], schema=schema)

    def collect() -> list[Any]:
        numbers = session.spark.range(0, tasks, 1, min(partitions, tasks))
        return numbers.mapInArrow(work, _MANIFEST).collect()

    with _watched(session, parts, progress) as expired:
        try:
            collected = session.run(collect)
        except Exception as error:  # PySpark's and Py4J's classes have no common base
            if expired.is_set():
                raise GenerationError(
                    f"the Spark job did not end within {JOB_DEADLINE_S:g} s"
                ) from error
            said = [line for line in str(error).splitlines() if "Error" in line] or [str(error)]
            raise GenerationError(f"the Spark job failed: {said[-1].strip()}") from error
    rows = {row["task"]: row.asDict() for row in collected}
    failed = next((row["error"] for row in rows.values() if row["error"]), None)
    if failed:
        raise GenerationError(f"a part could not be written: {failed}")
    return [rows[index] for index in range(tasks)]


@contextlib.contextmanager
def _watched(
    session: Session, parts: Sequence[Path], progress: Progress | None
) -> Iterator[threading.Event]:
    """Report the parts that are there while a job runs, and end it at its deadline."""
    done, expired = threading.Event(), threading.Event()
    until = time.monotonic() + JOB_DEADLINE_S

    def show() -> None:
        if parts and progress:
            progress(sum(part.exists() for part in parts), len(parts))

    def watch() -> None:
        while not done.wait(_POLL_S):
            show()
            if time.monotonic() > until:
                expired.set()
                session.spark.sparkContext.cancelAllJobs()
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield expired
    finally:
        done.set()
        watcher.join(timeout=_POLL_S * 10)
        show()
