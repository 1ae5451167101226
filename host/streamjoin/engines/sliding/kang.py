"""Kang's three-step procedure (scan, insert, expire), vectorised: handshake join, section 2.2.

Each arriving tuple scans the opposite window. A window is a range of its stream's columns:
inserting moves its end, expiring moves its start, nothing is copied. It runs in one thread.
"""

from typing import ClassVar

from streamjoin.engines.arrivals import batches
from streamjoin.engines.base import Capabilities, Engine, Knob, Report, without_numba
from streamjoin.engines.job import Job
from streamjoin.engines.sliding.scanning import SIMD, Ranges, Scanner, compile_scan
from streamjoin.metrics import Meter


class Kang(Engine):
    """Three-step procedure with a vectorised scan: the single-threaded baseline."""

    name: ClassVar[str] = "kang"
    capabilities: ClassVar[Capabilities] = Capabilities(
        predicates=frozenset({"equi", "band"}),
        windows=frozenset({"all", "tumbling", "count", "time"}),
        order="inner",
        platform="cpu",
        live=True,
    )
    knobs: ClassVar[tuple[Knob, ...]] = (
        Knob("batch", 1024, "Arrivals that are joined before results are emitted.", 1, 1 << 20),
        SIMD,
    )

    def unusable(self) -> str | None:
        """Say so where Numba has no wheel."""
        return without_numba()

    def prepare(self, job: Job, report: Report) -> None:
        """Compile the kernels, or load them from the cache."""
        compile_scan()

    def run(self, job: Job, prepared: None, meter: Meter) -> None:
        """Scan the opposite window for every tuple in arrival order."""
        with meter.phase("partition"):
            ranges = Ranges.of(job)
            scanner = Scanner(
                ranges.codes, ranges.codes, ranges.longest, simd=bool(job.knobs["simd"])
            )
        meter.holds(ranges.bytes)
        for r_rows, s_rows in batches(job, meter, int(job.knobs["batch"])):
            with meter.phase("build_or_sort"):
                scanner.begin(ranges.arrivals(r_rows, s_rows))
            while not scanner.done:
                with meter.phase("probe"):
                    _, r_matches, s_matches = scanner.more()
                meter.emit(r_matches, s_matches)
