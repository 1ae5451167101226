"""The charts of a page: marks, axes, colours, names."""

import re
from dataclasses import replace

import numpy as np
import pytest
from tests.host import report_samples as samples

from streamjoin.report.charts.bars import (
    latency_charts,
    phases_chart,
    stalls_chart,
    throughput_chart,
)
from streamjoin.report.charts.curves import progress_chart
from streamjoin.report.charts.rows import scale_for
from streamjoin.report.charts.theme import (
    PALETTE,
    SERIES_COLOURS,
    sentinel,
    series_style,
    to_variables,
)


def latency_chart(key, results):
    """Draw the latencies of results as if all were counted from one moment."""
    of_one_origin = [replace(result, latency_from="arrival") for result in results]
    (chart,) = latency_charts(key, of_one_origin) or [None]
    return chart


CHARTS = (throughput_chart, latency_chart, progress_chart, phases_chart)


def test_an_axis_is_logarithmic_beyond_a_decade():
    assert not scale_for([10, 100], str, "x").log
    assert scale_for([10, 101], str, "x").log
    assert scale_for([10, 101], str, "x").name.endswith("log scale")
    assert scale_for([0, 0], str, "x").high == 1.0


@pytest.mark.parametrize("chart_of", CHARTS)
def test_every_result_is_named_in_every_chart(chart_of):
    results = samples.results_of(samples.mixed_run())
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
    chart = chart_of("key", samples.results_of(samples.run([samples.fpga_record()])))
    for version in (chart.wide, chart.narrow):
        assert re.search(r"<text[^>]*>100\s?MHz assumed</text>", version)
        assert re.search(r'aria-label="[^"]*at 100\s?MHz assumed', version)


@pytest.mark.parametrize("chart_of", [phases_chart, stalls_chart])
def test_a_chart_that_needs_no_clock_names_none(chart_of):
    phases = samples.record()["phases_ms"]
    chart = chart_of(
        "key", samples.results_of(samples.run([samples.fpga_record(phases_ms=phases)]))
    )
    for version in (chart.wide, chart.narrow):
        assert "assumed" not in version


def test_the_time_of_a_simulation_is_called_that():
    record = samples.fpga_record(phases_ms=samples.record()["phases_ms"])
    chart = phases_chart("key", samples.results_of(samples.run([record])))
    for version in (chart.wide, chart.narrow):
        assert re.search(r"<text[^>]*>simulating took 2.3\s?s</text>", version)
        assert re.search(r'aria-label="[^"]*simulating took 2.3', version)


@pytest.mark.parametrize("chart_of", [throughput_chart, latency_chart, progress_chart])
def test_a_long_variant_never_hides_that_the_clock_is_assumed(chart_of):
    chart = chart_of("key", samples.results_of(samples.large_run()))
    for version in (chart.wide, chart.narrow):
        assert re.search(r"<text[^>]*>61.3\s?MHz assumed</text>", version)


def test_simulated_results_are_ranked_below_measured_ones_however_fast():
    records = [samples.fpga_record(), samples.record("kang"), samples.record("npj")]
    records[2]["throughput_tuples_per_s"] = samples.spread(500_000.0)
    results = samples.results_of(samples.run(records))
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
    charts = latency_charts("key", samples.results_of(samples.mixed_run()))
    assert [chart.title for chart in charts] == [
        "Latency from the run's start",
        "Latency from acceptance by the hardware",
    ]
    assert "fpga-handshake" not in charts[0].wide
    assert "kang" not in charts[1].wide


def test_one_round_has_no_median_and_no_whisker():
    records = [samples.record(rounds=1), samples.fpga_record()]
    chart = throughput_chart("key", samples.results_of(samples.run(records)))
    assert chart.caption == "Dot: one checked round."
    assert "median" not in chart.wide
    chart = throughput_chart("key", samples.results_of(samples.run()))
    assert chart.caption == (
        "Dot: median of 5 checked rounds, or one checked round; whisker: slowest to fastest round."
    )


