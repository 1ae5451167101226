"""A design that tests itself on a board without a host: tuples, checksum, three LEDs.

``stimulus`` says which tuples and what checksum, ``top`` is the hardware around the design,
``ulx3s`` makes a bitstream of it.
"""
