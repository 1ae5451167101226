# No pins: every port of the wrapper is the processor's own, and its clock is constrained with it.
set_property BITSTREAM.GENERAL.COMPRESS TRUE [current_design]
