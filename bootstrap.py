"""Set up ``.venv`` with everything the project needs; seconds when nothing is missing.

Run by ``make setup`` with the system's Python and its standard library alone. What must come
from the system (a C++ compiler, Perl, Chromium for the page's test) is installed with apt
where that is allowed; otherwise one sentence says what to type.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
ENVIRONMENT_INPUTS = ("bootstrap.py", "constraints.txt")
PROJECT_INPUTS = ("pyproject.toml",)

MINIMUM = (3, 11)
DEADLINE_S = 1800

# What is looked for on the path, what provides it in Debian, and what it is for.
SYSTEM = (
    (("g++", "c++", "clang++"), "g++", "compiles simulation models"),
    (("make",), "make", "drives that compilation"),
    (("perl",), "perl", "runs Verilator's front end"),
    (("chromium", "chromium-browser", "google-chrome"), "chromium", "tests the report page"),
)


def fail(sentence: str) -> None:
    """End with one sentence and a non-zero status."""
    sys.exit(f"setup: {sentence}")


def run(command: list[str], what: str, env: dict[str, str] | None = None) -> None:
    """Run one step quietly; on failure show its output and end."""
    print(f"setup: {what}", file=sys.stderr, flush=True)
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


def system_packages() -> None:
    """See to it that every system program is there."""
    missing = [row for row in SYSTEM if not any(shutil.which(name) for name in row[0])]
    if missing:
        why = "missing: " + ", ".join(f"{names[0]} ({use})" for names, _, use in missing)
        apt([package for _, package, _ in missing], why)


def pip(*words: str) -> list[str]:
    """Return the environment's pip as a command."""
    python = str(VENV / "bin" / "python")
    return [python, "-m", "pip", "--disable-pip-version-check", "-q", *words]


def make_environment() -> None:
    """Make ``.venv`` anew and install the pinned packages into it."""
    system_packages()
    if VENV.exists():
        shutil.rmtree(VENV)
    try:
        import ensurepip  # noqa: F401  (only its presence counts)
    except ImportError:
        apt([f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"], "venv is missing")
    run([sys.executable, "-m", "venv", str(VENV)], "making .venv")
    install = pip("install", "--require-hashes", "-r", "constraints.txt")
    run(install, "installing the pinned packages (about a minute)")


def install_project() -> None:
    """Install the project itself, editable, with its commands and entry points."""
    run(pip("install", "--no-deps", "-e", "."), "installing streamjoin")


def once(name: str, inputs: tuple[str, ...], step: Callable[[], None]) -> None:
    """Run a step unless it was run on these very files, in this place, by this Python."""
    stamp = VENV / f"{name}.stamp"
    files = b"".join((ROOT / path).read_bytes() for path in inputs)
    wanted = hashlib.sha256(files + f"{ROOT} {sys.version}".encode()).hexdigest()
    if not stamp.is_file() or stamp.read_text() != wanted:
        step()
        stamp.write_text(wanted)


def main() -> None:
    """Bring the environment up to date if anything it is made from has changed."""
    if sys.version_info < MINIMUM:
        fail(f"Python {MINIMUM[0]}.{MINIMUM[1]} or newer is needed, not {sys.version.split()[0]}")
    once("environment", ENVIRONMENT_INPUTS, make_environment)
    once("project", PROJECT_INPUTS, install_project)


if __name__ == "__main__":
    main()
