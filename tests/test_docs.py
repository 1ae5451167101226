"""What the documentation says holds: code runs, commands parse, generated pages are fresh."""

import ast
import codeop
import doctest
import importlib
import importlib.util
import inspect
import json
import os
import pkgutil
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from tests.pages import (
    DEADLINE_S,
    PAGES,
    ROOT,
    SESSIONS,
    all_blocks,
    at_its_line,
    blocks,
    named_file,
    words_of,
)

import streamjoin
import streamjoin_datagen
import streamjoin_hw
from streamjoin.cli import parse
from streamjoin.engines import catalog
from streamjoin_common.documents import read_toml

MAX_README_BYTES = 6144
OTHER_PROGRAMS = {
    *(".", "pip", "uv", "g++", "jupyter"),
    *("spark-submit", "lint-imports", "import-linter", "pytest", "fusesoc"),
}
"""Programs that pages show and whose words are not ours to check."""


def prose(page: Path) -> str:
    return re.sub(r"^```\w*\n.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def check(words: list[str]) -> None:
    """Check a command's words against what understands them."""
    if words[0] == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
        assert words[1] in targets, words
    elif words[0] == "python":
        assert words[1] == "-m"
        assert importlib.util.find_spec(words[2]), words
    elif words[0] == "streamjoin":
        parse(words[1:])


def modules() -> Iterator[ModuleType]:
    for package in (streamjoin, streamjoin_hw, streamjoin_datagen):
        yield package
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__"):
                yield importlib.import_module(found.name)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page not in SESSIONS], ids=lambda page: page.name
)
def test_python_in_the_documentation_runs(page: Path) -> None:
    for code in blocks(page, "python"):
        exec(compile(at_its_line(code, page), str(page), "exec"), {})


def refused_at_the_prompt(code: str) -> str:
    """Return what Python's prompt says against lines that are pasted, "" if it takes them all."""
    compile_command = codeop.CommandCompiler()
    typed: list[str] = []
    for line in [*code.splitlines(), ""]:
        typed.append(line)
        try:
            complete = compile_command("\n".join(typed), symbol="single") is not None
        except SyntaxError as error:
            return f"{line!r}: {error.msg}"
        typed = [] if complete else typed
    return "\n".join(typed)


def test_python_in_the_documentation_can_be_pasted_at_the_prompt() -> None:
    assert refused_at_the_prompt("if True:\n    x = 1\ny = 2\n")
    assert refused_at_the_prompt("if True:\n    x = 1\n\n    y = 2\n")
    for page in PAGES:
        for language, code in all_blocks(page):
            if language in {"python", "py"} and not named_file(code):
                assert refused_at_the_prompt(code) == "", page
            elif language == "python":
                before = page.read_text().partition(f"```python\n{code}")[0]
                assert re.search(r"\b[Ss]ave\b", before.rpartition("```")[2]), (page, code[:40])


