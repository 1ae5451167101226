"""Tables and paragraphs on standard output, never wider than the screen.

A screen is as wide as the terminal, or as the variable ``COLUMNS`` says; where there is no
terminal it has 80 columns. Strings are measured in display columns: a Chinese letter takes two.
"""

import re
import shutil
import sys
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TextIO

from streamjoin_common.printing import printable

DEFAULT_COLUMNS = 80
"""Width of the screen where there is no terminal, in columns."""

MIN_SCREEN_COLUMNS = 20
"""Width below which a screen is not believed, in columns."""

MIN_FOLDED_COLUMNS = 20
"""Width to which a column of text is folded, in columns; narrower ones stay as they are."""

GAP = "  "
"""What stands between two columns of a table."""

BREAKS = "/,:;=_-"
"""Characters after which a word that is too long goes on in the next line."""


SPACES = re.compile(r"\s+(?!%)")
"""Where a line may end; a percent sign stays with its number."""


def columns() -> int:
    """Width of the screen."""
    asked = shutil.get_terminal_size((DEFAULT_COLUMNS, 24)).columns
    return max(asked, MIN_SCREEN_COLUMNS)


def display_width(text: str) -> int:
    """Columns that a string takes on a screen.

    Examples
    --------
    >>> display_width("join"), display_width("連接")
    (4, 4)
    """
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def _width(letter: str) -> int:
    if unicodedata.combining(letter):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def fold(text: str, room: int) -> list[str]:
    """Fold a string by words into lines of at most ``room`` columns.

    A word that is too long is broken after punctuation, or where it must be.

    Examples
    --------
    >>> fold("a path is runs/workloads/first", 12)
    ['a path is', 'runs/', 'workloads/', 'first']
    """
    lines = [""]
    for word in SPACES.split(text.strip()):
        joint = " "
        for part in _parts(word, room):
            joined = lines[-1] + (joint if lines[-1] else "") + part
            if display_width(joined) <= room:
                lines[-1] = joined
            else:
                lines.append(part)
            joint = ""
    return lines if lines[0] else lines[1:] or [""]


def for_screen(text: str, stream: TextIO | None) -> str:
    """Fold lines by words where they go to a terminal; a word that is too long stays whole.

    A path that is broken could not be copied, and a log or a pipe keeps a sentence in one line.
    """
    if stream is None or not stream.isatty():
        return text
    room = columns()
    lines: list[str] = []
    for line in text.split("\n"):
        if display_width(line) <= room:
            lines.append(line)
            continue
        lines.append("")
        for word in SPACES.split(line):
            joined = f"{lines[-1]} {word}" if lines[-1] else word
            if display_width(joined) <= room or not lines[-1]:
                lines[-1] = joined
            else:
                lines.append(word)
    return "\n".join(lines)


def _parts(word: str, room: int) -> Iterator[str]:
    """Cut a word into parts that fit; a word that fits is one part."""
    while display_width(word) > room:
        end = 1
        while end < len(word) and display_width(word[: end + 1]) <= room:
            end += 1
        marks = [word.rfind(mark, 0, end) for mark in BREAKS]
        end = max(marks) + 1 if max(marks) >= 0 else end
        yield word[:end]
        word = word[end:]
    yield word


