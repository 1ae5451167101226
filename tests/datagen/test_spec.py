"""Parameters, their names and what a user is told when they are wrong."""

import re
from typing import Any

import pytest

from streamjoin.errors import InputError
from streamjoin_common.language.windows import parse_window
from streamjoin_datagen.errors import SpecError
from streamjoin_datagen.params import SPECS, make_spec, parse_params

WINDOW = "a window is all, tumbling:DUR, count:W[,W] or time:DUR[,DUR] (such as time:10s), not"

MISTAKES: list[tuple[str, dict[str, Any], str]] = [
    ("band", {"rate_r": 0}, "rate_r must be a number above 0 and at most 1e+08, not 0"),
    ("band", {"rate_s": "fast"}, "rate_s must be a number above 0 and at most 1e+08, not 'fast'"),
    ("band", {"lo": -1}, "lo must be an integer from 0 to 2147483647, not -1"),
    ("band", {"hi": "1.5"}, "hi must be an integer from 0 to 2147483647, not '1.5'"),
    ("band", {"domain": True}, "domain must be an integer from 1 to 2147483647, not True"),
    ("band", {"window": "count:0"}, "window 'count:0': a count is an integer above 0, for "
     "example 1024, not '0'"),
    ("band", {"window": 5}, f"{WINDOW} 5"),
    ("band", {"arrivals": "late"}, "arrivals must be regular or poisson, not 'late'"),
    (
        "band",
        {"rate_r": 1e6, "duration_s": 1e4},
        "rate_r * duration_s must be at most 2147483647 rows, not 10000000000",
    ),
    (
        "band",
        {"rate": 1},
        "band parameter must be one of rate_r, rate_s, duration_s, window, domain, lo, hi, "
        "arrivals, not 'rate': did you mean rate_s?",
    ),
    ("equi", {"keys": "odd"}, "keys must be unique, duplicated or zipf, not 'odd'"),
    ("equi", {"skew": 0.5}, "skew must be omitted unless keys is zipf, not 0.5"),
    ("equi", {"duplicates": 2}, "duplicates must be omitted unless keys is duplicated, not 2"),
    ("equi", {"keys": "zipf", "skew": 3}, "skew must be a number of at least 0 and at most 2, "
     "not 3"),
    ("equi", {"domain": 9, "r_tuples": 10}, "domain must be 0 or at least R's 10 distinct keys, "
     "not 9"),
    ("equi", {"rate": float("nan")}, "rate must be a number of at least 0 and at most 100000, "
     "not nan"),
    ("theta", {}, f"workload must be one of {', '.join(SPECS)}, not 'theta'"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "params", "sentence"), MISTAKES)
def test_a_wrong_parameter_is_one_sentence(
    kind: str, params: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(sentence)}$") as caught:
        make_spec(kind, 1, params)
    assert caught.value.exit_status == 2


@pytest.mark.parametrize(
    ("seed", "sentence"),
    [
        (None, "workload band needs a seed: give --seed N, or seed = N in a suite"),
        (-1, "seed must be an integer from 0 to below 2**64, not -1"),
        ("7", "seed must be an integer from 0 to below 2**64, not '7'"),
    ],
)
def test_a_seed_is_required(seed: object, sentence: str) -> None:
    with pytest.raises(SpecError, match=f"^{re.escape(sentence)}$"):
        make_spec("band", seed, {})


@pytest.mark.parametrize("text", ["rate", "=5", "rate="])
def test_params_are_names_and_values(text: str) -> None:
    with pytest.raises(SpecError, match=f"^--param must be name=value, not {text!r}$"):
        parse_params([text])


def test_params_are_given_once() -> None:
    with pytest.raises(SpecError, match=r"^--param must be given once for each name, not 'lo'$"):
        parse_params(["lo=1", "lo=2"])


def test_texts_and_numbers_make_the_same_workload() -> None:
    strings = make_spec("band", 1, {"rate_r": "100", "lo": "3"})
    assert strings == make_spec("band", 1, {"rate_r": 100, "lo": 3})


def test_names_tell_workloads_apart() -> None:
    params: list[dict[str, Any]] = [
        {},
        {"rate_r": 1234567.0},
        {"rate_r": 1234568.0},
        {"rate_s": 1234567.0},
        {"window": "count:105"},
        {"window": "count:10,5"},
        {"window": "time:10s"},
        {"lo": 3},
        {"hi": 3},
        {"arrivals": "poisson"},
    ]
    names = [make_spec("band", seed, values).name for values in params for seed in (1, 2)]
    assert len(set(names)) == len(names)
    assert make_spec("band", 1, {"rate_r": 2500.5}).name == "band-r2500.5-seed1"


@pytest.mark.parametrize("window", ["all", "tumbling:1s", "count:4", "count:4,8", "time:10ms,1s",
                                    "time:1.5s"])  # fmt: skip
def test_every_kind_of_window_is_accepted(window: str) -> None:
    assert make_spec("equi", 1, {"window": window}).window_text == window


@pytest.mark.parametrize("window", ["all:", "time:1.5us", "time:0s", "time:0.3us", "count:-1",
                                    "count:", "count:1,2,3", "tumbling:1s,2s", "time:1s,",
                                    "count:1\uff11", "count:4611686018427387904",
                                    "time:99999999999999h", "week"])  # fmt: skip
def test_a_window_that_no_join_takes_is_refused(window: str) -> None:
    with pytest.raises(InputError):
        make_spec("equi", 1, {"window": window})
    with pytest.raises(InputError):
        parse_window(window)


@pytest.mark.parametrize("window", ["count:4611686018427387903", "time:0.5s", "time:1.000001s",
                                    "tumbling:999999999999999999us"])  # fmt: skip
def test_the_longest_and_finest_windows_are_accepted(window: str) -> None:
    assert make_spec("equi", 1, {"window": window}).window_text == window
    assert parse_window(window).kind == window.partition(":")[0]


def test_rows_are_rate_times_duration_rounded() -> None:
    spec = make_spec("band", 1, {"rate_r": 3, "rate_s": 0.5, "duration_s": 2.5})
    assert (spec.rows("r"), spec.rows("s")) == (8, 1)
