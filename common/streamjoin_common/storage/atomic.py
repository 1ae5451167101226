"""Files and folders that appear whole or not at all; see the package for what is guaranteed."""

import ctypes
import errno
import functools
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from streamjoin_common.storage import steps
from streamjoin_common.storage.errors import DISK_ERRORS, StorageError, refused
from streamjoin_common.storage.owned import OwnedFolder, sweep

_DRAFT = re.compile(r"\.streamjoin-[0-9a-f]{12}\.draft")
_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2
_HERE = -100  # AT_FDCWD


def is_draft(name: str) -> bool:
    """Whether a file name is that of a draft, of a living process or of one that was killed."""
    return _DRAFT.fullmatch(name) is not None


def without_drafts(message: str) -> str:
    """Replace paths in drafts by those that their files were to have.

    Examples
    --------
    >>> without_drafts("out/.streamjoin-0123456789ab.draft/new/pairs/part-0 cannot be written")
    'out/pairs/part-0 cannot be written'
    """
    return re.sub(rf"{_DRAFT.pattern}/new/", "", message)


def check_writable(target: Path) -> None:
    """Refuse a file or folder that could not be written, before anything is computed.

    Neither it nor the folders above it need be there.

    Raises
    ------
    StorageError
        If the lowest folder above it that is there is none, or takes no file.
    """
    path = target.absolute()
    folder = next(each for each in (path, *path.parents) if os.path.lexists(each))
    if folder == path and not path.is_dir():
        folder = path.parent
    if not folder.is_dir():
        raise refused(target, errno.ENOTDIR)
    if not os.access(folder, os.W_OK | os.X_OK):
        read_only = os.statvfs(folder).f_flag & os.ST_RDONLY
        raise refused(target, errno.EROFS if read_only else errno.EACCES)
    try:  # root may write anywhere, but a file system as /proc takes nothing
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise StorageError(target, error, "name a path in a folder that can be written") from None


def write_text(target: Path, text: str, *, parents: bool = False) -> None:
    """Write a text file in UTF-8, whole or not at all.

    Parameters
    ----------
    target : Path
        The file.
    text : str
        Its content.
    parents : bool
        As for :func:`new_files`.

    Raises
    ------
    StorageError
        If it cannot be written.
    """
    with new_files([target], parents=parents) as (draft,):
        draft.write_text(text, encoding="utf-8")


@contextmanager
def new_file(target: Path, *, tidy: bool = True) -> Iterator[Path]:
    """Give a path to write to; at the end of the block the file there becomes ``target``.

    Parameters
    ----------
    target : Path
        The file; if the block writes none, there is none.
    tidy : bool
        Whether to remove first what killed processes left beside it: not where thousands of files
        are written to a folder that is itself a draft.

    Raises
    ------
    StorageError
        If it cannot be written.
    """
    with new_files([target], tidy=tidy) as drafts:
        yield drafts[0]


@contextmanager
def new_files(
    targets: list[Path], *, tidy: bool = True, parents: bool = False
) -> Iterator[list[Path]]:
    """Give a path of the same name to write to for each file; none appears before all are whole.

    Parameters
    ----------
    targets : list of Path
        The files.
    tidy : bool
        As for :func:`new_file`.
    parents : bool
        Whether to make folders above them that are not there; if the block fails they are removed.

    Raises
    ------
    StorageError
        If one cannot be written.
    """
    for target in targets:
        _check_file(target)
    above = [
        folder
        for target in targets
        for folder in target.absolute().parents
        if parents and not folder.exists()
    ]
    folders: dict[Path, OwnedFolder] = {}
    try:
        for target in targets if parents else ():
            make_folder(target.parent, named=target)
        for target in targets:
            if target.parent not in folders:
                folders[target.parent] = _draft(target, target.parent, tidy=tidy)
        drafts = [folders[target.parent].path / "new" / target.name for target in targets]
        with _explained(dict(zip(drafts, targets, strict=True))):
            yield drafts
            for draft in drafts:
                if draft.exists():
                    _sync(draft)
            steps.done("synced")
            for draft, target in zip(drafts, targets, strict=True):
                if draft.exists():
                    draft.replace(target)
                    steps.done("named")
            for folder in folders:
                _sync(folder)
    finally:
        for owned in folders.values():
            owned.remove()
        _remove_empty(above)


def _remove_empty(folders: list[Path]) -> None:
    """Remove folders that were made for something that was not written, the lowest first."""
    for folder in folders:
        with suppress(OSError):  # it holds something, or is not there
            folder.rmdir()


def _check_file(target: Path) -> None:
    """Refuse what must not be replaced by a file."""
    try:
        mode = target.stat().st_mode
    except OSError:
        return  # nothing there: if it cannot be written, the system says so
    if stat.S_ISDIR(mode):
        raise refused(target, errno.EISDIR)
    if not stat.S_ISREG(mode):
        raise refused(target, errno.EEXIST, "it is a device or a pipe: name a file")


