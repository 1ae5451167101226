"""What happens as one setting is changed: a line for each engine, a point for each value."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from streamjoin.report import units
from streamjoin.report.charts.bars import loop_costs_us, semi_stream
from streamjoin.report.charts.canvas import Chart, Format, add_axes, draw_chart, new_figure
from streamjoin.report.charts.curves import AXIS_PX, PLOT_PX, draw_legend, row_heights_px, style
from streamjoin.report.charts.points import Plotted, Point, Scale, Series, ways
from streamjoin.report.charts.rows import apply_scale, scale_for
from streamjoin.report.charts.theme import sentinel
from streamjoin.report.results import ORIGINS
from streamjoin.report.sentences import rounds_said

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from streamjoin.report.results import Result, WorkloadResults

MIN_VALUES = 2
"""Minimum values of a setting that make a chart."""


@dataclass(frozen=True)
class Sweep:
    """One setting of one workload, changed while all others stay.

    Attributes
    ----------
    family, setting : str
        Which workload, which setting.
    others : str
        The settings that stay, as ``name=value``; empty if there are none.
    points : list of (float, WorkloadResults)
        By value; by position, where values are names.
    names : mapping of float to str
        How values are written that are no plain numbers.
    ordered : bool
        Whether there is something between two values.
    """

    family: str
    setting: str
    others: str
    points: list[tuple[float, WorkloadResults]]
    names: Mapping[float, str]
    ordered: bool

    @property
    def title(self) -> str:
        """Heading: ``duplicates against key_zipf (threads=2)``."""
        others = f" ({self.others})" if self.others else ""
        return f"{self.family} against {self.setting}{others}"

    def tick(self, value: float) -> str:
        """Write a value."""
        return self.names.get(value, f"{value:g}")


def sweeps(groups: Sequence[WorkloadResults]) -> list[Sweep]:
    """Find what was swept: settings that have several values."""
    points_by_key: dict[tuple[str, str, str], list[tuple[Any, WorkloadResults]]] = defaultdict(list)
    for group in groups:
        settings = group.workload.get("settings") or {}
        for name, value in settings.items():
            others = ", ".join(f"{_short(o)}={v}" for o, v in settings.items() if o != name)
            key = str(group.workload.get("family")), _short(name), others
            points_by_key[key].append((value, group))
    return [
        _sweep(*key, points)
        for key, points in points_by_key.items()
        if len({value for value, _ in points}) >= MIN_VALUES
    ]


def _sweep(family: str, setting: str, others: str, points: list[tuple[Any, Any]]) -> Sweep:
    """Give values positions on an axis: numbers if all are, else the order of their first use."""
    values = list(dict.fromkeys(value for value, _ in points))
    numbers = [_number(value) for value in values]
    ordered = None not in numbers
    at = dict(zip(values, numbers if ordered else map(float, range(len(values))), strict=True))
    names = {at[value]: str(value) for value in values if not ordered or isinstance(value, str)}
    placed = sorted(((at[value], group) for value, group in points), key=lambda point: point[0])
    return Sweep(family, setting, others, placed, names, ordered)


def _number(value: Any) -> float | None:
    """Read a number or a share, as ``1/8``."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(Fraction(value))
    except (ValueError, OverflowError, ZeroDivisionError):
        return None


def _short(path: str) -> str:
    return path.rpartition(".")[2]


@dataclass(frozen=True)
class Measure:
    """What is drawn against a setting.

    Attributes
    ----------
    name, title : str
        In identifiers, and as heading.
    of : callable
        The measure of a result, None where it has none.
    tick : callable
        Prints it.
    column : str
        Its head in a file, with its unit.
    best : callable or None
        ``max`` or ``min``; None where figures relative to the best say nothing.
    replayed : bool or None
        Whether it says something of replays alone (True), of data at rest alone (False), or of
        both.
    high : float or None
        Where the axis ends; None where the measures say.
    """

    name: str
    title: str
    of: Callable[[Result], float | None]
    tick: Callable[[float | None], str]
    column: str
    best: Callable[[float, float], float] | None = max
    replayed: bool | None = None
    high: float | None = None


