"""The walls between the packages, and what must stay cheap."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEADLINE_S = 120


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )


def test_the_walls_stand() -> None:
    done = run(str(Path(sys.executable).parent / "lint-imports"), "--no-cache")
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_sources_are_formatted_typed_and_lint_free() -> None:
    bin_folder = Path(sys.executable).parent
    for command in (["ruff", "check", "."], ["ruff", "format", "--check", "."], ["mypy"]):
        done = run(str(bin_folder / command[0]), *command[1:])
        assert done.returncode == 0, done.stdout + done.stderr


STORAGE = ROOT / "common" / "streamjoin_common" / "storage"
ONLY_STORAGE = re.compile(
    r"""os\.(replace|rename|renames|getpid|fsync|umask)\b | \.rename\( | \bfcntl\b | \bflock\b
    | ^\s*(import|from)\ tempfile | mkstemp | mkdtemp | TemporaryDirectory
    | ["']STREAMJOIN_CACHE["'] | \.(pid|lock)["'] | (draft|beside|made|fresh)\.replace\(""",
    re.VERBOSE | re.MULTILINE,
)


def test_only_storage_names_files_reads_the_caches_variable_and_locks() -> None:
    """What gets its final name by a rename, process ids and temporary folders are storage's."""
    found = []
    for root in ("common", "host", "hw", "datagen", "spark", "notebooks"):
        for path in sorted((ROOT / root).rglob("*.py")):
            if STORAGE not in path.parents:
                text = path.read_text()
                lines = [text.count("\n", 0, at.start()) + 1 for at in ONLY_STORAGE.finditer(text)]
                found += [f"{path.relative_to(ROOT)}:{line}" for line in lines]
    assert found == []
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
