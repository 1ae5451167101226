"""Spark's own joins of the same meaning: what the engine ``spark`` is held against.

Bands are joined as Spark users do it: by bins as wide as the band along each banded column, S
repeated for the bins that its interval touches, so that the join has equal columns to hash.
"""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from streamjoin.engines.base import Knob
from streamjoin.engines.job import Job
from streamjoin.metrics import Meter
from streamjoin_spark.engine import SparkEngine
from streamjoin_spark.sql import HINTS, own_plan

if TYPE_CHECKING:
    from streamjoin_datagen.session import Session
    from streamjoin_spark.replay import Follower


class SparkSql(SparkEngine):
    """Spark's own join of the same meaning, by a plan of its own or a hinted one: yardstick."""

    name: ClassVar[str] = "spark-sql"
    knobs: ClassVar[tuple[Knob, ...]] = (
        *SparkEngine.knobs,
        Knob(
            "plan",
            "auto",
            "Hint to Spark how to join; auto: none.",
            choices=("auto", *HINTS),
        ),
        Knob(
            "bins",
            "both",
            "Banded columns that are cut into bins.",
            choices=("none", "first", "both"),
        ),
        Knob(
            "state",
            "memory",
            "Where a streaming join keeps its windows.",
            choices=("memory", "rocksdb"),
        ),
    )

    def join(self, session: "Session", folder: Path, job: Job, meter: Meter) -> None:
        """Write the join's row numbers and times to Parquet."""
        with meter.phase("probe"):
            pairs_frame = own_plan(
                session.spark.read.parquet(str(folder / "r")),
                session.spark.read.parquet(str(folder / "s")),
                job,
            )
            if job.threads < session.threads:
                pairs_frame = pairs_frame.coalesce(job.threads)
            pairs = folder / "pairs"
            shutil.rmtree(pairs, ignore_errors=True)
            pairs_frame.write.option("compression", "none").parquet(str(pairs))

    def follower(self, session: "Session", job: Job) -> "Follower":
        """Join the folders by Spark's own join of streams."""
        from streamjoin_spark.replay import Follower
        from streamjoin_spark.streaming.yardstick import own_query, sunk

        return Follower(lambda folder: own_query(session.spark, folder, job), sunk)
