"""Spark masters other than this process: whether one answers, and what it needs of us."""

import re
import socket
from pathlib import Path

from streamjoin_datagen.errors import GenerationError, SpecError

ANSWER_DEADLINE_S = 5.0

_LOCAL = re.compile(r"local(\[(\*|\d+)(, *\d+)?\])?")
_LOCAL_CLUSTER = re.compile(r"local-cluster\[\d+, *\d+, *\d+\]")
_STANDALONE = re.compile(r"spark://([^:,/]+):(\d+)((?:,[^:,/]+:\d+)*)")


def check_master(master: str) -> str:
    """See that a master is one and answers; return the address of this machine that it sees.

    Raises
    ------
    SpecError
        If the text is no master.
    GenerationError
        If nobody answers there within the deadline.
    """
    if _LOCAL.fullmatch(master) or _LOCAL_CLUSTER.fullmatch(master):
        return "127.0.0.1"
    found = _STANDALONE.fullmatch(master)
    if not found:
        raise SpecError(
            "--master must be local[N], local[N,FAILURES], local-cluster[N,CORES,MIB] or "
            f"spark://HOST:PORT, not {master!r}"
        )
    others = [place.rpartition(":") for place in found[3].split(",")[1:]]
    said = ""
    for host, port in [(found[1], found[2]), *((host, port) for host, _, port in others)]:
        try:
            address = (host, int(port))
            with socket.create_connection(address, timeout=ANSWER_DEADLINE_S) as connected:
                return str(connected.getsockname()[0])
        except (OSError, OverflowError) as error:
            said = str(getattr(error, "strerror", None) or error)
    raise GenerationError(
        f"the Spark master {master} cannot be reached within {ANSWER_DEADLINE_S:g} s: {said}"
    )


def is_in_process(master: str) -> bool:
    """Whether tasks run as children of our own Java process, with our import path."""
    return _LOCAL.fullmatch(master) is not None


def own_home(home: Path, original: Path) -> Path:
    """Make a Spark home whose files are the original's: a local cluster writes beside them."""
    home.mkdir()
    for entry in original.iterdir():
        (home / entry.name).symlink_to(entry)
    return home
