"""The report's sentences: who confirmed the results, and what a workload is."""

import pytest
from tests.host import report_samples as samples

from streamjoin.report.results import group
from streamjoin.report.sentences import arrival, join_kind, rounds_said, summarize

AGREEING = ("npj", "prj", "mway", "mpass")


def plain(text):
    return text.replace("\N{NO-BREAK SPACE}", " ")


def summary_of(engines, **workload):
    records = [samples.record(engine) for engine in engines]
    return summarize(group(samples.run(records, [samples.workload(**workload)])))


@pytest.mark.parametrize(
    ("count", "oracle", "text", "brief", "remark"),
    [
        (1, "oracle", "The one result agrees with the oracle.", "agrees", "with the oracle"),
        (2, "oracle", "Both results agree with the oracle.", "both agree", "with the oracle"),
        (3, None, "All 3 results agree with the oracle.", "all 3 agree", "with the oracle"),
        (4, "duckdb", "All 4 results agree with DuckDB.", "all 4 agree", "with DuckDB"),
    ],
)
def test_the_verdict_counts_as_a_person_would(count, oracle, text, brief, remark):
    found = summary_of(AGREEING[:count], oracle=oracle)
    assert (found.ok, found.text, found.brief, found.remark) == (True, text, brief, remark)


def several(*workloads):
    """One result on each workload: (name, oracle, rows of R)."""
    run = samples.run(
        [samples.record("npj", workload=name) for name, _, _ in workloads],
        [samples.workload(name, oracle=oracle, n_r=n_r) for name, oracle, n_r in workloads],
    )
    return summarize(group(run)).text


def test_the_verdict_names_the_second_oracle_and_where_it_answered():
    small, large = ("a", "oracle", 100), ("b", "duckdb", 10**6)
    assert several(small, large) == (
        "Both results agree with the oracle or, on the largest workload, with DuckDB."
    )
    assert several(large, ("c", "duckdb", 10**7), small) == (
        "All 3 results agree with the oracle or, on the 2 largest workloads, with DuckDB."
    )


def test_a_workload_is_called_the_largest_only_if_it_is():
    first, second = ("a", "oracle", 10**6), ("b", "duckdb", 100)
    assert several(first, second) == (
        "Both results agree with the oracle or, on b, with DuckDB."
    )  # fmt: skip
    assert several(first, second, ("c", "duckdb", 10**7)) == (
        "All 3 results agree with the oracle or, on 2 workloads, with DuckDB."
    )


def test_the_check_itself_is_not_counted_as_agreeing():
    found = summary_of(("npj", "prj", "duckdb"), oracle="duckdb")
    assert found.ok
    assert found.text == (
        "Both independent results agree with DuckDB; 1 more is the check itself."
    )  # fmt: skip
    run = samples.second_oracle_run()
    assert summarize(group(run)).text == (
        "All 3 independent results agree with the oracle or, on the largest workload, with "
        "DuckDB; 1 more is the check itself."
    )
    run["records"].append({**samples.wrong_record(), "workload": "equi-large"})
    assert summarize(group(run)).text.endswith("; 1 wrong, 1 the check itself.")


def test_nothing_but_the_check_confirms_nothing():
    found = summary_of(("duckdb",), oracle="duckdb")
    assert not found.ok
    assert found.text == "The one result is the check itself; nothing was held against it."
    (workload,) = group(
        samples.run([samples.record("duckdb")], [samples.workload(oracle="duckdb")])
    )
    assert workload.fastest is None


@pytest.mark.parametrize(
    ("record", "text", "tone"),
    [
        (samples.wrong_record(), "The one result differs from that of the oracle.", "bad"),
        (samples.failed_record(), "The one result is missing: the engine failed.", "bad"),
        (
            samples.record(checked=False),
            "The one result was not checked against the oracle.",
            "caution",
        ),
    ],
)
def test_a_single_result_that_does_not_agree_has_its_own_sentence(record, text, tone):
    found = summarize(group(samples.run([record])))
    assert (found.text, found.tone, found.ok) == (text, tone, False)


@pytest.mark.parametrize(
    ("rounds", "median", "other"),
    [
        ((1, 1), "one checked round", "one checked round"),
        ((3, 5), "median of 3 to 5 checked rounds",
         "the round of median throughput, of 3 to 5 checked ones"),
        ((5, 1), "median of 5 checked rounds, or one checked round",
         "the round of median throughput, of 5 checked ones, or one checked round"),
        ((None,), "rounds not recorded", "rounds not recorded"),
    ],
)  # fmt: skip
def test_medians_are_said_where_there_are_several_rounds(rounds, median, other):
    records = [samples.record(rounds=count) for count in rounds]
    ((found),) = group(samples.run(records))
    assert rounds_said(found.results) == median
    assert rounds_said(found.results, median=False) == other


@pytest.mark.parametrize(
    ("predicate", "kind"),
    [
        ("k", "Equi join"),
        ("origin and hour_utc=hour", "Equi join"),
        ("x=a:10:10 and y=b:-5:10", "Band join"),
        ("k and x=a:1:1", "Equi and band join"),
        ("", "Join"),
        (None, "Join"),
    ],
)
def test_the_kind_of_join_is_read_from_the_predicate(predicate, kind):
    assert join_kind({"predicate": predicate}) == kind
    assert join_kind({"predicate": predicate, "how": "anti"}) == f"Anti {kind.lower()}"


@pytest.mark.parametrize(
    ("workload", "text"),
    [
        ({}, ""),
        ({"arrival": None}, ""),
        ({"arrival": "instant", "speedup": 10}, "all handed over at once"),
        ({"arrival": "replay"}, "replayed at their arrival times"),
        ({"arrival": "replay", "speedup": 1.0}, "replayed at their arrival times"),
        (
            {"arrival": "replay", "speedup": 10},
            "replayed at their arrival times (\N{MULTIPLICATION SIGN} 10)",
        ),
    ],
)
def test_the_input_s_arrival_is_told_where_it_is_known(workload, text):
    assert plain(arrival(workload)) == text
