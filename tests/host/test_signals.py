"""Signals end a run of the command line with one line and no file."""

import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.host.commands import running, words

import streamjoin
from streamjoin.cli import AGAIN_S, main


@pytest.mark.timeout(120)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_with_one_line_and_no_file(files: Path, number: int) -> None:
    flags = ["--on", "k", "--arrival", "replay", "--speedup", "0.00001"]
    target = files / "pairs.parquet"
    command = [sys.executable, "-m", "streamjoin", *words(files), *flags, "--output", str(target)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            first = process.stderr.readline()
            while "of 1000" not in first:  # told after two seconds: it runs
                assert first, "it ended before it was interrupted"
                first = process.stderr.readline()
            process.send_signal(number)
            _, said = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode == (130 if number == signal.SIGINT else 143)
    assert said.splitlines()[-1].endswith("nothing unfinished was left behind")
    assert "Traceback" not in said
    assert not [path for path in files.iterdir() if "pairs" in path.name]


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out == f"streamjoin {streamjoin.__version__}\n"


class Lost:
    """Is sent a signal while it is destroyed, where no exception gets out."""

    def __init__(self, number: signal.Signals) -> None:
        self.number = number

    def __del__(self) -> None:
        signal.raise_signal(self.number)


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)
def test_a_signal_whose_exception_is_lost_still_ends_the_run(
    number: signal.Signals, status: int, monkeypatch: pytest.MonkeyPatch, capfd: Any
) -> None:
    def work() -> None:
        Lost(number)
        threading.Event().wait(30)
        raise AssertionError("the signal was lost")

    assert running(monkeypatch, work) == status
    assert capfd.readouterr().err.count("\n") == 1


def test_a_lost_signal_is_not_repeated_inside_the_hook_that_repeats_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start = threading.Thread.start

    def slowly(thread: threading.Thread) -> None:
        start(thread)
        threading.Event().wait(4 * AGAIN_S)

    def work() -> None:
        Lost(signal.SIGTERM)
        threading.Event().wait(30)
        raise AssertionError("the signal was lost")

    monkeypatch.setattr(threading.Thread, "start", slowly)
    assert running(monkeypatch, work) == 143


def test_a_second_signal_does_not_cut_the_clean_up_short(monkeypatch: pytest.MonkeyPatch) -> None:
    done = []

    def work() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(signal.SIGTERM)
            done.append("cleaned up")

    assert running(monkeypatch, work) == 143
    assert done == ["cleaned up"]
