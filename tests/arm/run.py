"""Run the wheel and the driver's tests on ARM processors that QEMU emulates: ``make test-arm``.

``python -m tests.arm.run armhf`` makes a folder with Debian's userland, installs the wheel in it
with its own pip, and runs tests there, in namespaces of their own: nothing is changed outside of
``build/arm``. With ``--driver`` also the driver under PYNQ, on models that are compiled for the
processor: half an hour, on ``arm64`` ten minutes.

It needs Linux 6.7 or newer, where a user namespace has handlers of foreign programs of its own.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from streamjoin_common.contract.presets import PRESETS
from streamjoin_hw.flow import toolchain
from streamjoin_hw.flow.build import compile_model
from streamjoin_hw.flow.emit import emit_verilog

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "arm"
BOARD = ROOT / ".venv-board" / "3.1"
DEADLINE_S = 3600

MODELS = ("tiny", "tiny-band", "tiny-split", "tiny-hash")
"""Designs whose models are compiled for the processor: those of tests/board."""

PLAIN = ("tests/common/test_kinds.py", "tests/arm/test_joins.py")
"""Tests that need neither Arrow, Numba, a compiler nor what lies outside of the wheel."""

BOARD_TESTS = ("driver", "engines", "faults")
"""Files of tests/board: the driver under PYNQ itself, on the modelled board."""

NOT_INSTALLED = re.compile(
    r"(cffi|psutil|numpy|markupsafe|matplotlib|pillow|contourpy|fonttools|kiwisolver|debugpy|pyzmq|"
    r"tornado|ipykernel|jupyter\S*|nb\S*|rpds\S*|jsonschema\S*|referencing|hatchling|editables|"
    r"setuptools|wheel|pynq|pynqmetadata|pynqutils)=="
)
"""Pins of tests/board that Debian has for the processor, that notebooks and builds need, or that
come as source: those are copied from ``.venv-board``, and hold no machine code."""


@dataclass(frozen=True)
class Machine:
    """An emulated machine.

    Attributes
    ----------
    debian : str
        Debian's name of its architecture.
    triplet, emulator : str
        The compiler's name of it, QEMU's program.
    magic : str
        Bytes 4 to 19 of its programs, for the kernel: class, kind, machine.
    wheels : str
        Its name in the names of wheels.
    """

    debian: str
    triplet: str
    emulator: str
    magic: str
    wheels: str


MACHINES = {
    "armhf": Machine("armhf", "arm-linux-gnueabihf", "qemu-arm-static", r"\x01|\x28", "armv7l"),
    "arm64": Machine("arm64", "aarch64-linux-gnu", "qemu-aarch64-static", r"\x02|\xb7", "aarch64"),
}

PROGRAMS = {
    "mmdebstrap": "mmdebstrap",
    "qemu-arm-static": "qemu-user-static",
    "unshare": "util-linux",
    "arm-linux-gnueabihf-g++": "g++-arm-linux-gnueabihf",
    "aarch64-linux-gnu-g++": "g++-aarch64-linux-gnu",
}
"""Programs that are needed, and Debian's packages that hold them."""

ENTER = r"""
set -e
mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
printf '%s' "$HANDLER" > /proc/sys/fs/binfmt_misc/register
for each in proc dev checkout; do mkdir -p "$USERLAND/$each"; done
mount --rbind /proc "$USERLAND/proc"
mount --rbind /dev "$USERLAND/dev"
mount --rbind "$CHECKOUT" "$USERLAND/checkout"
export HOME=/tmp LD_LIBRARY_PATH="/usr/lib/$TRIPLET/blas:/usr/lib/$TRIPLET/lapack"
exec "$CHROOT" "$USERLAND" "$@"
"""


def run(command: Sequence[str], what: str, env: dict[str, str] | None = None) -> None:
    """Run a step; what it prints is shown."""
    sys.stderr.write(f"arm: {what}\n")
    done = subprocess.run(command, env=env, timeout=DEADLINE_S, check=False)
    if done.returncode:
        sys.exit(f"arm: {what} failed with status {done.returncode}")


def check_programs() -> None:
    """End with a sentence if a program is missing."""
    missing = {package for name, package in PROGRAMS.items() if shutil.which(name) is None}
    if missing:
        sys.exit(
            f"arm: programs are missing: type  sudo apt-get install {' '.join(sorted(missing))}"
        )
    if not BOARD.is_dir():
        sys.exit("arm: PYNQ's environment is missing: type  make setup-tests")


def inside(machine: Machine, command: Sequence[str], what: str, **env: str) -> None:
    """Run a command in a machine's userland, as root of a user namespace."""
    kind, number = machine.magic.split("|")
    magic = rf"\x7fELF{kind}\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00{number}\x00"
    mask = r"\xff" * 7 + r"\x00" + r"\xff" * 8 + r"\xfe\xff\xff\xff"
    emulator = shutil.which(machine.emulator)
    chroot = shutil.which("chroot", path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    entered = {
        "HANDLER": f":{machine.emulator}:M::{magic}:{mask}:{emulator}:F",
        "USERLAND": str(WORK / machine.debian / "root"),
        "CHECKOUT": str(ROOT),
        "TRIPLET": machine.triplet,
        "CHROOT": str(chroot),
        # Nothing else of this machine's settings.
        "PATH": f"{os.environ['PATH']}:/usr/sbin:/usr/bin:/sbin:/bin",
    }
    words = ["unshare", "--user", "--map-root-user", "--mount", "/bin/sh", "-c", ENTER, "sh"]
    run([*words, *command], what, {**entered, **env})


def mirror() -> list[str]:
    """Return the mirror that apt uses here, if it does: packages come from where others do."""
    asked = ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]
    if shutil.which("apt-get") is None:
        return []
    done = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout.split()[:1]


