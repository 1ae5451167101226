"""The Java process of a session: started, connected to and ended, each within a deadline."""

import contextlib
import os
import signal
import struct
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamjoin_datagen.errors import GenerationError
from streamjoin_datagen.session.clusters import is_in_process
from streamjoin_datagen.session.interrupts import interruptible

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STOP_DEADLINE_S = 20.0


_LOG4J = """\
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %p %c{1}: %m%n%ex
"""


def start(
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


def connection(
    process: "subprocess.Popen[bytes]", folder: Path, deadline_s: float
) -> tuple[int, str]:
    """Wait for the file with the port and secret of the Java process, and read it."""
    until = time.monotonic() + deadline_s
    while not (folder / "connection").is_file():
        if process.poll() is not None:
            reason = _first_complaint((folder / "java.log").read_text(errors="replace"))
            raise GenerationError(f"Spark's Java process ended with {process.returncode}: {reason}")
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
    """Return the first line of Java's or Spark's output that is neither a banner nor a warning."""
    aside = ("Picked up ", "WARNING: ", "Using Spark's ", "Setting ", "To adjust ")
    for line in log.splitlines():
        if line.strip() and not line.startswith(aside) and "/bin/spark-class: " not in line:
            return line.strip()
    return "it said nothing"


def connected(
    process: "subprocess.Popen[bytes]", spark_url: str, deadline_s: float
) -> "SparkSession":
    """Connect to the Java process, and that to its cluster, within a deadline."""
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        kill(process.pid)

    timer = threading.Timer(deadline_s, expire)
    timer.daemon = True
    timer.start()
    try:
        return interruptible(_connect, lambda: kill(process.pid))
    except Exception as error:  # PySpark's and Py4J's classes have no common base
        if not expired.is_set() and is_in_process(spark_url):
            raise
        why = f"within {deadline_s:g} s" if expired.is_set() else "as it stands"
        raise GenerationError(
            f"the Spark URL {spark_url} did not accept this driver {why}"
        ) from error
    finally:
        timer.cancel()


def _connect() -> "SparkSession":
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    context: Any = SparkContext()
    # Its thread prints a traceback where the Java process ends before it.
    context._accumulatorServer.handle_error = lambda *_: None
    return SparkSession(context)


def disconnect(process: "subprocess.Popen[bytes]") -> None:
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
        if process.poll() is not None:
            _end_of_finalizers()
    finally:
        SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
        SparkSession._instantiatedSession = SparkSession._activeSession = None


def _end_of_finalizers() -> None:
    """Wait until Py4J's thread that releases Java objects has ended: a shutdown asks it to.

    Where a call of its is broken off it logs a traceback, which is held back as long as the
    session lasts.
    """
    from py4j.clientserver import FinalizerWorker

    for thread in threading.enumerate():
        if isinstance(thread, FinalizerWorker):
            thread.join(STOP_DEADLINE_S)


def end(process: "subprocess.Popen[bytes]", *, at_once: bool) -> None:
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
            kill(process.pid)
            process.wait(timeout=STOP_DEADLINE_S)


def kill(process_id: int) -> None:
    """Kill a Java process and its children; one that has ended already is no error."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process_id, signal.SIGKILL)
