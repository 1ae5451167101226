"""Benchmarks with tables of their own: whole calls, live joins, CPU beside FPGA."""
