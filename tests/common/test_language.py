"""The query language: what is written is read back, and all who read it agree."""

import argparse
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamjoin as sj
from streamjoin.cli import options
from streamjoin_common.errors import InputError
from streamjoin_common.language.durations import (
    MAX_US,
    format_duration,
    parse_duration,
    parse_lateness,
)
from streamjoin_common.language.predicates import Band, Equi, Predicate
from streamjoin_common.language.windows import (
    AllWindow,
    CountWindow,
    TimeWindow,
    TumblingWindow,
    Window,
    parse_window,
)
from streamjoin_datagen.cli import VERB
from streamjoin_datagen.params import make_spec
from streamjoin_spark.batch.inputs import opened_inputs
from streamjoin_spark.streaming.checks import Asked


@pytest.mark.parametrize(
    ("string", "window"),
    [
        ("all", AllWindow()),
        ("tumbling:250us", TumblingWindow(250)),
        ("count:5", CountWindow(5, 5)),
        ("count:5,9", CountWindow(5, 9)),
        ("time:1.5s", TimeWindow(1_500_000, 1_500_000)),
        ("time:15min,2h", TimeWindow(900_000_000, 7_200_000_000)),
    ],
)
def test_a_window_reads_and_writes_itself(string: str, window: object) -> None:
    parsed = parse_window(string)
    assert parsed == window
    assert parse_window(parsed.text) == window


@pytest.mark.parametrize(
    "string",
    ["", "all:1", "tumbling", "tumbling:1s,2s", "count", "count:", "count:1,2,3", "count:1.5",
     "count:+3", "count:٣", "time:0s", "count:007", "count:1_0", "count: 5",
     "time: 10s", "time:10s ", "time:10 s", "time:1s, 2s", "time:01s", "time:.5s", "time:1.s",
     "time:1e3s", "time:10S", "ALL", "time:infs", "time:4611686018427387.904ms",
     "time:1", "time:-1s", "time:0.5us", "count:5,0",
     "count:" + "9" * 5000],
)  # fmt: skip
def test_a_window_that_makes_no_sense_is_refused(string: str) -> None:
    with pytest.raises(InputError):
        parse_window(string)


@pytest.mark.parametrize(
    "string",
    [f"{MAX_US}us", "9223372036854775808us", f"{10**20}us", "999999999d", "9" * 5000 + "s"],
)
def test_a_duration_that_is_too_long_is_refused_with_the_greatest(string: str) -> None:
    assert parse_duration(f"{MAX_US - 1}us") == MAX_US - 1
    assert parse_duration(f"{1 << 61}us") == 1 << 61
    with pytest.raises(InputError, match=f"^a duration is at most {MAX_US - 1}us, not '"):
        parse_duration(string)


@pytest.mark.parametrize("value", [0, -1, True, 1.5, 1 << 62])
def test_a_window_made_in_python_is_checked_too(value: object) -> None:
    for make in (TumblingWindow, CountWindow, TimeWindow):
        with pytest.raises(InputError, match="must be an integer from 1 to below"):
            make(value)  # type: ignore[arg-type]


def test_lengths_are_strings_or_timedeltas_too() -> None:
    second = timedelta(seconds=1)
    assert TimeWindow("1s", second) == TimeWindow(second) == TimeWindow(1_000_000)
    assert TumblingWindow("1s") == TumblingWindow(second)
    assert parse_lateness("1s") == parse_lateness(second) == 1_000_000
    with pytest.raises(InputError, match=r"a duration such as .10ms. or a timedelta, not 1\.5$"):
        TimeWindow(1.5)  # type: ignore[arg-type]  # no number of microseconds
    for wrong in (timedelta(0), -second, timedelta.max):
        with pytest.raises(InputError, match=r"^lateness: a duration must be above 0 and below"):
            parse_lateness(wrong)
    with pytest.raises(InputError, match="such as '10ms', or a timedelta, not 5"):
        parse_lateness(5)  # type: ignore[arg-type]  # without a unit
    with pytest.raises(InputError, match=r"^lateness: a duration must be above 0, not '-5ms'$"):
        parse_lateness("-5ms")


@pytest.mark.parametrize(
    ("band", "meant"),
    [
        ("x=y within 1 day", ": did you mean 1d?"),
        ("x=y within 5sec", ": did you mean 5s?"),
        ("x within 2.5", ": did you mean 'x=x within 2.5'?"),
        ("x within 1 day", ": did you mean 'x=x within 1d'?"),
        ("x y within 2.5", "not 'x y within 2.5'"),
    ],
)
def test_a_band_that_cannot_be_read_is_answered_with_what_was_meant(band: str, meant: str) -> None:
    with pytest.raises(InputError) as error:
        Predicate.parse(band=band)
    assert str(error.value).endswith(meant)


