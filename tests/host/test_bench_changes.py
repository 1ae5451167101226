"""A stored record of an experiment that was changed since says so, point by point."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.host import report_samples as samples
from tests.host.test_bench import LITTLE

from streamjoin.bench import experiments
from streamjoin.cli import main
from streamjoin.errors import InputError
from streamjoin.report import stored
from streamjoin.report.stored import page
from streamjoin_common.installed import shipped

NAME = "little"
Change = Callable[[dict[str, Any]], object]


def run_of(experiment: experiments.Experiment) -> dict[str, Any]:
    """A run of every point and engine, none of which was measured."""
    run = samples.run(workloads=[], records=[])
    about = {"name": experiment.name, "size": experiment.size, "source": "s", "limit": "l"}
    run["experiment"] = {**about, "baseline": experiment.baseline, "claims": []}
    for point in experiment.points:
        of = {"family": point.family, "settings": dict(point.settings)}
        mine = [
            samples.record(engine, workload=point.label, threads=1, rounds=1, **of)
            for engine in point.table["engines"]
        ]
        workload = samples.workload(point.label, seed=point.table["seed"], **of)
        workload["definition"] = experiments.definition(point, workload, mine)
        run["workloads"].append(workload)
        run["records"] += mine
    return run


@pytest.fixture
def there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A set of one experiment with its record, in a folder that a test may change."""
    monkeypatch.setattr(shipped, "EXPERIMENTS", tmp_path)
    (tmp_path / f"{NAME}.toml").write_text(LITTLE)
    stored.store(run_of(experiments.read(NAME, "quick")), tmp_path / "results")
    return tmp_path


def written(folder: Path) -> str:
    return page.page(page.runs(folder / "results"))


def edited(folder: Path, change: Change, name: str = f"{NAME}-quick.json") -> None:
    path = folder / "results" / f"{NAME}-quick.json"
    run = json.loads(path.read_text())
    change(run)
    (folder / "results" / name).write_text(json.dumps(run))


def of_all(**values: Any) -> Change:
    def change(run: dict[str, Any]) -> None:
        for workload in run["workloads"]:
            workload.update(values)

    return change


def without_an_engine(run: dict[str, Any]) -> None:
    run["records"] = [each for each in run["records"] if each["engine"] != "mway"]


def with_threads(run: dict[str, Any]) -> None:
    run["records"][0]["threads"] += 1


def without_a_point(run: dict[str, Any]) -> None:
    gone = run["workloads"].pop()["name"]
    run["records"] = [each for each in run["records"] if each["workload"] != gone]


def test_a_record_of_the_experiment_as_it_is_has_no_such_sentence(there: Path) -> None:
    text = written(there)
    assert "changed since" not in text
    assert "1 of 1 experiments have a record" in text
    path = there / f"{NAME}.toml"
    plain = path.read_text()
    path.write_text(plain.replace("rounds = 1", 'rounds = 2\narrival = "instant"'))
    path.write_text(f"# a remark\n{path.read_text()}")
    assert path.read_text() != plain
    assert written(there) == text


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("seed = 3", "seed = 4"),
        ("s_tuples = 300", "s_tuples = 301"),
        ("threads = 1", "threads = 2"),
        ('window = "all"', 'window = "tumbling:1s"'),
        ("rounds = 1", 'how = "left"'),
        ('"npj", "mway"]', '"npj"]'),
        ('{ "knobs.npj.load" = 3 }', '{ "knobs.npj.load" = 3, "knobs.mway.fan_in" = 4 }'),
    ],
)
def test_a_changed_file_is_said_with_the_points_that_were_changed(
    there: Path, old: str, new: str
) -> None:
    path = there / f"{NAME}.toml"
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new, 1))
    text = written(there)
    assert "The experiment was changed since: " in text
    assert " is not what was run (" in text or " are not what was run (" in text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (of_all(n_r=7), "4 points are not what was run ("),
        (of_all(seed=999), "4 points are not what was run ("),
        (of_all(window="count:3"), "4 points are not what was run ("),
        (of_all(definition=None), "4 points are not what was run ("),
        (with_threads, "1 point is not what was run ("),
        (without_an_engine, "4 points are without a record of an engine ("),
        (without_a_point, "1 point is new ("),
    ],
)
def test_a_changed_record_is_said_with_its_points(there: Path, change: Change, said: str) -> None:
    edited(there, change)
    assert f"The experiment was changed since: {said}" in written(there)


