"""Strings from files in a terminal: control characters are shown, not obeyed."""


def printable(string: str, keep: str = "") -> str:
    r"""Escape what a terminal would obey or not show, as Python writes it in a string.

    Parameters
    ----------
    string : str
        Such as a name from a file.
    keep : str
        Characters that are left as they are.

    Examples
    --------
    >>> printable("\x1b[2Jgone")
    '\\x1b[2Jgone'
    """
    if string.isprintable():
        return string
    return "".join(
        mark if mark.isprintable() or mark in keep else mark.encode("unicode_escape").decode()
        for mark in string
    )
