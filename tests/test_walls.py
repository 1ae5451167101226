"""The walls between the packages, and what must stay cheap."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import streamjoin

ROOT = Path(__file__).resolve().parent.parent
DEADLINE_S = 600
SOURCE_ROOTS = ("common", "host", "hw", "datagen", "spark", "notebooks")
MAX_MODULES_PER_FOLDER = 15
MAX_LINES_PER_MODULE = 400


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )


def test_the_walls_stand() -> None:
    done = run(str(Path(sys.executable).parent / "lint-imports"), "--no-cache")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.timeout(3 * DEADLINE_S)
def test_the_sources_are_formatted_typed_and_lint_free() -> None:
    """Types of all sources take minutes where nothing is kept and others use the cores."""
    bin_folder = Path(sys.executable).parent
    for command in (["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]):
        done = run(str(bin_folder / command[0]), *command[1:])
        assert done.returncode == 0, done.stdout + done.stderr


def sources() -> Iterator[tuple[str, Path]]:
    """All modules of the packages: name to import, file."""
    for root in SOURCE_ROOTS:
        for path in sorted((ROOT / root).glob("streamjoin*/**/*.py")):
            parts = path.relative_to(ROOT / root).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def test_folders_hold_at_most_15_modules() -> None:
    counts: dict[Path, int] = {}
    for _, path in sources():
        counts[path.parent] = counts.get(path.parent, 0) + (path.name != "__init__.py")
    assert len(counts) > 40
    crowded = {str(folder): count for folder, count in counts.items()}
    crowded = {name: count for name, count in crowded.items() if count > MAX_MODULES_PER_FOLDER}
    assert crowded == {}


def test_modules_have_at_most_400_lines() -> None:
    lines = {name: len(path.read_text().splitlines()) for name, path in sources()}
    assert {name: count for name, count in lines.items() if count > MAX_LINES_PER_MODULE} == {}


def imports() -> dict[str, set[str]]:
    """Which modules each module imports, at its top, inside functions or for types."""
    trees = {name: ast.parse(path.read_text()) for name, path in sources()}
    graph: dict[str, set[str]] = {}
    for importer, tree in trees.items():
        imported = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                # What is imported from a package is its module or its own name.
                names = {f"{node.module}.{alias.name}" for alias in node.names}
                imported |= {name if name in trees else node.module for name in names}
        graph[importer] = (imported & trees.keys()) - {importer}
    return graph


def circles(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """Sets of modules that import one another: the modules that reach each other."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        seen, pending = set[str](), [start]
        while pending:
            new = graph[pending.pop()] - seen
            seen |= new
            pending += new
        reached[start] = seen
    return {
        frozenset(other for other in reached[name] if name in reached[other])
        for name in graph
        if name in reached[name]
    }


def test_circles_are_seen() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set[str](), "e": {"a", "d"}}
    assert circles(graph) == {frozenset({"b", "c"})}


def test_no_modules_import_one_another_not_even_inside_functions() -> None:
    graph = imports()
    assert "streamjoin.report.page" in graph["streamjoin.cli.stats"]  # inside a function
    assert circles(graph) == set()


def undocumented(name: str, body: list[ast.stmt]) -> Iterator[str]:
    """Public classes, functions and methods without a docstring."""
    for node in body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            if ast.get_docstring(node) is None:
                yield f"{name}.{node.name}"
            if isinstance(node, ast.ClassDef):
                yield from undocumented(f"{name}.{node.name}", node.body)


def test_public_names_are_documented() -> None:
    interface = ("streamjoin.api", "streamjoin.live", "streamjoin.sequence")
    lacking = [
        each
        for name, path in sources()
        if name.startswith(interface)
        for each in undocumented(name, ast.parse(path.read_text()).body)
    ]
    for name in streamjoin.__all__:
        documentation = getattr(streamjoin, name).__doc__ or ""
        if not documentation or documentation.startswith(f"{name}("):  # a dataclass writes its own
            lacking.append(name)
    assert lacking == []


STORAGE = ROOT / "common" / "streamjoin_common" / "storage"
ONLY_STORAGE = re.compile(
    r"""os\.(replace|rename|renames|getpid|fsync|umask)\b | \.rename\( | \bfcntl\b | \bflock\b
    | ^\s*(import|from)\ tempfile | mkstemp | mkdtemp | TemporaryDirectory
    | ["']STREAMJOIN_CACHE["'] | \.(pid|lock)["'] | (draft|beside|made|fresh)\.replace\(""",
    re.VERBOSE | re.MULTILINE,
)


def test_only_storage_names_files_reads_the_caches_variable_and_locks() -> None:
    """What gets its final name by a rename, process ids and temporary folders are storage's."""
    breaches = []
    for _, path in sources():
        if STORAGE not in path.parents:
            text = path.read_text()
            lines = [text.count("\n", 0, at.start()) + 1 for at in ONLY_STORAGE.finditer(text)]
            breaches += [f"{path.relative_to(ROOT)}:{line}" for line in lines]
    assert breaches == []
    assert all(
        ONLY_STORAGE.search(path.read_text())
        for path in (STORAGE / "atomic.py", STORAGE / "owned.py")
    )


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['streamjoin', '--help']\n"
        "from streamjoin.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'numpy', 'numba', 'pyarrow', 'pyspark', 'amaranth', 'matplotlib', 'rich'}\n"
        "print('HEAVY', sorted(heavy & set(sys.modules)))"
    )
    done = run(sys.executable, "-c", code)
    assert done.stdout.rstrip().endswith("HEAVY []"), done.stdout + done.stderr


def test_the_board_needs_no_compiled_package() -> None:
    """Without Arrow, Numba, Amaranth and Spark, NumPy arrays still join on the oracle."""
    code = """
import importlib.util, sys
absent = {"pyarrow", "numba", "llvmlite", "amaranth", "pyspark", "duckdb", "matplotlib"}
sys.modules.update(dict.fromkeys(absent))
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name in absent else find(name, *rest)
import numpy as np
import streamjoin as sj
from streamjoin.engines import catalog
r = {"k": np.array([1, 2])}
assert catalog.get("npj").unusable().startswith("Numba is not installed")
assert catalog.get("duckdb").unusable().startswith("DuckDB is not installed")
print(sj.join(r, r, on="k", check=True).metrics["engine"])
"""
    done = run(sys.executable, "-c", code)
    assert done.stdout.strip() == "oracle", done.stdout + done.stderr
