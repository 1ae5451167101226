"""What the documentation says holds: code runs, commands parse, generated pages are fresh."""

import doctest
import importlib
import pkgutil
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import streamjoin
import streamjoin_datagen
import streamjoin_hw
from streamjoin.cli import parse
from streamjoin_hw.pages import registers_page
from streamjoin_hw.presets import PRESETS

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    every = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    return [code for said, code in every if said == language]


def modules() -> Iterator[ModuleType]:
    for package in (streamjoin, streamjoin_hw, streamjoin_datagen):
        yield package
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__"):
                yield importlib.import_module(found.name)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_in_the_documentation_runs(page: Path) -> None:
    for code in blocks(page, "python"):
        exec(compile(code, str(page), "exec"), {})


def test_the_readme_shows_python() -> None:
    assert blocks(ROOT / "README.md", "python")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_in_the_documentation_are_understood(page: Path) -> None:
    for line in "\n".join(blocks(page, "")).replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["streamjoin"]:
            parse(words[1:])
        if words[:1] == ["make"]:
            targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
            assert words[1] in targets


def test_links_in_the_documentation_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_example_in_a_docstring_is_true() -> None:
    tried = 0
    for module in modules():
        failed, count = doctest.testmod(module)
        assert failed == 0, module.__name__
        tried += count
    assert tried > 10


def test_the_register_page_is_what_the_contract_says() -> None:
    fresh = registers_page(PRESETS["tiny-band"])
    assert (ROOT / "docs" / "registers.md").read_text() == fresh, "type  make docs"