def test_the_readme_shows_python() -> None:
    assert blocks(ROOT / "README.md", "python")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_is_of_a_kind_that_is_checked(page: Path) -> None:
    languages = re.findall(r"^```(\w*)\n.*?^```$", page.read_text(), re.MULTILINE | re.DOTALL)
    assert set(languages) <= {"", "python", "py", "console", "json", "text", "toml", "cpp"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_in_the_documentation_are_understood(page: Path) -> None:
    for words in words_of("\n".join(blocks(page, ""))):
        assert words[0] in {"streamjoin", "make", "python", *OTHER_PROGRAMS}, words
        check(words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_verbs_within_sentences_exist(page: Path) -> None:
    for code in re.findall(r"`streamjoin ([a-z][^`]*)`", prose(page)):
        with pytest.raises(SystemExit) as ended:
            parse([*shlex.split(code), "--help"])  # a wrong verb or choice ends it earlier
        assert ended.value.code == 0, code


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_calls_that_need_a_session_fit_their_functions(page: Path) -> None:
    for code in blocks(page, "py"):
        tree = ast.parse(code)
        names: dict[str, object] = {}
        imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
        exec(compile(ast.Module(imports, []), str(page), "exec"), names)
        called = 0
        for call in [node for node in ast.walk(tree) if isinstance(node, ast.Call)]:
            function = names.get(call.func.id) if isinstance(call.func, ast.Name) else None
            if callable(function):
                keywords = {str(keyword.arg): None for keyword in call.keywords}
                inspect.signature(function).bind(*call.args, **keywords)
                called += 1
        assert called, page


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_sessions_on_a_board_are_commands_and_python_that_compiles(page: Path) -> None:
    for session in blocks(page, "console"):
        assert all(re.match(r"\$ |>>> |\.\.\. ", line) for line in session.splitlines())
        for example in doctest.DocTestParser().get_examples(session):
            compile(example.source, str(page), "exec")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_json_in_the_documentation_is_json(page: Path) -> None:
    for code in blocks(page, "json"):
        json.loads(code)


def anchors(page: Path) -> set[str]:
    """Return the names that links can jump to: headings, as web pages of repositories name them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_two_commands_of_a_page_write_into_one_folder(page: Path) -> None:
    commands = "\n".join(blocks(page, "")).replace("\\\n", " ")
    folders = re.findall(r"--out (\S+)", commands)
    assert sorted(set(folders)) == sorted(folders)


def test_links_in_the_documentation_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
            path, _, anchor = target.partition("#")
            aim = page.parent / path if path else page
            assert aim.exists(), f"{page.name} links to {target}"
            assert not anchor or anchor in anchors(aim), f"{page.name} links to {target}"


def test_the_readme_is_short_and_names_both_commands() -> None:
    readme = (ROOT / "README.md").read_bytes()
    assert len(readme) <= MAX_README_BYTES
    commands = "\n".join(blocks(ROOT / "README.md", "")).splitlines()
    assert {"make compare", "make test"} <= set(commands)


def test_the_pages_name_every_engine_and_knob_with_its_default() -> None:
    pages = "".join((ROOT / "docs" / name).read_text() for name in ("engines.md", "stores.md"))
    for name in catalog.names():
        assert f"`{name}`" in pages, name
        for knob in catalog.get(name).knobs:
            assert f"`{knob.name}={knob.default}`" in pages, f"{name}: {knob.name}"


def test_the_page_of_benchmarks_names_every_experiment() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    for experiment in (ROOT / "benchmarks").glob("*.toml"):
        assert f"`{experiment.stem}`" in page, experiment.stem


def test_the_index_of_decisions_has_every_title() -> None:
    index = (ROOT / "docs" / "decisions" / "README.md").read_text()
    for page in sorted((ROOT / "docs" / "decisions").glob("0*.md")):
        title = page.read_text().partition("\n")[0].removeprefix("# ")
        assert f"- [{title}]({page.name})\n" in index


def test_paths_in_the_glossary_exist() -> None:
    paths = re.findall(r"`([\w./-]+/[\w./-]*)`", (ROOT / "docs" / "glossary.md").read_text())
    assert len(paths) > 50
    for path in paths:
        assert (ROOT / path).exists(), path


def test_the_glossary_is_sorted_and_every_term_has_meaning_source_and_code() -> None:
    page = (ROOT / "docs" / "glossary.md").read_text()
    rows = [line[2:-2].split(" | ") for line in page.splitlines() if line.startswith("| **")]
    assert all(len(row) == 4 and all(row) for row in rows)
    terms = [row[0].lower() for row in rows]
    assert len(set(terms)) == len(terms) > 50
    assert terms == sorted(terms)


def test_every_example_in_a_docstring_is_true() -> None:
    tried = 0
    for module in modules():
        failed, count = doctest.testmod(module)
        assert failed == 0, module.__name__
        tried += count
    assert tried > 10


def test_the_generated_pages_are_what_the_code_says() -> None:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    for name, page in generate.PAGES.items():
        assert (ROOT / "docs" / name).read_text() == page(), f"{name}: type  make docs"


@pytest.mark.parametrize("words", [["join"], ["compare"], ["advise"], ["hw", "synth"]])
def test_help_says_of_every_flag_what_the_reference_says(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    with pytest.raises(SystemExit):
        parse([*words, "--help"])
    shown = " ".join(capsys.readouterr().out.split())
    page = (ROOT / "docs" / "reference" / "cli.md").read_text()
    section = re.split(rf"^#+ streamjoin {' '.join(words)}$", page, flags=re.MULTILINE)[1]
    rows = re.findall(r"^\| `(.*)` \| (.*) \|$", re.split(r"^##", section, flags=re.M)[0], re.M)
    assert len(rows) > 10
    for flag, meaning in rows:
        assert meaning.replace("\\|", "|"), flag
        assert meaning.replace("\\|", "|") in shown, flag


def test_the_reference_of_python_has_every_public_name() -> None:
    page = (ROOT / "docs" / "reference" / "python.md").read_text()
    shown = {path.rpartition(".")[2] for path in re.findall(r"auto\w+:: ([\w.]+)", page)}
    assert set(streamjoin.__all__) <= shown


def test_the_pins_of_the_site_are_of_its_extra() -> None:
    extra = read_toml(ROOT / "pyproject.toml")["project"]["optional-dependencies"]["docs"]
    assert (ROOT / "docs" / "requirements.in").read_text().split() == extra


def test_the_site_leads_to_every_page() -> None:
    index = (ROOT / "docs" / "index.md").read_text()
    named = {
        line
        for part in re.findall(r":::\{toctree\}(.*?):::", index, re.DOTALL)
        for line in part.split()
    }
    pages = {
        str(page.relative_to(ROOT / "docs").with_suffix(""))
        for page in (ROOT / "docs").rglob("*.md")
    }
    pages = {page for page in pages if not re.match(r"index$|decisions/\d", page)}
    assert pages <= named


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_loads_nothing_of_others(tmp_path: Path) -> None:
    tools = ROOT / ".venv-docs"
    assert tools.is_dir(), "type  make setup-docs"
    path = os.pathsep.join([str(tools), *filter(None, sys.path)])
    words = [
        "-q",
        "-W",
        "--keep-going",
        "-d",
        str(tmp_path / "work"),
        "docs",
        str(tmp_path / "site"),
    ]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *words],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    loaded = []
    for file in (tmp_path / "site").rglob("*"):
        if file.suffix == ".html":
            tags = re.findall(r"<(?:script|link|img|iframe|source)\b[^>]*>", file.read_text())
            loaded += [tag for tag in tags if re.search(r"(?:src|href)=[\"'](?:https?:)?//", tag)]
        elif file.suffix == ".css":
            loaded += re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//\S+", file.read_text())
    assert loaded == []
