"""Inputs made to hurt, and random ones that lean towards the same edges."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from streamjoin.engines.base import Engine
from streamjoin.tuples import Stream
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import (
    AllWindow,
    CountWindow,
    TimeWindow,
    TumblingWindow,
    Window,
    parse_window,
)

INT32 = np.iinfo(np.int32)
EDGE_INTS = [INT32.min, INT32.min + 1, -1, 0, 1, INT32.max - 1, INT32.max]
EDGE_FLOATS = [
    np.nan,
    -np.inf,
    np.inf,
    -0.0,
    0.0,
    1e-45,
    -1e-45,
    1.1754944e-38,
    3.4028235e38,
    -3.4028235e38,
    16777216.0,
    16777218.0,
    1.0,
    10.5,
]

# Small enough that windows overflow, cores run empty and lists wrap; each is built once.
SMALL_KNOBS = {
    "fpga-handshake": {"cores": 3, "segment_tuples": 4, "lanes": 2},
    "fpga-splitjoin": {"cores": 3, "segment_tuples": 4, "lanes": 3, "probes": 2},
    "fpga-splitjoin-hash": {
        "segment_tuples": 12,
        "lanes": 2,
        "buckets": 4,
        "ways": 3,
        "lead_tuples": 8,
    },
    "fpga-splitjoin-index": {"segment_tuples": 12, "lanes": 4, "buckets": 8, "ways": 2},
}
FPGA_CAPACITY = 12
SMALL_KNOBS["spark"] = {"partition_tuples": 13, "file_tuples": 9}  # several pieces of anything

SPARK_WINDOWS = ["all", "tumbling:7us", "time:2us,9us"]
"""A job on Spark takes a tenth of a second: one window of each kind is enough for each input."""

EQUI = Predicate.parse(on="k=k2")
BAND_REFERENCE = Predicate.parse(band=["k=k2:10:10", "y=y2:10:10"])
PREDICATES = {
    "equi": EQUI,
    "band-2d": BAND_REFERENCE,
    "band-and-equi": Predicate.parse(on="g=g2", band="k=k2:-1:3"),
}
WINDOWS = [
    "all",
    "tumbling:7us",
    "count:1",
    "count:5",
    "count:3,8",
    "count:8,3",
    "count:12",
    "time:1us",
    "time:6us",
    "time:2us,9us",
]


@dataclass(frozen=True)
class Case:
    """Two streams by name."""

    name: str
    r: Stream
    s: Stream


def stream(
    source: str,
    ts: list[int],
    k: list[int],
    y: list[float] | None = None,
    missing: list[bool] | None = None,
) -> Stream:
    """A stream with an integer, a real and a coarse group column; S's names end in 2."""
    end = "2" if source == "s" else ""
    keys = np.array(k, dtype=np.int32)
    reals = np.array(y if y is not None else [float(x % 50) for x in k], dtype=np.float32)
    columns = {f"k{end}": keys, f"y{end}": reals, f"g{end}": keys % 3}
    mask = np.array(missing, dtype=np.bool_) if missing is not None and any(missing) else None
    return Stream(columns, np.array(ts, dtype=np.int64), source, missing=mask)


def hard_cases() -> list[Case]:
    """Duplicates, empty sides, one tuple, equal times, bursts, keys at the ends, NaN."""
    many = list(range(40))
    edge = len(EDGE_INTS)
    reals = len(EDGE_FLOATS)
    return [
        Case("both-empty", stream("r", [], []), stream("s", [], [])),
        Case("r-empty", stream("r", [], []), stream("s", [1, 2], [1, 1])),
        Case("s-empty", stream("r", [1, 2], [1, 1]), stream("s", [], [])),
        Case("one-each", stream("r", [5], [1]), stream("s", [5], [1])),
        Case("s-first", stream("r", [9], [1]), stream("s", [3], [1])),
        Case("all-the-same", stream("r", [0] * 20, [7] * 20), stream("s", [0] * 17, [7] * 17)),
        Case("at-rest", stream("r", [0] * 40, many), stream("s", [0] * 40, many[::-1])),
        Case("alternating", stream("r", many, many), stream("s", many, [x + 1 for x in many])),
        Case(
            "bursts",
            stream("r", [0] * 15 + [20] * 15, [x % 4 for x in range(30)]),
            stream("s", [10] * 15 + [20] * 15, [x % 4 for x in range(30)]),
        ),
        Case(
            "keys-at-the-ends",
            stream("r", list(range(edge)), EDGE_INTS),
            stream("s", list(range(edge)), EDGE_INTS[::-1]),
        ),
        Case(
            "odd-floats",
            stream("r", list(range(reals)), [0] * reals, EDGE_FLOATS),
            stream("s", list(range(reals)), [0] * reals, EDGE_FLOATS[::-1]),
        ),
        Case(
            "negative-times",
            stream("r", [-9, -8, -7, -1, 0, 6, 7], [1] * 7),
            stream("s", [-14, -8, -7, -1, 0, 6, 7], [1] * 7),
        ),
        Case(
            "window-edges",
            stream("r", [0, 6, 7, 12, 13, 14], [1] * 6),
            stream("s", [0, 1, 6, 7, 13, 20], [1] * 6),
        ),
        Case(
            "missing-values",
            stream("r", many, [x % 5 for x in many], None, [x % 3 == 0 for x in many]),
            stream("s", many, [x % 4 for x in many], None, [x % 5 < 2 for x in many]),
        ),
        Case(
            "nothing-but-missing-values",
            stream("r", [1, 2], [0, 0], None, [True, True]),
            stream("s", [1, 2], [0, 0], None, [True, False]),
        ),
        Case(
            "s-much-longer",
            stream("r", [50], [3]),
            stream("s", list(range(100)), [3] * 100),
        ),
    ]


