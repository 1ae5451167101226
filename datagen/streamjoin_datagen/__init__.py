"""Workloads for stream joins, generated and imported with PySpark."""

from streamjoin_common.moved import keep_old_names

keep_old_names()
