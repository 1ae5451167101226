"""A Spark session that is lean, quiet and leaves nothing behind.

The Java process is started here rather than by PySpark, whose own start waits without a
deadline and lets Java's banners through; PySpark then connects to it by the variables
``PYSPARK_GATEWAY_PORT`` and ``PYSPARK_GATEWAY_SECRET``, as it does under ``spark-submit``.
Everything that Spark writes goes to a folder of its own, removed at the end; every port is
bound to the loopback interface, unless a master elsewhere must reach us. After an error or an
interrupt the Java process is killed, as Spark's own ending may take long and talks meanwhile.
"""

import atexit
import contextlib
import logging
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamjoin_common.storage import TemporaryFolder
from streamjoin_datagen.errors import GenerationError
from streamjoin_datagen.session.clusters import check_master, is_in_process, own_home
from streamjoin_datagen.session.interrupts import Result, interruptible
from streamjoin_datagen.session.java import find_java
from streamjoin_datagen.session.shipping import package

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START_DEADLINE_S = 120.0
STOP_DEADLINE_S = 20.0
DRIVER_MEMORY = "1g"

_LOG4J = """\
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1}: %m%n%ex
"""

# A small job ends before C2 and a parallel collector would pay.
_QUICK_JAVA = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData -Xshare:auto"
_FULL_JAVA = "-XX:+UseParallelGC -XX:-UsePerfData -Xshare:auto"


@dataclass(frozen=True)
class Session:
    """A running session.

    Attributes
    ----------
    spark : pyspark.sql.SparkSession
        What runs jobs.
    java_version : str
        Version of the Java runtime, such as ``17.0.15``.
    process_id : int
        The Java process.
    threads : int
        Tasks that run at the same time.
    """

    spark: "SparkSession"
    java_version: str
    process_id: int
    threads: int

    def run(self, work: Callable[[], Result]) -> Result:
        """Call a function that waits for Spark; an interrupt ends the Java process."""
        return interruptible(work, lambda: _kill(self.process_id))


@contextlib.contextmanager
def spark_session(
    threads: int | None = None,
    *,
    master: str | None = None,
    start_deadline_s: float = START_DEADLINE_S,
    memory: str = DRIVER_MEMORY,
    quick: bool = True,
    settings: Mapping[str, str] | None = None,
) -> Iterator[Session]:
    """Run Spark in this process for the length of a ``with`` block.

    Parameters
    ----------
    threads : int, optional
        Tasks at the same time; every core by default.
    master : str, optional
        Spark's master; by default tasks run in this process. Its executors must see the same
        files under the same paths.
    start_deadline_s : float
        Seconds that Java may take to start, and then a master to take us.
    memory : str
        Java's heap, such as ``"1g"``.
    quick : bool
        Whether Java compiles quickly rather than well: right where Spark itself does little.
    settings : mapping of str to str, optional
        Spark settings over those of this project.

    Raises
    ------
    GenerationError
        If there is no Java, it does not start within the deadline, or the master does not answer.
    """
    threads = threads or _cores()
    master = master or f"local[{threads}]"
    address = check_master(master)
    _shared.close()  # a process has one at most
    java = find_java()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(TemporaryFolder("spark"))
        stack.enter_context(_restored_process_state())
        environment = _environment(folder, java.home, address)
        if master.startswith("local-cluster"):
            home = own_home(folder / "home", Path(environment["SPARK_HOME"]))
            environment["SPARK_HOME"] = str(home)
        all_settings = {
            **_settings(folder, threads, address),
            **_java_settings(folder, memory, quick),
            **(settings or {}),
            "spark.master": master,
        }
        process = _start(folder, environment, all_settings)
        stack.push(lambda kind, *_: _end(process, at_once=kind is not None))
        try:
            port, secret = _connection(process, folder, start_deadline_s)
            os.environ.update(environment)
            os.environ.update(PYSPARK_GATEWAY_PORT=str(port), PYSPARK_GATEWAY_SECRET=secret)
            stack.callback(_disconnect, process)
            spark = _connected(process, master, start_deadline_s)
            if not is_in_process(master):
                threads = int(spark.sparkContext.defaultParallelism)
                packed = folder / "streamjoin.zip"
                package(packed)
                spark.sparkContext.addPyFile(str(packed))
            running = Session(spark, java.version, process.pid, threads)
            _running.append(running)
            stack.callback(_running.remove, running)
            yield running
        except BaseException:  # an interrupt too
            _kill(process.pid)
            process.wait(timeout=STOP_DEADLINE_S)
            raise


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


