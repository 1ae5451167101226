"""A replay on Spark: files appear in two folders as their tuples arrive, and a query joins them.

The files of both sides are cut at the same arrival times. A file is linked into its folder when
its last tuple has arrived, and a pair is there when the query has made its file visible; a match's
latency is the time between, from the later tuple's file on.
"""

import contextlib
import os
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq

from streamjoin.engines.job import Job
from streamjoin.metrics import Meter, arrival_clock_us
from streamjoin.tuples import Int64s
from streamjoin_common.language.windows import TumblingWindow
from streamjoin_spark.batch.parts import table_of

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

LOOK_S = 0.005
"""Seconds between two looks for results."""

WATCH_DEADLINE_S = 60.0
FIRST_US = 1_000_000
"""Arrivals begin at this time or a window later: Spark drops what arrives at its epoch as late."""


@dataclass(frozen=True)
class Feed:
    """Files that are waiting to appear.

    Attributes
    ----------
    folder : Path
        Holds ``r`` and ``s``, each with the files in order of their names, the first without rows.
    last_us : ndarray of int64, shape (files,)
        Arrival of the last tuple of each file but the first.
    shift_us : int
        What the files' arrival times are ahead of the job's.
    """

    folder: Path
    last_us: Int64s
    shift_us: int


@dataclass(frozen=True)
class Follower:
    """A query that follows folders.

    Attributes
    ----------
    start : callable
        Starts it on a folder with ``r`` and ``s`` in it; it writes to ``pairs`` there.
    visible : callable
        Returns the part files in ``pairs`` that the query has finished, but those known already.
    """

    start: "Callable[[Path], StreamingQuery]"
    visible: Callable[[Path, set[str]], list[Path]]


def write_feed(folder: Path, job: Job, sides: Any, file_tuples: int) -> Feed:
    """Cut a job's input into files of so many tuples of both sides.

    Parameters
    ----------
    folder : Path
        Where they wait.
    sides : sequence of (str, Stream, list of str)
        Name, tuples and columns of R and of S.
    file_tuples : int
        Tuples of both sides in files that appear at the same time; those of one arrival time
        stay together.
    """
    ts = np.sort(np.concatenate([job.r.ts, job.s.ts]))
    last_us = np.unique(np.append(ts[file_tuples - 1 :: file_tuples], ts[-1:]))
    length_us = job.window.length_us if isinstance(job.window, TumblingWindow) else 1
    shift_us = -((job.start_us - FIRST_US) // length_us) * length_us
    for name, stream, columns in sides:
        (folder / name).mkdir(parents=True)
        table = table_of(stream, columns, shift_us)
        bounds = [0, 0, *np.searchsorted(stream.ts, last_us, side="right").tolist()]
        for number in range(len(bounds) - 1):
            path = folder / name / f"part-{number:05d}.parquet"
            some = table.slice(bounds[number], bounds[number + 1] - bounds[number])
            pq.write_table(some, path, compression="none", use_dictionary=False)
            os.utime(path, (number, number))  # Spark takes the oldest first
    return Feed(folder, last_us, shift_us)


def replay(job: Job, meter: Meter, feed: Feed, follower: Follower) -> None:
    """Let the files appear at their times, and emit the query's pairs."""
    meter.latency_from = "file"
    folder = feed.folder / "run"
    shutil.rmtree(folder, ignore_errors=True)
    for side in ("r", "s"):
        (folder / side).mkdir(parents=True)
    _appear(feed, folder, 0)
    out = folder / "pairs"
    seen: list[tuple[float, Path]] = []
    known: set[str] = set()
    ended = threading.Event()

    def look() -> None:
        for path in follower.visible(out, known):
            seen.append((meter.now_us(), path))

    def watch() -> None:
        while not ended.wait(LOOK_S):
            with contextlib.suppress(FileNotFoundError):  # the query makes and moves folders
                look()

    query = follower.start(folder)
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    appeared_us = np.empty(len(feed.last_us))
    try:
        for number, due_us in enumerate(arrival_clock_us(feed.last_us, job.start_us, job.speedup)):
            meter.sleep_until_us(float(due_us))
            _appear(feed, folder, number + 1)
            appeared_us[number] = meter.now_us()
        query.processAllAvailable()
    finally:
        ended.set()
        watcher.join(WATCH_DEADLINE_S)
        query.stop()
    look()
    for produced_us, path in seen:
        table = pq.read_table(path, columns=["r_row", "s_row", "ts"])
        ts = table.column("ts").to_numpy() - feed.shift_us
        appeared_at_us = appeared_us[np.searchsorted(feed.last_us, ts)]
        meter.emit(
            table.column("r_row").to_numpy(),
            table.column("s_row").to_numpy(),
            np.full(len(ts), produced_us),
            produced_us - appeared_at_us,
        )


def _appear(feed: Feed, folder: Path, number: int) -> None:
    for side in ("r", "s"):
        name = f"part-{number:05d}.parquet"
        os.link(feed.folder / side / name, folder / side / name)
