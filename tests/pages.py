"""The documentation's pages and their blocks, for the tests that check and run them."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

SESSIONS = [ROOT / "docs" / "tutorial.md", *sorted((ROOT / "docs" / "how-to").glob("*.md"))]
"""Pages whose blocks are the steps of one session in an empty folder."""

DEADLINE_S = 280


def all_blocks(page: Path) -> list[tuple[str, str]]:
    """Return language and text of every block, in order."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def at_its_line(code: str, page: Path) -> str:
    """Return code behind as many empty lines as the page has before it: for tracebacks."""
    return "\n" * page.read_text().partition(code)[0].count("\n") + code


def blocks(page: Path, language: str) -> list[str]:
    return [code for said, code in all_blocks(page) if said == language]


def named_file(code: str) -> str:
    """Return the path that a block's first line names: it is to be saved there; "" if none."""
    named = re.match(r"(?:#|//) ([\w./-]+\.\w+)\n", code)
    return named[1] if named else ""


def words_of(code: str) -> Iterator[list[str]]:
    """Return each command's words."""
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words:
            yield words
