"""Windows that arrival times decide need an arrival column on both sides, in a known unit."""

import itertools
import json
import re
import warnings
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamjoin as sj
from streamjoin.cli import main
from streamjoin.streams import read_streams
from streamjoin_common.errors import InputError, InputWarning
from streamjoin_common.language.arrivals import Arrivals
from streamjoin_common.language.durations import parse_lateness
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import parse_window

TIMED = ("tumbling:10us", "time:10us", "time:10us,20us")
UNTIMED = ("all", "count:3")
NAMES = [("ts", "t"), ("t", "ts"), ("t", "t")]


def table(ts: str, rows: int = 9) -> dict[str, Any]:
    return {"k": np.arange(rows) % 3, ts: np.arange(rows) * 5}


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("window", TIMED)
@pytest.mark.parametrize("as_arrow", [False, True])
def test_a_missing_arrival_column_is_refused_with_the_columns_there_are(
    names: tuple[str, str], window: str, as_arrow: bool
) -> None:
    r, s = (pa.table(table(ts)) if as_arrow else table(ts) for ts in names)
    side = "r" if names[0] == "t" else "s"
    sentence = f"^{side}: window {window} needs arrival times and .* 'ts'; it has k, t: name"
    with pytest.raises(sj.InputError, match=sentence):
        sj.join(r, s, on="k", window=window)


@pytest.mark.parametrize("window", UNTIMED)
def test_other_windows_do_without_arrival_times(window: str) -> None:
    assert len(sj.join(table("t"), table("t"), on="k", window=window)) > 0


def test_a_side_without_rows_must_have_the_column_too() -> None:
    with pytest.raises(sj.InputError, match=r"^s: window time:10us needs arrival times"):
        sj.join(table("ts"), {"k": np.array([], dtype=np.int64)}, on="k", window="time:10us")
    assert len(sj.join(table("ts"), table("ts", rows=0), on="k", window="time:10us")) == 0


@pytest.mark.parametrize("window", [*TIMED, *UNTIMED])
def test_a_named_arrival_column_must_be_there(window: str) -> None:
    with pytest.raises(sj.InputError, match=r"^s: there is no arrival column 'sent'; it has k, ts"):
        sj.join(table("sent"), table("ts"), on="k", window=window, ts="sent")


def test_each_side_can_name_its_arrival_column() -> None:
    right = sj.join(table("ts"), table("ts"), on="k", window="time:20us")
    named = sj.join(table("sent"), table("got"), on="k", window="time:20us", ts="sent=got")
    assert named.metrics["digest"] == right.metrics["digest"]
    with pytest.raises(sj.InputError, match=r"^r: there is no arrival column 'got'; it has k, se"):
        sj.join(table("sent"), table("got"), on="k", window="time:20us", ts="got=sent")


@pytest.mark.parametrize("as_arrow", [False, True])
@pytest.mark.parametrize(
    ("ts", "refused"),
    [
        ([3, 1], "goes back at row 1, from 3 to 1: sort the input by ts, or give a lateness; if "),
        (["b", "a"], "; if "),
        ([1, None], "has no value at row 1: remove such rows; if "),
    ],
)
def test_a_column_called_ts_need_not_hold_arrival_times(
    ts: list[Any], refused: str, as_arrow: bool
) -> None:
    r: Any = {"k": pa.array([1, 2]), "ts": pa.array(ts)}
    s = {"k": np.array([2, 1]), "ts": np.array([9, 9])}
    r = pa.table(r) if as_arrow else r
    for window in UNTIMED:
        said = re.escape(refused) + "'ts' holds no arrival times, give ts=''$"
        with pytest.raises(sj.InputError, match=said):
            sj.join(r, s, on="k", window=window)
        result = sj.join(r, s, on="k", window=window, ts="", check=True)
        assert sorted(zip(result.r_rows, result.s_rows, strict=True)) == [(0, 1), (1, 0)]
        assert sorted(result.table("r.ts")["ts"].to_pylist(), key=str) == sorted(ts, key=str)
        joiner = sj.StreamJoiner(on="k", window=window, ts="")
        joiner.push_r(r)
        joiner.push_s(s)
        joiner.end()
        assert sum(len(matches) for matches in joiner.results()) == 2
        with pytest.raises(sj.InputError, match="a lateness needs arrival times"):
            sj.StreamJoiner(on="k", window=window, ts="", lateness="1s")
        with (
            sj.StreamJoiner(on="k", window=window) as timed,
            pytest.raises(sj.InputError, match=r"'ts' holds no arrival times, give ts=''$"),
        ):
            timed.push_r(r)
    with pytest.raises(sj.InputError, match=r"^window time:5us needs arrival times: name their"):
        sj.join(r, s, on="k", window="time:5us", ts="")
    with pytest.raises(sj.InputError) as timed:
        sj.join(r, s, on="k", window="time:5us")
    assert "give ts=''" not in str(timed.value)


