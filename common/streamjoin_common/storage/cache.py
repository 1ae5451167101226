"""The cache of what can be made again: kernels, models, tools.

Its code is run, so it counts who can write it.

``STREAMJOIN_CACHE`` chooses it; by default it lies in the environment. It is refused where others
can write (:mod:`~streamjoin_common.storage.trust`). One that can be read and not written, as that
of another user's install, is read; what is missing is written to a folder of this process alone,
and one line says so.
"""

import hashlib
import json
import logging
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path

from streamjoin_common.documents import read_json
from streamjoin_common.storage import trust
from streamjoin_common.storage.atomic import new_file, new_folder
from streamjoin_common.storage.errors import DISK_ERRORS, CacheError, StorageError
from streamjoin_common.storage.owned import TemporaryFolder, lock, remove

VARIABLE = "STREAMJOIN_CACHE"
SEAL_NAME = "complete.json"
"""Names every file of a finished entry, with what it must hold."""

BUILD_DEADLINE_S = 900.0
"""Seconds to wait for another process that makes the same entry before making it too."""

PROBE_BYTES = 1 << 20
"""Bytes that can be written to a cache's disk unless it is full."""

_UNWRITABLE = (
    "the cache {} cannot be written, so what is missing in it is made anew in each run: set "
    f"{VARIABLE} to a folder that can be written"
)
SETTLED_NS = 2_000_000_000
"""Age of a file's last change from which another change is sure to show in its times."""

_DIGEST_BYTES = hashlib.sha256().digest_size
_log = logging.getLogger("streamjoin.cache")
_warned: set[str] = set()
_private: list[TemporaryFolder] = []
_hashed: dict[tuple[int, ...], dict[str, int | str]] = {}


def warn_once(message: str) -> None:
    """Log a warning, once in a process."""
    if message not in _warned:
        _warned.add(message)
        _log.warning("streamjoin: %s", message)


def root() -> Path:
    """Return the folder of the cache, which need not be there yet.

    Raises
    ------
    CacheError
        If code in it must not be run, as others can write there.
    """
    chosen = os.environ.get(VARIABLE)
    prefix = Path(sys.prefix)
    folder = Path(chosen).absolute() if chosen else prefix / "share" / "streamjoin"
    # Who can change what is above the environment can change the Python that we run.
    _check(folder, Path("/") if chosen else prefix)
    return folder


def _check(folder: Path, top: Path) -> None:
    why = trust.complaint(folder, top)
    if why is not None:
        raise CacheError(
            f"the cache {folder} is not used, as code in it is run and {why}: set {VARIABLE} to a "
            "folder that you alone can write"
        )


