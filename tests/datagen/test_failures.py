"""Tasks that fail and executors that are lost; disks that are full; clusters that are not there.

What needs another Spark URL runs in a process of its own: a Spark session has one.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.datagen.harmed import HARMED, in_peace

from streamjoin_datagen.errors import GenerationError, SpecError
from streamjoin_datagen.session import Session
from streamjoin_datagen.session.clusters import check_spark_url

DEADLINE_S = 240

GENERATES = f"""{HARMED}
from streamjoin_datagen.session import spark_session
with spark_session(2, spark_url=sys.argv[1]) as session:
    generate_harmed(session, sys.argv[2].split(), Path(sys.argv[3]))
"""


def generated(master: str, harms: list[str], folder: Path) -> list[list[str]]:
    """Return the harms done, and the digests and names of what was generated all the same."""
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", GENERATES, master, " ".join(harms), str(folder / "w")],
        env={**os.environ, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


@pytest.mark.slow
def test_the_bytes_survive_a_failed_task_and_a_lost_executor(
    session: Session, tmp_path: Path
) -> None:
    harms = ["fail", "kill"]
    right = in_peace(session, tmp_path / "whole")
    done = generated("local-cluster[2,1,1024]", harms, tmp_path / "harmed")
    assert done == [harms, *right]


LIMITED = """
import argparse, resource, sys
from streamjoin_datagen.cli import VERB
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
parser = argparse.ArgumentParser()
VERB.configure(parser)
try:
    VERB.run(parser.parse_args(sys.argv[2:]))
except Exception as error:
    print(type(error).__name__, error)
"""


def limited(limit_bytes: int, *words: object) -> str:
    """What is said where no file may be larger than a limit, as on a disk that is full."""
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(limit_bytes), *map(str, words)],
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.slow
def test_a_generator_without_room_leaves_nothing(tmp_path: Path) -> None:
    words = ["equi", "--param", "s_tuples=10", "--seed", "1", "--out", tmp_path / "above" / "w"]
    said = limited(2_000_000, *words)
    assert re.fullmatch(
        r"GenerationError a part could not be written: .*/above/w/r\.parquet: File too large", said
    )
    assert list(tmp_path.iterdir()) == []


def test_an_import_without_room_leaves_nothing(tmp_path: Path) -> None:
    rows = "".join(f"{row}\n" for row in range(20_000))
    for name in ("r", "s"):
        (tmp_path / f"{name}.csv").write_text(f"k\n{rows}")
    files = [tmp_path / "r.csv", tmp_path / "s.csv"]
    said = limited(20_000, "import", "csv", *files, "--on", "k", "--out", tmp_path / "w")
    assert said == (
        f"StorageError {tmp_path / 'w' / 'r.parquet'} cannot be written (File too large): "
        "raise the limit on file sizes (ulimit -f)"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.csv", "s.csv"]


@pytest.mark.parametrize(
    "master", ["yarn", "spark://", "spark://host", "local[x]", "local-cluster[2]"]
)
def test_what_is_no_spark_url_is_one_sentence(master: str) -> None:
    sentence = (
        "--master must be local[N], local[N,FAILURES], local-cluster[N,CORES,MIB] or "
        f"spark://HOST:PORT, not {master!r}"
    )
    with pytest.raises(SpecError, match=f"^{re.escape(sentence)}$"):
        check_spark_url(master)


def test_a_cluster_that_cannot_be_reached_is_one_sentence() -> None:
    sentence = (
        "the Spark URL spark://127.0.0.1:1,127.0.0.1:2 cannot be reached within 5 s: "
        "Connection refused"
    )
    with pytest.raises(GenerationError, match=f"^{re.escape(sentence)}$"):
        check_spark_url("spark://127.0.0.1:1,127.0.0.1:2")


def printed(code: str, folder: Path) -> tuple[str, str]:
    """Run code in a process of its own, which leaves no file, and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert list(folder.iterdir()) == []
    return done.stdout, done.stderr


MUTE = """
import socket
from streamjoin_datagen.session import spark as session
connected = session.connected
session.connected = lambda process, master, _: connected(process, master, 2)  # Java has longer
with socket.create_server(("127.0.0.1", 0)) as mute:
    master = f"spark://127.0.0.1:{mute.getsockname()[1]}"
    try:
        with session.spark_session(spark_url=master):
            pass
    except Exception as error:
        print(type(error).__name__, str(error).replace(master, "MASTER"))
"""


def test_a_cluster_that_says_nothing_is_given_up(tmp_path: Path) -> None:
    said = "GenerationError the Spark URL MASTER did not accept this driver within 2 s\n"
    assert printed(MUTE, tmp_path) == (said, "")


BROKEN_OFF = """
import os
import signal
import threading
from py4j.clientserver import ClientServerConnection, FinalizerWorker
from streamjoin_datagen.session.spark import spark_session

close, send = ClientServerConnection.close, ClientServerConnection.send_command
releasing, over = threading.Event(), threading.Event()

def is_releasing() -> bool:
    return isinstance(threading.current_thread(), FinalizerWorker)

def sent(connection, command):
    if is_releasing():
        releasing.set()
    return send(connection, command)

def late(connection, reset=False):
    if is_releasing():
        over.wait(2)  # what broke the call is logged after this
    close(connection, reset)

try:
    with spark_session(1) as session:
        kept = session.spark._jvm.java.util.ArrayList()
        os.killpg(session.process_id, signal.SIGSTOP)
        ClientServerConnection.send_command, ClientServerConnection.close = sent, late
        workers = [each for each in threading.enumerate() if isinstance(each, FinalizerWorker)]
        del kept
        assert releasing.wait(60)
        raise RuntimeError("Java is killed")
except RuntimeError as error:
    print(error)
over.set()
for worker in workers:
    worker.join(60)
"""


def test_a_call_that_java_does_not_live_to_answer_is_not_printed(tmp_path: Path) -> None:
    assert printed(BROKEN_OFF, tmp_path) == ("Java is killed\n", "")
