"""The steps of a write, named so that a test can end a process at each of them."""

from collections.abc import Callable


def _go_on(_step: str) -> None:
    """Do nothing: what a process outside of tests does at a step."""


at_step: Callable[[str], None] = _go_on
"""Called with the name of each step that is done."""


def done(step: str) -> None:
    """Say that a step of a write is done."""
    at_step(step)
