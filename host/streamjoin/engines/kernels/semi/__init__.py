"""Kernels of the semi-stream joins."""
