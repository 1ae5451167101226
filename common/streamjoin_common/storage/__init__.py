"""The one package that gives files their names, reads ``STREAMJOIN_CACHE`` and locks.

Guarantees, against ``kill -9`` at any moment and, on a disk that keeps what it acknowledged,
against a loss of power:

- A file under its name is the old one or the new one, whole. Of several files that are written
  together (:func:`new_files`) each is; a kill between two renames leaves the first new and the
  second old.
- A folder under its name is the old one or the new one, whole. Where the file system cannot
  exchange two names (Linux can on ext4, XFS, Btrfs and tmpfs; NFS and macOS cannot), there is a
  moment without either name: a kill in it leaves the old folder in the draft beside, and the next
  writer, or :func:`recover`, gives it its name again.
- What a killed process leaves lies in folders named ``.streamjoin-*.draft`` beside the target and
  ``streamjoin-*`` in the temporary folder. The process that made one holds a lock in it; whoever
  writes there next removes those of the same user that nobody holds. On a file system without
  locks nothing is removed.
"""

from streamjoin_common.storage.atomic import (
    check_writable,
    is_draft,
    make_folder,
    new_file,
    new_files,
    new_folder,
    recover,
    tidy,
    without_drafts,
    write_text,
)
from streamjoin_common.storage.errors import CacheError, StorageError, system_reason
from streamjoin_common.storage.owned import TemporaryFolder, hold, lock, remove

__all__ = [
    "CacheError",
    "StorageError",
    "TemporaryFolder",
    "check_writable",
    "hold",
    "is_draft",
    "lock",
    "make_folder",
    "new_file",
    "new_files",
    "new_folder",
    "recover",
    "remove",
    "system_reason",
    "tidy",
    "without_drafts",
    "write_text",
]
