"""The errors that every package's own derive from, and the warnings.

An error carries the exit status of the command line: 2 for bad input or usage and for what is
not installed, 1 for a run that failed.
"""


class StreamJoinError(Exception):
    """Base of every error that this project raises on purpose."""

    exit_status = 1


class InputError(StreamJoinError, ValueError):
    """Bad input: a file, column, row or flag is not what it must be."""

    exit_status = 2


class ArgumentError(InputError, TypeError):
    """A function was called with an argument that it does not have."""


class UsageError(InputError):
    """A flag does not fit; the message names it and what would be right."""


class ToolError(StreamJoinError, RuntimeError):
    """A tool failed; the message says what to type."""


class DeadlineError(ToolError):
    """A tool took longer than it was given."""


class MissingToolError(ToolError):
    """A tool is missing; the message says what to type."""

    exit_status = 2


class InputWarning(UserWarning):
    """Input that can be joined and probably does not mean what it says."""
