"""What a point's figures depend on: its table and data, the project's code, machine and versions.

A finished point is kept under a digest of all of it. Where anything differs, it is another point.
"""

import functools
import hashlib
import importlib.util
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from streamjoin.bench.experiments import Point
from streamjoin_common.installed.environment import environment

PACKAGES = (
    *("streamjoin", "streamjoin_common", "streamjoin_datagen"),
    *("streamjoin_hw", "streamjoin_spark"),
)
"""Packages whose code can take part in a figure, those of them that are installed."""

PRESENTATION = {"cli", "report"}
"""Parts of a package that only show figures."""

SUFFIXES = {".py", ".cpp", ".h", ".v"}

_CHANGING = {"load_average", "memory_bytes"}
"""What an environment says that is not the same at each start of one machine."""


def definition(point: Point, workload: Mapping[str, Any], threads: int) -> str:
    """Digest of all that a point's figures depend on: 16 hexadecimal digits.

    Parameters
    ----------
    point : Point
        The point.
    workload : mapping
        What ``workload.json`` says of its data.
    threads : int
        Threads where the point's table names none.
    """
    asked = {"threads": threads, **point.table}
    text = json.dumps([asked, workload, sources(), machine()], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def machine() -> dict[str, Any]:
    """Return processor, system and versions, as an environment has them."""
    return {name: value for name, value in environment().items() if name not in _CHANGING}


@functools.cache
def sources() -> str:
    """Digest of the project's code but what only shows figures: 64 hexadecimal digits."""
    code = hashlib.sha256()
    for name, path in source_files():
        content = path.read_bytes()
        code.update(f"{name} {len(content)}\n".encode())
        code.update(content)
    return code.hexdigest()


def source_files() -> Iterator[tuple[str, Path]]:
    """Yield the name below its package, and the path, of each file that :func:`sources` reads."""
    for package in PACKAGES:
        spec = importlib.util.find_spec(package)
        for folder in map(Path, (spec and spec.submodule_search_locations) or ()):
            for path in sorted(folder.rglob("*")):
                inside = path.relative_to(folder)
                if path.suffix in SUFFIXES and inside.parts[0] not in PRESENTATION:
                    yield f"{package}/{inside.as_posix()}", path
