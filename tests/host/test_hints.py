"""What people try first in Python: one sentence says what was meant, and warnings point at them."""

import warnings
from collections.abc import Callable
from datetime import timedelta

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import streamjoin as sj

R = {"k": np.array([1, 2, 3]), "name": ["a", "b", "c"]}
S = {"k": np.array([2, 3, 4]), "price": [1.0, 2.0, 3.0]}

tried: Callable[..., object] = sj.join
"""Of no type: what is tried here is wrong."""

ARGUMENTS: dict[str, dict[str, object]] = {
    "join has no argument left_on=: write on='k=j'": {"left_on": "k", "right_on": "j"},
    "join has no argument left_on=: write on='a=b,c'": {
        "left_on": ["a", "c"],
        "right_on": ["b", "c"],
    },
    "join has no argument right_on=: write on='RCOL=k'": {"right_on": "k"},
    "join has no argument onn=: did you mean on=?": {"onn": "k"},
    "join has no argument by=: write on='COL' or on='RCOL=SCOL'": {"by": "k"},
    "join has no argument columns=: write result.table(columns)": {"on": "k", "columns": "a"},
    "join has no argument n_jobs=: write threads=": {"on": "k", "n_jobs": 2},
    "anti, not 'outer': did you mean full?": {"on": "k", "how": "outer"},
    "not 'tumblin:10s': did you mean tumbling:10s?": {"on": "k", "window": "tumblin:10s"},
    "not 'sliding:10s': did you mean time:10s?": {"on": "k", "window": "sliding:10s"},
    "not 'sliding:5': did you mean count:5?": {"on": "k", "window": "sliding:5"},
    "not 'tumbling': did you mean tumbling:1s?": {"on": "k", "window": "tumbling"},
    "not 'all:3'": {"on": "k", "window": "all:3"},
    "for example 1.5s, not '10 sec': did you mean 10s?": {"on": "k", "window": "time:10 sec"},
    "not '5m': did you mean 5min?": {"on": "k", "window": "time:5m"},
    "as sj.TimeWindow(": {"on": "k", "window": timedelta(seconds=3)},
    "no engine 'kagn': did you mean kang? To list all, call sj.engines()": {
        "on": "k",
        "engine": "kagn",
    },
    "no engine 'hash': did you mean npj? To list all, call sj.engines()": {
        "on": "k",
        "engine": "hash",
    },
    "no engine 'Sort_Merge_Join': did you mean mway?": {"on": "k", "engine": "Sort_Merge_Join"},
    "there is no engine ['npj']: did you mean npj?": {"on": "k", "engine": ["npj"]},
    "it has k, name: did you mean k?": {"on": "kk"},
    "lateness: a duration is a number with": {"on": "k", "lateness": "soon"},
    "a count is an integer above 0, for example 1024, not 'x'": {"on": "k", "window": "count:x"},
    "on must be a string or a list of strings, for example 'rk=sk', not {": {"on": {"k": "k"}},
    "speedup must be a number above 0, not True": {"on": "k", "speedup": True},
    "threads must be an integer from 1 to 1024, not True": {"on": "k", "threads": True},
    "max_pairs must be an integer of at least 1, not True": {"on": "k", "max_pairs": True},
    "ts_unit is s, ms, us or ns, not 'min'": {"on": "k", "ts_unit": "min"},
    "name the arrival column with ts='COL'": {"on": "k", "window": "time:1s"},
    "knob batch takes an integer": {"on": "k", "engine": "kang", "knobs": {"batch": True}},
    "engine='auto' chose npj, which has no knob 'cores': name the engine": {
        "on": "k",
        "knobs": {"cores": 2},
    },
}


@pytest.mark.parametrize("sentence", ARGUMENTS)
def test_a_wrong_argument_is_answered_with_what_was_meant(sentence: str) -> None:
    with pytest.raises(sj.InputError) as error:
        tried(R, S, **ARGUMENTS[sentence])
    assert sentence in str(error.value)
    assert "--" not in str(error.value)
    assert "\n" not in str(error.value)


def test_an_engine_named_by_its_kind_is_one_that_there_is() -> None:
    for kind in ("hash", "radix", "sort", "Nested_Loop_Join", "pim-tree", "index", "fpga"):
        with pytest.raises(sj.InputError) as error:
            tried(R, S, on="k", engine=kind)
        meant = str(error.value).partition("did you mean ")[2].partition("?")[0]
        assert meant in {entry.engine for entry in sj.engines()}, kind


