"""Intra-window joins (IaWJ): one window's tuples of both streams, joined as a whole."""
