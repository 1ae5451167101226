"""What ``spark-submit`` runs: the join of ``streamjoin spark-join`` in the session it is given.

``python -m streamjoin_spark.submit --package streamjoin.zip`` writes the project's
packages into a zip file that ``spark-submit --py-files`` ships to the executors.
"""

import argparse
import json
import sys
from pathlib import Path

from streamjoin_datagen.session.shipping import package


def main(arguments: list[str] | None = None) -> int:
    """Run one join in the session that ``spark-submit`` has made."""
    from streamjoin_spark.cli import add_join, asked

    parser = argparse.ArgumentParser(description=__doc__)
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["--package"] and len(given) == 2:
        package(Path(given[1]))
        return 0
    add_join(parser)
    args = parser.parse_args(given)
    from pyspark.sql import SparkSession

    from streamjoin_common.errors import StreamJoinError
    from streamjoin_common.printing import printable
    from streamjoin_spark.batch.join import planned

    spark = SparkSession.builder.getOrCreate()
    try:
        manifest = planned(spark, asked(args)).write(args.out, force=args.force)
    except StreamJoinError as error:
        print(f"streamjoin: {printable(str(error))}", file=sys.stderr)
        return error.exit_status
    finally:
        spark.stop()
    print(json.dumps({name: manifest[name] for name in ("pairs", "digest", "tasks", "path")}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
