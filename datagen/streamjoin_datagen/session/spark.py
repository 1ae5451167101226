"""A Spark session that is lean, quiet and leaves nothing behind.

The Java process is started here rather than by PySpark, whose own start waits without a
deadline and lets Java's banners through; PySpark then connects to it by the variables
``PYSPARK_GATEWAY_PORT`` and ``PYSPARK_GATEWAY_SECRET``, as it does under ``spark-submit``.
Everything that Spark writes goes to a folder of its own, removed at the end; every port is
bound to the loopback interface, unless a cluster elsewhere must reach this process. After an error
or an interrupt the Java process is killed, as Spark's own ending takes long and prints meanwhile.
"""

import atexit
import contextlib
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from streamjoin_common.storage import TemporaryFolder
from streamjoin_datagen.session.clusters import check_spark_url, is_in_process, own_home
from streamjoin_datagen.session.interrupts import Result, interruptible
from streamjoin_datagen.session.java import find_java
from streamjoin_datagen.session.process import (
    STOP_DEADLINE_S,
    connected,
    connection,
    disconnect,
    end,
    kill,
    start,
)
from streamjoin_datagen.session.settings import environment_of, java_settings, spark_settings
from streamjoin_datagen.session.shipping import package

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

START_DEADLINE_S = 120.0
DRIVER_MEMORY = "1g"


def check_installed() -> None:
    """Refuse to begin where PySpark is missing, before anything is said or made.

    Raises
    ------
    ModuleNotFoundError
        As importing it would.
    """
    if find_spec("pyspark") is None:
        raise ModuleNotFoundError("No module named 'pyspark'", name="pyspark")


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
        return interruptible(work, lambda: kill(self.process_id))


@contextlib.contextmanager
def spark_session(
    threads: int | None = None,
    *,
    spark_url: str | None = None,
    start_deadline_s: float = START_DEADLINE_S,
    memory: str = DRIVER_MEMORY,
    quick: bool = True,
    settings: Mapping[str, str] | None = None,
    master: str | None = None,
) -> Iterator[Session]:
    """Run Spark in this process for the length of a ``with`` block.

    Parameters
    ----------
    threads : int, optional
        Tasks at the same time; every core by default.
    spark_url : str, optional
        Spark URL of a cluster; by default tasks run in this process. The cluster's executors must
        see the same files under the same paths.
    start_deadline_s : float
        Seconds that Java may take to start, and then a cluster to accept this driver.
    memory : str
        Java's heap, such as ``"1g"``.
    quick : bool
        Whether Java compiles quickly rather than well: right where Spark itself does little.
    settings : mapping of str to str, optional
        Spark settings over those of this project.
    master : str, optional
        Earlier name of ``spark_url``, for one release.

    Raises
    ------
    GenerationError
        If there is no Java, it does not start within the deadline, or the cluster does not answer.
    """
    if master is not None:
        warnings.warn("master= is now called spark_url=", FutureWarning, stacklevel=3)
    threads = threads or _cores()
    spark_url = spark_url or master or f"local[{threads}]"
    address = check_spark_url(spark_url)
    _shared.close()  # a process has at most one session
    java = find_java()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(TemporaryFolder("spark"))
        stack.enter_context(_restored_process_state())
        environment = environment_of(folder, java.home, address)
        if spark_url.startswith("local-cluster"):
            home = own_home(folder / "home", Path(environment["SPARK_HOME"]))
            environment["SPARK_HOME"] = str(home)
        all_settings = {
            **spark_settings(folder, threads, address),
            **java_settings(folder, memory, quick),
            **(settings or {}),
            "spark.master": spark_url,
        }
        process = start(folder, environment, all_settings)
        stack.push(lambda kind, *_: end(process, at_once=kind is not None))
        try:
            port, secret = connection(process, folder, start_deadline_s)
            os.environ.update(environment)
            os.environ.update(PYSPARK_GATEWAY_PORT=str(port), PYSPARK_GATEWAY_SECRET=secret)
            stack.callback(disconnect, process)
            spark = connected(process, spark_url, start_deadline_s)
            if not is_in_process(spark_url):
                threads = int(spark.sparkContext.defaultParallelism)
                packed = folder / "streamjoin.zip"
                package(packed)
                spark.sparkContext.addPyFile(str(packed))
            running = Session(spark, java.version, process.pid, threads)
            _running.append(running)
            stack.callback(_running.remove, running)
            yield running
        except BaseException:  # an interrupt too
            kill(process.pid)
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


@contextlib.contextmanager
def _restored_process_state() -> Iterator[None]:
    """Put back what PySpark changes in this process: variables, import path, log handlers."""
    environment, import_path = dict(os.environ), list(sys.path)
    root, handler = logging.getLogger(), logging.NullHandler()
    # Py4J logs to the root logger of every broken call, with its traceback; the caller gets the
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
