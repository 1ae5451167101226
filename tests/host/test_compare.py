"""Comparisons: every result checked, wrong engines shown as wrong, runs whole or absent."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamjoin as sj
from streamjoin.bench import compare as bench
from streamjoin.bench import suites
from streamjoin.cli import main
from streamjoin.engines import catalog
from streamjoin.engines.job import Job
from streamjoin.engines.sliding.kang import Kang
from streamjoin.engines.yardsticks.duckdb import DuckDb
from streamjoin.errors import EngineError
from streamjoin.metrics import Meter
from streamjoin.report import run_folder
from streamjoin.verbs import comparison

CaptureFixture = pytest.CaptureFixture[str]


@pytest.fixture
def workload(tmp_path: Path) -> Path:
    folder = tmp_path / "workload"
    folder.mkdir()
    rng = np.random.default_rng(4)
    for side in ("r", "s"):
        columns = {"k": rng.integers(0, 90, 400).astype(np.int32), "ts": np.arange(400) * 10}
        pq.write_table(pa.table(columns), folder / f"{side}.parquet")
    description = {
        "format": 1,
        "name": "little",
        "kind": "equi",
        "r": {"path": "r.parquet", "rows": 400},
        "s": {"path": "s.parquet", "rows": 400},
        "predicate": {"on": ["k"]},
        "window": "tumbling:1ms",
    }
    (folder / "workload.json").write_text(json.dumps(description))
    return folder


class LosesOne(Kang):
    """An engine that forgets a pair, to see that it is caught."""

    def run(self, job: Job, prepared: None, meter: Meter) -> None:
        super().run(job, prepared, meter)
        meter.pairs()  # puts the last small batches behind the others
        last = meter._batches[-1]
        last.r_rows, last.s_rows = last.r_rows[:-1], last.s_rows[:-1]
        last.produced_us = np.asarray(last.produced_us)[:-1]


class Disorders(Kang):
    """An engine that breaks its order promise."""

    def run(self, job: Job, prepared: None, meter: Meter) -> None:
        super().run(job, prepared, meter)
        meter.pairs()  # puts the last small batches behind the others
        for batch in meter._batches:
            batch.r_rows, batch.s_rows = batch.r_rows[::-1], batch.s_rows[::-1]


def records_of(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "records.json").read_text())
    return found


def test_compare_checks_every_engine_and_writes_the_page(
    workload: Path, tmp_path: Path, capsys: CaptureFixture
) -> None:
    run = tmp_path / "run"
    flags = ["--engines", "npj,kang,duckdb", "--out", str(run), "--rounds", "2"]
    assert main(["compare", str(workload), *flags]) == 0
    records = records_of(run)["records"]
    assert [record["engine"] for record in records] == ["npj", "kang", "duckdb"]
    assert " how " not in capsys.readouterr().out
    assert all(record["checked"] and record["rounds"] == 2 for record in records)
    assert len({record["digest"] for record in records}) == 1
    assert records[0]["pairs"] > 0
    page = (run / "report.html").read_text()
    assert "little" in page
    assert "kang" in page
    assert sorted(path.name for path in run.iterdir()) == ["records.json", "report.html"]


@pytest.mark.parametrize(
    ("broken", "reason"),
    [(LosesOne, "first missing (r_row, s_row) = "), (Disorders, "breaks order inner")],
)
def test_a_wrong_engine_is_shown_as_wrong_and_exits_1(
    workload: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    broken: type[Kang],
    reason: str,
) -> None:
    monkeypatch.setattr(
        catalog, "get", lambda name, right=catalog.get: broken() if name == "kang" else right(name)
    )
    run = tmp_path / "run"
    flags = ["--engines", "npj,kang", "--out", str(run), "--rounds", "1"]
    batch, *others = Kang.knobs
    monkeypatch.setattr(Kang, "knobs", (batch.__class__("batch", 50, "small"), *others))
    assert main(["compare", str(workload), *flags]) == 1
    good, bad = records_of(run)["records"]
    assert (good["status"], good["checked"]) == ("ok", True)
    assert (bad["status"], bad["checked"]) == ("wrong", False)
    assert reason in bad["error"]
    assert "throughput_tuples_per_s" not in bad


class WrongLater(LosesOne):
    """Right in the first rounds, wrong in a later one."""

    calls = 0

    def run(self, *args: Any) -> None:
        """Lose nothing before the third run."""
        WrongLater.calls += 1
        (LosesOne if WrongLater.calls > 2 else Kang).run(self, *args)


def test_an_engine_that_turns_wrong_keeps_no_figure_of_earlier_rounds(
    workload: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(
        catalog,
        "get",
        lambda name, right=catalog.get: WrongLater() if name == "kang" else right(name),
    )
    flags = ["--engines", "npj,kang", "--out", str(tmp_path / "run"), "--rounds", "3"]
    assert main(["compare", str(workload), *flags]) == 1
    _, bad = records_of(tmp_path / "run")["records"]
    assert (bad["status"], bad["checked"], bad["rounds"]) == ("wrong", False, 0)
    assert "wall_s" not in bad


def test_an_engine_that_cannot_is_refused_before_anything_runs(
    workload: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    flags = ["--engines", "kang,npj", "--window", "count:7", "--out", str(out)]
    assert main(["compare", str(workload), *flags]) == 2
    assert "npj cannot join under window count:7, only all, tumbling" in capsys.readouterr().err
    assert not out.exists()


def test_an_engine_that_fails_is_shown_and_the_others_run(
    workload: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise EngineError("the library said no")

    monkeypatch.setattr(DuckDb, "run", fail)
    out = tmp_path / "run"
    flags = ["--engines", "duckdb,kang", "--rounds", "1", "--out", str(out)]
    assert main(["compare", str(workload), *flags]) == 1
    failed, good = records_of(out)["records"]
    assert (failed["status"], failed["error"]) == ("failed", "the library said no")
    assert good["checked"]


@pytest.mark.parametrize(
    ("change", "status", "sentence"),
    [
        ({"format": 99}, 2, "format must be 1, not 99"),
        ({"r": {"path": "r.parquet", "rows": 77}}, 2, "says 77 x 400 rows, the files have 400"),
        (
            {"expected": {"window": "tumbling:1ms", "pairs": 999}},
            1,
            "expects 999 pairs",
        ),
        ({"name": "\ud800"}, 2, "holds half a surrogate pair"),
        ({"window": 5}, 2, "is not a workload's description"),
    ],
)
def test_a_description_that_does_not_fit_the_files_is_refused(
    workload: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: dict[str, Any],
    status: int,
    sentence: str,
) -> None:
    path = workload / "workload.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    flags = ["--engines", "kang", "--out", str(tmp_path / "run")]
    assert main(["compare", str(workload), *flags]) == status
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "line",
    ["rounds = 0", "rounds = -3", 'rounds = "x"', 'threads = "x"', "threads = 0", "window = 5",
     "speedup = nan", 'speedup = "x"', "knobs = 5", "knobs = {npj = 5}", 'engines = "npj"',
     'engines = [["npj"]]', 'engines = ["npj", "npj"]', "knobs = {npj = {load = [1]}}",
     "knobs = {prj = {radix_bits = 8}}", 'arrival = "later"'],
)  # fmt: skip
def test_a_suite_with_a_wrong_value_is_refused_in_a_sentence(
    tmp_path: Path,
    workload: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    line: str,
) -> None:
    monkeypatch.setattr(suites, "generate", lambda *_: [workload])
    engines = "" if line.startswith("engines") else 'engines = ["npj"]'
    suite = tmp_path / "suite.toml"
    suite.write_text(f'[[workload]]\nkind = "equi"\n{engines}\n{line}\n')
    assert main(["compare", str(suite), "--out", str(tmp_path / "run")]) == 2
    assert capsys.readouterr().err.strip().count("\n") == 0
    assert not (tmp_path / "run").exists()


def test_compare_refuses_what_it_must_not_touch(
    workload: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "thesis.txt").write_text("mine")
    flags = ["--engines", "npj"]
    assert main(["compare", str(workload), *flags, "--out", str(other)]) == 2
    assert "holds something else than a run" in capsys.readouterr().err
    assert main(["compare", str(tmp_path), *flags, "--out", str(tmp_path / "x")]) == 2
    assert "there is no workload.json; make one with  streamjoin data" in capsys.readouterr().err
    assert main(["compare", "smal", *flags, "--out", str(tmp_path / "x")]) == 2
    assert capsys.readouterr().err.endswith("no workload.json: did you mean small?\n")
    (workload / "workload.json").write_text('{"name": 1}')
    assert main(["compare", str(workload), *flags, "--out", str(tmp_path / "x")]) == 2
    assert "is not a workload's description" in capsys.readouterr().err
    assert main(["compare", str(workload), "--engines", "kong", "--out", str(tmp_path / "x")]) == 2
    assert not (tmp_path / "x").exists()


def killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_records_without_their_page_are_completed_by_report_and_by_the_next_run(
    workload: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: CaptureFixture
) -> None:
    run = tmp_path / "run"
    page = run / "report.html"
    compare = ["compare", str(workload), "--engines", "npj", "--out", str(run), "--rounds", "1"]
    with monkeypatch.context() as patch:
        patch.setattr(run_folder, "write_report", killed)
        assert main(compare) == 130
    assert [path.name for path in run.iterdir()] == ["records.json"]
    assert f"to draw their page, type  streamjoin report {run}" in capsys.readouterr().err
    assert main(["report", str(run)]) == 0
    assert "little" in page.read_text()
    first = page.read_text()
    with monkeypatch.context() as patch:  # new records beside the old page
        patch.setattr(run_folder, "write_report", killed)
        assert main(compare) == 130
    assert page.read_text() == first
    capsys.readouterr()
    with monkeypatch.context() as patch:
        patch.setattr(comparison, "compare_all", killed)
        assert main(compare) == 130
    assert f"{page}: was missing or of other records" in capsys.readouterr().err
    assert page.read_text() != first
    second = page.read_text()
    with monkeypatch.context() as patch:
        patch.setattr(comparison, "compare_all", killed)
        assert main(compare) == 130
    assert "drawn anew" not in capsys.readouterr().err
    assert page.read_text() == second


def test_drafts_of_a_killed_run_do_not_bar_its_folder(workload: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / ".streamjoin-0123456789ab.draft").write_text("{")
    flags = ["--engines", "npj", "--out", str(run), "--rounds", "1"]
    assert main(["compare", str(workload), *flags]) == 0
    assert (run / "report.html").is_file()


def test_a_damaged_run_is_named_and_replaced(
    workload: Path, tmp_path: Path, capsys: CaptureFixture
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "records.json").write_text("{")
    flags = ["--engines", "npj", "--out", str(run), "--rounds", "1"]
    assert main(["compare", str(workload), *flags]) == 0
    assert "records.json: must be JSON in UTF-8" in capsys.readouterr().err
    assert records_of(run)["records"][0]["checked"]


def test_a_report_of_several_runs_needs_a_page(tmp_path: Path, capsys: CaptureFixture) -> None:
    assert main(["report", str(tmp_path), str(tmp_path)]) == 2
    assert "-o PAGE.html is needed" in capsys.readouterr().err


def test_the_middle_round_is_reported_with_its_spread() -> None:
    assert bench._spread([3.0, 1.0, 2.0, None]) == {"median": 2.0, "min": 1.0, "max": 3.0}
    assert bench._spread([None]) is None


def test_a_refused_comparison_leaves_no_folder(
    workload: Path, tmp_path: Path, capsys: CaptureFixture
) -> None:
    out = tmp_path / "no" / "where" / "deep"
    for engines, flags in (("nope", []), ("npj", ["--window", "count:9"]), ("npj", ["--on", "z"])):
        given = ["compare", str(workload), "--engines", engines, *flags, "--out", str(out)]
        assert main(given) == 2
        assert not (tmp_path / "no").exists()
    capsys.readouterr()


def test_a_folder_with_something_else_takes_a_run_if_forced(
    workload: Path, tmp_path: Path, capsys: CaptureFixture
) -> None:
    out = tmp_path / "mine"
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    given = ["compare", str(workload), "--engines", "npj", "--rounds", "1", "--out", str(out)]
    assert main(given) == 2
    said = capsys.readouterr().err
    assert "holds something else than a run, notes.txt" in said
    assert "add --force" in said
    assert main([*given, "--force"]) == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "notes.txt",
        "records.json",
        "report.html",
    ]


def test_compare_and_advise_are_functions_too(workload: Path) -> None:
    compared = sj.compare(workload, ["npj", "kang"], rounds=1, threads=1)
    assert compared.ok
    assert compared.page is None
    assert [record["engine"] for record in compared.records["records"]] == ["npj", "kang"]
    words = compared.records["command"].split()
    assert words[:2] == ["streamjoin", "compare"]
    assert words[3:] == ["--engines", "npj,kang", "--rounds", "1", "--threads", "1"]
    assert sj.advise(workload, window="count:64").engine in catalog.names()
    columns = {"k": np.arange(100)}
    assert sj.advise(columns, columns, on="k", goal="throughput").reasons
    with pytest.raises(sj.InputError, match=r"not 'speed'$"):
        sj.advise(workload, goal="speed")
    with pytest.raises(sj.InputError, match=r"did you mean latency\?$"):
        sj.advise(workload, goal="latncy")
    with pytest.raises(sj.InputError, match=r"^advise takes a workload's folder, or both inputs"):
        sj.advise(columns)


def test_the_kind_of_join_is_shown_where_it_is_not_inner(
    workload: Path, tmp_path: Path, capsys: CaptureFixture
) -> None:
    given = ["compare", str(workload), "--engines", "npj", "--rounds", "1", "--how", "anti"]
    assert main([*given, "--out", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().out
    assert " how " in said
    assert " anti " in said
    assert "Anti equi join" in (tmp_path / "run" / "report.html").read_text()
    table = {"engines": ["npj"], "how": "semi"}
    assert suites.as_table(table, workload, 1).how == "semi"
    with pytest.raises(sj.InputError, match=r"^here: how is one of .* did you mean full\?$"):
        suites.check_table({**table, "how": "full_outer"}, "here")


def test_the_catalogue_is_data(capsys: CaptureFixture) -> None:
    entries = sj.engines()
    assert [entry.engine for entry in entries] == catalog.names()
    assert main(["engines", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(
        json.dumps([entry.to_dict() for entry in entries])
    )