@dataclass(frozen=True)
class _Column:
    """One column of a table."""

    heading: str
    cells: tuple[str, ...]
    numeric: bool

    @property
    def natural(self) -> int:
        """Its width where nothing is folded."""
        lines = [*self.heading.split("\n"), *self.cells]
        return max(map(display_width, lines))

    @property
    def narrowest(self) -> int:
        """The width to which it folds: figures never, their heading by words."""
        words = max(map(display_width, self.heading.split()), default=0)
        if self.numeric:
            return max(words, *map(display_width, self.cells), 0)
        return min(self.natural, max(MIN_FOLDED_COLUMNS, words))

    def height(self, width: int) -> int:
        """About how many lines its cells take."""
        return sum(-(-display_width(cell) // width) for cell in (self.heading, *self.cells))

    def lines(self, cell: str, width: int) -> list[str]:
        """Fold a cell and align its lines."""
        folded = [line for each in cell.split("\n") for line in fold(each, width)]
        spaces = [" " * (width - display_width(line)) for line in folded]
        pairs = zip(spaces, folded, strict=True)
        return [space + line if self.numeric else line + space for space, line in pairs]


def _widths(table: Sequence[_Column], room: int) -> list[int] | None:
    """Widths that fit into the room, those that give the fewest lines; None where none fit."""
    widest = [column.natural for column in table]
    widths = [column.narrowest for column in table]
    spare = room - sum(widths) - len(GAP) * (len(table) - 1)
    if spare < 0:
        return None
    if sum(widest) - sum(widths) <= spare:
        return widest
    for _ in range(spare):
        growing = [index for index, width in enumerate(widths) if width < widest[index]]
        widths[max(growing, key=lambda index: table[index].height(widths[index]))] += 1
    return widths


def table_lines(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    room: int,
    numeric: Collection[str] = (),
    droppable: Sequence[str] = (),
) -> tuple[list[str], list[str]]:
    """Set a table, no line of which is wider than ``room``.

    Where it is too wide, columns of text fold by words, then the columns ``droppable`` are dropped,
    the first of them first, and at last each row becomes a stack of lines.

    Returns
    -------
    lines : list of str
        What to print.
    dropped : list of str
        Headings of the columns that are not in it.

    Examples
    --------
    >>> lines, _ = table_lines(["engine", "pairs"], [["npj", "12"]], 80, {"pairs"})
    >>> lines
    ['engine  pairs', '─────────────', 'npj        12']
    """
    table = [
        _Column(
            printable(heading, "\n"),
            tuple(printable(row[index]) for row in rows),
            heading in numeric,
        )
        for index, heading in enumerate(headings)
    ]
    shown = list(table)
    leaving = [column for name in droppable for column in table if column.heading == name]
    dropped: list[str] = []
    while (widths := _widths(shown, room)) is None and leaving:
        column = leaving.pop(0)
        shown.remove(column)
        dropped.append(" ".join(column.heading.split()))
    if widths is None:
        return list(_stacked(table, len(rows), room)), []
    heads = [
        column.lines(column.heading, width) for column, width in zip(shown, widths, strict=True)
    ]
    lines = _row([head[::-1] for head in heads], widths)[::-1]  # the last lines side by side
    lines.append("─" * (sum(widths) + len(GAP) * (len(widths) - 1)))
    for index in range(len(rows)):
        cells = [
            column.lines(column.cells[index], width)
            for column, width in zip(shown, widths, strict=True)
        ]
        lines += _row(cells, widths)
    return lines, dropped


def _row(cells: list[list[str]], widths: list[int]) -> list[str]:
    """Put folded cells side by side."""
    height = max(map(len, cells))
    padded = [
        cell + [" " * width] * (height - len(cell))
        for cell, width in zip(cells, widths, strict=True)
    ]
    return [GAP.join(parts).rstrip() for parts in zip(*padded, strict=True)]


def _stacked(table: Sequence[_Column], count: int, room: int) -> Iterator[str]:
    """Show each row as lines of heading and value."""
    names = [" ".join(column.heading.split()) for column in table]
    left = min(max(map(display_width, names)), room // 2)
    for index in range(count):
        if index:
            yield ""
        for name, column in zip(names, table, strict=True):
            heads = fold(name, left)
            values = fold(column.cells[index], room - left - len(GAP))
            for line in range(max(len(heads), len(values))):
                head = heads[line] if line < len(heads) else ""
                value = values[line] if line < len(values) else ""
                yield f"{head}{' ' * (left - display_width(head))}{GAP}{value}".rstrip()


def print_table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    numeric: Collection[str] = (),
    droppable: Sequence[str] = (),
) -> None:
    """Print a table to standard output, as wide as the screen at most.

    Parameters
    ----------
    headings : sequence of str
        One for each column; a heading may have two lines.
    rows : sequence of sequence of str
        The cells.
    numeric : collection of str
        Headings of the columns of figures, which are aligned on the right and never folded.
    droppable : sequence of str
        Headings of the columns that are dropped where the screen is too narrow, in this order; a
        line on standard error names them.
    """
    lines, dropped = table_lines(headings, rows, columns(), numeric, droppable)
    _write(lines)
    if dropped:
        whole = max(map(display_width, table_lines(headings, rows, sys.maxsize, numeric)[0]))
        sys.stderr.write(
            f"not shown in {columns()} columns: {', '.join(dropped)}; "
            f"COLUMNS={whole} or --json shows all\n"
        )


def print_paragraph(text: str, indent: int = 0) -> None:
    """Print sentences to standard output, folded by words."""
    space = " " * indent
    lines = fold(printable(text), columns() - indent)
    _write([space + line for line in lines])


def _write(lines: Sequence[str]) -> None:
    """Write lines to standard output, in what its encoding has."""
    text = "".join(f"{line}\n" for line in lines)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        plain = text.replace("─", "-").encode(encoding, "backslashreplace")
        text = plain.decode(encoding)
    sys.stdout.write(text)
    sys.stdout.flush()  # where both go to one file, what standard error says follows its table
