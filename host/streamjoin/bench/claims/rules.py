"""What was published of an experiment, and whether it holds here: figures at named points.

A ``[[claim]]`` of an experiment's file says in ``text`` what was published, as a number in
``published``, in which ``figures`` it stands, and how it is had from the records: ``engine``
divided by ``over`` (default: the same engine) at every point of ``workload`` with the settings
``where``, which are those that the claim speaks of; ``over_where`` are settings in which the
divisor's point is another one. A list of engines is the best of them at each point, a list of a
setting's values any of them. ``of`` is one of :data:`MEASURES`; where less is better, the ratio
says how much less. One of :data:`SHARES` with neither ``over`` nor ``over_where`` is not divided.

``by`` says which of several points stands for all: their ``median`` (the default), the ``max``
where "up to" was published, the ``min`` where "always" was. ``says`` is ``at least`` (the default),
``at most`` or ``about``. The verdict follows from these:

- ``holds``: the figure that stands for all points reaches ``published``, less :data:`NOISE`, and a
  ratio is also on the published side of 1 by more than :data:`NOISE`: nearer to 1 there is no
  difference. For ``about``, it is within the factor :data:`ABOUT`.
- ``holds in part``: it does not, but some point does, or it does and a point has no figure, as
  where a result is missing or wrong; or a ratio has at least :data:`HALF` of the
  published distance from 1; or only a direction was published, as 1, and there is no difference.
- ``does not hold here``: neither.
- ``not measured``: no point has both figures.

``why`` is the cause, found by a run, where it does not hold or could not be measured; where no
difference or a cause is not known, the verdict says so itself.
"""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamjoin.bench.claims.measures import MEASURES, Record, is_right

NOISE = 0.1
"""Share of a published ratio by which runs differ on a shared machine."""

HALF = 0.5
"""Share of the published distance from 1 with which a ratio holds in part."""

ABOUT = 1.25
"""Factor within which two ratios are about equal."""

RULES: dict[str, Callable[[Sequence[float]], float]] = {
    "median": statistics.median,
    "max": max,
    "min": min,
}
NO_DIFFERENCE = f"no difference beyond the noise of {NOISE:.0%}"
UNKNOWN = "no run has looked for the cause"

SAYS = ("at least", "at most", "about")
VERDICTS = HOLDS, IN_PART, NOT_HERE, NOT_MEASURED = (
    *("holds", "holds in part"),
    *("does not hold here", "not measured"),
)


