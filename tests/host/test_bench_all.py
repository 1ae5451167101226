"""The whole set of experiments, cut down: interrupted and killed at random, then resumed."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.host.damaged_runs import timeless
from tests.host.test_bench import LITTLE

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

CUT_DOWN = """
import pathlib, sys, time
from streamjoin.cli import bench, main
from streamjoin.cli.benchmarks import cpu_fpga
from streamjoin.report import crossover
from streamjoin.report.charts import bars, curves, stacked, sweeps
from streamjoin.report.charts.canvas import Chart
def without_drawing(key, title, *_, **__):
    return Chart(key, title, caption="", wide="", narrow="", marks=0)
for module in (bars, curves, stacked, sweeps):
    module.draw_chart = without_drawing
crossover.line_chart = without_drawing
from streamjoin_common.installed import shipped
shipped.EXPERIMENTS = pathlib.Path(sys.argv[1])
cpu_fpga.WINDOWS = {"quick": (256, 1024)}
def stand_in(contestant, query, window, *_):
    time.sleep(0.02)
    latency = {load: {"p50": 1.0, "p99": 2.0} for load in ("10%", "50%", "90%")}
    found = {"rate_tuples_per_s": 1e3 * window, "latency_us": latency}
    return found | ({"cycles_per_tuple": 9.0, "clock_mhz": 100.0} if contestant.is_fpga else {})
cpu_fpga.measure = stand_in
sys.exit(main(sys.argv[2:]))
"""
"""``streamjoin bench all`` on other experiments, with figures of ``cpu-fpga`` that are made up."""

SEED = int(os.environ.get("SEED", "0"))


class Started:
    """A run of the whole set in a folder of its own."""

    def __init__(self, folder: Path, here: Path) -> None:
        here.mkdir(exist_ok=True)
        words = [
            "bench",
            "all",
            "--size",
            "quick",
            "--threads",
            "1",
            "--data",
            str(folder / "data"),
        ]
        words += ["--record", str(here / "records")]
        self.process = subprocess.Popen(
            [sys.executable, "-c", CUT_DOWN, str(folder / "set"), *words],
            cwd=here,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def end(self) -> tuple[int, str]:
        """Wait for the end; return its status and what it said."""
        _, said = self.process.communicate(timeout=200)
        return self.process.returncode, said

    def interrupted(self, number: signal.Signals, after_s: float) -> int:
        """Send a signal to the run and what it started; return its status."""
        time.sleep(after_s)
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)
        return self.end()[0]


def found_in(here: Path) -> dict[str, Any]:
    """What a run of the set left, without what was measured in time."""
    runs = sorted((here / "runs/bench").glob("*/records.json"))
    left: dict[str, Any] = {
        path.parent.name: timeless(json.loads(path.read_text())) for path in runs
    }
    compared = json.loads((here / "runs/bench/cpu-fpga-quick/cpu-fpga.json").read_text())
    for point in compared["points"]:
        del point["measured"], point["check"]  # a digest of the times, too
    left["cpu-fpga"] = sorted(compared["points"], key=lambda point: str(point["point"]))
    left["records"] = sorted(path.name for path in (here / "records").iterdir())
    left["pages"] = sorted(path.parent.name for path in (here / "runs/bench").glob("*/report.html"))
    return left


def test_the_whole_set_interrupted_killed_and_resumed_is_an_uninterrupted_one_up_to_timings(
    tmp_path: Path,
) -> None:
    rng = random.Random(SEED)
    (tmp_path / "set").mkdir()
    for name in ("one", "two"):
        (tmp_path / "set" / f"{name}.toml").write_text(LITTLE)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert Started(tmp_path, tmp_path / "first").end()[0] == 0  # makes the data
    began = time.monotonic()
    assert Started(tmp_path, whole).end()[0] == 0
    took_s = time.monotonic() - began
    statuses = [
        Started(tmp_path, parts).interrupted(number, rng.uniform(0.2, 0.95) * took_s)
        for number in (signal.SIGINT, signal.SIGKILL)
    ]
    status, said = Started(tmp_path, parts).end()
    assert status == 0, said
    uninterrupted = found_in(whole)
    assert found_in(parts) == uninterrupted, (SEED, statuses)
    assert uninterrupted["records"] == [
        "cpu-fpga-quick.json",
        "one-quick.json",
        "two-quick.json",
    ]
    assert len(uninterrupted["pages"]) == 3
