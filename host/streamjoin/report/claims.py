"""What a published ratio came out as here, in words: the rule, the figures and their points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

MEASURES = {
    "throughput": "throughput",
    "service_rate": "service rate",
    "latency": "95th percentile of latency",
}
RULES = {"median": "median", "max": "maximum", "min": "minimum"}


def figure(claim: Mapping[str, Any]) -> str:
    """Return the ratio that stands for all points, or that there is none."""
    return "no point" if claim["here"] is None else f"{claim['here']:.2f} x"


def rule(claim: Mapping[str, Any]) -> str:
    """Say what the ratio is of: ``median of 4 points, 1.80 to 2.70 x``; empty for one point."""
    if len(claim["points"]) < 2:
        return ""
    spread = f"{claim['min']:.2f} to {claim['max']:.2f} x"
    return f"{RULES[claim['by']]} of {len(claim['points'])} points, {spread}"


def points(claim: Mapping[str, Any]) -> str:
    """Name every point with its ratio where there are several, and the divisor where it differs."""
    several = len(claim["points"]) > 1
    named = []
    for at in claim["points"]:
        over = f" over {at['over']}" if at["over"] != at["point"] else ""
        named.append(f"{at['point']}{over}" + (f" {at['ratio']:.2f} x" if several else ""))
    return "; ".join(named)


def here(claim: Mapping[str, Any]) -> str:
    """Say it all in one sentence."""
    if not claim["points"]:
        return "no point was measured"
    how = f" ({rule(claim)})" if rule(claim) else ""
    return f"{figure(claim)}{how} of {MEASURES[claim['of']]} at {points(claim)}"
