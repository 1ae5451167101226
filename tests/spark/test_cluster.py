"""A standalone cluster on this machine: a master, a worker and its executor, each a process."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest
from tests.spark.samples import pairs_of, write_files

from streamjoin import oracle, verify
from streamjoin.streams import as_streams
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import parse_window
from streamjoin_datagen.session.java import find_java

pytestmark = [pytest.mark.timeout(600), pytest.mark.slow]
HOME = Path(pyspark.__file__).parent
DEADLINE_S = 240
END_DEADLINE_S = 60
ROWS = 2000


@contextlib.contextmanager
def daemon(folder: Path, kind: str, *more: str) -> Iterator[Path]:
    """Run a master or a worker on loopback; give its log. It ends within its deadline."""
    log = folder / f"{kind}.log"
    environment = {
        **os.environ,
        "JAVA_HOME": str(find_java().home),
        "SPARK_HOME": str(HOME),
        "SPARK_CONF_DIR": str(folder),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    }
    with log.open("wb") as written:
        process = subprocess.Popen(
            [
                str(HOME / "bin" / "spark-class"),
                f"org.apache.spark.deploy.{kind.lower()}.{kind}",
                *("--host", "127.0.0.1", "--port", "0", "--webui-port", "0"),
                *more,
            ],
            cwd=folder,
            env=environment,
            stdout=written,
            stderr=written,
            start_new_session=True,
        )
    try:
        yield log
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            ended = process.wait(END_DEADLINE_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
        assert ended in {0, 128 + signal.SIGTERM}


def said(log: Path, pattern: str) -> str:
    """Wait until a log says something; return the pattern's group."""
    until = time.monotonic() + DEADLINE_S
    while True:
        found = re.search(pattern, log.read_text())
        if found:
            return found[1]
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.1)


def spark_join(folder: Path, master: str) -> "subprocess.CompletedProcess[str]":
    places = [f"--{name}={folder / name}" for name in ("r", "s", "out")]
    how = ["--on=k", "--window=time:90us", "--partition-tuples=500", "--memory=512m", "--json"]
    return subprocess.run(
        [sys.executable, "-m", "streamjoin", "spark-join", *places, *how, f"--master={master}"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def test_a_standalone_cluster_gives_the_oracles_result_and_is_missed_when_gone(
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(13)
    r, s = (
        pa.table({"k": rng.integers(0, 100, ROWS), "ts": np.sort(rng.integers(0, ROWS, ROWS))})
        for _ in range(2)
    )
    write_files(tmp_path / "r", r, 2, 300)
    write_files(tmp_path / "s", s, 2, 300)
    right = oracle.join(
        *as_streams(r, s, Predicate.parse("k")), Predicate.parse("k"), parse_window("time:90us")
    )
    with daemon(tmp_path, "Master") as log:
        master = said(log, r"Starting Spark master at (spark://127\.0\.0\.1:\d+)")
        room = ("--cores", "2", "--memory", "1g", "--work-dir", str(tmp_path / "work"))
        with daemon(tmp_path, "Worker", *room, master):
            said(log, r"Registering worker (127\.0\.0\.1:\d+) with 2 cores")
            done = spark_join(tmp_path, master)
            assert done.returncode == 0, done.stderr
            assert said(log, r"Launching executor (app-\S+/0) on worker")
    told = json.loads(done.stdout)
    assert (told["pairs"], told["digest"]) == (len(right), right.digest)
    assert told["tasks"] > 2
    verify.check(pairs_of(pq.read_table(tmp_path / "out")), right, "a standalone cluster")

    gone = spark_join(tmp_path, master)
    sentence = f"the Spark URL {master} cannot be reached within 5 s: Connection refused"
    assert (gone.returncode, gone.stdout) == (1, "")
    assert gone.stderr.splitlines()[-1] == f"streamjoin: {sentence}"
    assert json.loads((tmp_path / "out" / "_pairs.json").read_text())["pairs"] == len(right)