def test_a_chart_with_nothing_to_show_is_none():
    results = samples.results_of(samples.run([samples.failed_record()]))
    assert [chart_of("key", results) for chart_of in (*CHARTS, stalls_chart)] == [None] * 5


def test_the_same_records_give_the_same_drawing():
    results = samples.results_of(samples.mixed_run())
    assert throughput_chart("key", results) == throughput_chart("key", results)


def test_identifiers_differ_between_charts_and_versions():
    results = samples.results_of(samples.mixed_run())
    found = [
        name
        for chart in (throughput_chart("a", results), latency_chart("b", results))
        for version in (chart.wide, chart.narrow)
        for name in re.findall(r'\bid="([^"]*)"', version)
    ]
    assert len(found) == len(set(found)) > 50


def test_dollar_signs_and_markup_in_names_are_plain_text():
    chart = throughput_chart("key", samples.results_of(samples.run([samples.record("$a<b>_{$")])))
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
    results = samples.results_of(samples.run(records))
    assert [chart_of("key", results).marks for chart_of in CHARTS[:3]] == [5, 4, 5]


def test_only_variables_and_no_fixed_colour_reach_the_page():
    results = samples.results_of(samples.mixed_run())
    for chart_of in (*CHARTS, stalls_chart):
        chart = chart_of("key", results)
        assert not re.findall(r"#[0-9a-fA-F]{6}\b", chart.wide + chart.narrow)
        assert "var(--" in chart.wide


def test_every_palette_name_has_its_own_variable():
    swapped = [to_variables(sentinel(name)) for name in PALETTE]
    assert swapped == [f"var(--{name.replace('_', '-')})" for name in PALETTE]


def test_series_are_told_apart_without_colour_and_with_it():
    assert len({str(series_style(index)) for index in range(60)}) == 60
    for part in (0, 2):
        assert len({series_style(index)[part] for index in range(12)}) == 12


def oklab(linear):
    """Colours as lightness and two opponents, in which distances are what the eye sees."""
    cones = linear @ np.array(
        [[0.4122, 0.2119, 0.0883], [0.5363, 0.6807, 0.2817], [0.0514, 0.1074, 0.63]]
    )
    opponents = [[0.2105, 1.978, 0.0259], [0.7936, -2.4286, 0.7828], [-0.0041, 0.4506, -0.8087]]
    return np.cbrt(np.clip(cones, 0, None)) @ np.array(opponents)


SIGHT = {  # of linear RGB: Machado, Oliveira and Fernandes, 2009, severity 1.0
    "full": (np.eye(3), 0.14),
    "protan": ([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]], 0.07),
    "deutan": ([[0.367, 0.861, -0.228], [0.28, 0.673, 0.047], [-0.012, 0.043, 0.969]], 0.07),
    "tritan": ([[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]], 0.09),
}


@pytest.mark.parametrize("scheme", [0, 1])
def test_twelve_colours_stay_apart_for_everybody(scheme):
    def linear(name):
        srgb = np.array([int(PALETTE[name][scheme][at : at + 2], 16) for at in (1, 3, 5)]) / 255
        return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)

    colours = np.array([linear(name) for name in SERIES_COLOURS])
    assert len(colours) == 12
    luminance = np.array([0.2126, 0.7152, 0.0722])
    paper, inks = linear("paper") @ luminance, colours @ luminance
    contrast = (np.maximum(inks, paper) + 0.05) / (np.minimum(inks, paper) + 0.05)
    assert contrast.min() > 2.8
    for sight, (matrix, least) in SIGHT.items():
        seen = oklab(np.clip(colours @ np.array(matrix).T, 0, 1))
        apart = np.linalg.norm(seen[:, None] - seen[None], axis=2) + np.eye(12)
        assert apart.min() > least, sight


def test_throughput_is_drawn_as_dots_on_either_axis():
    for run in (samples.run(), samples.large_run()):
        chart = throughput_chart("key", samples.results_of(run))
        for mark in re.findall(r'<g id="key-wide-mark-\d+">(.*?)</g></g>', chart.wide):
            assert "<use" in mark


# ---- several runs -----------------------------------------------------------------------
