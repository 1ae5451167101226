"""The scaffold of every chart with one row for each engine: label, drawing, value.

On a wide page the label stands left and the value right of the drawing; on a narrow one both
stand above it. No result is dropped: one with nothing to draw has its row and says why.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from streamjoin.report import units
from streamjoin.report.charts.canvas import (
    Format,
    add_axes,
    elide,
    new_figure,
    put_text,
    tagged,
)
from streamjoin.report.charts.points import (
    Plotted,
    Point,
    Scale,
    Series,
    bases,
    log_subdivisions,
    ways,
)
from streamjoin.report.charts.theme import sentinel
from streamjoin.report.results import Verdict, ranking_title

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from streamjoin.report.results import Result

AXIS_PX = 56
NOTE_PX = 15
HEADING_PX = 26
BAR_PX = 16
LABEL_PX = 290


@dataclass(frozen=True)
class Row:
    """One engine's row: the result, what to print as its value, and whether it has a mark.

    ``clocked`` says whether the figures depend on the result's clock, which is named then.
    ``section`` heads the rows that are ranked with each other, where a chart has several rankings.
    """

    result: Result
    value: str
    drawn: bool
    clocked: bool = True
    section: str = ""

    @property
    def notes(self) -> tuple[tuple[str, str], ...]:
        """Lines under the name, each with its palette name."""
        return self.result.notes if self.clocked else self.result.unclocked_notes

    @property
    def colour(self) -> str:
        """Palette name of the label and value: what does not agree stands out."""
        return "bad" if self.result.verdict.bad else "ink"

    @property
    def value_text(self) -> str:
        """The value, preceded by the verdict where the result is wrong."""
        wrong = self.result.verdict is Verdict.WRONG
        return f"wrong: {self.value}" if wrong else self.value


def ranked(
    results: Sequence[Result], row_of: Callable[[Result], Row], rank: Callable[[Result], float]
) -> list[Row]:
    """Rank measured results among themselves, and below them simulated ones likewise."""
    rows = []
    for measured in (True, False):
        chosen = sorted((r for r in results if r.measured == measured), key=rank)
        rows += [replace(row_of(result), section=ranking_title(chosen)) for result in chosen]
    return rows


def headings(rows: Sequence[Row]) -> list[str]:
    """Heading above each row: its section's above the first where there are several."""
    sections = [row.section for row in rows]
    if len(set(sections)) < 2:
        return [""] * len(rows)
    before = ["", *sections]
    return [
        section if section != last else "" for section, last in zip(sections, before, strict=False)
    ]


def scale_for(
    values: Sequence[float], tick: Callable[[float], str], name: str, *, always_log: bool = False
) -> Scale:
    """Choose the axis: logarithmic as soon as the values span more than a decade.

    Parameters
    ----------
    values : sequence of float
        Everything that is drawn; values of 0 stand at the left end of a logarithmic axis.
    tick : callable
        Prints a value.
    name : str
        What the axis shows; says so itself when it is logarithmic.
    always_log : bool
        Whether to use a logarithmic axis for less than a decade too.
    """
    positive = [value for value in values if value > 0]
    log = bool(positive) and (always_log or max(positive) > 10 * min(positive))
    return scale_of(values, tick, name, log=log)


def scale_of(
    values: Sequence[float], tick: Callable[[float], str], name: str, *, log: bool
) -> Scale:
    """Return an axis for values; a logarithmic one needs a value above 0."""
    positive = [value for value in values if value > 0]
    if not log:
        return Scale(0.0, 1.04 * max(positive) if positive else 1.0, False, tick, name)
    # A mark at the axis would be a value of 0: leave some room below the smallest.
    return Scale(min(positive) / 1.6, max(positive) * 1.1, True, tick, f"{name}, log scale")


