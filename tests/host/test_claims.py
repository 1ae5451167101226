"""Claims of the papers: ratios at points, refused where there is none."""

import math
import re
import statistics
from typing import Any

import pytest

from streamjoin.bench import claims, experiments
from streamjoin.bench.claims import clock
from streamjoin.errors import InputError
from streamjoin.report import sentences


def record_of(engine: str, rate: float, p95: float, **settings: Any) -> dict[str, Any]:
    return {
        "workload": " ".join(f"{name}={value}" for name, value in settings.items()),
        "family": "pairs",
        "engine": engine,
        "status": "ok",
        "checked": True,
        "threads": settings.get("threads", 1),
        "settings": settings,
        "throughput_tuples_per_s": {"median": rate},
        "latency_us": {"p95": p95},
        "semi_stream": {"service_rate_tuples_per_s": 10 * rate},
    }


ENTRANTS = [
    ("pairs", ("npj", "prj"), {"load": load, **threads}, None)
    for load in (1, 3)
    for threads in ({}, {"threads": 1}, {"threads": 2})
]
CLAIM = {"text": "twice", "published": 2.0, "workload": "pairs", "engine": "npj", "over": "prj"}


@pytest.mark.parametrize(
    ("asked", "ratios"),
    [
        ({}, [2.0, 3.0, 4.0]),
        ({"where": {"threads": 2}}, [4.0]),
        ({"where": {"load": 1}}, [2.0, 4.0]),
        ({"where": {"load": 3, "threads": 2}}, []),
        ({"of": "service_rate"}, [2.0, 3.0, 4.0]),
        ({"of": "latency"}, [0.5, 0.5, 0.1]),
        ({"over": "npj", "where": {"threads": 2}, "over_where": {"threads": 1}}, [6.0]),
        ({"by": "max"}, [2.0, 3.0, 4.0]),
        ({"by": "min", "where": {"threads": 1}}, [2.0, 3.0]),
    ],
)
def test_a_claim_is_a_ratio_at_every_point_that_it_is_of(
    asked: dict[str, Any], ratios: list[float]
) -> None:
    records = [
        record_of("npj", 20, 10, load=1, threads=1),
        record_of("prj", 10, 5, load=1, threads=1),
        record_of("npj", 30, 10, load=3, threads=1),
        record_of("prj", 10, 5, load=3, threads=1),
        record_of("npj", 120, 10, load=1, threads=2),
        record_of("prj", 30, 1, load=1, threads=2),
        {**record_of("npj", 1, 1, load=1, threads=1), "family": "others"},
    ]
    (claim,) = claims.read([CLAIM | asked], "x.toml", ENTRANTS)
    found = claim.held(records)
    assert [point["ratio"] for point in found["points"]] == pytest.approx(ratios)
    assert all(point["point"].startswith("load=") for point in found["points"])
    rule = {"max": max, "min": min}.get(str(asked.get("by")), statistics.median)
    if ratios:
        assert found["here"] == pytest.approx(rule(ratios))
        assert (found["min"], found["max"]) == pytest.approx((min(ratios), max(ratios)))
    else:
        assert found["here"] is found["min"] is found["max"] is None


@pytest.mark.parametrize(
    ("of", "unlike"),
    [
        ("throughput", {"backend": "model"}),
        ("throughput", {"clock_hz": 1e8}),
        ("service_rate", {"clock_source": "assumed"}),
        ("latency", {"latency_from": "acceptance"}),
    ],
)
def test_a_claim_has_no_ratio_of_unlike_quantities(of: str, unlike: dict[str, Any]) -> None:
    (claim,) = claims.read([CLAIM | {"of": of}], "x.toml", ENTRANTS)
    alike = [
        {**record_of(engine, 20, 10, load=1), "latency_from": "run start"}
        for engine in ("npj", "prj")
    ]
    assert len(claim.held(alike)["points"]) == 1
    assert claim.held([{**alike[0], **unlike}, alike[1]])["points"] == []


