"""Spark URLs: checked, and reached before a session is started there."""

import re
import socket
from pathlib import Path

from streamjoin_datagen.errors import GenerationError, SpecError

ANSWER_DEADLINE_S = 5.0

_LOCAL = re.compile(r"local(\[(\*|\d+)(, *\d+)?\])?")
_LOCAL_CLUSTER = re.compile(r"local-cluster\[\d+, *\d+, *\d+\]")
_STANDALONE = re.compile(r"spark://([^:,/]+):(\d+)((?:,[^:,/]+:\d+)*)")


def check_spark_url(spark_url: str) -> str:
    """Check a Spark URL and reach it; return the address of this machine that the cluster sees.

    Raises
    ------
    SpecError
        If the string is no Spark URL.
    GenerationError
        If nothing answers there within the deadline.
    """
    if _LOCAL.fullmatch(spark_url) or _LOCAL_CLUSTER.fullmatch(spark_url):
        return "127.0.0.1"
    match = _STANDALONE.fullmatch(spark_url)
    if not match:
        raise SpecError(
            "--master must be local[N], local[N,FAILURES], local-cluster[N,CORES,MIB] or "
            f"spark://HOST:PORT, not {spark_url!r}"
        )
    others = [address.rpartition(":") for address in match[3].split(",")[1:]]
    reason = ""
    for host, port in [(match[1], match[2]), *((host, port) for host, _, port in others)]:
        try:
            address = (host, int(port))
            with socket.create_connection(address, timeout=ANSWER_DEADLINE_S) as connected:
                return str(connected.getsockname()[0])
        except (OSError, OverflowError) as error:
            reason = str(getattr(error, "strerror", None) or error)
    raise GenerationError(
        f"the Spark URL {spark_url} cannot be reached within {ANSWER_DEADLINE_S:g} s: {reason}"
    )


def is_in_process(spark_url: str) -> bool:
    """Whether tasks run as children of our own Java process, with our import path."""
    return _LOCAL.fullmatch(spark_url) is not None


def own_home(home: Path, original: Path) -> Path:
    """Make a Spark home whose files are the original's: a local cluster writes beside them."""
    home.mkdir()
    for entry in original.iterdir():
        (home / entry.name).symlink_to(entry)
    return home
