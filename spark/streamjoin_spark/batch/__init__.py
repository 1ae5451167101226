"""Joins of inputs at rest on Spark."""
