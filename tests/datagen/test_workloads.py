"""The tables of the workloads, without Spark."""

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin_datagen.params import make_spec
from streamjoin_datagen.rows.arrivals import Poisson
from streamjoin_datagen.spec import WorkloadSpec
from streamjoin_datagen.tables import build

SPECS: list[tuple[str, dict[str, Any]]] = [
    ("band", {}),
    ("equi", {}),
    ("equi", {"keys": "duplicated", "duplicates": 4}),
    ("equi", {"keys": "zipf", "skew": 0.8, "rate": 20}),
]

GOLDEN_BAND = {
    "r": [(4652, 4132.208984375, "ETKWgk4yHTZk9Wsvnqgi", 0),
          (6442, 2191.201904296875, "6D5anCU1pjjscsIE_BYZ", 500)],
    "s": [(8365, 6928.421875, 6229.989291630548, False, 0),
          (9039, 3034.51806640625, 5811.398715015626, False, 500)],
}  # fmt: skip

# The keys and arrival times of rows 0 to 2 of R and of S; payloads do not depend on the keys.
GOLDEN_EQUI: list[tuple[dict[str, Any], list[int], list[int], list[int]]] = [
    ({}, [593514, 28337, 505100], [12998, 263374, 396083], [0, 0, 0]),
    (
        {"keys": "duplicated", "duplicates": 4},
        [118871, 83613, 54777],
        [3250, 65844, 99021],
        [0, 0, 0],
    ),
    (
        {"keys": "zipf", "skew": 0.8, "rate": 20},
        [85551, 409603, 336905],
        [682549, 731633, 970106],
        [0, 50, 100],
    ),
    (
        {"rate": 20, "arrivals": "poisson"},
        [593514, 28337, 505100],
        [12998, 263374, 396083],
        [90, 101, 202],
    ),
]


def column(spec: WorkloadSpec, stream: str, name: str) -> Any:
    return build(spec, stream, 0, spec.rows(stream)).column(name).to_numpy()


@pytest.mark.parametrize("stream", ["r", "s"])
def test_rows_of_the_band_workload_stay_what_they_are(stream: str) -> None:
    rows = build(make_spec("band", 1, {}), stream, 0, 2).to_pylist()
    assert [tuple(row.values()) for row in rows] == GOLDEN_BAND[stream]


@pytest.mark.parametrize(("params", "r_keys", "s_keys", "r_ts"), GOLDEN_EQUI)
def test_rows_of_the_equi_workload_stay_what_they_are(
    params: dict[str, Any], r_keys: list[int], s_keys: list[int], r_ts: list[int]
) -> None:
    spec = make_spec("equi", 1, params)
    r, s = (build(spec, stream, 0, 3).to_pydict() for stream in ("r", "s"))
    assert (r["k"], s["k"], r["ts"]) == (r_keys, s_keys, r_ts)
    assert r["v"] == [276707264, 557750101, 41908160]
    assert s["v"] == [228716049, 887345460, 649331374]


@pytest.mark.parametrize(("kind", "params"), SPECS)
@pytest.mark.parametrize("stream", ["r", "s"])
def test_any_split_gives_the_same_rows(kind: str, params: dict[str, Any], stream: str) -> None:
    spec = make_spec(kind, 5, params)
    whole = build(spec, stream, 0, 1000)
    parts = [build(spec, stream, first, count) for first, count in ((0, 1), (1, 700), (701, 299))]
    assert pa.concat_tables(parts).combine_chunks() == whole.combine_chunks()


def test_a_split_of_poisson_arrivals_starts_where_the_gaps_before_it_end() -> None:
    spec = make_spec("band", 5, {"arrivals": "poisson"})
    whole = build(spec, "s", 0, 1000).column("ts").to_pylist()
    start_ns = int(Poisson(5, "s", 2000.0).gaps_ns(0, 600).sum())
    assert build(spec, "s", 600, 400, start_ns).column("ts").to_pylist() == whole[600:]


@pytest.mark.parametrize("arrivals", ["regular", "poisson"])
@pytest.mark.parametrize("rate", [0.3, 2000.0, 1e6 / 3, 9e7])
def test_arrival_times_never_go_back(arrivals: str, rate: float) -> None:
    params = {"rate_r": rate, "duration_s": 5000 / rate, "arrivals": arrivals}
    times = column(make_spec("band", 3, params), "r", "ts")
    assert len(times) == 5000
    assert times[0] >= 0
    assert (np.diff(times) >= 0).all()
    assert times[-1] == pytest.approx(5000 * 1e6 / rate, rel=0.05, abs=1)


