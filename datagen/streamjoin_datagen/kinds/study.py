"""Generators in the likeness of the IaWJ study's four real workloads (section 4.2.1).

What the study says of them is in each class; figures that it does not name are read off
the files that its authors published, and marked so. The rows themselves are random: only
these figures are the real data's.
"""

from typing import ClassVar

from streamjoin_datagen.spec import (
    MAX_RATE_PER_S,
    WorkloadSpec,
)

MAX_MS = 1 << 22
"""Maximum milliseconds of arrivals in a worker's table."""

MAX_KEYS = 1 << 24
"""Maximum keys of a domain: a worker holds a table of them."""

STUDY_WINDOW = "tumbling:1s"


class StudySpec(WorkloadSpec):
    """What the four have in common: keys ``k``, another column, pairs that can be counted."""

    counted_key: ClassVar[str | None] = "k"

    def _check_rates(self, *names: str, duration_ms: int) -> None:
        self._check_seed_and_window("all")
        self._check_count("duration_ms", 1, MAX_MS)
        for name in names:
            self._check_number(name, 0, MAX_RATE_PER_S / 1e3, above=True)
            self._check_rows(f"{name} * duration_ms", getattr(self, name) * duration_ms)

    @property
    def window_text(self) -> str:
        """The study joins within one second."""
        return STUDY_WINDOW
