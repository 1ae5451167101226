"""The progressiveness curve: the share of all matches produced by elapsed time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamjoin.report import units
from streamjoin.report.charts.canvas import (
    Chart,
    Format,
    add_axes,
    draw_chart,
    elide,
    new_figure,
    tagged,
)
from streamjoin.report.charts.points import Plotted, Point, Scale, Series, ways
from streamjoin.report.charts.rows import apply_scale, scale_for
from streamjoin.report.charts.theme import sentinel, series_style
from streamjoin.report.results import Result, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PLOT_PX = 250
LEGEND_ROW_PX = 20
NOTE_PX = 14
AXIS_PX = 68
MAX_LABEL_CHARACTERS = 40
"""Maximum characters for which a legend entry makes room."""


def _points(result: Result) -> list[tuple[float, float]]:
    """The curve as (milliseconds, share), in the order of time; empty where not recorded."""
    if result.verdict is Verdict.FAILED:
        return []
    return sorted((ms, share) for share, ms in result.record.get("progress") or [])


def _entry(result: Result) -> str:
    """Name in the legend, with a word on what is not as it should be."""
    if not _points(result):
        return f"{result.name}: {result.absence('curve')}"
    return f"{result.name}, wrong" if result.verdict is Verdict.WRONG else result.name


def row_heights_px(format_: Format, results: Sequence[Result]) -> list[int]:
    """Height of each legend row: more than one line where one of its entries has notes."""
    columns = _columns(format_, results)
    rows = [results[start : start + columns] for start in range(0, len(results), columns)]
    return [LEGEND_ROW_PX + NOTE_PX * max(len(r.notes) for r in row) for row in rows]


def style(result: Result) -> tuple[str, object, str]:
    """Colour, dash and marker of an engine's line."""
    colour, dash, marker = series_style(result.index)
    bad = result.verdict.bad
    return (sentinel("bad") if bad else colour), dash, ("x" if bad else marker)