def test_poisson_gaps_are_exponential() -> None:
    gaps = Poisson(21, "r", 1000.0).gaps_ns(0, 100_000) / 1e6
    assert gaps.mean() == pytest.approx(1, rel=0.02)
    assert gaps.std() == pytest.approx(1, rel=0.02)
    assert np.mean(gaps > np.log(2)) == pytest.approx(0.5, abs=0.01)


def test_data_at_rest_has_no_arrival_times() -> None:
    spec = make_spec("equi", 1, {"r_tuples": 100, "arrivals": "poisson"})
    assert not column(spec, "r", "ts").any()


@pytest.mark.parametrize("rows", [1, 2, 3, 1000, 1025])
def test_unique_keys_are_a_permutation_of_the_domain(rows: int) -> None:
    keys = column(make_spec("equi", 9, {"r_tuples": rows}), "r", "k")
    assert np.sort(keys).tolist() == list(range(1, rows + 1))


def test_unique_keys_of_a_wider_domain_stay_unique_and_inside() -> None:
    keys = column(make_spec("equi", 9, {"r_tuples": 1000, "domain": 5000}), "r", "k")
    assert len(set(keys.tolist())) == 1000
    assert keys.min() >= 1
    assert keys.max() <= 5000


def test_duplicated_keys_occur_as_often_as_asked() -> None:
    params = {"keys": "duplicated", "duplicates": 4, "r_tuples": 1003}
    keys = column(make_spec("equi", 9, params), "r", "k")
    counts = np.bincount(keys)[1:]
    assert sorted(counts.tolist()) == [3] + [4] * 250
    # The copies of a key are spread over the stream: few are neighbours.
    assert np.count_nonzero(np.diff(keys) == 0) < 20


def test_the_other_stream_draws_uniformly_from_the_domain() -> None:
    params = {"r_tuples": 50, "s_tuples": 100_000, "domain": 100}
    counts = np.bincount(column(make_spec("equi", 9, params), "s", "k"), minlength=101)[1:]
    assert len(counts) == 100
    assert ((counts - 1000) ** 2 / 1000).sum() < 150


def test_both_streams_share_their_frequent_keys() -> None:
    params = {"keys": "zipf", "skew": 1.0, "domain": 1000, "r_tuples": 20_000, "s_tuples": 20_000}
    spec = make_spec("equi", 9, params)
    counts = [np.bincount(column(spec, stream, "k"), minlength=1001) for stream in ("r", "s")]
    assert counts[0].argmax() == counts[1].argmax()
    assert (column(spec, "r", "k") != column(spec, "s", "k")).mean() > 0.9


def test_values_of_the_band_are_uniform_and_inside() -> None:
    spec = make_spec("band", 4, {"rate_r": 1e5, "rate_s": 1e5, "duration_s": 1, "domain": 50})
    for stream, name in (("r", "x"), ("s", "a")):
        counts = np.bincount(column(spec, stream, name), minlength=51)
        assert counts[0] == 0
        assert len(counts) == 51
        assert ((counts[1:] - 2000) ** 2 / 2000).sum() < 90
    for stream, name in (("r", "y"), ("s", "b"), ("s", "c")):
        values = column(spec, stream, name)
        assert values.min() >= 1
        assert values.max() <= 50
        assert values.mean() == pytest.approx(25.5, abs=0.2)


def test_texts_have_twenty_characters() -> None:
    strings = build(make_spec("band", 4, {}), "r", 0, 500).column("z").to_pylist()
    assert {len(text) for text in strings} == {20}
    assert len(set(strings)) == 500


def test_a_dimension_table_repeats_keys_uniformly_and_its_stream_by_zipf() -> None:
    params = {"skew": 1.0, "r_tuples": 20_000, "s_tuples": 20_000}
    spec = make_spec("zipf-master", 7, params)
    r, s = (column(spec, stream, "k") for stream in ("r", "s"))
    most_r, most_s = (np.bincount(keys, minlength=20_001).max() for keys in (r, s))
    assert most_r < 12
    assert most_s > 1000
    assert 0.35 < 1 - len(np.unique(r)) / 20_000 < 0.39, "a share of 1/e is in no row of R"
