"""Compiled kernels: pure functions on arrays, without a lock, a clock or a per-tuple Python."""
