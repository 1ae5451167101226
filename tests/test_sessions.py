"""What the tutorial, the how-tos and the notebooks show runs, from the first step to the last."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.pages import (
    DEADLINE_S,
    ROOT,
    SESSIONS,
    all_blocks,
    at_its_line,
    blocks,
    named_file,
    words_of,
)

from streamjoin.bench import claims, experiments, suites
from streamjoin.bench.experiments import reading
from streamjoin.cli import main
from streamjoin.engines import catalog
from streamjoin_common.documents import read_toml

NOTEBOOKS = sorted((ROOT / "notebooks" / "streamjoin_notebooks").glob("*.ipynb"))
BOARD_NOTEBOOK = "streamjoin"
"""Needs a board: tests/board runs it on a modelled one."""

SLOW_SESSIONS = {"own-experiment", "cluster"}
"""Those that start Spark."""

ELSEWHERE = {"own-system"}
"""Those whose tools lie in an environment of their own: ``tests/test_soc.py`` runs them."""


def install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Do what ``pip install -e`` does, for this process alone: offer the package's entry points."""
    project = read_toml(folder / "pyproject.toml")["project"]
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    groups = [
        "\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())])
        for group, entries in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(groups))
    monkeypatch.syspath_prepend(str(folder.resolve()))
    catalog._class_paths.cache_clear()


def step(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a command of a session; what sets up the checkout is there already."""
    if words[0] == "streamjoin":
        assert main(words[1:]) == 0, words
    elif words[0] == "g++":
        subprocess.run(words, check=True, timeout=DEADLINE_S)
    elif words[:3] == ["pip", "install", "-e"]:
        install(Path(words[3]), monkeypatch)
    else:
        assert words in (["make", "setup"], [".", ".venv/bin/activate"]), words


def run_session(
    page: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Run a page's blocks in order: commands, Python, and files that its blocks name.

    What a block of kind ``text`` shows after commands is among what they print.
    """
    names: dict[str, object] = {"__name__": "__main__"}
    shown = ""
    for language, code in all_blocks(page):
        if file := named_file(code):
            Path(file).parent.mkdir(parents=True, exist_ok=True)
            Path(file).write_text(code.partition("\n")[2])
        elif language == "python":
            exec(compile(at_its_line(code, page), str(page), "exec"), names)
        elif language == "":
            capsys.readouterr()
            for words in words_of(code):
                step(words, monkeypatch)
            shown = " ".join(capsys.readouterr().out.split())
        elif language == "text":
            for line in code.splitlines():
                assert " ".join(line.split()) in shown, line


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=[pytest.mark.slow] * (page.stem in SLOW_SESSIONS))
        for page in SESSIONS
        if page.stem not in ELSEWHERE
    ],
)
def test_a_session_runs_from_its_first_block_to_its_last(
    page: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    modules_before = set(sys.modules)
    try:
        run_session(page, monkeypatch, capsys)
    finally:
        catalog._class_paths.cache_clear()
        for name in set(sys.modules) - modules_before:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
                del sys.modules[name]


@pytest.mark.parametrize(
    "path",
    [path for path in NOTEBOOKS if path.stem != BOARD_NOTEBOOK],
    ids=lambda path: path.stem,
)
def test_a_notebook_runs_from_its_first_cell_to_its_last(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    shown: list[object] = []
    monkeypatch.setattr(pyplot, "show", lambda: shown.append(pyplot.gcf().canvas.draw()))
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    try:
        for cell in json.loads(path.read_text())["cells"]:
            if cell["cell_type"] == "code":
                assert not cell["outputs"], "notebooks are kept without output"
                exec(compile("".join(cell["source"]), f"{path}:{cell['id']}", "exec"), names)
    finally:
        pyplot.close("all")
    assert shown


def test_the_page_of_notebooks_names_each() -> None:
    page = (ROOT / "docs" / "notebooks.md").read_text()
    assert len(NOTEBOOKS) > 3
    for path in NOTEBOOKS:
        assert f"../notebooks/streamjoin_notebooks/{path.name})" in page


def test_the_page_of_experiments_reads_and_names_every_key(tmp_path: Path) -> None:
    page = ROOT / "docs" / "how-to" / "own-experiment.md"
    tables = page.read_text()
    for code in blocks(page, "toml"):
        path = tmp_path / named_file(code)
        path.write_text(code)
        for size in experiments.SIZES:
            for point in experiments.read(str(path), size).points:
                suites.check_table(point.table, point.label)
    keys = {*reading.KEYS, *suites._TABLE_TYPES, *claims.KEYS}
    assert keys == {key for key in keys if f"\n| `{key}` |" in tables}