def site_of(machine: Machine) -> Path:
    """Return where Debian's pip installs packages in a machine's userland."""
    parts = ("usr", "local", "lib", "python3.11", "dist-packages")
    return (WORK / machine.debian / "root").joinpath(*parts)


def make_userland(machine: Machine) -> None:
    """Extract Debian's packages; their scripts are not run, so nothing is emulated yet."""
    root = WORK / machine.debian / "root"
    root.parent.mkdir(parents=True, exist_ok=True)
    packages = "python3-numpy,python3-pip,python3-markupsafe,python3-cffi,python3-psutil,libstdc++6"
    options = ["--variant=extract", f"--architectures={machine.debian}", f"--include={packages}"]
    options += ["--mode=root"] if os.geteuid() == 0 else ["--mode=chrootless"]
    command = ["mmdebstrap", *options, "bookworm", str(root), *mirror()]
    run(command, f"extracting Debian for {machine.debian}")
    for name in ("tmp", "etc"):
        (root / name).mkdir(exist_ok=True)
    pins = (ROOT / "tests" / "board" / "constraints-3.1-py3.11.txt").read_text()
    blocks = re.findall(r"^[^#\s].*(?:\n[ \t].*)*", pins, re.MULTILINE)
    chosen = WORK / machine.debian / "pins.txt"
    chosen.write_text("\n".join(each for each in blocks if not NOT_INSTALLED.match(each)) + "\n")
    site = site_of(machine)
    platforms = ("manylinux2014", "manylinux_2_17", "manylinux_2_28", "manylinux_2_31", "linux")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q", "install", "--no-deps"]
    pip += ["--only-binary=:all:", "--python-version=3.11", f"--target={site}", "--require-hashes"]
    pip += [f"--platform={each}_{machine.wheels}" for each in platforms]
    run([*pip, "-r", str(chosen)], "installing what PYNQ and the tests need")
    (built,) = BOARD.glob("lib/python3*/site-packages")
    for name in ("pynq", "pynqmetadata", "pynqutils"):
        for path in [built / name, *built.glob(f"{name}-*.dist-info")]:
            shutil.copytree(path, site / path.name)
    stamp_of(machine).touch()


def stamp_of(machine: Machine) -> Path:
    """Return the file that says that a machine's userland is complete."""
    return WORK / machine.debian / "complete.stamp"


def compile_models(machine: Machine) -> dict[str, str]:
    """Compile the designs' models for the processor; return their folders there, by preset."""
    os.environ["MAKEFLAGS"] = f"AR={machine.triplet}-ar"
    tool, compiler = toolchain.verilator(), shutil.which(f"{machine.triplet}-g++")
    assert compiler is not None  # it was looked for
    folders = {}
    for name in MODELS:
        made = WORK / machine.debian / "models" / name
        verilog = emit_verilog(PRESETS[name], made, board=True)
        shutil.rmtree(made / "obj", ignore_errors=True)
        compile_model(PRESETS[name], verilog, tool, compiler, lambda _: None, board=True)
        folders[name] = str(Path("/checkout") / made.relative_to(ROOT))
    return folders


def test(machine: Machine, *, driver: bool) -> None:
    """Build the wheel, install it there, run the tests."""
    if not stamp_of(machine).is_file():
        shutil.rmtree(WORK / machine.debian, ignore_errors=True)
        make_userland(machine)
    wheels = WORK / "wheels"
    shutil.rmtree(wheels, ignore_errors=True)
    build = [sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", str(wheels)]
    run([*build, str(ROOT)], "building the wheel")
    (wheel,) = wheels.glob("streamjoin-*.whl")
    python = "/usr/bin/python3"
    install = [python, "-m", "pip", "install", "--no-index", "--break-system-packages"]
    # pip then sees that what the wheel needs on 32 bits is there; on 64 bits that is Arrow, too.
    install += ["--no-deps"] if machine.wheels == "aarch64" else []
    for old in site_of(machine).glob("streamjoin*"):
        shutil.rmtree(old)
    there = str(Path("/checkout") / wheel.relative_to(ROOT))
    inside(machine, [*install, there], "installing the wheel with the machine's own pip")
    pytest = [python, "-m", "pytest", "-p", "no:cacheprovider", "-q", "--rootdir=/checkout"]
    plain = [*pytest, "-c", "/checkout/tests/arm/pytest.ini", "--noconftest"]
    inside(machine, [*plain, *(f"/checkout/{each}" for each in PLAIN)], "tests without Arrow")
    if not driver:
        return
    models = json.dumps(compile_models(machine))
    board = [*pytest, "-c", "/checkout/tests/board/pytest.ini", "-m", "not slow"]
    board += [f"--timeout={DEADLINE_S}"]  # emulated, it takes ten times as long
    files = [f"/checkout/tests/board/test_{name}.py" for name in BOARD_TESTS]
    inside(machine, [*board, *files], "the driver under PYNQ", STREAMJOIN_BOARD_MODELS=models)


def main() -> None:
    """Run the tests on each machine that is named, armhf by default."""
    check_programs()
    words = sys.argv[1:]
    driver = "--driver" in words
    names = [each for each in words if each != "--driver"] or ["armhf"]
    if unknown := set(names) - set(MACHINES):
        sys.exit(f"arm: machines are {' and '.join(MACHINES)}, not {', '.join(sorted(unknown))}")
    for name in names:
        test(MACHINES[name], driver=driver)


if __name__ == "__main__":
    main()
