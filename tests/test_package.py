"""What people install: the files of sdist and wheel, their metadata, the wheel alone."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from email.parser import HeaderParser
from pathlib import Path
from typing import NamedTuple

import pytest
from bootstrap import python_of

from streamjoin_common.documents import read_toml

ROOT = Path(__file__).resolve().parent.parent
SOURCE_ROOTS = ("common", "host", "hw", "datagen", "spark", "notebooks")
SHIPPED = ("benchmarks", "constraints", "hw/boards", "hw/ip")
DEADLINE_S, INSTALL_DEADLINE_S = 240, 900


class Built(NamedTuple):
    """The names in an sdist, without its folder, and in a wheel; the wheel's metadata."""

    sdist: set[str]
    wheel: set[str]
    metadata: str


def tracked() -> set[str]:
    """Files of the project: those of git, or all of an unpacked sdist."""
    command = ["git", "ls-files", "-co", "--exclude-standard"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
    return {name for name in done.stdout.splitlines() if (ROOT / name).is_file()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, capture_output=True, timeout=DEADLINE_S, check=True)
    with tarfile.open(next(folder.glob("*.tar.gz"))) as archive:
        sdist = {name.partition("/")[2] for name in archive.getnames()}
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        names = set(wheel.namelist())
        metadata = next(name for name in names if name.endswith("/METADATA"))
        return Built(sdist, names, wheel.read(metadata).decode())


def test_the_sdist_holds_every_file_of_the_project(built: Built) -> None:
    assert tracked() - built.sdist == set()
    assert built.sdist - tracked() == {"PKG-INFO"}


def test_the_wheel_holds_packages_types_and_what_travels_with_them(built: Built) -> None:
    files = tracked()
    wanted = {
        name.partition("/")[2]
        for name in files
        if name.startswith(tuple(f"{root}/streamjoin" for root in SOURCE_ROOTS))
    }
    shipped = {name for name in files if name.startswith(tuple(f"{at}/" for at in SHIPPED))}
    wanted |= {f"streamjoin_common/files/{name}" for name in shipped}
    held = {name for name in built.wheel if ".dist-info/" not in name}
    assert held == wanted
    packages = {name.partition("/")[0] for name in held}
    assert len(packages) == len(SOURCE_ROOTS)
    assert {f"{package}/py.typed" for package in packages} <= held
    assert "streamjoin_common/files/benchmarks/iawj-micro.toml" in held
    assert "streamjoin_common/files/benchmarks/workloads/small.toml" in held
    assert "streamjoin_notebooks/streamjoin.ipynb" in held


def test_the_metadata_say_what_the_project_file_says(built: Built) -> None:
    said = HeaderParser().parsestr(built.metadata)
    project = read_toml(ROOT / "pyproject.toml")["project"]
    assert said["Version"] == project["version"]
    assert said["License-Expression"] == "BSD-3-Clause"
    assert said["License-File"] == "LICENSE"
    assert said.get_all("Project-URL") is None  # there is no public address
    assert set(said.get_all("Provides-Extra") or ()) == set(project["optional-dependencies"])
    pandas = [line for line in said.get_all("Requires-Dist") or () if line.startswith("pandas")]
    assert "pandas>=2.2; extra == 'datagen'" in pandas  # and no newest version
    assert "Typing :: Typed" in (said.get_all("Classifier") or ())


def test_the_version_stands_in_one_place() -> None:
    """Everything else asks the installed distribution."""
    version = read_toml(ROOT / "pyproject.toml")["project"]["version"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", version)
    for root in SOURCE_ROOTS:
        for path in (ROOT / root).rglob("*.py"):
            assert f'"{version}"' not in path.read_text(), path
    assert not re.search(r"^version:", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)


TRIED = """
import numpy as np, streamjoin as sj
from streamjoin_common.installed import shipped
r = {"k": np.array([3, 1, 4, 1])}
result = sj.join(r, {"k": np.array([1, 1, 3])}, on="k", engine="npj", check=True)
assert len(result) == 5, result
assert shipped.ROOT.is_relative_to(__import__("sys").prefix), shipped.ROOT
print("joined")
"""
ROWS = {"r": "k,ts\n3,0\n1,10\n4,20\n1,30\n", "s": "k,ts\n1,5\n1,25\n3,35\n"}
JOIN = "join --r r.csv --s s.csv --on k --verify"
VERBS = (
    ("--version", 0, "streamjoin "),
    ("", 0, "VERB"),
    ("doctor", 0, "The CPU engines work."),
    ("engines", 0, "ibwj-flat"),
    ("engines splitjoin", 0, "punctuation"),
    ("bench list", 0, "iawj-micro"),
    ("bench iawj-mirco", 2, "did you mean iawj-micro?"),
    (f"{JOIN} --engine npj --output pairs.parquet", 0, "equal to oracle's result"),
    (f"{JOIN} --engine splitjoin --window count:2", 0, "equal to oracle's result"),
    ("completion bash", 0, "_python_argcomplete"),
    ("hw synth --stored", 0, "pynq-z2"),
    ("hw registers --preset tiny-band", 0, "r_payload"),
    ("hw verilog --preset tiny --out v", 2, "pip install 'streamjoin[hw]'"),
    ("hw simulate --preset tiny", 1, "pip install 'streamjoin[hw]'"),
    ("data band --seed 1 --out w", 2, "pip install 'streamjoin[datagen]'"),
    ("data import flights --out w", 2, "pip install 'streamjoin[datagen]'"),
    ("compare small --out c", 2, "pip install 'streamjoin[datagen]'"),
    (f"{JOIN} --engine duckdb", 2, "pip install 'streamjoin[yardsticks]'"),
    (f"{JOIN} --engine polars", 2, "pip install 'streamjoin[yardsticks]'"),
    ("spark-join --r p --s p --on r_row --out o", 2, "pip install 'streamjoin[datagen]'"),
    (
        f"{JOIN.replace('r.csv', 'duckdb:x.db:t')} --engine ssbj",
        2,
        "pip install 'streamjoin[stores]'",
    ),
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a wheel as ``make wheel`` makes it: from the sdist."""
    folder = tmp_path_factory.mktemp("made")
    build = [sys.executable, "-m", "build", "--no-isolation", "-o", str(folder), str(ROOT)]
    subprocess.run(build, capture_output=True, timeout=DEADLINE_S, check=True)
    return next(folder.glob("*.whl"))


@pytest.mark.slow
@pytest.mark.timeout(2 * INSTALL_DEADLINE_S)
@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12", "3.13"])
def test_the_wheel_alone_runs_the_main_verbs(version: str, wheel: Path, tmp_path: Path) -> None:
    python = python_of(version)
    if python is None:
        pytest.skip(f"there is no Python {version} on this machine")
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def run(*command: str, deadline_s: int = DEADLINE_S) -> tuple[int, str]:
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=deadline_s,
            check=False,
        )
        return done.returncode, done.stdout

    assert run(python, "-m", "venv", "venv")[0] == 0
    install = ("venv/bin/python", "-m", "pip", "install", "-q", str(wheel))
    status, said = run(*install, deadline_s=INSTALL_DEADLINE_S)
    assert status == 0, said
    for name, rows in ROWS.items():
        (tmp_path / f"{name}.csv").write_text(rows)
    (tmp_path / "x.db").touch()
    for given, status, words in VERBS:
        done, said = run("venv/bin/streamjoin", *given.split())
        assert done == status, f"{given}: {said}"
        assert words in said, f"{given}: {said}"
        assert "Traceback" not in said, f"{given}: {said}"
        if given.startswith(JOIN) and "--output" in given:
            (tmp_path / "p").mkdir()
            (tmp_path / "pairs.parquet").rename(tmp_path / "p" / "pairs.parquet")
    assert run("venv/bin/python", "-c", TRIED) == (0, "joined\n")


def test_make_says_that_there_is_no_such_target() -> None:
    done = subprocess.run(["make", "seutp"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("no target seutp: make help lists them\n")
