"""How many cycles a tuple takes under a load, measured: ``streamjoin hw rate``.

``loads`` draws the inputs and runs them, ``cli`` is the command.
"""
