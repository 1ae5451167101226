"""Tables of ``streamjoin bench``: whole calls, live joins, CPU beside FPGA, lists, records."""
