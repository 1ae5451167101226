"""A PostgreSQL server of the tests' own: on loopback, in a folder that goes with it."""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

DEADLINE_S = 60


def programs() -> Path | None:
    """Where the server's programs are: on the path, or where Debian puts them."""
    found = shutil.which("initdb")
    if found:
        return Path(found).parent
    kept = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return kept[-1].parent if kept else None


def _as_owner(folder: Path) -> dict[str, int]:
    """The server refuses to run as root: another user owns it then."""
    if os.geteuid() != 0:
        return {}
    for name in ("postgres", "nobody"):
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        os.chown(folder, user.pw_uid, user.pw_gid)
        return {"user": user.pw_uid, "group": user.pw_gid}
    raise AssertionError("there is no user postgres or nobody")


def _run(*command: str | Path, cwd: Path, **owner: int) -> None:
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, timeout=DEADLINE_S, check=False, **owner
    )
    if done.returncode:
        raise AssertionError(f"{command[0]} failed: {done.stdout[-2000:]} {done.stderr[-2000:]}")


@contextmanager
def server() -> Iterator[str]:
    """Start a server; give its address; stop it and remove what it wrote.

    Its folder is not one of pytest's: those are for one user alone, and every other pytest that
    runs makes them so again.
    """
    tools = programs()
    assert tools is not None, "PostgreSQL is missing: type  sudo apt-get install postgresql"
    with tempfile.TemporaryDirectory(prefix="streamjoin-postgres-") as folder:
        yield from _served(tools, Path(folder))


def _served(tools: Path, folder: Path) -> Iterator[str]:
    owner = _as_owner(folder)
    data = folder / "data"
    options = ("-U", "postgres", "-A", "trust", "-N", "--no-locale", "-E", "UTF8")
    _run(tools / "initdb", "-D", data, *options, cwd=folder, **owner)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c fsync=off"
    start = ("-w", "-t", str(DEADLINE_S - 5), "-l", folder / "log", "-o", settings, "start")
    _run(tools / "pg_ctl", "-D", data, *start, cwd=folder, **owner)
    try:
        yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
    finally:
        _run(tools / "pg_ctl", "-D", data, "-m", "immediate", "stop", cwd=folder, **owner)
