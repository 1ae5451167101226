"""What the page says of semi-stream joins: rate, cache, memory, cost of a loop."""

import html

import pytest
from tests.host import report_samples as samples

from streamjoin.report import units
from streamjoin.report.charts.bars import loop_chart, memory_chart
from streamjoin.report.charts.sweeps import sweep_charts
from streamjoin.report.page import render
from streamjoin.report.records import RecordsError, check_run
from streamjoin.report.results import group


def said(chart):
    """Return what a chart tells those who do not see it."""
    return html.unescape(chart.wide).replace(units.NBSP, " ")


def alts(run):
    return {chart.title.partition(":")[0]: said(chart) for chart in sweep_charts("c", group(run))}


def test_rate_cache_and_loop_are_drawn_against_what_is_swept():
    found = alts(samples.semi_stream_run(64, 1024))
    assert list(found) == [
        "Service rate",
        "Share served by the cache",
        "Cost of a loop, measured by modelled",
    ]
    assert "ssbj: 64 k tuples/s at 64, 1.02 M tuples/s at 1024" in found["Service rate"]
    assert "meshjoin" in found["Service rate"]
    assert "0.8" in found["Cost of a loop, measured by modelled"]


def test_an_engine_without_a_cache_has_no_share_of_it():
    share = alts(samples.semi_stream_run())["Share served by the cache"]
    assert "ssbj: 60 % at 64" in share
    assert "meshjoin" not in share


def test_a_replay_is_told_by_the_memory_that_it_needed_and_its_latency():
    found = alts(samples.semi_stream_run(arrival="replay"))
    assert "Service rate" not in found
    assert "ssbj: 60 kB at 64" in found["Memory held"]
    assert "p95 latency from arrival" in found


def test_throughput_stands_in_where_a_run_was_too_short_for_a_service_rate():
    run = samples.semi_stream_run()
    for record in run["records"]:
        record["semi_stream"]["service_rate_tuples_per_s"] = None
    found = alts(run)
    assert "Throughput" in found
    assert "Service rate" not in found


def test_memory_is_drawn_by_component_and_the_loop_beside_its_model():
    results = group(samples.semi_stream_run())[0].results
    memory, loop = memory_chart("m", results), loop_chart("l", results)
    assert "ssbj H_S 30 kB, H_R 9 kB, queue 1 kB, disk buffers 20 kB, free 5 kB" in said(memory)
    assert memory.marks == 10
    assert "ssbj 80 µs, 100 µs" in said(loop)
    assert "measured" in loop.caption
    assert "cost model" in loop.caption


def test_other_engines_have_no_such_charts():
    results = group(samples.run())[0].results
    assert memory_chart("m", results) is None
    assert loop_chart("l", results) is None


def test_the_page_has_them_and_says_what_the_words_mean():
    page = render([samples.semi_stream_run()])
    for words in ("Memory by component", "Cost of a loop", "Service rate", "H_S, H_R, loop"):
        assert words in page


@pytest.mark.parametrize("name", ["memory_bytes", "loop_us", "cost_model"])
def test_a_semi_streams_figures_that_are_none_are_named(name):
    run = samples.semi_stream_run()
    run["records"][0]["semi_stream"][name] = {"loop_us": "much"}
    with pytest.raises(RecordsError, match=rf"records\[0\].semi_stream.{name}.loop_us must be"):
        check_run(run, "a run")
