"""What a record says, decided once: its name, its verdict, its clock.

Tables and charts read :class:`Result`, so that a result that differs from the oracle is marked
the same way everywhere.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from streamjoin.report import units

if TYPE_CHECKING:
    from collections.abc import Iterable


class Verdict(Enum):
    """How a result stands against the right one."""

    AGREES = "agrees"
    CHECK = "is the check"
    UNCHECKED = "not checked"
    WRONG = "wrong"
    FAILED = "failed"

    @property
    def bad(self) -> bool:
        """Whether the row must stand out."""
        return self in (Verdict.WRONG, Verdict.FAILED)


@dataclass(frozen=True)
class Clock:
    """The clock that turned cycles into seconds, with its source."""

    hz: float
    source: str

    @property
    def assumed(self) -> bool:
        """Whether nobody measured it or placed and routed for it."""
        return "assum" in self.source.lower()

    @property
    def text(self) -> str:
        """The clock with its source: ``100 MHz assumed``, ``61 MHz, board``."""
        frequency = units.hertz(self.hz)
        if self.assumed:
            return f"{frequency} assumed"
        return f"{frequency}, {self._source}" if self._source else frequency

    @property
    def _source(self) -> str:
        """The source without the frequency, which some records repeat in it."""

        def same(match: re.Match[str]) -> str:
            return "" if abs(float(match[1]) * 1e6 - self.hz) < 1e-3 * self.hz else match[0]

        rest = re.sub(r"(?<![\w.])(\d+(?:\.\d+)?)\s*MHz\b", same, self.source)
        return re.sub(r"\s+", " ", rest).strip(" ,;")

    @property
    def remark(self) -> str:
        """What an assumed clock's source says besides: ``simulated, not measured``."""
        if not self.assumed:
            return ""
        rest = re.sub(r"\bassumed\b", "", self._source, count=1, flags=re.IGNORECASE)
        return re.sub(r"\s+", " ", rest).strip(" ,;")


@dataclass(frozen=True)
class Result:
    """One engine on one workload."""

    name: str
    variant: str
    index: int
    verdict: Verdict
    error: str
    clock: Clock | None
    tuples: int
    latency_from: str | None
    record: dict[str, Any]

    @property
    def label(self) -> str:
        """Name on this workload: the engine, and what tells it from the same engine's others."""
        return f"{self.name}, {self.variant}" if self.variant else self.name

    @property
    def platform(self) -> str:
        """Platform with its backend: ``fpga (model)``."""
        backend = self.record.get("backend")
        return f"{self.record['platform']} ({backend})" if backend else str(self.record["platform"])

    @property
    def simulated(self) -> bool:
        """Whether wall time, threads and memory are a simulator's, not the engine's."""
        return self.is_fpga and self.record.get("backend") == "model"

    @property
    def measured(self) -> bool:
        """Whether figures in seconds were measured: neither simulated nor at an assumed clock."""
        return not self.simulated and not (self.clock and self.clock.assumed)

    @property
    def ranking(self) -> str:
        """With which others its figures in seconds may be compared."""
        if self.measured:
            return "measured"
        return "simulated" if self.simulated else "at an assumed clock"

    @property
    def is_fpga(self) -> bool:
        """Whether cycles are the measure."""
        return bool(self.record["platform"] == "fpga")

    @property
    def tone(self) -> str:
        """Palette name of the platform."""
        return self.record["platform"] if self.record["platform"] in ("cpu", "fpga") else "other"

    @property
    def notes(self) -> tuple[tuple[str, str], ...]:
        """Lines that a chart writes under the name, each with its palette name.

        The clock has a line of its own, so that no long variant can push it out of sight.
        """
        lines = self.unclocked_notes
        if self.clock:
            lines += ((self.clock.text, "caution" if self.clock.assumed else "muted"),)
        return lines

    @property
    def unclocked_notes(self) -> tuple[tuple[str, str], ...]:
        """The same for a chart whose figures do not depend on the clock."""
        return ((self.variant, "muted"),) if self.variant else ()

    def spread(self, name: str) -> dict[str, float] | None:
        """Median, minimum and maximum of a measured quantity, None where absent."""
        return self.record.get(name)

    @property
    def throughput(self) -> float | None:
        """Median input tuples per second."""
        spread = self.spread("throughput_tuples_per_s")
        return spread["median"] if spread else None

    @property
    def call_spread(self) -> dict[str, float] | None:
        """Input tuples per second of whole calls: median, minimum, maximum; None where absent."""
        total = self.spread("total_s")
        if not total or not total["min"]:
            return None
        slowest, fastest = self.tuples / total["max"], self.tuples / total["min"]
        return {"median": self.tuples / total["median"], "min": slowest, "max": fastest}

    @property
    def call_throughput(self) -> float | None:
        """Median input tuples per second of whole calls."""
        spread = self.call_spread
        return spread["median"] if spread else None

    @property
    def latency_us(self) -> dict[str, float] | None:
        """All four latency figures, None where there was no match or no measurement."""
        latencies = self.record.get("latency_us") or {}
        wanted = ("p50", "p95", "p99", "max")
        complete = all(latencies.get(name) is not None for name in wanted)
        return {name: latencies[name] for name in wanted} if complete else None

    def absence(self, what: str) -> str:
        """Why a chart shows nothing for this result."""
        return "failed" if self.verdict is Verdict.FAILED else f"no {what} recorded"


