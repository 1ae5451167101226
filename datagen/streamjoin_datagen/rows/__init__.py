"""Rows as a function of (seed, stream, column, row number)."""
