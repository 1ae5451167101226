"""What ``spark-submit`` runs: the join of ``streamjoin spark-join`` in the session it is given.

``python -m streamjoin_datagen.distributed.submit --package streamjoin.zip`` writes the project's
packages into a zip file that ``spark-submit --py-files`` ships to the executors.
"""

import argparse
import json
import sys
import zipfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

PACKAGES = ("streamjoin", "streamjoin_datagen", "streamjoin_hw")


def package(path: Path) -> None:
    """Write the packages' sources into a zip file, whole or not at all."""
    beside = path.with_name(f".{path.name}")
    try:
        with zipfile.ZipFile(beside, "w", zipfile.ZIP_DEFLATED) as written:
            for file, name in sorted(_sources(), key=lambda one: one[1]):
                written.write(file, name)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def _sources() -> Iterator[tuple[Path, str]]:
    for name in PACKAGES:
        root = Path(str(import_module(name).__file__)).parent
        for file in root.rglob("*"):
            if file.is_file() and file.suffix != ".pyc":
                yield file, str(Path(name) / file.relative_to(root))


def main(arguments: list[str] | None = None) -> int:
    """Run one join in the session that ``spark-submit`` has made."""
    from streamjoin_datagen.distributed.cli import add_join, run_join

    parser = argparse.ArgumentParser(description=__doc__)
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["--package"] and len(given) == 2:
        package(Path(given[1]))
        return 0
    add_join(parser)
    args = parser.parse_args(given)
    from pyspark.sql import SparkSession

    from streamjoin.errors import StreamJoinError

    spark = SparkSession.builder.getOrCreate()
    try:
        manifest = run_join(spark, args)
    except StreamJoinError as error:
        print(f"streamjoin: {error}", file=sys.stderr)
        return error.exit_status
    finally:
        spark.stop()
    print(json.dumps({name: manifest[name] for name in ("pairs", "digest", "tasks", "path")}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
