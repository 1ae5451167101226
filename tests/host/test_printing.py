"""What comes from a file is shown in a terminal, never obeyed by it."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from streamjoin.cli import main
from streamjoin.cli.terminal import print_table, say
from streamjoin_common.printing import printable

EVIL = "\x1b[2J\x1b]0;owned\x07\u202e\x9b1m\r\n"
SHOWN = "\\x1b[2J\\x1b]0;owned\\x07\\u202e\\x9b1m\\r\\n"


def workload(folder: Path, **change: object) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    streams = {}
    for side in ("r", "s"):
        pq.write_table(pa.table({"k": np.arange(9)}), folder / f"{side}.parquet")
        streams[side] = {"path": f"{side}.parquet", "rows": 9}
    described = {"format": 1, "name": "w", "kind": "w", "predicate": {"on": ["k"]}, **streams}
    (folder / "workload.json").write_text(json.dumps({**described, "window": "all", **change}))
    return folder


def controls(text: str) -> set[str]:
    return {mark for mark in text if not mark.isprintable() and mark != "\n"}


@pytest.mark.parametrize(
    ("text", "shown"), [("plain \u00e4", "plain \u00e4"), (EVIL, SHOWN), ("\ud800", "\\ud800")]
)
def test_what_a_terminal_obeys_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_names_of_a_workload_are_escaped_wherever_they_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    folder = workload(tmp_path / "w", name=EVIL)
    run = str(tmp_path / "run")
    assert main(["compare", str(folder), "--engines", "oracle", "--rounds", "1", "--out", run]) == 0
    shown = capsys.readouterr()
    assert controls(shown.out + shown.err) == set()
    assert SHOWN in shown.out
    assert SHOWN in shown.err
    assert main(["stats", str(folder)]) == 0
    shown = capsys.readouterr()
    assert controls(shown.out + shown.err) == set()


def test_names_of_columns_and_files_are_escaped_in_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "evil\x1b[2J\n.parquet"
    pq.write_table(pa.table({EVIL: np.arange(3)}), path)
    assert main(["join", "--r", str(path), "--s", str(path), "--on", "k"]) == 2
    said = capsys.readouterr().err
    assert controls(said) == set()
    assert said.count("\n") == 1
    assert f"it has {SHOWN}" in said


def test_messages_and_tables_are_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    say(f"doing {EVIL}")
    print_table([EVIL], [[EVIL]])
    shown = capsys.readouterr()
    assert controls(shown.out + shown.err) == set()


@pytest.mark.parametrize("how", ["parent", "absolute", "link", "link in a folder"])
def test_a_workload_does_not_lead_out_of_its_folder(
    how: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = workload(tmp_path / "other")
    path = {"parent": "../other/r.parquet", "absolute": str(other / "r.parquet")}.get(how, "x")
    folder = workload(tmp_path / "w", r={"path": path, "rows": 9})
    if how == "link":
        (folder / "x").symlink_to(other / "r.parquet")
    elif how == "link in a folder":
        (folder / "x").mkdir()
        (folder / "x" / "part.parquet").symlink_to(other / "r.parquet")
    words = ["compare", str(folder), "--engines", "oracle", "--out", str(tmp_path / "run")]
    assert main(words) == 2
    assert f"{path!r} leads out of the folder" in capsys.readouterr().err


def test_a_workload_folder_may_itself_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(workload(tmp_path / "w"))
    assert main(["stats", str(tmp_path / "link")]) == 0
