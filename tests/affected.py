"""Run the tests that a change touches: ``make check PATHS="host/streamjoin/oracle.py"``.

A test file is touched by a source that it is named after, and by every source that it imports,
itself or through others. The nearest come first, and as many of them run as fit into two minutes
by the seconds that they took the last time; how many did not fit is said. Without paths the
changes are those that git knows of: uncommitted ones, else those of the last commit.
"""

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from streamjoin.engines import catalog

ROOT = Path(__file__).resolve().parents[1]
BUDGET_S = 100
"""Seconds of tests that are started, start-up aside; the workers share them."""
WORKERS = 2
UNKNOWN_S = 20.0
"""Seconds a test file is taken for that has never run here."""
SECONDS = ROOT / ".pytest_cache" / "v" / "streamjoin" / "seconds"
"""Written by ``tests/conftest.py``: seconds that each test file took."""
EVERY_ENGINE = ROOT / "tests" / "host" / "test_engines.py"
"""Tests of all engines: where they do not fit, those of the engines in question run."""
MODULE = re.compile(r"\w+(\.\w+)+(:\w+)?")


def modules(root: Path = ROOT) -> dict[str, Path]:
    """Return the project's modules, tests among them, by their full names."""
    parents = [(package.parent.parent, package.parent) for package in root.glob("*/*/__init__.py")]
    parents += [(root, root / "tests"), (root, root / "sim_tests")]
    paths = {}
    for parent, folder in parents:
        for path in folder.rglob("*.py"):
            words = path.relative_to(parent).with_suffix("").parts
            paths[".".join(words[:-1] if words[-1] == "__init__" else words)] = path
    return paths


def imported(path: Path, known: dict[str, Path]) -> set[str]:
    """Return the project's modules that a file names: in imports anywhere, or in strings."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
            if not all(f"{node.module}.{alias.name}" in known for alias in node.names):
                names.add(node.module)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.update([node.value.partition(":")[0]] if MODULE.fullmatch(node.value) else [])
    return names & set(known)


def distances(changed: set[Path], root: Path = ROOT) -> dict[Path, int]:
    """Return every test file that is touched, with the number of imports between."""
    known = modules(root)
    users: dict[str, set[str]] = {name: set() for name in known}
    for name, path in known.items():
        for used in imported(path, known):
            users[used].add(name)
    near: dict[str, int] = {}
    step = {name for name, path in known.items() if path in changed}
    while step:
        near |= dict.fromkeys(step, max(near.values(), default=-1) + 1)
        step = {user for name in step for user in users[name]} - set(near)
    tests = {path: near[name] for name, path in known.items() if name in near and is_test(path)}
    every = [path for path in known.values() if is_test(path)]
    for path in changed:
        tests |= dict.fromkeys(named_after(path, every, root), 0)
    return tests


def is_test(path: Path) -> bool:
    """Whether pytest collects a file from here."""
    return path.name.startswith("test_") and path.parent.name != "board"


def named_after(path: Path, tests: list[Path], root: Path = ROOT) -> Iterator[Path]:
    """Find the tests of a file by its name; those of one that is no module mention it."""
    if path.suffix == ".py":
        folders = path.relative_to(root).parts
        stems = {f"test_{path.stem}", f"test_{path.parent.name}_{path.stem}"}
        yield from (test for test in tests if test.stem in stems and test.parent.name in folders)
        if path.name == "conftest.py":
            yield from (test for test in tests if test.is_relative_to(path.parent))
        if "board" in folders:
            yield from (test for test in tests if test.name == "test_board.py")
        return
    if path.suffix == ".md":
        yield from (test for test in tests if test.name == "test_docs.py")
    for test in tests:
        words = test.read_text(encoding="utf-8")
        if path.name in words or f'"{path.parent.name}"' in words:
            yield test


def git(*words: str) -> list[Path]:
    """Return the paths that a git command prints."""
    command = ["git", *words, "-z"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    return [ROOT / name for name in done.stdout.split("\0") if name]


def changes() -> list[Path]:
    """Return what git says has changed."""
    now = git("diff", "--name-only", "HEAD") + git("ls-files", "--others", "--exclude-standard")
    return now or git("diff", "--name-only", "HEAD~1")


def chosen(near: dict[Path, int], seconds: dict[str, float], root: Path = ROOT) -> list[Path]:
    """Return the nearest test files that fit into the budget; among equally near the shortest."""

    def cost(path: Path) -> float:
        return seconds.get(str(path.relative_to(root)), UNKNOWN_S)

    chosen, left_s = [], float(WORKERS * BUDGET_S)
    for path in sorted(near, key=lambda path: (near[path], cost(path), path)):
        if near[path] == 0 or cost(path) <= left_s:
            chosen.append(path)
            left_s -= cost(path)
    return chosen


def engines(changed: set[Path]) -> list[str]:
    """Return the engines whose module has changed, or imports what has."""
    known = modules()
    names = {name for name, path in known.items() if path in changed}
    affected = []
    for engine, target in catalog._class_paths().items():
        path = known[target.partition(":")[0]]
        if path in changed or imported(path, known) & names:
            affected.append(engine)
    return affected


def main(words: list[str]) -> int:
    """Run the tests that the paths' changes touch; without paths, git's."""
    paths = [Path(word).resolve() for word in words]
    for path in paths:
        if not path.exists():
            print(f"check: {path}: there is no such file or folder", file=sys.stderr)  # noqa: T201  (a program)
            return 2
    files = [file for path in paths for file in (path.rglob("*") if path.is_dir() else [path])]
    changed = {file for file in files or changes() if file.is_file()}
    near = distances(changed)
    seconds = json.loads(SECONDS.read_text()) if SECONDS.is_file() else {}
    tests = chosen(near, seconds)
    if EVERY_ENGINE in near and EVERY_ENGINE not in tests and (names := engines(changed)):
        tests.append(EVERY_ENGINE)
        os.environ["ENGINES"] = ",".join(names)
        print(f"check: of the tests of every engine those of {', '.join(names)}")  # noqa: T201  (a program)
    rest = f"{len(near) - len(tests)} further away do not: make test runs all"
    print(f"check: {len(tests)} test files run; {rest}", flush=True)  # noqa: T201  (a program)
    names = [str(test.relative_to(ROOT)) for test in tests]
    workers = ("-n", str(WORKERS), "--dist", "worksteal")
    return int(pytest.main([*workers, *names, "tests/test_walls.py"])) if names else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
