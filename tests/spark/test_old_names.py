"""Module names of the release before still work, and report the new ones."""

import importlib
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from streamjoin_datagen.session import shipping, spark_session
from streamjoin_datagen.session.spark import spark_session as defined

DEADLINE_S = 60


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ("join", "batch.join", ["distributed_join", "SparkJoin"]),
        ("streaming", "streaming.query", ["stream_join", "stream_join_files"]),
        ("submit", "submit", ["main"]),
    ],
)
def test_an_old_module_forwards_its_names(old: str, new: str, names: list[str]) -> None:
    module = importlib.import_module(f"streamjoin_datagen.distributed.{old}")
    for name in names:
        with pytest.warns(FutureWarning) as warned:
            value = getattr(module, name)
        assert value is getattr(importlib.import_module(f"streamjoin_spark.{new}"), name)
        assert [str(one.message) for one in warned] == [
            f"streamjoin_datagen.distributed.{old} is now streamjoin_spark.{new}; "
            "the old name will be removed in the next release"
        ]
        assert warned[0].filename == __file__


def test_an_unknown_name_of_an_old_module_is_an_import_error() -> None:
    with pytest.raises(ImportError, match="nothing"):
        from streamjoin_datagen.distributed.join import nothing  # noqa: F401


def test_the_old_submit_module_packages_and_says_its_new_name(tmp_path: Path) -> None:
    package = tmp_path / "streamjoin.zip"
    command = [sys.executable, "-m", "streamjoin_datagen.distributed.submit"]
    done = subprocess.run(
        [*command, "--package", str(package)],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert done.stderr == (
        "streamjoin: streamjoin_datagen.distributed.submit is now streamjoin_spark.submit; "
        "the old name will be removed in the next release\n"
    )
    with zipfile.ZipFile(package) as written:
        names = written.namelist()
    assert {name.split("/")[0] for name in names} == set(shipping.PACKAGES)
    assert "streamjoin_spark/submit.py" in names
    assert "streamjoin_datagen/distributed/submit.py" in names


def test_sessions_are_imported_from_their_package_as_before() -> None:
    assert spark_session is defined
