"""The charts with one row for each engine: throughput, latency, phases, stalls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamjoin.metrics import PHASES
from streamjoin.report import units
from streamjoin.report.charts.canvas import Chart, draw_chart
from streamjoin.report.charts.rows import Row, draw_rows, plotted_rows, ranked, scale_for
from streamjoin.report.charts.stacked import Paired, Stacked, paired_chart, spoken, stacked_chart
from streamjoin.report.charts.theme import sentinel
from streamjoin.report.records import PERCENTILES
from streamjoin.report.results import ORIGINS, Verdict
from streamjoin.report.sentences import rounds_said

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes

    from streamjoin.report.results import Result

PHASE_BARS = Stacked(
    title="Where the time went",
    said="Time breakdown",
    axis=f"share of threads {units.TIMES} wall time",
    tick=units.percent,
    parts={
        phase: (
            "build or sort" if phase == "build_or_sort" else phase,
            "other_phase" if phase == "other" else phase,
        )
        for phase in PHASES
    },
    least_high=1.0,
)
MEMORY_BARS = Stacked(
    title="Memory by component",
    said="Memory by component of the semi-stream joins, at the most",
    axis="bytes",
    tick=units.memory,
    parts={
        "h_s": ("H_S", "probe"),
        "h_r": ("H_R", "build_or_sort"),
        "filter": ("filter", "other_phase"),
        "queue": ("queue", "merge"),
        "buffers": ("disk buffers", "partition"),
        "free": ("free", "wait"),
    },
)
LOOP_BARS = Paired(
    title="Cost of a loop",
    said="Time of a loop of the semi-stream joins, measured and by the cost model",
    axis="time of a loop",
    tick=units.microseconds,
    parts=(("measured", "cpu", ""), ("cost model", "other", "///")),
)
STALL_BARS = Paired(
    title="Stalls",
    said="Stalls as shares of all cycles",
    axis="share of the run's cycles",
    tick=units.percent,
    parts=(
        ("a tuple was offered and not taken", "fpga", ""),
        ("a result was offered and not taken", "cpu", "\\\\\\"),
    ),
    high=1.0,
)
PLATFORM_MARKERS = {"cpu": "o", "fpga": "D", "other": "s"}
LATENCY_MARKERS = {"p50": "o", "p95": "D", "p99": "s", "max": "|"}


def dot_style(result: Result) -> dict[str, Any]:
    """Return how a result's dot is drawn: wrong ones as crosses, assumed clocks hollow."""
    wrong = result.verdict is Verdict.WRONG
    colour = sentinel("bad" if wrong else result.tone)
    hollow = bool(result.clock and result.clock.assumed)
    return {
        "color": colour,
        "linestyle": "none",
        "marker": "x" if wrong else PLATFORM_MARKERS.get(result.tone, "o"),
        "markersize": 9,
        "markeredgewidth": 2,
        "markeredgecolor": colour,
        "markerfacecolor": sentinel("paper") if hollow else colour,
    }


def call_chart(key: str, results: Sequence[Result]) -> Chart | None:
    """Draw the throughput of whole calls; None if no result has any."""
    results = [r for r in results if r.call_spread]
    return _rates_chart(
        key, results, lambda r: r.call_spread, ("Whole call", "throughput of whole calls")
    )


def throughput_chart(key: str, results: Sequence[Result]) -> Chart | None:
    """Draw the throughput of the algorithm's part; None if no result has any."""
    return _rates_chart(
        key,
        results,
        lambda r: r.spread("throughput_tuples_per_s"),
        ("Throughput", "throughput"),
    )


