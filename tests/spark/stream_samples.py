"""What the tests of streaming joins share: streams in files, queries, and what they gave."""

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.spark.samples import Row, pairs_of

from streamjoin.tuples import Pairs, Stream
from streamjoin_datagen.session import Session
from streamjoin_spark.streaming import query
from streamjoin_spark.streaming.batches import StreamingJoin
from streamjoin_spark.streaming.query import stream_join, stream_join_files
from streamjoin_spark.streaming.source import ArrivedFiles
from streamjoin_spark.streaming.state import FOLDER, last_record

ROWS, FILES, START_US = 600, 4, 1_000_000


DEADLINE_S = 300


def streams(seed: int, rows: int = ROWS) -> tuple[Stream, Stream]:
    rng = np.random.default_rng(seed)
    found = []
    for side in ("r", "s"):
        ts = np.sort(rng.integers(START_US, START_US + rows, rows))
        columns = {"k": rng.integers(0, 30, rows).astype(np.int32)}
        columns["f"] = rng.uniform(-9, 9, rows).astype(np.float32)
        columns["f"][rng.random(rows) < 0.1] = np.nan
        found.append(Stream(columns, ts, side))
    return found[0], found[1]


def write(folder: Path, stream: Stream, files: int = FILES, seed: int = 0) -> Path:
    """Write a stream as files whose rows lie in any order, each older than the next."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    for number, rows in enumerate(np.array_split(np.arange(stream.rows), files)):
        shuffled = rng.permutation(rows)
        columns = {name: column[shuffled] for name, column in stream.columns.items()}
        path = folder / f"part-{number:03d}.parquet"
        pq.write_table(pa.table({"row": shuffled, "ts": stream.ts[shuffled], **columns}), path)
        os.utime(path, (1000 + number, 1000 + number))  # Spark takes the oldest first
    return folder


def reader(session: Session, folder: Path) -> Any:
    schema = "row long, ts long, k int, f float"
    read = session.spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    return read.parquet(str(folder))


def run(session: Session, folder: Path, path: str = "files", **how: Any) -> dict[str, object]:
    how = {
        "delay_us": 0,
        "classes": 3,
        "out": folder / "pairs",
        "checkpoint": folder / "checkpoint",
        **how,
    }
    r, s = folder / "r", folder / "s"
    if path == "files":
        writer = stream_join_files(session.spark, r, s, most_files=1, **how)
    else:
        writer = stream_join(reader(session, r), reader(session, s), **how)
    running = writer.trigger(availableNow=True).start()
    assert running.awaitTermination(DEADLINE_S)
    return last_record(folder / "checkpoint" / FOLDER)


def found(folder: Path) -> Pairs:
    return pairs_of(pq.read_table(folder / "pairs"))


HERE: Any = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=2))
"""A session: small batches are joined by the driver's own threads."""


def here(
    folder: Path,
    into: Path,
    files: Callable[[Path, int], list[Path]],
    *,
    delay_us: int = 0,
    **asked: Any,
) -> StreamingJoin:
    """The join of folders without Spark: ``process(number, number)`` takes the files of a batch."""
    r, s, where = folder / "r", folder / "s", (into / "pairs", into / "checkpoint")
    out, checkpoint = where
    asked = {**query._DEFAULTS, **asked}
    what, sides = query.opened_folders(r, s, out=out, checkpoint=checkpoint, **asked)
    join = query._joined(what, query.Folders(None, r, s, sides, None), where, delay_us, 3)

    def arrived(number: Any) -> ArrivedFiles:
        own = (map(str, files(side, number)) for side in (r, s))
        taken = [replace(x, paths=tuple(o)) for x, o in zip(sides, own, strict=True)]
        return ArrivedFiles(HERE, taken[0], taken[1])

    return replace(join, arrived=arrived)


def run_here(folder: Path, **asked: Any) -> dict[str, object]:
    """As :func:`run`, without Spark: a file of each side in a batch, in the order of the names."""
    names = [sorted((folder / side).glob("*.parquet")) for side in ("r", "s")]
    join = here(folder, folder, lambda side, n: names["rs".index(side.name)][n : n + 1], **asked)
    for number in range(max(map(len, names))):
        named: Any = number
        join.process(named, number)
    return last_record(join.state)


def rows_of_batches(out: Path) -> Iterator[tuple[int, Row]]:
    """The rows of a stream's result, each with its batch."""
    for path in sorted(out.glob("batch=*/part-*.parquet")):
        table = pq.ParquetFile(path).read()
        assert table.column_names == ["r_row", "s_row", "ts"]
        for row in zip(*(c.fill_null(-1).to_pylist() for c in table.columns), strict=True):
            yield int(path.parent.name.removeprefix("batch=")), row
