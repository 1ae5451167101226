"""The head of a result, as a person sees it at a prompt or in a notebook."""

import html
from typing import Any

from streamjoin_common.printing import printable

MAX_LINE_CHARACTERS = 80
MAX_CELL_CHARACTERS = 20
MAX_HTML_COLUMNS = 30
MAX_HTML_CELL_CHARACTERS = 60

Head = dict[str, list[Any]]
"""The first rows' values by column."""


def as_text(head: Head, rows: int) -> list[str]:
    """Return lines of at most 80 characters: columns that do not fit are counted."""
    if not rows or not head:
        return []
    columns = [
        [_cell(name, MAX_CELL_CHARACTERS), *(_cell(value, MAX_CELL_CHARACTERS) for value in values)]
        for name, values in head.items()
    ]
    room = MAX_LINE_CHARACTERS
    shown: list[list[str]] = []
    for cells in columns:
        width = max(map(len, cells)) + 2
        if width > (room if len(shown) + 1 == len(columns) else room - 5):
            break
        shown.append([f"  {cell:>{width - 2}}" for cell in cells])
        room -= width
    hidden = len(columns) - len(shown)
    lines = ["".join(cells) for cells in zip(*shown, strict=True)]
    if hidden:
        lines = [f"{line}  ..." for line in lines]
    left = rows - (len(columns[0]) - 1)
    more = [f"{left} more rows"] * bool(left) + [f"{hidden} more columns"] * bool(hidden)
    return [*lines, *([f"  ... {' and '.join(more)}"] if more else [])]


def as_html(title: str, head: Head, rows: int) -> str:
    """Return a table for a notebook."""
    names = list(head)[:MAX_HTML_COLUMNS]
    shown = len(head[names[0]]) if names else 0
    heading = "".join(f"<th>{_safe(name)}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td>{_safe(head[name][row])}</td>" for name in names) + "</tr>"
        for row in range(shown)
    )
    hidden = len(head) - len(names)
    more = [f"{rows - shown} more rows"] * (rows > shown) + [f"{hidden} more columns"] * (
        hidden > 0
    )
    foot = f"<p>... {' and '.join(more)}</p>" if more else ""
    table = f"<table><thead><tr>{heading}</tr></thead><tbody>{body}</tbody></table>"
    return f"<div><p>{html.escape(title)}</p>{table}{foot}</div>"


def _cell(value: Any, characters: int) -> str:
    text = "null" if value is None else printable(str(value)[: 4 * characters])
    return text if len(text) <= characters else f"{text[: characters - 3]}..."


def _safe(value: Any) -> str:
    return html.escape(_cell(value, MAX_HTML_CELL_CHARACTERS))