def make_folder(folder: Path, *, named: Path | None = None) -> None:
    """Make a folder with those above it, where they are not there.

    Parameters
    ----------
    folder : Path
        The folder.
    named : Path, optional
        What the user named, if it is something in the folder: errors name it.

    Raises
    ------
    StorageError
        If that is not possible.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        remedy = "name a folder that can be made"
        if named is not None:
            remedy = "name a path in a folder that can be made"
        raise StorageError(named or folder, error, remedy) from None


@contextmanager
def new_folder(
    target: Path,
    *,
    keep: Callable[[Path], bool] = lambda _: False,
    replace: bool = True,
    empty: bool = True,
    durable: bool = True,
) -> Iterator[Path]:
    """Give an empty folder to write to; at the end of the block it becomes ``target``.

    If the block fails nothing is left behind, no folder above ``target`` that was not there
    either, and an earlier folder stays as it was.

    Parameters
    ----------
    target : Path
        The folder; those above it are made.
    keep : callable taking Path
        Says of a folder that has the name by then whether it stays.
    replace : bool
        Whether one that has the name by then may be replaced.
    empty : bool
        Whether one that is empty gets the name.
    durable : bool
        Whether to wait for the disk: not needed where what is damaged is made again.

    Raises
    ------
    StorageError
        If it cannot be written.
    """
    path = target.absolute()
    above = [folder for folder in path.parents if not folder.exists()]
    try:
        make_folder(path.parent, named=target)
        owned = _draft(target, path.parent)
        try:
            fresh = owned.path / "new" / path.name
            with _explained({fresh: target}):
                fresh.mkdir()
                yield fresh
                if empty or any(fresh.iterdir()):
                    _give_name(fresh, path, owned, keep=keep, replace=replace, durable=durable)
        finally:
            owned.remove()
    finally:
        if not path.exists():
            _remove_empty(above)


def _give_name(
    fresh: Path,
    target: Path,
    owned: OwnedFolder,
    *,
    keep: Callable[[Path], bool],
    replace: bool,
    durable: bool,
) -> None:
    for folder, _, _ in os.walk(fresh):  # what a worker left that was killed in the middle
        sweep(Path(folder), _DRAFT)
    if durable:
        _sync_tree(fresh)
    steps.done("synced")
    if not os.path.lexists(target) or not replace:
        fresh.rename(target)  # fails if there is something in the way
    elif keep(target):
        return
    elif not exchange(fresh, target):
        aside = owned.path / "old"
        aside.mkdir()
        target.rename(aside / target.name)
        steps.done("moved aside")
        try:
            fresh.rename(target)
        except BaseException:
            _rescue(owned.path)
            raise
    steps.done("named")
    if durable:
        _sync(target.parent)


def tidy(folder: Path) -> None:
    """Remove the drafts of killed processes; folders that they had moved aside get their names."""
    sweep(folder.absolute(), _DRAFT, _rescue)


def recover(target: Path) -> None:
    """Give a folder its name again that a killed process had moved aside to replace it.

    What else was left beside it is removed.
    """
    tidy(target.absolute().parent)


def _rescue(draft: Path) -> None:
    """Bring back what was moved aside, unless its name is taken."""
    aside = draft / "old"
    for old in aside.iterdir() if aside.is_dir() else ():
        target = draft.parent / old.name
        if not os.path.lexists(target):
            old.rename(target)


def _draft(target: Path, parent: Path, *, tidy: bool = True) -> OwnedFolder:
    if tidy:
        sweep(parent, _DRAFT, _rescue)
    try:
        owned = OwnedFolder(parent, ".streamjoin-", ".draft")
    except FileNotFoundError as error:
        raise StorageError(target, error, f"there is no folder {parent}") from None
    except OSError as error:
        raise StorageError(target, error) from None
    try:
        (owned.path / "new").mkdir()
    except OSError as error:
        owned.remove()
        raise StorageError(target, error) from None
    return owned


@contextmanager
def _explained(targets: dict[Path, Path]) -> Iterator[None]:
    """Turn what the system says of a draft, or of its disk, into a sentence on its target."""
    try:
        yield
    except OSError as error:
        remedy = error.remedy if isinstance(error, StorageError) else None
        # A copy names two files, and it is the second that cannot be written.
        files = f"{error.filename}'{error.filename2}" if error.filename else str(error)
        for draft, target in targets.items():
            named = re.search(rf"{re.escape(str(draft))}[^\s'\"]*", files)
            if named:
                meant = target / Path(named[0]).relative_to(draft)
                raise StorageError(meant, error, remedy) from error
        if targets and error.errno in DISK_ERRORS and not error.filename:
            raise StorageError(next(iter(targets.values())), error) from error
        raise


def _sync(path: Path) -> None:
    """Wait until the disk has a file, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in {errno.EINVAL, errno.ENOTSUP, errno.EROFS}:  # it has no such thing
            raise StorageError(path, error) from None
    finally:
        os.close(descriptor)


def _sync_tree(folder: Path) -> None:
    for parent, _, files in os.walk(folder, topdown=False):
        for name in files:
            path = Path(parent) / name
            if not path.is_symlink():
                _sync(path)
        _sync(Path(parent))


@functools.cache
def _renameat2() -> Callable[..., int] | None:
    try:
        function = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError):  # no Linux, or a C library before 2.28
        return None
    function.argtypes = [
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_int,
        ctypes.c_char_p,
        ctypes.c_uint,
    ]
    return function


def exchange(one: Path, other: Path) -> bool:
    """Exchange two names at once; false where the file system cannot.

    Raises
    ------
    OSError
        If it can and must not, for lack of permission say.
    """
    rename = _renameat2()
    if rename is None:
        return False
    if rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP}:
        return False
    raise OSError(number, os.strerror(number), str(one))
