"""The page of ``streamjoin bench cpu-fpga``: a chart, a paragraph and a table for each query."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import numpy as np

from streamjoin.bench.cpu_fpga.costs import ASSUMED
from streamjoin.bench.cpu_fpga.inputs import QUERIES
from streamjoin.bench.cpu_fpga.verdict import answers, latency_us, with_transfer
from streamjoin.report import units
from streamjoin.report.charts.lines import line_chart
from streamjoin.report.charts.points import Scale
from streamjoin.report.charts.theme import variables
from streamjoin.report.stored.crossover import (
    DISTURBED_NOTE,
    HEADINGS,
    has_disturbed,
    svg,
    table_row,
)
from streamjoin.report.templating import environment

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streamjoin.report.charts.canvas import Chart

Record = dict[str, Any]


def render_crossover(run: dict[str, Any]) -> str:
    """Render one self-contained HTML page.

    Parameters
    ----------
    run : dict
        What the benchmark keeps: ``size``, ``environment`` and ``points``, one record each.
    """
    records = run["points"]
    queries = []
    for query in (each.name for each in QUERIES):
        mine = [each for each in records if each["query"] == query]
        if mine:
            rows = [table_row(each, mine) for each in sorted(mine, key=lambda each: each["window"])]
            queries.append({"name": query, "charts": _charts(query, mine), "rows": rows})
    return (
        environment()
        .get_template("crossover.html")
        .render(
            run=run,
            answers=answers(records),
            picture=base64.b64encode(svg(records).encode()).decode(),
            assumed=ASSUMED,
            disturbed=DISTURBED_NOTE if has_disturbed(records) else "",
            queries=queries,
            headings=HEADINGS,
            light=variables(dark=False),
            dark=variables(dark=True),
        )
    )


def _charts(query: str, records: Sequence[Record]) -> list[Chart]:
    """Rates and latencies by window, a line for each contestant."""
    return [
        _chart(
            f"{query}: sustained rate",
            "Tuples a second of both streams together at which no queue grows, one CPU thread; "
            "designs through their port.",
            records,
            with_transfer,
            units.rate,
        ),
        _chart(
            f"{query}: p99 latency at half the rate",
            "From the arrival of the later tuple to the match, each contestant at half of its own "
            "rate; designs without the transfer.",
            records,
            latency_us,
            units.microseconds,
        ),
    ]


def _chart(
    title: str,
    caption: str,
    records: Sequence[Record],
    figure: Callable[[Record], float | None],
    tick: Callable[[float], str],
) -> Chart:
    curves = {}
    for who in dict.fromkeys(each["who"] for each in records):
        points = sorted((each["window"], figure(each)) for each in records if each["who"] == who)
        known = [(window, value) for window, value in points if value]
        if known:
            x, y = zip(*known, strict=True)
            curves[who] = (np.array(x, float), np.array(y, float))
    windows = [each["window"] for each in records]
    scale = Scale(
        min(windows) / 1.2, max(windows) * 1.2, True, units.count, "window in tuples, log scale"
    )
    key = title.replace(": ", "-").replace(" ", "-")
    return line_chart(key, title, caption, curves, scale, steps=False, tick=tick)
