"""How long a match takes, worked out and measured: ``streamjoin hw latency``.

``cases`` has the closed forms and the run that they are held against, ``cli`` the command.
"""