@pytest.mark.parametrize(
    ("asked", "ratios", "verdict"),
    [
        ({}, [1.8], "holds"),
        ({}, [1.5], "holds in part"),  # half of the published excess
        ({}, [1.49], "does not hold here"),
        ({"published": 7.5}, [1.12], "does not hold here"),
        ({"published": 1.1}, [1.09], "does not hold here"),  # within the noise of no difference
        ({"published": 1.1}, [1.1], "holds"),
        ({}, [0.5, 1.0, 1.9], "holds in part"),  # at one point
        ({}, [1.09, 0.2], "does not hold here"),
        ({"by": "max"}, [0.2, 1.8], "holds"),
        ({"by": "max"}, [0.2, 1.0], "does not hold here"),
        ({"published": 1}, [1.11], "holds"),  # a direction alone
        ({"published": 1}, [1.09], "holds in part"),
        ({"published": 1}, [0.97], "holds in part"),
        ({"published": 1}, [0.89], "does not hold here"),
        ({"published": 1, "says": "at most"}, [0.89], "holds"),
        ({"published": 1, "says": "at most"}, [0.97], "holds in part"),
        ({"published": 1, "says": "at most"}, [1.03], "holds in part"),
        ({"published": 1, "says": "at most"}, [1.2], "does not hold here"),
        ({"published": 0.9, "says": "at most"}, [0.95], "does not hold here"),
        ({"by": "min", "published": 1}, [0.9, 3.0], "holds in part"),
        ({"by": "min", "published": 1}, [0.8, 3.0], "holds in part"),
        ({"says": "about"}, [2.5], "holds"),
        ({"says": "about"}, [2.6], "holds in part"),
        ({"says": "about", "published": 1}, [1.3], "does not hold here"),
        ({"says": "at most", "published": 0.5}, [0.55], "holds"),
        ({"says": "at most", "published": 0.5}, [0.75], "holds in part"),
        ({"says": "at most", "published": 0.5}, [0.8], "does not hold here"),
        ({"published": 0.8}, [0.5], "does not hold here"),
        ({"published": 0.9}, [0.85], "holds"),  # at least comparable: no side of 1
        ({}, [], "not measured"),
    ],
)
def test_the_verdict_follows_from_the_rule(
    asked: dict[str, Any], ratios: list[float], verdict: str
) -> None:
    (claim,) = claims.read([CLAIM | asked], "x.toml", ENTRANTS)
    assert claim.verdict(ratios) == verdict
    assert verdict in claims.VERDICTS


def test_of_several_engines_the_best_at_each_point_counts_and_a_share_is_not_divided() -> None:
    rates = {"npj": 20, "prj": 30, "duckdb": 10, "polars": 5}
    records = [record_of(name, rate, 100 / rate, load=1) for name, rate in rates.items()]
    records.append(record_of("npj", 90, 1, load=2))
    entrants = [("pairs", tuple(rates), {"load": load}, 1) for load in (1, 3)]
    asked = {"engine": ["npj", "prj"], "over": ["duckdb", "polars"], "where": {"load": [1, 3]}}
    for of, ratio in (("throughput", 3.0), ("latency", 3.0)):
        (claim,) = claims.read([CLAIM | asked | {"of": of}], "x.toml", entrants)
        (point,) = claim.held(records)["points"]
        assert point["ratio"] == pytest.approx(ratio)
        assert (point["best"], point["holds"]) == (["prj", "duckdb"], True)
    alone = {key: value for key, value in CLAIM.items() if key != "over"}
    with pytest.raises(InputError, match="throughput is divided: add over, another engine, or"):
        claims.read([alone], "x.toml", entrants)
    waits = record_of("npj", 1, 1) | {"phases_ms": {"wait": 30.0, "probe": 10.0}}
    share = alone | {"of": "wait_share", "published": 0.5}
    (claim,) = claims.read([share], "x.toml", ENTRANTS[:1])
    held = claim.held([waits])
    assert (held["here"], held["verdict"]) == (0.75, "holds")


def test_each_measure_is_read_from_where_records_have_it() -> None:
    record = record_of("ssbj", 40, 7) | {
        "wall_s": {"median": 2.0},
        "cpu_s": {"median": 3.0},
        "threads": 2,
        "progress": [[0.0, 1.0], [0.25, 2.0], [0.5, 4.0], [1.0, 9.0]],
        "phases_ms": {"wait": 1.0, "merge": 3.0},
        "structure_bytes": 100,
        "peak_bytes": 300,
        "counters": {"l1d_read_misses": 5},
    }
    record["latency_us"] = {"p50": 3, "p95": 7}
    found = {name: measure.get(record) for name, measure in claims.MEASURES.items()}
    assert {name: value for name, value in found.items() if value is not None} == {
        "throughput": 40,
        "latency": 7,
        "median_latency": 3,
        "half": 4,
        "service_rate": 400,
        "cpu": 3,
        "memory": 100,
        "peak": 300,
        "l1d_misses": 5,
        "merge": 3,
        "wait_share": 0.25,
        "merge_share": 0.75,
        "cpu_share": 0.75,
    }
    semi = {
        "memory_bytes": {"queue": 6, "rows": 4, "free": 9},
        "cache_share": 0.4,
        "loop_us": {"read": 3.0, "join": 1.0},
        "cost_model": {"loop_us": 5.0},
    }
    record = {"semi_stream": semi}
    waited = {"phases_ms": {"wait": None, "merge": 1.0, "probe": 3.0}}
    assert claims.MEASURES["merge_share"].get(waited) == 0.25
    assert claims.MEASURES["wait_share"].get(waited) is None
    shares = ("memory", "cache_share", "model_share")
    assert [claims.MEASURES[name].get(record) for name in shares] == [10, 0.4, 0.8]
    assert set(sentences.CLAIM_MEASURES) == {*claims.MEASURES, clock.CLAIM.of}


