"""The comparison of CPU engines with designs: its inputs, its measurements, what it says."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.host.cases import SMALL_KNOBS

import streamjoin as sj
from streamjoin.bench.cpu_fpga import costs, measure
from streamjoin.bench.cpu_fpga.contestants import CONTESTANTS, Contestant
from streamjoin.bench.cpu_fpga.inputs import QUERIES, Query, for_latency, for_rate
from streamjoin.bench.cpu_fpga.verdict import sentences, verdicts
from streamjoin.cli import main
from streamjoin.cli.benchmarks import cpu_fpga
from streamjoin.errors import MismatchError
from streamjoin.tuples import Pairs
from streamjoin_common.contract.presets import PRESETS

pytestmark = pytest.mark.timeout(600)  # the first use of a design builds its model

LOADS = ("10%", "50%", "90%")
WINDOW = 12
TINY = replace(
    CONTESTANTS[2],
    name="tiny, hash index",
    design=replace(PRESETS["tiny-hash"], segment_tuples=WINDOW),
    preset="",
    knobs=SMALL_KNOBS["fpga-splitjoin-hash"],
)
CPU = CONTESTANTS[0]


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_only_tuples_under_the_load_have_matches(query: Query) -> None:
    window, tuples = 256, 2_000
    r, s = for_latency(query, window, tuples, 0.1)
    result = sj.join(r, s, window=sj.CountWindow(window), check=True, **query.predicate(window))
    times = np.sort(np.concatenate([r["ts"], s["ts"]]))
    begins = times[-tuples]
    later = np.maximum(r["ts"][result.r_rows], s["ts"][result.s_rows])
    assert 0.1 * tuples < len(later) < tuples
    assert (later >= begins).all()
    gaps = np.diff(times)
    assert gaps[-tuples:].mean() == pytest.approx(10 * gaps[: -tuples - 1].mean(), rel=0.2)


@pytest.mark.parametrize("query", QUERIES[:2], ids=lambda query: query.name)
def test_a_tuple_owes_about_one_match_where_a_rate_is_measured(query: Query) -> None:
    window, tuples = 256, 8_000
    r, s = for_rate(query, window, tuples)
    assert len(r["ts"]) + len(s["ts"]) == tuples
    result = sj.join(r, s, window=sj.CountWindow(window), **query.predicate(window))
    assert 0.8 * tuples < len(result.r_rows) < 1.1 * tuples


def test_a_design_is_measured_in_cycles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(measure.MEASURED, "quick", 2_000)
    found = measure.measure(TINY, QUERIES[0], WINDOW, "quick", lambda _: None)
    assert 1.0 <= found["cycles_per_tuple"] < 5
    assert found["rate_tuples_per_s"] == pytest.approx(100e6 / found["cycles_per_tuple"])
    p99 = [found["latency_us"][load]["p99"] for load in LOADS]
    assert 0.1 < p99[0] <= p99[1] <= p99[2] < 10
    whole = costs.add_costs(TINY, WINDOW, found)
    assert whole["transfer"]["rate_tuples_per_s"] <= found["rate_tuples_per_s"]
    assert whole["area"] is None
    assert whole["joules_per_million"] == pytest.approx(
        costs.BOARD_W["pynq-z2"] / found["rate_tuples_per_s"] * 1e6
    )


def test_a_wrong_result_ends_the_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(measure.MEASURED, "quick", 100)
    right = measure._Point._right

    def one_less(self: Any, join: Any) -> Any:
        outcome = right(self, join)
        pairs = Pairs(outcome.pairs.r_rows[1:], outcome.pairs.s_rows[1:])
        return replace(outcome, pairs=pairs, metrics={"digest": pairs.digest})

    monkeypatch.setattr(measure._Point, "_right", one_less)
    with pytest.raises(MismatchError, match="tiny, hash index, equality, window 12: "):
        measure.measure(TINY, QUERIES[0], WINDOW, "quick", lambda _: None)


def test_designs_are_those_of_the_presets() -> None:
    for each in CONTESTANTS:
        if each.preset:
            assert each.design == PRESETS[each.preset]
        if each.is_fpga:
            assert each.board in costs.BOARD_W
    assert costs.add_costs(
        CONTESTANTS[2], 8192, {"rate_tuples_per_s": 99e6, "cycles_per_tuple": 1.01}
    )["area"]


def record(who: str, window: int, rate: float, p99_us: float, *, is_fpga: bool) -> dict[str, Any]:
    latency = {each: {"p50": p99_us / 2, "p99": p99_us} for each in LOADS}
    found = {"query": "equality", "window": window, "who": who, "is_fpga": is_fpga}
    found |= {"rate_tuples_per_s": rate, "latency_us": latency, "joules_per_million": 1.0}
    found |= {"engine": "any", "knobs": {}, "point": f"{window}, {who}"}
    if is_fpga:
        found["transfer"] = {"rate_tuples_per_s": rate / 2, "added_us": 40.0}
    return found


def test_the_answer_says_where_each_side_is_better() -> None:
    records = [
        record("cpu", 256, 40e6, 1_000, is_fpga=False),
        record("cpu, slower", 256, 1e6, 10, is_fpga=False),
        record("board", 256, 100e6, 1, is_fpga=True),
        record("cpu", 1024, 60e6, 1_000, is_fpga=False),
        record("board", 1024, 100e6, 1, is_fpga=True),
        record("cpu", 65_536, 20e6, 1_000, is_fpga=False),
    ]
    first, second, third = verdicts(records)
    assert (first["cpu"], first["fpga"]) == ("cpu", "board")
    assert first["rate_ratio"] == pytest.approx(50 / 40)
    assert first["latency_ratio"] == pytest.approx(1_000 / 41)
    assert first["latency_ratio_inside"] == pytest.approx(1_000)
    assert second["rate_ratio"] < 1
    assert third["fpga"] is None
    (said,) = sentences(records)
    assert "by rate the FPGA is better at windows of 256 (0.83 to 1.2 times over all)" in said
    assert "No design here holds windows of 65,536." in said


def test_the_verb_goes_on_where_it_was_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measured: list[str] = []

    def stand_in(contestant: Contestant, query: Query, window: int, *_: object) -> dict[str, Any]:
        if len(measured) == 2:
            measured.append("interrupted")
            raise KeyboardInterrupt
        measured.append(f"{contestant.name} {query.name} {window}")
        latency = {each: {"p50": 1.0, "p99": 2.0} for each in LOADS}
        found: dict[str, Any] = {"rate_tuples_per_s": 1e6 * window, "latency_us": latency}
        return found | ({"cycles_per_tuple": 1.0} if contestant.is_fpga else {})

    monkeypatch.setattr(cpu_fpga, "measure", stand_in)
    monkeypatch.setattr(cpu_fpga, "CONTESTANTS", (CPU, TINY))
    monkeypatch.setattr(cpu_fpga, "WINDOWS", {"quick": (8, 64)})
    words = ["bench", "cpu-fpga", "--out", str(tmp_path)]
    assert main(words) == 130
    assert main(words) == 0
    assert len(measured) == len(set(measured)) == 1 + 2 * 3 + 1  # TINY holds 8, for equality
    out = capsys.readouterr()
    assert "2 of 7 points are in" in out.err
    assert "No design here holds windows of 64." in " ".join(out.out.split())
    page = (tmp_path / "report.html").read_text()
    assert "When does the FPGA win?" in page
    assert page.count("<svg") == 2 * 2 * len(QUERIES)
    assert len(json.loads((tmp_path / "cpu-fpga.json").read_text())["points"]) == 7
    assert main([*words, "--threads", "2"]) == 2
    assert "drop --threads" in capsys.readouterr().err
