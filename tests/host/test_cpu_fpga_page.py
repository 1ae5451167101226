"""What the comparison of CPU engines with designs says: answer, page, picture, stored record."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from streamjoin.bench.cpu_fpga.inputs import QUERIES
from streamjoin.bench.cpu_fpga.verdict import answers, is_disturbed, lowest, verdicts
from streamjoin.errors import InputError
from streamjoin.report import stored, units
from streamjoin.report.crossover import render_crossover
from streamjoin.report.stored import crossover, page

LOADS = ("10%", "50%", "90%")


def record(who: str, window: int, rate: float, p99_us: float, *, is_fpga: bool) -> dict[str, Any]:
    latency = {each: {"p50": p99_us / 2, "p99": p99_us} for each in LOADS}
    found = {"query": "equality", "window": window, "who": who, "is_fpga": is_fpga}
    found |= {"rate_tuples_per_s": rate, "latency_us": latency, "joules_per_million": 1.0}
    found |= {"engine": "any", "knobs": {}, "point": f"{window}, {who}", "sources": "x"}
    at = {"at": "2026-01-02T03:04:05+00:00", "revision": "abc", "took_s": 1.0}
    found["measured"] = {**at, "load_average": 1.5}
    if is_fpga:
        found["transfer"] = {"rate_tuples_per_s": rate / 2, "added_us": 40.0}
    return found


def test_the_answer_says_where_each_side_is_better() -> None:
    records = [
        record("CPU core, hash", 256, 40e6, 1_000, is_fpga=False),
        record("CPU core, scan", 256, 1e6, 500, is_fpga=False),
        record("board, index", 256, 100e6, 1, is_fpga=True),
        record("larger, index", 256, 200e6, 1, is_fpga=True),
        record("largest, index", 256, 200e6, 1, is_fpga=True),
        record("CPU core, hash", 1024, 60e6, 1_000, is_fpga=False),
        record("board, index", 1024, 100e6, 2, is_fpga=True),
        record("larger, index", 1024, 200e6, 1, is_fpga=True),
        record("largest, index", 1024, 200e6, 1, is_fpga=True),
        record("CPU core, hash", 65_536, 20e6, 1_000, is_fpga=False),
    ]
    first, second, third = verdicts(records)
    assert first["cpu"]["who"] == "CPU core, hash"
    board, larger = first["boards"]
    assert larger["boards"].names == ("larger", "largest")
    assert board["rate_ratio"] == pytest.approx(50 / 40)
    assert board["latency_ratio"] == pytest.approx(500 / 41), "by the engine of the lowest p99"
    assert second["boards"][0]["rate_ratio"] < 1
    assert third["boards"] == []
    (said,) = answers(records)
    assert "windows of 256 and 1,024 tuples a core sustains 40 to 60 M tuples/s" in said
    assert "a board (simulated) 1.2 times as much and only 0.83 times at 1,024;" in said
    assert "a larger or largest (simulated) 1.7 to 2.5 times as much." in said
    assert "bound on p99 below 0.5 to 1 ms, by window the lowest that any CPU engine" in said
    assert "at 100 to 6,000 k tuples/s, only a design meets: at half its rate, with" in said
    assert (
        "without the transfer, 41 to 42 and 1 to 2 us on a board; 41 and 1 us on a larger" in said
    )
    assert "A million tuples take a core 1 J, a board 1, a larger 1, a largest 1. No design" in said
    assert "holds windows of 65,536: there the core wins, with 20 M tuples/s." in said
    slow = record("board, index", 256, 100e6, 2_000, is_fpga=True)
    assert "(not at windows of 256)" in answers([records[0], slow])[0]
    assert "the core wins" in answers([records[-1]])[0]


def test_the_lowest_p99_is_that_of_all_engines_and_loads_with_the_rate_it_was_had_at() -> None:
    fast, scan = (record(f"CPU core, {who}", 8, 1e6, 90, is_fpga=False) for who in ("hash", "scan"))
    scan["rate_tuples_per_s"] = 1e5
    for load, us in zip(LOADS, (70, 50, 60), strict=True):
        scan["latency_us"][load] = {"p50": 1, "p99": us}
    found = lowest([fast, scan, record("board, scan", 8, 1e6, 1, is_fpga=True)])
    assert found is not None
    assert (found.p99_us, found.rate_tuples_per_s, found.who) == (50, 5e4, "CPU core, scan")
    assert lowest([]) is None


def test_a_board_that_holds_more_is_one_with_those_it_agrees_with() -> None:
    records = [
        record("CPU core, hash", 256, 40e6, 1_000, is_fpga=False),
        record("larger, index", 256, 200e6, 1, is_fpga=True),
        record("largest, index", 256, 200e6, 1, is_fpga=True),
        record("CPU core, hash", 65_536, 20e6, 1_000, is_fpga=False),
        record("largest, index", 65_536, 180e6, 1, is_fpga=True),
    ]
    at_256, at_65536 = (each["boards"][0] for each in verdicts(records))
    assert at_256["boards"] == at_65536["boards"]
    assert at_65536["rate_ratio"] == pytest.approx(4.5)
    (said,) = answers(records)
    assert "a larger or largest (simulated) 2.5 to 4.5 times as much, 65,536 on a largest" in said
    (_, row) = crossover.summary(records)[1:]
    assert row[3] == f"{units.rate(90e6)} (4.5 {units.TIMES}), largest alone"
    assert row[-1] == f"1, {units.MISSING}, 1"
    records[2] = record("largest, index", 256, 200e6, 2, is_fpga=True)
    assert [each["boards"].names for each in verdicts(records)[0]["boards"]] == [
        ("larger",),
        ("largest",),
    ]


def test_a_p99_that_falls_as_the_load_rises_is_marked() -> None:
    one = record("CPU core, hash", 8, 1e6, 100, is_fpga=False)
    assert not is_disturbed(one)
    one["latency_us"]["90%"]["p99"] = 91
    assert not is_disturbed(one), "within the noise"
    one["latency_us"]["90%"]["p99"] = 89
    assert is_disturbed(one)
    assert crossover.table_row(one)[1] == "CPU core, hash *"
    run = {"size": "quick", "environment": {}, "points": [one]}
    assert crossover.DISTURBED_NOTE in crossover.page({"cpu-fpga-quick": run})


def test_a_rate_of_a_core_that_a_larger_window_exceeds_is_marked() -> None:
    def rated(window: int, rate: float, **changes: Any) -> dict[str, Any]:
        return record("CPU core, hash", window, rate, 100, is_fpga=False) | changes

    low, high = rated(8, 1e6), rated(64, 1.13e6)
    assert is_disturbed(low, [low, high])
    assert not is_disturbed(high, [low, high]), "a disturbance only lowers a rate"
    for other in (
        rated(64, 1.1e6),
        rated(4, 2e6),
        rated(64, 2e6, query="1-D band"),
        rated(64, 2e6, who="CPU core, scan"),
    ):
        assert not is_disturbed(low, [low, other])
    design = record("a, hash", 8, 1e6, 100, is_fpga=True)
    assert not is_disturbed(design, [design, {**design, "window": 64, "rate_tuples_per_s": 2e6}])
    assert crossover.table_row(low, [low, high])[1] == "CPU core, hash *"
    run = {"size": "quick", "environment": {"cpu": "any"}, "points": [low, high]}
    assert crossover.DISTURBED_NOTE in crossover.page({"cpu-fpga-quick": run})
    assert "others on the machine disturbed them" in render_crossover(run)


def test_the_stored_answer_is_short_and_names_boards_clocks_and_simulation() -> None:
    points = crossover.runs(stored.FOLDER)["cpu-fpga-quick"]["points"]
    said = answers(points)
    assert len(said) == len(QUERIES)
    for query, text in zip(QUERIES, said, strict=True):
        assert text.lower().startswith(query.name.lower())
        assert len(text.split()) <= 150
        assert re.search(r"tuples take a core \S+ to \S+ J, a PYNQ-Z2 0\.0", text)
        assert text.index("a PYNQ-Z2 (simulated, 100 MHz assumed)") < text.index("a KV260")
        for board in ("KV260", "ZCU104"):
            assert re.search(rf"{board}( or \w+)? \(simulated, 200 MHz assumed\)", text)
    for each in verdicts(points):
        assert each["lowest"].p99_us == min(
            at["p99"]
            for point in points
            if (point["query"], point["window"]) == (each["query"], each["window"])
            if not point["is_fpga"]
            for at in point["latency_us"].values()
        )


def test_the_picture_shows_both_sides_and_the_transfer() -> None:
    records = [
        record("CPU core, hash", 256, 40e6, 1_000, is_fpga=False),
        record("CPU core, scan", 256, 1e6, 10, is_fpga=False),
        record("board, index", 256, 100e6, 1, is_fpga=True),
        record("twin, index", 256, 100e6, 1, is_fpga=True),
        record("CPU core, hash", 512, 40e6, 1_000, is_fpga=False),
    ]
    rates, latencies = crossover.panels(records)
    core, boards = "CPU core, fastest engine", "board, twin: simulated"
    assert rates.lines == {
        core: [(0, 40e6), (1, 40e6)],
        f"{boards}; with transfer": [(0, 50e6)],
    }
    assert latencies.lines == {
        core: [(0, 1e-3), (1, 1e-3)],
        f"{boards}; with transfer": [(0, pytest.approx(41e-6))],
        f"{boards}; without transfer": [(0, pytest.approx(1e-6))],
        "CPU core, lowest of any engine and load": [(0, pytest.approx(10e-6)), (1, 1e-3)],
    }
    assert crossover.svg(records) == crossover.svg(records)
    assert "without transfer" in crossover.svg(records)


def test_a_stored_record_makes_the_page_without_running(tmp_path: Path) -> None:
    points = [
        record("CPU core, hash", 256, 40e6, 1_000, is_fpga=False),
        record("board, index", 256, 100e6 / 3, 1, is_fpga=True)
        | {"cycles_per_tuple": 3.0, "clock_mhz": 100.0},
    ]
    run = {"size": "quick", "environment": {"cpu": "a Xeon", "cores": 2}, "points": points}
    path = crossover.store(run, tmp_path)
    assert path.name == "cpu-fpga-quick.json"
    assert "33333000.0" in path.read_text()
    assert "sources" not in path.read_text()
    pages = page.pages(tmp_path)
    assert set(pages) == {
        "results/claims.md",
        "results/cpu-fpga.md",
        "results/charts/cpu-fpga-quick.svg",
    }
    text = pages["results/cpu-fpga.md"]()
    (said,) = answers(crossover.runs(tmp_path)["cpu-fpga-quick"]["points"])
    assert said in text
    assert "| 256 | 40 M tuples/s | 1 ms at 4 M tuples/s (hash) | 16.7 M tuples/s (0.42" in (
        text.replace("\N{NO-BREAK SPACE}", " ")
    )
    assert (
        "a Xeon, one thread of 2 processors; load 1.5; revision abc, 2026-01-02; 2 points" in text
    )
    assert "others used" not in text
    points[0]["measured"] = points[1]["measured"] = {**points[0]["measured"], "load_average": 3.0}
    assert "load 3.0: others used it too" in crossover.page({"cpu-fpga-quick": run})
    assert text.count("| board, index |") == 1
    assert pages["results/charts/cpu-fpga-quick.svg"]().startswith("<svg")
    with pytest.raises(InputError, match="has no records"):
        stored.find(tmp_path)


IMPOSSIBLE: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "none": (lambda run: run.update(points=[]), "has no points"),
    "no list": (lambda run: run.pop("points"), "has no points"),
    "size": (lambda run: run.pop("size"), "size must be one of quick, full, not None"),
    "machine": (lambda run: run.pop("environment"), "environment must be an object"),
    "query": (lambda run: run["points"][0].update(query="x"), "points[0]: query must be one of"),
    "window": (lambda run: run["points"][0].pop("window"), "window must be an integer from 1"),
    "rate": (
        lambda run: run["points"][0].update(rate_tuples_per_s=-1.0),
        "equality, 256, CPU core, hash: rate_tuples_per_s must be a number above 0, not -1.0",
    ),
    "twice": (lambda run: run["points"].append(run["points"][0]), "CPU core, hash: is there twice"),
    "cycles": (
        lambda run: run["points"][1].update(cycles_per_tuple=2.0),
        "must be clock_mhz by cycles_per_tuple, 5e+07, not 3.3333e+07",
    ),
    "clock": (lambda run: run["points"][1].pop("clock_mhz"), "clock_mhz must be a number above 0"),
    "transfer": (lambda run: run["points"][1].pop("transfer"), "transfer must be an object"),
    "port": (
        lambda run: run["points"][1]["transfer"].update(rate_tuples_per_s=1e9),
        "transfer.rate_tuples_per_s must be no more than rate_tuples_per_s",
    ),
    "negative": (
        lambda run: run["points"][0]["latency_us"]["50%"].update(p99=-1.0),
        "p50 and p99 at 50% must be numbers above 0, the first no larger, not 500.0 and -1.0",
    ),
    "order": (
        lambda run: run["points"][0]["latency_us"]["90%"].update(p50=2_000.0),
        "not 2000.0 and 1000",
    ),
    "load": (lambda run: run["points"][0]["latency_us"].pop("10%"), "must be at 10%, 50%, 90%"),
    "measured": (lambda run: run["points"][0].pop("measured"), "measured must be an object"),
    "took": (lambda run: run["points"][0]["measured"].pop("took_s"), "took_s and load_average"),
    "revision": (lambda run: run["points"][0]["measured"].pop("revision"), "at and revision"),
    "joules": (
        lambda run: run["points"][0].update(joules_per_million="x"),
        "joules_per_million must be a number above 0, not 'x'",
    ),
}


@pytest.mark.parametrize(("change", "sentence"), IMPOSSIBLE.values(), ids=IMPOSSIBLE)
def test_a_stored_record_that_cannot_be_is_refused_in_a_sentence(
    tmp_path: Path, change: Callable[[dict[str, Any]], object], sentence: str
) -> None:
    points = [
        record("CPU core, hash", 256, 40e6, 1_000, is_fpga=False),
        record("board, index", 256, 100e6 / 3, 1, is_fpga=True)
        | {"cycles_per_tuple": 3.0, "clock_mhz": 100.0},
    ]
    path = crossover.store({"size": "quick", "environment": {}, "points": points}, tmp_path)
    run = crossover.runs(tmp_path)["cpu-fpga-quick"]
    change(run)
    path.write_text(json.dumps(run))
    with pytest.raises(InputError, match=re.escape(sentence)) as refused:
        page.pages(tmp_path)
    assert str(refused.value).startswith(f"{path}: ")
    path.write_text("no JSON")
    with pytest.raises(InputError, match="is not JSON"):
        crossover.runs(tmp_path)
