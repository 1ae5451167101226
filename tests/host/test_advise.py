"""Features of a sample, the tree's branches, and the thresholds that are fitted to measurements."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.host import cases

import streamjoin as sj
from streamjoin.advise import advise, choose, measure, sliding, thresholds
from streamjoin.advise.features import Features
from streamjoin.advise.thresholds import Thresholds
from streamjoin.advise.tree import walk
from streamjoin.bench import calibrate
from streamjoin.engines.job import Job
from streamjoin.errors import InputError
from streamjoin.tuples import Stream
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import parse_window

BRANCHES = Thresholds(
    high_duplication=5.0,
    many_threads=8,
    large_tuples=1000,
    high_key_skew=0.1,
    eager_high_duplication=20.0,
    eager_tuples_per_s={1: 1e6, 2: 2e6},
)
AT_REST = Features(500, 600, None, None, 1.0, 1.5, 0.01, 1.0, 600.0)


def keyed(keys: np.ndarray, name: str, ts: np.ndarray | None = None) -> Stream:
    times = np.zeros(len(keys), dtype=np.int64) if ts is None else ts.astype(np.int64)
    return Stream({"k": keys.astype(np.int32)}, times, name)


def job_of(r: Stream, s: Stream, **how: object) -> Job:
    window = parse_window(str(how.pop("window", "all")))
    return Job(r, s, Predicate.parse(on="k"), window, **how)  # type: ignore[arg-type]


@pytest.mark.parametrize("rows", [1000, 300_000])
@pytest.mark.parametrize("duplication", [1, 10, 100])
def test_duplication_and_pairs_are_estimated_from_a_sample(rows: int, duplication: int) -> None:
    rng = np.random.default_rng(7)
    keys = [rng.permutation(np.arange(rows) // duplication) for _ in range(2)]
    features = measure(job_of(keyed(keys[0], "r"), keyed(keys[1], "s")))
    near = pytest.approx(duplication, rel=1e-9 if rows == 1000 else 0.15)
    assert features.r_duplication == near
    assert features.s_duplication == near
    assert features.pairs == pytest.approx(rows * duplication, rel=1e-9 if rows == 1000 else 0.15)


def test_keys_without_a_partner_do_not_count_as_equal() -> None:
    strings = [np.array([f"{side}{number}" for number in range(50)], dtype=object) for side in "rs"]
    rest = np.zeros(50, dtype=np.int64)
    features = measure(
        job_of(Stream({"k": strings[0]}, rest, "r"), Stream({"k": strings[1]}, rest, "s"))
    )
    assert (features.r_duplication, features.s_duplication, features.pairs) == (1.0, 1.0, 0.0)


def test_rates_and_time_skew_are_those_of_the_replay() -> None:
    ts = np.arange(10_000) * 100  # 10 tuples a millisecond for a second
    burst = np.where(np.arange(10_000) < 5000, 0, ts)
    r, s = keyed(ts, "r", ts), keyed(ts, "s", burst)
    features = measure(job_of(r, s, arrival="replay", speedup=2.0))
    assert features.r_rate == pytest.approx(2 * 10_000, rel=1e-3)
    assert features.time_skew == pytest.approx(50, rel=0.01)
    still = measure(job_of(r, s))
    assert (still.r_rate, still.s_rate, still.time_skew) == (None, None, 1.0)


def test_a_tumbling_window_is_measured_on_one_window() -> None:
    ts = np.arange(10_000) * 100
    keys = np.arange(10_000) % 500
    features = measure(job_of(keyed(keys, "r", ts), keyed(keys, "s", ts), window="tumbling:100ms"))
    assert (features.r_tuples, features.s_tuples) == (1000, 1000)
    assert features.r_duplication == pytest.approx(2.0)


@pytest.mark.parametrize("name", [case.name for case in cases.hard_cases()])
def test_every_hard_case_can_be_advised_on(name: str) -> None:
    case = next(case for case in cases.hard_cases() if case.name == name)
    for arrival in ("instant", "replay"):
        for window in ("all", "tumbling:7us"):
            job = Job(case.r, case.s, cases.EQUI, parse_window(window), arrival=arrival)
            assert choose(job).name == advise(job).engine


@pytest.mark.parametrize(
    ("changes", "threads", "goal", "engine"),
    [
        ({}, 1, "throughput", "prj"),
        ({"r_tuples": 100, "s_tuples": 100}, 1, "throughput", "npj"),
        ({"key_skew": 0.1}, 1, "throughput", "npj"),
        ({"r_duplication": 5.0, "s_duplication": 9.0}, 7, "throughput", "mway"),
        ({"r_duplication": 5.0, "s_duplication": 9.0}, 8, "throughput", "mpass"),
        ({"r_duplication": 99.0}, 1, "throughput", "prj"),  # one stream alone repeats its keys
        ({"r_rate": 2e5, "s_rate": 3e5}, 1, "latency", "shj-jm"),
        ({"r_rate": 4e5, "s_rate": 4e5}, 1, "latency", "shj-jm"),
        ({"r_rate": 4e5, "s_rate": 4e5}, 1, "throughput", "prj"),
        ({"r_rate": 9e3, "s_rate": 8e5}, 1, "throughput", "shj-jm"),
        (
            {"r_rate": 4e5, "s_rate": 4e5, "r_duplication": 20.0, "s_duplication": 20.0},
            1,
            "latency",
            "pmj-jb",
        ),
        ({"r_rate": 6e5, "s_rate": 6e5}, 1, "latency", "prj"),
        ({"r_rate": 6e5, "s_rate": 6e5}, 2, "latency", "shj-jm"),
    ],
)
def test_every_leaf_of_the_tree_is_reached(
    changes: dict[str, float], threads: int, goal: str, engine: str
) -> None:
    features = replace(AT_REST, **changes)  # type: ignore[arg-type]
    chosen, reasons = walk(features, BRANCHES, threads, goal)
    assert chosen == engine
    assert reasons


def test_auto_joins_what_the_tree_knows_nothing_of() -> None:
    ts = {"k": np.array([1, 2, 1]), "ts": np.array([1, 2, 3])}
    assert sj.join(ts, ts, on="k", window="count:2").metrics["engine"] == "kang"
    assert sj.join(ts, ts, band="k=k:1:1").metrics["engine"] == "kang"
    assert sj.join(ts, ts, on="k", order="outer").metrics["engine"] == "kang"
    assert sj.join(ts, ts, on="k").metrics["engine"] == "npj"


MEETS_MANY = sliding.SlidingFeatures(10**6, 10**6, 10**5, 1, 1e-4, 1)


@pytest.mark.parametrize(
    ("changes", "threads", "engine"),
    [
        ({}, 1, "ibwj-flat"),
        ({}, 2, "ibwj-flat"),
        ({"passed": 0.5}, 1, "ibwj-flat"),
        ({"passed": 0.5, "terms": 2}, 1, "kang"),
        ({"passed": 0.5, "terms": 2}, 2, "splitjoin"),
        ({"passed": 0.5, "terms": 2, "bands": 0}, 2, "ibwj-flat"),
        ({"comparisons": 1000}, 2, "ibwj-flat"),
        ({"comparisons": 1000, "terms": 2}, 2, "kang"),
        ({"comparisons": 7000, "terms": 3}, 2, "ibwj-flat"),
        ({"comparisons": 2000, "terms": 2}, 2, "ibwj-flat"),
        ({"comparisons": 8, "r_tuples": 9000}, 2, "ibwj-flat"),
        ({"comparisons": 100, "r_tuples": 1000, "s_tuples": 1000}, 2, "kang"),
        ({"comparisons": 8, "r_tuples": 5000, "s_tuples": 90, "bands": 0}, 1, "kang"),
    ],
)
def test_every_leaf_of_the_tree_of_sliding_windows_is_reached(
    changes: dict[str, float], threads: int, engine: str
) -> None:
    features = replace(MEETS_MANY, **changes)  # type: ignore[arg-type]  # fields by name
    chosen, reasons = sliding.walk(features, threads)
    assert chosen == engine
    assert reasons


@pytest.mark.parametrize(
    ("window", "band", "engine"),
    [
        ("count:8", "k=k:0:0", "ibwj-flat"),
        ("count:2000", "k=k:0:0", "ibwj-flat"),
        ("time:20000us", "k=k:0:0", "ibwj-flat"),
        ("count:2000", "k=k:9000:9000", "ibwj-flat"),
    ],
)
def test_a_sliding_window_gets_the_engine_for_what_an_arrival_meets(
    window: str, band: str, engine: str
) -> None:
    rng = np.random.default_rng(7)
    r, s = (keyed(rng.integers(0, 10_000, 30_000), name, np.arange(30_000)) for name in "rs")
    job = Job(r, s, Predicate.parse(band=band), parse_window(window))
    advice = advise(job)
    assert advice.engine == choose(job).name == engine
    met = dict(advice.features.table_rows())
    assert met["tuples, R and S"] == "30,000, 30,000"
    assert isinstance(advice.features, sliding.SlidingFeatures)
    length = int("".join(filter(str.isdigit, window)))
    assert advice.features.comparisons == pytest.approx(length, rel=0.4)
    assert advice.features.passed == pytest.approx(1e-4 if ":0" in band else 0.99, rel=0.4)


def test_advice_survives_empty_streams_and_missing_values() -> None:
    empty, some = keyed(np.arange(0), "r"), keyed(np.arange(9), "s", np.arange(9))
    none = replace(some, missing=np.ones(9, dtype=np.bool_))
    for r, s in ((empty, some), (some, empty), (empty, empty), (none, some), (some, none)):
        job = Job(r, s, Predicate.parse(on="k"), parse_window("count:3"))
        assert choose(job).name == "kang"


def point(tuples: int, duplication: float, skew: float, seconds: dict[str, float]) -> object:
    half = tuples // 2
    features = Features(half, half, None, None, duplication, duplication, skew, 1.0, half)
    return calibrate.Point(features, 1, seconds)


def test_fitted_thresholds_lie_between_the_points_where_engines_overtake() -> None:
    hash_wins = {"npj": 1.0, "prj": 0.5, "mway": 2.0, "mpass": 3.0}
    sort_wins = {"npj": 9.0, "prj": 8.0, "mway": 2.0, "mpass": 3.0}
    small = {"npj": 0.1, "prj": 0.2, "mway": 0.3, "mpass": 0.4}
    lazy = [
        point(1000, 1, 0.001, small),
        point(1_000_000, 1, 0.001, hash_wins),
        point(1_000_000, 10, 0.001, hash_wins),
        point(1_000_000, 100, 0.001, sort_wins),
    ]
    eager = [
        point(1000, 1, 0.001, {"shj-jm": 0.001, "pmj-jb": 0.002}),
        point(1000, 100, 0.001, {"shj-jm": 0.009, "pmj-jb": 0.002}),
    ]
    fitted = calibrate.fit(lazy, eager)  # type: ignore[arg-type]
    assert 10 < fitted.high_duplication < 100
    assert 1000 < fitted.large_tuples < 1_000_000
    assert fitted.eager_high_duplication == 100
    assert fitted.eager_tuples_per_s == {1: pytest.approx(1e6)}
    assert calibrate.regret(lazy, fitted) == (1.0, 1.0)  # type: ignore[arg-type]


def test_calibration_measures_and_keeps_its_evidence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from streamjoin.cli import main

    monkeypatch.setattr(calibrate, "TUPLES", (200, 2000))
    monkeypatch.setattr(calibrate, "EAGER_TUPLES", 500)
    monkeypatch.setattr(calibrate, "LONGEST_ROUND_TUPLES", 1)
    monkeypatch.setattr(thresholds, "calibrated_path", lambda: tmp_path / "own" / "mine.json")
    assert main(["advise", "--calibrate", "--threads", "2", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    kept = json.loads((tmp_path / "own" / "mine.json").read_text())
    assert printed == kept
    assert {each["threads"] for each in kept["evidence"]} == {1, 2}
    assert kept["regret"]["max"] >= kept["regret"]["mean"] >= 1
    loaded, path = thresholds.load()
    assert path == tmp_path / "own" / "mine.json"
    assert set(loaded.eager_tuples_per_s) == {1, 2}


def test_a_damaged_thresholds_file_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    damaged = tmp_path / "thresholds.json"
    damaged.write_text('{"thresholds": {"high_duplication": 1}}')
    monkeypatch.setattr(thresholds, "calibrated_path", lambda: damaged)
    with pytest.raises(InputError, match=r"is not a file of thresholds .* --calibrate"):
        thresholds.load()


def test_the_packages_own_thresholds_follow_from_the_record_of_their_calibration() -> None:
    shipped = json.loads(thresholds.SHIPPED.read_text())
    record = json.loads(Path("benchmarks/calibration/thresholds.json").read_text())
    again = [
        calibrate.Point(Features(**each["features"]), each["threads"], each["seconds"])
        for each in record["evidence"]
    ]
    lazy = [each for each in again if "npj" in each.seconds]
    eager = [each for each in again if "shj-jm" in each.seconds]
    assert calibrate.fit(lazy, eager) == Thresholds.from_dict(shipped["thresholds"])
    worst, mean = calibrate.regret(lazy, Thresholds.from_dict(shipped["thresholds"]))
    assert (worst, mean) == (shipped["regret"]["max"], shipped["regret"]["mean"])


def test_advice_needs_a_workload_or_calibration(capsys: pytest.CaptureFixture[str]) -> None:
    from streamjoin.cli import main

    assert main(["advise"]) == 2
    assert "name a workload folder" in capsys.readouterr().err
    assert main(["advise", "runs", "--calibrate"]) == 2
    assert "takes no workload folder" in capsys.readouterr().err


def test_files_are_advised_on_as_their_join_would_choose(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from streamjoin.cli import main

    monkeypatch.chdir(tmp_path)
    for side in "rs":
        Path(f"{side}.csv").write_text("key,at\n1,5\n2,7\n")
    files = ["--r", "r.csv", "--s", "s.csv"]
    for words in (["--on", "key"], ["--band", "key=key:1:1", "--window", "count:2"]):
        assert main(["advise", *files, *words, "--arrival", "instant", "--json"]) == 0
        chosen = json.loads(capsys.readouterr().out)["engine"]
        assert main(["join", *files, *words, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["engine"] == chosen
    by_time = ["--on", "key", "--window", "time:5us", "--ts", "at", "--ts-unit", "us"]
    assert main(["advise", *files, *by_time, "--threads", "1"]) == 0
    assert main(["advise", *files, "--on", "key", "--rate", "1000"]) == 0
    capsys.readouterr()
    for given, sentence in (
        (files[:2], "--r is one of two inputs: add --s FILE"),
        ([*files, "runs"], "name a workload folder"),
        ([*files, "--calibrate"], "takes no workload folder or file"),
        (["--r", "-", *files[2:]], "not standard input: name a file"),
        (["runs", "--ts", "at"], "--ts is of both inputs; a workload has its own: drop it"),
        (files, "a predicate is needed"),
    ):
        assert main(["advise", *given]) == 2
        assert sentence in capsys.readouterr().err


def test_latency_is_a_goal_of_the_studys_tree_alone() -> None:
    times = {"k": np.arange(9), "ts": np.arange(9) * 1000}
    told = sj.advise(times, times, on="k", window="time:1s", arrival="replay")
    assert told.goal == "throughput"
    assert str(told).startswith(f"{told.engine}, for throughput:\n- an arrival meets")
    assert f"<b>{told.engine}</b>" in told._repr_html_()
    with pytest.raises(InputError, match=r"^goal latency has an effect .*alone: drop goal$"):
        sj.advise(times, times, on="k", window="time:1s", arrival="replay", goal="latency")
    assert sj.advise(times, times, on="k", arrival="replay", goal="latency").goal == "latency"
