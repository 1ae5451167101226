"""Kernels of the index-based window joins: B+-trees, IM-Trees, PIM-Trees."""