def _rates_chart(
    key: str,
    results: Sequence[Result],
    spread_of: Callable[[Result], dict[str, float] | None],
    words: tuple[str, str],
) -> Chart | None:
    """Draw dots of the median throughput with whiskers from minimum to maximum.

    Dots, because the length of a bar says nothing on a logarithmic axis. Measured results are
    ranked, fastest first, those without last, and below them simulated ones likewise.

    Parameters
    ----------
    spread_of : callable
        Returns a result's tuples per second: median, minimum, maximum.
    words : tuple of str
        The chart's title, and what its values are.
    """
    title, what = words

    def row_of(r: Result) -> Row:
        spread = spread_of(r)
        if spread is None:
            return Row(r, r.absence("throughput"), False)
        return Row(r, units.count(spread["median"]), True)

    rows = ranked(results, row_of, lambda r: -(spread_of(r) or {"median": -1.0})["median"])
    spreads = [spread for r in results if (spread := spread_of(r))]
    if not spreads:
        return None
    name = "input tuples per second"
    scale = scale_for([v for spread in spreads for v in spread.values()], units.count, name)

    def paint(axes: Axes, row: Row, index: int, y: float) -> None:
        spread = spread_of(row.result)
        assert spread is not None
        at = {bound: max(value, scale.low) for bound, value in spread.items()}
        if row.result.record.get("rounds") != 1:
            ends, colour = [at["min"], at["max"]], sentinel("ink")
            axes.plot(ends, [y, y], color=colour, linewidth=1.2, zorder=3)
            axes.plot(ends, [y, y], "|", color=colour, markersize=8, markeredgewidth=1.2, zorder=3)
        dots = axes.plot(at["median"], y, zorder=4, clip_on=False, **dot_style(row.result))
        dots[0].set_gid(f"mark-{index}")

    def figures_of(result: Result) -> list[tuple[str, float]]:
        spread = spread_of(result)
        if not spread or result.record.get("rounds") == 1:
            return [("one round", spread["median"])] if spread else []
        names = {"median": "median", "min": "slowest round", "max": "fastest round"}
        return [(words, spread[bound]) for bound, words in names.items()]

    rounds = rounds_said(results)
    alt = f"{what.capitalize()} in tuples per second, {rounds}: {spoken(rows)}."
    caption = f"Dot: {rounds}."
    if "median" in rounds:
        caption = f"Dot: {rounds}; whisker: slowest to fastest round."
    plotted = plotted_rows(
        f"{what} (tuples/s)",
        rows,
        scale,
        figures_of,
        shown=lambda figures: figures[:1],
        say=units.rate,
        best=max,
    )
    return draw_chart(
        key,
        title,
        caption=caption,
        alt=alt,
        marks=len(spreads),
        draw=lambda f: draw_rows(f, rows, scale, paint, plotted),
        plotted=plotted,
    )


def latency_charts(key: str, results: Sequence[Result]) -> list[Chart]:
    """Draw the latency of matches, a chart for each moment from which it is counted."""
    drawn = []
    for origin, words in ORIGINS.items():
        chart = _latency_chart(
            f"{key}-from-{(origin or 'unknown').replace(' ', '-')}",
            words,
            [result for result in results if result.latency_from == origin],
        )
        drawn += [chart] if chart else []
    return drawn


def _latency_chart(key: str, since: str, results: Sequence[Result]) -> Chart | None:
    """Draw ranges from p50 to the maximum; None if no result has latencies."""

    def row_of(r: Result) -> Row:
        latencies = r.latency_us
        if latencies is None:
            return Row(r, r.absence("latency"), False)
        p50, p99 = (units.microseconds(latencies[name]) for name in ("p50", "p99"))
        return Row(r, f"p50 {p50}, p99 {p99}", True)

    rows = ranked(results, row_of, lambda r: (r.latency_us or {}).get("p50", float("inf")))
    values = [v for r in results if r.latency_us for v in r.latency_us.values()]
    if not values:
        return None
    scale = scale_for(values, units.microseconds, f"latency {since}", always_log=True)

    def paint(axes: Axes, row: Row, index: int, y: float) -> None:
        latencies = row.result.latency_us
        assert latencies is not None
        wrong = row.result.verdict is Verdict.WRONG
        colour = sentinel("bad" if wrong else row.result.tone)
        dash = (0, (2, 1)) if wrong or (row.result.clock and row.result.clock.assumed) else "solid"
        at = {name: max(latencies[name], scale.low) for name in PERCENTILES}
        line = axes.plot([at["p50"], at["max"]], [y, y], color=colour, linewidth=3, linestyle=dash)
        line[0].set_gid(f"mark-{index}")
        for name, marker in LATENCY_MARKERS.items():
            axes.plot(
                at[name],
                y,
                marker,
                color=colour,
                markersize=13 if name == "max" else 7,
                markeredgewidth=2 if name == "max" else 1,
                markeredgecolor=colour if name == "max" else sentinel("paper"),
                clip_on=False,
                zorder=4,
            )

    def shown(figures: list[tuple[str, float]]) -> list[tuple[str, float]]:
        return [figure for figure in figures if figure[0] in {"p50", "p99"}]

    marks = sum(row.drawn for row in rows)
    alt = f"Latency of matches {since}: {spoken(rows)}."
    caption = (
        "<span class=key>● p50</span> <span class=key>◆ p95</span> "
        "<span class=key>■ p99</span> <span class=key>| max</span>"
    )
    plotted = plotted_rows(
        f"latency {since} (us)",
        rows,
        scale,
        lambda r: list((r.latency_us or {}).items()),
        shown=shown,
        say=units.microseconds,
        best=min,
    )
    return draw_chart(
        key,
        f"Latency {since}",
        caption=caption,
        alt=alt,
        marks=marks,
        draw=lambda f: draw_rows(f, rows, scale, paint, plotted),
        plotted=plotted,
    )


