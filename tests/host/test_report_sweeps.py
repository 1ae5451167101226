"""Charts of what was swept, whatever kind of value it has."""

import html

import pytest
from tests.host import report_samples as samples

from streamjoin.report import units
from streamjoin.report.charts.sweeps import sweep_charts, sweeps
from streamjoin.report.results import group


def swept(setting, *values):
    """A run whose points differ in one setting, in the order of ``values``."""
    run = samples.semi_stream_run(*(64 * (place + 1) for place in range(len(values))))
    points = [*run["workloads"], *run["records"]]
    for point in points:
        memory_kib = point["settings"]["memory_kib"]
        point["settings"] = {setting: values[memory_kib // 64 - 1]}
    return group(run)


def service_rates(groups):
    (chart,) = (each for each in sweep_charts("c", groups) if each.title.startswith("Service"))
    return html.unescape(chart.wide).replace(units.NBSP, " ")


def test_names_keep_their_order_and_nothing_is_drawn_between_them():
    groups = swept("store", "sqlite", "arrow", "raw")
    (sweep,) = sweeps(groups)
    assert not sweep.ordered
    assert [sweep.tick(value) for value, _ in sweep.points] == ["sqlite", "arrow", "raw"]
    told = "64 k tuples/s at sqlite, 128 k tuples/s at arrow, 192 k tuples/s at raw"
    assert f"ssbj: {told}" in service_rates(groups)


def test_shares_are_numbers_and_stay_as_they_are_written():
    groups = swept("merge_ratio", "1/8", "1", "1/64")
    (sweep,) = sweeps(groups)
    assert sweep.ordered
    assert [value for value, _ in sweep.points] == [1 / 64, 1 / 8, 1]
    assert "192 k tuples/s at 1/64, 64 k tuples/s at 1/8, 128 k tuples/s at 1." in service_rates(
        groups
    )


def test_zero_is_drawn_beside_many_decades():
    assert "64 k tuples/s at 0, 128 k tuples/s at 1, 192 k tuples/s at 4096" in service_rates(
        swept("punctuation", 0, 1, 4096)
    )


@pytest.mark.parametrize("values", [(False, True), ("auto", 3), ("1/0", "2")])
def test_what_is_not_all_numbers_is_names(values):
    groups = swept("knob", *values)
    (sweep,) = sweeps(groups)
    assert not sweep.ordered
    assert [sweep.tick(value) for value, _ in sweep.points] == [str(value) for value in values]
    assert f"at {values[1]}" in service_rates(groups)


def test_a_sweep_of_one_round_is_not_called_a_median():
    run = samples.semi_stream_run(64, 1024)
    assert {chart.caption for chart in sweep_charts("c", group(run))} == {
        "Each point: the round of median throughput, of 5 checked ones; 2\N{NO-BREAK SPACE}values."
    }
    for record in run["records"]:
        record["rounds"] = 1
    assert {chart.caption for chart in sweep_charts("c", group(run))} == {
        "Each point: one checked round; 2\N{NO-BREAK SPACE}values."
    }


def test_a_setting_that_stays_is_no_sweep():
    assert sweeps(swept("store", "raw", "raw")) == []
