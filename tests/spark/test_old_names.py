"""The program of spark-submit by the name that it had in the release before."""

import subprocess
import sys
import zipfile
from pathlib import Path

from streamjoin_datagen.session import shipping, spark_session
from streamjoin_datagen.session.spark import spark_session as defined

DEADLINE_S = 60


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
    assert (
        "streamjoin_datagen.distributed.submit has moved: type streamjoin_spark.submit"
        in done.stderr
    )
    with zipfile.ZipFile(package) as written:
        names = written.namelist()
    assert {name.split("/")[0] for name in names} == set(shipping.PACKAGES)
    assert "streamjoin_spark/submit.py" in names


def test_sessions_are_imported_from_their_package_as_before() -> None:
    assert spark_session is defined
