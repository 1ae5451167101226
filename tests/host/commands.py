"""Command lines over the files of the fixture ``files``."""

import argparse
from collections.abc import Callable
from pathlib import Path

import pytest

from streamjoin import cli
from streamjoin.cli import main


def words(
    folder: Path, *, r: str = "r.parquet", s: str = "s.parquet", engine: str = "kang"
) -> list[str]:
    return ["join", "--engine", engine, "--r", str(folder / r), "--s", str(folder / s)]


def running(monkeypatch: pytest.MonkeyPatch, work: Callable[[], object]) -> int:
    """Run the command with work of a test's own."""
    parsed = argparse.Namespace(run=lambda _: work() or 0)
    monkeypatch.setattr(cli, "parse", lambda _: parsed)
    return main(["join"])
