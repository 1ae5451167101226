"""Folders with an owner: what a killed process left is removed by the next, and nothing else.

Each such folder holds a file on which its process keeps a lock; the system gives the lock up when
the process ends, however it ends. The lock file is the last thing that is removed, so a removal
that is interrupted continues the next time.
"""

import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
import tempfile
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

from streamjoin_common.storage import steps
from streamjoin_common.storage.errors import StorageError, refused

LOCK_NAME = ".streamjoin-lock"
REMOVE_DEADLINE_S = 2.0
"""Seconds for which a folder is removed again: a process that ends may write its last file."""

RETRY_S = 0.02
"""Seconds between two attempts."""

ORPHAN_S = 600.0
"""Age in seconds from which a folder without a lock is nobody's."""

MAX_TRIES = 100
"""Maximum attempts to make a temporary folder that no other process removes."""
_TEMPORARY = re.compile(r"streamjoin-[\w.-]+-[0-9a-f]{12}")


class _NoLocksError(Exception):
    """The file system has no locks; ``descriptor`` is the open file."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor


def _try_lock(path: Path, flags: int = 0) -> int | None:
    """Open and lock a file; None where another process holds it or it is not there (any more)."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | flags, 0o600)
    except FileNotFoundError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError as error:
        if error.errno in {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}:
            raise _NoLocksError(descriptor) from None
        os.close(descriptor)
        raise
    # Whoever held it before may have removed the file while we waited to open or lock it.
    with suppress(FileNotFoundError):
        if os.fstat(descriptor).st_ino == path.stat().st_ino:
            return descriptor
    os.close(descriptor)
    return None


@contextmanager
def lock(path: Path, deadline_s: float) -> Iterator[bool]:
    """Hold a lock file for the length of a ``with`` block, in which it is there.

    Parameters
    ----------
    path : Path
        The file, in a folder that is there.
    deadline_s : float
        Seconds to wait for whoever holds it.

    Yields
    ------
    bool
        Whether it is held: false when the deadline has passed, or where no file can be locked.
    """
    until = time.monotonic() + deadline_s
    try:
        descriptor = _try_lock(path, os.O_CREAT)
        while descriptor is None and time.monotonic() < until:
            time.sleep(RETRY_S)
            descriptor = _try_lock(path, os.O_CREAT)
    except _NoLocksError as without:
        os.close(without.descriptor)
        descriptor = None
    except OSError:  # a full disk, or another user's folder
        descriptor = None
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            with suppress(OSError):
                path.unlink()
            os.close(descriptor)


def hold(folder: Path) -> AbstractContextManager[bool]:
    """Hold a folder that is there for the length of a ``with`` block, if nobody else does.

    Yields as :func:`lock` does.
    """
    return lock(folder / LOCK_NAME, 0.0)


class OwnedFolder:
    """A folder that this process holds, removed at the latest when the process ends.

    Parameters
    ----------
    parent : Path
        Where it is made; the folder must be there.
    prefix, suffix : str
        Its name, around random digits.
    mode : int
        Its permissions, of which the umask takes some.

    Raises
    ------
    OSError
        If it cannot be made.
    """

    def __init__(self, parent: Path, prefix: str, suffix: str = "", mode: int = 0o777) -> None:
        for _ in range(MAX_TRIES):
            self.path = parent / f"{prefix}{secrets.token_hex(6)}{suffix}"
            self.path.mkdir(mode)
            steps.done("folder made")
            try:
                held = _try_lock(self.path / LOCK_NAME, os.O_CREAT)
            except _NoLocksError as without:
                held = without.descriptor
            except BaseException:
                with suppress(OSError):
                    self.path.rmdir()
                raise
            if held is not None:
                break  # else another process removed the folder before our lock
        else:
            raise refused(parent, errno.EBUSY, "another process removes what is made there")
        steps.done("folder locked")
        self._finalizer = weakref.finalize(self, _give_up, self.path, held, os.getpid())

    def remove(self) -> None:
        """Remove the folder with all that is in it, and give up the lock."""
        self._finalizer()


def _give_up(path: Path, descriptor: int, owner: int) -> None:
    """Remove a folder, unless a fork of the process that made it ends."""
    if owner == os.getpid():
        remove(path)
        os.close(descriptor)


def remove(folder: Path) -> None:
    """Remove a folder as far as possible, its lock file last."""
    until = time.monotonic() + REMOVE_DEADLINE_S
    while True:
        with suppress(OSError):
            for entry in os.scandir(folder):
                if entry.is_dir(follow_symlinks=False):
                    shutil.rmtree(entry.path, ignore_errors=True)
                elif entry.name != LOCK_NAME:
                    with suppress(OSError):
                        Path(entry.path).unlink()
            steps.done("folder emptied")
            if all(entry.name == LOCK_NAME for entry in folder.iterdir()):
                (folder / LOCK_NAME).unlink(missing_ok=True)
                folder.rmdir()
        if not folder.exists() or time.monotonic() > until:
            return
        time.sleep(RETRY_S)


def sweep(
    parent: Path, names: "re.Pattern[str]", rescue: Callable[[Path], None] = lambda _: None
) -> None:
    """Remove what ended processes of this user left in a folder.

    Parameters
    ----------
    parent : Path
        The folder.
    names : re.Pattern
        Names of folders that have an owner.
    rescue : callable taking Path
        Called with each before it is removed.
    """
    with suppress(OSError), os.scandir(parent) as entries:
        left = [Path(entry.path) for entry in entries if names.fullmatch(entry.name)]
        for folder in left:
            with suppress(OSError):
                _remove_abandoned(folder, rescue)


def _remove_abandoned(folder: Path, rescue: Callable[[Path], None]) -> None:
    about = folder.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid():
        return
    if not (folder / LOCK_NAME).exists():
        # Its maker locks it at once. What a killed process had started may have made it again.
        if time.time() - about.st_mtime > ORPHAN_S:
            shutil.rmtree(folder)
        else:
            folder.rmdir()  # fails unless empty
        return
    try:
        held = _try_lock(folder / LOCK_NAME)
    except _NoLocksError as without:
        os.close(without.descriptor)
        return
    if held is not None:
        try:
            rescue(folder)
            remove(folder)
        finally:
            os.close(held)


class TemporaryFolder(OwnedFolder):
    """A private folder for as long as it is needed; those of killed processes are removed first.

    Parameters
    ----------
    kind : str
        What it is for: the folder is called ``streamjoin-<kind>-<digits>``.
    parent : Path, optional
        Where; by default in the system's temporary folder.

    Raises
    ------
    StorageError
        If it cannot be made.
    """

    def __init__(self, kind: str, parent: Path | None = None) -> None:
        above = parent or Path(tempfile.gettempdir())
        sweep(above, _TEMPORARY)
        try:
            super().__init__(above, f"streamjoin-{kind}-", mode=0o700)
        except OSError as error:
            remedy = None if parent else "set TMPDIR to a folder that can be written"
            raise StorageError(above, error, remedy) from None

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, *_: object) -> None:
        self.remove()
