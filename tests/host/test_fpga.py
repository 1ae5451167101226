"""What is particular to hardware engines: both ways of forwarding, time windows, capacity."""

from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.host import cases
from tests.host.test_engines import check, held, outcome_of

from streamjoin import oracle, verify
from streamjoin.engines import catalog
from streamjoin.engines.fpga.feed import OrderedFeed
from streamjoin.engines.job import Job
from streamjoin.errors import EngineError, InputError, UnsupportedError
from streamjoin.tuples import Stream
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import Window, parse_window

pytestmark = pytest.mark.timeout(600)  # the first use of a design builds its model

ENGINE = catalog.get("fpga-handshake")
FAST = {"forward": "fast"}


def check_fast(r: Stream, s: Stream, predicate: Predicate, window: Window) -> None:
    outcome = outcome_of(ENGINE, r, s, predicate, window, knobs=FAST)
    verify.check(outcome.pairs, oracle.join(r, s, predicate, window), "fpga-handshake, fast")


@pytest.mark.parametrize("case", cases.hard_cases(), ids=lambda case: case.name)
def test_the_low_latency_variant_is_exact_on_hard_cases(case: cases.Case) -> None:
    checked = 0
    for window in cases.windows_of(ENGINE):
        if held(ENGINE, window, case.r, case.s):
            check_fast(case.r, case.s, cases.PREDICATES["band-and-equi"], window)
            checked += 1
    assert checked > 0


@pytest.mark.parametrize("case", cases.hard_cases(), ids=lambda case: case.name)
def test_bands_with_shared_comparators_are_exact_on_hard_cases(case: cases.Case) -> None:
    engine, window = catalog.get("fpga-splitjoin"), parse_window("count:7,12")
    knobs = cases.SMALL_KNOBS["fpga-splitjoin"] | {"comparators": "shared"}
    predicate = cases.BAND_REFERENCE
    outcome = outcome_of(engine, case.r, case.s, predicate, window, knobs=knobs)
    expected = oracle.join(case.r, case.s, predicate, window)
    verify.check(outcome.pairs, expected, "fpga-splitjoin, bands with shared comparators")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.data_too_large])
@given(data=st.data(), streams=cases.random_streams())
def test_the_low_latency_variant_is_exact_on_random_cases(
    data: st.DataObject, streams: tuple[Stream, Stream]
) -> None:
    windows = cases.random_windows(ENGINE.capabilities.windows)
    window = data.draw(windows.filter(lambda w: held(ENGINE, w, *streams)))
    check_fast(*streams, cases.PREDICATES["equi"], window)


def test_the_low_latency_variant_holds_uneven_windows() -> None:
    many = list(range(60))
    r, s = cases.stream("r", many, [x % 5 for x in many]), cases.stream("s", many, [1] * 60)
    check_fast(r, s, cases.EQUI, parse_window("count:1,12"))
    check_fast(r, s, cases.EQUI, parse_window("count:12,1"))


def latency_cycles(forward: str) -> float:
    """Half of the matches come within so many cycles after their later tuple was taken."""
    many = list(range(400))
    r, s = cases.stream("r", many, many), cases.stream("s", many, many)
    outcome = outcome_of(
        ENGINE, r, s, cases.EQUI, parse_window("count:12"), knobs={"forward": forward}
    )
    return float(outcome.metrics["latency_us"]["p50"]) * 100  # at 100 MHz


def test_forwarding_at_once_answers_sooner() -> None:
    assert latency_cycles("fast") < latency_cycles("step")


@pytest.mark.parametrize("forward", ["step", "fast"])
def test_a_tuple_pushed_out_before_its_time_is_an_error(forward: str) -> None:
    """Twelve tuples fit: the first of fourteen within the window is one too many, then two."""
    r, s = cases.stream("r", list(range(14)), [1] * 14), cases.stream("s", [20], [1])
    with pytest.raises(EngineError, match="2 tuples were pushed out of windows of 12 tuples"):
        outcome_of(ENGINE, r, s, cases.EQUI, parse_window("time:100us"), knobs={"forward": forward})
    check_small(r, s, "time:12us", forward)


def check_small(r: Stream, s: Stream, window: str, forward: str) -> None:
    outcome = outcome_of(ENGINE, r, s, cases.EQUI, parse_window(window), knobs={"forward": forward})
    verify.check(
        outcome.pairs, oracle.join(r, s, cases.EQUI, parse_window(window)), "fpga-handshake"
    )


