"""Dynamic power of a design from what switches in it, as a stated model: ``streamjoin hw power``.

``netlist`` makes gates of a design and shows their nets to the simulation, ``activity`` runs an
input and counts, ``model`` makes watts of counts, ``study`` puts points together, ``page`` draws
them, ``cli`` is the command.
"""
