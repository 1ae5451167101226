"""Old name of :mod:`streamjoin_spark.batch.join`."""

from streamjoin_datagen.distributed import forward

__getattr__ = forward(__name__, "streamjoin_spark.batch.join")
