"""Tables on a terminal: nothing is cut, and what is compared is what is shown beside it."""

import re
from typing import Any

import pytest
from tests.host import report_samples as samples

from streamjoin.cli import bench, compare, figures


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A screen on which nothing is dropped."""
    monkeypatch.setenv("COLUMNS", "200")


def record(engine: str, throughput: float, service: float | None) -> dict[str, Any]:
    semi = {} if service is None else {"semi_stream": {"service_rate_tuples_per_s": service}}
    rate = {"median": throughput, "min": throughput, "max": throughput}
    return {
        "workload": "w",
        "engine": engine,
        "platform": "cpu",
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
        "workloads": [{"name": "w", "oracle": "duckdb", "n_r": 1, "n_s": 1}],
        "records": [
            record("meshjoin", 1000.0, 200.0 if serves else None),
            record("ssbj", 1500.0, 500.0 if serves else None),
        ],
    }
    bench._print(records)
    told = capsys.readouterr().out.splitlines()
    assert ("service/s" in told[1]) == serves
    assert told[0].index("times") + len("times") == told[1].index("meshjoin") + len("meshjoin")
    assert ("2.50" if serves else "1.50") in told[-1]


def printed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()


def test_simulated_results_have_a_table_of_their_own_below_the_measured_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = samples.run([samples.fpga_record(), samples.record("kang"), samples.record("npj")])
    figures.print_apart(run, compare._print)
    told = printed(capsys)
    lines = {name: next(n for n, line in enumerate(told) if name in line)
             for name in ("kang", "npj", "simulated, not measured", "fpga-handshake")}  # fmt: skip
    assert sorted(lines, key=lines.__getitem__) == list(lines)
    assert told[lines["simulated, not measured"]].endswith("cycles at 100 MHz assumed:")
    assert "from start" in " ".join(told[: lines["kang"]])
    assert "from acceptance" not in " ".join(told[: lines["kang"]])
    assert "from acceptance" in " ".join(told[lines["simulated, not measured"] :])


def test_latencies_of_two_origins_are_two_columns(capsys: pytest.CaptureFixture[str]) -> None:
    records = [samples.record("kang"), samples.record("npj", latency_from="arrival")]
    figures.print_apart(samples.run(records), compare._print)
    told = printed(capsys)
    assert told[1].split().count("from") == 4
    kang, npj = (next(line for line in told if name in line) for name in ("kang", "npj"))
    first = told[1].index("from arrival")
    assert "10 us" in kang[:first]
    assert "10 us" not in npj[:first]
    assert "10 us" in npj[first:]


def test_measured_rates_are_not_divided_by_simulated_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    records = samples.run([samples.record("kang"), samples.fpga_record()])
    records["experiment"] = {"baseline": "fpga-handshake", "claims": []}
    bench._print(records)
    told = printed(capsys)
    kang, device = (
        next(each for each in told if each.startswith("band-uniform") and name in each)
        for name in ("kang", "fpga-handshake")
    )
    assert "1.00" in device
    assert "0.03" not in kang
