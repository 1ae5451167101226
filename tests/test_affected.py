"""Which tests ``make check`` runs for a change."""

from pathlib import Path

from tests.affected import BUDGET_S, ROOT, WORKERS, chosen, distances, engines, imported, modules

FILES = {
    "host/streamjoin/__init__.py": "",
    "host/streamjoin/catalog.py": 'PLACES = {"npj": "streamjoin.npj:Npj"}\n',
    "host/streamjoin/npj.py": "def run():\n    from streamjoin import tuples\n",
    "host/streamjoin/tuples.py": "",
    "host/streamjoin/alone.py": "import streamjoin.tuples\n",
    "tests/host/test_catalog.py": "from streamjoin import catalog\n",
    "tests/host/test_tuples.py": "from streamjoin.tuples import Stream\n",
    "tests/host/test_none.py": 'import numpy\nPAGE = "docs/goals.md"\n',
    "tests/test_docs.py": "",
    "docs/goals.md": "",
}


def tree(root: Path) -> Path:
    for name, source in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(source)
    return root


def touched(root: Path, *changed: str) -> dict[str, int]:
    near = distances({root / name for name in changed}, root)
    return {path.name: distance for path, distance in near.items()}


def test_tests_named_after_a_source_come_before_those_that_import_it(tmp_path: Path) -> None:
    near = touched(tree(tmp_path), "host/streamjoin/tuples.py")
    assert near == {"test_tuples.py": 0, "test_catalog.py": 3}


def test_imports_inside_functions_and_modules_named_in_strings_count(tmp_path: Path) -> None:
    root = tree(tmp_path)
    known = modules(root)
    assert imported(known["streamjoin.npj"], known) == {"streamjoin.tuples"}
    assert imported(known["streamjoin.catalog"], known) == {"streamjoin.npj"}
    assert touched(root, "host/streamjoin/npj.py") == {"test_catalog.py": 2}


def test_what_nobody_uses_and_what_is_no_source_touch_what_they_must(tmp_path: Path) -> None:
    root = tree(tmp_path)
    assert touched(root, "host/streamjoin/alone.py") == {}
    assert touched(root, "docs/goals.md") == {"test_docs.py": 0, "test_none.py": 0}
    assert touched(root, "tests/host/test_none.py") == {"test_none.py": 0}


def test_the_nearest_run_always_and_others_while_there_is_time(tmp_path: Path) -> None:
    near = {tmp_path / "a.py": 2, tmp_path / "b.py": 0, tmp_path / "c.py": 1, tmp_path / "d.py": 1}
    seconds = {"a.py": 5.0, "b.py": 9e9, "c.py": 1.0, "d.py": 2.0}
    assert [path.stem for path in chosen(near, seconds, tmp_path)] == ["b"]
    seconds["b.py"] = WORKERS * BUDGET_S - 4.0
    assert [path.stem for path in chosen(near, seconds, tmp_path)] == ["b", "c", "d"]


def test_every_module_of_the_project_is_known() -> None:
    known = modules()
    assert {"streamjoin", "streamjoin.oracle", "tests.affected"} <= set(known)
    near = distances({ROOT / "host" / "streamjoin" / "oracle.py"})
    assert near[ROOT / "tests" / "host" / "test_oracle.py"] == 0


def test_engines_that_are_or_use_what_has_changed_are_known() -> None:
    folder = ROOT / "host" / "streamjoin" / "engines"
    assert engines({folder / "intra" / "npj.py"}) == ["npj"]
    assert {"ibwj-im", "ibwj-pim"} <= set(engines({folder / "sliding" / "mergetrees.py"}))
    assert engines({ROOT / "README.md"}) == []
