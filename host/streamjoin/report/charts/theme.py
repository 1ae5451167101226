"""Colours by name, light and dark at once.

Charts are drawn in sentinel colours that stand for names; in the finished SVG each becomes a
CSS variable, so that one drawing serves both colour schemes. The twelve series colours were
searched for: of all with enough contrast on their paper, those whose smallest difference is
largest, as seen with full colour vision and with each kind of colour blindness. Every series has
a marker and a dash besides.
"""

from __future__ import annotations

import re

PALETTE: dict[str, tuple[str, str]] = {
    # name: (on light paper, on dark paper)
    "paper": ("#fdfdfb", "#15181b"),
    "panel": ("#f4f4f0", "#1d2125"),
    "ink": ("#1d2024", "#e7e6e1"),
    "muted": ("#5c636b", "#a3a9b0"),
    "rule": ("#d9d9d2", "#353b41"),
    "accent": ("#1d5c8a", "#7db9e2"),
    "good": ("#1d6b45", "#74c79b"),
    "bad": ("#a8231b", "#ff8f85"),
    "caution": ("#8a5300", "#e9b464"),
    "cpu": ("#2c6c9c", "#6aaddc"),
    "fpga": ("#c7741a", "#e8a653"),
    "other": ("#747b84", "#99a1aa"),
    "series0": ("#2d3c69", "#00a5e1"),
    "series1": ("#c38700", "#b4780f"),
    "series2": ("#00a5b4", "#78ffff"),
    "series3": ("#b400c3", "#ff5ae1"),
    "series4": ("#2d694b", "#2de10f"),
    "series5": ("#4b5aff", "#b4c3ff"),
    "series6": ("#ff5a78", "#f0c387"),
    "series7": ("#785a87", "#d296a5"),
    "series8": ("#78000f", "#96b44b"),
    "series9": ("#b478ff", "#965aff"),
    "series10": ("#6900a5", "#c3ff1e"),
    "series11": ("#c30000", "#f01e78"),
    "wait": ("#d6d7d4", "#43484e"),
    "partition": ("#f2cf8d", "#7a5a17"),
    "build_or_sort": ("#9fcbe8", "#245a80"),
    "merge": ("#e3b3d0", "#733b5e"),
    "probe": ("#9ed6bf", "#1c6349"),
    "other_phase": ("#bdb6a3", "#6d675a"),
}

SERIES_COLOURS = tuple(name for name in PALETTE if name.startswith("series"))
DASHES = ("solid", (0, (5, 2)), (0, (1.5, 1.5)), (0, (7, 2, 1.5, 2)), (0, (9, 3)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", "p", ">", "*", "h")

_SENTINEL = "#fe01"


def sentinel(name: str) -> str:
    """Return the colour that stands for a palette name while drawing."""
    return f"{_SENTINEL}{list(PALETTE).index(name):02x}"


def to_variables(svg: str) -> str:
    """Replace every sentinel colour by its CSS variable."""
    names = [f"var(--{name.replace('_', '-')})" for name in PALETTE]
    return re.sub(_SENTINEL + r"([0-9a-f]{2})", lambda m: names[int(m[1], 16)], svg)


def variables(dark: bool) -> str:
    """Return the CSS declarations of one colour scheme."""
    return " ".join(f"--{name.replace('_', '-')}: {pair[dark]};" for name, pair in PALETTE.items())


def series_style(index: int) -> tuple[str, object, str]:
    """Return colour (sentinel), dash and marker of one series; distinct for the first 144."""
    # After one round of colours, markers and dashes are shifted against them.
    shifted = index + index // len(SERIES_COLOURS)
    colour = sentinel(SERIES_COLOURS[index % len(SERIES_COLOURS)])
    return colour, DASHES[shifted % len(DASHES)], MARKERS[shifted % len(MARKERS)]
