"""Workloads for stream joins, generated and imported with PySpark."""
