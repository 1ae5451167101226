"""What the system says of a file, as a sentence that names the file and what to do."""

import errno
import os
import re
from pathlib import Path

from streamjoin_common.errors import StreamJoinError

DISK_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
"""The run was right and the disk was not: exit status 1, others are 2."""

_REMEDIES = {
    errno.ENOSPC: "free some space, or name a path on another disk",
    errno.EDQUOT: "remove files of yours, or name a path on another disk",
    errno.EFBIG: "raise the limit on file sizes (ulimit -f)",
    errno.EIO: "the disk may be damaged: name a path on another disk",
    errno.EACCES: "name a path in a folder that can be written, or change its permissions",
    errno.EPERM: "name a path in a folder that can be written, or change its permissions",
    errno.EROFS: "the file system is read-only: name a path on another one",
    errno.ENOENT: "make its folder first",
    errno.ENOTDIR: "name a path whose folders are folders and not files",
    errno.EEXIST: "name a path that is not taken",
    errno.ENOTEMPTY: "name a path that is not taken",
    errno.EISDIR: "name a file in a folder that can be written",
    errno.ENAMETOOLONG: "choose a shorter name",
}
_USUAL_REMEDY = "name a path in a folder that can be written"


def system_reason(error: OSError) -> str:
    """Return the system's words for an error, without a library's words around them."""
    if isinstance(error, StorageError):
        return error.reason
    match = re.search(r"\[errno \d+\] (.*)", str(error))
    if match:  # Arrow's: "[Errno 28] Error writing bytes to file. Detail: [errno 28] No space ..."
        return match[1].rstrip(". ")
    return error.strerror or str(error)


class StorageError(StreamJoinError, OSError):
    """A file or folder cannot be written; one sentence names it and what to do.

    Parameters
    ----------
    path : Path
        What was to be written, as the user named it.
    error : OSError
        What the system said.
    remedy : str, optional
        What to do; by default what fits the error.
    """

    def __init__(self, path: Path, error: OSError, remedy: str | None = None) -> None:
        number = error.errno or 0
        self.path, self.reason = path, system_reason(error)
        self.remedy = remedy or _REMEDIES.get(number, _USUAL_REMEDY)
        super().__init__(number, self.reason, str(path))
        self.exit_status = 1 if number in DISK_ERRORS else 2

    def __str__(self) -> str:
        return f"{self.path} cannot be written ({self.reason}): {self.remedy}"

    def __reduce__(self) -> "tuple[type[StorageError], tuple[Path, OSError, str]]":
        return type(self), (self.path, OSError(self.errno, self.reason), self.remedy)


def refused(path: Path, number: int, remedy: str | None = None) -> StorageError:
    """Return the error of a path that is refused before the system is asked."""
    return StorageError(path, OSError(number, os.strerror(number)), remedy)


class CacheError(StreamJoinError, RuntimeError):
    """The cache cannot be used; the message names the variable that chooses it."""

    exit_status = 2
