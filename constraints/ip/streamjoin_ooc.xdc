# Travels with the IP: the clock it is synthesised for on its own, whose period streamjoin hw bitstream
# writes. In a block design the processor's clock takes its place.
create_clock -name aclk -period 10.000 [get_ports aclk]
