"""What a design costs on a part, by open tools: area, clock, bitstream.

``targets`` knows the parts, ``settings`` what is synthesised and how, ``area`` runs Yosys,
``route`` runs nextpnr, ``record`` joins their figures and keeps them; ``scale`` is the
study over counts of cores. ``cli`` and ``scale_cli`` are the commands ``streamjoin hw synth`` and
``streamjoin hw scale``.
"""