def test_other_functions_and_names_have_hints_too() -> None:
    result = sj.join(R, S, on="k", engine="npj")
    wrong: dict[str, Callable[[], object]] = {
        "StreamJoiner has no argument windw=: did you mean window=?": lambda: sj.StreamJoiner(
            on="k", windw="all"
        ),
        "compare has no argument engine=: did you mean engines=?": lambda: sj.compare(
            R, S, on="k", engine="npj"
        ),
        "advise has no argument left_on=: write on='k'": lambda: sj.advise(
            R, S, left_on="k", right_on="k"
        ),
        "s has k, price: did you mean name?": lambda: result.table("nme"),
        "r: there is no column 'nme'; it has k, name: did you mean name?": lambda: result.table(
            "r.nme"
        ),
        "rows must be an integer of at least 1, not True": lambda: result.batches(True),
        "advance takes an integer": lambda: sj.StreamJoiner(on="k").advance(True),
        "no attribute 'read_csv': give sj.join the file's path": lambda: sj.read_csv,
        "no attribute 'TumblngWindow': did you mean TumblingWindow?": lambda: sj.TumblngWindow,
    }
    for sentence, done in wrong.items():
        with pytest.raises((sj.InputError, AttributeError)) as error:
            done()
        assert sentence in str(error.value)
    with pytest.raises(TypeError):  # an argument that is not there is Python's error as well
        tried(R, S, left_on="k")


def test_a_column_name_without_its_argument_is_answered() -> None:
    with pytest.raises(sj.ArgumentError, match=r"join takes r, s without a name, .* on= before it"):
        tried(R, S, "k")


def test_columns_that_both_lack_are_answered_with_how_names_that_differ_are_written() -> None:
    with pytest.raises(sj.InputError, match=r"'n'; .* 'n'; .*: where names differ, write RCOL="):
        sj.join({"x": [1]}, {"a": [1]}, on="n")
    with pytest.raises(sj.InputError, match=r"^r: there is no column 'a'; it has x; s: .*RCOL="):
        tried({"x": [1]}, {"a": [1]}, on=("x", "a"))


def test_columns_of_one_name_in_a_frame_are_named() -> None:
    frame = pd.DataFrame([[1, 2, 3]], columns=["k", "a", "a"])
    with pytest.raises(sj.InputError, match=r"^r: the column 'a' occurs 2 times: rename one$"):
        sj.join(frame, S, on="k")


def test_values_of_two_types_in_a_frame_are_refused_in_a_sentence() -> None:
    frame = pd.DataFrame({"k": [1, 2], "v": [1, "a"]})
    said = r"^r: no Arrow table can be made of it: Could not [^(]*; Conversion failed for column v "
    with pytest.raises(sj.InputError, match=said):
        sj.join(frame, S, on="k")
    with pytest.raises(sj.InputError, match=r"^r: no Arrow table can be made of it: "):
        sj.join([{"k": 1}, {"k": "a"}], S, on="k")


def test_a_comparison_shows_its_table() -> None:
    shown = repr(sj.compare(R, S, "npj,prj", on="k", rounds=1))
    assert [line.split()[3:6] for line in shown.splitlines()[2:]] == [
        ["npj", "ok", "2"],
        ["prj", "ok", "2"],
    ]


def test_a_warning_points_at_the_line_of_the_caller() -> None:
    stamped = {"k": np.array([1, 2]), "ts": np.array([1_700_000_000, 1_700_000_001])}
    before = {**stamped, "ts": np.array([0, 1])}
    for data in (stamped, pa.table(stamped)):
        with pytest.warns(sj.InputWarning, match="ts_unit='s'") as warned:
            sj.join(data, data, on="k", window="time:1s")
        assert {each.filename for each in warned} == {__file__}
    with pytest.warns(sj.InputWarning, match="over a year") as warned:
        sj.join(before, stamped, on="k", window="time:1s", ts_unit="s")
    assert {each.filename for each in warned} == {__file__}
    joiner = sj.StreamJoiner(on="k", window="time:1s")
    with pytest.warns(sj.InputWarning, match="ts_unit='s'") as warned:
        joiner.push_r(stamped)
    assert {each.filename for each in warned} == {__file__}


def test_a_reader_is_read_once_and_says_so() -> None:
    table = pa.table({"k": [1, 2]})
    reader = table.to_reader()
    with pytest.raises(sj.InputError, match="no column 'j'"):
        sj.join(reader, S, on="j")
    with pytest.raises(sj.InputError, match=r"^r: this reader was read before and gives its rows"):
        sj.join(reader, S, on="k")
    same = table.to_reader()
    assert len(sj.join(same, same, on="k")) == 2
    with pytest.raises(sj.InputError, match=r"^s: this reader was read before"):
        sj.join(R, same, on="k")
    elsewhere = table.to_reader()
    elsewhere.read_all()
    with pytest.warns(sj.InputWarning, match=r"^r: the reader gives no rows: if it was read"):
        assert len(sj.join(elsewhere, S, on="k")) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(sj.join(table.slice(0, 0), S, on="k")) == 0
        assert len(sj.join(table.to_reader(), S, on="k")) == 1