@dataclass(frozen=True)
class Claim:
    """One published figure.

    Attributes
    ----------
    text, published
        In words, and as a number.
    workload : str
        The family of points.
    engines, over : tuple of str
        Engines, the best of which counts; nothing in ``over`` where the figure is not divided.
    where, over_where : mapping
        Settings by the path that is swept, or ``threads``.
    of : str
        One of :data:`MEASURES`.
    by : str
        One of :data:`RULES`.
    says : str
        One of :data:`SAYS`.
    figures : tuple of str
        Where it stands, as ``"ssbj 5a"``.
    why : str
        Why it does not hold here; empty where no run has shown it.
    asked : int
        The points that it is of, as far as the file says.
    """

    text: str
    published: float
    workload: str
    engines: tuple[str, ...]
    over: tuple[str, ...]
    where: Mapping[str, Any] = field(default_factory=dict)
    over_where: Mapping[str, Any] = field(default_factory=dict)
    of: str = "throughput"
    by: str = "median"
    says: str = SAYS[0]
    figures: tuple[str, ...] = ()
    why: str = ""
    asked: int = 0

    def held(self, records: Sequence[Record]) -> dict[str, Any]:
        """Hold the claim beside records; a wrong or unchecked result has no figure.

        Parameters
        ----------
        records : sequence of mapping
            With ``workload``, ``family``, ``settings``, ``status`` and ``checked``.

        Returns
        -------
        dict
            ``text``, ``figures``, ``published``, ``says``, ``of``, ``by``, ``divided``;
            ``verdict``; ``why``, empty where it holds; ``earlier``, whether another run found why;
            ``asked``, the number of points that it is of; ``here``, the figure that stands for all
            points, their ``min`` and ``max`` (None where there is none); and ``points``: of each
            its ``point``, that of the divisor, ``over``, its ``ratio``, whether it ``holds`` there,
            and the ``best`` of several.
        """
        mine = [each for each in records if each["family"] == self.workload]
        groups: dict[str, list[Record]] = {}
        for record in mine:
            if record["engine"] in self.engines and fits(
                {"threads": record["threads"], **record["settings"]}, self.where
            ):
                groups.setdefault(record["workload"], []).append(record)
        points = [point for group in groups.values() if (point := self._point(group, mine))]
        ratios = [point["ratio"] for point in points]
        asked = max(self.asked, len(points))
        verdict = self.verdict(ratios, asked)
        why = self._why(verdict, ratios, asked)
        return {
            "text": self.text,
            "figures": list(self.figures),
            "published": self.published,
            "says": self.says,
            "of": self.of,
            "by": self.by,
            "divided": bool(self.over),
            "verdict": verdict,
            "why": why,
            "earlier": bool(why) and why == self.why,
            "asked": asked,
            "here": RULES[self.by](ratios) if ratios else None,
            "min": min(ratios, default=None),
            "max": max(ratios, default=None),
            "points": points,
        }

    def _why(self, verdict: str, ratios: Sequence[float], asked: int) -> str:
        """Return the cause; without one, say that there is no difference, or that none is known."""
        if verdict == IN_PART and self.verdict(ratios) == HOLDS:
            return f"{asked - len(ratios)} of {asked} points have no figure"
        if verdict == HOLDS or self.why:
            return "" if verdict == HOLDS else self.why
        if verdict == IN_PART and self._partly(RULES[self.by](ratios)) and self.published == 1:
            return NO_DIFFERENCE
        return "" if verdict == IN_PART else UNKNOWN

    def reached(self, ratio: float) -> bool:
        """Whether a figure is the published one."""
        if self.says == "about":
            return self.published / ABOUT <= ratio <= self.published * ABOUT
        if self.says == "at most":
            most = self.published * (1 + NOISE)
            return ratio <= (min(most, 1 - NOISE) if self._compares else most)
        least = self.published * (1 - NOISE)
        return ratio >= (max(least, 1 + NOISE) if self._compares else least)

    @property
    def _compares(self) -> bool:
        """Whether it says which of two is better: a ratio, at least of 1 and more or the like."""
        beyond = self.published <= 1 if self.says == "at most" else self.published >= 1
        return bool(self.over) and self.says != "about" and beyond

    def _partly(self, ratio: float) -> bool:
        """Whether a ratio has half of the published distance from 1, or none was published."""
        if not self.over:
            return False
        if self.published == 1:
            return self.says != "about" and 1 - NOISE <= ratio <= 1 + NOISE
        half = 1 + HALF * (self.published - 1)
        if self.published > 1:
            return self.says != "at most" and ratio >= max(half, 1 + NOISE)
        return self.says != "at least" and ratio <= min(half, 1 - NOISE)

    def verdict(self, ratios: Sequence[float], asked: int = 0) -> str:
        """Decide by the rule of the module's docstring.

        Parameters
        ----------
        ratios : sequence of float
            The figure of each point that has one.
        asked : int
            The number of points that the claim is of.

        Examples
        --------
        >>> claim = Claim("twice", 2.0, "pairs", ("npj",), ("prj",))
        >>> [claim.verdict(ratios) for ratios in ([1.9], [1.5, 1.6], [1.2], [])]
        ['holds', 'holds in part', 'does not hold here', 'not measured']
        """
        if not ratios:
            return NOT_MEASURED
        here = RULES[self.by](ratios)
        if self.reached(here):
            return IN_PART if asked > len(ratios) else HOLDS
        return IN_PART if self._partly(here) or any(map(self.reached, ratios)) else NOT_HERE

    def _point(self, group: Sequence[Record], mine: Sequence[Record]) -> dict[str, Any] | None:
        """Return the figure at one point, None where a record of it does not have it."""
        above = self._best(group)
        if above is None:
            return None
        record, ratio, over = *above, str(above[0]["workload"])
        best = [record["engine"]] * (len(self.engines) > 1)
        if self.over:
            wanted = {**record["settings"], **self.over_where}
            others = [
                each
                for each in mine
                if each["engine"] in self.over
                and dict(each["settings"]) == wanted
                and _alike(record, each, self.of)
            ]
            below = self._best(others)
            if below is None or not below[1] or not ratio:
                return None
            less = MEASURES[self.of].less_is_better
            ratio = below[1] / ratio if less else ratio / below[1]
            over = str(below[0]["workload"])
            best += [below[0]["engine"]] * (len(self.over) > 1)
        return {
            "point": str(record["workload"]),
            "over": over,
            "ratio": ratio,
            "holds": self.reached(ratio),
            "best": best,
        }

    def _best(self, records: Sequence[Record]) -> tuple[Record, float] | None:
        """Return the best of one point; of one with a wrong result it is not known."""
        if not all(map(is_right, records)):
            return None
        measure = MEASURES[self.of]
        known = [(each, value) for each in records if (value := measure.get(each)) is not None]
        order = min if measure.less_is_better else max
        return order(known, key=lambda each: each[1], default=None)


def _alike(record: Record, other: Record, of: str) -> bool:
    """Whether a ratio of two records says something of their engines alone.

    Measured and simulated figures, seconds by different clocks and latencies of different origins
    are different quantities.
    """
    same = ["clock_hz", "clock_source"] + (["latency_from"] if "latency" in of else [])
    simulated = [each.get("backend") == "model" for each in (record, other)]
    return simulated[0] == simulated[1] and all(record.get(n) == other.get(n) for n in same)


def fits(settings: Mapping[str, Any], where: Mapping[str, Any]) -> bool:
    """Whether settings have each of these values, or any of a list of them."""
    return all(
        settings.get(key) in value if isinstance(value, list) else settings.get(key) == value
        for key, value in where.items()
    )
