"""The kinds hold to the distributions that they promise. Seeds are fixed."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from streamjoin_datagen.params import SPECS, make_spec
from streamjoin_datagen.rows import densities, ranks
from streamjoin_datagen.rows.seeds import column_key, hashes
from streamjoin_datagen.spec import WorkloadSpec, power_sum, zipf_meeting
from streamjoin_datagen.tables import build

SEED = 20
DRAWS = 400_000

# The Kolmogorov-Smirnov statistic times the root of the sample size is above this for one
# sample in a thousand.
KS_LIMIT = 1.95


def column(spec: WorkloadSpec, stream: str, name: str) -> Any:
    return build(spec, stream, 0, spec.rows(stream)).column(name).to_numpy()


def ks(values: Any, law: Callable[[Any], Any]) -> float:
    """Largest distance of the values' distribution function from a law's, scaled."""
    ordered = np.sort(values)
    expected = law(ordered)
    steps = np.arange(len(ordered) + 1) / len(ordered)
    worst = max((steps[1:] - expected).max(), (expected - steps[:-1]).max())
    return float(worst * math.sqrt(len(ordered)))


def estimated_exponent(counts: Any) -> float:
    """Zipf exponent of counts by rank that makes them most likely, given their domain."""
    domain, places = len(counts), np.log(np.arange(1, len(counts) + 1))
    mean_log = float(np.dot(counts, places) / counts.sum())
    low, high = 0.0, 3.0
    for _ in range(50):
        middle = (low + high) / 2
        weights = np.exp(-middle * places)
        # The likelihood is flat where the law's mean logarithm of the rank is the sample's.
        if np.dot(weights, places) / weights.sum() > mean_log:
            low = middle
        else:
            high = middle
    assert domain > 1
    return low


@pytest.mark.parametrize("skew", [0.0, 0.4, 0.8, 1.0, 1.2, 1.6, 2.0])
@pytest.mark.parametrize("domain", [1000, 200_000])
def test_zipf_exponents_are_estimated_back(skew: float, domain: int) -> None:
    drawn = ranks.zipf_ranks(hashes(column_key(SEED, "r", "k"), 0, DRAWS), domain, skew)
    counts = np.bincount(drawn.astype(np.int64), minlength=domain)
    # The law's own deviation of a maximum-likelihood exponent at this sample is below 0.003.
    assert estimated_exponent(counts) == pytest.approx(skew, abs=0.01)


@pytest.mark.parametrize("skew", [0.3, 0.8, 1.0, 1.3])
def test_zipf_beyond_the_table_is_the_same_law(skew: float) -> None:
    domain = 1 << 31
    drawn = ranks.zipf_ranks(hashes(column_key(SEED, "r", "k"), 0, DRAWS), domain, skew)
    assert int(drawn.max()) < domain
    total = power_sum(domain, skew)
    edges = [1, 10, 1000, 1 << 20, (1 << 20) + 1, 1 << 22, 1 << 26, 1 << 30, domain]
    for edge in edges:
        share = power_sum(edge, skew) / total
        found = float(np.mean(drawn < np.uint64(edge)))
        spread = math.sqrt(share * (1 - share) / DRAWS)
        assert abs(found - share) <= 4 * spread + 1e-9, (skew, edge)


@pytest.mark.parametrize(("kind", "stream"), [("stock", "r"), ("debs", "s"), ("zipf-master", "s")])
def test_skewed_kinds_have_their_exponent(kind: str, stream: str) -> None:
    spec = make_spec(kind, SEED, {})
    params = spec.params
    counts = np.sort(np.bincount(column(spec, stream, "k"), minlength=spec.key_domain + 1)[1:])
    # Sorting samples by frequency makes rare keys look rarer, so only frequent ones are used.
    frequent = counts[::-1][: min(100, len(counts))].astype(float)
    assert estimated_exponent(frequent) == pytest.approx(params["skew"], abs=0.05)


def normal(mean: float, sigma: float) -> Callable[[Any], Any]:
    cut = [0.5 * math.erfc((mean - end) / sigma / math.sqrt(2)) for end in (0.0, 1.0)]

    def law(values: Any) -> Any:
        plain = np.array([0.5 * math.erfc((mean - v) / sigma / math.sqrt(2)) for v in values])
        return (plain - cut[0]) / (cut[1] - cut[0])

    return law


def gamma(shape: int, scale: float) -> Callable[[Any], Any]:
    span = densities.gamma_span(shape, scale)

    def law(values: Any) -> Any:
        powers = values * span / scale
        terms = [powers**term / math.factorial(term) for term in range(shape)]
        return 1 - np.exp(-powers) * sum(terms)

    return law


LAWS: list[tuple[str, dict[str, Any], Callable[[Any], Any]]] = [
    ("uniform", {}, lambda values: values),
    ("gaussian", {}, normal(0.5, 0.125)),
    ("gaussian", {"mean": 0.2, "sigma": 0.4}, normal(0.2, 0.4)),
    ("gamma", {}, gamma(3, 3.0)),
    ("gamma", {"shape": 1, "scale": 5}, gamma(1, 5.0)),
]


@pytest.mark.parametrize(("kind", "params", "law"), LAWS)
def test_values_follow_their_law(
    kind: str, params: dict[str, Any], law: Callable[[Any], Any]
) -> None:
    spec = make_spec(kind, SEED, {**params, "tuples": 100_000})
    for stream, name in (("r", "x"), ("s", "a")):
        assert ks((column(spec, stream, name) + 0.5) / (1 << 30), law) < KS_LIMIT


def test_a_law_that_is_not_the_one_drawn_is_noticed() -> None:
    values = (column(make_spec("gaussian", SEED, {"tuples": 100_000}), "r", "x") + 0.5) / (1 << 30)
    assert ks(values, normal(0.503, 0.125)) > KS_LIMIT


def test_a_shifting_mean_is_where_it_should_be() -> None:
    spec = make_spec("shifting-gaussian", SEED, {"tuples": 180_000, "shift": 0.8})
    found = column(spec, "r", "x") / (1 << 29)
    law = normal(0.5, 0.125)
    assert ks(found[:40_000], law) < KS_LIMIT
    assert ks(found[140_000:] - 0.8, law) < KS_LIMIT
    rows = np.arange(100_000)
    assert ks(found[40_000:140_000] - 0.8 * rows / 100_000, law) < KS_LIMIT


def window_matches(spec: WorkloadSpec) -> float:
    """Partners of a tuple in a full window of the other stream, counted one by one."""
    r, s = column(spec, "r", "x").astype(np.int64), column(spec, "s", "a").astype(np.int64)
    (text,) = spec.predicate["band"]
    reach, window = int(text.split(":")[1]), spec.params["window_tuples"]
    probes = range(window, len(s), 7)
    found = [np.count_nonzero(np.abs(r[row - window : row] - s[row]) <= reach) for row in probes]
    return float(np.mean(found))


@pytest.mark.parametrize(
    ("kind", "params"),
    [
        ("uniform", {}),
        ("gaussian", {}),
        ("gamma", {}),
        ("gamma", {"shape": 1, "scale": 5}),
        ("shifting-gaussian", {"shift": 0}),
    ],
)
@pytest.mark.parametrize("match_rate", [2.0, 64.0])
def test_match_rates_are_hit_within_two_percent(
    kind: str, params: dict[str, Any], match_rate: float
) -> None:
    sizes = {"tuples": 160_000, "window_tuples": 2048, "match_rate": match_rate}
    assert window_matches(make_spec(kind, SEED, {**params, **sizes})) == pytest.approx(
        match_rate, rel=0.02
    )


def test_the_reach_of_a_match_rate_is_exact_for_small_domains() -> None:
    law = densities.gaussian(0.5, 0.2)
    domain = densities.BINS
    apart = np.correlate(law.weights, law.weights, "full")  # the middle one: 0 apart
    for reach in (0, 3, 200):
        exact = float(apart[domain - 1 - reach : domain + reach].sum())
        assert law.closeness(reach, domain) == pytest.approx(
            exact, rel=2e-2 if reach == 0 else 2e-3
        )


@pytest.mark.parametrize("rate", [1600.0, 12_800.0])
def test_every_millisecond_of_micro_has_its_rate(rate: float) -> None:
    spec = make_spec("micro", SEED, {"rate_r": rate, "window_ms": 50, "windows": 2})
    times = column(spec, "r", "ts")
    assert np.bincount(times // 1000).tolist() == [int(rate)] * 100


def test_poisson_arrivals_have_their_rate_and_spread_per_millisecond() -> None:
    spec = make_spec("micro", SEED, {"rate_r": 100, "window_ms": 2000, "arrivals": "poisson"})
    counts = np.bincount(column(spec, "r", "ts") // 1000)[:1900]
    assert counts.mean() == pytest.approx(100, rel=0.02)
    assert counts.var() == pytest.approx(100, rel=0.15)


@pytest.mark.parametrize("skew", [0.4, 0.8, 1.2, 1.6])
def test_skewed_arrivals_are_zipf_over_the_milliseconds(skew: float) -> None:
    params = {"ts_skew": skew, "rate_r": 400, "window_ms": 1000, "windows": 3}
    spec = make_spec("micro", SEED, params)
    counts = np.bincount(column(spec, "r", "ts") // 1000, minlength=3000)
    ideal = np.arange(1, 1001) ** -skew
    ideal *= 400_000 / ideal.sum()
    for window in counts.reshape(3, 1000):
        assert np.abs(window - ideal).max() <= 1
    assert estimated_exponent(counts[:1000].astype(float)) == pytest.approx(skew, abs=0.01)


@pytest.mark.parametrize("params", [
    {"duplicates": 1}, {"duplicates": 10}, {"duplicates": 7, "rate_s": 25},
    {"windows": 3, "duplicates": 4}, {"rate_r": 3, "rate_s": 11, "windows": 2},
])  # fmt: skip
def test_micro_deals_every_key_to_every_window(params: dict[str, Any]) -> None:
    spec = make_spec("micro", SEED, {"rate_r": 10, "rate_s": 10, "window_ms": 100, **params})
    orders = []
    for stream in ("r", "s"):
        windows = np.split(column(spec, stream, "k"), params.get("windows", 1))
        for keys in windows:
            counts = np.bincount(keys, minlength=spec.key_domain + 1)[1:]
            assert counts.max() - counts.min() <= 1
            orders.append(keys.tolist())
    assert len({str(order) for order in orders}) == len(orders), "all in different orders"


def test_hot_keys_of_micro_are_apart_or_shared() -> None:
    params = {"rate_r": 20, "rate_s": 20, "key_skew": 1.2}
    pairs = {}
    for hot in ("apart", "shared"):
        spec = make_spec("micro", SEED, {**params, "hot_keys": hot})
        counts = [np.bincount(column(spec, s, "k"), minlength=20_001) for s in ("r", "s")]
        pairs[hot] = int(np.dot(*counts)), spec.estimated_pairs()
    assert pairs["shared"][0] == pytest.approx(pairs["shared"][1], rel=0.05)
    assert pairs["apart"][0] < pairs["shared"][0] / 50


def test_stock_arrives_in_the_same_bursts_in_both_streams() -> None:
    spec = make_spec("stock", SEED, {"duration_ms": 20_000})
    bursts = [np.unique(column(spec, stream, "ts")) for stream in ("r", "s")]
    assert np.array_equal(*bursts)
    assert len(bursts[0]) == pytest.approx(0.08 * 20_000, rel=0.1)
    counts = np.bincount(np.searchsorted(bursts[0], column(spec, "r", "ts")))
    # Exponentially distributed weights: the deviation is the mean.
    assert counts.std() == pytest.approx(counts.mean(), rel=0.1)


def test_rovio_arrives_in_even_batches_and_joins_itself() -> None:
    spec = make_spec("rovio", SEED, {})
    r, s = (build(spec, stream, 0, spec.rows(stream)) for stream in ("r", "s"))
    assert r.equals(s)
    times, counts = np.unique(r.column("ts").to_numpy(), return_counts=True)
    assert set(counts.tolist()) == {100}
    assert set(np.diff(times).tolist()) == {10_000, 11_000}
    keys = np.sort(np.bincount(r.column("k").to_numpy(), minlength=161)[1:])[::-1]
    # The published file's most frequent keys, one in the middle, and how many there are.
    assert keys[0] == pytest.approx(900, rel=0.2)
    assert keys[50] == pytest.approx(570, rel=0.15)
    assert np.count_nonzero(keys) > 150


def test_ysb_events_meet_one_campaign_each() -> None:
    spec = make_spec("ysb", SEED, {"rate": 200})
    assert sorted(column(spec, "r", "k").tolist()) == list(range(1, 1001))
    events = build(spec, "s", 0, spec.rows("s")).to_pydict()
    counts = np.bincount(events["k"], minlength=1001)[1:]
    assert ((counts - 200) ** 2 / 200).sum() < 1150  # 999 degrees of freedom
    assert (np.array(events["k"]) == (np.array(events["ad"]) - 1) // 10 + 1).all()
    assert set(events["event"]) == {0, 1, 2}


# Pairs within this share of the estimate: exact kinds, and drawn ones at these sizes.
ESTIMATES: list[tuple[str, dict[str, Any], float]] = [
    ("micro", {"rate_r": 50, "rate_s": 30, "windows": 2, "duplicates": 7}, 0),
    ("micro", {"rate_r": 50, "rate_s": 30, "arrivals": "rest"}, 0),
    ("equi", {"r_tuples": 50_000, "s_tuples": 50_000}, 0),
    ("equi", {"r_tuples": 50_000, "s_tuples": 50_000, "keys": "duplicated", "duplicates": 5}, 0.02),
    ("equi", {"r_tuples": 50_000, "s_tuples": 50_000, "keys": "zipf", "skew": 0.9}, 0.05),
    ("stock", {}, 0.02),
    ("rovio", {}, 0.05),
    ("ysb", {"rate": 100}, 0),
    ("debs", {"posts": 100_000, "comments": 100_000}, 0.02),
    ("zipf-master", {"r_tuples": 100_000, "s_tuples": 100_000, "skew": 0.5}, 0.02),
]


@pytest.mark.parametrize(("kind", "params", "share"), ESTIMATES)
def test_estimated_pairs_are_near_the_counted_ones(
    kind: str, params: dict[str, Any], share: float
) -> None:
    spec = make_spec(kind, SEED, params)
    r, s = (build(spec, stream, 0, spec.rows(stream)).to_pydict() for stream in ("r", "s"))
    length_us = {"tumbling:1s": 1_000_000, "tumbling:1000ms": 1_000_000}.get(spec.window_text)
    whole = length_us or 1 << 62
    pairs = 0
    for window in range(max(r["ts"][-1], s["ts"][-1]) // whole + 1):
        counts = [
            np.bincount(
                np.array(side["k"])[np.array(side["ts"]) // whole == window],
                minlength=spec.key_domain + 1,
            )
            for side in (r, s)
        ]
        pairs += int(np.dot(*counts))
    assert spec.estimated_pairs() == pytest.approx(pairs, rel=max(share, 1e-12))


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0, 1.7])
def test_power_sums_are_right(exponent: float) -> None:
    exact = math.fsum(rank**-exponent for rank in range(1, 100_001))
    assert power_sum(100_000, exponent) == pytest.approx(exact, rel=1e-6)
    assert zipf_meeting(1, exponent) == 1


def test_every_kind_splits_anywhere() -> None:
    for kind in SPECS:
        if SPECS[kind].seedless:
            continue  # made by another program; test_tpch.py splits it
        spec = make_spec(kind, SEED, {"arrivals": "regular"} if kind == "micro" else {})
        for stream in ("r", "s"):
            whole = build(spec, stream, 0, 1000)
            cuts = ((0, 1), (1, 0), (1, 698), (699, 301))
            parts = [build(spec, stream, first, count) for first, count in cuts]
            for name in whole.column_names:
                pieces = [value for part in parts for value in part.column(name).to_pylist()]
                assert pieces == whole.column(name).to_pylist(), (kind, stream, name)


SMALLEST: list[tuple[str, dict[str, Any], int]] = [
    ("band", {"rate_r": 333, "rate_s": 1, "duration_s": 1, "window": "all", "domain": 1}, 333),
    ("rovio", {"rate": 5, "duration_ms": 200, "users": 1, "shape": 10}, 1_000_000),
]


@pytest.mark.parametrize(("kind", "params", "pairs"), SMALLEST)
def test_of_a_single_value_all_pairs_are_estimated(
    kind: str, params: dict[str, Any], pairs: int
) -> None:
    zero_width = {"lo": 0, "hi": 0} if kind == "band" else {}
    assert make_spec(kind, SEED, {**params, **zero_width}).estimated_pairs() == pairs


@pytest.mark.parametrize("streams", ["self", "two"])
def test_estimated_pairs_of_a_self_join_hold_every_tuple_with_itself(streams: str) -> None:
    params = {"tuples": 3000, "window_tuples": 3000, "match_rate": 0.5, "streams": streams}
    spec = make_spec("uniform", SEED, params)
    x, a = (column(spec, stream, name) for stream, name in (("r", "x"), ("s", "a")))
    near = np.abs(np.subtract.outer(x.astype(np.int64), a)) <= spec.reach()
    assert spec.estimated_pairs() == pytest.approx(near.sum(), rel=0.1)
