"""Verdicts, names and numbers of results, and of several runs side by side."""

import pytest
from tests.host import report_samples as samples

from streamjoin.report import units
from streamjoin.report.charts.bars import (
    phase_shares,
)
from streamjoin.report.results import Verdict, group
from streamjoin.report.tables import comparison, engine_row, hardware_rows, run_titles


def test_each_status_has_its_verdict():
    records = [
        samples.record(),
        samples.record(checked=False),
        samples.wrong_record(),
        samples.failed_record(),
    ]
    assert [r.verdict for r in samples.results_of(samples.run(records))] == [
        Verdict.AGREES,
        Verdict.UNCHECKED,
        Verdict.WRONG,
        Verdict.FAILED,
    ]


@pytest.mark.parametrize(("field", "value"), [("pairs", 162), ("digest", "fedcba9876543210")])
def test_a_record_that_claims_ok_but_differs_from_the_oracle_is_wrong(field, value):
    (result,) = samples.results_of(samples.run([samples.record(**{field: value})]))
    assert result.verdict is Verdict.WRONG
    assert str(value) in result.error


def test_an_engine_that_gave_the_right_result_itself_is_no_independent_one():
    records = [samples.record(engine) for engine in ("npj", "duckdb", "oracle")]
    verdicts = {
        oracle: [
            r.verdict
            for r in samples.results_of(samples.run(records, [samples.workload(oracle=oracle)]))
        ]
        for oracle in ("oracle", "duckdb")
    }
    assert verdicts == {
        "oracle": [Verdict.AGREES, Verdict.AGREES, Verdict.CHECK],
        "duckdb": [Verdict.AGREES, Verdict.CHECK, Verdict.AGREES],
    }
    wrong = samples.run([samples.wrong_record("duckdb")], [samples.workload(oracle="duckdb")])
    assert samples.results_of(wrong)[0].verdict is Verdict.WRONG


def test_the_same_engine_twice_is_told_apart_by_what_differs():
    records = [
        samples.record("kang"),
        samples.fpga_record(),
        samples.fpga_record(knobs={"cores": 64, "segment_tuples": 64, "lanes": 8}),
        samples.record("npj"),
        samples.record("npj"),
    ]
    labels = [r.label for r in samples.results_of(samples.run(records))]
    assert labels == [
        "kang",
        "fpga-handshake, cores 16",
        "fpga-handshake, cores 64",
        "npj, #1",
        "npj, #2",
    ]


def test_the_fastest_is_never_one_that_differs_from_the_oracle():
    (found,) = group(samples.run([samples.record("kang"), samples.wrong_record()]))
    assert found.fastest is not None
    assert found.fastest.name == "kang"


def test_the_fastest_is_measured_and_a_simulated_one_stands_beside_it():
    run = samples.run([samples.record("kang"), samples.record("npj"), samples.fpga_record()])
    run["records"][1]["throughput_tuples_per_s"] = samples.spread(500_000.0)
    (found,) = group(run)
    assert found.results[2].throughput > 10 * found.results[1].throughput
    assert (found.fastest.name, found.fastest_simulated.name) == ("npj", "fpga-handshake")
    (alone,) = group(samples.run([samples.fpga_record()]))
    assert alone.fastest is None


def test_a_replay_has_no_fastest_engine():
    (found,) = group(samples.run(workloads=[samples.workload(arrival="replay")]))
    assert (found.fastest, found.fastest_simulated) == (None, None)


@pytest.mark.parametrize(
    ("changes", "measured"),
    [
        ({}, False),
        ({"clock_source": "post-route timing report"}, False),
        ({"backend": None}, False),
        ({"backend": "pynq", "clock_source": "read from the board"}, True),
    ],
)
def test_only_what_a_board_ran_is_measured_hardware(changes, measured):
    (result,) = samples.results_of(samples.run([samples.fpga_record(**changes)]))
    assert result.measured is measured


@pytest.mark.parametrize(
    ("platform", "arrival", "origin"),
    [
        ("cpu", "instant", "run start"),
        ("cpu", "replay", "arrival"),
        ("spark", "replay", "file"),
        ("fpga", "instant", "acceptance"),
        ("fpga", None, "acceptance"),
        ("cpu", None, None),
    ],
)
def test_older_records_count_latencies_from_where_their_platform_does(platform, arrival, origin):
    record = samples.record(platform=platform)
    del record["latency_from"]
    run = samples.run([record], [samples.workload(arrival=arrival)])
    assert samples.results_of(run)[0].latency_from == origin


# ---- numbers ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (units.count(0), "0"),
        (units.count(999), "999"),
        (units.count(999.6), "1 k"),
        (units.count(400_000), "400 k"),
        (units.count(999_600), "1 M"),
        (units.rate(1_234_567), "1.23 M tuples/s"),
        (units.exact(1_234_567), "1 234 567"),
        (units.microseconds(41), "41 µs"),
        (units.microseconds(999.9), "1 ms"),
        (units.microseconds(0), "0 s"),
        (units.seconds(12345), "12345 s"),
        (units.memory(25e9), "25 GB"),
        (units.resident(1_044_480), "1.04 MB"),
        (units.resident(4096), "4.1 kB"),
        (units.resident(0), "< 4 kB"),
        (units.resident(None), "\N{EN DASH}"),
        (units.hertz(61.5e6), "61.5 MHz"),
        (units.percent(0.44), "44 %"),
        (units.percent(0.0004), "< 0.1 %"),
        (units.percent(0), "0 %"),
        (units.count(None), "\N{EN DASH}"),
    ],
)
def test_numbers_read_as_a_person_would_write_them(text, expected):
    assert text.replace(units.NBSP, " ").replace(units.THIN, " ") == expected


