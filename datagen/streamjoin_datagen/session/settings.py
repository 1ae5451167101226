"""What a session sets: Spark's settings, Java's options and the environment's variables."""

import sys
from pathlib import Path

# A small job ends before C2 and a parallel collector would pay.
_QUICK_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Xshare:auto"

_FULL_JAVA = "-XX:+UseParallelGC -XX:-UsePerfData -Xshare:auto"


def spark_settings(folder: Path, threads: int, address: str) -> dict[str, str]:
    """Return Spark's settings: everything it writes lies in the folder, and nothing is shown."""
    return {
        "spark.app.name": "streamjoin-datagen",
        "spark.driver.host": address,
        "spark.driver.bindAddress": address,
        "spark.local.dir": str(folder / "local"),
        "spark.log.level": "ERROR",
        "spark.sql.artifact.isolation.enabled": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(2 * threads),
        # The default one starts a process for every file of a checkpoint on a local disk, a tenth
        # of a second for every batch of a stream.
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing."
            "FileSystemBasedCheckpointFileManager"
        ),
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


def java_settings(folder: Path, memory: str, quick: bool) -> dict[str, str]:
    """Return the settings of the Java process: heap, compiler, log and folders."""
    log4j = (folder / "conf" / "log4j2.properties").as_uri()
    options = (
        f"{_QUICK_JAVA if quick else _FULL_JAVA} -Dlog4j2.configurationFile={log4j}"
        f" -Djava.io.tmpdir={folder} -Duser.home={folder} -Duser.timezone=UTC"
    )
    return {"spark.driver.memory": memory, "spark.driver.extraJavaOptions": options}


def environment_of(folder: Path, java_home: Path, address: str) -> dict[str, str]:
    """Variables that Spark reads, over whatever the user's shell sets for another Spark."""
    import pyspark

    return {
        "JAVA_HOME": str(java_home),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(folder / "conf"),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_LOCAL_HOSTNAME": "localhost" if address == "127.0.0.1" else address,
        "SPARK_LOCAL_IP": address,
    }