def supports(engine: Engine, predicate: Predicate, window: Window) -> bool:
    """Whether an engine declares that it joins this."""
    can = engine.capabilities
    return predicate.kind in can.predicates and window.kind in can.windows


def windows_of(engine: Engine) -> list[Window]:
    """The windows of :data:`WINDOWS` that an engine declares."""
    windows = SPARK_WINDOWS if engine.capabilities.platform == "spark" else WINDOWS
    return [w for w in map(parse_window, windows) if w.kind in engine.capabilities.windows]


@st.composite
def random_streams(draw: Callable[..., int], max_rows: int = 40) -> tuple[Stream, Stream]:
    """Two streams with few distinct keys, edge values and clumps of equal times."""
    streams = []
    for source in ("r", "s"):
        rows = draw(st.integers(0, max_rows))
        gaps = draw(st.lists(st.sampled_from([0, 0, 0, 1, 2, 7]), min_size=rows, max_size=rows))
        ts = np.cumsum([draw(st.integers(-10, 10)), *gaps])[1:].tolist() if rows else []
        key = st.one_of(st.integers(-6, 6), st.sampled_from(EDGE_INTS))
        keys = draw(st.lists(key, min_size=rows, max_size=rows))
        real = st.one_of(
            st.sampled_from(EDGE_FLOATS),
            st.floats(width=32, allow_nan=True, allow_infinity=True),
            st.integers(-30, 30).map(float),
        )
        reals = draw(st.lists(real, min_size=rows, max_size=rows))
        missing = draw(st.one_of(st.none(), st.lists(st.booleans(), min_size=rows, max_size=rows)))
        streams.append(stream(source, ts, keys, reals, missing))
    return streams[0], streams[1]


def random_windows(kinds: frozenset[str]) -> st.SearchStrategy[Window]:
    """Windows of these kinds, small, uneven, within the smallest design."""
    length = st.integers(1, 30)
    count = st.integers(1, FPGA_CAPACITY)
    # A design of segments of 4 can hold windows whose ratio is at most 4.
    even = st.tuples(count, count).filter(lambda w: max(w) <= 4 * min(w))
    makers = {
        "all": st.just(AllWindow()),
        "tumbling": length.map(TumblingWindow),
        "count": even.map(lambda w: CountWindow(*w)),
        "time": st.tuples(length, length).map(lambda w: TimeWindow(*w)),
    }
    return st.one_of([makers[kind] for kind in sorted(kinds)])


def stream_of(rng: np.random.Generator, source: str, rows: int) -> Stream:
    """A stream of one of the shapes that hurt."""
    shape = rng.choice(["spread", "rest", "bursts", "late"])
    ts = np.sort(rng.integers(0, 4 * rows + 1, rows))
    if shape == "rest":
        ts[:] = 0
    elif shape == "bursts":
        ts = np.sort(rng.choice(np.array([0, rows, 2 * rows, 3 * rows]), rows))
    elif shape == "late":
        ts[: rows // 2] = 0
    keys = rng.integers(0, rng.choice([1, 8, 300, 5000]), rows)
    return stream(source, ts.tolist(), keys.tolist(), None, (rng.random(rows) < 0.1).tolist())


def window_of(rng: np.random.Generator, max_tuples: int) -> Window:
    """A window of any kind: of one tuple, uneven, longer than the input."""
    r, s = (
        int(x) for x in rng.choice([1, 2, 7, max_tuples // 3 + 1, max_tuples, 2 * max_tuples], 2)
    )
    kind = rng.choice(["all", "tumbling", "count", "time"], p=[0.1, 0.1, 0.4, 0.4])
    if kind == "all":
        return AllWindow()
    if kind == "tumbling":
        return TumblingWindow(r)
    return CountWindow(r, s) if kind == "count" else TimeWindow(r, s)


def dense(rows: int) -> tuple[Stream, Stream]:
    """Two streams of which every pair joins."""
    ts = list(range(rows))
    return stream("r", ts, [1] * rows), stream("s", ts, [1] * rows)
