"""A chart of a stored record as a small SVG of its own: the same record, the same bytes."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from streamjoin.report.charts.theme import PALETTE, SERIES_COLOURS
from streamjoin.report.units import count, seconds, spaced

WIDTH = 820
COLUMNS = 2
PANEL_HEIGHT = 210
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 34, 44
"""Pixels around the axes of a panel."""

LEGEND_ROW = 20
CHARACTER = 6.3
"""Width of a character in pixels, on the safe side."""

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Panel:
    """One setting of one workload changed while the others stay, with a line for each engine.

    Attributes
    ----------
    title, setting, unit : str
        Heading, what is changed, and what is measured.
    values : list of str
        What the setting is, in the order of the points.
    lines : dict of str to list of (int, float)
        By engine, position of the value and figure.
    tick : callable
        Writes a figure.
    """

    title: str
    setting: str
    unit: str
    values: list[str]
    lines: dict[str, list[tuple[int, float]]]
    tick: Callable[[float], str]


def _service_rate(record: Record) -> float | None:
    return (record.get("semi_stream") or {}).get("service_rate_tuples_per_s")


def _p95(record: Record) -> float | None:
    latency_us = (record.get("latency_us") or {}).get("p95")
    return None if latency_us is None else latency_us / 1e6


def _throughput(record: Record) -> float | None:
    return (record.get("throughput_tuples_per_s") or {}).get("median")


def _measure(
    workload: Record, records: Sequence[Record]
) -> tuple[str, Callable[[Record], float | None], Callable[[float], str]]:
    """Choose what is drawn of a family: what its papers drew."""
    if workload.get("arrival") == "replay":
        return "95th percentile of latency", _p95, seconds
    if any(_service_rate(record) for record in records):
        return "service rate, tuples/s", _service_rate, count
    return "throughput, tuples/s", _throughput, count


def panels(run: Mapping[str, Any]) -> list[Panel]:
    """Return the panels of a record."""
    families: dict[str, list[Record]] = {}
    for workload in run["workloads"]:
        families.setdefault(str(workload.get("family")), []).append(workload)
    made = []
    for family, workloads in families.items():
        names = {str(workload["name"]) for workload in workloads}
        records = [each for each in run["records"] if each["workload"] in names]
        measure = _measure(workloads[0], records)
        made += _of_family(family, workloads, records, measure)
    return made


def _of_family(
    family: str, workloads: Sequence[Record], records: Sequence[Record], measure: Any
) -> list[Panel]:
    unit, get, tick = measure
    settings: dict[str, list[str]] = {}
    for workload in workloads:
        for name, value in (workload.get("settings") or {}).items():
            values = settings.setdefault(name, [])
            if str(value) not in values:
                values.append(str(value))
    along = max(settings, key=lambda name: len(settings[name]), default=None)
    groups: dict[str, list[Record]] = {}
    for workload in workloads:
        others = ", ".join(
            f"{_short(name)}={value}"
            for name, value in (workload.get("settings") or {}).items()
            if name != along and len(settings[name]) > 1
        )
        groups.setdefault(others, []).append(workload)
    made = []
    for others, group in groups.items():
        at = {
            str(workload["name"]): str((workload.get("settings") or {}).get(along, ""))
            for workload in group
        }
        values = list(dict.fromkeys(at.values()))
        lines: dict[str, list[tuple[int, float]]] = {}
        for record in records:
            figure = get(record) if record["workload"] in at else None
            if figure:
                point = (values.index(at[str(record["workload"])]), float(figure))
                lines.setdefault(_name(record), []).append(point)
        if lines:
            title = family + (f" ({others})" if others else "")
            made.append(Panel(title, _short(along or ""), unit, values, lines, tick))
    return made


def _short(path: str) -> str:
    return path.rpartition(".")[2]


def _name(record: Record) -> str:
    simulated = record.get("backend") == "model"
    return f"{record['engine']} (simulated)" if simulated else str(record["engine"])


def svg(run: Mapping[str, Any]) -> str:
    """Draw a record."""
    return draw(str(run["title"]), panels(run))


def draw(title: str, drawn: Sequence[Panel]) -> str:
    """Draw panels under a legend of all their lines."""
    engines = list(dict.fromkeys(name for panel in drawn for name in panel.lines))
    entry = 34 + CHARACTER * max((len(name) for name in engines), default=1)
    columns = max(1, int(WIDTH / entry))
    legend = LEGEND_ROW * -(-len(engines) // columns)
    rows = -(-len(drawn) // COLUMNS)
    height = rows * PANEL_HEIGHT + legend + 16
    alt = f"{title}: {'; '.join(_said(panel) for panel in drawn)}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        'aria-labelledby="title">',
        f'<title id="title">{escape(spaced(alt))}</title>',
        _style(engines),
        f'<rect class="paper" width="{WIDTH}" height="{height}"/>',
    ]
    for number, panel in enumerate(drawn):
        left = (number % COLUMNS) * WIDTH / COLUMNS
        parts += _panel(panel, engines, left, number // COLUMNS * PANEL_HEIGHT)
    for number, engine in enumerate(engines):
        x = 12 + (number % columns) * entry
        y = rows * PANEL_HEIGHT + LEGEND_ROW * (number // columns) + 12
        parts.append(f'<g class="s{number}">{_mark(number, x + 6, y)}</g>')
        parts.append(f'<text x="{_px(x + 16)}" y="{y + 4}">{escape(engine)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _said(panel: Panel) -> str:
    best = {
        name: f"{panel.tick(points[0][1])} to {panel.tick(points[-1][1])}"
        for name, points in panel.lines.items()
    }
    said = ", ".join(f"{name} {span}" for name, span in best.items())
    return f"{panel.unit} of {panel.title} against {panel.setting or 'one point'}: {said}"


def _style(engines: Sequence[str]) -> str:
    def rules(dark: bool) -> str:
        colours = {name: pair[dark] for name, pair in PALETTE.items()}
        series = " ".join(
            f".s{number} {{ stroke: {colours[SERIES_COLOURS[number % len(SERIES_COLOURS)]]};"
            f" fill: {colours[SERIES_COLOURS[number % len(SERIES_COLOURS)]]}; }}"
            for number in range(len(engines))
        )
        return (
            f".paper {{ fill: {colours['paper']}; }} text {{ fill: {colours['muted']}; }} "
            f".head {{ fill: {colours['ink']}; }} .grid {{ stroke: {colours['rule']}; }} {series}"
        )

    fonts = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif'
    return (
        f"<style>\ntext {{ font: 11px {fonts}; }} .head {{ font-weight: 600; font-size: 12px; }}\n"
        "polyline { fill: none; stroke-width: 1.5; }\n"
        f"{rules(False)}\n@media (prefers-color-scheme: dark) {{ {rules(True)} }}\n</style>"
    )


def _panel(panel: Panel, engines: Sequence[str], left: float, top: float) -> list[str]:
    figures = [figure for points in panel.lines.values() for _, figure in points]
    low, high = math.log10(min(figures)), math.log10(max(figures))
    low, high = low - 0.05 * (high - low) - 0.02, high + 0.05 * (high - low) + 0.02
    x0, x1 = left + LEFT, left + WIDTH / COLUMNS - RIGHT
    y0, y1 = top + PANEL_HEIGHT - BOTTOM, top + TOP

    def x_of(position: int) -> float:
        return x0 + (x1 - x0) * (position + 0.5) / len(panel.values)

    def y_of(figure: float) -> float:
        return y0 - (y0 - y1) * (math.log10(figure) - low) / (high - low)

    parts = [
        f'<text class="head" x="{_px(left + 8)}" y="{top + 14}">{escape(panel.title)}</text>',
        f'<text x="{_px(left + 8)}" y="{top + 28}">{escape(panel.unit)}</text>',
    ]
    for figure in _ticks(low, high):
        y = _px(y_of(figure))
        parts.append(f'<path class="grid" d="M{_px(x0)} {y}H{_px(x1)}"/>')
        label = escape(spaced(panel.tick(figure)))
        parts.append(
            f'<text x="{_px(x0 - 6)}" y="{_px(y_of(figure) + 4)}" text-anchor="end">{label}</text>'
        )
    room = (x1 - x0) / len(panel.values)
    every = max(1, math.ceil((max(map(len, panel.values)) + 1) * CHARACTER / room))
    for position in range(0, len(panel.values), every):
        where = f'x="{_px(x_of(position))}" y="{y0 + 16}" text-anchor="middle"'
        parts.append(f"<text {where}>{escape(panel.values[position])}</text>")
    middle = f'x="{_px((x0 + x1) / 2)}" y="{y0 + 32}" text-anchor="middle"'
    parts.append(f"<text {middle}>{escape(panel.setting)}</text>")
    for engine, points in panel.lines.items():
        number = engines.index(engine)
        at = [(x_of(position), y_of(figure)) for position, figure in sorted(points)]
        line = " ".join(f"{_px(x)},{_px(y)}" for x, y in at)
        marks = "".join(_mark(number, x, y) for x, y in at)
        parts.append(f'<g class="s{number}"><polyline points="{line}"/>{marks}</g>')
    return parts


def _ticks(low: float, high: float) -> list[float]:
    """Return round figures between two powers of ten, three to seven of them where there are."""
    for steps in ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)):
        decades = range(math.floor(low), math.ceil(high) + 1)
        ticks = [step * 10.0**decade for decade in decades for step in steps]
        ticks = [tick for tick in ticks if low <= math.log10(tick) <= high]
        if len(ticks) >= 3:
            break
    return ticks


def _mark(number: int, x: float, y: float) -> str:
    """Draw one of four markers, another for each neighbour in the legend."""
    shapes = (
        "<circle cx='{x}' cy='{y}' r='3'/>",
        "<path d='M{x} {y}m-3 -3h6v6h-6z'/>",
        "<path d='M{x} {y}m0 -4l4 4l-4 4l-4 -4z'/>",
        "<path d='M{x} {y}m0 -4l4 7h-8z'/>",
    )
    shape = shapes[(number + number // len(SERIES_COLOURS)) % len(shapes)]
    return shape.format(x=_px(x), y=_px(y)).replace("'", '"')


def _px(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
