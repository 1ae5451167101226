"""Records of experiments that are kept in the repository: written, shown and compared."""

from streamjoin.report.stored.distil import FOLDER, distilled, find, read, store

__all__ = ["FOLDER", "distilled", "find", "read", "store"]
