"""A workload, asked about with another window or predicate than its own."""

from collections.abc import Sequence
from dataclasses import replace

from streamjoin.api import as_window
from streamjoin.bench.workloads import Comparison
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import Window

Columns = str | Sequence[str]
"""One term, or several."""


def changed(
    workload: Comparison, on: Columns | None, band: Columns | None, window: Window | str | None
) -> Comparison:
    """Replace a workload's window and predicate where others are named."""
    if window:
        workload = replace(workload, window=as_window(window))
    if on or band:
        predicate = Predicate.parse(listed(on), listed(band))
        workload = replace(workload, predicate=predicate, expected=None)
    return workload


def listed(terms: Columns | None) -> list[str] | None:
    """Return terms as a list."""
    return [terms] if isinstance(terms, str) else None if terms is None else list(terms)
