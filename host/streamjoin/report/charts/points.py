"""What the page's script knows of a chart: its points, and its axis in every way it can be drawn.

The drawing is there without the script. The script shows the points under the pointer, hides
engines, and redraws the marks on the axis that was asked for: linear or logarithmic, in units or
relative to the best. Ticks are made here, so that no figure is printed in two ways.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from streamjoin.report import units

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.figure import Figure

    from streamjoin.report.results import Result


@dataclass(frozen=True)
class Scale:
    """A horizontal axis: limits, whether logarithmic, how to print a tick, and its name."""

    low: float
    high: float
    log: bool
    tick: Callable[[float], str]
    name: str


@dataclass(frozen=True)
class Point:
    """One figure of a chart.

    Attributes
    ----------
    name : str
        Which figure: ``median``, ``p95``, a phase, a workload.
    values : tuple of float
        Along the horizontal axis, and along the vertical one where there is one.
    said : str
        The figure with its unit.
    base : float or None
        What it is divided by when figures are relative to the best; None where they are not.
    at : float or None
        Where the mark stands on the horizontal axis, if not at the value.
    """

    name: str
    values: tuple[float, ...]
    said: str
    base: float | None = None
    at: float | None = None


@dataclass(frozen=True)
class Series:
    """The points of one result.

    ``shown`` is what the chart writes beside a row: words, and the figure behind each.
    """

    index: int
    result: Result
    points: tuple[Point, ...]
    shown: tuple[tuple[str, float], ...] = ()

    def described(self) -> dict[str, Any]:
        """Return it as the page's script takes it."""
        return {
            "index": self.index,
            "engine": self.result.name,
            "label": self.result.label,
            "ranking": self.result.ranking,
            "verdict": self.result.verdict.value,
            "shown": self.shown,
            "points": [
                [p.name, [_short(v) for v in p.values], units.spaced(p.said), p.base, p.at]
                for p in self.points
            ],
        }


def _short(value: float) -> float:
    """Nine significant figures: more than a chart shows, less than a page carries."""
    return float(f"{value:.9g}")


@dataclass
class Plotted:
    """A chart's points, and how its axis can be drawn.

    Attributes
    ----------
    columns : tuple of str
        Heads of the values in a file of the chart's data, with units.
    series : sequence of Series
        In the order of the drawing.
    workload : str
        Of all points; empty where a point's name is its workload.
    along : str
        The axis that can be changed: ``x``, ``y``, or empty.
    scales : mapping of str to Scale
        The axis in every way, by ``linear``, ``log``, ``relative linear`` and ``relative log``.
    first : str
        The one that is drawn.
    rows : dict of str to list of (float, float, float)
        Where each row begins, ends and has its marks, in pixels from the top, by version.
    """

    columns: tuple[str, ...]
    series: Sequence[Series]
    workload: str = ""
    along: str = ""
    scales: Mapping[str, Scale] = field(default_factory=dict)
    first: str = ""
    rows: dict[str, list[tuple[float, float, float]]] = field(default_factory=dict)

    def drawn(self, figure: Figure, version: str) -> dict[str, Any]:
        """Return where one version's first axes stand in pixels, with its limits and ticks."""
        axes = figure.axes[0]
        box, height = axes.get_window_extent(), figure.get_figheight() * 72
        length_px = box.height if self.along == "y" else box.width
        return {
            "box": [_short(v) for v in (box.x0, height - box.y1, box.width, box.height)],
            "x": [*map(float, axes.get_xlim()), axes.get_xscale() == "log"],
            "y": [*map(float, axes.get_ylim()), axes.get_yscale() == "log"],
            "rows": self.rows.get(version),
            "axes": {
                name: {
                    "name": scale.name,
                    "limits": [scale.low, scale.high, scale.log],
                    "ticks": [
                        [_short(v), units.spaced(scale.tick(v))]
                        for v in ticks(scale, length_px, vertical=self.along == "y")
                    ],
                }
                for name, scale in self.scales.items()
            },
        }

    def described(self, versions: Mapping[str, Any]) -> dict[str, Any]:
        """Return everything as the page's script takes it."""
        return {
            "columns": self.columns,
            "workload": self.workload,
            "along": self.along,
            "first": self.first,
            "series": [series.described() for series in self.series],
            **versions,
        }


def bases(results: Sequence[Result], figures: Sequence[float | None], best: Any) -> list[float]:
    """Return for each result the best figure of its ranking, 0.0 where there is none.

    Parameters
    ----------
    results : sequence of Result
        All that are drawn.
    figures : sequence of float
        The figure by which each is ranked; None where it has none.
    best : callable
        ``max`` or ``min``.
    """
    sound: dict[bool, list[float]] = {True: [], False: []}
    for result, figure in zip(results, figures, strict=True):
        if figure and not result.verdict.bad:
            sound[result.measured].append(figure)
    return [best(sound[result.measured], default=0.0) for result in results]


def ticks(scale: Scale, length_px: float, *, vertical: bool) -> list[float]:
    """Return the values inside an axis that are written beside it."""
    from matplotlib.ticker import LogLocator, MaxNLocator

    if scale.log:
        subs, most = log_subdivisions(scale, length_px, vertical=vertical)
        values = LogLocator(10.0, subs=subs, numticks=most).tick_values(scale.low, scale.high)
    else:
        parts = max(2, int(length_px / (40 if vertical else 110)))
        values = MaxNLocator(parts).tick_values(scale.low, scale.high)
    return [float(value) for value in values if scale.low <= value <= scale.high * (1 + 1e-9)]


TICK_PX = {False: 62, True: 26}
"""Pixels that a tick needs on a horizontal axis, and on a vertical one."""


def log_subdivisions(
    scale: Scale, length_px: float, *, vertical: bool = False
) -> tuple[tuple[float, ...], int]:
    """Return which multiples of a power of ten are written, and the maximum number of ticks."""
    import math

    decade_px = length_px / math.log10(scale.high / scale.low)
    subs: tuple[float, ...] = (1.0,)
    if decade_px > 3.6 * TICK_PX[vertical]:
        subs = (1.0, 2.0, 5.0)
    elif decade_px > 2.2 * TICK_PX[vertical]:
        subs = (1.0, 3.0)
    return subs, 12 if len(subs) > 1 else max(2, int(length_px / TICK_PX[vertical]))


def ways(
    values: Sequence[float],
    bases: Sequence[float | None],
    scale: Callable[[Sequence[float], Callable[[float], str], bool], Scale],
    tick: Callable[[float], str],
) -> dict[str, Scale]:
    """Return an axis in every way that its values allow.

    Parameters
    ----------
    values, bases : sequence of float
        What is drawn, and what each is divided by to be relative to the best.
    scale : callable
        ``scale(values, tick, log)`` makes one.
    tick : callable
        Prints a value.
    """
    logs = (False, True) if any(value > 0 for value in values) else (False,)
    names = {False: "linear", True: "log"}
    made = {names[log]: scale(values, tick, log) for log in logs}
    shares = [v / base for v, base in zip(values, bases, strict=True) if base]
    if shares and any(shares):
        made |= {f"relative {names[log]}": scale(shares, units.ratio, log) for log in logs}
    return made
