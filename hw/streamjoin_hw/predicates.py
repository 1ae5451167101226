"""The predicate on encoded tuples: unsigned comparisons only.

All the difficulty (signs, floats, NaN, limits of the types) is met once, at the ingress, by
:mod:`streamjoin_hw.encode`; a join core evaluates the predicate ``lanes`` times a cycle and
must stay small.
"""

from functools import reduce
from operator import and_

from amaranth.hdl import Value

from streamjoin_hw.contract import DesignParams, TermKind
from streamjoin_hw.streams import View


def matches(params: DesignParams, r: View, s: View) -> Value:
    """Build the conjunction of all terms, and of the time window, on one pair of encoded tuples.

    A pair is within the time window if the later tuple came before the end of the earlier one's.
    Which is earlier need not be known: a tuple always comes before the end of a later one's.

    Parameters
    ----------
    params : DesignParams
        The design: its terms and timestamps.
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
    if params.timestamp_bits:
        conditions += [r.ts < s.end, s.ts < r.end]
    for index, term in enumerate(params.terms):
        code = r[f"code{index}"]
        if term.kind is TermKind.BAND:
            conditions += [s[f"lo{index}"] <= code, code <= s[f"hi{index}"]]
        else:
            conditions.append(code == s[f"code{index}"])
    return reduce(and_, conditions)