_running: list[Session] = []
_shared = contextlib.ExitStack()
_shared_sessions: list[Session] = []
"""The session that :func:`shared_session` started, if any."""


def is_running() -> bool:
    """Whether there is a session in this process."""
    return bool(_running)


def shared_session(threads: int | None = None) -> Session:
    """Return the session that runs in this process, or start one that lives as long as it does.

    One that was started here and has another number of threads is ended first; Java compiles well.

    Parameters
    ----------
    threads : int, optional
        Tasks at the same time; every core by default.

    Raises
    ------
    GenerationError
        As :func:`spark_session`.
    """
    wanted = threads or _cores()
    if any(one.threads != wanted for one in _running if one in _shared_sessions):
        _shared.close()
        _shared_sessions.clear()
    if not _running:
        memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
        heap = f"{max(1, int(memory_gib / 5))}g"
        started = _shared.enter_context(spark_session(wanted, memory=heap, quick=False))
        _shared_sessions.append(started)
        atexit.register(_shared.close)
    return _running[-1]


def _settings(folder: Path, threads: int, address: str) -> dict[str, str]:
    return {
        "spark.app.name": "streamjoin-datagen",
        "spark.driver.host": address,
        "spark.driver.bindAddress": address,
        "spark.local.dir": str(folder / "local"),
        "spark.log.level": "ERROR",
        "spark.sql.artifact.isolation.enabled": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(2 * threads),
        # The default one starts a process for every file of a checkpoint on a local disk, a tenth
        # of a second for every batch of a stream.
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing."
            "FileSystemBasedCheckpointFileManager"
        ),
        "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


def _java_settings(folder: Path, memory: str, quick: bool) -> dict[str, str]:
    log4j = (folder / "conf" / "log4j2.properties").as_uri()
    options = (
        f"{_QUICK_JAVA if quick else _FULL_JAVA} -Dlog4j2.configurationFile={log4j}"
        f" -Djava.io.tmpdir={folder} -Duser.home={folder} -Duser.timezone=UTC"
    )
    return {"spark.driver.memory": memory, "spark.driver.extraJavaOptions": options}


def _environment(folder: Path, java_home: Path, address: str) -> dict[str, str]:
    """Variables that Spark reads, over whatever the user's shell sets for another Spark."""
    import pyspark

    return {
        "JAVA_HOME": str(java_home),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_CONF_DIR": str(folder / "conf"),
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_DIRS": str(folder / "local"),
        "SPARK_LOCAL_HOSTNAME": "localhost" if address == "127.0.0.1" else address,
        "SPARK_LOCAL_IP": address,
    }


def _start(
    folder: Path, environment: dict[str, str], settings: dict[str, str]
) -> "subprocess.Popen[bytes]":
    """Start the Java process; its output goes to a file, for the error if there is one."""
    (folder / "conf").mkdir()
    (folder / "conf" / "log4j2.properties").write_text(_LOG4J)
    (folder / "local").mkdir()
    command = [str(Path(environment["SPARK_HOME"]) / "bin" / "spark-submit")]
    for name, value in settings.items():
        command += ["--conf", f"{name}={value}"]
    variables = {**os.environ, **environment, "SPARK_CONNECT_MODE": "0"}
    variables["_PYSPARK_DRIVER_CONN_INFO_PATH"] = str(folder / "connection")
    for name in ("PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET", "SPARK_REMOTE"):
        variables.pop(name, None)
    with (folder / "java.log").open("wb") as log:
        return subprocess.Popen(
            [*command, "pyspark-shell"],
            cwd=folder,
            env=variables,
            stdin=subprocess.PIPE,  # Java ends when this pipe closes, even if we are killed
            stdout=log,
            stderr=log,
            start_new_session=True,  # an interrupt is for us to handle
        )


