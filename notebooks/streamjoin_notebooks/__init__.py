"""Notebooks for boards; ``pynq get-notebooks streamjoin`` copies them to where Jupyter is."""
