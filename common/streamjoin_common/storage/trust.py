"""Whose folders hold code that may be run: ours, root's and those of whoever installed this.

A cache holds pickles, compiled kernels and models, all of which are run. Whoever installed this
package has code running in our name already; anybody else's folder is refused, and so is one
that others can change.
"""

import functools
import grp
import os
import pwd
import stat
from pathlib import Path


def _installer() -> int:
    try:
        return Path(__file__).stat().st_uid
    except OSError:  # in a zip file, as Spark ships packages
        return os.geteuid()


def _trusted_users() -> set[int]:
    return {0, os.geteuid(), _installer()}


@functools.cache
def _is_private_group(group: int, trusted: frozenset[int]) -> bool:
    """Whether a group has no member but those who are trusted: a user's own group, say."""
    names = set()
    for user in trusted:
        try:
            names.add(pwd.getpwuid(user).pw_name)
        except KeyError:
            continue
    try:
        members = set(grp.getgrgid(group).gr_mem)
    except KeyError:
        return False
    members.update(entry.pw_name for entry in pwd.getpwall() if entry.pw_gid == group)
    return members <= names


def _who_else_writes(about: os.stat_result, *, sticky_counts: bool) -> str | None:
    """Say who else can change a file or folder: None, or the words for it."""
    trusted = frozenset(_trusted_users())
    if about.st_uid not in trusted:
        return f"belongs to user {_user(about.st_uid)}"
    mode = about.st_mode
    if sticky_counts and mode & stat.S_ISVTX:
        return None  # others can add to it, and not rename or remove what is ours
    if mode & stat.S_IWOTH:
        return "can be written by every user"
    if mode & stat.S_IWGRP and not _is_private_group(about.st_gid, trusted):
        return f"can be written by group {_group(about.st_gid)}"
    return None


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def _group(number: int) -> str:
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


def is_ours(about: os.stat_result) -> bool:
    """Whether its status shows that nobody else can change a file, or the entries of a folder."""
    return _who_else_writes(about, sticky_counts=False) is None


def complaint(folder: Path, top: Path) -> str | None:
    """Say why code in a folder must not be run.

    Parameters
    ----------
    folder : Path
        The folder, which need not be there yet.
    top : Path
        The folder above it at which to begin: who can change something above does not count.

    Returns
    -------
    str or None
        A path and what is wrong with it, None if nothing is.
    """
    for path in _chain(folder, top):
        try:
            about = path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return None  # not there yet: who can make it is known
        except PermissionError:
            return f"{path} cannot be looked into"
        if stat.S_ISLNK(about.st_mode):
            if about.st_uid not in _trusted_users():
                return f"{path} is a link that belongs to user {_user(about.st_uid)}"
            continue
        why = _who_else_writes(about, sticky_counts=path != folder)
        if why is not None:
            return f"{path} {why}"
    return None


def _chain(folder: Path, top: Path) -> list[Path]:
    """Every folder and link on the way, and every folder on the way to where it really is."""
    named = folder.absolute()
    real = Path(os.path.realpath(folder))
    ways = [path for path in (*reversed(named.parents), named) if path.is_relative_to(top)]
    if real != named and not real.is_relative_to(os.path.realpath(top)):
        return [*ways, *reversed(real.parents), real]
    if real != named:
        below = Path(os.path.realpath(top))
        ways += [path for path in (*reversed(real.parents), real) if path.is_relative_to(below)]
    return ways
