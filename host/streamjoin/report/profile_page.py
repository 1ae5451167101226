"""The page of a workload's data: a table, and curves of both streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from streamjoin.report import units
from streamjoin.report.charts.lines import line_chart
from streamjoin.report.charts.points import Scale
from streamjoin.report.charts.theme import variables
from streamjoin.report.templating import environment

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamjoin.bench.workloads import Comparison
    from streamjoin.report.charts.canvas import Chart
    from streamjoin.report.profile import Profile, StreamProfile

MAX_RANKS = 400
"""Maximum points of the curve of keys by rank."""


def figures(profile: Profile) -> list[tuple[str, list[str]]]:
    """Return the figures of both streams: a name, and a string for each stream."""
    what: list[tuple[str, Callable[[StreamProfile], str]]] = [
        ("compared column", lambda s: s.column),
        ("tuples", lambda s: f"{s.rows:,}"),
        ("keys" if profile.is_equi else "different values", lambda s: f"{s.keys:,}"),
        ("tuples a key (mean over keys)", lambda s: f"{s.duplication:,.2f}"),
        ("share of the most frequent", lambda s: units.percent(s.most_frequent)),
        ("Zipf exponent of the frequent", lambda s: _number(s.skew, ".2f")),
        ("tuples whose key the other has", lambda s: units.percent(s.partnered)),
        ("span", lambda s: units.seconds(s.span_s) if s.span_s else "at rest"),
        ("mean rate", lambda s: units.rate(s.rate_per_s)),
        ("most tuples in a millisecond", lambda s: _number(s.busiest_per_ms, ",.0f")),
        ("different arrival times", lambda s: f"{s.instants:,}"),
    ]
    plain = str.maketrans(units.NBSP, " ")
    return [
        (name, [shown(stream).translate(plain) for stream in profile.streams])
        for name, shown in what
    ]


def _number(value: float | None, form: str) -> str:
    return units.MISSING if value is None else format(value, form)


def render_profile(workload: Comparison, profile: Profile) -> str:
    """Render one self-contained HTML page.

    Parameters
    ----------
    workload : Comparison
        The workload.
    profile : Profile
        Of the workload's inputs.
    """
    window, pairs = workload.expected or ("", 0)
    return (
        environment()
        .get_template("profile.html")
        .render(
            workload=workload,
            pairs=f"{pairs:,} pairs under {window}" if workload.expected else None,
            figures=figures(profile),
            charts=[chart for chart in _charts(profile) if chart],
            light=variables(dark=False),
            dark=variables(dark=True),
        )
    )


def _charts(profile: Profile) -> list[Chart | None]:
    return [_rates(profile), _ranks(profile) if profile.is_equi else _values(profile)]


def _rates(profile: Profile) -> Chart | None:
    """Arrivals a second over time."""
    drawn = [stream for stream in profile.streams if len(stream.slot_rates_per_s)]
    if not drawn:
        return None
    span = profile.streams[0].span_s
    curves = {}
    for stream in drawn:
        slots = len(stream.slot_rates_per_s)
        curves[stream.name] = (np.arange(slots + 1) * (span / slots), stream.slot_rates_per_s)
    return line_chart(
        "rates",
        "Arrivals over time",
        f"Tuples a second in {len(drawn[0].slot_rates_per_s)} equal slots of time.",
        curves,
        Scale(0.0, span, False, units.seconds, "time since the first arrival"),
        steps=True,
        tick=units.count,
    )


def _ranks(profile: Profile) -> Chart | None:
    """Tuples of a key by its rank, both logarithmic."""
    drawn = [stream for stream in profile.streams if stream.keys]
    if not drawn:
        return None
    curves = {}
    for stream in drawn:
        ranks = np.unique(np.geomspace(1, stream.keys, MAX_RANKS).astype(np.int64))
        curves[stream.name] = (ranks, stream.frequencies[ranks - 1])
    keys = max(stream.keys for stream in drawn)
    return line_chart(
        "ranks",
        "How often keys occur",
        "Tuples of a key by its rank, the most frequent key being the first. Zipf's law is a "
        "straight line, and an even distribution a level one.",
        curves,
        Scale(0.9, max(keys, 2) * 1.1, True, units.count, "rank of the key, logarithmic"),
        steps=False,
        tick=units.count,
    )


def _values(profile: Profile) -> Chart | None:
    """Tuples by value."""
    drawn = [stream for stream in profile.streams if len(stream.histogram)]
    if profile.edges is None or not drawn:
        return None
    low, high = profile.edges
    curves = {
        stream.name: (np.linspace(low, high, len(stream.histogram) + 1), stream.histogram)
        for stream in drawn
    }
    return line_chart(
        "values",
        "How values are spread",
        f"Tuples in {len(drawn[0].histogram)} equal bins of the first compared column.",
        curves,
        Scale(low, high, False, _signed, "value"),
        steps=True,
        tick=units.count,
    )


def _signed(value: float) -> str:
    return f"\u2212{units.count(-value)}" if value < 0 else units.count(value)
