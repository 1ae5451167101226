"""Line charts of a few named curves over one axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from streamjoin.report import units
from streamjoin.report.charts.canvas import Chart, Format, add_axes, draw_chart, new_figure
from streamjoin.report.charts.rows import apply_scale
from streamjoin.report.charts.theme import sentinel, series_style

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from streamjoin.report.charts.points import Scale

PLOT_PX = 230
AXIS_PX = 64
LEGEND_PX = 24
DASH_PX = 24
LEFT_PX = 76.0
RIGHT_PX = 24.0


def line_chart(
    key: str,
    title: str,
    caption: str,
    curves: Mapping[str, tuple[Any, Any]],
    scale: Scale,
    *,
    steps: bool,
    tick: Callable[[float], str],
) -> Chart:
    """Draw one curve for each name, over one axis.

    Parameters
    ----------
    key, title, caption : str
        Identity of the chart, its heading, and the sentence below.
    curves : mapping of str to (ndarray, ndarray)
        Horizontal and vertical values by name; for steps one edge more than heights.
    scale : Scale
        The horizontal axis; if it is logarithmic, so is the vertical one.
    steps : bool
        Whether to draw steps, not lines.
    tick : callable
        Prints a vertical value.
    """

    def draw(format_: Format) -> Figure:
        width = format_.width_px - LEFT_PX - RIGHT_PX
        places = _legend(list(curves), format_, width)
        top = LEGEND_PX * (places[-1][1] + 1)
        figure = new_figure(format_.width_px, top + PLOT_PX + AXIS_PX)
        axes = add_axes(figure, LEFT_PX, top, width, PLOT_PX)
        _plot(axes, list(curves.items()), format_, scale, steps=steps, tick=tick)
        for index, (name, (left_px, row)) in enumerate(zip(curves, places, strict=True)):
            colour, dash, _ = series_style(index)
            left, up = left_px / width, 1 + (top - LEGEND_PX * (row + 0.5)) / PLOT_PX
            axes.plot([left, left + DASH_PX / width], [up] * 2, color=colour, linestyle=dash,
                      linewidth=2, transform=axes.transAxes, clip_on=False)  # fmt: skip
            axes.text(left + (DASH_PX + 6) / width, up, name, fontsize=format_.small_px,
                      color=sentinel("ink"), va="center_baseline",
                      transform=axes.transAxes)  # fmt: skip
        return figure

    said = "; ".join(f"{name}: at most {tick(float(max(y)))}" for name, (_, y) in curves.items())
    alt = f"{title}. {said}.".replace(units.NBSP, " ")
    return draw_chart(key, title, caption=caption, alt=alt, marks=len(curves), draw=draw)


def _legend(names: Sequence[str], format_: Format, width_px: float) -> list[tuple[float, int]]:
    """Return where each name begins, in pixels from the left, and in which row it stands."""
    places: list[tuple[float, int]] = []
    left, row = 0.0, 0
    for name in names:
        needed = DASH_PX + 6 + 0.6 * format_.small_px * len(name)
        if places and left + needed > width_px:
            left, row = 0.0, row + 1
        places.append((left, row))
        left += needed + 18
    return places


def _plot(
    axes: Axes,
    curves: Sequence[tuple[str, tuple[Any, Any]]],
    format_: Format,
    scale: Scale,
    *,
    steps: bool,
    tick: Callable[[float], str],
) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    apply_scale(axes, scale, format_)
    if scale.log:
        axes.set_yscale("log")
        heights = [y for _, (_, y) in curves]
        low, high = min(float(y.min()) for y in heights), max(float(y.max()) for y in heights)
        axes.set_ylim(low / 1.25, high * 1.3)
        axes.yaxis.set_minor_locator(MaxNLocator(1))
    else:
        axes.set_ylim(0, max(1.0, *(float(y.max()) for _, (_, y) in curves)) * 1.06)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: tick(value)))
    axes.yaxis.set_minor_formatter(FuncFormatter(lambda *_: ""))
    axes.tick_params(axis="y", labelsize=format_.small_px)
    axes.grid(axis="y", color=sentinel("rule"), linewidth=1)
    for index, (name, (x, y)) in enumerate(curves):
        colour, dash, _ = series_style(index)
        points = (np.repeat(x, 2)[1:-1], np.repeat(y, 2)) if steps else (x, y)
        lines = axes.plot(*points, color=colour, linestyle=dash, linewidth=1.6)
        lines[0].set_gid(f"mark-{name}")