def sweep_charts(key: str, groups: Sequence[WorkloadResults]) -> list[Chart]:
    """Draw every sweep: a chart for each measure that its records have."""
    drawn = []
    for index, sweep in enumerate(sweeps(groups)):
        replayed = sweep.points[0][1].workload.get("arrival") == "replay"
        for measure in MEASURES:
            if measure.replayed in {None, replayed}:
                chart = _chart(f"{key}-sweep{index + 1}-{measure.name}", sweep, measure)
                drawn += [] if chart is None else [chart]
    return drawn


def _throughput(result: Result) -> float | None:
    # A semi-stream join is judged by its service rate: throughput without its beginning.
    return None if _service_rate(result) is not None else result.throughput


def _latency_us(origin: str | None) -> Callable[[Result], float | None]:
    """Return the measure of latencies from one origin: another's are another quantity."""

    def measure(result: Result) -> float | None:
        return (result.latency_us or {}).get("p95") if result.latency_from == origin else None

    return measure


def _service_rate(result: Result) -> float | None:
    return semi_stream(result).get("service_rate_tuples_per_s")


def _cache_share(result: Result) -> float | None:
    recorded = semi_stream(result)
    return recorded.get("cache_share") if "cached" in recorded else None


def _held_bytes(result: Result) -> float | None:
    held = semi_stream(result).get("memory_bytes")
    return sum(held.values()) - (held.get("free") or 0) if held else None


def _loop_ratio(result: Result) -> float | None:
    costs = loop_costs_us(result)
    return costs[0] / costs[1] if costs and costs[1] else None


MEASURES = (
    Measure("call", "Whole call", lambda r: r.call_throughput, units.rate, "whole call (tuples/s)"),
    Measure(
        "throughput", "Throughput", _throughput, units.rate, "throughput (tuples/s)", replayed=False
    ),
    *(
        Measure(
            f"latency-{(origin or 'unknown').replace(' ', '-')}",
            f"p95 latency {words}",
            _latency_us(origin),
            units.microseconds,
            f"p95 latency {words} (us)",
            best=min,
            replayed=True,
        )
        for origin, words in ORIGINS.items()
    ),
    Measure(
        "service",
        "Service rate",
        _service_rate,
        units.rate,
        "service rate (tuples/s)",
        replayed=False,
    ),
    Measure(
        "cache",
        "Share served by the cache",
        _cache_share,
        units.percent,
        "share served by the cache",
        best=None,
        high=1.0,
    ),
    Measure(
        "held",
        "Memory held",
        _held_bytes,
        units.memory,
        "memory held (bytes)",
        best=min,
        replayed=True,
    ),
    Measure(
        "loop",
        "Cost of a loop, measured by modelled",
        _loop_ratio,
        units.ratio,
        "cost of a loop, measured by modelled",
        best=None,
    ),
)


def _lines(
    sweep: Sweep, measure: Callable[[Result], float | None]
) -> list[tuple[Result, list[tuple[float, float]]]]:
    """Engines in their order, each with (setting, measure) where its result was not wrong."""
    lines: dict[str, tuple[Result, list[tuple[float, float]]]] = {}
    for value, group in sweep.points:
        for result in group.results:
            measured = None if result.verdict.bad else measure(result)
            if measured is not None:
                lines.setdefault(result.label, (result, []))[1].append((value, measured))
    return list(lines.values())


def _chart(key: str, sweep: Sweep, measure: Measure) -> Chart | None:
    lines, title, tick = _lines(sweep, measure.of), measure.title, measure.tick
    if not lines:
        return None
    results = [result for result, _ in lines]
    values = [value for value, _ in sweep.points]
    measured = [y for _, points in lines for _, y in points]

    def draw(format_: Format) -> Figure:
        legend_px = sum(row_heights_px(format_, results))
        figure = new_figure(format_.width_px, PLOT_PX + AXIS_PX + legend_px)
        left, right = 84.0, 24.0
        axes = add_axes(figure, left, 10, format_.width_px - left - right, PLOT_PX)
        _scale_x(axes, format_, values, sweep)
        _scale_y(axes, format_, measured, measure)
        for result, points in lines:
            colour, dash, marker = style(result)
            drawn = axes.plot(
                [x for x, _ in points],
                [y for _, y in points],
                color=colour,
                linestyle=dash if sweep.ordered else "none",
                linewidth=2,
                marker=marker,
                markersize=5,
                clip_on=False,
            )
            drawn[0].set_gid(f"mark-{result.index}")
        draw_legend(figure, format_, results, PLOT_PX + AXIS_PX)
        return figure

    said = [
        f"{result.label}: " + ", ".join(f"{tick(y)} at {sweep.tick(x)}" for x, y in points)
        for result, points in lines
    ]
    alt = f"{title} against {sweep.setting}: {'; '.join(said)}.".replace(units.NBSP, " ")
    return draw_chart(
        key,
        f"{title}: {sweep.title}",
        caption=_caption(sweep, measure),
        alt=alt,
        marks=len(lines),
        draw=draw,
        plotted=_plotted(sweep, measure, lines),
    )


