"""Drawing in pixels, and the finished drawing as inline SVG.

Each chart is drawn twice, wide and narrow, in user units that are CSS pixels at the width it is
shown at: text stays readable on a telephone because nothing is scaled down to fit.
"""

from __future__ import annotations

import io
import json
import os
import re
import sys
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from streamjoin.report.charts.theme import sentinel, to_variables
from streamjoin_common.storage import cache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from streamjoin.report.charts.points import Plotted


@dataclass(frozen=True)
class Format:
    """One of the two versions of a chart; lengths in CSS pixels."""

    name: str
    width_px: int
    font_px: float
    small_px: float

    @property
    def narrow(self) -> bool:
        """Whether labels stand above their rows instead of beside them."""
        return self.name == "narrow"

    def text_px(self, characters: int) -> float:
        """Room that a text needs, on the safe side for any sans-serif font."""
        return characters * self.font_px * 0.61


WIDE = Format("wide", 1000, 13.0, 11.5)
NARROW = Format("narrow", 350, 12.5, 11.0)


@dataclass(frozen=True)
class Chart:
    """A finished chart: both versions as inline SVG, and how many series are in it.

    ``data`` is what the page's script knows of it, as JSON; empty where there is no script.
    """

    key: str
    title: str
    caption: str
    wide: str
    narrow: str
    marks: int
    data: str = ""


def elide(text: str, characters: int) -> str:
    """Shorten a text to a number of characters; tables carry it in full."""
    return text if len(text) <= characters else f"{text[: max(1, characters - 1)]}…"


def _choose_cache() -> None:
    """Keep matplotlib's font index in the environment, not in the user's home folder.

    Counts only before matplotlib is imported for the first time.
    """
    if "matplotlib" in sys.modules or "MPLCONFIGDIR" in os.environ:
        return
    os.environ["MPLCONFIGDIR"] = str(cache.mirror("matplotlib"))


@contextmanager
def _settings(salt: str) -> Iterator[None]:
    """Draw with matplotlib's own defaults, whatever the user's configuration says."""
    import matplotlib.style

    ours: dict[str, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": salt,
        "text.parse_math": False,
        "font.family": "sans-serif",
        "axes.unicode_minus": True,
        "hatch.linewidth": 1.6,
    }
    with matplotlib.style.context(["default", ours]), warnings.catch_warnings():
        # The browser sets the text, so glyphs missing from matplotlib's font do not matter.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def new_figure(width_px: float, height_px: float) -> Figure:
    """Return an empty transparent figure whose points are CSS pixels."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width_px / 72, height_px / 72), dpi=72)
    figure.patch.set_visible(False)
    return figure


def add_axes(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Place axes by pixels from the top left corner, calm: one baseline, faint grid."""
    full_width, full_height = (72 * inches for inches in figure.get_size_inches())
    axes = figure.add_axes(
        (left / full_width, 1 - (top + height) / full_height, width / full_width,
         height / full_height)
    )  # fmt: skip
    axes.patch.set_visible(False)
    for edge in ("top", "right", "left", "bottom"):
        axes.spines[edge].set_visible(False)
    axes.tick_params(which="both", length=0, colors=sentinel("muted"), pad=6)
    axes.set_axisbelow(True)
    return axes


def put_text(
    figure: Figure,
    position_px: tuple[float, float],
    text: str,
    *,
    size_px: float,
    colour: str = "ink",
    right: bool = False,
    bold: bool = False,
) -> None:
    """Write a string, its middle so many pixels from the top left corner."""
    width, height = (72 * inches for inches in figure.get_size_inches())
    figure.text(
        position_px[0] / width,
        1 - position_px[1] / height,
        text,
        fontsize=size_px,
        color=sentinel(colour),
        ha="right" if right else "left",
        va="center_baseline",
        fontweight="bold" if bold else "normal",
        parse_math=False,
    )


_NAMED = re.compile(r"(?:mark|row|span)-|matplotlib\.axis_")
"""Groups whose identifiers the page's script or a test looks for."""


@contextmanager
def tagged(figure: Figure, kind: str, index: int) -> Iterator[None]:
    """Name everything that is drawn inside as parts of one result.

    The page's script moves a ``row`` with its result, and stretches a ``span`` with the axis as
    well.
    """

    def artists() -> list[Artist]:
        inside = [artist for axes in figure.axes for artist in axes.get_children()]
        return [*figure.get_children(), *inside]

    before = set(map(id, artists()))
    yield
    new = [artist for artist in artists() if id(artist) not in before and not artist.get_gid()]
    for artist in new:
        artist.set_gid(f"{kind}-{index}-{id_number(artist, new)}")


def id_number(artist: Artist, among: list[Artist]) -> int:
    """Return the position of an artist among others, by identity."""
    return next(number for number, other in enumerate(among) if other is artist)


def _lighter(tag: str, used: set[str]) -> str:
    """Drop from a tag what a page can do without."""
    tag = re.sub(r" font-family: [^;\"]*;?", "", tag)
    tag = re.sub(r' transform="rotate\(-?0 [^)]*\)"', "", tag)
    tag = re.sub(r"(?<=[ \"(])-?\d+\.\d{3,}(?=[ \"\n)])", lambda n: f"{float(n[0]):.2f}", tag)
    return re.sub(
        r' id="([^"]*)"', lambda m: m[0] if m[1] in used or _NAMED.match(m[1]) else "", tag
    )