def test_the_first_points_are_named_and_the_others_counted(there: Path) -> None:
    edited(there, without_an_engine)
    labels = sorted(point.label for point in experiments.read(NAME, "quick").points)
    named = "; ".join(f"{label}, mway" for label in labels[:3])
    assert f"({named} and 1 more)." in written(there)


def test_a_claim_says_how_many_points_a_record_lacks(there: Path) -> None:
    edited(there, without_a_point)
    assert "| 1.00 x (1 of 2 points) |" in written(there)


def test_a_record_of_each_size_is_one_experiment_and_the_larger_is_shown(there: Path) -> None:
    quick = written(there)
    edited(there, lambda run: run["experiment"].update(size="full"), f"{NAME}-full.json")
    text = written(there)
    assert "1 of 1 experiments have a record" in text
    assert f"## {NAME}-full" in text
    assert f"## {NAME}-quick" not in text
    assert "The experiment was changed since" in text
    drawn = page.pages(there / "results")
    assert [path for path in drawn if "charts" in path] == [f"results/charts/{NAME}-full.svg"]
    (there / "results" / f"{NAME}-full.json").unlink()
    assert written(there) == quick


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("zzz.json", {}, "zzz.json: is of little at size quick: name it little-quick.json"),
        (f"{NAME}-full.json", {}, "is of little at size quick"),
        (f"{NAME}-quick.json", {"size": "full"}, "is of little at size full"),
        ("mine-quick.json", {"name": "mine"}, "is of mine, which is no published experiment"),
    ],
)
def test_a_record_that_is_not_what_its_name_says_is_refused(
    there: Path, name: str, change: dict[str, str], sentence: str
) -> None:
    edited(there, lambda run: run["experiment"].update(change), name)
    with pytest.raises(InputError, match=sentence):
        written(there)


def test_the_page_says_rounds_and_leads_to_the_record(there: Path) -> None:
    text = written(there)
    assert "4 points of 1 round in " in text
    assert f"[its record](../../benchmarks/results/{NAME}-quick.json)" in text
    edited(there, lambda run: run["records"][0].update(rounds=4))
    assert "4 points of 1 to 4 rounds in " in written(there)
    edited(there, lambda run: run["records"][0].update(rounds=9, backend="model"))
    assert "4 points of 1 round in " in written(there)


def test_claims_of_the_other_size_alone_are_counted(there: Path) -> None:
    assert "of the other size alone" not in written(there)
    path = there / f"{NAME}.toml"
    text = path.read_text()
    claim = text[text.index("[[claim]]") :].replace("{ load = 3 }", "{ load = { full = 3 } }")
    path.write_text(text + claim.replace("a fuller table", "another"))
    assert "; 1 more claim is of the other size alone." in written(there)


def test_claims_of_runs_say_what_was_changed(
    there: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(there)
    run = there / "runs/bench" / f"{NAME}-quick"
    run.mkdir(parents=True)
    edited(there, of_all(n_r=7))
    shutil.copy(there / "results" / f"{NAME}-quick.json", run / "records.json")
    assert main(["bench", "claims", "--size", "quick"]) == 0
    said = capsys.readouterr().err
    assert "The experiment was changed since: 4 points are not what was run (" in said


def test_every_stored_record_says_what_its_points_are() -> None:
    for run in page.runs(stored.FOLDER).values():
        assert all(workload["definition"] for workload in run["workloads"])
