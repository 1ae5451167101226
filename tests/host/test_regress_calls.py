"""Whole calls and live joins of two runs beside each other."""

import copy
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.host.test_regress import QUIET, written

from streamjoin.cli import main

SYSTEMS = ("auto", "polars")


def of_calls(**rounds: list[float]) -> dict[str, Any]:
    """A record of ``bench calls`` of one case, with the rounds of its systems."""
    systems = {
        name: {"cpu_s": 1.0, "wall_s": 1.0, "cpu_rounds_s": each, "wall_rounds_s": each}
        for name, each in (dict.fromkeys(SYSTEMS, QUIET) | rounds).items()
    }
    case = {"case": "10 k int32", "n_r": 9, "n_s": 9, "pairs": 7, "digest": "ab"}
    machine = {"cpu": "a Xeon", "cores": 2}
    whole = {"size": "quick", "threads": 1, "rounds": 5, "environment": machine}
    return {**whole, "cases": [{**case, "systems": systems, "measured": {"load_average": 0.5}}]}


def of_live(**rounds: list[float]) -> dict[str, Any]:
    """A record of ``bench live`` of one case."""
    case = {"predicate": "int64", "tuples": 100, "tuples_per_s": 100.0, "engine": "auto"}
    case |= {"n_r": 9, "n_s": 9, "window": "count:9", "pairs": 7, "digest": "ab"}
    case |= {"each_round": dict.fromkeys(("total_s", "cpu_s", "p99_cpu_s"), QUIET) | rounds}
    return {**of_calls(), "cases": [case]}


SLOW = [2 * each for each in QUIET]


def test_whole_calls_and_live_joins_are_compared_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, before, after, figures in (
        ("calls", of_calls(), of_calls(polars=SLOW), "4 figures: 2 slower"),
        ("live", of_live(), of_live(p99_cpu_s=SLOW), "3 figures: 1 slower"),
    ):
        a = written(tmp_path / "before" / f"{name}-quick" / f"{name}.json", before)
        b = written(tmp_path / "after" / f"{name}-quick" / f"{name}.json", after)
        assert main(["bench", "regress", str(a), str(a.parent)]) == 0
        assert main(["bench", "regress", str(a.parent), str(b)]) == 1
        assert figures in capsys.readouterr().err
    assert main(["bench", "regress", str(tmp_path / "before"), str(tmp_path / "after")]) == 1
    told = capsys.readouterr()
    assert "7 figures: 3 slower, 0 faster, 4 within noise" in told.err
    assert re.search(r"^10 k int32 +polars +CPU ", told.out, flags=re.MULTILINE)
    assert "p99 of CPU" in told.out
    assert main(["bench", "regress", str(a), str(tmp_path / "before/calls-quick")]) == 2
    assert "they are of different experiments, live and calls" in capsys.readouterr().err


def test_whole_calls_beside_others_are_judged_by_cpu_time_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    busy = of_calls(polars=SLOW)
    busy["cases"][0]["measured"]["load_average"] = 2.5
    a = written(tmp_path / "a.json", of_calls())
    b = written(tmp_path / "b.json", busy)
    assert main(["bench", "regress", str(a), str(b)]) == 1
    told = capsys.readouterr().err
    assert "2 figures: 1 slower" in told
    assert "2 of them are CPU times that were judged alone" in told


CASES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "another result": (
        lambda run: run["cases"][0].update(digest="cd"),
        "not comparable: digest of 10 k int32 is another, ab and cd",
    ),
    "threads": (lambda run: run.update(threads=2), "had other threads, 1 and 2"),
    "another machine": (
        lambda run: run["environment"].update(cpu="an Arm"),
        "they were made on different machines",
    ),
    "no rounds": (
        lambda run: [
            each.pop(name)
            for each in run["cases"][0]["systems"].values()
            for name in ("cpu_rounds_s", "wall_rounds_s")
        ],
        "no figure has 3 rounds in both",
    ),
    "no pairs": (
        lambda run: run["cases"][0].pop("pairs"),
        "b.json: is no record of bench calls or live: it lacks 'pairs'",
    ),
    "no times": (
        lambda run: run["cases"][0].update(systems=3),
        "b.json: is no record of bench calls or live: ",
    ),
    "a negative time": (
        lambda run: run["cases"][0]["systems"]["auto"].update(cpu_rounds_s=[-1.0]),
        "b.json: records[0].cpu_s.median must be a finite number from 0, not -1.0",
    ),
}


@pytest.mark.parametrize(("change", "sentence"), CASES.values(), ids=CASES)
def test_whole_calls_that_are_not_comparable_are_refused_in_a_sentence(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[dict[str, Any]], object],
    sentence: str,
) -> None:
    other = copy.deepcopy(of_calls())
    change(other)
    a, b = written(tmp_path / "a.json", of_calls()), written(tmp_path / "b.json", other)
    assert main(["bench", "regress", str(a), str(b)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert sentence in line
