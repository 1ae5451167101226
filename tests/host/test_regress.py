"""``bench regress``: slower and faster beyond the noise, and what cannot be compared."""

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.host import report_samples as samples
from tests.host.test_bench_records import run_of

from streamjoin.cli import main
from streamjoin.errors import InputError
from streamjoin.report import stored
from streamjoin.report.stored import page
from streamjoin.report.stored.regress import FASTER, FEW, SAME, SLOWER, judge
from streamjoin_common.screen import display_width

QUIET = [1.0, 1.01, 0.99, 1.02, 1.0]


def times(*rounds: float, engine: str = "handshake", **changes: Any) -> dict[str, Any]:
    each = {name: list(rounds) for name in ("total_s", "wall_s", "cpu_s")}
    spreads = {name: samples.spread(sorted(rounds)[len(rounds) // 2]) for name in each}
    return samples.record(
        engine, family="simd", settings={"simd": 1}, each_round=each, **spreads | changes
    )


def written(path: Path, run: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(run))
    return path


@pytest.mark.parametrize(
    ("after", "verdict"),
    [
        (QUIET, SAME),
        ([1.5 * each for each in QUIET], SLOWER),
        ([0.6 * each for each in QUIET], FASTER),
        ([1.08 * each for each in QUIET], SAME),  # clear of the ranges, but less than runs differ
        ([1.2, 1.9, 1.0, 1.4, 1.6], SAME),  # a median of 1.4 with rounds that say nothing
        ([1.5, 1.5], FEW),
    ],
)
def test_a_change_is_one_beyond_the_noise_of_the_rounds(after: list[float], verdict: str) -> None:
    assert judge(QUIET, after) == verdict
    opposite = {SLOWER: FASTER, FASTER: SLOWER}.get(verdict, verdict)
    assert judge(after, QUIET) == opposite


def test_slower_ends_with_1_and_faster_or_equal_with_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    a = written(tmp_path / "a.json", run_of(times(*QUIET)))
    b = written(tmp_path / "b.json", run_of(times(*(1.5 * each for each in QUIET))))
    assert main(["bench", "regress", str(a), str(a)]) == 0
    told = capsys.readouterr()
    assert told.out == ""
    assert "3 figures: 0 slower, 0 faster, 3 within noise" in told.err
    assert main(["bench", "regress", str(a), str(b)]) == 1
    told = capsys.readouterr()
    assert "3 figures: 3 slower" in told.err
    assert "1.50" in told.out
    assert all(display_width(line) <= 80 for line in told.out.splitlines())
    assert main(["bench", "regress", str(b), str(a)]) == 0
    assert "3 figures: 0 slower, 3 faster" in capsys.readouterr().err
    assert main(["bench", "regress", str(a), str(b), "--json"]) == 1
    (plain,) = json.loads(capsys.readouterr().out)
    assert {change["figure"] for change in plain["changes"]} == {"whole call", "algorithm", "CPU"}


def test_a_replay_has_no_whole_call_and_a_record_without_rounds_decides_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replay = times(*QUIET, total_s=None)
    del replay["each_round"]["total_s"]
    without = times(*QUIET, engine="kang")
    del without["each_round"]
    path = written(tmp_path / "a.json", run_of(replay, without))
    assert main(["bench", "regress", str(path), str(path)]) == 0
    told = capsys.readouterr().err
    assert "2 figures: 0 slower, 0 faster, 2 within noise; 3 more have fewer than 3 rounds" in told


def test_cycles_have_no_noise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run(cycles: int, clock_hz: float = 83_333_333.3) -> dict[str, Any]:
        simulated = samples.fpga_record(family="simd", settings={"simd": 1}, cycles=cycles)
        return run_of(simulated | {"clock_hz": clock_hz})

    a, b = (written(tmp_path / f"{n}.json", run(n)) for n in (1000, 1001))
    assert main(["bench", "regress", str(a), str(a)]) == 0
    assert main(["bench", "regress", str(a), str(b)]) == 1
    assert "1,001" in capsys.readouterr().out
    stored.store(run(1000), tmp_path / "kept")  # with five digits
    assert main(["bench", "regress", str(tmp_path / "kept"), str(a)]) == 0
    c = written(tmp_path / "c.json", run(1000, 50e6))
    assert main(["bench", "regress", str(a), str(c)]) == 2
    assert "fpga-handshake on simd simd=1 had other clock_hz" in capsys.readouterr().err


def test_where_others_used_the_machine_cpu_time_alone_is_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(factor: float) -> dict[str, Any]:
        record = times(*QUIET)
        wall = [factor * each for each in QUIET]
        record["each_round"] = {**record["each_round"], "wall_s": wall}
        whole = run_of(record)
        other = copy.deepcopy(whole)
        other["workloads"][0]["name"] = other["records"][0]["workload"] = "other"
        for name in ("workloads", "records"):
            whole[name] += other[name]
        return whole

    before, after = run(1.0), run(2.0)
    a, b = written(tmp_path / "a.json", before), written(tmp_path / "b.json", after)
    assert main(["bench", "regress", str(a), str(b)]) == 1
    assert "6 figures: 2 slower" in capsys.readouterr().err
    threads = after["records"][0]["threads"]
    after["workloads"][0]["measured"]["load_average"] = threads + 0.7
    written(b, after)
    assert main(["bench", "regress", str(a), str(b)]) == 1
    assert "6 figures: 2 slower" in capsys.readouterr().err, "as much as a free machine has"
    after["workloads"][0]["measured"]["load_average"] = threads + 0.71
    written(b, after)
    for first, second, slower in ((a, b, 1), (b, a, 0)):  # in either of both
        assert main(["bench", "regress", str(first), str(second)]) == slower
        told = capsys.readouterr().err
        assert "others used the machine at 1 of 2 points, as simd simd=1: CPU time alone" in told
        assert f"4 figures: {slower} slower" in told
        assert "1 of them are CPU times that were judged alone" in told


def test_what_is_gone_ends_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = run_of(times(*QUIET), times(*QUIET, engine="kang"))
    after = run_of(times(*QUIET))
    a, b = written(tmp_path / "a.json", before), written(tmp_path / "b.json", after)
    assert main(["bench", "regress", str(b), str(a)]) == 0, "nothing that was there is missing"
    capsys.readouterr()
    assert main(["bench", "regress", str(a), str(b)]) == 1
    assert "only before, and gone: kang on simd simd=1" in capsys.readouterr().err
    other = copy.deepcopy(after)
    other["workloads"][0]["name"] = other["records"][0]["workload"] = "another"
    for name in ("workloads", "records"):
        before[name] += other[name]
    written(a, before)
    assert main(["bench", "regress", str(a), str(b), "--json"]) == 1
    (plain,) = json.loads(capsys.readouterr().out)
    assert plain["gone"] == ["kang on simd simd=1", "another"]


def test_records_of_cpu_beside_fpga_are_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = stored.FOLDER / "cpu-fpga-quick.json"
    a = written(tmp_path / "a.json", run_of(times(*QUIET)))
    own = written(tmp_path / "run" / "cpu-fpga.json", {"size": "quick", "points": []})
    for given in (kept, own.parent):
        assert main(["bench", "regress", str(a), str(given)]) == 2
        told = " ".join(capsys.readouterr().err.split())
        assert "is of bench cpu-fpga, whose records are not compared: give records of" in told


OTHERS: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "machine": (lambda run: run["environment"].update(cpu="an Arm"), "different machines"),
    "processors": (lambda run: run["environment"].update(cores=4), "of processors, 2 and 4"),
    "size": (lambda run: run["experiment"].update(size="full"), "of two sizes, quick and full"),
    "experiment": (lambda run: run["experiment"].update(name="x"), "different experiments"),
    "results": (lambda run: run["workloads"][0].update(digest="0"), "digest of simd simd=1"),
    "pairs": (lambda run: run["workloads"][0].update(pairs=9), "pairs of simd simd=1 is another"),
    "wrong": (lambda run: run["records"][0].update(status="wrong", error="x"), "simd=1 is wrong"),
    "failed": (lambda run: run["records"][0].update(status="failed", error="x"), "is failed"),
    "unchecked": (lambda run: run["records"][0].update(checked=False), "simd=1 is unchecked"),
    "settings": (lambda run: run["workloads"][0].update(settings={"simd": 2}), "settings of simd"),
    "own settings": (lambda run: run["records"][0].update(settings={"simd": 2}), "other settings"),
    "window": (lambda run: run["workloads"][0].update(window="count:9", seed=8), "seed of simd"),
    "threads": (lambda run: run["records"][0].update(threads=1), "other threads, 2 and 1"),
    "points": (
        lambda run: (
            run["workloads"][0].update(name="other"),
            run["records"][0].update(workload="other"),
        ),
        "they share no point",
    ),
    "rounds": (
        lambda run: run["records"][0]["each_round"].update(
            {name: [1.0] for name in ("total_s", "wall_s", "cpu_s")}
        ),
        "no figure has 3 rounds in both",
    ),
}


@pytest.mark.parametrize(("change", "sentence"), OTHERS.values(), ids=OTHERS)
def test_records_that_are_not_comparable_are_refused_in_a_sentence(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[dict[str, Any]], object],
    sentence: str,
) -> None:
    run = run_of(times(*QUIET))
    other = copy.deepcopy(run)
    change(other)
    a, b = written(tmp_path / "a.json", run), written(tmp_path / "b.json", other)
    assert main(["bench", "regress", str(a), str(b)]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    (line,) = told.err.splitlines()
    assert "are not comparable" in line
    assert sentence in line


def test_folders_are_compared_by_experiment_and_what_one_lacks_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [run_of(times(*QUIET)), run_of(times(*QUIET), name="iawj-real")]
    for number, run in enumerate(runs):
        written(tmp_path / "kept" / f"{number}.json", run)
    slow = run_of(times(*(2 * each for each in QUIET)))
    written(tmp_path / "runs" / "handshake-band-quick" / "records.json", slow)
    written(tmp_path / "runs" / "x-quick" / "records.json", run_of(times(*QUIET), name="x"))
    assert main(["bench", "regress", str(tmp_path / "kept"), str(tmp_path / "runs")]) == 1
    told = capsys.readouterr().err
    assert f"only {tmp_path / 'kept'} has iawj-real quick" in told
    assert f"only {tmp_path / 'runs'} has x quick" in told
    assert "3 figures: 3 slower" in told


def test_what_one_record_lacks_and_other_versions_are_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = run_of(times(*QUIET), times(*QUIET, engine="kang"))
    after = run_of(times(*QUIET), times(*QUIET, engine="llhj"))
    del after["records"][0]["each_round"]["cpu_s"], after["records"][0]["cpu_s"]
    after["records"][0]["cycles"] = 7
    before["environment"]["packages"] = {"numpy": "1"}
    after["environment"]["packages"] = {"numpy": "2"}
    a, b = written(tmp_path / "a.json", before), written(tmp_path / "b.json", after)
    assert main(["bench", "regress", str(a), str(b)]) == 1
    told = capsys.readouterr().err
    for said in (
        *("only before, and gone: kang", "only after: llhj", "numpy: 1 before, 2 after"),
        *(
            "only before: CPU of handshake on simd simd=1",
            "only after: cycles of handshake on simd",
        ),
    ):
        assert said in told


def test_a_machine_that_neither_record_names_is_not_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(times(*QUIET))
    del run["environment"]["cpu"]
    path = str(written(tmp_path / "a.json", run))
    assert main(["bench", "regress", path, path]) == 2
    assert "different machines, unknown cpu and unknown cpu" in capsys.readouterr().err


def test_a_figure_that_was_nothing_before_is_slower(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a = written(tmp_path / "a.json", run_of(times(0.0, 0.0, 0.0)))
    b = written(tmp_path / "b.json", run_of(times(5.0, 5.0, 5.0)))
    assert main(["bench", "regress", str(a), str(a)]) == 0
    assert main(["bench", "regress", str(a), str(b)]) == 1
    assert "3 figures: 3 slower" in capsys.readouterr().err
    assert main(["bench", "regress", str(a), str(b), "--json"]) == 1
    (plain,) = json.loads(capsys.readouterr().out)
    assert {change["ratio"] for change in plain["changes"]} == {None}
    assert main(["bench", "regress", str(b), str(a)]) == 0


INCOMPLETE: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "threads": (lambda run: run["records"][0].pop("threads"), "records[0].threads must be"),
    "no threads": (lambda run: run["records"][0].update(threads=0), "an integer from 1, not 0"),
    "settings": (
        lambda run: (run["records"][0].pop("settings"), run["workloads"][0].pop("settings")),
        "records[0].settings must be an object, not null",
    ),
    "text": (lambda run: run["records"][0].update(settings="x"), "settings must be an object, not"),
    "family": (
        lambda run: (run["records"][0].pop("family"), run["workloads"][0].pop("family")),
        "records[0].family must be a string, not null",
    ),
    "bytes": (
        lambda run: run["records"][0].update(semi_stream={"memory_bytes": {"h_s": None}}),
        "semi_stream.memory_bytes.h_s must be a finite number from 0, not null",
    ),
    "misses": (
        lambda run: run["records"][0].update(counters={"l1d_read_misses": "x"}),
        "records[0].counters.l1d_read_misses must be a finite number",
    ),
    "size": (lambda run: run["experiment"].pop("size"), "experiment.size must be one of quick"),
    "twice": (lambda run: run["records"].append(run["records"][0]), "records[1].engine must be an"),
}


@pytest.mark.parametrize(("change", "sentence"), INCOMPLETE.values(), ids=INCOMPLETE)
def test_a_record_that_lacks_what_is_compared_is_refused_with_file_and_field(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[dict[str, Any]], object],
    sentence: str,
) -> None:
    run = run_of(times(*QUIET))
    a = written(tmp_path / "a.json", run)
    change(run)
    b = written(tmp_path / "b.json", run)
    assert main(["bench", "regress", str(a), str(b)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert str(b) in line
    assert sentence in line
    with pytest.raises(InputError, match=re.escape(sentence)):
        page.runs(b.parent)


def test_two_records_of_one_experiment_and_size_in_a_folder_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "b"):
        written(tmp_path / f"{name}.json", run_of(times(*QUIET)))
    assert main(["bench", "regress", str(tmp_path), str(tmp_path)]) == 2
    assert "b.json are both of handshake-band quick: drop one" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ([], "compares two"),
        (["a"], "compares two"),
        (["none", "none"], "none: has no records"),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    given: list[str],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "regress", *given]) == 2
    assert sentence in capsys.readouterr().err
