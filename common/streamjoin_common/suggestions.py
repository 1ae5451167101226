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
    >>> nearest("prk", ["prj", "spark"])
    'prj'
    >>> nearest("pmj", ["prj", "pmj-jm"])
    'pmj-jm'
    >>> nearest("--r", ["--force", "--order"])
    """
    bare = {name.lower().lstrip("-"): name for name in known}  # dashes make no flag alike
    typed = str(given)[:100].lower().lstrip("-")
    alike = difflib.get_close_matches(typed, bare, len(bare)) if bare else []
    if not alike:
        return None
    return bare[min(alike, key=lambda name: (not name.startswith(typed), _edits(typed, name)))]


def _edits(given: str, name: str) -> int:
    """Count the letters to insert, drop or replace, and the neighbours to swap."""
    before, above = [0] * (len(name) + 1), list(range(len(name) + 1))
    for row, letter in enumerate(given, start=1):
        current = [row]
        for column, other in enumerate(name, start=1):
            edits = min(above[column] + 1, current[-1] + 1, above[column - 1] + (letter != other))
            if row > 1 < column and letter == name[column - 2] and given[row - 2] == other:
                edits = min(edits, before[column - 2] + 1)
            current.append(edits)
        before, above = above, current
    return above[-1]


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


def known_names(given: object, known: Iterable[str], to_list: str) -> str:
    """Return the end of a sentence about a name that is not known: one that is near, or all.

    Parameters
    ----------
    given : object
        The name.
    known : iterable of str
        Those that there are.
    to_list : str
        What whoever reads it does to see them.

    Examples
    --------
    >>> known_names("splitjion", ["kang", "splitjoin"], "type  streamjoin engines")
    ': did you mean splitjoin? To list all, type  streamjoin engines'
    >>> known_names("warp", ["kang", "splitjoin"], "type  streamjoin engines")
    ': choose one of kang, splitjoin'
    """
    names = list(known)
    near = did_you_mean(given, names)
    return f"{near} To list all, {to_list}" if near else f": choose one of {', '.join(names)}"
