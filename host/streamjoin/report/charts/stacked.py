"""Charts whose rows have several parts: stacked ones, or two bars beside each other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamjoin.report import units
from streamjoin.report.charts.canvas import Chart, draw_chart
from streamjoin.report.charts.points import Plotted, Point, Scale, Series
from streamjoin.report.charts.rows import BAR_PX, Row, draw_rows, headings
from streamjoin.report.charts.theme import sentinel

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from matplotlib.axes import Axes

    from streamjoin.report.results import Result

LETTER_PX, MARGIN_PX = 6.9, 6
"""Of the words inside a bar."""


@dataclass(frozen=True)
class Stacked:
    """How parts are stacked.

    Attributes
    ----------
    title, said, axis : str
        Heading, beginning of the text alternative, name of the axis.
    tick : callable
        Prints a part.
    parts : mapping of str to (str, str)
        In their order: words and palette name.
    least_high : float
        Minimum end of the axis.
    """

    title: str
    said: str
    axis: str
    tick: Callable[[float | None], str]
    parts: Mapping[str, tuple[str, str]]
    least_high: float = 0.0


@dataclass(frozen=True)
class Paired:
    """How two bars stand beside each other; as :class:`Stacked`.

    Attributes
    ----------
    parts : pair of (str, str, str)
        Words, palette name and hatch of the upper bar and of the lower.
    high : float or None
        Where the axis ends; None where the values say.
    """

    title: str
    said: str
    axis: str
    tick: Callable[[float | None], str]
    parts: tuple[tuple[str, str, str], tuple[str, str, str]]
    high: float | None = None


def spoken(rows: Sequence[Row]) -> str:
    """Every row in words, for a chart's text alternative."""
    said = []
    for row, heading in zip(rows, headings(rows), strict=True):
        note = (
            f" at {row.result.clock.text}" if row.clocked and row.result.clock and row.drawn else ""
        )
        said.append(f"{heading and heading + ': '}{row.result.label} {row.value_text}{note}")
    return plain("; ".join(said))


def plain(text: str) -> str:
    """Text without the narrow spaces of the page."""
    return text.replace(units.NBSP, " ").replace(units.THIN, " ")


def stacked_chart(
    key: str,
    how: Stacked,
    results: Sequence[Result],
    what: str,
    parts_of: Callable[[Result], tuple[dict[str, float], str] | None],
) -> Chart | None:
    """Draw a row of stacked parts for each result.

    Parameters
    ----------
    key : str
        The chart's identifier.
    how : Stacked
        Its looks.
    results : sequence of Result
        From top to bottom.
    what : str
        What a result lacks that has none, in words.
    parts_of : callable
        A result's parts by name and the row's value in words, or None.

    Returns
    -------
    Chart or None
        None if no result has parts.
    """
    rows: list[Row] = []
    shown: dict[int, dict[str, float]] = {}
    for result in results:
        parts_and_text = parts_of(result)
        if parts_and_text is None:
            rows.append(Row(result, result.absence(what), False, clocked=False))
        else:
            shown[result.index], text = parts_and_text
            rows.append(Row(result, text, True, clocked=False))
    if not shown:
        return None
    high = max(how.least_high, *(sum(parts.values()) for parts in shown.values())) or 1.0
    scale = Scale(0.0, high, False, how.tick, how.axis)

    def paint(axes: Axes, row: Row, index: int, y: float) -> None:
        left = 0.0
        for part, value in shown[row.result.index].items():
            if value <= 0:
                continue
            name, colour = how.parts[part]
            bars = axes.barh(
                y,
                value,
                BAR_PX + 4,
                left=left,
                color=sentinel(colour),
                edgecolor=sentinel("muted"),
                linewidth=0.6,
            )
            bars[0].set_gid(f"mark-{index}-{part}")
            width_px = value / high * axes.bbox.width
            figure = how.tick(value)
            for text in (f"{name} {figure}", name, figure):
                if len(text) * LETTER_PX + MARGIN_PX < width_px:
                    axes.text(
                        left + value / 2, y, text, fontsize=11, color=sentinel("ink"),
                        ha="center", va="center_baseline",
                    )  # fmt: skip
                    break
            left += value

    def points_of(result: Result) -> list[Point]:
        points, left = [], 0.0
        for part, value in shown.get(result.index, {}).items():
            if value > 0:
                said = how.tick(value)
                points.append(Point(how.parts[part][0], (value,), said, at=left + value / 2))
            left += value
        return points

    plotted = _plotted(how, rows, scale, points_of)
    said = []
    for row in rows:
        parts = shown.get(row.result.index, {})
        words = [f"{how.parts[p][0]} {how.tick(v)}" for p, v in parts.items() if v > 0]
        took = f" ({row.value_text})" if row.result.simulated and words else ""
        said.append(f"{row.result.label} {', '.join(words) or row.value_text}{took}")
    return draw_chart(
        key,
        how.title,
        caption=" ".join(_swatch(colour, name) for name, colour in how.parts.values()),
        alt=plain(f"{how.said}: {'; '.join(said)}."),
        marks=sum(value > 0 for parts in shown.values() for value in parts.values()),
        draw=lambda f: draw_rows(f, rows, scale, paint, plotted),
        plotted=plotted,
    )


