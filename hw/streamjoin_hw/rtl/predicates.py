"""The predicate on encoded tuples.

Of the terms, unsigned comparisons are left: all the difficulty (signs, floats, NaN, limits of the
types) is met once, at the ingress, by :mod:`streamjoin_hw.rtl.encode`; a join core evaluates the
predicate ``lanes`` times a cycle and must stay small. A user's own condition
(:class:`~streamjoin_common.contract.Theta`) is evaluated in the cores as it was written.
"""

from functools import reduce
from operator import and_
from typing import Any

from amaranth.hdl import Const, Value, ValueCastable

from streamjoin_common.contract import (
    KEY_BITS,
    DesignParams,
    KeyType,
    TermKind,
    Theta,
    ThetaError,
    TupleView,
)
from streamjoin_hw.rtl.streams import View, r_layout, s_layout, signal_of

PART_BITS = 8
"""Bits of an equality that two LUTs of 4 inputs, one behind the other, compare."""


def matches(params: DesignParams, r: View, s: View, *, but: int | None = None) -> Value:
    """Build the conjunction of terms, time window and ``theta`` on one pair of encoded tuples.

    A pair is within the time window if the later tuple arrived before the end of the earlier one's.
    Which is earlier need not be known: a tuple always arrives before the end of a later one's.

    Parameters
    ----------
    params : DesignParams
        The design: its predicate and timestamps.
    r : View
        An R tuple (:func:`streamjoin_hw.rtl.streams.r_layout`).
    s : View
        An S tuple (:func:`streamjoin_hw.rtl.streams.s_layout`).
    but : int, optional
        A term that is tested elsewhere.

    Returns
    -------
    Value
        1 bit: the pair matches.
    """
    conditions = _conditions(params, r, s, KEY_BITS, but)
    return reduce(and_, conditions) if conditions else Const(1)


def parts_of_a_match(params: DesignParams, r: View, s: View) -> list[Value]:
    """Build the same in parts, of about as much logic each: a pair matches if all of them are 1.

    An equality makes one of each :data:`PART_BITS` bits.
    """
    return _conditions(params, r, s, PART_BITS, None) or [Const(1, 1)]


def _conditions(params: DesignParams, r: View, s: View, width: int, but: int | None) -> list[Value]:
    """Return conditions whose conjunction is a match, equality in conditions of so many bits."""
    conditions: list[Value] = []
    if params.timestamp_bits:
        conditions += [r.ts < s.end, s.ts < r.end]
    for index, term in enumerate(params.terms):
        if term.kind is TermKind.KEY or index == but:
            continue
        code = r[f"code{index}"]
        if term.kind is TermKind.BAND:
            conditions += [s[f"lo{index}"] <= code, code <= s[f"hi{index}"]]
        else:
            other = s[f"code{index}"]
            for bit in range(0, KEY_BITS, width):
                conditions.append(code[bit : bit + width] == other[bit : bit + width])
    if params.theta is not None:
        conditions.append(_own_condition(params, params.theta, r, s))
    return conditions


def check_theta(params: DesignParams) -> None:
    """Try the user's own function before any hardware is made of it.

    Raises
    ------
    ThetaError
        If there is no function, it looks at what is not there, or it does not return a value.
    """
    if params.theta is not None:
        r = signal_of(r_layout(params))
        s = signal_of(s_layout(params))
        _own_condition(params, params.theta, r, s)


def _own_condition(params: DesignParams, theta: Theta, r: View, s: View) -> Value:
    """Call the user's function on two encoded tuples; raises as :func:`check_theta` says."""
    if theta.function is None:
        raise ThetaError(
            f"theta {theta.name} is known by its name only: build the design where its function is"
        )
    views = []
    for side, encoded in (("R", r), ("S", s)):
        fields: dict[str, Any] = {}
        for index, term in enumerate(params.terms):
            if term.kind is TermKind.KEY:
                bits: Any = encoded[f"key{index}"]
                fields[f"key{index}"] = bits.as_signed() if term.type is KeyType.INT32 else bits
        if not params.decides_kinds:  # what the tuple carries then is no payload
            fields["payload"] = encoded.payload
        views.append(TupleView(side, fields))
    try:
        condition = theta.function(*views)
    except ThetaError:
        raise
    except Exception as error:
        hint = ""
        if "boolean" in str(error):
            hint = ": use & and | for and and or, and two comparisons for a < b < c"
        raise ThetaError(
            f"theta {theta.name} gives no expression: {type(error).__name__}: {error}{hint}"
        ) from None
    if not isinstance(condition, Value | ValueCastable | int):
        raise ThetaError(f"theta {theta.name} must return an Amaranth value, not {condition!r}")
    return Value.cast(condition).bool()