def test_every_published_claim_has_a_point_and_pools_only_what_it_names() -> None:
    for name in experiments.names():
        for size in experiments.SIZES:
            experiment = experiments.read(name, size)
            for claim in experiment.claims:
                swept = [
                    {"threads": point.table.get("threads"), **point.settings}
                    for point in experiment.points
                    if point.family == claim.workload
                ]
                fitting = [
                    settings
                    for settings in swept
                    if all(
                        settings.get(key) in (value if isinstance(value, list) else [value])
                        for key, value in claim.where.items()
                    )
                ]
                assert fitting, (name, size, claim.text)
                # A share of R and a number of threads are another experiment each.
                for key in ("threads", "kept", "params.r_tuples"):
                    assert len({str(settings.get(key)) for settings in fitting}) == 1, claim.text
                if " % of R" in claim.text:
                    assert len(fitting) == 1, claim.text


def test_a_claim_of_what_was_not_measured_has_no_ratio() -> None:
    (claim,) = claims.read([CLAIM | {"why": "no counters"}], "x.toml", ENTRANTS)
    failed = {**record_of("prj", 1, 1), "throughput_tuples_per_s": None}
    held = claim.held([record_of("npj", 1, 1), failed])
    assert (held["points"], held["verdict"], held["why"]) == ([], "not measured", "no counters")
    assert (
        sentences.claim_said(held) == "no point was measured. Found by an earlier run: no counters"
    )


@pytest.mark.parametrize("changed", [{"status": "wrong"}, {"status": "failed"}, {"checked": False}])
def test_a_claim_has_no_ratio_of_a_result_that_is_wrong_or_unchecked(
    changed: dict[str, Any],
) -> None:
    (claim,) = claims.read([CLAIM], "x.toml", ENTRANTS[:1])
    above, below = record_of("npj", 2, 1), record_of("prj", 1, 1)
    assert claim.held([above, below])["verdict"] == "holds"
    assert claim.held([{**above, **changed}, below])["verdict"] == "not measured"
    assert claim.held([above, {**below, **changed}])["verdict"] == "not measured"


@pytest.mark.parametrize("by", ["min", "median", "max"])
def test_a_claim_whose_points_lack_holds_in_part_at_most_and_says_how_many(by: str) -> None:
    entrants = [("pairs", ("npj", "prj"), {"load": load}, 1) for load in (1, 2, 3)]
    (claim,) = claims.read([CLAIM | {"by": by}], "x.toml", entrants)
    records = [
        record_of(name, rate, 1, load=load)
        for load in (1, 2, 3)
        for name, rate in (("npj", 5 + load), ("prj", 2))
    ]
    assert claim.held(records)["verdict"] == "holds"
    failed = {**records[4], "status": "failed", "checked": False}
    for left in (records[:4], [*records[:4], failed, records[5]], records[:5]):
        held = claim.held(left)
        assert (held["verdict"], held["asked"]) == ("holds in part", 3)
        assert held["why"] == "1 of 3 points have no figure"
        assert "of 2 of 3 points, 3.00 to 3.50 x" in sentences.claim_rule(held)
    assert sentences.claim_rule(claim.held(records[:2])) == "1 of 3 points"
    (claim,) = claims.read([CLAIM | {"by": by, "published": 9}], "x.toml", entrants)
    assert claim.held(records[:4])["verdict"] == "does not hold here"


def test_the_best_of_several_is_not_known_where_one_of_them_is_wrong() -> None:
    entrants = [("pairs", ("npj", "prj", "mway"), {"load": 1}, 1)]
    (claim,) = claims.read([CLAIM | {"over": ["prj", "mway"]}], "x.toml", entrants)
    records = [record_of(name, rate, 1, load=1) for name, rate in (("npj", 4), ("prj", 1))]
    faster = record_of("mway", 3, 1, load=1)
    assert claim.held([*records, faster])["verdict"] == "does not hold here"
    assert claim.held([*records, {**faster, "status": "wrong"}])["verdict"] == "not measured"