def paired_chart(
    key: str,
    how: Paired,
    results: Sequence[Result],
    what: str,
    values_of: Callable[[Result], tuple[float, float] | None],
) -> Chart | None:
    """Draw two bars for each result, one below the other; parameters as for stacked ones."""
    rows: list[Row] = []
    shown: dict[int, tuple[float, float]] = {}
    (upper, *_), (lower, *_) = how.parts
    for result in results:
        values = values_of(result)
        if values is None:
            rows.append(Row(result, result.absence(what), False, clocked=False))
            continue
        shown[result.index] = values
        text = f"{how.tick(values[0])}, {how.tick(values[1])}"
        rows.append(Row(result, text, True, clocked=False))
    if not shown:
        return None
    high = how.high or max(value for pair in shown.values() for value in pair) or 1.0
    scale = Scale(0.0, high, False, how.tick, how.axis)

    def paint(axes: Axes, row: Row, index: int, y: float) -> None:
        pair = zip(shown[row.result.index], how.parts, strict=True)
        for bar, (value, (_, colour, hatch)) in enumerate(pair):
            bars = axes.barh(
                y - 5 + 10 * bar, max(value, 0.002 * high), 9, facecolor=sentinel(colour),
                edgecolor=sentinel("paper"), hatch=hatch, linewidth=0,
            )  # fmt: skip
            bars[0].set_gid(f"mark-{index}-{bar}")

    def points_of(result: Result) -> list[Point]:
        pair = zip(how.parts, shown.get(result.index, ()), strict=False)
        return [Point(part, (value,), how.tick(value)) for (part, *_), value in pair]

    plotted = _plotted(how, rows, scale, points_of)
    words = (f"{upper} (upper bar)", f"{lower} (lower bar, striped)")
    colours = [colour for _, colour, _ in how.parts]
    return draw_chart(
        key,
        how.title,
        caption=" ".join(map(_swatch, colours, words)),
        alt=f"{how.said}: {spoken(rows)}.",
        marks=2 * len(shown),
        draw=lambda f: draw_rows(f, rows, scale, paint, plotted),
        plotted=plotted,
    )


def _plotted(
    how: Stacked | Paired,
    rows: Sequence[Row],
    scale: Scale,
    points_of: Callable[[Result], list[Point]],
) -> Plotted:
    """Return the points of a chart whose axis stays as it is drawn."""
    series = [
        Series(index, row.result, tuple(points_of(row.result))) for index, row in enumerate(rows)
    ]
    return Plotted(
        columns=(how.axis,),
        series=series,
        workload=str(rows[0].result.record["workload"]),
        along="x",
        scales={"linear": scale},
        first="linear",
    )


def _swatch(colour: str, words: str) -> str:
    variable = colour.replace("_", "-")
    return (
        f"<span class=key><i class=swatch style='background:var(--{variable})'></i>{words}</span>"
    )
