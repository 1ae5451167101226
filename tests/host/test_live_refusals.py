"""Live joins that are refused, and what they leave: nothing is lost, one sentence says why."""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import streamjoin as sj
from streamjoin.engines.sliding.kang import Kang
from streamjoin.live import joiner as live_joiner


def test_a_batch_that_is_refused_is_not_kept() -> None:
    good = pa.table({"k": [1], "price": [1.5]})
    with sj.StreamJoiner(on="k") as joiner:
        joiner.push_r(good)
        joiner.push_s(good)
        assert [len(matches) for matches in joiner.results()] == [1]
        with pytest.raises(sj.InputError, match=r"^r: column 'price' is string in this batch and"):
            joiner.push_r(pa.table({"k": [1], "price": ["dear"]}))
        with pytest.raises(sj.InputError, match=r"^r: this batch has no column 'price'"):
            joiner.push_r(pa.table({"k": [1]}))
        joiner.push_r(good)
        joiner.push_s(good)
        assert sum(len(matches) for matches in joiner.results()) == 3
        assert joiner.metrics["n_r"] == 2


def test_pushing_nothing_changes_nothing() -> None:
    with sj.StreamJoiner(on="k") as joiner:
        joiner.push_r({"k": []})
        joiner.push_r({"k": ["x"][:0], "ts": []})
        joiner.push_r({"k": [1], "ts": [5]})
        joiner.push_s({"k": [1], "ts": [5]})
        joiner.push_s({"k": []})
        joiner.push_s(pa.table({"k": pa.array([], pa.string())}))
        joiner.end()
        assert [len(matches) for matches in joiner.results()] == [1]
        assert joiner.metrics["n_r"] == joiner.metrics["n_s"] == 1


@pytest.mark.parametrize("ts_us", [3.5, "soon", None, float("nan"), np.datetime64("2020")])
def test_only_whole_microseconds_advance(ts_us: Any) -> None:
    with (
        sj.StreamJoiner(on="k") as joiner,
        pytest.raises(
            sj.InputError, match=r"^advance takes an integer number of microseconds, not "
        ),
    ):
        joiner.advance(ts_us)


@pytest.mark.parametrize("ts_us", [1 << 70, np.int64(2**63 - 1), np.uint64(2**63 + 1)])
def test_advancing_beyond_all_times_joins_what_waits(ts_us: Any) -> None:
    with sj.StreamJoiner(on="k", lateness="10ms") as joiner:
        joiner.push_r({"k": [1], "ts": [5]})
        joiner.push_s({"k": [1], "ts": [7]})
        joiner.advance(ts_us)
        assert [len(matches) for matches in joiner.results()] == [1]


@pytest.mark.parametrize(
    ("lateness", "sentence"),
    [
        ("999999999999999999h", "^lateness: a duration is at most 4611686018427387903us, not '9"),
        (pd.Timedelta(1, "ns"), "^lateness: a duration is an integer number of microseconds, not "),
        (10, "^lateness must be a string such as '10ms', or a timedelta, not 10$"),
    ],
)
def test_a_lateness_without_sense_is_refused(lateness: Any, sentence: str) -> None:
    with pytest.raises(sj.InputError, match=sentence):
        sj.StreamJoiner(on="k", lateness=lateness)
    with pytest.raises(sj.InputError, match=sentence):
        sj.join({"k": [1], "ts": [5]}, {"k": [1], "ts": [5]}, on="k", lateness=lateness)


def test_a_lateness_without_arrival_times_is_refused() -> None:
    with pytest.raises(sj.InputError, match=r"^r: a lateness needs the arrival times"):
        sj.join({"k": [1]}, {"k": [1]}, on="k", lateness="10ms")
    rest, late = {"k": [1]}, {"k": [1, 1], "ts": [10, 5]}
    assert len(sj.join(rest, late, on="k", lateness="10ms", check=True)) == 2


def test_a_wrong_result_is_told_in_rows_of_the_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Kang, "run", lambda self, job, prepared, meter: None)
    r, s = {"k": [7, 8], "ts": [10, 5]}, {"k": [8], "ts": [20]}
    with pytest.raises(sj.MismatchError, match=r"first missing \(r_row, s_row\) = \(1, 0\)"):
        sj.join(r, s, on="k", engine="kang", lateness="10us", check=True)


def left_early() -> None:
    with sj.StreamJoiner(on="k") as joiner:
        joiner.push_r({"k": [1], "ts": [5]})


def test_leaving_with_tuples_that_were_not_joined_says_so() -> None:
    with pytest.raises(sj.InputError, match=r"^1 tuples were pushed and not joined: call end\(\)"):
        left_early()
    with sj.StreamJoiner(on="k") as joiner:
        joiner.push_r({"k": [1], "ts": [5]})
        joiner.close()
        with pytest.raises(sj.InputError, match=r"^r: the input has ended"):
            joiner.push_r({"k": [1], "ts": [5]})


def twice(*names: str) -> pa.Table:
    """Make a table of one row, in which a name may be there twice."""
    return pa.Table.from_arrays([pa.array([1])] * len(names), names=[*names])


