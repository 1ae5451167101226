"""Rows of the page's tables, every cell as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from streamjoin.metrics import PHASES
from streamjoin.report import units
from streamjoin.report.charts.bars import PHASE_BARS, phase_shares
from streamjoin.report.records import PERCENTILES
from streamjoin.report.results import (
    ORIGINS,
    Clock,
    Result,
    Verdict,
    WorkloadResults,
    ranking_title,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

VERDICT_MARKS = {
    Verdict.AGREES: "✓ agrees",
    Verdict.CHECK: "○ is the check",
    Verdict.UNCHECKED: "○ not checked",
    Verdict.WRONG: "✗ wrong",
    Verdict.FAILED: "✗ failed",
}


@dataclass(frozen=True)
class EngineRow:
    """One engine in the main table; ``clock`` is what every figure in seconds depends on.

    ``spread`` is the slowest to the fastest round; ``remark`` says what else the clock's source
    says, and what in the row is a simulator's. ``values`` are the figures behind the columns from
    the throughput to the memory, by which a reader sorts; beside the slowest round's stands
    ``fastest_round``, None where there was one round only. ``call`` is the throughput of the whole
    call, ``throughput`` that of the algorithm's part.
    """

    name: str
    variant: str
    platform: str
    call: str
    call_value: float | None
    throughput: str
    spread: str
    latencies: tuple[str, ...]
    pairs: str
    mark: str
    verdict: str
    threads: str
    memory: str
    error: str
    clock: Clock | None
    remark: str
    values: tuple[float | None, ...]
    fastest_round: float | None

    @property
    def figures(self) -> tuple[str, ...]:
        """What stands in the columns of ``values``."""
        measured = (self.throughput, self.spread, *self.latencies)
        return (*measured, self.pairs, self.threads, self.memory)


def _spread_text(record: dict[str, Any], spread: dict[str, float] | None) -> str:
    """Slowest to fastest round, or that there was one only."""
    if not spread:
        return units.MISSING
    if record.get("rounds") == 1:
        return "one round"
    low, high = units.count(spread["min"]), units.count(spread["max"])
    return low if low == high else f"{low}{units.THIN}..{units.THIN}{high}"


def _clock_remark(result: Result) -> str:
    parts = [result.clock.remark] if result.clock and result.clock.remark else []
    if result.simulated:
        parts.append("threads and memory are the simulator's")
    return "; ".join(parts)


def engine_row(result: Result) -> EngineRow:
    """Return the main table's row for one result."""
    record = result.record
    spread = result.spread("throughput_tuples_per_s")
    latency = record.get("latency_us") or {}
    return EngineRow(
        name=result.name,
        variant=result.variant,
        platform=result.platform,
        call=units.count(result.call_throughput),
        call_value=result.call_throughput,
        throughput=units.count(result.throughput),
        spread=_spread_text(record, spread),
        latencies=tuple(units.microseconds(latency.get(name)) for name in PERCENTILES),
        pairs=units.exact(record.get("pairs")),
        mark=VERDICT_MARKS[result.verdict],
        verdict=result.verdict.name.lower(),
        threads=units.exact(record.get("threads")),
        memory=units.resident(record.get("peak_bytes")),
        error=result.error,
        clock=result.clock,
        remark=_clock_remark(result),
        values=(
            result.throughput,
            spread["min"] if spread else None,
            *(latency.get(name) for name in PERCENTILES),
            *(record.get(name) for name in ("pairs", "threads", "peak_bytes")),
        ),
        fastest_round=spread["max"] if spread and record.get("rounds") != 1 else None,
    )


@dataclass(frozen=True)
class EngineTable:
    """Results whose figures are of one kind: measured or simulated, latencies of one origin."""

    title: str
    latency: str
    throughput: str
    calls: bool
    rows: tuple[EngineRow, ...]


