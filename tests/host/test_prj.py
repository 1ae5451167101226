"""What is particular to the parallel radix join: passes, splits, regular and skewed keys."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.host.cases import Case, hard_cases

import streamjoin as sj
from streamjoin import oracle, run, verify
from streamjoin.engines import catalog
from streamjoin.engines.intra import prj, window
from streamjoin.engines.job import Job
from streamjoin.engines.kernels.intra import radix
from streamjoin.tuples import Int64s, Stream
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import AllWindow

ON_K = Predicate.parse(on="k")


def keys_stream(keys: Int64s, source: str) -> Stream:
    return Stream({"k": keys.astype(np.int32)}, np.zeros(len(keys), np.int64), source)


KEYS = {
    "dense": np.arange(3000),
    "multiples of 4096": np.arange(3000) << 12,
    "one key": np.full(300, 7),
    "one heavy key": np.concatenate([np.full(700, 9), np.arange(2000)]),
    "ends": np.array([-(2**31), -1, 0, 1, 2**31 - 1] * 20),
}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("radix_bits", [0, 1, 8, 10, 11, 18])
@pytest.mark.parametrize("keys", KEYS)
def test_every_number_of_radix_bits_gives_the_oracles_result(
    keys: str, radix_bits: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prj, "BATCH_TUPLES", 100)  # so that small inputs are cut too
    monkeypatch.setattr("streamjoin.engines.intra.window.OUTPUT_PAIRS", 1000)
    rng = np.random.default_rng(1)
    r, s = (keys_stream(rng.permutation(KEYS[keys]), name) for name in ("r", "s"))
    engine = catalog.get("prj")
    asked = Job(r, s, ON_K, AllWindow(), threads=threads)
    outcome = run.run(engine, run.complete(engine, asked, {"radix_bits": radix_bits}))
    verify.check(outcome.pairs, oracle.join(r, s, ON_K, AllWindow()), "prj")


@pytest.mark.parametrize("case", hard_cases(), ids=lambda case: case.name)
def test_more_threads_than_tuples_are_no_harm(case: Case) -> None:
    engine = catalog.get("prj")
    job = run.complete(engine, Job(case.r, case.s, Predicate.parse(on="k=k2"), AllWindow(), 9), {})
    right = oracle.join(case.r, case.s, job.predicate, AllWindow())
    verify.check(run.run(engine, job).pairs, right, "prj")


@given(
    r_sizes=st.lists(st.integers(0, 40), min_size=4, max_size=4),
    s_sizes=st.lists(st.integers(0, 40), min_size=4, max_size=4),
    threads=st.integers(1, 4),
)
def test_tasks_cover_every_pair_of_a_partition_once(
    r_sizes: list[int], s_sizes: list[int], threads: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prj, "BATCH_TUPLES", 6)
        bounds = [np.concatenate([[0], np.cumsum(sizes)]) for sizes in (r_sizes, s_sizes)]
        tasks = prj.split_tasks(bounds[0], bounds[1], threads)
        met = np.zeros((sum(r_sizes), sum(s_sizes)), dtype=int)
        for r_first, r_end, s_first, s_end in tasks.tolist():
            met[r_first:r_end, s_first:s_end] += 1
        owed = np.zeros_like(met)
        for part in range(4):
            owed[bounds[0][part] : bounds[0][part + 1], bounds[1][part] : bounds[1][part + 1]] = 1
        assert (met == owed).all()
        given_out = [task for batch in prj._Batches(tasks) for task in batch.tolist()]
        assert sorted(given_out) == sorted(tasks.tolist())


@pytest.mark.parametrize("seed", range(3))
def test_every_piece_of_rows_is_moved_to_its_partitions_in_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, bits = int(rng.integers(100, 3000)), int(rng.integers(1, 9))
    keys = rng.integers(0, rng.integers(1, 5000), rows).astype(np.uint32)
    counts = np.zeros(1 << bits, dtype=np.int64)
    radix.key_histogram(keys, 0, rows, bits, counts)
    offsets = np.cumsum(counts) - counts
    out = np.zeros(rows, dtype=np.uint64)
    for first, end in ((0, rows // 3), (rows // 3, rows - 1), (rows - 1, rows)):
        radix.key_scatter(keys, first, end, bits, offsets, out)
    partition = (keys * np.uint32(0x9E3779B1)) >> np.uint32(32 - bits)
    order = np.argsort(partition, kind="stable")
    packed = (keys.astype(np.uint64) << np.uint64(32)) | np.arange(rows, dtype=np.uint64)
    assert (out == packed[order]).all()
    assert (offsets == np.cumsum(counts)).all()


@pytest.mark.parametrize("engine", ["npj", "prj", "mway"])
def test_a_process_of_few_addresses_writes_its_pairs_in_parts(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(count: int, kind: Any) -> Any:
        raise MemoryError

    keys = {"k": np.arange(4000) % 40}
    right = sj.join(keys, keys, on="k", engine=engine)
    monkeypatch.setattr(window, "reserved", refuse)
    monkeypatch.setattr(window, "OUTPUT_PAIRS", 5000)
    again = sj.join(keys, keys, on="k", engine=engine, check=True)
    assert len(again) == len(right) == 4000 * 100
    assert again.metrics["digest"] == right.metrics["digest"]


def test_small_results_do_not_keep_the_addresses_that_were_reserved() -> None:
    def addresses() -> int:
        status = Path("/proc/self/status").read_text()
        return int(status.partition("VmSize:")[2].split()[0])

    keys = {"k": np.arange(40_000)}
    sj.join(keys, keys, on="k", engine="npj")
    before_kb = addresses()
    kept = [sj.join(keys, keys, on="k", engine="npj") for _ in range(4)]
    assert {len(each) for each in kept} == {40_000}
    assert addresses() - before_kb < 200_000
