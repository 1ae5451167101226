"""The report's parts: form of the records, verdicts, numbers, charts, comparison."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.host import report_samples as samples

from streamjoin.errors import StreamJoinError
from streamjoin.report import RecordsError, read_records, units, write_report
from streamjoin.report.charts.bars import (
    latency_charts,
    phase_shares,
    phases_chart,
    stalls_chart,
    throughput_chart,
)
from streamjoin.report.charts.curves import progress_chart
from streamjoin.report.charts.rows import scale_for
from streamjoin.report.charts.theme import PALETTE, sentinel, series_style, to_variables
from streamjoin.report.records import check_run
from streamjoin.report.results import Verdict, group
from streamjoin.report.tables import comparison, engine_row, hardware_rows, run_titles
from streamjoin_common.storage import StorageError


def latency_chart(key, results):
    """Draw the latencies of results as if all were counted from one moment."""
    of_one_origin = [replace(result, latency_from="arrival") for result in results]
    (chart,) = latency_charts(key, of_one_origin) or [None]
    return chart


CHARTS = (throughput_chart, latency_chart, progress_chart, phases_chart)


def results_of(run):
    return group(run)[0].results


def write(folder, run):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "records.json").write_text(json.dumps(run), encoding="utf-8")
    return folder


# ---- reading ----------------------------------------------------------------------------


def test_a_run_folder_and_its_file_read_the_same(tmp_path):
    folder = write(tmp_path / "small", samples.mixed_run())
    assert read_records(folder) == read_records(folder / "records.json") == samples.mixed_run()


def set_at(run, path, value):
    *outer, last = path
    place = run
    for step in outer:
        place = place[step]
    if value is KeyError:
        del place[last]
    else:
        place[last] = value


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        (("format",), 2, "format must be 1, not 2"),
        (("title",), KeyError, "title must be a string, not null"),
        (("records",), KeyError, "records must be a list, not null"),
        (("environment",), [], "environment must be an object, not []"),
        (
            ("environment", "cores"),
            -1,
            "environment.cores must be an integer from 0, not -1",
        ),
        (
            ("environment", "packages", "numpy"),
            2,
            "environment.packages.numpy must be a string, not 2",
        ),
        (("workloads", 0, "n_r"), 1.5, "workloads[0].n_r must be an integer from 0, not 1.5"),
        (
            ("records", 1, "workload"),
            "elsewhere",
            'records[1].workload must be the name of one of the workloads, not "elsewhere"',
        ),
        (
            ("records", 0, "status"),
            "good",
            'records[0].status must be one of ok, wrong, failed, not "good"',
        ),
        (("records", 0, "status"), "wrong", "records[0].error must be a string, not null"),
        (("records", 0, "checked"), "yes", 'records[0].checked must be true or false, not "yes"'),
        (("records", 0, "checked"), 1, "records[0].checked must be true or false, not 1"),
        (("records", 0, "pairs"), True, "records[0].pairs must be an integer from 0, not true"),
        (
            ("records", 0, "wall_s", "median"),
            "0.1",
            'records[0].wall_s.median must be a finite number from 0, not "0.1"',
        ),
        (
            ("records", 0, "latency_us", "p99"),
            -3.0,
            "records[0].latency_us.p99 must be a finite number from 0, not -3.0",
        ),
        (
            ("records", 0, "progress", 1),
            [1.5, 2],
            "records[0].progress[1] must be [share from 0 to 1, milliseconds from 0], not [1.5, 2]",
        ),
        (
            ("records", 0, "phases_ms", "probe"),
            [],
            "records[0].phases_ms.probe must be a finite number from 0, not []",
        ),
        (
            ("records", 2, "clock_source"),
            None,
            "records[2].clock_source must be a string, not null",
        ),
        (("records", 2, "clock_hz"), 0, "records[2].clock_hz must be above 0, not 0"),
        (
            ("workloads", 0, "arrival"),
            "slowly",
            'workloads[0].arrival must be one of instant, replay, not "slowly"',
        ),
        (
            ("workloads", 0, "speedup"),
            "10",
            'workloads[0].speedup must be a finite number from 0, not "10"',
        ),
        (
            ("records", 0, "status"),
            None,
            "records[0].status must be one of ok, wrong, failed, not null",
        ),
        (("records", 2), "text", 'records[2] must be an object, not "text"'),
    ],
)
def test_a_field_of_the_wrong_form_is_named_in_one_sentence(tmp_path, path, value, sentence):
    run = samples.run()
    set_at(run, path, value)
    folder = write(tmp_path, run)
    expected = f"{folder / 'records.json'}: {sentence}"
    with pytest.raises(RecordsError, match=f"^{re.escape(expected)}$"):
        read_records(folder)


def test_two_workloads_of_one_name_are_refused():
    run = samples.run(workloads=[samples.workload(), samples.workload()])
    sentence = (
        'run: workloads[1].name must be a name that no other workload has, not "band-uniform"'
    )
    with pytest.raises(RecordsError, match=f"^{re.escape(sentence)}$"):
        check_run(run, "run")


def test_a_missing_file_is_named_with_what_to_give(tmp_path):
    with pytest.raises(RecordsError, match=r"records\.json: no such file; give a run folder that"):
        read_records(tmp_path)


@pytest.mark.parametrize("text", ["{", '{"format": NaN}', '{"format": Infinity}', "\xff"])
def test_what_is_no_json_is_refused_with_the_file_named(tmp_path, text):
    (tmp_path / "records.json").write_text(text, encoding="latin-1")
    with pytest.raises(RecordsError, match=r"records\.json: must be JSON in UTF-8 \("):
        read_records(tmp_path)


def test_a_list_instead_of_an_object_is_refused(tmp_path):
    (tmp_path / "records.json").write_text("[]")
    with pytest.raises(RecordsError, match=r"the top level must be an object, not \[\]$"):
        read_records(tmp_path)


def test_a_records_error_is_a_users_mistake_and_a_value_error():
    assert issubclass(RecordsError, StreamJoinError)
    assert issubclass(RecordsError, ValueError)
    assert RecordsError("x").exit_status == 2


def test_measurements_may_be_null_or_absent():
    bare = {name: samples.record()[name] for name in ("workload", "engine", "platform", "status")}
    run = samples.run(records=[bare, samples.failed_record()])
    assert check_run(run, "run") is run
    assert [engine_row(r).throughput for r in results_of(run)] == [units.MISSING] * 2


# ---- writing ----------------------------------------------------------------------------


def test_the_page_replaces_the_old_one_and_leaves_nothing_beside_it(tmp_path):
    folder = write(tmp_path / "run", samples.run())
    out = tmp_path / "pages" / "report.html"
    out.parent.mkdir()
    out.write_text("old")
    write_report([folder], out)
    assert out.read_text(encoding="utf-8").rstrip().endswith("</html>")
    assert [path.name for path in out.parent.iterdir()] == ["report.html"]


def test_a_bad_run_leaves_the_old_page_as_it_was(tmp_path):
    good = write(tmp_path / "good", samples.run())
    bad = write(tmp_path / "bad", samples.run(format=9))
    out = tmp_path / "report.html"
    out.write_text("old")
    with pytest.raises(RecordsError):
        write_report([good, bad], out)
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad", "good", "report.html"]


def test_a_place_that_cannot_be_written_is_named_and_left_alone(tmp_path):
    folder = write(tmp_path / "run", samples.run())
    (tmp_path / "taken").mkdir()
    with pytest.raises(StorageError, match=r"taken cannot be written \(Is a directory\)"):
        write_report([folder], tmp_path / "taken")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "taken"]


def test_nothing_is_written_into_the_home_folder(tmp_path):
    folder = write(tmp_path / "run", samples.run())
    home = tmp_path / "home"
    home.mkdir()
    code = (
        "import sys; from pathlib import Path; from streamjoin.report import write_report; "
        "write_report([Path(sys.argv[1])], Path(sys.argv[2]))"
    )
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("XDG_", "MPL"))}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, str(folder), str(tmp_path / "report.html")],
        env={**kept, "HOME": str(home), "STREAMJOIN_CACHE": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(home.iterdir()) == []
    assert list((tmp_path / "cache" / "matplotlib").iterdir())


# ---- verdicts and names -----------------------------------------------------------------


def test_each_status_has_its_verdict():
    records = [
        samples.record(),
        samples.record(checked=False),
        samples.wrong_record(),
        samples.failed_record(),
    ]
    assert [r.verdict for r in results_of(samples.run(records))] == [
        Verdict.AGREES,
        Verdict.UNCHECKED,
        Verdict.WRONG,
        Verdict.FAILED,
    ]


@pytest.mark.parametrize(("field", "value"), [("pairs", 162), ("digest", "fedcba9876543210")])
def test_a_record_that_claims_ok_but_differs_from_the_oracle_is_wrong(field, value):
    (result,) = results_of(samples.run([samples.record(**{field: value})]))
    assert result.verdict is Verdict.WRONG
    assert str(value) in result.error


def test_an_engine_that_gave_the_right_result_itself_is_no_independent_one():
    records = [samples.record(engine) for engine in ("npj", "duckdb", "oracle")]
    verdicts = {
        oracle: [
            r.verdict for r in results_of(samples.run(records, [samples.workload(oracle=oracle)]))
        ]
        for oracle in ("oracle", "duckdb")
    }
    assert verdicts == {
        "oracle": [Verdict.AGREES, Verdict.AGREES, Verdict.CHECK],
        "duckdb": [Verdict.AGREES, Verdict.CHECK, Verdict.AGREES],
    }
    wrong = samples.run([samples.wrong_record("duckdb")], [samples.workload(oracle="duckdb")])
    assert results_of(wrong)[0].verdict is Verdict.WRONG


def test_the_same_engine_twice_is_told_apart_by_what_differs():
    records = [
        samples.record("kang"),
        samples.fpga_record(),
        samples.fpga_record(knobs={"cores": 64, "segment": 64, "lanes": 8}),
        samples.record("npj"),
        samples.record("npj"),
    ]
    labels = [r.label for r in results_of(samples.run(records))]
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
    (result,) = results_of(samples.run([samples.fpga_record(**changes)]))
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
    assert results_of(run)[0].latency_from == origin


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
    (row,) = hardware_rows(results_of(samples.run([samples.fpga_record()])))
    assert row.time.replace(units.NBSP, " ") == "3.2 ms"
    assert row.clock is not None
    assert row.clock.text.replace(units.NBSP, " ") == "100 MHz assumed"
    assert row.cycles_per_tuple == "8"


def test_cycles_without_a_clock_are_never_turned_into_seconds():
    record = samples.fpga_record(clock_hz=None, clock_source=None)
    (row,) = hardware_rows(results_of(samples.run([record])))
    assert (row.time, row.clock) == (units.MISSING, None)


def test_a_clock_from_a_timing_report_is_not_called_assumed():
    record = samples.fpga_record(clock_source="post-route timing report")
    (result,) = results_of(samples.run([record]))
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
    (result,) = results_of(samples.run([samples.fpga_record(clock_source=source)]))
    assert result.clock is not None
    assert result.clock.text.replace(units.NBSP, " ") == text
    assert result.clock.remark == remark


def test_the_clock_is_no_knob_beside_its_own_label():
    knobs = {"cores": 16, "clock_mhz": 100}
    (row,) = hardware_rows(results_of(samples.run([samples.fpga_record(knobs=knobs)])))
    assert row.knobs == "cores 16"
    record = samples.fpga_record(knobs=knobs, clock_hz=None, clock_source=None)
    (row,) = hardware_rows(results_of(samples.run([record])))
    assert row.knobs == "cores 16, clock_mhz 100"


def test_the_range_of_rounds_says_when_there_is_none():
    records = [
        samples.record("kang", throughput_tuples_per_s=samples.spread(100.0, 0.5, 2.0)),
        samples.record("prj", throughput_tuples_per_s=samples.spread(100.0, 1.0, 1.0)),
        samples.fpga_record(),
        samples.failed_record(),
    ]
    texts = [engine_row(r).spread for r in results_of(samples.run(records))]
    assert [text.replace(units.THIN, " ") for text in texts] == [
        "50 .. 200",
        "100",
        "one round",
        units.MISSING,
    ]


def test_phases_are_shares_of_threads_times_wall_time():
    (result,) = results_of(samples.run([samples.record()]))
    shares = phase_shares(result)
    assert shares is not None
    assert shares["probe"] == pytest.approx(120 / (2 * 100))
    assert sum(shares.values()) == pytest.approx(0.99)


# ---- charts -----------------------------------------------------------------------------


def test_an_axis_is_logarithmic_beyond_a_decade():
    assert not scale_for([10, 100], str, "x").log
    assert scale_for([10, 101], str, "x").log
    assert scale_for([10, 101], str, "x").name.endswith("log scale")
    assert scale_for([0, 0], str, "x").high == 1.0


@pytest.mark.parametrize("chart_of", CHARTS)
def test_every_result_is_named_in_every_chart(chart_of):
    results = results_of(samples.mixed_run())
    chart = chart_of("key", results)
    for version in (chart.wide, chart.narrow):
        texts = re.findall(r"<text[^>]*>([^<]*)</text>", version)
        for result in results:
            assert any(text.startswith(result.name) for text in texts), result.name
        assert any("failed" in text for text in texts)
        assert any("wrong" in text for text in texts)
        assert version.count("-mark-") == chart.marks


@pytest.mark.parametrize("chart_of", [throughput_chart, latency_chart, progress_chart])
def test_an_assumed_clock_is_marked_in_every_chart_of_seconds(chart_of):
    chart = chart_of("key", results_of(samples.run([samples.fpga_record()])))
    for version in (chart.wide, chart.narrow):
        assert re.search(r"<text[^>]*>100\s?MHz assumed</text>", version)
        assert re.search(r'aria-label="[^"]*at 100\s?MHz assumed', version)


@pytest.mark.parametrize("chart_of", [phases_chart, stalls_chart])
def test_a_chart_that_needs_no_clock_names_none(chart_of):
    phases = samples.record()["phases_ms"]
    chart = chart_of("key", results_of(samples.run([samples.fpga_record(phases_ms=phases)])))
    for version in (chart.wide, chart.narrow):
        assert "assumed" not in version


def test_the_time_of_a_simulation_is_called_that():
    record = samples.fpga_record(phases_ms=samples.record()["phases_ms"])
    chart = phases_chart("key", results_of(samples.run([record])))
    for version in (chart.wide, chart.narrow):
        assert re.search(r"<text[^>]*>simulating took 2.3\s?s</text>", version)
        assert re.search(r'aria-label="[^"]*simulating took 2.3', version)


@pytest.mark.parametrize("chart_of", [throughput_chart, latency_chart, progress_chart])
def test_a_long_variant_never_hides_that_the_clock_is_assumed(chart_of):
    chart = chart_of("key", results_of(samples.large_run()))
    for version in (chart.wide, chart.narrow):
        assert re.search(r"<text[^>]*>61.3\s?MHz assumed</text>", version)


def test_simulated_results_are_ranked_below_measured_ones_however_fast():
    records = [samples.fpga_record(), samples.record("kang"), samples.record("npj")]
    records[2]["throughput_tuples_per_s"] = samples.spread(500_000.0)
    results = results_of(samples.run(records))
    chart = throughput_chart("key", results)
    told = ("Measured", "npj", "kang", "Simulated, ranked apart", "fpga-handshake")
    for version in (chart.wide, chart.narrow):
        texts = re.findall(r"<text[^>]*>([^<]*)</text>", version)
        assert [text for text in texts if text in told] == list(told)
        assert "Measured: npj" in version
        assert "Simulated, ranked apart: fpga-handshake" in version
    alone = throughput_chart("key", results[1:])
    assert "ranked apart" not in alone.wide


def test_latencies_of_different_origins_have_charts_of_their_own():
    charts = latency_charts("key", results_of(samples.mixed_run()))
    assert [chart.title for chart in charts] == [
        "Latency from the run's start",
        "Latency from acceptance by the hardware",
    ]
    assert "fpga-handshake" not in charts[0].wide
    assert "kang" not in charts[1].wide


def test_one_round_has_no_median_and_no_whisker():
    records = [samples.record(rounds=1), samples.fpga_record()]
    chart = throughput_chart("key", results_of(samples.run(records)))
    assert chart.caption == "Bar: one checked round."
    assert "median" not in chart.wide
    chart = throughput_chart("key", results_of(samples.run()))
    assert chart.caption == (
        "Bar: median of 5 checked rounds, or one checked round; whisker: slowest to fastest round."
    )


def test_a_chart_with_nothing_to_show_is_none():
    results = results_of(samples.run([samples.failed_record()]))
    assert [chart_of("key", results) for chart_of in (*CHARTS, stalls_chart)] == [None] * 5


def test_the_same_records_give_the_same_drawing():
    results = results_of(samples.mixed_run())
    assert throughput_chart("key", results) == throughput_chart("key", results)


def test_identifiers_differ_between_charts_and_versions():
    results = results_of(samples.mixed_run())
    found = [
        name
        for chart in (throughput_chart("a", results), latency_chart("b", results))
        for version in (chart.wide, chart.narrow)
        for name in re.findall(r'\bid="([^"]*)"', version)
    ]
    assert len(found) == len(set(found)) > 100


def test_dollar_signs_and_markup_in_names_are_plain_text():
    chart = throughput_chart("key", results_of(samples.run([samples.record("$a<b>_{$")])))
    assert "$a&lt;b&gt;_{$" in chart.wide
    assert "<b>" not in chart.wide


def test_extreme_and_empty_measurements_are_drawn():
    zero = dict.fromkeys(("median", "min", "max"), 0)
    records = [
        samples.record(throughput_tuples_per_s=samples.spread(1e-3)),
        samples.record("npj", throughput_tuples_per_s=samples.spread(1e12)),
        samples.record("prj", throughput_tuples_per_s=zero, progress=[[1.0, 0.0]]),
        samples.record("mway", latency_us=dict.fromkeys(("p50", "p95", "p99", "max"), 0.0)),
        samples.record("mpass", latency_us=dict.fromkeys(("p50", "p95", "p99", "max"))),
    ]
    results = results_of(samples.run(records))
    assert [chart_of("key", results).marks for chart_of in CHARTS[:3]] == [5, 4, 5]


def test_only_variables_and_no_fixed_colour_reach_the_page():
    results = results_of(samples.mixed_run())
    for chart_of in (*CHARTS, stalls_chart):
        chart = chart_of("key", results)
        assert not re.findall(r"#[0-9a-fA-F]{6}\b", chart.wide + chart.narrow)
        assert "var(--" in chart.wide


def test_every_palette_name_has_its_own_variable():
    swapped = [to_variables(sentinel(name)) for name in PALETTE]
    assert swapped == [f"var(--{name.replace('_', '-')})" for name in PALETTE]


def test_series_are_told_apart_without_colour_and_with_it():
    assert len({str(series_style(index)) for index in range(49)}) == 49
    assert len({series_style(index)[0] for index in range(7)}) == 7


# ---- several runs -----------------------------------------------------------------------


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


def test_an_integer_beyond_all_floating_point_numbers_is_refused(tmp_path: Path) -> None:
    run = samples.mixed_run()
    run["records"][0]["progress"][1] = [1, 10**400]
    (tmp_path / "records.json").write_text(json.dumps(run))
    with pytest.raises(RecordsError, match="progress"):
        read_records(tmp_path)
