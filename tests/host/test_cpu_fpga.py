"""The comparison of CPU engines with designs: its inputs, its measurements, its verb."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.host.cases import SMALL_KNOBS

import streamjoin as sj
from streamjoin.bench import identity
from streamjoin.bench.cpu_fpga import costs, measure
from streamjoin.bench.cpu_fpga.boards import BOARDS, KV260, PYNQ_Z2, ZCU104, synthesis
from streamjoin.bench.cpu_fpga.contestants import CONTESTANTS, Contestant, area_of
from streamjoin.bench.cpu_fpga.inputs import QUERIES, Query, for_latency, for_rate
from streamjoin.cli import main
from streamjoin.cli.benchmarks import cpu_fpga
from streamjoin.cli.benchmarks.kept import alone
from streamjoin.engines import catalog
from streamjoin.errors import MismatchError
from streamjoin.tuples import Pairs
from streamjoin_common.contract.presets import PRESETS
from streamjoin_common.language.predicates import Band

pytestmark = pytest.mark.timeout(600)  # the first use of a design builds its model

LOADS = ("10%", "50%", "90%")
WINDOW = 12
HASH = next(each for each in CONTESTANTS if each.name == "PYNQ-Z2, hash index")
TINY = replace(
    HASH,
    name="tiny, hash index",
    design=replace(PRESETS["tiny-hash"], segment_tuples=WINDOW),
    preset="",
    knobs=SMALL_KNOBS["fpga-splitjoin-hash"],
)
CPU = replace(CONTESTANTS[0], queries=tuple(query.name for query in QUERIES))


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
    assert whole["joules_per_million"] == pytest.approx(
        PYNQ_Z2.watts / whole["transfer"]["rate_tuples_per_s"] * 1e6
    )
    faster = measure.at_clock(found, 2 * PYNQ_Z2.clock_mhz)
    assert faster["rate_tuples_per_s"] == pytest.approx(2 * found["rate_tuples_per_s"])
    assert faster["latency_us"]["90%"]["p99"] == pytest.approx(p99[2] / 2)
    assert faster["cycles_per_tuple"] == found["cycles_per_tuple"]


def test_an_ordered_index_answers_an_equality_as_a_band_of_width_0(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(measure.MEASURED, "quick", 500)
    large = next(each for each in CONTESTANTS if each.name == "ZCU104, large ordered index")
    assert large.queries == ("equality", "1-D band")
    small = replace(large, name="tiny", knobs=SMALL_KNOBS["fpga-splitjoin-index"])
    for query in QUERIES[:2]:  # each result is held beside that of the query's own predicate
        found = measure.measure(small, query, WINDOW, "quick", lambda _: None)
        assert found["rate_tuples_per_s"] > 0
        terms = measure._Point(small, query, WINDOW, print)._request("instant").predicate.terms
        assert [type(term) for term in terms] == [Band], "one design takes both"


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


def test_designs_are_those_of_the_presets_and_fit_their_boards() -> None:
    for each in CONTESTANTS:
        if each.preset:
            assert each.design == PRESETS[each.preset]
            stored = synthesis(each.preset)["params"]
            assert stored["segment_tuples"] == each.design.segment_tuples
            assert stored["cores"] == each.design.cores
        if each.board is not None and each.preset:
            assert all(0 < share < 1 for share in each.board.area(each.preset).values())
        assert (each.board is None) != each.is_fpga
    used = {name: use["used"] for name, use in synthesis("pynq-z2-hash")["resources"].items()}
    area = area_of(HASH.name, "equality")
    assert area == pytest.approx({"lut": used["lut"] / 53200, "ramb18": used["ramb18"] / 280})
    assert area_of(HASH.name, "2-D band") is None
    assert area_of("PYNQ-Z2, scan", "2-D band") is None, "it was not synthesised"
    for query in ("equality", "1-D band"):
        assert area_of("ZCU104, large ordered index", query) == ZCU104.area("zcu104-index")
    with_more_room = KV260.area("pynq-z2-hash")
    assert with_more_room == pytest.approx(
        {"lut": used["lut"] / 117120, "ramb18": used["ramb18"] / 288}
    )


def test_knobs_are_the_engines_and_nobody_is_their_own_judge() -> None:
    for each in CONTESTANTS:
        catalog.get(each.engine).resolve_knobs(each.knobs)
        for window in (256, 65_536):
            assert measure.judge(each, window) != each.engine


def test_every_query_has_an_index_and_a_scan_of_a_core_and_a_design_on_every_board() -> None:
    for query in QUERIES:
        mine = [each for each in CONTESTANTS if each.takes(query)]
        assert {each.how for each in mine if not each.is_fpga} == {"index", "scan"}
        assert {each.board for each in mine if each.board is not None} == set(BOARDS)


def test_no_board_has_two_indexes_of_a_query_at_a_window() -> None:
    for query in QUERIES:
        for window in (1 << bits for bits in range(8, 17)):
            there = [each for each in CONTESTANTS if each.takes(query) and each.holds(window)]
            boards = [each.board for each in there if each.how == "index"]
            assert len(boards) == len(set(boards)), (query.name, window)
    largest = [each.name for each in CONTESTANTS if each.is_fpga and each.holds(1 << 16)]
    assert largest == ["ZCU104, large ordered index"]


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
        design = {"cycles_per_tuple": 1.0, "clock_mhz": 100.0}
        return found | (design if contestant.is_fpga else {})

    monkeypatch.setattr(cpu_fpga, "measure", stand_in)
    fast = replace(TINY, name="fast", board=KV260, knobs={**TINY.knobs, "clock_mhz": 200})
    monkeypatch.setattr(cpu_fpga, "CONTESTANTS", (CPU, TINY, fast))
    monkeypatch.setattr(cpu_fpga, "WINDOWS", {"quick": (8, 64)})
    words = ["bench", "cpu-fpga", "--out", str(tmp_path)]
    assert main(words) == 130
    assert (
        f"finished points are kept in {tmp_path}; to go on, type streamjoin bench cpu-fpga "
        f"--size quick --out {tmp_path}"
    ) in " ".join(capsys.readouterr().err.split())
    assert main(words) == 0
    assert len(measured) == len(set(measured)) == 1 + 2 * 3 + 1  # TINY holds 8, for equality
    out = capsys.readouterr()
    assert "3 of 8 points are in" in out.err
    assert "holds windows of 64: there the core wins" in " ".join(out.out.split())
    html = (tmp_path / "report.html").read_text()
    assert "When does the FPGA win?" in html
    assert html.count("<svg") == 2 * 2 * len(QUERIES)
    points = json.loads((tmp_path / "cpu-fpga.json").read_text())["points"]
    assert len(points) == 8
    rates = {each["who"]: each["rate_tuples_per_s"] for each in points if each["is_fpga"]}
    assert rates == {TINY.name: 8e6, "fast": 16e6}  # the same design at twice the clock
    monkeypatch.setattr(identity, "sources", lambda: "other")
    measured.clear()
    measured += ["one", "two", "three"]
    assert main([*words, "--record", str(tmp_path / "kept")]) == 0
    assert "8 points in" in capsys.readouterr().err
    assert len(measured) == 3 + 2 * 3 + 1
    assert (tmp_path / "kept" / "cpu-fpga-quick.json").is_file()
    kept = json.loads((tmp_path / "cpu-fpga.json").read_text())
    kept["points"][0]["latency_us"]["50%"]["p99"] = -1.0
    del kept["points"][1]["check"]
    (tmp_path / "cpu-fpga.json").write_text(json.dumps(kept))
    measured.clear()
    measured += ["one", "two", "three"]
    assert main(words) == 0
    said = capsys.readouterr().err
    for point in kept["points"][:2]:
        assert f"{point['point']} was changed after it was written; it is measured again" in said
    assert len(measured) == 3 + 1  # the second is the same design as one that is kept
    mended = json.loads((tmp_path / "cpu-fpga.json").read_text())["points"]
    assert {each["latency_us"]["50%"]["p99"] for each in mended} == {1.0, 2.0}
    assert main([*words, "--threads", "2"]) == 2
    assert "drop --threads" in capsys.readouterr().err


def test_a_second_process_does_not_measure_in_the_same_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for held, words in (
        (tmp_path / "a", ["cpu-fpga", "--out", str(tmp_path / "a")]),
        (tmp_path / "b" / "points", ["ssbj-size", "--out", str(tmp_path / "b")]),
    ):
        with alone(held):
            assert main(["bench", *words]) == 2
        assert f"{held}: another process measures here" in capsys.readouterr().err
        assert not list(held.iterdir())
