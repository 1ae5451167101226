"""``streamjoin bench live``: its table, and pairs that are not right."""

import json
from pathlib import Path

import pytest

from streamjoin.bench import live
from streamjoin.cli import main
from streamjoin.errors import MismatchError


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live, "WINDOW_TUPLES", 64)
    for tuples in live.CASES:
        monkeypatch.setitem(live.CASES, tuples, live.Calls(24, 24))


def test_every_size_of_call_has_a_rate_and_latencies_and_checked_pairs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", "live", "--out", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:5]] == ["1", "100", "10,000"]
    for case in json.loads((tmp_path / "live.json").read_text(encoding="utf-8"))["cases"]:
        assert case["pairs"] > 0
        assert case["calls"] == 24
        assert case["tuples_per_s"] > 0
        for latency in (case["cpu_us"], case["wall_us"]):
            assert latency["p50"] <= latency["p99"] <= latency["max"]


def test_pairs_that_differ_from_the_other_engines_are_no_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(live, "_whole", lambda _keys, _tuples: (1, "0"))
    with pytest.raises(MismatchError, match=r"^live, 100 tuples a call: pairs and digest \(.*\)"):
        live.measure(100, "quick", 1, 1)
