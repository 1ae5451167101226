"""Reading JSON and TOML files that somebody else may have written, damaged or made to harm.

Both readers raise :class:`OSError` where a file cannot be read and :class:`DocumentError`, a
:class:`ValueError`, for everything that is wrong with its content, nesting that no recursive
function survives included.
"""

import json
import math
import re
from pathlib import Path
from typing import Any, NoReturn

from streamjoin_common.errors import StreamJoinError

MAX_DOCUMENT_BYTES = 1 << 28
"""Maximum size of a file in bytes; the largest records are a thousandth of it."""

INTEGER_BITS = 64
"""Maximum size of an integer in TOML."""
MAX_DEPTH_LEVELS = 64
"""Maximum levels of nested objects and arrays: what is read is walked by recursive functions."""

_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class DocumentError(StreamJoinError, ValueError):
    """A file or string is not the JSON or TOML that it must be.

    Parameters
    ----------
    source : str
        The file.
    reason : str
        What is wrong, without the file's name.
    """

    exit_status = 2

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(f"{source}: {reason}")
        self.source, self.reason = source, reason


def read_json(path: Path) -> Any:
    """Read a JSON file.

    Raises
    ------
    OSError
        If there is no such file, or it cannot be read.
    DocumentError
        As :func:`parse_json`.
    """
    return parse_json(_text(path), str(path))


def parse_json(document: str, source: str) -> Any:
    """Read a JSON document.

    Parameters
    ----------
    document : str
        The document.
    source : str
        Its origin, for errors.

    Raises
    ------
    DocumentError
        If it is no JSON, holds a number that is not finite or half a surrogate pair, or is nested
        too deeply.
    """
    try:
        value = json.loads(document, parse_constant=_refuse_constant, parse_float=_finite)
        if _SURROGATE.search(document):
            _check_surrogates(value, source)
    except RecursionError:
        raise _too_deep(source) from None
    except DocumentError:
        raise
    except ValueError as error:
        raise DocumentError(source, f"is not JSON: {error}") from None
    _check_depth(value, source)
    return value


def read_toml(path: Path) -> dict[str, Any]:
    """Read a TOML file.

    Raises
    ------
    OSError
        If there is no such file, or it cannot be read.
    DocumentError
        As :func:`parse_toml`.
    """
    return parse_toml(_text(path), str(path))


def parse_toml(document: str, source: str) -> dict[str, Any]:
    """Read a TOML document.

    Raises
    ------
    DocumentError
        If it is no TOML, holds an integer of more than 64 bits, or is nested too deeply.
    """
    try:
        import tomllib
    except ModuleNotFoundError:  # before Python 3.11
        import tomli as tomllib  # type: ignore[import-not-found, no-redef, unused-ignore]
    try:
        value = tomllib.loads(document)
    except RecursionError:
        raise _too_deep(source) from None
    except ValueError as error:
        raise DocumentError(source, f"is not TOML: {error}") from None
    _check_depth(value, source)
    _check_integers(value, source)
    return value


def _text(path: Path) -> str:
    """Content of a regular file; reading from another kind could wait without end."""
    if path.exists() and not path.is_file():
        raise DocumentError(str(path), "is no regular file")
    if path.is_file() and (length := path.stat().st_size) > MAX_DOCUMENT_BYTES:
        raise DocumentError(
            str(path), f"has {length} bytes; a document has at most {MAX_DOCUMENT_BYTES}"
        )
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DocumentError(str(path), f"is not UTF-8: {error}") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"the number {digits[:40]} is too large")
    return value


def _check_surrogates(value: Any, source: str) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise DocumentError(source, "holds half a surrogate pair, which is no character") from None


def _check_depth(value: Any, source: str) -> None:
    """Refuse deep nesting, without a recursive function."""
    level = [value]
    for _ in range(MAX_DEPTH_LEVELS):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return
    raise _too_deep(source)


def _check_integers(value: Any, source: str) -> None:
    """Refuse integers of more than 64 bits, which TOML does not have; of few levels, as checked."""
    if isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            _check_integers(inner, source)
    elif isinstance(value, int) and value.bit_length() > INTEGER_BITS:
        raise DocumentError(source, f"holds an integer of more than {INTEGER_BITS} bits")


def _too_deep(source: str) -> DocumentError:
    return DocumentError(
        source, f"is nested too deeply: at most {MAX_DEPTH_LEVELS} levels are read"
    )
