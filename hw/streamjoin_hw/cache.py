"""What can be made again: models and tools, whole or not there, on any number of processes."""

import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

ABANDONED_S = 6 * 3600
"""Age at which a folder that a build left is nobody's: above the deadlines of all its tools."""

CACHES = ("models", "simulators", "synth", "verilator")
"""Folders of the cache that are filled here."""

SEAL_NAME = "complete.json"
"""Names every file of a finished cache entry, with what it must hold."""


class CacheError(RuntimeError):
    """The cache cannot be written; the message names the variable that chooses it."""

    exit_status = 2


def cache_folder() -> Path:
    """Return the folder of everything that can be made again."""
    chosen = os.environ.get("STREAMJOIN_CACHE")
    return Path(chosen) if chosen else Path(sys.prefix) / "share" / "streamjoin"


def _contents(file: Path) -> dict[str, int | str]:
    data = file.read_bytes()
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def seal(folder: Path) -> None:
    """Record what is in a finished folder, the last thing before it gets its name."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    facts = {str(path.relative_to(folder)): _contents(path) for path in files}
    (folder / SEAL_NAME).write_text(json.dumps(facts, indent=2) + "\n")


def is_whole(folder: Path) -> bool:
    """Tell whether a sealed folder is there and still holds what it did."""
    try:
        facts = json.loads((folder / SEAL_NAME).read_text())
        return bool(facts) and all(_contents(folder / name) == facts[name] for name in facts)
    except (OSError, ValueError, AttributeError):
        return False


def publish(made: Path, target: Path, whole: Callable[[Path], bool] | None = None) -> Path:
    """Give a finished folder its name; another process's equal one may have come first.

    Parameters
    ----------
    made, target : Path
        The folder and its name.
    whole : callable taking Path, optional
        Tells whether a folder of this name may stay; one that may not is replaced. Without it
        every folder stays.

    Returns
    -------
    Path
        ``target``, whole.
    """
    try:
        made.rename(target)
    except OSError:
        if whole is None and not target.is_dir():
            raise
        if whole is not None and not whole(target):
            aside = temporary_folder(target)
            target.rename(aside / "broken")
            made.rename(target)
            made = aside
        shutil.rmtree(made, ignore_errors=True)
    return target


def cache_entry(target: Path) -> Path:
    """Make a folder in which an entry of the cache can be prepared; drop abandoned ones.

    Raises
    ------
    CacheError
        If the cache cannot be written.
    """
    latest = time.time() - ABANDONED_S
    try:
        for path in (path for name in CACHES for path in (cache_folder() / name).glob(".*-*")):
            with suppress(FileNotFoundError):
                if path.stat().st_mtime < latest:
                    shutil.rmtree(path, ignore_errors=True)
        return temporary_folder(target)
    except OSError as error:
        raise CacheError(
            f"STREAMJOIN_CACHE must name a folder that can be written, as {cache_folder()} "
            f"cannot: {error.strerror}"
        ) from None


def temporary_folder(beside: Path) -> Path:
    """Make a folder in which ``beside`` can be prepared."""
    beside.parent.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f".{beside.name}-", dir=beside.parent))