def apply_scale(axes: Axes, scale: Scale, format_: Format) -> None:
    """Give axes their horizontal scale, ticks, grid and name."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    formatter = FuncFormatter(lambda value, _: scale.tick(value))
    if scale.log:
        axes.set_xscale("log")
        subs, ticks = log_subdivisions(scale, axes.bbox.width)
        axes.xaxis.set_major_locator(LogLocator(10.0, subs=subs, numticks=ticks))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(max(2, int(axes.bbox.width / 110))))
    axes.xaxis.set_major_formatter(formatter)
    axes.set_xlim(scale.low, scale.high)
    axes.grid(axis="x", color=sentinel("rule"), linewidth=1)
    axes.tick_params(axis="x", labelsize=format_.small_px)
    axes.set_xlabel(scale.name, fontsize=format_.small_px, color=sentinel("muted"), labelpad=8)


def plotted_rows(
    column: str,
    rows: Sequence[Row],
    scale: Scale,
    figures_of: Callable[[Result], list[tuple[str, float]]],
    *,
    shown: Callable[[list[tuple[str, float]]], list[tuple[str, float]]],
    say: Callable[[float], str],
    best: Callable[..., float],
) -> Plotted:
    """Return the points of a chart whose rows are ranked by their first figure.

    Parameters
    ----------
    column : str
        Head of the figures in a file, with their unit.
    rows, scale
        As they are drawn.
    figures_of : callable
        The figures of a result with their names; empty where there is none.
    shown : callable
        Which of them stand beside the row.
    say : callable
        Prints a figure with its unit.
    best : callable
        ``max`` or ``min``.
    """
    figures = [figures_of(row.result) if row.drawn else [] for row in rows]
    firsts = [of[0][1] if of else None for of in figures]
    best_of = bases([row.result for row in rows], firsts, best)
    series = [
        Series(
            index,
            row.result,
            tuple(Point(name, (value,), say(value), base or None) for name, value in of),
            tuple(("" if len(shown(of)) < 2 else f"{name} ", value) for name, value in shown(of)),
        )
        for index, (row, of, base) in enumerate(zip(rows, figures, best_of, strict=True))
    ]
    points = [point for each in series for point in each.points]
    plain = scale.name.removesuffix(", log scale")

    def make(values: Sequence[float], tick: Callable[[float], str], log: bool) -> Scale:
        name = f"{plain}, relative to the best" if tick is units.ratio else plain
        return scale_of(values, tick, name, log=log)

    return Plotted(
        columns=(column,),
        series=series,
        workload=str(rows[0].result.record["workload"]),
        along="x",
        scales=ways([p.values[0] for p in points], [p.base for p in points], make, scale.tick),
        first="log" if scale.log else "linear",
    )


def draw_rows(
    format_: Format,
    rows: Sequence[Row],
    scale: Scale,
    paint: Callable[[Axes, Row, int, float], None],
    plotted: Plotted,
) -> Figure:
    """Lay out one row for each result and let ``paint`` fill those that have something.

    Parameters
    ----------
    format_ : Format
        Wide or narrow.
    rows : sequence of Row
        From top to bottom.
    scale : Scale
        The horizontal axis.
    paint : callable
        ``paint(axes, row, index, y)`` draws around ``y``, in pixels from the axes' top.
    plotted : Plotted
        Learns where the rows stand.
    """
    value_px = max(format_.text_px(len(row.value_text)) for row in rows)
    heads_px = [20.0 + NOTE_PX * len(row.notes) for row in rows]
    if format_.narrow:
        heights = [
            head + (BAR_PX + 14 if row.drawn else 2)
            for head, row in zip(heads_px, rows, strict=True)
        ]
        left, right = 1.0, 18.0
    else:
        heights = [(32.0, 40.0, 54.0)[len(row.notes)] for row in rows]
        widest = max(
            format_.text_px(len(text))
            for row in rows
            for text in (row.result.name, *(note for note, _ in row.notes))
        )
        left, right = min(max(widest, 90.0), float(LABEL_PX)) + 12, min(value_px, 300.0) + 16
    above = [HEADING_PX if heading else 0 for heading in headings(rows)]
    height = sum(heights) + sum(above)
    figure = new_figure(format_.width_px, height + AXIS_PX)
    axes = add_axes(figure, left, 0, format_.width_px - left - right, height)
    axes.set_ylim(height, 0)
    axes.set_yticks([])
    apply_scale(axes, scale, format_)
    axes.axvline(scale.low, color=sentinel("muted"), linewidth=1, zorder=0.6, gid="row-frame")
    top = 0.0
    places = plotted.rows[format_.name] = []
    for index, (row, heading) in enumerate(zip(rows, headings(rows), strict=True)):
        if heading:
            with tagged(figure, "row-head", index):
                _cover(axes, top, HEADING_PX)
                put_text(
                    figure,
                    (0, top + HEADING_PX / 2),
                    heading,
                    size_px=format_.small_px,
                    colour="muted",
                    bold=True,
                )
            top += HEADING_PX
        middle = top + heights[index] / 2
        label_y = middle - NOTE_PX / 2 * len(row.notes)
        room_px = float(LABEL_PX)
        with tagged(figure, "row", index):
            if format_.narrow:
                # Words stand above the drawing here: no grid line may cross them.
                _cover(axes, top, heads_px[index])
                middle = top + heads_px[index] + 4 + BAR_PX / 2
                label_y, room_px = top + 11, format_.width_px - value_px - 14
            value_y = label_y if format_.narrow else middle
            _put_words(figure, format_, row, (label_y, value_y), room_px)
        if row.drawn:
            with tagged(figure, "span", index):
                paint(axes, row, index, middle)
        places.append((top, top + heights[index], middle))
        top += heights[index]
    return figure


def _cover(axes: Axes, top_px: float, height_px: float) -> None:
    """Cover the lines behind words, and the half of the first line that is outside the axes."""
    axes.axhspan(
        top_px,
        top_px + height_px,
        xmin=-0.02,
        facecolor=sentinel("paper"),
        zorder=0.8,
        clip_on=False,
    )


def _put_words(
    figure: Figure, format_: Format, row: Row, heights_px: tuple[float, float], room_px: float
) -> None:
    """Write a row's name, note and value; ``heights_px`` are those of name and value."""
    result, small = row.result, format_.small_px
    name = elide(result.name, int(room_px / format_.text_px(1)))
    put_text(
        figure,
        (0, heights_px[0]),
        name,
        size_px=format_.font_px,
        colour=row.colour,
        bold=result.verdict.bad,
    )
    note_px = float(format_.width_px if format_.narrow else LABEL_PX)
    for line, (note, colour) in enumerate(row.notes, start=1):
        text = elide(note, int(note_px / (small * 0.61)))
        put_text(figure, (0, heights_px[0] + NOTE_PX * line), text, size_px=small, colour=colour)
    end = (float(format_.width_px), heights_px[1])
    put_text(
        figure, end, row.value_text, size_px=format_.font_px, colour=row.colour, right=True
    )  # fmt: skip