def _connection(
    process: "subprocess.Popen[bytes]", folder: Path, deadline_s: float
) -> tuple[int, str]:
    """Wait for the file with the port and secret of the Java process, and read it."""
    until = time.monotonic() + deadline_s
    while not (folder / "connection").is_file():
        if process.poll() is not None:
            said = _first_complaint((folder / "java.log").read_text(errors="replace"))
            raise GenerationError(f"Spark's Java process ended with {process.returncode}: {said}")
        if time.monotonic() > until:
            raise GenerationError(
                f"Spark's Java process did not start within {deadline_s:g} s: "
                "is the machine very busy?"
            )
        time.sleep(0.05)
    raw = (folder / "connection").read_bytes()
    port, length = struct.unpack(">ii", raw[:8])
    return port, raw[8 : 8 + length].decode()


def _first_complaint(log: str) -> str:
    """First line that Java or Spark said, banners and the start script's own trouble aside."""
    aside = ("Picked up ", "WARNING: ", "Using Spark's ", "Setting ", "To adjust ")
    for line in log.splitlines():
        if line.strip() and not line.startswith(aside) and "/bin/spark-class: " not in line:
            return line.strip()
    return "it said nothing"


def _connected(
    process: "subprocess.Popen[bytes]", master: str, deadline_s: float
) -> "SparkSession":
    """Connect to the Java process and it to its master, within a deadline."""
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        _kill(process.pid)

    timer = threading.Timer(deadline_s, expire)
    timer.daemon = True
    timer.start()
    try:
        return interruptible(_connect, lambda: _kill(process.pid))
    except Exception as error:  # PySpark's and Py4J's classes have no common base
        if not expired.is_set() and is_in_process(master):
            raise
        why = f"within {deadline_s:g} s" if expired.is_set() else "as it stands"
        raise GenerationError(f"the Spark master {master} did not take us {why}") from error
    finally:
        timer.cancel()


def _connect() -> "SparkSession":
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context: Any = SparkContext()
    # Its thread prints a traceback where the Java process ends before it.
    context._accumulatorServer.handle_error = lambda *_: None
    return SparkSession(context)


def _disconnect(process: "subprocess.Popen[bytes]") -> None:
    """Stop Spark, and make PySpark forget the Java process: a later session has its own."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    gateway: Any = SparkContext._gateway
    context: Any = SparkContext._active_spark_context
    if process.poll() is not None:
        # Nothing can be sent any more, neither by this thread nor by PySpark's finalizers.
        if gateway:
            gateway._gateway_client.is_connected = False
        if context:
            context._jsc = None
    try:
        with contextlib.suppress(Exception):
            if context:
                context.stop()
        with contextlib.suppress(Exception):
            gateway.shutdown()
    finally:
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = SparkSession._activeSession = None


def _end(process: "subprocess.Popen[bytes]", *, at_once: bool) -> None:
    """Let the Java process end by itself, or end it."""
    try:
        if process.stdin:
            with contextlib.suppress(OSError):
                process.stdin.close()
        if not at_once:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(timeout=STOP_DEADLINE_S)
    finally:
        if process.poll() is None:
            _kill(process.pid)
            process.wait(timeout=STOP_DEADLINE_S)


def _kill(process_id: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process_id, signal.SIGKILL)


@contextlib.contextmanager
def _restored_process_state() -> Iterator[None]:
    """Put back what PySpark changes in this process: variables, import path, log handlers."""
    environment, import_path = dict(os.environ), list(sys.path)
    root, handler = logging.getLogger(), logging.NullHandler()
    # Py4J tells the root logger of every broken call, with its traceback; the caller gets the
    # exception as well. Without any handler logging would install one for that.
    root.addFilter(_not_from_py4j)
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.removeFilter(_not_from_py4j)
        os.environ.clear()
        os.environ.update(environment)
        sys.path[:] = import_path


def _not_from_py4j(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"
