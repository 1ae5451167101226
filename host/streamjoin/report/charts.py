"""The charts with one row for each engine: throughput, latency, phases, stalls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from streamjoin.report import units
from streamjoin.report.canvas import Chart, draw_chart
from streamjoin.report.records import PERCENTILES, PHASES
from streamjoin.report.results import Verdict
from streamjoin.report.rows import BAR_PX, Row, Scale, draw_rows, scale_for
from streamjoin.report.theme import sentinel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from streamjoin.report.results import Result

PHASE_NAMES = {"build_or_sort": "build or sort"}
LATENCY_MARKERS = {"p50": "o", "p95": "D", "p99": "s", "max": "|"}


def phase_colour(phase: str) -> str:
    """Return the palette name of a phase."""
    return "other_phase" if phase == "other" else phase


def bar_style(result: Result) -> dict[str, Any]:
    """Return how a result's bar is filled: wrong ones crossed, assumed clocks striped."""
    if result.verdict is Verdict.WRONG:
        return {
            "facecolor": "none",
            "edgecolor": sentinel("bad"),
            "hatch": "xxx",
            "linestyle": "--",
        }
    style: dict[str, Any] = {"facecolor": sentinel(result.tone), "edgecolor": sentinel("paper")}
    if result.clock and result.clock.assumed:
        style["hatch"] = "///"
    return {**style, "linewidth": 0}


def _spoken(rows: Sequence[Row]) -> str:
    """Every row in words, for the chart's text alternative."""
    said = []
    for row in rows:
        note = (
            f" at {row.result.clock.text}" if row.clocked and row.result.clock and row.drawn else ""
        )
        said.append(f"{row.result.label} {row.value_text}{note}")
    return "; ".join(said).replace(units.NBSP, " ").replace(units.THIN, " ")


def throughput_chart(key: str, results: Sequence[Result]) -> Chart | None:
    """Draw bars of the median throughput with whiskers from minimum to maximum.

    Returns None if no result has a throughput; fastest first, those without last.
    """
    ordered = sorted(results, key=lambda r: -(r.throughput or -1.0))
    rows = [
        Row(r, r.absence("throughput"), False)
        if r.throughput is None
        else Row(r, units.count(r.throughput), True)
        for r in ordered
    ]
    spreads = [spread for r in results if (spread := r.spread("throughput_tuples_per_s"))]
    if not spreads:
        return None
    name = "input tuples per second"
    scale = scale_for([v for spread in spreads for v in spread.values()], units.count, name)

    def paint(axes: Axes, row: Row, index: int, y: float) -> None:
        spread = row.result.spread("throughput_tuples_per_s")
        assert spread is not None
        end = max(spread["median"], scale.low)
        bars = axes.barh(
            y, end - scale.low, BAR_PX, left=scale.low, zorder=2, **bar_style(row.result)
        )  # fmt: skip
        bars[0].set_gid(f"mark-{index}")
        if row.result.record.get("rounds") == 1:
            return
        ends = [max(spread[bound], scale.low) for bound in ("min", "max")]
        colour = sentinel("ink")
        axes.plot(ends, [y, y], color=colour, linewidth=1.2, zorder=3)
        axes.plot(ends, [y, y], "|", color=colour, markersize=8, markeredgewidth=1.2, zorder=3)

    alt = f"Throughput in tuples per second, median of the rounds: {_spoken(rows)}."
    caption = "Bar: median of the rounds; whisker: slowest to fastest round."
    return draw_chart(
        key,
        "Throughput",
        caption=caption,
        alt=alt,
        marks=len(spreads),
        draw=lambda f: draw_rows(f, rows, scale, paint),
    )


