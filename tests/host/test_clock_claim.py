"""Whether the array's clock stays: a claim of routed designs."""

import json
from pathlib import Path

import pytest

from streamjoin.bench.claims import clock
from streamjoin.bench.claims.rules import HOLDS, NOT_HERE
from streamjoin.bench.figures import papers


def store(folder: Path, cores: int, seed: int, mhz: float) -> None:
    path = [{"kind": "routing", "ns": 600 / mhz}, {"kind": "logic", "ns": 400 / mhz}]
    record = {"params": {"cores": cores}, "clock": {"hz": mhz * 1e6, "critical_path": path}}
    (folder / f"cores-{cores:04}-seed-{seed}.json").write_text(json.dumps(record))


@pytest.mark.parametrize(("mhz", "verdict"), [(95, HOLDS), (60, NOT_HERE)])
def test_the_median_clocks_of_the_fewest_and_the_most_cores_decide(
    tmp_path: Path, mhz: float, verdict: str
) -> None:
    for seed, first in enumerate((90, 100, 140)):
        store(tmp_path, 4, seed, first)
    for seed, last in enumerate((mhz, 200)):
        store(tmp_path, 16, seed, last)
    store(tmp_path, 8, 1, 1)
    held = clock.held(tmp_path)
    assert (held["verdict"], held["here"]) == (verdict, pytest.approx(mhz / 100))
    assert held["points"][0] | {"ratio": 0} == {
        "point": "16 cores",
        "over": "4 cores",
        "ratio": 0,
        "holds": verdict == HOLDS,
    }
    assert bool(held["why"]) == (verdict != HOLDS)
    if held["why"]:
        assert "16 cores 10.0 of 16.7 and 3.0 of 5.0 ns are wires" in held["why"]


def test_the_stored_records_decide_the_figure_and_its_command_makes_them() -> None:
    assert clock.held()["verdict"] == HOLDS
    figures = {each.name: each for paper in papers() for each in paper.figures}
    (name,) = clock.CLAIM.figures
    assert figures[name].claims == [("hw scale", clock.CLAIM)]
    assert figures[name].command == clock.COMMAND
