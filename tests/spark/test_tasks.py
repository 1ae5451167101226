"""How joins on Spark are divided, and the join of one task: no Spark is needed for these."""

import os
from pathlib import Path

import numpy as np
import pytest
from tests.host import cases
from tests.spark.samples import joined, window_of

from streamjoin import oracle, verify
from streamjoin.errors import EngineError, InputError, UnsupportedError
from streamjoin.streams import as_streams
from streamjoin.tuples import Pairs, Stream
from streamjoin_common.language.predicates import Band, Predicate
from streamjoin_common.language.windows import AllWindow, TimeWindow, Window, parse_window
from streamjoin_common.storage import StorageError
from streamjoin_spark import engine
from streamjoin_spark.batch import local
from streamjoin_spark.batch.classes import Radix, Ranges, interval, key_hashes
from streamjoin_spark.batch.failures import explained
from streamjoin_spark.batch.partition import Partitioning
from streamjoin_spark.batch.plan import Side, plan

SEED = int(os.environ.get("SEED", "0"))
WINDOWS = [w for w in map(parse_window, cases.WINDOWS) if w.kind != "count"]


def random_inputs(seed: int) -> tuple[Stream, Stream, Window, np.random.Generator]:
    print(f"SEED={seed}")  # noqa: T201  (shown with a failure)
    rng = np.random.default_rng(seed)
    r, s = (cases.stream_of(rng, side, int(rng.integers(0, 300))) for side in ("r", "s"))
    return r, s, window_of(rng, 300), rng


def by_tasks(r: Stream, s: Stream, predicate: Predicate, parts: Partitioning) -> Pairs:
    """Join task by task, and hold what is read against what is sent."""
    sent = {of_r: parts.assigned(x, np.arange(x.rows), of_r) for x, of_r in ((r, True), (s, False))}
    found = []
    for number in range(len(parts)):
        task = parts.task(number)
        sides = []
        for whole, of_r in ((r, True), (s, False)):
            first, end = np.searchsorted(whole.ts, parts.arrivals(task, of_r)).tolist()
            stream, rows = whole.slice(first, end), np.arange(first, end)
            kept = parts.keeps(task, stream, rows, of_r)
            kept = np.ones(len(rows), np.bool_) if kept is None else kept
            at, tasks = sent[of_r]
            assert sorted(at[tasks == number].tolist()) == rows[kept].tolist()
            columns = {name: column[kept] for name, column in stream.columns.items()}
            missing = None if stream.missing is None else stream.missing[kept]
            sides.append((Stream(columns, stream.ts[kept], "x", missing=missing), rows[kept]))
        (r_some, r_rows), (s_some, s_rows) = sides
        for r_at, s_at in local.join_rows(r_some, s_some, predicate, parts.window, task.from_us):
            found.append((r_rows[r_at], s_rows[s_at]))
    return joined(found)


