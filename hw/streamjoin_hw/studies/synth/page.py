"""A study as a page of its own: a chart, a table, and what they rest on. It loads nothing."""

import html
import io
from collections.abc import Callable, Sequence
from typing import Any

from streamjoin_common.contract import DesignParams

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
  color: #1c2733; background: #fff; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .8rem .2rem 0; text-align: left; border-bottom: 1px solid #d8dee6; }
svg { width: 100%; height: auto; }
.note { color: #56626f; }
"""
INK, ACCENT, FAINT = "#1c2733", "#0b6bb8", "#8a96a3"


def drawn(paint: Callable[[Any], None], *, panels: int, alt: str) -> str:
    """Draw panels side by side and return them as SVG.

    Parameters
    ----------
    paint : callable taking a sequence of Axes
        Draws.
    panels : int
        How many there are.
    alt : str
        The chart in words.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    style: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": "streamjoin",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.edgecolor": FAINT,
        "axes.grid": True,
        "grid.color": "#e4e9ef",
        "font.size": 10,
    }
    with mpl.rc_context(style):
        figure = Figure(figsize=(4.6 * panels, 3.4), layout="constrained")
        axes = figure.subplots(1, panels, squeeze=False)[0]
        paint(axes)
        buffer = io.StringIO()
        FigureCanvasSVG(figure).print_svg(buffer, metadata={"Date": None})  # type: ignore[no-untyped-call]
    svg = buffer.getvalue()
    body = svg[svg.index("<svg") :].strip()
    return body.replace("<svg ", f'<svg role="img" aria-label="{html.escape(alt)}" ', 1)


def typed_params(params: dict[str, Any]) -> list[tuple[str, str]]:
    """Return what a record's design does not have by default, as ``--param`` takes it.

    The points of a study differ in their cores, which are not among it.
    """
    usual = DesignParams(cores=1, segment_tuples=1).to_dict()
    chosen = {
        name: value
        for name, value in params.items()
        if name != "cores" and (name == "segment_tuples" or usual.get(name) != value)
    }
    if "terms" in chosen:
        chosen["terms"] = ",".join(chosen["terms"])
    if "theta" in chosen:
        chosen["theta"] = chosen["theta"]["name"]
    return [(name, str(value)) for name, value in chosen.items()]


def design_in_words(params: dict[str, Any]) -> str:
    """Say which design a record is of; see :func:`typed_params`."""
    typed = ", ".join(f"{name}={value}" for name, value in typed_params(params))
    return f"Design: {typed}; other parameters as by default."


def page(
    title: str,
    chart: str,
    table: tuple[Sequence[str], Sequence[Sequence[str]]],
    notes: Sequence[str],
) -> str:
    """Return the page as HTML.

    Parameters
    ----------
    title : str
        Its heading.
    chart : str
        What :func:`drawn` returned.
    table : tuple
        Headings, and rows.
    notes : sequence of str
        Sentences below.
    """
    columns, rows = table
    head = "".join(f"<th>{html.escape(each)}</th>" for each in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in row)}</tr>\n" for row in rows
    )
    below = "".join(f'<p class="note">{html.escape(each)}</p>\n' for each in notes)
    name = html.escape(title)
    return (
        f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{name}</title>'
        f"<style>{_STYLE}</style>\n<h1>{name}</h1>\n{chart}\n"
        f"<table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>\n{below}</html>\n"
    )
