"""Every error that is raised at a user is of one family, and a built-in too."""

import ast
import builtins
from pathlib import Path

import streamjoin as sj

ROOT = Path(__file__).parents[1]
PACKAGES = ("common", "host", "hw", "datagen", "spark")

SIGNALS = {"StoppedError", "NotThePointError"}
"""Raised and caught inside: no user meets them."""


def classes() -> dict[str, list[str]]:
    """The bases of every exception of the packages, by name."""
    known: dict[str, list[str]] = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef) and node.name.endswith("Error"):
                    known[node.name] = [ast.unparse(base).split(".")[-1] for base in node.bases]
    return known


def ancestors(name: str, known: dict[str, list[str]]) -> set[str]:
    return {name}.union(*(ancestors(base, known) for base in known.get(name, ())))


def test_errors_are_of_one_family_and_also_the_builtin_that_fits() -> None:
    known = classes()
    assert len(known) > 20
    for name in known:
        if name.startswith("_") or name in {*SIGNALS, "StreamJoinError"}:
            continue
        above = ancestors(name, known) - {"Exception"}
        assert "StreamJoinError" in above, name
        assert any(issubclass(getattr(builtins, base, int), Exception) for base in above), name


def test_errors_of_the_host_and_of_tools_are_exported() -> None:
    for name in ("StreamJoinError", "ToolError", "StorageError", "CacheError", "ParameterError"):
        assert issubclass(getattr(sj, name), sj.StreamJoinError)
        assert name in sj.__all__
    from streamjoin_hw.flow import toolchain

    assert toolchain.ToolError is sj.ToolError
