"""Spark's own join of streams of the same meaning: what a replay of ``spark`` is held against.

Both sides have a watermark without delay, and the window is a condition on their times, so that
Spark forgets what has left it. State lies in as many partitions as there are threads.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlparse

from streamjoin.engines.job import Job
from streamjoin_common.language.predicates import Equi
from streamjoin_common.language.windows import TimeWindow, TumblingWindow
from streamjoin_spark.sql import sided, windowed, with_terms

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

PARTITIONS = "spark.sql.shuffle.partitions"
STATE = "spark.sql.streaming.stateStore.providerClass"
PROVIDERS = {
    "memory": "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider",
    "rocksdb": "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
}
"""Where Spark keeps the tuples of its windows."""

LOG = "_spark_metadata"


def own_query(spark: "SparkSession", folder: Path, job: Job) -> "StreamingQuery":
    """Start Spark's own query on ``folder/r`` and ``folder/s``."""
    from pyspark.sql import functions

    r, s = (sided(_stream(spark, folder / side, job), side) for side in ("r", "s"))
    r, s, terms = with_terms(r, s, job, 2)
    has_equal = any(isinstance(term, Equi) for term in job.predicate.terms)
    if not has_equal and "r_bin0" not in r.columns:  # Spark asks for an equality
        r, s, window = windowed(r, s, job.window)
        terms += window
    r, s = (_with_time(frame, side, job) for frame, side in ((r, "r"), (s, "s")))
    if isinstance(job.window, TumblingWindow):
        terms.append("r_tumbling = s_tumbling")
    else:
        assert isinstance(job.window, TimeWindow)
        r_us, s_us = (f"INTERVAL {us} MICROSECOND" for us in (job.window.r_us, job.window.s_us))
        terms += [f"s_time < r_time + {r_us}", f"r_time < s_time + {s_us}"]
    joined = r.join(s, functions.expr(" AND ".join(f"({one})" for one in terms)))
    pairs = joined.select("r_row", "s_row", functions.greatest("r_ts", "s_ts").alias("ts"))
    writer = pairs.writeStream.format("parquet").option("compression", "none")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    settings = {PARTITIONS: str(job.threads), STATE: PROVIDERS[str(job.knobs["state"])]}
    before = {name: str(spark.conf.get(name)) for name in settings}
    try:
        for name, value in settings.items():
            spark.conf.set(name, value)
        return writer.start(str(folder / "pairs"))
    finally:
        for name, value in before.items():
            spark.conf.set(name, value)


def _stream(spark: "SparkSession", folder: Path, job: Job) -> "DataFrame":
    reader = spark.readStream.schema(spark.read.parquet(str(folder)).schema)
    if int(job.knobs["most_files"]):
        reader = reader.option("maxFilesPerTrigger", int(job.knobs["most_files"]))
    return reader.parquet(str(folder))


def _with_time(frame: "DataFrame", side: str, job: Job) -> "DataFrame":
    from pyspark.sql import functions

    time = f"{side}_time"
    frame = frame.withColumn(time, functions.timestamp_micros(f"{side}_ts"))
    frame = frame.withWatermark(time, "0 seconds")
    if isinstance(job.window, TumblingWindow):
        length = f"{job.window.length_us} microseconds"
        frame = frame.withColumn(f"{side}_tumbling", functions.window(time, length))
    return frame


def sunk(out: Path, known: set[str]) -> list[Path]:
    """Part files that Spark's sink has written into its log."""
    fresh = []
    for log in (out / LOG).glob("[0-9]*"):
        if log.name not in known:
            known.add(log.name)
            for line in log.read_text().splitlines()[1:]:
                path = Path(unquote(urlparse(json.loads(line)["path"]).path))
                if path.name not in known:
                    known.add(path.name)
                    fresh.append(path)
    return fresh
