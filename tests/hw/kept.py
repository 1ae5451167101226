"""Results of slow tools, kept in the cache by all that they depend on."""

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path

import streamjoin_hw
from streamjoin_common.storage import cache
from streamjoin_hw.flow import emit
from streamjoin_hw.flow.yowasp import version

MAX_KEPT = 128

tool_version = functools.cache(version)
"""A tool's version, asked once: each time starts the tool."""


def sources() -> str:
    """Return a hash of all that is imported of the hardware's package, as it is."""
    digest = hashlib.sha256(emit.sources_hash().encode())
    for path in sorted(Path(streamjoin_hw.__file__).parent.rglob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def once(what: list[str], make: Callable[[Path], None]) -> Path:
    """Return a folder that was filled once for the same strings; what fails is never kept."""
    key = hashlib.sha256("\0".join(what).encode()).hexdigest()[:32]
    return cache.entry("checked", key, make, max_entries=MAX_KEPT)
