"""Engines that run a hardware design, in a model or on a board."""