_NUMBER = r"-?\d+(?:\.\d+)?"
_CLIP = re.compile(
    rf'<clipPath id="(\w+)">\s*<rect x="({_NUMBER})" y="({_NUMBER})" width="({_NUMBER})" '
    rf'height="({_NUMBER})"/>\s*</clipPath>'
)
_CLIPPED = re.compile(
    r'<path d="(?P<path>[^"]*)" clip-path="url\(#(?P<of_path>\w+)\)"'
    r'|<g clip-path="url\(#(?P<of_marks>\w+)\)">(?P<marks>(?:\s*<use [^>]*/>)+)'
)
CLIP_SLACK_PX = 1.0
"""Pixels beyond a clipping rectangle at which nothing that is seen is cut off."""


def _without_idle_clips(body: str) -> str:
    """Drop the clipping of what lies inside its rectangle: that is most of the text of a chart."""
    rectangles = {match[1]: tuple(map(float, match.groups()[1:])) for match in _CLIP.finditer(body)}

    def unclipped(match: re.Match[str]) -> str:
        if match["path"] is not None:
            clip, numbers = match["of_path"], re.findall(_NUMBER, match["path"])
        else:
            clip = match["of_marks"]
            numbers = re.findall(rf' [xy]="({_NUMBER})"', match["marks"])
        x, y, width, height = rectangles.get(clip, (0.0, 0.0, -1e9, -1e9))
        inside = all(
            -CLIP_SLACK_PX <= float(number) - (y if index % 2 else x)
            <= (height if index % 2 else width) + CLIP_SLACK_PX
            for index, number in enumerate(numbers)
        )  # fmt: skip
        return match[0].replace(f' clip-path="url(#{clip})"', "", 1) if inside else match[0]

    body = _CLIPPED.sub(unclipped, body)
    for clip in rectangles:
        if f"url(#{clip})" not in body:
            body = re.sub(rf'<clipPath id="{clip}">.*?</clipPath>', "", body, flags=re.DOTALL)
    return re.sub(r"<defs>\s*</defs>", "", body)


def _inline(svg: str, prefix: str, format_: Format, alt: str, marks: int) -> str:
    """Turn matplotlib's SVG document into an element of the page.

    Declarations, metadata, the document-wide style and namespaces go, and so does what a page
    can do without: fonts, digits below a hundredth of a pixel, identifiers that nothing refers to.
    The others get the chart's prefix, because the page is one document; colours become variables.
    """
    body = svg[svg.index("<svg") :].strip()
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r"<defs>\s*<style[^>]*>.*?</style>\s*</defs>", "", body, flags=re.DOTALL)
    body = re.sub(r"<!--.*?-->", "", body, flags=re.DOTALL)
    body = body.replace("xlink:href=", "href=")
    used = set(re.findall(r'(?:href="|url\()#([^")]*)', body))
    body = re.sub(r"<[^>]*>", lambda tag: _lighter(tag[0], used), body)
    body = _without_idle_clips(body)
    body = re.sub(r"\s*\n\s*", lambda m: "\n" if m[0].count("\n") > 1 else " ", body)
    body = re.sub(r"> <|>\n<", "><", re.sub(r"<g/>", "", body))
    body = re.sub(r'\bid="', f'id="{prefix}-', body)
    body = re.sub(r'href="#', f'href="#{prefix}-', body)
    body = re.sub(r"url\(#", f"url(#{prefix}-", body)
    view = re.search(r'viewBox="[^"]*"', body)
    assert view is not None
    start = body.index(">") + 1
    opening = (
        f'<svg class="chart {format_.name}" role="img" aria-label="{escape(alt)}" '
        f'data-marks="{marks}" {view[0]}>'
    )
    return to_variables(opening + body[start:])


def draw_chart(
    key: str,
    title: str,
    *,
    caption: str,
    alt: str,
    marks: int,
    draw: Callable[[Format], Figure],
    plotted: Plotted | None = None,
) -> Chart:
    """Draw both versions of a chart.

    Parameters
    ----------
    key : str
        Identifier of the chart, unique on the page: letters, digits and hyphens.
    title, caption : str
        Heading and explanation; the caption is HTML.
    alt : str
        What the chart says, for those who do not see it.
    marks : int
        Artists with an identifier ``mark-...`` that each version holds.
    draw : callable
        Draws one version into a new figure; its first axes are those of the marks.
    plotted : Plotted, optional
        The figures behind the chart, for the page's script.
    """
    _choose_cache()
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    versions, boxes = [], {}
    for format_ in (WIDE, NARROW):
        prefix = f"{key}-{format_.name}"
        with _settings(prefix):
            figure = draw(format_)
            if plotted:
                boxes[format_.name] = plotted.drawn(figure, format_.name)
            buffer = io.StringIO()
            metadata: dict[str, Any] = dict.fromkeys(("Date", "Creator", "Format", "Type"))
            FigureCanvasSVG(figure).print_svg(buffer, metadata=metadata)  # type: ignore[no-untyped-call]
        versions.append(_inline(buffer.getvalue(), prefix, format_, alt, marks))
    data = json.dumps(plotted.described(boxes), separators=(",", ":")) if plotted else ""
    return Chart(key, title, caption, versions[0], versions[1], marks, data.replace("<", "\\u003c"))
