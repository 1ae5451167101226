"""``streamjoin bench cpu-fpga``: from which window, rate and latency on is the FPGA better?

``inputs`` draws the streams, ``contestants`` names engines and designs, ``measure`` runs them,
``costs`` adds what a run does not show (transfer, power), ``verdict`` answers the question.
"""