@pytest.mark.parametrize(("unit", "scale"), [("s", 1e6), ("ms", 1e3), ("us", 1), ("ns", 1e-3)])
@pytest.mark.parametrize("as_arrow", [False, True])
def test_integers_are_read_in_the_unit_given(unit: str, scale: float, as_arrow: bool) -> None:
    ts = np.array([1_000, 5_000, 1_700_000_000_000 if unit in {"us", "ns"} else 9_000])
    data = {"k": np.array([1, 2, 3]), "ts": ts}
    given = pa.table(data) if as_arrow else data
    found = sj.join(given, given, on="k", ts_unit=unit, window="time:1h")
    assert found.pairs.column("ts").to_pylist() == [int(value * scale) for value in ts]


@pytest.mark.parametrize(("unit", "per_second"), [("s", 1), ("ms", 10**3), ("ns", 10**9)])
def test_epoch_integers_of_another_unit_are_hinted_at(unit: str, per_second: int) -> None:
    data = {"k": np.array([1, 2]), "ts": np.array([1_700_000_000, 1_700_000_001]) * per_second}
    with pytest.warns(InputWarning, match=f"look like {unit} since 1970: .* ts_unit='{unit}'"):
        sj.join(data, data, on="k", window="time:1h")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sj.join(data, data, on="k", window="time:1h", ts_unit=unit)
        sj.join(data, data, on="k", window="count:5")
        micro = {**data, "ts": np.array([1_700_000_000, 1_700_000_001]) * 10**6}
        sj.join(micro, micro, on="k", window="time:1h")


def test_a_unit_without_sense_is_refused() -> None:
    with pytest.raises(sj.InputError, match=r"^ts_unit is s, ms, us or ns, not 'm'"):
        sj.join(table("ts"), table("ts"), on="k", ts_unit="m")


def test_a_unit_is_refused_where_both_sides_have_theirs() -> None:
    days = np.array(["2024-05-01", "2024-05-02", "2024-05-03"], dtype="datetime64[D]")
    numbers, dated = {"k": [1, 2, 3], "ts": [1, 2, 3]}, {"k": [1, 2, 3], "ts": days}
    stamped = pa.table({"k": [1, 2, 3], "ts": days.astype("datetime64[us]")})
    for r, s in itertools.product([dated, stamped], repeat=2):
        with pytest.raises(sj.InputError, match=r"^ts_unit is for numbers, .* leave it out$"):
            sj.join(r, s, on="k", ts_unit="ms")
        assert len(sj.join(r, s, on="k", window="time:1d").pairs) == 3
    for pair in ((numbers, stamped), (stamped, numbers)):
        assert len(sj.join(*pair, on="k", ts_unit="ms").pairs) == 3


@pytest.mark.parametrize("window", TIMED)
def test_a_live_join_refuses_a_batch_without_its_arrival_column(window: str) -> None:
    with sj.StreamJoiner(on="k", window=window) as joiner:
        joiner.push_r(table("ts"))
        with pytest.raises(
            sj.InputError, match=r"^s: window .* needs arrival times .* it has k, t"
        ):
            joiner.push_s(table("t"))
        joiner.push_s(table("ts"))
        joiner.end()
        pairs = sum(len(matches) for matches in joiner.results())
    assert pairs == len(sj.join(table("ts"), table("ts"), on="k", window=window))


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    """A workload whose S has no column of the name ts."""
    streams = {}
    for side, ts in (("r", "ts"), ("s", "time")):
        pq.write_table(pa.table(table(ts)), tmp_path / f"{side}.parquet")
        streams[side] = {"path": f"{side}.parquet", "rows": 9}
    described = {"format": 1, "name": "w", "kind": "w", "predicate": {"on": ["k"]}, **streams}
    (tmp_path / "workload.json").write_text(json.dumps({**described, "window": "time:10us"}))
    return tmp_path


VERBS = {
    "compare": ["compare", "{w}", "--engines", "kang", "--out", "{w}/run"],
    "rate": ["rate", "{w}", "--engines", "kang"],
    "advise": ["advise", "{w}"],
    "join": ["join", "--r", "{w}/r.parquet", "--s", "{w}/s.parquet", "--on", "k",
             "--window", "tumbling:1ms", "--engine", "kang"],
}  # fmt: skip


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_refuses_it(
    verb: str, workload: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word.format(w=workload) for word in VERBS[verb]]) == 2
    said = capsys.readouterr().err
    assert f"{workload}/s.parquet: window " in said
    assert "needs arrival times and there is no column 'ts'; it has k, time" in said


