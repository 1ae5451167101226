"""Handshake join: a chain of cores, in lock step or forwarding at once."""