def draw_legend(figure: Figure, format_: Format, results: Sequence[Result], top: float) -> None:
    """Write one legend entry for each result below the curve, in equal columns."""
    columns = _columns(format_, results)
    column_px, heights = format_.width_px / columns, row_heights_px(format_, results)
    height = sum(heights)
    axes = add_axes(figure, 0, top, format_.width_px, height)
    axes.set_xlim(0, format_.width_px)
    axes.set_ylim(height, 0)
    axes.set_axis_off()
    room = int((column_px - 44) / (format_.small_px * 0.61))
    for index, result in enumerate(results):
        left = (index % columns) * column_px
        y = sum(heights[: index // columns]) + LEGEND_ROW_PX / 2
        colour, dash, marker = style(result)
        with tagged(figure, "row", result.index):
            if _points(result):
                axes.plot([left + 2, left + 30], [y, y], color=colour, linestyle=dash, linewidth=2)
                axes.plot(left + 16, y, marker, color=colour, markersize=6)
            name_colour = "bad" if result.verdict.bad else "ink" if _points(result) else "muted"
            lines = ((_entry(result), name_colour), *result.notes)
            for line, (text, text_colour) in enumerate(lines):
                axes.text(
                    left + 38,
                    y + NOTE_PX * line,
                    elide(text, room),
                    fontsize=format_.small_px,
                    color=sentinel(text_colour),
                    va="center_baseline",
                )


def _columns(format_: Format, results: Sequence[Result]) -> int:
    """Legend columns that leave every entry its room."""
    labels = [label for r in results for label in (_entry(r), *(note for note, _ in r.notes))]
    characters = min(MAX_LABEL_CHARACTERS, max(map(len, labels)))
    return max(1, min(4, int(format_.width_px / (characters * format_.small_px * 0.61 + 50))))


def _plot(axes: Axes, format_: Format, results: Sequence[Result], scale: Scale) -> None:
    from matplotlib.ticker import FuncFormatter

    axes.set_ylim(0, 1.02)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: units.percent(value)))
    axes.tick_params(axis="y", labelsize=format_.small_px)
    apply_scale(axes, scale, format_)
    axes.tick_params(axis="x", pad=10)
    axes.grid(axis="y", color=sentinel("rule"), linewidth=1)
    axes.axhline(0, color=sentinel("muted"), linewidth=1)
    for result in results:
        points = _points(result)
        if not points:
            continue
        colour, dash, marker = style(result)
        times = [max(ms, scale.low) for ms, _ in points]
        lines = axes.plot(
            times,
            [share for _, share in points],
            color=colour,
            linestyle=dash,
            linewidth=2,
            marker=marker,
            markersize=5,
            markevery=max(1, len(points) // 6),
            clip_on=False,
        )
        lines[0].set_gid(f"mark-{result.index}")


def progress_chart(key: str, results: Sequence[Result]) -> Chart | None:
    """Draw the share of all matches produced by elapsed time, one curve for each engine.

    Returns None if no result has a curve; otherwise every result is in the legend.
    """
    curves = {result.index: points for result in results if (points := _points(result))}
    if not curves:
        return None
    ends = [points[-1][0] for points in curves.values()]
    # On a logarithmic axis the fastest curve gets somewhat more than its last decade.
    span = scale_for(ends, lambda ms: units.seconds(ms / 1000), "time since the start")
    firsts = [ms for points in curves.values() for ms, _ in points if ms > 0]
    low = max(min(firsts), min(end for end in ends if end > 0) / 20) if firsts else 0.0
    scale = Scale(low, max(ends) * 1.02, True, span.tick, span.name) if span.log else span

    def draw(format_: Format) -> Figure:
        legend_px = sum(row_heights_px(format_, results))
        figure = new_figure(format_.width_px, PLOT_PX + AXIS_PX + legend_px)
        left, right = 52.0, 24.0
        axes = add_axes(figure, left, 10, format_.width_px - left - right, PLOT_PX)
        _plot(axes, format_, results, scale)
        draw_legend(figure, format_, results, PLOT_PX + AXIS_PX)
        return figure

    said = []
    for result in results:
        points = curves.get(result.index, [])
        if not points:
            said.append(f"{result.label}: {result.absence('curve')}")
            continue
        half = next((ms for ms, share in points if share >= 0.5), points[-1][0])
        last = points[-1][0]
        clock = f" at {result.clock.text}" if result.clock else ""
        said.append(
            f"{result.label}{clock}: half by {units.seconds(half / 1000)}, "
            f"last by {units.seconds(last / 1000)}"
        )
    alt = f"Share of all matches by elapsed time: {'; '.join(said)}.".replace(units.NBSP, " ")
    caption = "The higher and the further left a curve, the sooner its matches were there."
    if len({result.measured for result in results if result.index in curves}) > 1:
        caption += (
            " Simulated curves, at the clock in the legend, are not ranked with measured ones."
        )
    return draw_chart(
        key,
        "Progressiveness",
        caption=caption,
        alt=alt,
        marks=len(curves),
        draw=draw,
        plotted=_plotted([(r, curves[r.index]) for r in results if r.index in curves], scale),
    )


def _plotted(curves: Sequence[tuple[Result, list[tuple[float, float]]]], scale: Scale) -> Plotted:
    """Return the points of the curves, and the axis of time in both ways."""

    def make(values: Sequence[float], tick: Callable[[float], str], log: bool) -> Scale:
        low, high = min(value for value in values if value > 0), max(values)
        if log == scale.log:
            return scale
        name = "time since the start"
        if log:
            return Scale(max(low, high / 1000), scale.high, True, tick, f"{name}, log scale")
        return Scale(0.0, scale.high, False, tick, name)

    series = [
        Series(
            result.index,
            result,
            tuple(
                Point("", (ms, share), f"{units.percent(share)} by {units.seconds(ms / 1000)}")
                for ms, share in points
            ),
        )
        for result, points in curves
    ]
    times = [ms for _, points in curves for ms, _ in points]
    return Plotted(
        columns=("time (ms)", "share of all matches"),
        series=series,
        workload=str(curves[0][0].record["workload"]),
        along="x",
        scales=ways(times, [None] * len(times), make, scale.tick)
        if any(times)
        else {"linear": scale},
        first="log" if scale.log else "linear",
    )
