"""How a sentence names an option: ``ts_unit=`` for Python, ``--ts-unit`` on the command line."""

from collections.abc import Iterator
from contextlib import contextmanager

_flags = [False]
"""Whether options are flags; not a context's own, as engines raise errors in their threads."""


@contextmanager
def as_flags() -> Iterator[None]:
    """Name options as flags for as long as the block runs."""
    before, _flags[0] = _flags[0], True
    try:
        yield
    finally:
        _flags[0] = before


def option(name: str, value: object = "") -> str:
    """Name an option as whoever reads the sentence types it.

    Parameters
    ----------
    name : str
        The Python argument.
    value : object
        Its value, ``...`` for any number; by default none is shown.

    Examples
    --------
    >>> option("ts_unit", "ms"), option("force", True), option("how")
    ("ts_unit='ms'", 'force=True', 'how=')
    >>> with as_flags():
    ...     option("ts_unit", "ms"), option("force", True), option("how")
    ('--ts-unit ms', '--force', '--how')
    """
    if not _flags[0]:
        return f"{name}={'' if value == '' else 'N' if value is ... else repr(value)}"
    flag = f"--{name.replace('_', '-')}"
    return flag if value == "" or value is True else f"{flag} {'N' if value is ... else value}"


def argument(name: str) -> str:
    """Name an option as the subject of a sentence.

    Examples
    --------
    >>> argument("ts_unit")
    'ts_unit'
    """
    return option(name) if _flags[0] else name


def to_do(called: str, typed: str) -> str:
    """Say what whoever reads the sentence does next: call a function, or type a command.

    Examples
    --------
    >>> to_do("sj.engines()", "streamjoin engines")
    'call sj.engines()'
    >>> with as_flags():
    ...     to_do("sj.engines()", "streamjoin engines")
    'type  streamjoin engines'
    """
    return f"type  {typed}" if _flags[0] else f"call {called}"


def knob(name: str, value: str) -> str:
    """Name an engine's knob with a value as whoever reads the sentence types it.

    Examples
    --------
    >>> knob("cores", "16")
    "knobs={'cores': '16'}"
    """
    return f"--set {name}={value}" if _flags[0] else f"knobs={{{name!r}: {value!r}}}"