@dataclass(frozen=True)
class WorkloadResults:
    """One workload with everything that ran on it, in the order of the records."""

    workload: dict[str, Any]
    results: tuple[Result, ...]

    @property
    def checker(self) -> str:
        """Who gave the right result: ``the oracle`` or ``DuckDB``."""
        return checker(self.workload)

    @property
    def replayed(self) -> bool:
        """Whether the input came at its arrival times."""
        return self.workload.get("arrival") == "replay"

    @property
    def fastest(self) -> Result | None:
        """The measured result of the highest throughput among those that agree.

        It is that of whole calls where all of them have it. None for a replay: its throughput
        is the rate at which tuples arrive.
        """
        return self._fastest(measured=True)

    @property
    def fastest_simulated(self) -> Result | None:
        """The same among simulated results, which are not ranked with measured ones."""
        return self._fastest(measured=False)

    def _fastest(self, *, measured: bool) -> Result | None:
        if self.replayed:
            return None
        return max(self._ranked(measured), key=lambda r: self.rate(r) or 0.0, default=None)

    def _ranked(self, measured: bool) -> list[Result]:
        agreeing = [r for r in self.results if r.verdict is Verdict.AGREES and r.throughput]
        return [r for r in agreeing if r.measured == measured]

    def ranks_calls(self, measured: bool) -> bool:
        """Whether all results of a ranking have whole calls."""
        ranked = self._ranked(measured)
        return bool(ranked) and all(r.call_throughput for r in ranked)

    def rate(self, result: Result) -> float | None:
        """Return the throughput by which a result is ranked."""
        by_calls = self.ranks_calls(result.measured)
        return result.call_throughput if by_calls else result.throughput


def ranking_title(results: Iterable[Result]) -> str:
    """Head a ranking: measured results, or what is not compared with them."""
    rankings = {result.ranking for result in results}
    if "measured" in rankings:
        return "Measured"
    others = [name for name in ("simulated", "at an assumed clock") if name in rankings]
    return f"{' or '.join(others).capitalize()}, ranked apart"


ORIGINS: dict[str | None, str] = {
    "run start": "from the run's start",
    "arrival": "from arrival",
    "file": "from the appearance of its file",
    "acceptance": "from acceptance by the hardware",
    None: "from a moment that was not recorded",
}
"""From when latencies are counted, in words; each origin has columns and charts of its own."""

CHECKERS = {"oracle": "the oracle", "duckdb": "DuckDB"}


def checker(workload: dict[str, Any]) -> str:
    """Return what to call the one that gave a workload's right result."""
    name = str(workload.get("oracle") or "oracle")
    return CHECKERS.get(name, name)


def _verdict(record: dict[str, Any], workload: dict[str, Any]) -> tuple[Verdict, str]:
    """Judge one record; what it claims is held against the workload's digest and pairs."""
    error = record.get("error") or ""
    if record["status"] == "failed":
        return Verdict.FAILED, error
    if record["status"] == "wrong":
        return Verdict.WRONG, error
    for name in ("pairs", "digest"):
        recorded, right = record.get(name), workload.get(name)
        if recorded is not None and right is not None and recorded != right:
            return Verdict.WRONG, f"Recorded as ok, but its {name} {recorded} is not {right}."
    if not record.get("checked"):
        return Verdict.UNCHECKED, error
    # An engine that gave the right result itself was held against nothing else.
    itself = record["engine"] == (workload.get("oracle") or "oracle")
    return (Verdict.CHECK if itself else Verdict.AGREES), error


def _latency_from(record: dict[str, Any], workload: dict[str, Any]) -> str | None:
    """From when latencies are counted, also where a record is older than the field."""
    if record.get("latency_from"):
        return str(record["latency_from"])
    if record["platform"] == "fpga":
        return "acceptance"
    replayed = "file" if record["platform"] == "spark" else "arrival"
    return {"instant": "run start", "replay": replayed}.get(str(workload.get("arrival")))


def _variants(records: list[dict[str, Any]]) -> list[str]:
    """Say for each record what tells it from others of its engine; empty where it ran once."""
    variants = []
    for record in records:
        rivals = [r for r in records if r["engine"] == record["engine"]]
        parts = []
        for name in ("backend", "threads", "order"):
            if len({str(r.get(name)) for r in rivals}) > 1 and record.get(name) is not None:
                parts.append(f"{name} {record[name]}")
        for name, value in (record.get("knobs") or {}).items():
            if len({str((r.get("knobs") or {}).get(name)) for r in rivals}) > 1:
                parts.append(f"{name} {value}")
        variants.append(", ".join(parts))
    # Labels that are still equal are numbered.
    keys = [(record["engine"], text) for record, text in zip(records, variants, strict=True)]
    times, seen = Counter(keys), Counter[tuple[str, str]]()
    for index, key in enumerate(keys):
        if times[key] > 1:
            seen[key] += 1
            variants[index] = f"{key[1]} #{seen[key]}".strip()
    return variants


def group(run: dict[str, Any]) -> list[WorkloadResults]:
    """Sort a checked run's records under its workloads, in the order of the file."""
    groups = []
    for workload in run["workloads"]:
        records = [r for r in run["records"] if r["workload"] == workload["name"]]
        results = []
        for index, (record, variant) in enumerate(zip(records, _variants(records), strict=True)):
            verdict, error = _verdict(record, workload)
            hz, source = record.get("clock_hz"), record.get("clock_source")
            clock = Clock(hz, source) if hz and source else None
            tuples = workload["n_r"] + workload["n_s"]
            origin = _latency_from(record, workload)
            name = record["engine"]
            results.append(
                Result(name, variant, index, verdict, error, clock, tuples, origin, record)
            )
        groups.append(WorkloadResults(workload, tuple(results)))
    return groups