def engine_tables(results: Sequence[Result]) -> list[EngineTable]:
    """Return the main tables: measured results first, and those with latencies of one origin."""
    made = []
    for measured in (True, False):
        for origin, words in ORIGINS.items():
            mine = [r for r in results if r.measured == measured and r.latency_from == origin]
            if mine:
                several = any((r.record.get("rounds") or 0) > 1 for r in mine)
                made.append(
                    EngineTable(
                        title=ranking_title(mine),
                        latency=f"Latency of a match {words}",
                        throughput="median" if several else "one round",
                        calls=any(r.call_throughput for r in mine),
                        rows=tuple(engine_row(r) for r in mine),
                    )
                )
    return made


@dataclass(frozen=True)
class HardwareRow:
    """One hardware result: counted cycles, and seconds only beside their clock."""

    name: str
    backend: str
    knobs: str
    cycles: str
    cycles_per_tuple: str
    stalls: str
    backpressure: str
    time: str
    clock: Clock | None
    simulation: str
    verdict: str
    values: tuple[float | None, ...]


def _cycles_with_share(part: int | None, whole: int | None) -> str:
    if part is None:
        return units.MISSING
    share = f" ({units.percent(part / whole)})" if whole else ""
    return f"{units.exact(part)}{share}"


def _knobs(result: Result) -> str:
    """The design's knobs; without the clock where it has a column of its own."""
    hz = result.clock.hz if result.clock else None
    knobs = result.record.get("knobs") or {}
    return ", ".join(
        f"{name} {value}"
        for name, value in knobs.items()
        if not (name == "clock_mhz" and hz is not None and str(value) == f"{hz / 1e6:g}")
    )


def hardware_rows(results: Sequence[Result]) -> list[HardwareRow]:
    """Return a row for each result whose platform is an FPGA."""
    rows = []
    for result in results:
        if not result.is_fpga:
            continue
        record = result.record
        cycles, wall = record.get("cycles"), result.spread("wall_s")
        per_tuple = cycles / result.tuples if cycles is not None and result.tuples else None
        rows.append(
            HardwareRow(
                name=result.name,
                backend=record.get("backend") or units.MISSING,
                knobs=_knobs(result) or result.variant,
                cycles=units.exact(cycles),
                cycles_per_tuple=units.MISSING
                if per_tuple is None
                else units.significant(per_tuple),
                stalls=_cycles_with_share(record.get("input_stall_cycles"), cycles),
                backpressure=_cycles_with_share(record.get("results_backpressure_cycles"), cycles),
                time=units.seconds(cycles / result.clock.hz)
                if result.clock and cycles is not None
                else units.MISSING,
                clock=result.clock,
                simulation=units.seconds(wall["median"])
                if result.simulated and wall
                else units.MISSING,
                verdict=result.verdict.name.lower(),
                values=(
                    cycles,
                    per_tuple,
                    record.get("input_stall_cycles"),
                    record.get("results_backpressure_cycles"),
                    cycles / result.clock.hz if result.clock and cycles is not None else None,
                    wall["median"] if result.simulated and wall else None,
                ),
            )
        )
    return rows


@dataclass(frozen=True)
class PhaseRow:
    """One engine's phases, as text and as shares."""

    engine: str
    label: str
    cells: tuple[str, ...]
    values: tuple[float, ...]


def phase_table(results: Sequence[Result]) -> tuple[list[str], list[PhaseRow]]:
    """Return head and rows of the numbers behind the time breakdown, in ms and share."""
    head = [words for words, _ in PHASE_BARS.parts.values()] + ["sum"]
    rows = []
    for result in results:
        shares = phase_shares(result)
        if shares is None:
            continue
        cells = [
            f"{units.seconds((result.record['phases_ms'].get(phase) or 0) / 1000)}"
            f" ({units.percent(shares[phase])})"
            for phase in PHASES
        ]
        label = f"{result.label} (simulating)" if result.simulated else result.label
        whole = sum(shares.values())
        rows.append(
            PhaseRow(
                result.name,
                label,
                (*cells, units.percent(whole)),
                (*(shares[phase] for phase in PHASES), whole),
            )
        )
    return head, rows