@pytest.mark.parametrize(
    ("window", "meant"),
    [
        ("1 day", ": did you mean time:1d?"),
        ("10ms", ": did you mean time:10ms?"),
        ("time:1s,2s,3s", "not 'time:1s,2s,3s'"),
        ("count:1,2,3", "not 'count:1,2,3'"),
        ("7 parsecs", "not '7 parsecs'"),
    ],
)
def test_a_window_that_cannot_be_read_is_answered_with_what_was_meant(
    window: str, meant: str
) -> None:
    with pytest.raises(InputError) as error:
        parse_window(window)
    assert str(error.value).endswith(meant)


@pytest.mark.parametrize(
    ("string", "length_us"), [("250us", 250), ("10ms", 10_000), ("2h", 72 * 10**8)]
)
def test_durations(string: str, length_us: int) -> None:
    assert parse_duration(string) == length_us
    assert format_duration(length_us) == string


def test_a_predicate_reads_and_writes_itself() -> None:
    predicate = Predicate.parse(on=["a=b,c"], band=["x=y:-5:1e3"])
    assert predicate.terms == (Equi("a", "b"), Equi("c", "c"), Band("x", "y", -5, 1000.0))
    assert Predicate.parse(predicate.on, predicate.band) == predicate
    assert predicate.kind == "band"
    assert Predicate.parse(on="k").kind == "equi"


@pytest.mark.parametrize("string", ["", "=k", "k=", "a=b=c", "a,,b"])
def test_equal_columns_that_make_no_sense_are_refused(string: str) -> None:
    with pytest.raises(InputError, match="on takes"):
        Predicate.parse(on=string)


@pytest.mark.parametrize(
    "string",
    ["x=y", "x:1:2", "x=y:1", "x=y:1:", "x=y:nan:1", "x=y:1:2:3", "x=y:1_0:1", "x=y:٣:1",
     "x=y:007:1", "x=y: 1:1", "x=y:+1:1", "x=y:.5:1", "x=y:1.:1", "x=y:1e400:1", "x=y:NaN:1",
     "x=y:Infinity:1", "x=y:+inf:1", "x=y:0x1:1", "=y:1:1", "x=:1:1", "x=y=z:1:1", "x=y:1:1 ",
     "x=y:--1:1", "x=y:" + "9" * 401 + ":1"],
)  # fmt: skip
def test_bands_that_make_no_sense_are_refused(string: str) -> None:
    with pytest.raises(InputError, match="band"):
        Predicate.parse(band=string)


@pytest.mark.parametrize(
    ("string", "bounds"),
    [
        ("x=y:-1:-2", "lower bound y + 1 lies above its upper bound y - 2"),
        ("x=y:3:-4", "lower bound y - 3 lies above its upper bound y - 4"),
        ("x=y:-0.5:0.25", "lower bound y + 0.5 lies above its upper bound y + 0.25"),
        ("x=y within -5s", "lower bound y + 5s lies above its upper bound y - 5s"),
        ("x=y:0:-inf", "lower bound y - 0 lies above its upper bound y - inf"),
        (
            f"x=y:-{10**399}:9.5",
            f"lower bound y + 1{'0' * 36}... lies above its upper bound y + 9.5",
        ),
    ],
)
def test_a_band_in_which_nothing_lies_is_named(string: str, bounds: str) -> None:
    expected = rf"^band 'x=y.*' is empty: its {re.escape(bounds)}; LO \+ HI must be at least 0"
    with pytest.warns(sj.InputWarning, match=expected) as warned:
        Predicate.parse(on="k", band=["x=y:1:1", string])
    assert [each.filename for each in warned] == [__file__]


@pytest.mark.parametrize("string", ["x=y:-1:1", "x=y:5:-5", "x=y:-inf:inf", "x=y within 0"])
def test_a_band_of_one_value_or_more_is_not_empty(string: str) -> None:
    Predicate.parse(band=string)


WINDOWS = st.one_of(
    st.just(AllWindow()),
    st.integers(1, MAX_US - 1).map(TumblingWindow),
    st.builds(CountWindow, st.integers(1, MAX_US - 1), st.integers(1, MAX_US - 1)),
    st.builds(TimeWindow, st.integers(1, MAX_US - 1), st.integers(1, MAX_US - 1)),
)
WIDTHS = st.one_of(
    st.integers(-(10**400) + 1, 10**400 - 1), st.integers(-99, 99), st.floats(allow_nan=False)
)


def names(without: str) -> st.SearchStrategy[str]:
    return st.text(st.characters(exclude_characters=without), min_size=1, max_size=9)


