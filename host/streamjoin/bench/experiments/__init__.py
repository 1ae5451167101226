"""Experiments as files: workloads, engines, what is swept, and what was published of it."""

from streamjoin.bench.experiments.changes import changed, definition
from streamjoin.bench.experiments.reading import (
    LIMITS,
    OTHERS,
    SIZES,
    Experiment,
    names,
    read,
    suite_text,
)
from streamjoin.bench.experiments.sweeps import Point

__all__ = [
    "LIMITS",
    "OTHERS",
    "SIZES",
    "Experiment",
    "Point",
    "changed",
    "definition",
    "names",
    "read",
    "suite_text",
]