@pytest.mark.parametrize("predicate", cases.PREDICATES)
@pytest.mark.parametrize("seed", range(SEED, SEED + 30))
def test_every_pair_is_found_by_exactly_one_task(seed: int, predicate: str) -> None:
    r, s, window, rng = random_inputs(seed)
    chosen = cases.PREDICATES[predicate]
    known = Side(r.rows, r.ts[::3] if r.rows else r.ts, r.slice(0, r.rows // 2 + 1))
    slots, tuples = int(rng.integers(1, 9)), int(rng.choice([4, 20, 100]))
    parts = plan(known, Side(s.rows, s.ts, s), chosen, window, slots=slots, partition_tuples=tuples)
    verify.check(by_tasks(r, s, chosen, parts), oracle.join(r, s, chosen, window), "spark")


@pytest.mark.parametrize("case", cases.hard_cases(), ids=lambda case: case.name)
def test_hard_inputs_are_divided_without_loss(case: cases.Case) -> None:
    for window in WINDOWS:
        for predicate in cases.PREDICATES.values():
            known = [Side(x.rows, x.ts, x) for x in (case.r, case.s)]
            parts = plan(*known, predicate, window, slots=3, partition_tuples=7)
            right = oracle.join(case.r, case.s, predicate, window)
            verify.check(by_tasks(case.r, case.s, predicate, parts), right, "spark")


@pytest.mark.parametrize("output_pairs", [1, 7, 1 << 20])
@pytest.mark.parametrize("seed", range(SEED, SEED + 8))
def test_a_task_gives_the_oracles_result_whatever_is_handed_over_at_once(
    seed: int, output_pairs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    r, s, window, _ = random_inputs(seed)
    monkeypatch.setattr(local, "OUTPUT_PAIRS", output_pairs)
    monkeypatch.setattr(local, "MIN_CELL_ROWS", 16)
    for predicate in cases.PREDICATES.values():
        found = joined(list(local.join_rows(r, s, predicate, window)))
        verify.check(found, oracle.join(r, s, predicate, window), "a task")


def test_keys_of_any_type_meet_their_equals() -> None:
    rng = np.random.default_rng(SEED)
    small = rng.integers(-5, 5, 200)
    kinds = {
        "int64 and int32": (small, small[::-1].astype(np.int32)),
        "uint64 and int64": (np.abs(small).astype(np.uint64), small),
        "far apart": (small << 40, small[::-1] << 40),
        "beyond 32 bits": (small + (1 << 61), small[::-1] + (1 << 61)),
        "int8 and uint8": (small.astype(np.int8), np.abs(small).astype(np.uint8)),
        "text": (small.astype(str).astype(object), small[::-1].astype(str).astype(object)),
        "bytes": tuple(
            np.array([bytes([248 + key % 8]) for key in keys.tolist()], object)
            for keys in (small, small[::-1])
        ),
        "times": (small.astype("M8[s]"), small[::-1].astype("M8[s]").astype("M8[us]")),
    }
    for name, (r_keys, s_keys) in kinds.items():
        r_data = {"k": r_keys, "g": small, "ts": np.arange(200)}
        s_data = {"k": s_keys, "g": small[::-1], "ts": np.arange(200)}
        for on in ("k", "k,g"):
            predicate = Predicate.parse(on=on)
            r, s = as_streams(r_data, s_data, predicate)
            right = oracle.join(r, s, predicate, AllWindow())
            assert len(right) > 0, name
            parts = Partitioning(AllWindow(), (), Radix(predicate, 5), (1,) * 5, (2,) * 5)
            verify.check(by_tasks(r, s, predicate, parts), right, name)


def test_keys_whose_hashes_collide_do_not_join(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        local, "hashed_keys", lambda columns: np.zeros(len(columns[0]), dtype=np.uint32)
    )
    keys = np.arange(20, dtype=np.int64) << 40
    r, s = (Stream({"k": keys}, np.zeros(20, np.int64), side) for side in ("r", "s"))
    predicate = Predicate.parse(on="k")
    right = oracle.join(r, s, predicate, AllWindow())
    verify.check(joined(list(local.join_rows(r, s, predicate, AllWindow()))), right, "a task")


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.float32, np.float64])
def test_a_range_never_misses_a_partner(kind: type) -> None:
    rng = np.random.default_rng(SEED)
    ends = [*cases.EDGE_INTS, 0, 1, 9]
    values = np.array([*ends, *rng.integers(-20, 20, 50)], dtype=np.int64).astype(kind)
    if np.dtype(kind).kind == "f":
        values = np.concatenate([values, np.array(cases.EDGE_FLOATS, kind), values / 7])
    for lo, hi in ((0, 0), (10, 10), (-1, 3), (1 << 31, 5), (1 << 70, 0), (0, 1 << 1030)):
        term = Band("k", "k", lo, hi)
        r = Stream({"k": values}, np.zeros(len(values), np.int64), "r")
        right = oracle.join(r, r, Predicate((term,)), AllWindow())
        low, high = interval(values, term)
        wide = values.astype(np.float64)
        assert (wide[right.r_rows] >= low[right.s_rows]).all()
        assert (wide[right.r_rows] <= high[right.s_rows]).all()
        finite = np.unique(wide[np.isfinite(wide)])
        classes = Ranges(term, tuple(finite[::3].tolist()))
        parts = Partitioning(AllWindow(), (), classes, (1,) * classes.count, (1,) * classes.count)
        verify.check(by_tasks(r, r, Predicate((term,)), parts), right, "ranges")


def test_a_heavy_key_is_shared_out_and_the_light_ones_are_not() -> None:
    rng = np.random.default_rng(SEED)
    keys = [np.where(rng.random(4000) < 0.5, 7, rng.integers(0, 4000, 4000)) for _ in range(2)]
    r, s = (Stream({"k": k}, np.arange(4000), "x") for k in keys)
    predicate = Predicate.parse(on="k")
    sides = [Side(4000, x.ts, x) for x in (r, s)]
    parts = plan(*sides, predicate, AllWindow(), slots=4, partition_tuples=500)
    hashes = key_hashes(Stream({"k": np.array([7])}, np.zeros(1, np.int64), "x"), predicate, True)
    heavy = int((hashes[0] >> np.uint64(32)) * np.uint64(parts.classes.count) >> np.uint64(32))
    shares = [m * n for m, n in zip(parts.r_shares, parts.s_shares, strict=True)]
    assert shares[heavy] > 4
    assert sorted(shares)[: len(shares) - 1] == [1] * (len(shares) - 1)
    assert parts == plan(*sides, predicate, AllWindow(), slots=4, partition_tuples=500)
    verify.check(by_tasks(r, s, predicate, parts), oracle.join(r, s, predicate, AllWindow()), "x")


def test_tasks_that_would_be_too_many_are_refused_in_a_sentence() -> None:
    one = Stream({"k": np.zeros(1000, np.int64)}, np.arange(1000), "one")
    sides = [Side(100_000, one.ts, one)] * 2
    message = r"partition_tuples 1 would make [0-9,]+ tasks, and at most 1,048,576 are sensible"
    with pytest.raises(InputError, match=message):
        plan(*sides, Predicate.parse(on="k"), AllWindow(), slots=2, partition_tuples=1)


def test_slices_hold_about_as_much_and_a_tuple_has_few_copies() -> None:
    rng = np.random.default_rng(SEED)
    ts = np.sort(np.concatenate([rng.integers(0, 1000, 5000), rng.integers(0, 100_000, 5000)]))
    r = Stream({"k": np.zeros(10_000, np.int64)}, ts, "r")
    window = TimeWindow(700, 300)
    sides = [Side(x.rows, x.ts, x.slice(0, 100)) for x in (r, r)]
    parts = plan(*sides, Predicate.parse(on="k"), window, slots=2, partition_tuples=1000)
    assert parts.slices > 5
    at, _ = parts.assigned(r, np.arange(r.rows), True)
    assert (parts.r_shares, parts.s_shares) == ((1,) * parts.classes.count,) * 2
    assert np.bincount(at).max() <= 2
    lengths = np.diff(np.array(parts.starts_us))
    assert lengths.min() >= 699


JAVAS_STACK = """An error occurred while calling o137.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure: Lost task 0.0
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.cannotAcquire(Errors.scala:1)
Caused by: org.apache.spark.memory.SparkOutOfMemoryError: There is not enough memory.
\tat org.apache.spark.util.SparkErrorUtils.tryWithSafeFinally(SparkErrorUtils.scala:86)
\t... 1 more
"""


def test_what_spark_says_is_told_without_the_frames_of_its_stack() -> None:
    told = str(explained(RuntimeError(JAVAS_STACK)))
    assert told == (
        "the Spark job failed: Caused by: org.apache.spark.memory.SparkOutOfMemoryError: "
        "There is not enough memory."
    )
    own = UnsupportedError("a sentence of ours")
    assert explained(own) is own


PYTHONS_STACK = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "join.py", line 156, in work
    yield report(number, join.run(number, meter), folder, meter)
          ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
pyarrow.lib.ArrowInvalid: Schema at index 1 was different
"""


@pytest.mark.parametrize(
    ("whole", "told"),
    [
        (PYTHONS_STACK, "pyarrow.lib.ArrowInvalid: Schema at index 1 was different"),
        ("[STREAM_FAILED] Query ended\n=== Streaming Query ===\n", "[STREAM_FAILED] Query ended"),
    ],
)
def test_what_spark_says_is_told_in_one_line(whole: str, told: str) -> None:
    assert str(explained(RuntimeError(whole))) == f"the Spark job failed: {told}"


def test_a_plan_of_sparks_that_fails_is_a_mistake_told_in_a_sentence() -> None:
    def work() -> None:
        raise RuntimeError(JAVAS_STACK)

    with pytest.raises(EngineError, match=r"^the Spark job failed: .*not enough memory\.$"):
        engine._explaining(work)


def test_a_disk_that_is_full_is_named_by_what_the_user_wrote() -> None:
    refused = StorageError(
        Path("out/.streamjoin-0123456789ab.draft/new/pairs/part-0.parquet"),
        OSError(28, "No space left on device"),
    )
    said = explained(RuntimeError(f"...\nstreamjoin_common.storage.errors.StorageError: {refused}"))
    assert str(said) == (
        "out/pairs/part-0.parquet cannot be written (No space left on device): free some space, or "
        "name a path on another disk"
    )
