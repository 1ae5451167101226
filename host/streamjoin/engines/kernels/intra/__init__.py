"""Kernels of the intra-window joins."""
