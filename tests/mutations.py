"""Faults in host, data generation and Spark's joins and, for each, the test that has to notice.

A fault is put into a copy of the sources: kernels are compiled from files, and Spark's workers
import them. ``python -m tests.mutations NAME`` runs the test named for a fault in such a copy, as
``make test`` would: a test that is marked slow does not count.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.hw.mutation import Mutation

from streamjoin_hw.formal.faults import Fault

ROOT = Path(__file__).resolve().parents[1]
COPIED = ("common", "datagen", "host", "hw", "spark", "tests", "benchmarks", "pyproject.toml")
DEADLINE_S = 300

MUTATIONS = {
    "hash-table-ignores-keys": Mutation(
        Fault(
            "streamjoin.engines.kernels.hashing",
            "if packed >> U64(32) == U64(key):",
            "if packed >> U64(32) <= U64(key):",
            "tuples of other keys in the same bucket join",
        ),
        "host/test_stress.py::test_random_windows_join_as_the_oracle_says[npj]",
        "npj is wrong",
    ),
    "expired-tuple-is-met": Mutation(
        Fault(
            "streamjoin.engines.arrivals",
            'return np.searchsorted(ts, now - length_us, side="right")',
            'return np.searchsorted(ts, now - length_us, side="left")',
            "a tuple lives a microsecond longer than its window",
        ),
        "host/test_engines.py::test_every_engine_gives_the_oracles_result_on_hard_cases"
        "[kang-window-edges]",
        "surplus",
    ),
    "cores-are-collected-as-they-end": Mutation(
        Fault(
            "streamjoin.engines.sliding.splitjoin",
            "cores.sort(key=lambda done: done.core)",
            "cores.sort(key=lambda done: -done.core)",
            "results of a punctuation come from the last core first",
        ),
        "host/test_sliding.py::test_a_collector_takes_core_by_core_up_to_each_punctuation[7]",
        "AssertionError",
    ),
    "tree-deletes-another-entry": Mutation(
        Fault(
            "streamjoin.engines.kernels.trees.btree",
            "remove_at(forest.leaves, first, count_below(forest.leaves, first, value), NOTHING)",
            "remove_at(forest.leaves, first, U64(0), NOTHING)",
            "a leaf loses its smallest entry in place of the one that has expired",
        ),
        "host/test_index.py::test_a_b_tree_holds_what_was_inserted_and_not_deleted[0]",
        "AssertionError",
    ),
    "tuple-at-its-lateness-is-dropped": Mutation(
        Fault(
            "streamjoin.inputs.lateness",
            "ts < before - lateness_us",
            "ts <= before - lateness_us",
            "a tuple just as late as it may be is dropped",
        ),
        "host/test_live.py::test_late_tuples_take_their_place_or_are_counted",
        "AssertionError",
    ),
    "late-tuples-are-not-waited-for": Mutation(
        Fault(
            "streamjoin.live.rounds",
            "= r_state.newest_us - self._r.late_us, s_state.newest_us - self._s.late_us",
            "= r_state.newest_us, s_state.newest_us",
            "a live join goes on before late tuples can have come",
        ),
        "host/test_live.py::test_late_tuples_take_their_place_or_are_counted",
        "Error",
    ),
    "kept-band-rounds-inwards": Mutation(
        Fault(
            "streamjoin.engines.kernels.flat.words",
            "low, high = (value - away) - hi, (value + away) + lo",
            "low, high = value - hi, (value + away) + lo",
            "a live float band misses a partner whose bound was rounded",
        ),
        "host/test_live_words.py::test_bands_of_floating_point_numbers_are_exact_for_s_and_miss_none"
        "_for_r[types0]",
        "assert not",
    ),
    "cached-value-may-lack-rows": Mutation(
        Fault(
            "streamjoin.engines.kernels.semi.values",
            "whole[value] = seen == many and",
            "whole[value] = seen <= many and",
            "a join value stays in the cache when R loses a row of it",
        ),
        "host/test_semistream_cache.py::test_a_row_that_has_left_is_not_met_by_what_comes_cycles_later"
        "[3-False]",
        "AssertionError",
    ),
    "cached-value-is-known-by-a-part-of-its-hash": Mutation(
        Fault(
            "streamjoin.engines.kernels.semi.steps",
            "mixed & LOW and (entry & REST) == rest:\n                break\n"
            "            slot += U64(1)\n"
            "        entry = directory[slot]\n        older",
            "mixed & LOW:\n                break\n            slot += U64(1)\n"
            "        entry = directory[slot]\n        older",
            "a stream tuple is joined with the rows of a key whose hash differs in two bits",
        ),
        "host/test_semistream_values.py::"
        "test_keys_whose_hashes_differ_in_a_few_bits_are_told_apart[True-4294967296]",
        "AssertionError",
    ),
    "chain-takes-any-row": Mutation(
        Fault(
            "streamjoin.engines.kernels.semi.values",
            "expected = U64(values[extra, HASH]) == row",
            "expected = True",
            "row numbers in a chain are not compared with the rows that are read",
        ),
        "host/test_semistream_values.py::"
        "test_rows_that_change_in_number_or_order_leave_the_cache[3]",
        "AssertionError",
    ),
    "one-row-value-takes-any-row": Mutation(
        Fault(
            "streamjoin.engines.kernels.semi.values",
            "elif form == ONE and U64(values[value, NUMBER]) == row:",
            "elif form == ONE:",
            "the row number of a value is not compared with the row that is read",
        ),
        "host/test_semistream_values.py::"
        "test_rows_that_change_in_number_or_order_leave_the_cache[1]",
        "AssertionError",
    ),
    "thread-forgets-neighbours": Mutation(
        Fault(
            "streamjoin.engines.kernels.flat.ranges",
            "(owns | meets)",
            "owns",
            "a thread does not look up its blocks for tuples that another one inserts",
        ),
        "host/test_flat.py::"
        "test_each_block_of_an_arrival_is_planned_by_the_thread_that_owns_it[band-2]",
        "assert",
    ),
    "threads-overwrite-pairs": Mutation(
        Fault(
            "streamjoin.engines.kernels.flat.sharing",
            "U64(OUT_AT), free, after)",
            "U64(OUT_AT), free, after - U64(1))",
            "a thread claims less of the output than it writes",
        ),
        "host/test_flat.py::test_hard_keys_in_small_batches_give_the_oracles_result[2-none]",
        "MismatchError",
    ),
    "rest-of-pairs-is-lost": Mutation(
        Fault(
            "streamjoin.engines.kernels.flat.sharing",
            "is_done = handed == written",
            "is_done = handed > U64(0) or handed == written",
            "what a chunk has no room for is not kept for the next one",
        ),
        "host/test_flat.py::test_hard_keys_in_small_batches_give_the_oracles_result[2-none]",
        "MismatchError",
    ),
    "gap-stays-in-the-output": Mutation(
        Fault(
            "streamjoin.engines.sliding.flat.team",
            "end -= after - gap",
            "end -= moved",
            "the output ends behind what is free of the last chunk",
        ),
        "host/test_flat.py::test_chunks_of_any_size_are_filled_and_leave_no_gaps[2-5000]",
        "MismatchError",
    ),
    "r-does-not-precede-s": Mutation(
        Fault(
            "streamjoin.engines.kernels.flat.listing",
            "_count_up_to(ts, at, moment) if or_at else",
            "_count_before(ts, at, moment) if or_at else",
            "tuples of R that arrive at the same time as one of S come after it",
        ),
        "host/test_flat.py::test_rows_are_listed_with_those_that_arrived_before[lengths4]",
        "assert",
    ),
    "candidates-count-as-matches": Mutation(
        Fault(
            "streamjoin.engines.kernels.flat.joining",
            "= U32(kept - written)",
            "= U32(end - start)",
            "where threads restore the order, matches lie where all candidates are counted",
        ),
        "host/test_flat.py::test_hard_keys_in_small_batches_give_the_oracles_result[2-outer]",
        "ValueError",
    ),
    "pair-is-kept-by-half": Mutation(
        Fault(
            "streamjoin.engines.kernels.flat.checking",
            "out[r_at + kept], out[s_at + kept] = r_number, s_number",
            "out[r_at + kept] = r_number",
            "of a pair that satisfies the predicate, S's row stays where it was a candidate",
        ),
        "host/test_flat.py::test_hard_keys_in_small_batches_give_the_oracles_result[1-none]",
        "MismatchError",
    ),
    "many-candidates-lack-a-row": Mutation(
        Fault(
            "streamjoin.engines.kernels.flat.joining",
            "for pair in range(own + start + U64(LANES), own + end):",
            "for pair in range(own + start + U64(2 * LANES), own + end):",
            "an arrival's own row is not written beside all of its candidates",
        ),
        "host/test_flat.py::test_hard_keys_in_small_batches_give_the_oracles_result[1-none]",
        "MismatchError",
    ),
    "live-check-believes-one-term": Mutation(
        Fault(
            "streamjoin.engines.kernels.flat.checking",
            "hit &= met",
            "hit = met",
            "a candidate that one term of a predicate refuses is a match",
        ),
        "host/test_live_terms.py::test_a_candidate_must_satisfy_every_term_whichever_is_indexed[a]",
        "assert",
    ),
    "look-up-ends-with-its-strip": Mutation(
        Fault(
            "streamjoin.engines.kernels.flat.joining",
            "for _ in range(plan[arrival, U64(STRIPS)]):",
            "for _ in range(plan[arrival, U64(STRIPS)] - U32(1)):",
            "a range that reaches into a further strip is not looked up there",
        ),
        "host/test_live_terms.py::test_a_whole_join_by_two_bands_is_that_of_the_oracle[none-1]",
        "assert",
    ),
    "live-hash-is-believed": Mutation(
        Fault(
            "streamjoin.engines.sliding.flat.coding",
            "            return self._mixed\n        return self._spans",
            "            return False\n        return self._spans",
            "tuples whose 64-bit values have one hash match",
        ),
        "host/test_live_terms.py::test_integers_far_apart_whose_hashes_are_equal_do_not_match",
        "assert",
    ),
    "strips-stay-where-values-were": Mutation(
        Fault(
            "streamjoin.engines.sliding.flat.live",
            "self._chosen &= serves",
            "pass",
            "codes by two terms are not made anew where values have moved",
        ),
        "host/test_live_terms.py::test_strips_are_cut_anew_where_values_move",
        "assert",
    ),
    "filter-loses-keys": Mutation(
        Fault(
            "streamjoin.engines.kernels.semi.steps",
            "filter_words[word] |= bits",
            "filter_words[word] = bits",
            "the filter over R's keys forgets a key when another one falls into the same word",
        ),
        "host/test_semistream_filter.py::test_the_filter_changes_no_pair_also_if_r_is_larger_than_it_was_made_for[20000-400-4]",
        "AssertionError",
    ),
    "filter-is-used-after-a-wait": Mutation(
        Fault(
            "streamjoin.engines.semi.join",
            "self.filter.pause()",
            "pass",
            "the filter is used though R may have changed while nothing of it was read",
        ),
        "host/test_semistream_filter.py::test_after_a_wait_the_filter_is_used_only_once_all_of_r_was_read_again",
        "AssertionError",
    ),
    "row-depends-on-its-part": Mutation(
        Fault(
            "streamjoin_datagen.rows.seeds",
            "counters = np.arange(first_row + 1, first_row + 1 + row_count, dtype=np.uint64)",
            "counters = np.arange(1, 1 + row_count, dtype=np.uint64)",
            "every part of a workload begins with the same rows",
        ),
        "datagen/test_generate.py::test_files_hold_the_rows_in_arrival_order_and_their_pairs_are_known[band]",
        "AssertionError",
    ),
    "foreign-keys-are-counted": Mutation(
        Fault(
            "streamjoin_datagen.pairs",
            "s_keys = indices[keys[indices] == s_keys]",
            "s_keys = indices",
            "keys of S that R does not have count as R's nearest",
        ),
        "datagen/test_generate.py::test_pairs_are_counted_alike_in_narrow_and_wide_domains",
        "assert",
    ),
    "slice-reaches-the-wrong-side": Mutation(
        Fault(
            "streamjoin_spark.batch.partition",
            "return window.r_us - 1, window.s_us - 1",
            "return window.s_us - 1, window.r_us - 1",
            "a task is given R's tuples for as long as S's live",
        ),
        "spark/test_tasks.py::test_hard_inputs_are_divided_without_loss",
        "missing",
    ),
    "state-forgets-the-living": Mutation(
        Fault(
            "streamjoin_spark.streaming.decided",
            "kept = ends > watermark_us",
            "kept = stream.ts > watermark_us",
            "a streaming query forgets tuples that later ones may meet",
        ),
        "spark/test_streaming.py::test_a_stream_gives_the_oracles_result"
        "[k-None-time:210us,7us-files]",
        "missing",
    ),
}


def source(folder: Path, module: str) -> Path:
    """Return the file of a module in a copy of the sources."""
    (path,) = folder.glob(f"*/{module.replace('.', '/')}.py")
    return path


@contextmanager
def copy_with(fault: Fault) -> Iterator[Path]:
    """Give a copy of the sources with a fault.

    Raises
    ------
    FaultError
        If the fault does not fit.
    """
    with tempfile.TemporaryDirectory(prefix="streamjoin-fault-") as name:
        folder = Path(name)
        for each in COPIED:
            copy = shutil.copytree if (ROOT / each).is_dir() else shutil.copy2
            copy(ROOT / each, folder / each)
        path = source(folder, fault.module)
        path.write_text(fault.apply_to(path.read_text(encoding="utf-8")), encoding="utf-8")
        yield folder


def run(name: str, *, wrong: bool = True) -> "subprocess.CompletedProcess[str]":
    """Run a fault's test in a copy of the sources, with the fault or, to compare, without it."""
    fault, test, _ = MUTATIONS[name]
    given = fault if wrong else Fault(fault.module, fault.right, fault.right, "nothing")
    with copy_with(given) as folder:
        packages = sorted({str(path.parent.parent) for path in folder.glob("*/*/__init__.py")})
        env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(packages),
            "STREAMJOIN_CACHE": str(folder / "cache"),  # nobody needs its kernels again
        }
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
        return subprocess.run(
            [*command, f"tests/{test}"],
            cwd=folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )


if __name__ == "__main__":
    shown = run(sys.argv[1])
    print(shown.stdout, shown.stderr, sep="\n")  # noqa: T201
    raise SystemExit(shown.returncode)
