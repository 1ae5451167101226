"""From parameters to files: Verilog, models, bitstreams, and the tools for it."""
