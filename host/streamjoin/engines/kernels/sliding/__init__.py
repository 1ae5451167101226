"""Kernels of the sliding joins that scan."""
