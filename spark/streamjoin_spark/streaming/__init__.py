"""Joins of streams on Spark: exactly once, with a state that the window bounds."""