TERMS = st.one_of(
    st.builds(Equi, names(",="), names(",=")),
    st.builds(Band, names("=:"), names("=:"), WIDTHS, WIDTHS),
)


@given(WINDOWS)
def test_every_window_is_read_back_as_it_was_written(window: Window) -> None:
    assert parse_window(window.text) == window


@given(st.integers(1, MAX_US - 1))
def test_every_duration_is_read_back_as_it_was_written(length_us: int) -> None:
    assert parse_duration(format_duration(length_us)) == length_us
    assert parse_lateness(format_duration(length_us)) == length_us


@pytest.mark.filterwarnings("ignore:band .* is empty:streamjoin.InputWarning")
@given(st.lists(TERMS, min_size=1, max_size=4))
def test_every_predicate_is_read_back_as_it_was_written(terms: list[Equi | Band]) -> None:
    terms.sort(key=lambda term: term.kind, reverse=True)  # equi terms are read first
    predicate = Predicate(tuple(terms))
    assert Predicate.parse(predicate.on, predicate.band) == predicate


@pytest.mark.parametrize("width", [float("nan"), True, "1", 10**400, None])
def test_a_width_made_in_python_is_checked_too(width: Any) -> None:
    with pytest.raises(InputError, match=r"a band's (integer )?width"):
        Band("x", "y", width, 1)


Reads = Callable[[str], object]
NEAR_NUMBERS = st.text("0123456789._-+eE \u0661inf", max_size=6)
NEAR_DURATIONS = st.builds("{}{}".format, NEAR_NUMBERS, st.sampled_from(["us", "s", " s", ""]))
NEAR_WINDOWS = st.one_of(
    WINDOWS.map(lambda window: window.text),
    st.builds("count:{}".format, NEAR_NUMBERS),
    st.builds("time:{},{}".format, NEAR_DURATIONS, NEAR_DURATIONS),
    st.builds("tumbling:{}".format, NEAR_DURATIONS),
    st.text(max_size=12),
)
NEAR_BANDS = st.one_of(
    st.builds("k=k:{}:{}".format, NEAR_NUMBERS, NEAR_NUMBERS), st.text(max_size=12)
)


def accepts(read: Reads, string: str) -> bool:
    try:
        read(string)
    except InputError:
        return False
    return True


def test_windows_are_accepted_by_all_or_none(tmp_path: Path) -> None:
    path = tmp_path / "r.parquet"
    pq.write_table(pa.table({"k": np.array([1]), "ts": np.array([0])}), path)

    def spark_join(string: str) -> object:
        what: dict[str, Any] = {"ts": None, "ts_unit": None, "row": "row", "path": "auto"}
        return opened_inputs(path, path, on="k", band=None, window=string, per_task=1, **what)

    @settings(max_examples=40, deadline=None)  # each opens a file
    @given(NEAR_WINDOWS)
    def agree(string: str) -> None:
        readers: list[Reads] = [
            lambda string: make_spec("band", 1, {"window": string}),
            lambda string: sj.StreamJoiner(on="k", window=string),
        ]
        kind = string.partition(":")[0]
        if kind != "count":  # Spark joins under windows of time alone
            readers.append(spark_join)
        if kind in {"tumbling", "time"}:
            readers.append(lambda string: Asked("k", None, string, "row", "ts"))
        right = accepts(parse_window, string)
        assert [accepts(read, string) for read in readers] == [right] * len(readers)

    agree()


@pytest.mark.filterwarnings("ignore:band .* is empty:streamjoin.InputWarning")
def test_predicates_are_accepted_by_all_or_none() -> None:
    host, datagen = argparse.ArgumentParser(), argparse.ArgumentParser()
    options.add_predicate(host)
    VERB.configure(datagen)

    @given(st.sampled_from(["on", "band"]), st.one_of(NEAR_BANDS, st.text("ab=,: ", max_size=6)))
    def agree(flag: str, string: str) -> None:
        def by_data(string: str) -> Predicate:
            words = ["import", "csv", "a", "b", "--out", "c", f"--{flag}={string}"]
            args = datagen.parse_args(words)
            return Predicate.parse(args.on, args.band)

        both: dict[str, Any] = {"on": None, "band": None}
        readers: list[Reads] = [
            lambda string: options.predicate(host.parse_args([f"--{flag}={string}"])),
            by_data,
            lambda string: sj.StreamJoiner(window="count:1", **{**both, flag: string}),
            lambda string: Asked(window="time:1s", row="row", ts="ts", **{**both, flag: string}),
        ]
        verdicts = [accepts(read, string) for read in readers]
        assert len(set(verdicts)) == 1, (string, verdicts)

    agree()
