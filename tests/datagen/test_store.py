"""Folders that appear whole or not at all."""

from pathlib import Path

import pytest

from streamjoin_datagen.store import staged


def fail(out: Path, failure: BaseException, beside: Path | None = None) -> None:
    """Write half a folder, and perhaps a file of somebody else."""
    with staged(out) as folder:
        (folder / "r.parquet").write_text("half")
        if beside:
            beside.write_text("new")
        raise failure


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_failure_leaves_no_folder_that_was_not_there(
    failure: type[BaseException], tmp_path: Path
) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(failure):
        fail(tmp_path / "there" / "not" / "there" / "w", failure())
    assert list(tmp_path.rglob("*")) == [tmp_path / "there"]


def test_a_failure_leaves_folders_that_somebody_else_uses_by_now(tmp_path: Path) -> None:
    other = tmp_path / "above" / "other"
    with pytest.raises(KeyboardInterrupt):
        fail(tmp_path / "above" / "w", KeyboardInterrupt(), other)
    assert list(tmp_path.rglob("*")) == [tmp_path / "above", other]


def test_a_success_makes_the_folders_above(tmp_path: Path) -> None:
    out = tmp_path / "a" / "b"
    with staged(out) as folder:
        (folder / "r.parquet").write_text("whole")
    assert [path.name for path in out.iterdir()] == ["r.parquet"]
    assert [path.name for path in out.parent.iterdir()] == ["b"]
