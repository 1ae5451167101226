"""Windows and predicates as they are written."""

import pytest

from streamjoin.errors import InputError
from streamjoin.predicates import Band, Equi, Predicate
from streamjoin.windows import (
    AllWindow,
    CountWindow,
    TimeWindow,
    TumblingWindow,
    format_duration,
    parse_duration,
    parse_window,
)


@pytest.mark.parametrize(
    ("text", "window"),
    [
        ("all", AllWindow()),
        ("tumbling:250us", TumblingWindow(250)),
        ("count:5", CountWindow(5, 5)),
        ("count:5,9", CountWindow(5, 9)),
        ("time:1.5s", TimeWindow(1_500_000, 1_500_000)),
        ("time:15min,2h", TimeWindow(900_000_000, 7_200_000_000)),
    ],
)
def test_a_window_reads_and_writes_itself(text: str, window: object) -> None:
    parsed = parse_window(text)
    assert parsed == window
    assert parse_window(parsed.text) == window


@pytest.mark.parametrize(
    "text",
    ["", "all:1", "tumbling", "tumbling:1s,2s", "count", "count:", "count:1,2,3", "count:1.5",
     "count:+3", "count:٣", "time:0s", "time:1", "time:-1s", "time:0.5us", "count:5,0",
     "count:" + "9" * 5000, "time:" + "9" * 5000 + "s"],
)  # fmt: skip
def test_a_window_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(InputError):
        parse_window(text)


@pytest.mark.parametrize("value", [0, -1, True, 1.5, 1 << 62])
def test_a_window_made_in_python_is_checked_too(value: object) -> None:
    for make in (TumblingWindow, CountWindow, TimeWindow):
        with pytest.raises(InputError, match="must be a whole number from 1 to below"):
            make(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "length_us"), [("250us", 250), ("10ms", 10_000), ("2h", 72 * 10**8)]
)
def test_durations(text: str, length_us: int) -> None:
    assert parse_duration(text) == length_us
    assert format_duration(length_us) == text


def test_a_predicate_reads_and_writes_itself() -> None:
    predicate = Predicate.parse(on=["a=b,c"], band=["x=y:-5:1e3"])
    assert predicate.terms == (Equi("a", "b"), Equi("c", "c"), Band("x", "y", -5, 1000.0))
    assert Predicate.parse(predicate.on, predicate.band) == predicate
    assert predicate.kind == "band"
    assert Predicate.parse(on="k").kind == "equi"


@pytest.mark.parametrize("text", ["", "=k", "k=", "a=b=c", "a,,b"])
def test_equal_columns_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="on takes"):
        Predicate.parse(on=text)


@pytest.mark.parametrize(
    "text", ["x=y", "x:1:2", "x=y:1", "x=y:1:", "x=y:nan:1", "x=y:1:2:3", "x=y:1_0:1", "x=y:٣:1"]
)
def test_bands_that_make_no_sense_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="band"):
        Predicate.parse(band=text)