def test_a_cause_of_the_file_is_said_to_be_of_an_earlier_run_where_the_claim_does_not_hold() -> (
    None
):
    (claim,) = claims.read([CLAIM | {"why": "a small table"}], "x.toml", ENTRANTS[:1])
    slow, quick = ([record_of("npj", rate, 1), record_of("prj", 1, 1)] for rate in (1, 5))
    said = sentences.claim_said(claim.held(slow))
    assert said.endswith(". Found by an earlier run: a small table")
    assert "a small table" not in sentences.claim_said(claim.held(quick))
    (claim,) = claims.read([CLAIM], "x.toml", ENTRANTS[:1])
    said = sentences.claim_said(claim.held(slow))
    assert said.endswith(". Why: no run has looked for the cause")


@pytest.mark.parametrize(
    "asked",
    [
        {"over": "npj"},
        {"over": ["prj", "npj"]},
        {"engine": ["npj", "prj"]},
        {"over": "npj", "where": {"load": 1}, "over_where": {"load": 1}},
        {"over": "npj", "over_where": {"load": 1}},
    ],
)
def test_a_figure_that_is_divided_by_itself_is_refused(asked: dict[str, Any]) -> None:
    entrants = [("pairs", ("npj", "prj"), {"load": load}, 1) for load in (1, 3)]
    with pytest.raises(InputError, match=r"claim 1: [np][pr]j with load = 1 is divided by itself"):
        claims.read([CLAIM | asked], "x.toml", entrants)
    other = {"over": "npj", "where": {"load": 3}, "over_where": {"load": 1}}
    claims.read([CLAIM | other], "x.toml", entrants)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"workload": 3}, "workload must be a string, not 3"),
        ({"published": 0}, "published must be a ratio above 0, not 0"),
        ({"published": True}, "published must be a ratio above 0, not True"),
        ({"of": "speed"}, "of must be one of throughput, latency, median_latency, half, "),
        ({"says": "less"}, "says must be one of at least, at most, about, not 'less'"),
        ({"engine": 3}, "engine must be the name of an engine, or several, not 3"),
        ({"engine": ["npj", "mway"]}, "no point of 'pairs' runs 'mway'"),
        ({"figures": 5}, "figures must be a list as ['ssbj 5a'], not 5"),
        ({"where": [1]}, "where must be a table of settings, not [1]"),
        ({"engine": "mway"}, "no point of 'pairs' runs 'mway'"),
        ({"workload": "else"}, "no point of 'else' runs 'npj'"),
        ({"over": "pmj"}, "no point of 'pairs' runs 'pmj'"),
        ({"ratio": 2}, "has no key 'ratio'; it takes text"),
        ({"engine": []}, "engine must be the name of an engine, or several, not []"),
        ({"over": []}, "over must be the name of an engine, or several, not []"),
        ({"text": ""}, "text must not be empty"),
        ({"published": math.nan}, "published must be a ratio above 0, not nan"),
        ({"published": math.inf}, "published must be a ratio above 0, not inf"),
        ({"published": 10**400}, "published must be a ratio above 0, not 1000"),
        ({"where": {"load": 5}}, "no point of 'pairs' has load = 5"),
        ({"where": {"load": [1, 5]}}, "no point of 'pairs' has load = 5"),
        ({"where": {"load": []}}, "load must have a value in where, not []"),
        ({"over_where": {"load": 5}}, "no point of 'pairs' with any settings has one beside it "),
        ({"over_where": {"load": [1]}}, "no point of 'pairs' with any settings has one beside it "),
        ({"by": "mean"}, "by must be one of median, max, min, not 'mean'"),
        ({"where": {"lod": 1}}, "'pairs' has no setting 'lod'; it has load, threads"),
        ({"over_where": {"lod": 1}}, "'pairs' has no setting 'lod'; it has load, threads"),
    ],
)
def test_a_claim_that_is_none_is_refused(wrong: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match="^x.toml: claim 1: " + re.escape(sentence)):
        claims.read([CLAIM | wrong], "x.toml", ENTRANTS)


def test_a_claim_speaks_of_threads_that_its_points_have() -> None:
    def of(threads: int | None, **asked: Any) -> None:
        claims.read([CLAIM | asked], "x.toml", [("pairs", ("npj", "prj"), {"load": 1}, threads)])

    of(2, where={"threads": 2})
    of(None, where={"threads": 2})  # as --threads says
    with pytest.raises(InputError, match="no point of 'pairs' has threads = 2"):
        of(1, where={"threads": 2})
    with pytest.raises(InputError, match="has one beside it with threads = 1 that runs prj"):
        of(2, over_where={"threads": 1})  # threads are not swept
    pair = [("pairs", ("npj",), {"load": 1}, 1), ("pairs", ("prj",), {"load": 3}, 1)]
    with pytest.raises(InputError, match="'pairs' with load = 3 runs npj"):
        claims.read([CLAIM | {"where": {"load": 3}}], "x.toml", pair)
    claims.read([CLAIM | {"over_where": {"load": 3}}], "x.toml", pair)