def _made(folder: Path) -> bool:
    """Make a folder of the cache if that is possible, closed to others' writing."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        for path in reversed(missing):
            with suppress(FileExistsError):
                path.mkdir(0o755)
    except OSError:
        return False
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def folder(kind: str) -> Path:
    """Return a folder of the cache to write to, made where it is missing.

    It is one of this process alone if the cache cannot be written.

    Raises
    ------
    CacheError
        As :func:`root`; also if not even a temporary folder can be made.
    """
    path = root() / kind
    if _made(path):
        _check(path, root())
        return path
    warn_once(_UNWRITABLE.format(root()))
    return _own(kind)


def _own(kind: str) -> Path:
    if not _private:
        try:
            _private.append(TemporaryFolder("cache"))
        except StorageError as error:
            raise CacheError(
                f"{VARIABLE} must name a folder that can be written, as {root()} cannot: {error}"
            ) from None
    path = _private[0].path / kind
    path.mkdir(exist_ok=True)
    return path


def _parents(kind: str) -> list[Path]:
    return [root() / kind, *(owned.path / kind for owned in _private)]


def _without_links(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW)


def read_checked(path: Path) -> bytes | None:
    """Read a file of :func:`write_checked`; None if it is damaged, not there or not ours."""
    try:
        with open(path, "rb", opener=_without_links) as opened:
            if not trust.is_ours(os.fstat(opened.fileno())):
                return None
            data = opened.read()
    except OSError:
        return None
    digest, content = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
    return content if hashlib.sha256(content).digest() == digest else None


def write_checked(path: Path, content: bytes) -> bool:
    """Write a file of the cache with a checksum; false where the cache takes none.

    Nothing depends on it: without room the next run makes the content again.
    """
    if not _made(path.parent):
        warn_once(_UNWRITABLE.format(root()))
        return False
    try:
        with new_file(path) as draft:
            draft.write_bytes(hashlib.sha256(content).digest() + content)
            draft.chmod(draft.stat().st_mode & ~(stat.S_IWGRP | stat.S_IWOTH))
    except OSError as error:
        warn_once(f"the cache does not keep what was compiled: {error}")
        return False
    return True


def entry(
    kind: str, name: str, make: Callable[[Path], None], *, max_entries: int | None = None
) -> Path:
    """Return a folder of the cache, made where it is missing or damaged.

    Parameters
    ----------
    kind, name : str
        Its address in the cache.
    make : callable taking Path
        Fills a folder.
    max_entries : int, optional
        Entries of this kind to keep; the ones used longest ago are removed first.

    Raises
    ------
    CacheError
        As :func:`folder`.
    """
    made = _whole_entry(kind, name)
    if made is not None:
        return made
    target = folder(kind) / name
    shared = target.is_relative_to(root())
    with lock(target.with_name(f".{name}.lock"), BUILD_DEADLINE_S) if shared else nullcontext():
        made = _whole_entry(kind, name)  # another process may have made it meanwhile
        if made is None:
            made = _filled(target, make, kind if shared else None)
            for left in target.parent.glob(".*.lock"):  # by a process that was killed
                with lock(left, 0):
                    pass
    if max_entries is not None and shared:
        _forget(target.parent, max_entries)
    return made


def _filled(target: Path, make: Callable[[Path], None], kind: str | None) -> Path:
    try:
        with new_folder(target, keep=is_whole, durable=False) as made:
            make(made)
            seal(made)
    except Exception as error:
        full = isinstance(error, OSError) and error.errno in DISK_ERRORS
        if kind is None or not (full or not _has_room(target.parent)):
            raise
        warn_once(f"the disk of the cache {root()} is full: a temporary folder is used instead")
        return _filled(_own(kind) / target.name, make, None)
    return target


def _has_room(parent: Path) -> bool:
    """Whether a tool that failed without a reason may have had one: a disk that is full."""
    try:
        with new_file(parent / ".room") as draft:
            draft.write_bytes(bytes(PROBE_BYTES))
            raise _RoomError
    except _RoomError:
        return True
    except OSError:
        return False


class _RoomError(Exception):
    """There is room; the probe is not kept."""


def _whole_entry(kind: str, name: str) -> Path | None:
    for parent in _parents(kind):
        if is_whole(parent / name):
            with suppress(OSError):  # another user's: who needs it is not counted
                os.utime(parent / name / SEAL_NAME)
            return parent / name
    return None


def seal(folder: Path) -> None:
    """Record what is in a finished folder, the last thing before it gets its name.

    Nobody but its owner can write it from then on.
    """
    facts = {}
    for path in sorted(folder.rglob("*")):
        if path.is_symlink():
            continue
        path.chmod(path.stat().st_mode & ~(stat.S_IWGRP | stat.S_IWOTH))
        if path.is_file():
            facts[str(path.relative_to(folder))] = _contents(path)
    (folder / SEAL_NAME).write_text(json.dumps(facts, indent=2) + "\n")
    for path in (folder, folder / SEAL_NAME):
        path.chmod(path.stat().st_mode & ~(stat.S_IWGRP | stat.S_IWOTH))


def _contents(file: Path) -> dict[str, int | str]:
    data = file.read_bytes()
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def _contents_once(file: Path) -> dict[str, int | str]:
    """Return what a file holds, read once in a process unless it has changed since."""
    about = file.stat()
    changed_ns = max(about.st_mtime_ns, about.st_ctime_ns)
    known = (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
    if known in _hashed:
        return _hashed[known]
    contents = _contents(file)
    if time.time_ns() - changed_ns > SETTLED_NS:
        _hashed[known] = contents
    return contents


def is_whole(folder: Path) -> bool:
    """Whether a sealed folder is there, still holds what it did, and nobody else can write it."""
    try:
        facts = read_json(folder / SEAL_NAME)
        if not isinstance(facts, dict) or not facts:
            return False
        paths = {folder, folder / SEAL_NAME}
        for name in facts:
            path = folder / name
            paths.update({path, *(above for above in path.parents if folder in above.parents)})
        return all(trust.is_ours(path.lstat()) for path in paths) and all(
            _contents_once(folder / name) == facts[name] for name in facts
        )
    except (OSError, ValueError, RecursionError):
        return False


def _forget(kind: Path, max_entries: int) -> None:
    """Keep the cache from growing without end."""
    with suppress(OSError):
        entries = [path for path in kind.iterdir() if not path.name.startswith(".")]
        entries.sort(key=_used)
        for path in entries[:-max_entries]:
            remove(path)


def _used(path: Path) -> float:
    try:
        return (path / SEAL_NAME).stat().st_mtime
    except OSError:
        return 0.0


def file(name: str) -> Path:
    """Return the path of a file of this machine's own, such as measured constants."""
    return root() / name


def mirror(kind: str) -> Path:
    """Return a folder for another program's cache: the cache's, or links to what is in it.

    A program that finds what it needs there writes nothing; what it does not find, it can write.
    """
    source, target = root() / kind, folder(kind)
    if target == source:
        return target
    for path in source.rglob("*"):
        link = target / path.relative_to(source)
        with suppress(FileExistsError):
            if path.is_dir():
                link.mkdir(parents=True)
            else:
                link.symlink_to(path)
    return target


@contextmanager
def set_variables(**variables: str) -> Iterator[None]:
    """Set environment variables that name folders of the cache, for the length of a block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
