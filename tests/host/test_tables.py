"""Tables on a terminal: nothing is cut, and what is compared is what is shown beside it."""

import re
from typing import Any

import pytest

from streamjoin.cli import bench
from streamjoin.cli.terminal import print_table

LONG = "a sentence that is much longer than the terminal is wide and goes on in further lines"


def test_a_text_that_may_fold_goes_on_in_the_next_line_of_a_narrow_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    for is_terminal, widest in ((True, 40), (False, 200)):
        monkeypatch.setattr("sys.stdout.isatty", lambda is_terminal=is_terminal: is_terminal)
        print_table(["what", "x"], [[LONG, "2.50"]], {"x"}, folding="what")
        told = re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)
        assert max(map(len, told.splitlines())) <= widest
        assert " ".join(told.split()).count("2.50") == 1
        assert all(word in told for word in LONG.split())
    assert LONG in told


def record(engine: str, throughput: float, service: float | None) -> dict[str, Any]:
    semi = {} if service is None else {"semi_stream": {"service_rate_tuples_per_s": service}}
    rate = {"median": throughput, "min": throughput, "max": throughput}
    return {
        "workload": "w",
        "engine": engine,
        "threads": 1,
        "checked": True,
        "status": "ok",
        "error": None,
        "throughput_tuples_per_s": rate,
        **semi,
    }


@pytest.mark.parametrize("serves", [True, False])
def test_semi_stream_joins_are_compared_by_their_service_rate(
    serves: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    records = {
        "experiment": {"baseline": "meshjoin", "claims": []},
        "workloads": [{"name": "w", "oracle": "duckdb"}],
        "records": [
            record("meshjoin", 1000.0, 200.0 if serves else None),
            record("ssbj", 1500.0, 500.0 if serves else None),
        ],
    }
    bench._print(records)
    told = capsys.readouterr().out.splitlines()
    assert ("service/s" in told[0]) == serves
    assert "x meshjoin" in told[0]
    assert ("2.50" if serves else "1.50") in told[-1]
