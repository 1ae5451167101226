"""The predicate on encoded tuples: unsigned comparisons only.

All the difficulty (signs, floats, NaN, limits of the types) is met once, at the ingress, by
:mod:`streamjoin_hw.encode`; a join core evaluates the predicate ``lanes`` times a cycle and
must stay small.
"""

from functools import reduce
from operator import and_

from amaranth.hdl import Value

from streamjoin_hw.contract import Term, TermKind
from streamjoin_hw.streams import View


def matches(terms: tuple[Term, ...], r: View, s: View) -> Value:
    """Build the conjunction of all terms on one pair of encoded tuples.

    Parameters
    ----------
    terms : tuple of Term
        The predicate.
    r : View
        An R tuple (:func:`streamjoin_hw.streams.r_layout`).
    s : View
        An S tuple (:func:`streamjoin_hw.streams.s_layout`).

    Returns
    -------
    Value
        1 bit: the pair matches.
    """
    conditions: list[Value] = []
    for index, term in enumerate(terms):
        code = r[f"code{index}"]
        if term.kind is TermKind.BAND:
            conditions += [s[f"lo{index}"] <= code, code <= s[f"hi{index}"]]
        else:
            conditions.append(code == s[f"code{index}"])
    return reduce(and_, conditions)
