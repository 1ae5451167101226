"""Published experiments: read whole, run point by point, never run twice, wrong ones told."""

import contextlib
import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from tests.host.damaged_runs import KILLED, changed, sibling, timeless, with_another_check

from streamjoin.bench import experiments, identity, points, runner
from streamjoin.cli import main
from streamjoin.cli.bench import OWN_TABLES
from streamjoin.engines import catalog
from streamjoin.engines.intra.npj import Npj
from streamjoin.report.charts import bars, curves, stacked, sweeps
from streamjoin.report.charts.canvas import Chart

LITTLE = """
title = "A little one"
source = "none"
limit = "memory bandwidth"
baseline = "npj"

[[workload]]
name = "pairs"
kind = "equi"
seed = 3
window = "all"
threads = 1
rounds = 1
engines = ["npj", "mway"]
params = { keys = "duplicated", r_tuples = { quick = 400, full = 800 }, s_tuples = 300 }

[workload.sweep]
"params.duplicates" = [2, 4]
load = [{ "knobs.npj.load" = 1 }, { "knobs.npj.load" = 3 }]

[[claim]]
text = "a fuller table is slower"
published = 0.8
workload = "pairs"
engine = "npj"
where = { load = 3 }
over_where = { load = 1 }
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture
def little(tmp_path: Path) -> Path:
    path = tmp_path / "little.toml"
    path.write_text(LITTLE)
    return path


@pytest.fixture(scope="module", autouse=True)
def generated_once() -> Iterator[None]:
    """Spark makes the data of a suite for the first test that asks for it, not for each."""
    generate, made = runner.generate, {}

    def once(suite: Path, data: Path) -> list[Path]:
        text = suite.read_text()
        if text not in made:
            made[text] = generate(suite, data)
        return made[text]

    with mock.patch.object(runner, "generate", once):
        yield


@pytest.fixture(scope="module")
def finished_once(tmp_path_factory: pytest.TempPathFactory, data: Path) -> Path:
    path = tmp_path_factory.mktemp("finished") / "little.toml"
    path.write_text(LITTLE)
    assert bench(path, data) == 0
    return path


@pytest.fixture
def finished(finished_once: Path, tmp_path: Path) -> Path:
    """A little experiment that has been run, in a copy that a test may damage."""
    shutil.copytree(finished_once.parent, tmp_path, dirs_exist_ok=True)
    return tmp_path / finished_once.name


def without_drawing(key: str, title: str, **_: Any) -> Chart:
    return Chart(key, title, caption="", wide="", narrow="", marks=0)


def bench(path: Path, data: Path, *more: str, drawn: bool = False) -> int:
    """Run an experiment; its page has no charts unless they are asked for: they take a second."""
    out = path.parent / "run"
    with contextlib.ExitStack() as patches:
        for module in () if drawn else (bars, curves, stacked, sweeps):
            patches.enter_context(mock.patch.object(module, "draw_chart", without_drawing))
        return main(["bench", str(path), "--out", str(out), "--data", str(data), *more])


def records_of(path: Path) -> Any:
    return json.loads((path.parent / "run" / "records.json").read_text())


@pytest.mark.parametrize("name", experiments.names())
@pytest.mark.parametrize("size", experiments.SIZES)
def test_every_published_experiment_can_be_run(name: str, size: str) -> None:
    experiment = experiments.read(name, size)
    runner.check(experiment, size)
    known = set(catalog.names())
    for point in experiment.points:
        assert set(point.table["engines"]) <= known
        for engine, knobs in point.table.get("knobs", {}).items():
            catalog.get(engine).resolve_knobs(knobs)


def test_a_sweep_is_every_combination_and_a_size_replaces_its_table(little: Path) -> None:
    quick, full = (experiments.read(str(little), size) for size in experiments.SIZES)
    labels = [point.label for point in quick.points]
    assert labels == [
        f"pairs duplicates={duplicates} load={load}" for duplicates in (2, 4) for load in (1, 3)
    ]
    assert {point.table["params"]["r_tuples"] for point in quick.points} == {400}
    assert {point.table["params"]["r_tuples"] for point in full.points} == {800}
    assert quick.points[1].table["knobs"] == {"npj": {"load": 3}}
    assert quick.points[0].data_key == quick.points[1].data_key != quick.points[2].data_key


def test_an_experiment_is_run_checked_and_drawn(
    little: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bench(little, data, drawn=True) == 0
    (claim,) = records_of(little)["experiment"]["claims"]
    assert (len(claim["points"]), claim["published"]) == (2, 0.8)
    assert 0 < claim["min"] <= claim["here"] <= claim["max"]
    labels = [f"pairs duplicates={duplicates} load=3" for duplicates in (2, 4)]
    assert [point["point"] for point in claim["points"]] == labels
    told = " ".join(capsys.readouterr().out.split())
    assert f"published: a fuller table is slower {claim['verdict']}: 0.8 x there; here " in told
    assert f" x (median of 2 points, {claim['min']:.2f} to {claim['max']:.2f} x)" in told
    assert all(f"{label} over {label[:-1]}1 " in told for label in labels)
    found = records_of(little)
    assert len(found["workloads"]) == 4
    assert len(found["records"]) == 8
    assert all(record["checked"] for record in found["records"])
    assert {record["digest"] for record in found["records"][:2]} == {
        found["workloads"][0]["digest"]
    }
    assert 0 < found["records"][0]["share_of_limit"] < 1
    page = (little.parent / "run" / "report.html").read_text()
    assert "Throughput: pairs against duplicates (load=1)" in page
    assert "Runs against: memory bandwidth" in page
    assert "a fuller table is slower" in page


def test_an_interrupted_run_goes_on_where_it_was(
    little: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measure, calls = runner._measure, []

    def interrupted(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return measure(*arguments)

    with mock.patch.object(runner, "_measure", interrupted):
        assert bench(little, data) == 130
    said = capsys.readouterr().err
    assert "to go on, type streamjoin bench" in said
    assert not (little.parent / "run" / "records.json").exists()
    with mock.patch.object(runner, "_measure", side_effect=measure) as measured:
        assert bench(little, data) == 0
    assert measured.call_count == 2
    assert len(records_of(little)["records"]) == 8


def test_a_killed_and_resumed_run_is_an_uninterrupted_one_up_to_timings(
    finished: Path, little: Path, data: Path
) -> None:
    uninterrupted = records_of(finished)
    out = little.parent / "killed"
    words = ["bench", str(little), "--out", str(out), "--data", str(data)]
    done = subprocess.run([sys.executable, "-c", KILLED, *words], check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL
    assert len(list((out / points.FOLDER).glob("*.json"))) == 2
    assert not (out / "records.json").exists()
    store = little.parent / "records"
    assert bench(little, data, "--out", str(out), "--record", str(store)) == 0
    resumed = json.loads((out / "records.json").read_text())
    assert timeless(resumed) == timeless(uninterrupted)
    claimed = [[claim["text"], len(claim["points"])] for claim in resumed["experiment"]["claims"]]
    assert claimed == [["a fuller table is slower", 2]]
    stored = json.loads((store / "little-quick.json").read_text())
    assert [record["engine"] for record in stored["records"]] == ["npj", "mway"] * 4


def test_a_point_that_was_measured_otherwise_is_measured_anew(finished: Path, data: Path) -> None:
    little = finished
    little.write_text(LITTLE.replace("rounds = 1", "rounds = 2"))
    measure = runner._measure
    with mock.patch.object(runner, "_measure", side_effect=measure) as measured:
        assert bench(little, data) == 0
    assert measured.call_count == 4
    assert {record["rounds"] for record in records_of(little)["records"]} == {2}


NOT_JSON, CHANGED = "is not JSON: ", "was changed after it was written"


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda point: point.write_text("{"), NOT_JSON),
        (lambda point: point.write_bytes(point.read_bytes()[:-9]), NOT_JSON),
        (lambda point: point.write_bytes(b""), NOT_JSON),
        (lambda point: point.write_text("[" * 100_000), "is nested too deeply"),
        (lambda point: point.write_text("[]"), "is not a point with a check"),
        (lambda point: changed(point, lambda p: p.pop("check")), "is not a point with a check"),
        (lambda point: changed(point, lambda p: p.update(records=[])), CHANGED),
        (lambda point: changed(point, lambda p: p["records"][0].update(pairs=1)), CHANGED),
        (lambda point: changed(point, lambda p: p["workload"].update(pairs=1)), CHANGED),
        (lambda point: changed(point, with_another_check), "holds another point"),
        (lambda point: shutil.copy(sibling(point), point), "holds another point"),
    ],
    ids=["broken", "cut", "empty", "deep", "list", "unchecked", "emptied", "pairs", "workload",
         "foreign", "sibling"],
)  # fmt: skip
def test_a_point_that_is_not_what_was_written_is_named_and_not_believed(
    finished: Path, damage: Callable[[Path], None], sentence: str
) -> None:
    path = sorted((finished.parent / "run" / points.FOLDER).iterdir())[0]
    plain = json.loads(path.read_text())
    point = points.Kept(path, plain["point"])
    said: list[str] = []
    whole = {"workload": plain["workload"], "records": plain["records"]}
    assert points.read_or_say(point, said.append) == whole
    damage(path)
    assert points.read_or_say(point, said.append) is None
    (line,) = said
    assert line.startswith(f"{path}: {sentence}")
    assert line.endswith("; the point is measured again")


def test_a_damaged_point_is_measured_anew(
    finished: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = records_of(finished)
    point = sorted((finished.parent / "run" / points.FOLDER).iterdir())[0]
    changed(point, lambda plain: plain.update(records=[]))
    measure = runner._measure
    with mock.patch.object(runner, "_measure", side_effect=measure) as measured:
        assert bench(finished, data) == 0
    assert measured.call_count == 1
    assert f"{point}: was changed after it was written" in capsys.readouterr().err
    results = [
        [(record["workload"], record["engine"], record["digest"]) for record in found["records"]]
        for found in (before, records_of(finished))
    ]
    assert results[0] == results[1]
    assert json.loads(point.read_text())["records"]


def test_a_string_for_a_number_is_refused_before_anything_is_made(
    little: Path, data: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    little.write_text(LITTLE.replace("s_tuples = 300", 's_tuples = "300"'))
    assert bench(little, data) == 2
    assert "equi parameter s_tuples must be a number, not '300'" in capfd.readouterr().err


def test_points_of_another_machine_are_measured_anew(
    finished: Path, data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(identity, "machine", lambda: {"cpu": "another"})
    measure = runner._measure
    with mock.patch.object(runner, "_measure", side_effect=measure) as measured:
        assert bench(finished, data) == 0
    assert measured.call_count == 4
    assert "4 files are of no point of this experiment as it is here" in capsys.readouterr().err


def test_points_of_an_earlier_experiment_are_named_and_ignored(
    finished: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finished.write_text(LITTLE.replace("= [2, 4]", "= [2]"))
    assert bench(finished, data) == 0
    assert "2 files are of no point of this experiment as it is here and ignored, as pairs-" in (
        capsys.readouterr().err
    )
    assert len(records_of(finished)["workloads"]) == 2


def test_a_page_that_a_kill_kept_away_is_drawn_by_the_next_run(
    finished: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = finished.parent / "run" / "report.html"
    page.unlink()
    with mock.patch.object(runner, "run_experiment", side_effect=KeyboardInterrupt):
        assert bench(finished, data) == 130
    assert f"{page}: was missing or of other records" in capsys.readouterr().err
    assert "a fuller table is slower" in page.read_text()


class LosesAll(Npj):
    """An engine that finds nothing."""

    def run(self, job: Any, prepared: Any, meter: Any) -> None:
        """Do nothing."""


def test_a_wrong_result_has_no_figure_and_is_not_kept(little: Path, data: Path) -> None:
    get = catalog.get
    with mock.patch.object(
        catalog, "get", side_effect=lambda name: LosesAll() if name == "npj" else get(name)
    ):
        assert bench(little, data) == 1
    wrong = [record for record in records_of(little)["records"] if record["engine"] == "npj"]
    assert {record["status"] for record in wrong} == {"wrong"}
    assert not any("throughput_tuples_per_s" in record for record in wrong)
    assert not list((little.parent / "run" / points.FOLDER).iterdir())


def test_the_list_names_every_experiment(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    of_kind = {
        kind: [row["name"] for row in listed if row["kind"] == kind]
        for kind in ("experiment", "other")
    }
    assert of_kind == {"experiment": experiments.names(), "other": [*experiments.OTHERS]}
    assert {"calls", "live", "cpu-fpga", "claims"} <= {*experiments.OTHERS}
    assert main(["bench", "list"]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [row["name"] for row in listed] == [
        line.split()[0] for line in printed[2:] if not line.startswith(" ")
    ]


@pytest.mark.parametrize("name", experiments.OTHERS)
def test_what_is_listed_beside_experiments_is_run(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    runs = {
        **{each: f"streamjoin.cli.benchmarks.{each}.run" for each in ("live", "regress")},
        "list": "streamjoin.cli.benchmarks.listing.run",
        **{each: f"streamjoin.cli.bench._{each}" for each in ("all", "claims")},
    }
    for each in OWN_TABLES:
        monkeypatch.setitem(OWN_TABLES, each, lambda _: asked.append(name) or 0)
    for path in runs.values():
        monkeypatch.setattr(path, lambda *_: asked.append(name) or 0)
    assert main(["bench", name]) == 0
    assert asked == [name]


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("liv", "no benchmark 'liv': did you mean live? To list all, type  streamjoin bench list"),
        ("cpufpga", "'cpufpga': did you mean cpu-fpga? To list all"),
        ("zzz", "'zzz': choose one of handshake-band, "),
        ("zzz", ", window-threads, all, calls, claims, cpu-fpga, list, live, regress"),
    ],
)
def test_an_unknown_benchmark_is_answered_with_all_there_are(
    name: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["bench", name]) == 2
    assert sentence in capsys.readouterr().err


def test_a_claim_speaks_of_its_own_points_at_each_size(little: Path) -> None:
    where = "where = { load = 3 }"
    text = LITTLE.replace("over_where = { load = 1 }\n", 'over = "mway"\n')
    for settings, quick, full in (
        ("{ load = { quick = 1, full = 3 } }", [{"load": 1}], [{"load": 3}]),
        ("{ load = { full = 3 } }", [], [{"load": 3}]),
        ('{ load = 1, "params.duplicates" = { quick = 2 } }',
         [{"load": 1, "params.duplicates": 2}], []),
    ):  # fmt: skip
        little.write_text(text.replace(where, f"where = {settings}"))
        found = [experiments.read(str(little), size).claims for size in ("quick", "full")]
        assert [[dict(claim.where) for claim in claims_] for claims_ in found] == [quick, full]