def test_seconds_of_hardware_stand_beside_their_clock():
    (row,) = hardware_rows(samples.results_of(samples.run([samples.fpga_record()])))
    assert row.time.replace(units.NBSP, " ") == "3.2 ms"
    assert row.clock is not None
    assert row.clock.text.replace(units.NBSP, " ") == "100 MHz assumed"
    assert row.cycles_per_tuple == "8"


def test_cycles_without_a_clock_are_never_turned_into_seconds():
    record = samples.fpga_record(clock_hz=None, clock_source=None)
    (row,) = hardware_rows(samples.results_of(samples.run([record])))
    assert (row.time, row.clock) == (units.MISSING, None)


def test_a_clock_from_a_timing_report_is_not_called_assumed():
    record = samples.fpga_record(clock_source="post-route timing report")
    (result,) = samples.results_of(samples.run([record]))
    assert result.clock is not None
    assert not result.clock.assumed
    ((note, colour),) = result.notes
    assert note.replace(units.NBSP, " ") == "100 MHz, post-route timing report"
    assert colour == "muted"


@pytest.mark.parametrize(
    ("source", "text", "remark"),
    [
        ("assumed; simulated, not measured", "100 MHz assumed", "simulated, not measured"),
        ("assumed 100 MHz; simulated, not measured", "100 MHz assumed", "simulated, not measured"),
        ("assumed, not measured", "100 MHz assumed", "not measured"),
        ("assumed", "100 MHz assumed", ""),
        ("100.0 MHz, read from the board", "100 MHz, read from the board", ""),
        ("from a 25 MHz crystal", "100 MHz, from a 25 MHz crystal", ""),
    ],
)
def test_a_clock_is_named_once_however_the_record_words_it(source, text, remark):
    (result,) = samples.results_of(samples.run([samples.fpga_record(clock_source=source)]))
    assert result.clock is not None
    assert result.clock.text.replace(units.NBSP, " ") == text
    assert result.clock.remark == remark


def test_the_clock_is_no_knob_beside_its_own_label():
    knobs = {"cores": 16, "clock_mhz": 100}
    (row,) = hardware_rows(samples.results_of(samples.run([samples.fpga_record(knobs=knobs)])))
    assert row.knobs == "cores 16"
    record = samples.fpga_record(knobs=knobs, clock_hz=None, clock_source=None)
    (row,) = hardware_rows(samples.results_of(samples.run([record])))
    assert row.knobs == "cores 16, clock_mhz 100"


def test_the_range_of_rounds_says_when_there_is_none():
    records = [
        samples.record("kang", throughput_tuples_per_s=samples.spread(100.0, 0.5, 2.0)),
        samples.record("prj", throughput_tuples_per_s=samples.spread(100.0, 1.0, 1.0)),
        samples.fpga_record(),
        samples.failed_record(),
    ]
    texts = [engine_row(r).spread for r in samples.results_of(samples.run(records))]
    assert [text.replace(units.THIN, " ") for text in texts] == [
        "50 .. 200",
        "100",
        "one round",
        units.MISSING,
    ]


def test_phases_are_shares_of_threads_times_wall_time():
    (result,) = samples.results_of(samples.run([samples.record()]))
    shares = phase_shares(result)
    assert shares is not None
    assert shares["probe"] == pytest.approx(120 / (2 * 100))
    assert sum(shares.values()) == pytest.approx(0.99)


# ---- charts -----------------------------------------------------------------------------


def test_runs_of_one_title_are_numbered():
    assert run_titles([samples.run(), samples.run(), samples.run(title="b")]) == [
        "small (1)",
        "small (2)",
        "b",
    ]


def test_the_ratio_is_to_the_first_sound_run():
    slow = samples.run([samples.record(), samples.wrong_record("npj")])
    fast = samples.run(
        [
            samples.record(throughput_tuples_per_s=samples.spread(600_000.0)),
            samples.record("npj", throughput_tuples_per_s=samples.spread(600_000.0)),
        ]
    )
    kang, npj = comparison([group(slow), group(fast)])
    assert kang.ratios == ("", f"{units.TIMES} 1.5")
    assert npj.ratios == ("", "")
    assert npj.cells[0].startswith("wrong")
    assert npj.bad == (True, False)


@pytest.mark.parametrize(
    "changes",
    [
        {"clock_hz": 61e6},
        {"backend": "pynq", "clock_source": "read from the board"},
    ],
)
def test_figures_of_different_clocks_have_no_ratio(changes):
    runs = [samples.run([samples.fpga_record(**change)]) for change in ({}, changes)]
    (row,) = comparison([group(run) for run in runs])
    assert row.ratios == ("", "")
    (row,) = comparison([group(run) for run in (runs[0], runs[0])])
    assert row.ratios[1].endswith("1")


def test_runs_of_different_arrivals_are_not_compared():
    runs = [
        samples.run([samples.record()], [samples.workload(arrival=arrival)])
        for arrival in ("instant", "replay")
    ]
    (row,) = comparison([group(run) for run in runs])
    assert (row.ratios, row.remark) == (("", ""), "not the same input or arrival in all runs")


def test_runs_on_different_inputs_are_not_compared():
    other = samples.run(
        [samples.record(digest="fedcba9876543210")],
        [samples.workload(digest="fedcba9876543210")],
    )
    (row,) = comparison([group(samples.run([samples.record()])), group(other)])
    assert row.ratios == ("", "")
    assert row.remark == "not the same input or arrival in all runs"
