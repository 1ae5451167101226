"""Streaming queries that are killed, repeated or continued: each pair exactly once."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from tests.spark.stream_samples import (
    DEADLINE_S,
    found,
    run,
    run_here,
    streams,
    write,
)

from streamjoin import oracle, verify
from streamjoin.cli import main
from streamjoin.errors import InputError
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import parse_window
from streamjoin_datagen.session import Session
from streamjoin_spark import cli
from streamjoin_spark.streaming import query
from streamjoin_spark.streaming import state as stream_state
from streamjoin_spark.streaming.checks import Asked, check_folders
from streamjoin_spark.streaming.state import FOLDER, last_record

pytestmark = pytest.mark.timeout(600)


def command(folder: Path) -> list[str]:
    flags = {"r": "r", "s": "s", "out": "pairs", "checkpoint": "checkpoint"}
    places = [text for flag, name in flags.items() for text in (f"--{flag}", str(folder / name))]
    how = "--on k --window time:90us --max-files 1 --classes 2 --threads 2 --memory 1g --json"
    return [sys.executable, "-m", "streamjoin", "spark-stream", *places, *how.split()]


@pytest.mark.slow
def test_pairs_are_there_exactly_once_after_a_driver_is_killed(
    session: Session,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    r, s = streams(3, 2000)
    write(tmp_path / "r", r, files=10)
    write(tmp_path / "s", s, files=10)
    records = tmp_path / "checkpoint" / FOLDER
    temporary = tmp_path / "tmp"  # a killed driver leaves its own
    temporary.mkdir()
    driver = subprocess.Popen(
        command(tmp_path),
        env={**os.environ, "TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + DEADLINE_S
    try:
        while not (tmp_path / "pairs" / "batch=2").exists():
            assert driver.poll() is None, driver.stderr.read() if driver.stderr else ""
            assert time.monotonic() < until
            time.sleep(0.01)
    finally:
        driver.send_signal(signal.SIGKILL)
        driver.communicate(timeout=DEADLINE_S)
    before = last_record(records)["batch"]
    assert before < 9
    right = oracle.join(r, s, Predicate.parse("k"), parse_window("time:90us"))
    assert len(found(tmp_path)) < len(right)
    monkeypatch.setattr(cli, "_session", lambda args: contextlib.nullcontext(session))
    assert main(command(tmp_path)[3:]) == 0
    verify.check(found(tmp_path), right, "stream")
    told = json.loads(capsys.readouterr().out)
    assert (told["pairs_so_far"], told["late_so_far"]) == (len(right), 0)


class Failing:
    """Stands for the module json; a batch's record cannot be written with it."""

    def __init__(self, batch: int) -> None:
        self._batch = batch

    def dumps(self, record: dict[str, object], **how: int) -> str:
        if record["batch"] == self._batch:
            raise OSError("no space left")
        return json.dumps(record, **how)  # type: ignore[arg-type]

    loads = staticmethod(json.loads)


@pytest.mark.parametrize("batch", [1, pytest.param(0, marks=pytest.mark.slow)])
def test_a_batch_whose_pairs_are_there_and_whose_record_is_not_is_done_again(
    batch: int, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    r, s = streams(6)
    write(tmp_path / "r", r, 3)
    write(tmp_path / "s", s, 3)
    with monkeypatch.context() as patched:
        patched.setattr(stream_state, "json", Failing(batch))
        with pytest.raises(StreamingQueryException, match="no space left"):
            run(session, tmp_path, on="k", window="time:90us")
    assert (tmp_path / "pairs" / f"batch={batch}").is_dir()
    assert last_record(tmp_path / "checkpoint" / FOLDER)["batch"] == batch - 1
    # As a driver leaves it that is killed while it writes a batch's pairs.
    (tmp_path / "pairs" / ".streamjoin-0123456789ab.draft" / "new").mkdir(parents=True)
    run(session, tmp_path, on="k", window="time:90us")
    right = oracle.join(r, s, Predicate.parse("k"), parse_window("time:90us"))
    verify.check(found(tmp_path), right, "stream")


def test_a_batch_that_is_repeated_changes_nothing(session: Session, tmp_path: Path) -> None:
    r, s = streams(4)
    write(tmp_path / "r", r, 2)
    write(tmp_path / "s", s, 2)
    record = run(session, tmp_path, on="k", window="time:90us")
    before = found(tmp_path)
    commit = tmp_path / "checkpoint" / "commits" / str(record["batch"])
    commit.unlink()  # as after a crash behind our record and before Spark's
    commit.with_name(f".{commit.name}.crc").unlink(missing_ok=True)
    assert run(session, tmp_path, on="k", window="time:90us") == record
    verify.check(found(tmp_path), before, "stream")


def test_a_checkpoint_that_does_not_name_columns_is_one_of_row_numbers(tmp_path: Path) -> None:
    state = tmp_path / "checkpoint" / FOLDER
    state.mkdir(parents=True)
    before = {**stream_state.BEGINNING, "format": stream_state.FORMAT, "batch": 0}
    stream_state.record_path(state, 0).write_text(json.dumps(before))
    what = Asked("k", None, "time:1s", "row", None)
    check_folders(what, tmp_path / "pairs", tmp_path / "checkpoint")
    what.choose("*", ["k"], ["a"])
    with pytest.raises(InputError, match=r"join with columns row numbers, not r\.k,s\.a; choose"):
        check_folders(what, tmp_path / "pairs", tmp_path / "checkpoint")


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_pairs_of_another_checkpoint_are_neither_kept_nor_added_to(
    more: int, tmp_path: Path
) -> None:
    for name, seed, files in (("own", 10, 3), ("other", 11, 3 + more)):
        for side, stream in zip(("r", "s"), streams(seed), strict=True):
            write(tmp_path / name / side, stream, files)
        run_here(tmp_path / name, on="k", window="time:90us")
    shutil.rmtree(tmp_path / "own" / "pairs")
    (tmp_path / "other" / "pairs").rename(tmp_path / "own" / "pairs")
    before = found(tmp_path / "own")
    with pytest.raises(InputError, match="holds pairs of another checkpoint"):
        run_here(tmp_path / "own", on="k", window="time:90us")
    verify.check(found(tmp_path / "own"), before, "stream")


def test_a_checkpoint_goes_on_with_the_same_folders_and_columns_alone(
    tmp_path: Path,
) -> None:
    for side, stream in zip(("r", "s"), streams(12), strict=True):
        write(tmp_path / side, stream, 1)
    shutil.copytree(tmp_path / "r", tmp_path / "other")
    run_here(tmp_path, on="k", window="time:90us")
    how: dict[str, Any] = {
        "out": tmp_path / "pairs",
        "checkpoint": tmp_path / "checkpoint",
        "on": "k",
    }
    for places, changed, message in (
        (("other", "s"), {}, f"a join with r {tmp_path}/r, not {tmp_path}/other; choose another"),
        (
            ("r", "s"),
            {"out": tmp_path / "p"},
            f"a join with out {tmp_path}/pairs, not {tmp_path}/p",
        ),
        (("r", "s"), {"row": "k"}, "a join with row row, not k; choose another folder"),
        (("r", "s"), {"ts": "k"}, "a join with ts ts, not k; choose another folder"),
    ):
        r, s = (tmp_path / place for place in places)
        with pytest.raises(InputError, match=message):
            query.opened_folders(r, s, window="time:90us", **{**query._DEFAULTS, **how, **changed})
