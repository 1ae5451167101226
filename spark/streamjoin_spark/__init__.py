"""Stream joins on Spark: streamjoin's kernels inside Spark's workers, at any size."""
