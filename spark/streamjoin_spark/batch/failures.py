"""Failed Spark jobs, in one sentence."""

import re
from typing import TYPE_CHECKING, Any

from streamjoin.errors import (
    EngineError,
    InputError,
    NoColumnError,
    StreamJoinError,
    UnsupportedError,
)
from streamjoin_common import storage
from streamjoin_common.storage.errors import StorageError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_RAISED = re.compile(r"(?:\w+\.)+\w+: ")
"""Start of the line of a traceback that names the exception."""


def collected(frame: "DataFrame") -> list[Any]:
    """Collect a frame's rows.

    Raises
    ------
    InputError, UnsupportedError
        If a worker refused the input: its own sentence.
    EngineError
        If the job failed otherwise, with its reason in a line.
    """
    try:
        return frame.collect()
    except Exception as error:  # PySpark's and Py4J's classes have no common base
        raise explained(error) from error


def explained(error: Exception) -> Exception:
    """Say in a sentence why a job failed."""
    if isinstance(error, StreamJoinError):
        return error
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [repr(error)]
    # Frames of Java's stack begin with "at", and may be of classes that are called errors too.
    said = [line for line in lines if "Error" in line and not line.startswith("at ")]
    # Not all of Python's are called so: pyarrow.lib.ArrowInvalid.
    said = said or [line for line in lines if _RAISED.match(line)] or lines[:1]
    refused = f"{StorageError.__module__}.{StorageError.__name__}: "
    unwritten = next((line for line in said if line.startswith(refused)), None)
    if unwritten is not None:
        return EngineError(storage.without_drafts(unwritten.removeprefix(refused)))
    for kind in (InputError, NoColumnError, UnsupportedError):
        name = f"{kind.__module__}.{kind.__name__}: "
        own = next((line for line in said if line.startswith(name)), None)
        if own is not None:
            return kind(own.removeprefix(name))
    return EngineError(f"the Spark job failed: {said[-1]}")
