"""Kernels of the flat window index."""
