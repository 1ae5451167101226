"""An archive of Spark's classes, from which Java starts with half of the work.

Java reads, checks and links ten thousand classes of Spark at every start. Its class data sharing
keeps them in a file as they are in memory, which sessions whose tasks run in their own Java process
use where :func:`~streamjoin_datagen.session.spark.make_archive` has made it. Java ignores one of
another version or of other files of Spark; one that is damaged would end it.
"""

import hashlib
from collections.abc import Callable
from pathlib import Path

from streamjoin_common.storage import CacheError, cache
from streamjoin_datagen.session.java import Java

DUMP_DEADLINE_S = 300.0
"""Seconds that Java may take to write the archive once Spark has ended."""

_KIND = "java"
_FILE = "spark.jsa"


def _name(java: Java, spark_home: Path) -> str:
    key = f"{java.home}\n{java.version}\n{spark_home}"
    return f"spark-{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def find(java: Java, spark_home: Path) -> Path | None:
    """Return the whole archive for a Java runtime and Spark; None where there is none."""
    try:
        entry = cache.root() / _KIND / _name(java, spark_home)
    except CacheError:
        return None
    return entry / _FILE if cache.is_whole(entry) else None


def make(java: Java, spark_home: Path, dump: Callable[[Path], None]) -> None:
    """Have a function write the archive, where there is none.

    Raises
    ------
    CacheError
        As :func:`streamjoin_common.storage.cache.entry`.
    """
    cache.entry(_KIND, _name(java, spark_home), lambda folder: dump(folder / _FILE))
