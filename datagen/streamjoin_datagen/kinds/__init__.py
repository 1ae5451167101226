"""The kinds of workloads that are generated: one class each, parameters and columns together.

Importing this package costs nothing: NumPy is imported where columns are made.
"""
