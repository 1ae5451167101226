"""What was probably meant by a name that is not known."""

import difflib
from collections.abc import Iterable


def nearest(given: object, known: Iterable[str]) -> str | None:
    """Return the known name that is most like the given one, or None where none is.

    Examples
    --------
    >>> nearest("splitjion", ["kang", "splitjoin"])
    'splitjoin'
    >>> nearest("KEY", ["key", "ts"])
    'key'
    """
    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(str(given)[:100].lower(), by_lower, 1)
    return by_lower[near[0]] if near else None


def did_you_mean(given: object, known: Iterable[str]) -> str:
    """Return ``": did you mean NAME?"``, the end of a sentence, or nothing where none is near.

    Examples
    --------
    >>> did_you_mean("lode", ["load"])
    ': did you mean load?'
    >>> did_you_mean("speed", ["batch"])
    ''
    """
    name = nearest(given, known)
    return "" if name in (None, given) else f": did you mean {name}?"