def _plotted(
    sweep: Sweep, measure: Measure, lines: list[tuple[Result, list[tuple[float, float]]]]
) -> Plotted:
    """Return the points of the lines; relative figures are to the best at the same setting."""
    best: dict[tuple[float, bool], float] = {}
    for result, points in lines:
        for x, y in points:
            at = x, result.measured
            if y > 0 and measure.best:
                best[at] = measure.best(best.get(at, y), y)
    names = {value: str(group.workload["name"]) for value, group in sweep.points}
    series = [
        Series(
            result.index,
            result,
            tuple(
                Point(
                    names[x],
                    (x, y),
                    f"{measure.tick(y)} at {sweep.setting} {sweep.tick(x)}",
                    best.get((x, result.measured)),
                )
                for x, y in points
            ),
        )
        for result, points in lines
    ]
    drawn = [point for each in series for point in each.points]
    measured = [point.values[1] for point in drawn]

    def make(values: Sequence[float], tick: Callable[[float], str], log: bool) -> Scale:
        positive = [value for value in values if value > 0]
        if log:
            return Scale(min(positive) / 1.3, max(positive) * 1.3, True, tick, "")
        return Scale(0.0, 1.05 * max(values) or 1.0, False, tick, "")

    return Plotted(
        columns=(sweep.setting, measure.column),
        series=series,
        along="" if measure.high else "y",
        scales={}
        if measure.high
        else ways(measured, [point.base for point in drawn], make, measure.tick),
        first="log" if is_log(measured) else "linear",
    )


def is_log(measured: Sequence[float]) -> bool:
    """Whether values span more than a decade."""
    positive = [y for y in measured if y > 0]
    return bool(positive) and max(positive) > 10 * min(positive)


def _caption(sweep: Sweep, measure: Measure) -> str:
    """Say of how many rounds and values the points are."""
    results = [r for _, group in sweep.points for r in group.results if not r.verdict.bad]
    rounds = rounds_said(results, median=measure.name in {"call", "throughput"})
    caption = f"Each point: {rounds}; {units.plural(len({at for at, _ in sweep.points}), 'value')}."
    if len({result.measured for result in results}) > 1:
        caption += (
            " Simulated lines, at the clock in the legend, are not ranked with measured ones."
        )
    return caption


def _scale_x(axes: Axes, format_: Format, values: Sequence[float], sweep: Sweep) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    drawn = values if sweep.ordered else [1.0]  # positions of names have no scale
    scale = scale_for(drawn, sweep.tick, sweep.setting)
    apply_scale(axes, scale, format_)
    low, high = min(values), max(values)
    if not sweep.ordered:
        axes.set_xlim(low - 0.5, high + 0.5)
    elif not scale.log:
        room = 0.03 * (high - low)
        axes.set_xlim(low - room, high + room)
    axes.xaxis.set_major_locator(FixedLocator(sorted(set(values))))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: sweep.tick(value)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(axis="x", pad=10)


def _scale_y(axes: Axes, format_: Format, measured: Sequence[float], measure: Measure) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    positive = [y for y in measured if y > 0]
    if measure.high is not None:
        axes.set_ylim(0, measure.high)
    elif is_log(measured):
        axes.set_yscale("log")
        axes.set_ylim(min(positive) / 1.3, max(positive) * 1.3)
        axes.yaxis.set_major_locator(LogLocator(10.0, subs=(1.0, 3.0), numticks=9))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(0, 1.05 * max(measured) or 1.0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: measure.tick(value)))
    axes.tick_params(axis="y", labelsize=format_.small_px)
    axes.grid(axis="y", color=sentinel("rule"), linewidth=1)