@pytest.mark.parametrize("forward", ["step", "fast"])
def test_times_are_counted_from_the_first_arrival(forward: str) -> None:
    far = 1 << 50
    r = cases.stream("r", [far, far + 5], [1, 1])
    s = cases.stream("s", [far + 9, far + (1 << 32) - 2], [1, 1])
    for window in ("time:5us", "time:9us", "time:10us", "time:2h"):
        check_small(r, s, window, forward)


def test_an_input_that_lasts_too_long_is_refused_in_a_sentence() -> None:
    r, s = cases.stream("r", [0], [1]), cases.stream("s", [(1 << 32) - 1], [1])
    spans = "the input spans 4,294,967,295 us and the design's 32-bit"
    with pytest.raises(UnsupportedError, match=spans):
        outcome_of(ENGINE, r, s, cases.EQUI, parse_window("time:1s"))


def test_missing_values_are_left_out_of_a_band_on_whole_numbers() -> None:
    keys = np.zeros(8, dtype=np.int32).tolist()
    r = cases.stream("r", list(range(8)), keys, None, [x % 2 == 0 for x in range(8)])
    s = cases.stream("s", list(range(8)), keys, None, [x % 3 == 0 for x in range(8)])
    check(ENGINE, r, s, Predicate.parse(band="k=k2:1:1"), parse_window("count:8"))


def test_a_design_that_cannot_be_is_refused_in_the_words_of_the_engine() -> None:
    r = cases.stream("r", [1], [1])
    for name, knobs, sentence in (
        (
            "fpga-splitjoin-hash",
            {"segment_tuples": 3, "lanes": 4},
            "lanes must be at most segment_tuples, not 4",
        ),
        (
            "fpga-splitjoin-index",
            {"segment_tuples": 64, "lanes": 4, "buckets": 32},
            r"segment_tuples must be below buckets \* lanes / ways = 64",
        ),
    ):
        with pytest.raises(UnsupportedError, match=f"{name}: {sentence}"):
            outcome_of(catalog.get(name), r, r, cases.EQUI, parse_window("count:1"), knobs=knobs)


@pytest.mark.parametrize(
    "name", ["fpga-handshake", "fpga-splitjoin", "fpga-splitjoin-hash", "fpga-splitjoin-index"]
)
@pytest.mark.parametrize("window", ["count:12", "time:12us"])
def test_a_replay_waits_for_arrivals_in_simulated_time(name: str, window: str) -> None:
    """Ten tuples of each stream, a microsecond apart: the last one's match is after nine."""
    engine, times = catalog.get(name), list(range(10))
    r, s = cases.stream("r", times, times), cases.stream("s", times, times)
    outcome = outcome_of(engine, r, s, cases.EQUI, parse_window(window), arrival="replay")
    right = oracle.join(r, s, cases.EQUI, parse_window(window))
    verify.check(outcome.pairs, right, name)
    metrics = outcome.metrics
    assert metrics["latency_from"] == "arrival"
    assert metrics["cycles"] >= 900
    if name != "fpga-handshake":  # there a pair may have to wait until others push it on
        assert metrics["latency_us"]["max"] < 1
    faster = outcome_of(
        engine, r, s, cases.EQUI, parse_window(window), arrival="replay", speedup=100
    )
    assert faster.metrics["cycles"] < 900
    assert faster.metrics["digest"] == metrics["digest"]


def test_latency_under_a_load_counts_the_wait_for_the_design() -> None:
    """Tuples that arrive at once wait for those before them; from acceptance on none does."""
    engine, many = catalog.get("fpga-splitjoin-hash"), list(range(300))
    r, s = cases.stream("r", [0] * 300, many), cases.stream("s", [0] * 299 + [1], many)
    window = parse_window("count:12")
    replayed, instant = (
        outcome_of(engine, r, s, cases.EQUI, window, arrival=arrival)
        for arrival in ("replay", "instant")
    )
    assert replayed.metrics["digest"] == instant.metrics["digest"]
    assert replayed.metrics["latency_us"]["max"] > 2 * instant.metrics["latency_us"]["max"]


