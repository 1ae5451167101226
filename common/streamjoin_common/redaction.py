"""Passwords of server addresses are never shown: what a driver or a user wrote is filtered here.

What is known to be secret is removed wherever it stands. Patterns catch the rest: addresses that
could not be parsed, within strings of any origin.
"""

import re
from collections.abc import Iterable

HIDDEN = "***"

MIN_PLAIN_SECRET = 4
"""Characters of a secret that is removed within other words too; a shorter one only alone."""

_PATTERNS = (
    # an @ behind a question mark: no telling what the password is
    (re.compile(r"(?i)(postgres(?:ql)?:/+)[^@\n]*\?.*@.*"), rf"\1{HIDDEN}"),
    # postgresql://user:password@host, whatever stands in the password
    (re.compile(r"(?i)(postgres(?:ql)?:/*)[^\s:@/?]*:.*@"), rf"\1{HIDDEN}@"),
    # postgresql://user:password without a host; a port is no secret
    (
        re.compile(r"(?i)(postgres(?:ql)?:/+[^\s:@/?'\"]*):(?!\d{1,5}(?!\w)).*"),
        rf"\1:{HIDDEN}",
    ),
    # user:password@host of any other scheme, or of none
    (
        re.compile(r"(^|[\s'\"/(=])[^\s:@/'\"]+:[^\s@/'\"]+@(?=[\w\[%])", re.MULTILINE),
        rf"\1{HIDDEN}@",
    ),
    # what follows a question mark, where any keyword may be percent-encoded
    (re.compile(r"(?i)(postgres(?:ql)?:/+[^\s?'\"]*\?).*"), rf"\1{HIDDEN}"),
    # password=... of a connection string, up to its next keyword or the end of the line
    (
        re.compile(
            r"(?i)((?:password|secret)\w*\s*=\s*)(?!\s)"
            r"(?:'(?:[^'\\]|\\.)*'(?=\s|$)|.*?(?=\s+[a-z_]+\s*=|$))",
            re.MULTILINE,
        ),
        rf"\1{HIDDEN}",
    ),
)


def redacted(string: str, known: Iterable[str] = ()) -> str:
    """Remove secrets from a string that is to be shown.

    Parameters
    ----------
    string : str
        The string.
    known : iterable of str, optional
        Secrets in every form in which they may occur, as plain and percent-encoded.

    Examples
    --------
    >>> redacted("postgresql://me:letmein@host/db: cannot be reached")
    'postgresql://***@host/db: cannot be reached'
    >>> redacted("mysql+driver:/me:letmein@host/db: there is no such file")
    'mysql+driver:/***@host/db: there is no such file'
    >>> redacted("role 'me' with letmein is refused", ["letmein"])
    "role 'me' with *** is refused"
    """
    for secret in sorted(filter(None, known), key=len, reverse=True):
        expression = re.escape(secret)
        if len(secret) < MIN_PLAIN_SECRET:
            expression = rf"(?<!\w){expression}(?!\w)"
        string = re.sub(expression, HIDDEN, string)
    for pattern, instead in _PATTERNS:
        string = pattern.sub(instead, string)
    return string