def latency_chart(key: str, results: Sequence[Result]) -> Chart | None:
    """Draw the latency of matches as ranges from p50 to the maximum.

    Returns None if no result has latencies.
    """
    rows = []
    for r in sorted(results, key=lambda r: (r.latency_us or {}).get("p50", float("inf"))):
        found = r.latency_us
        if found is None:
            rows.append(Row(r, r.absence("latency"), False))
        else:
            p50, p99 = (units.microseconds(found[name]) for name in ("p50", "p99"))
            rows.append(Row(r, f"p50 {p50}, p99 {p99}", True))
    values = [v for r in results if r.latency_us for v in r.latency_us.values()]
    if not values:
        return None
    scale = scale_for(values, units.microseconds, "latency of a match", always_log=True)

    def paint(axes: Axes, row: Row, index: int, y: float) -> None:
        found = row.result.latency_us
        assert found is not None
        wrong = row.result.verdict is Verdict.WRONG
        colour = sentinel("bad" if wrong else row.result.tone)
        dash = (0, (2, 1)) if wrong or (row.result.clock and row.result.clock.assumed) else "solid"
        at = {name: max(found[name], scale.low) for name in PERCENTILES}
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

    marks = sum(row.drawn for row in rows)
    alt = f"Latency of matches: {_spoken(rows)}."
    caption = (
        "<span class=key>● p50</span> <span class=key>◆ p95</span> "
        "<span class=key>■ p99</span> <span class=key>| max</span>"
    )
    return draw_chart(
        key,
        "Latency",
        caption=caption,
        alt=alt,
        marks=marks,
        draw=lambda f: draw_rows(f, rows, scale, paint),
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
    rows, shares = [], {}
    for r in results:
        found = phase_shares(r)
        if found is None:
            rows.append(Row(r, r.absence("phases"), False, clocked=False))
        else:
            shares[r.index] = found
            wall = r.spread("wall_s")
            assert wall is not None
            threads = units.plural(r.record.get("threads") or 1, "thread")
            text = f"{units.seconds(wall['median'])} {units.TIMES} {threads}"
            if r.simulated:
                # Wall time on this machine: nothing that the design's clock has a part in.
                text = f"simulating took {units.seconds(wall['median'])}"
            rows.append(Row(r, text, True, clocked=False))
    if not shares:
        return None
    high = max(1.0, *(sum(found.values()) for found in shares.values()))
    scale = Scale(0.0, high, False, units.percent, f"share of threads {units.TIMES} wall time")

    def paint(axes: Axes, row: Row, index: int, y: float) -> None:
        left = 0.0
        for phase, share in shares[row.result.index].items():
            if share <= 0:
                continue
            bars = axes.barh(
                y,
                share,
                BAR_PX + 4,
                left=left,
                color=sentinel(phase_colour(phase)),
                edgecolor=sentinel("muted"),
                linewidth=0.6,
            )
            bars[0].set_gid(f"mark-{index}-{phase}")
            width_px = share / high * axes.bbox.width
            name, figure = PHASE_NAMES.get(phase, phase), units.percent(share)
            for text in (f"{name} {figure}", name, figure):
                if len(text) * 6.9 + 6 < width_px:
                    axes.text(
                        left + share / 2, y, text, fontsize=11, color=sentinel("ink"),
                        ha="center", va="center_baseline",
                    )  # fmt: skip
                    break
            left += share

    marks = sum(share > 0 for found in shares.values() for share in found.values())
    said = []
    for row in rows:
        parts = shares.get(row.result.index, {})
        spoken = [f"{PHASE_NAMES.get(p, p)} {units.percent(s)}" for p, s in parts.items() if s > 0]
        took = f" ({row.value_text})" if row.result.simulated and spoken else ""
        said.append(f"{row.result.label} {', '.join(spoken) or row.value_text}{took}")
    alt = f"Time breakdown: {'; '.join(said)}.".replace(units.NBSP, " ")
    caption = " ".join(
        f"<span class=key><i class=swatch style='background:"
        f"var(--{phase_colour(phase).replace('_', '-')})'></i>{PHASE_NAMES.get(phase, phase)}"
        "</span>"
        for phase in PHASES
    )
    return draw_chart(
        key,
        "Where the time went",
        caption=caption,
        alt=alt,
        marks=marks,
        draw=lambda f: draw_rows(f, rows, scale, paint),
    )


def stalls_chart(key: str, results: Sequence[Result]) -> Chart | None:
    """Draw for each hardware result the shares of cycles in which a stream stood still.

    Returns None if no result has cycles with their counters.
    """
    counters = ("input_stall_cycles", "results_backpressure_cycles")
    rows, shares = [], {}
    for r in results:
        cycles = r.record.get("cycles")
        if not cycles or any(r.record.get(name) is None for name in counters):
            rows.append(Row(r, r.absence("stalls"), False, clocked=False))
            continue
        shares[r.index] = [r.record[name] / cycles for name in counters]
        stalled, back = map(units.percent, shares[r.index])
        rows.append(Row(r, f"input {stalled}, results {back}", True, clocked=False))
    if not shares:
        return None
    scale = Scale(0.0, 1.0, False, units.percent, "share of the run's cycles")

    def paint(axes: Axes, row: Row, index: int, y: float) -> None:
        for place, (share, colour, hatch) in enumerate(
            zip(shares[row.result.index], ("fpga", "cpu"), ("", "\\\\\\"), strict=True)
        ):
            bars = axes.barh(
                y - 5 + 10 * place, max(share, 0.002), 9, facecolor=sentinel(colour),
                edgecolor=sentinel("paper"), hatch=hatch, linewidth=0,
            )  # fmt: skip
            bars[0].set_gid(f"mark-{index}-{counters[place]}")

    alt = f"Stalls as shares of all cycles: {_spoken(rows)}."
    caption = (
        "<span class=key><i class=swatch style='background:var(--fpga)'></i>a tuple was offered "
        "and not taken (upper bar)</span> <span class=key><i class=swatch style='background:"
        "var(--cpu)'></i>a result was offered and not taken (lower bar, striped)</span>"
    )
    return draw_chart(
        key,
        "Stalls",
        caption=caption,
        alt=alt,
        marks=2 * len(shares),
        draw=lambda f: draw_rows(f, rows, scale, paint),
    )
