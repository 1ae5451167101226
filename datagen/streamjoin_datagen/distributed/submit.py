"""Old name of :mod:`streamjoin_spark.submit`, as a module and as the program of spark-submit."""

import importlib
import sys

from streamjoin_datagen.distributed import forward, renamed

OLD, NEW = "streamjoin_datagen.distributed.submit", "streamjoin_spark.submit"

__getattr__ = forward(OLD, NEW)

if __name__ == "__main__":
    print(f"streamjoin: {renamed(OLD, NEW)}", file=sys.stderr)
    sys.exit(importlib.import_module(NEW).main())
