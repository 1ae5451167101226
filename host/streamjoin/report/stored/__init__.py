"""Records of experiments that are kept in the repository: written, shown and compared."""

from streamjoin.report.stored.distil import (
    FOLDER,
    check_right,
    distilled,
    find,
    read,
    store,
    wrong_results,
)

__all__ = ["FOLDER", "check_right", "distilled", "find", "read", "store", "wrong_results"]
