"""Tables on a screen: never wider than it is, and nothing of them is lost."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamjoin_common import screen
from streamjoin_common.screen import display_width, fold, print_paragraph, print_table, table_lines
from streamjoin_common.suggestions import did_you_mean

CELLS = st.text(alphabet=st.sampled_from("ab 1.,/_=連é"), max_size=60)
TABLES = st.integers(1, 7).flatmap(
    lambda columns: st.lists(st.tuples(*[CELLS] * columns), min_size=1, max_size=5)
)


def letters(lines: list[str]) -> list[str]:
    return sorted("".join(lines).replace("─", "").replace(" ", ""))


@given(TABLES, st.integers(30, 130), st.data())
def test_no_line_is_wider_than_the_screen_and_no_letter_is_lost(
    table: list[tuple[str, ...]], room: int, data: st.DataObject
) -> None:
    headings = [f"h{index}" for index in range(len(table[0]))]
    numeric = data.draw(st.sets(st.sampled_from(headings)))
    lines, dropped = table_lines(headings, table, room, numeric)
    assert max(map(display_width, lines)) <= room
    assert dropped == []
    stacked = len(table) if "─" not in "".join(lines) else 1
    held = [*headings * stacked, *(cell for row in table for cell in row)]
    assert letters(lines) == letters(held)


@given(CELLS, st.integers(2, 40))
def test_folding_keeps_letters_and_width(text: str, room: int) -> None:
    lines = fold(text, room)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert max(map(display_width, lines)) <= room


def test_a_narrow_screen_drops_columns_in_order_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    row = ["engine", "1234567890", "1234567890", "12345"]
    print_table(
        ["name", "first\nof all", "second", "third"], [row], (), ("second", "first\nof all")
    )
    shown = capsys.readouterr()
    assert "second" not in shown.out
    assert "first" in shown.out
    assert shown.err == "not shown in 30 columns: second; COLUMNS=37 or --json shows all\n"
    monkeypatch.setenv("COLUMNS", "37")
    print_table(
        ["name", "first\nof all", "second", "third"], [row], (), ("second", "first\nof all")
    )
    assert capsys.readouterr().err == ""


def test_a_row_that_fits_no_way_is_a_stack_of_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    figures = {"a": "1" * 15, "b": "2" * 15, "c": "3"}
    lines, _ = table_lines([*figures], [[*figures.values()]] * 2, 30, figures)
    one = ["a  111111111111111", "b  222222222222222", "c  3"]
    assert lines == [*one, "", *one]


def test_figures_line_up_on_the_right_and_are_never_folded() -> None:
    lines, _ = table_lines(
        ["what", "tuples/s"], [["npj", "1.5 M"], ["prj", "12 M"]], 80, {"tuples/s"}
    )
    assert lines[2:] == ["npj      1.5 M", "prj       12 M"]


def test_without_a_terminal_a_screen_has_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("sys.__stdout__", io.StringIO())
    assert screen.columns() == 80
    monkeypatch.setenv("COLUMNS", "123")
    assert screen.columns() == 123


def test_control_characters_are_shown_and_not_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["a"], [["\x1b[2J"]])
    print_paragraph("\x1b[2J")
    assert not re.search("\x1b", capsys.readouterr().out)


def test_a_terminal_without_box_letters_gets_others(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding="ascii", write_through=True))
    print_table(["name"], [["連"]])
    assert raw.getvalue() == b"name\n----\n\\u9023\n"


@pytest.mark.parametrize(
    ("given", "known", "said"),
    [
        ("joyn", ["join", "bench"], ": did you mean join?"),
        ("TS", ["ts", "k"], ": did you mean ts?"),
        ("prk", ["npj", "spark", "prj"], ": did you mean prj?"),
        ("kagn", ["kind", "kang", "king"], ": did you mean kang?"),
        ("pmj", ["prj", "pmj-jm"], ": did you mean pmj-jm?"),
        ("--r", ["--force", "--order"], ""),
        ("--thraeds", ["--force", "--threads"], ": did you mean --threads?"),
        ("warp", ["npj", "prj"], ""),
        (None, ["npj"], ""),
        ("x" * 100_000, ["x"], ""),
    ],
)
def test_what_was_meant_is_named_where_something_is_near(
    given: object, known: list[str], said: str
) -> None:
    assert did_you_mean(given, known) == said
