"""``streamjoin bench live``: its table, and pairs that are not right."""

import json
from pathlib import Path

import pytest

from streamjoin.bench import live
from streamjoin.cli import main
from streamjoin.errors import MismatchError
from streamjoin.report.stored import others


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "WINDOW_TUPLES", 64)
    for tuples in live.CASES:
        monkeypatch.setitem(live.CASES, tuples, live.Calls(24, 24))


@pytest.mark.parametrize("asked", ["", "two-bands", "all"])
def test_every_size_of_call_has_a_rate_and_latencies_and_checked_pairs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], asked: str
) -> None:
    command = ["bench", "live", "--out", str(tmp_path)]
    assert main([*command, *(["--predicates", asked] if asked else [])]) == 0
    lines = capsys.readouterr().out.splitlines()
    names = list(live.PREDICATES) if asked == "all" else [asked or "int64"]
    rule = next(
        number
        for number, line in enumerate(lines)
        if set(line) == {"\N{BOX DRAWINGS LIGHT HORIZONTAL}"}
    )
    assert rule == 2, "two lines of headings"
    assert max(map(len, lines)) <= 80
    rows = [tuple(line.split()[:2]) for line in lines if line.split(" ")[0] in live.PREDICATES]
    assert rows == [(name, each) for name in names for each in ("1", "100", "10,000")]
    for case in json.loads((tmp_path / "live.json").read_text(encoding="utf-8"))["cases"]:
        assert case["pairs"] > 0
        assert case["calls"] == 24
        assert case["tuples_per_s"] > 0
        assert {name: len(each) for name, each in case["each_round"].items()} == dict.fromkeys(
            ("total_s", "cpu_s", "p99_cpu_s"), 3
        )
        for latency in (case["cpu_us"], case["wall_us"]):
            assert latency["p50"] <= latency["p99"] <= latency["max"]
    assert others.is_one(tmp_path / "live.json")
    run = others.read(tmp_path / "live.json")
    assert [record["engine"] for record in run["records"]] == [live.ENGINE] * 3 * len(names)


def test_pairs_that_differ_from_the_other_engines_are_no_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live, "_whole", lambda *_: (1, "0"))
    with pytest.raises(
        MismatchError, match=r"^live, int64, 100 tuples a call: pairs and digest \(.*\)"
    ):
        live.measure(100, "quick", 1, 1)


def test_a_predicate_that_is_not_there_is_refused_with_those_that_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["bench", "live", "--predicates", "int64,int65"]) == 2
    assert "no predicate 'int65': choose all, or of int64, uint64," in capsys.readouterr().err