@dataclass(frozen=True)
class ComparisonRow:
    """One engine on one workload across runs: medians, and their ratio to the first."""

    workload: str
    engine: str
    label: str
    cells: tuple[str, ...]
    values: tuple[float | None, ...]
    notes: tuple[str, ...]
    ratios: tuple[str, ...]
    bad: tuple[bool, ...]
    remark: str


def run_titles(runs: Sequence[dict[str, Any]]) -> list[str]:
    """Return the runs' titles, numbered where a title occurs twice."""
    titles = [str(run["title"]) for run in runs]
    return [
        f"{title} ({index + 1})" if titles.count(title) > 1 else title
        for index, title in enumerate(titles)
    ]


def _comparison_cell(result: Result | None) -> tuple[str, str, bool]:
    """Return text, note (what the figure depends on) and whether it must stand out."""
    if result is None:
        return units.MISSING, "", False
    if result.verdict is Verdict.FAILED:
        return "failed", "", True
    text = units.count(result.throughput)
    clock = f"at {result.clock.text}" if result.clock else ""
    if result.verdict is Verdict.WRONG:
        return f"wrong: {text}", clock, True
    unsure = result.verdict in {Verdict.UNCHECKED, Verdict.CHECK}
    word = result.verdict.value if unsure else ""
    return text, "; ".join(part for part in (word, clock) if part), False


def _input_of(workload: dict[str, Any]) -> tuple[Any, ...]:
    """What must be the same in two runs for their throughputs to be compared."""
    names = ("pairs", "digest", "n_r", "n_s", "arrival", "speedup")
    return tuple(workload.get(name) for name in names)


def comparison(groups: Sequence[Sequence[WorkloadResults]]) -> list[ComparisonRow]:
    """Set the median throughputs of several runs side by side.

    Parameters
    ----------
    groups : sequence of sequence of WorkloadResults
        One for each run, from :func:`streamjoin.report.results.group`.

    Returns
    -------
    list of ComparisonRow
        One for each workload and engine of any run. Ratios are to the first run that has a
        result, and only where the workload's pairs, digest and arrival are the same in both, and
        both figures were measured or come from the same clock.
    """
    rows_by_key: dict[tuple[str, str], list[tuple[dict[str, Any], Result] | None]] = {}
    for index, groups_of_run in enumerate(groups):
        for workload_results in groups_of_run:
            for result in workload_results.results:
                key = (str(workload_results.workload["name"]), result.label)
                columns = rows_by_key.setdefault(key, [None] * len(groups))
                columns[index] = (workload_results.workload, result)
    rows = []
    for (name, label), columns in rows_by_key.items():
        filled = [column for column in columns if column]
        same = len({_input_of(workload) for workload, _ in filled}) == 1
        sound = [
            r for _, r in filled if not r.verdict.bad and r.throughput and r.throughput > 0
        ]  # fmt: skip
        base = sound[0] if sound else None
        cells = [_comparison_cell(column[1] if column else None) for column in columns]
        ratios = []
        for column in columns:
            other = column[1] if column else None
            if not same or other is None or base is None or other is base or other not in sound:
                ratios.append("")
                continue
            if (other.measured, other.clock) != (base.measured, base.clock):
                ratios.append("")
                continue
            ratio = (other.throughput or 0.0) / (base.throughput or 1.0)
            ratios.append(f"{units.TIMES} {units.significant(ratio)}")
        rows.append(
            ComparisonRow(
                workload=name,
                engine=filled[0][1].name,
                label=label,
                cells=tuple(cell[0] for cell in cells),
                values=tuple(column[1].throughput if column else None for column in columns),
                notes=tuple(cell[1] for cell in cells),
                ratios=tuple(ratios),
                bad=tuple(cell[2] for cell in cells),
                remark="" if same else "not the same input or arrival in all runs",
            )
        )
    return rows