K = {"k": [1], "ts": [5]}
MISTAKES: dict[str, tuple[dict[str, Any], list[Any], str]] = {
    "time goes back": ({}, [K, {"k": [1, 2], "ts": [6, 4]}], "^r: ts goes back at row 2, from 6"),
    "time goes back between batches": (
        {},
        [K, {"k": [1], "ts": [4]}],
        "^r: ts goes back at row 1, from 5 to 4: push in order of ts, or give a lateness; if 'ts' "
        "holds no arrival times, give ts=''$",
    ),
    "a type that changes": (
        {},
        [K, {"k": ["x"], "ts": [5]}],
        "^r: column 'k' is string in this batch and was int64 in the batches before: cast all",
    ),
    "a column that is missing": ({}, [{"x": [1]}], "^r: there is no column 'k'; it has x"),
    "times that come and go": ({}, [K, {"k": [1]}], "^r: give all batches of both streams a ts"),
    "a lateness without times": ({"lateness": "1ms"}, [{"k": [1]}], "^r: a lateness needs the"),
    "no data": ({}, [7], "^r must be Arrow data, a data frame, a mapping"),
    "a file": ({}, ["r.parquet"], "^r: a live join takes no files: read it first"),
    "a bad lateness": ({"lateness": "soon"}, [], "^lateness: a duration is a number with us"),
    "an engine of whole inputs": (
        {"engine": "npj"},
        [],
        "^npj does not join live: choose auto or one of kang, splitjoin, llhj, handshake, ibwj",
    ),
    "an order it does not promise": (
        {"engine": "llhj", "order": "outer"},
        [],
        "^llhj promises order none, not outer",
    ),
    "knobs in a list": (
        {"knobs": ["batch"]},
        [],
        r"^knobs must be a mapping of names to values, not \['batch'\]$",
    ),
    "an unknown knob": (
        {"knobs": {"speed": 9}},
        [],
        "^ibwj-flat has no knob 'speed'; it has batch$",
    ),
    "a column that is new": (
        {},
        [pa.table({"k": [1], "ts": [5]}), pa.table({"k": [1], "v": [1], "ts": [5], "w": [1]})],
        "^r: this batch has a column 'v' that the batches before did not have$",
    ),
    "a column that is not there any more": (
        {},
        [{"k": [1], "v": [1], "w": [1], "ts": [5]}, {"w": [1], "k": [1], "ts": [5]}],
        "^r: this batch has no column 'v', which the batches before had$",
    ),
    "a column by another name": (
        {},
        [pa.table({"k": [1], "v": [1], "ts": [5]}), pa.table({"k": [1], "ts": [5], "V": [1]})],
        "^r: this batch has no column 'v', which the batches before had, but a column 'V'$",
    ),
    "a payload of another type": (
        {},
        [pa.table({"k": [1], "v": [1], "ts": [5]}), pa.table({"k": [1], "v": ["x"], "ts": [5]})],
        "^r: column 'v' is string in this batch and was int64 in the batches before: cast all",
    ),
    "columns of one name in another order": (
        {},
        [twice("k", "v", "v", "ts"), twice("v", "k", "v", "ts")],
        "^r: this batch has its columns in another order than the batches before, and 'v' more",
    ),
    "a name that is there once more": (
        {},
        [twice("k", "v", "ts"), twice("k", "v", "v", "ts")],
        "^r: this batch has another number of columns 'v', 2 and not 1 as the batches before$",
    ),
}


def pushed(options: dict[str, Any], batches: list[Any]) -> None:
    with sj.StreamJoiner(**{"on": "k", **options}) as joiner:
        for batch in batches:
            joiner.push_r(batch)
        joiner.end()
        list(joiner.results())


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_in_one_sentence(mistake: str) -> None:
    options, batches, sentence = MISTAKES[mistake]
    with pytest.raises((sj.InputError, sj.UnsupportedError), match=sentence):
        pushed(options, batches)


def test_a_time_before_what_advance_gave_is_told_as_such() -> None:
    with sj.StreamJoiner(on="k") as joiner:
        joiner.push_r({"k": [1], "ts": [5]})
        joiner.advance(10)
        for times in ([7], [12, 7]):
            row = len(times)
            with pytest.raises(
                sj.InputError,
                match=rf"^r: ts is 7 at row {row}, and advance\(10\) said that no such tuple will",
            ):
                joiner.push_r({"k": [1] * row, "ts": times})
        with pytest.raises(sj.InputError, match=r"^r: ts goes back at row 2, from 12 to 11: push"):
            joiner.push_r({"k": [1, 1], "ts": [12, 11]})
        joiner.push_r({"k": [1], "ts": [10]})
        joiner.end()
        assert not list(joiner.results())


def test_too_much_waiting_is_refused_and_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_joiner, "MAX_WAITING_TUPLES", 3)
    with sj.StreamJoiner(on="k") as joiner:
        joiner.push_r({"k": [1, 2, 3], "ts": [1, 1, 1]})
        with pytest.raises(
            sj.InputError, match=r"^s: 3 tuples wait to be joined, the maximum is 3: take"
        ):
            joiner.push_s({"k": [1], "ts": [0]})
        joiner.advance(1)
        assert not list(joiner.results())
        joiner.push_s({"k": [1], "ts": [2]})
        joiner.end()
        assert [len(matches) for matches in joiner.results()] == [1]
