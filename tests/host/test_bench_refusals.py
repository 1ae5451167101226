"""Experiments of one's own that cannot be run are refused in a sentence."""

from pathlib import Path
from unittest import mock

import pytest
from tests.host.test_bench import LITTLE, bench

from streamjoin.bench import experiments, runner
from streamjoin.errors import InputError
from streamjoin_common.installed import shipped


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def little(tmp_path: Path) -> Path:
    path = tmp_path / "little.toml"
    path.write_text(LITTLE)
    return path


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('title = "A little one"', "title = 5", "title must be a string, not 5"),
        ("baseline", "base", "has no key 'base'"),
        ("[[workload]]", "[[workload]]\nfull = 1\n[[workload]]", "workload 1: must be a table"),
        ("[[workload]]", "[workload]", "must hold [[workload]] tables"),
        ('name = "pairs"', "", "name must be a string, not None"),
        ('name = "pairs"', 'name = ""', "workload 1: name must not be empty"),
        ('name = "pairs"', f'name = "{"x" * 400}"', "has a name of more than 200 bytes"),
        ('title = "A little one"', 'title = ""', "title must not be empty"),
        ('"params.duplicates" = [2, 4]', 'engines = [["npj", "mway"]]', "called by a string or a"),
        ("= [2, 4]", "= [2, nan]", "called by a string or a finite number, not nan"),
        ("s_tuples = 300", "s_tuples = nan", "params.s_tuples must be a finite number, not nan"),
        ("published = 0.8", "published = nan", "published must be a ratio above 0, not nan"),
        ("published = 0.8", f"published = {'9' * 400}", "holds an integer of more than 64 bits"),
        ("rounds = 1", f"rounds = 0x{'f' * 5000}", "holds an integer of more than 64 bits"),
        ("s_tuples = 300", f"s_tuples = {2**64}", "holds an integer of more than 64 bits"),
        ("where = { load = 3 }", "where = { load = 7 }", "no point of 'pairs' has load = 7"),
        ("= [2, 4]", "= 2", "sweep must be a table of lists"),
        ("= [2, 4]", "= [2, 2]", "two points are called 'pairs duplicates=2 load=1'"),
        ("= [2, 4]", "= [2, 2.0]", "the points 'pairs duplicates=2 load=1' and "),
        ('"params.duplicates"', "name", "'pairs name=4 load=1' are the same: sweep what is"),
        (
            "load = [",
            'seed = [3]\n"params.duplicates.x" = [1]\nload = [',
            "sets params.duplicates a",
        ),
        ('"knobs.npj.load" = 1 }', '"params.duplicates" = 1 }', "sweep sets params.duplicates twi"),
        ('"params.duplicates"', '"seed.x"', "sweep seed.x: seed is not a table"),
        ("title", "title =", "is not an experiment: is not TOML"),
        ('"mway"]', '"mvay"]', "mvay"),
        ('"mway"]', '"npj"]', "engines must be different names"),
        ("rounds = 1", "rounds = 0", "rounds must be 1 to 1000, not 0"),
        ("rounds = 1", "rouns = 1", "has no key 'rouns'; it takes name, kind"),
        ('window = "all"', 'window = "tumble"', "a window is all, tumbling:DUR"),
        ("threads = 1", "threads = 0", "threads must be an integer from 1"),
        ("rounds = 1", "speedup = nan", "speedup must be a number above 0, not nan"),
        ("s_tuples = 300", "s_tuples = 2024-01-01", "params.s_tuples must be a number or a string"),
        ('kind = "equi"', "kind = 2024-01-01", "kind must be a string"),
        ('baseline = "npj"', 'baseline = "nope"', "baseline must be an engine of a workload"),
    ],
)
def test_a_wrong_experiment_is_refused_in_a_sentence(
    little: Path, data: Path, old: str, new: str, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    little.write_text(LITTLE.replace(old, new, 1))
    assert bench(little, data) == 2
    said = capsys.readouterr().err.splitlines()
    assert sentence in said[-1]
    assert not (little.parent / "run").exists()


def test_an_unknown_experiment_is_told_with_those_there_are() -> None:
    with pytest.raises(InputError, match="no benchmark 'x': choose one of handshake-band"):
        experiments.read("x", "quick")


@pytest.mark.parametrize("name", ["ssbj-size", "cpu-fpga", "live"])
def test_a_file_that_is_called_as_another_experiment_is_refused(
    little: Path, data: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = little.rename(little.with_name(f"{name}.toml"))
    assert bench(path, data, "--record", str(path.parent)) == 2
    assert f"{name} is another experiment, whose runs and records" in capsys.readouterr().err
    assert [each.name for each in path.parent.iterdir()] == [path.name]
    there = shipped.EXPERIMENTS / "ssbj-size.toml"
    assert experiments.read(str(there), "quick") == experiments.read("ssbj-size", "quick")


def test_a_finished_run_of_another_experiment_is_replaced_with_force_alone(
    little: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = little.rename(little.with_name("other.toml"))
    (records := little.parent / "run" / "records.json").parent.mkdir()
    records.write_text('{"experiment": {"name": "little", "size": "quick"}}')
    before = records.read_bytes()
    assert bench(other, data) == 2
    assert "run: holds a run of little at size quick: choose another" in capsys.readouterr().err
    assert bench(other, data, "--size", "full") == 2
    assert records.read_bytes() == before
    with mock.patch.object(runner, "run_experiment", side_effect=KeyboardInterrupt):
        assert bench(other, data, "--force") == 130


def test_a_folder_of_something_else_is_left_alone(little: Path, data: Path) -> None:
    (little.parent / "run").mkdir()
    (little.parent / "run" / "mine.txt").write_text("mine")
    assert bench(little, data) == 2