def test_join_takes_both_names_and_the_unit_and_hints_on_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for side, ts in (("r", "sent"), ("s", "got")):
        data = {"k": np.array([1, 2]), ts: np.array([1_700_000_000_000, 1_700_000_060_000])}
        pq.write_table(pa.table(data), tmp_path / f"{side}.parquet")
    words = ["join", "--r", f"{tmp_path}/r.parquet", "--s", f"{tmp_path}/s.parquet", "--on", "k"]
    words += ["--window", "time:1s", "--arrival", "instant", "--ts", "sent=got", "--json"]
    assert main(words) == 0
    assert "'sent' are taken as microseconds and look like ms since 1970" in capsys.readouterr().err
    assert main([*words, "--ts-unit", "ms"]) == 0
    assert "look like" not in capsys.readouterr().err


def test_files_name_the_columns_that_are_not_read(tmp_path: Path) -> None:
    pq.write_table(pa.table({**table("when"), "payload": np.arange(9)}), tmp_path / "r.parquet")
    arrivals = Arrivals.parse(window=parse_window("tumbling:1s"))
    with pytest.raises(sj.InputError, match="it has k, when, payload: name the arrival column"):
        read_streams(tmp_path / "r.parquet", tmp_path / "r.parquet", Predicate.parse("k"), arrivals)


@pytest.mark.parametrize("as_table", [False, True])
def test_floating_point_times_are_rounded_to_microseconds(as_table: bool) -> None:
    seconds = np.array([0.0000014, 0.5, 1.0000006, 2.25])
    columns = {"k": np.zeros(4, np.int64), "ts": seconds}
    data = pa.table(columns) if as_table else columns
    result = sj.join(data, data, on="k", ts_unit="s", window="time:1us", engine="kang")
    assert sorted(set(result.pairs["ts"].to_pylist())) == [1, 500_000, 1_000_001, 2_250_000]
    with pytest.raises(InputError, match="floating-point numbers"):
        sj.join(data, data, on="k", window="time:1us")
    for wrong in (np.nan, np.inf, 1e300):
        columns["ts"] = np.array([0.0, 1.0, wrong, 3.0])
        data = pa.table(columns) if as_table else columns
        with pytest.raises(InputError, match=r"at row 2 is .*, which is no time"):
            sj.join(data, data, on="k", ts_unit="s", window="time:1us")


def test_lengths_of_time_are_taken_as_timedelta_and_in_days() -> None:
    day = timedelta(days=1)
    assert sj.TimeWindow(day).r_us == sj.TimeWindow(2 * day, day).s_us == 86_400_000_000
    assert sj.TumblingWindow(timedelta(microseconds=7)) == sj.TumblingWindow(7)
    assert parse_window("time:1.5d,36h") == sj.TimeWindow(1.5 * day)
    assert parse_lateness(timedelta(milliseconds=5)) == parse_lateness("5ms") == 5000
    with pytest.raises(InputError, match="from 1 to below"):
        sj.TimeWindow(timedelta(0))


def test_sides_that_arrive_years_apart_get_a_warning() -> None:
    r = {"k": np.arange(3), "ts": np.array([0, 10, 20])}
    s = {"k": np.arange(3), "ts": np.full(3, np.datetime64("2024-01-01", "us"))}
    for sides in ((r, s), (s, r)):
        with pytest.warns(InputWarning, match="arrival time is over a year before the first of"):
            assert len(sj.join(*sides, on="k", window="tumbling:1s")) == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sj.join(r, s, on="k")  # under all it is no matter
        sj.join(r, r, on="k", window="tumbling:1s")


def test_only_a_side_with_rows_is_said_to_have_no_arrival_times(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = {"k": pa.array([1, 2]), "ts": pa.array([5, 6])}
    names = {"timed": pa.table(rows), "plain": pa.table({"k": rows["k"]})}
    names["empty"] = names["plain"].slice(0, 0)
    for name, given in names.items():
        pq.write_table(given, tmp_path / f"{name}.parquet")

    def is_said(r: str, s: str, *options: str) -> bool:
        paths = [f"{tmp_path / side}.parquet" for side in (r, s)]
        paths[0] = f"parquet:{paths[0]}" if options else paths[0]
        assert main(["join", "--r", paths[0], "--s", paths[1], "--on", "k", *options]) == 0
        said = capsys.readouterr().err
        return "plain.parquet has no arrival times: all its rows arrive at 0" in said

    assert is_said("timed", "plain")
    assert is_said("plain", "timed")
    assert is_said("plain", "plain", "--engine", "meshjoin"), "of a relation in a store"
    assert not is_said("empty", "plain")
    assert not is_said("plain", "empty")
