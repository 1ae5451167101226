"""Kinds of join: which tuples without a partner are in the result, and whether pairs are.

What each means is on the page "What a stream join means" (``docs/semantics.md``).
"""

import difflib
from typing import Literal, cast, get_args

from streamjoin_common.errors import InputError
from streamjoin_common.language.durations import shown
from streamjoin_common.spelling import argument

How = Literal["inner", "left", "right", "full", "semi", "anti"]
KINDS: tuple[str, ...] = get_args(How)
"""Kinds of join, as ``--how`` takes them."""

R_ONLY = frozenset({"semi", "anti"})
"""Kinds whose rows are tuples of R alone: S has no columns in the result."""

R_UNMATCHED = frozenset({"left", "full", "anti"})
"""Kinds whose result has the tuples of R that are in no pair."""

S_UNMATCHED = frozenset({"right", "full"})
"""Kinds whose result has the tuples of S that are in no pair."""


def parse_how(string: object) -> How:
    """Return the kind of join that a string names.

    Raises
    ------
    InputError
        Naming the nearest kind, or all of them.

    Examples
    --------
    >>> parse_how("left")
    'left'
    """
    if isinstance(string, str) and string in KINDS:
        return cast("How", string)
    near = _nearest(string.lower()) if isinstance(string, str) else None
    meant = f": did you mean {near}?" if near else ""
    raise InputError(f"{argument('how')} is one of {', '.join(KINDS)}, not {shown(string)}{meant}")


def _nearest(wrong: str) -> str | None:
    """Return the kind that is meant by ``LEFT``, ``full_outer``, ``leftsemi`` or ``innner``."""
    if wrong == "outer":
        return "full"
    held = [kind for kind in KINDS if kind in wrong]  # semi and anti after left: "leftsemi"
    close = held[-1:] or difflib.get_close_matches(wrong, KINDS, 1)
    return close[0] if close else None