@pytest.mark.parametrize("window", ["count:12", "time:4us", "all"])
def test_two_results_a_beat_are_two_pairs_in_order_each_at_its_cycle(window: str) -> None:
    engine, times = catalog.get("fpga-splitjoin-hash"), list(range(120))
    r = cases.stream("r", times, [x % 3 if x % 2 else 7 for x in times])
    s = cases.stream("s", [x // 2 for x in times], [x % 5 if x % 3 else 7 for x in times])
    knobs = {"segment_tuples": 12, "lanes": 4, "buckets": 4, "ways": 3, "lead_tuples": 8}
    knobs |= {"own_buckets": 2, "beat_results": 2}
    check(engine, r, s, cases.EQUI, parse_window(window), knobs=knobs, order="outer")
    asked: dict[str, Any] = {"knobs": knobs | {"kinds": "device"}, "how": "left"}
    with pytest.raises(UnsupportedError, match="kinds must be inner where a beat has 2 results"):
        outcome_of(engine, r, s, cases.EQUI, parse_window("count:12"), **asked)


def test_what_cannot_be_replayed_is_refused_in_a_sentence() -> None:
    r = cases.stream("r", [1], [1])
    with pytest.raises(UnsupportedError, match="under count and time windows, not under all"):
        outcome_of(ENGINE, r, r, cases.EQUI, parse_window("all"), arrival="replay")
    far = cases.stream("r", [0, 20_000_000], [1, 1])
    with pytest.raises(UnsupportedError, match=r"lasts 2,000,000,000 cycles.* the speedup to 2 or"):
        outcome_of(ENGINE, far, far, cases.EQUI, parse_window("count:12"), arrival="replay")


@pytest.mark.parametrize("window", ["count:12", "time:4us", "all"])
@pytest.mark.parametrize("order", ["outer", "inner"])
def test_an_index_gives_the_order_that_was_asked_for(order: str, window: str) -> None:
    engine, times = catalog.get("fpga-splitjoin-index"), list(range(60))
    r = cases.stream("r", times, [x % 4 for x in times])
    s = cases.stream("s", [x // 2 for x in times], [x % 3 for x in times])
    knobs = {"segment_tuples": 12, "lanes": 4, "buckets": 8, "ways": 2}
    predicate = Predicate.parse(band="k=k2:1:0")
    asked: dict[str, Any] = {"knobs": knobs, "order": order}
    outcome = outcome_of(engine, r, s, predicate, parse_window(window), **asked)
    check(engine, r, s, predicate, parse_window(window), **asked)
    assert outcome.metrics["order"] == order


@pytest.mark.parametrize("earlier", [(0, 1), (1, 0)])
@pytest.mark.parametrize("later", [(2, 2), (2, 1)])
@pytest.mark.parametrize("order", ["outer", "inner"])
def test_results_of_a_device_out_of_order_are_refused(
    order: str, later: tuple[int, int], earlier: tuple[int, int]
) -> None:
    """Two batches of a result each: rows of S arrive behind all of R, in their order."""
    r, s = cases.stream("r", [0, 1], [1, 1]), cases.stream("s", [5, 6, 7], [1, 1, 1])
    job = Job(r, s, cases.EQUI, parse_window("count:12"), order=order)
    feed = OrderedFeed(mock.Mock(), [], job, mock.Mock(), is_inner=order == "inner")
    right = [later[0], later[1]] == sorted(later)
    right &= order == "outer" or later[0] != later[1] or earlier == (0, 1)
    none = np.empty(1)

    def give() -> None:
        for r_row, s_row in zip(earlier, later, strict=True):
            rows = np.array([r_row], np.uint32), np.array([s_row], np.uint32)
            feed._emit(*rows, none, none)

    if right:
        give()
        return
    with pytest.raises(EngineError, match=f"comes later in the order {order}"):
        give()


@pytest.mark.parametrize("window", ["count:12", "all"])
@pytest.mark.parametrize("group", [3, 0])
def test_groups_of_arrivals_are_exact_and_promise_no_order(group: int, window: str) -> None:
    engine, times = catalog.get("fpga-splitjoin"), list(range(60))
    r = cases.stream("r", times, [x % 4 for x in times])
    s = cases.stream("s", times, [x % 3 for x in times])
    knobs = {"group": group}
    outcome = outcome_of(engine, r, s, cases.EQUI, parse_window(window), knobs=knobs)
    right = oracle.join(r, s, cases.EQUI, parse_window(window))
    verify.check(outcome.pairs, right, engine.name)
    assert outcome.metrics["order"] == "none"


def test_the_outer_order_is_refused_between_groups_of_arrivals() -> None:
    engine, r = catalog.get("fpga-splitjoin"), cases.stream("r", [1], [1])
    with pytest.raises(InputError, match="order outer needs knob group 1, not 3"):
        outcome_of(
            engine, r, r, cases.EQUI, parse_window("count:1"), knobs={"group": 3}, order="outer"
        )
