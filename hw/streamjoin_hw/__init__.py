"""Stream-join hardware: designs in Amaranth, Verilog, simulation models.

The package's face to the host is :mod:`streamjoin_common.contract`, which needs the standard
library only; everything else needs the ``hw`` extra.
"""

from streamjoin_common.moved import keep_old_names

keep_old_names()
