"""Old name of :mod:`streamjoin_spark.streaming.query`."""

from streamjoin_datagen.distributed import forward

__getattr__ = forward(__name__, "streamjoin_spark.streaming.query")