def phase_shares(result: Result) -> dict[str, float] | None:
    """Return each phase's share of threads x median wall time, None where not recorded."""
    phases, wall = result.record.get("phases_ms"), result.spread("wall_s")
    threads = result.record.get("threads") or 1
    if not phases or not wall or not wall["median"]:
        return None
    whole_ms = 1000 * wall["median"] * threads
    return {name: (phases.get(name) or 0) / whole_ms for name in PHASES}


def phases_chart(key: str, results: Sequence[Result]) -> Chart | None:
    """Draw where the time went, as shares of threads x wall time.

    Returns None if no result has phases.
    """

    def parts(result: Result) -> tuple[dict[str, float], str] | None:
        shares = phase_shares(result)
        wall = result.spread("wall_s")
        if shares is None or wall is None:
            return None
        if result.simulated:
            # Wall time on this machine: nothing that the design's clock has a part in.
            return shares, f"simulating took {units.seconds(wall['median'])}"
        threads = units.plural(result.record.get("threads") or 1, "thread")
        return shares, f"{units.seconds(wall['median'])} {units.TIMES} {threads}"

    return stacked_chart(key, PHASE_BARS, results, "phases", parts)


def memory_chart(key: str, results: Sequence[Result]) -> Chart | None:
    """Draw what the tables, queue and buffers of semi-stream joins hold.

    Returns None if there is none.
    """

    def parts(result: Result) -> tuple[dict[str, float], str] | None:
        held = semi_stream(result).get("memory_bytes")
        if not held:
            return None
        components = {part: float(held.get(part) or 0) for part in MEMORY_BARS.parts}
        used = sum(components.values()) - components["free"]
        budget = semi_stream(result).get("budget_bytes")
        given = f" of {units.memory(budget)}" if budget else ""
        return components, f"{units.memory(used)}{given}"

    return stacked_chart(key, MEMORY_BARS, results, "memory by component", parts)


def loop_chart(key: str, results: Sequence[Result]) -> Chart | None:
    """Draw the time of a semi-stream join's loop beside what its cost model says.

    Returns None if there is none.
    """
    return paired_chart(key, LOOP_BARS, results, "loop", loop_costs_us)


def semi_stream(result: Result) -> dict[str, Any]:
    """What a semi-stream join recorded; empty for other engines."""
    return result.record.get("semi_stream") or {}


def loop_costs_us(result: Result) -> tuple[float, float] | None:
    """Microseconds of a loop, measured and modelled; None where not recorded."""
    recorded = semi_stream(result)
    steps, model = recorded.get("loop_us"), recorded.get("cost_model")
    if not steps or not model:
        return None
    return sum(steps.values()), float(model["loop_us"])


def stalls_chart(key: str, results: Sequence[Result]) -> Chart | None:
    """Draw for each hardware result the shares of cycles in which a stream stood still.

    Returns None if no result has cycles with their counters.
    """

    def shares(result: Result) -> tuple[float, float] | None:
        record = result.record
        stalled, held = record.get("input_stall_cycles"), record.get("results_backpressure_cycles")
        if not record.get("cycles") or stalled is None or held is None:
            return None
        return stalled / record["cycles"], held / record["cycles"]

    return paired_chart(key, STALL_BARS, results, "stalls", shares)
