"""The comparison of CPU and FPGA as it is kept: its record, its picture, its page in Markdown."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from streamjoin.bench.cpu_fpga.costs import ASSUMED
from streamjoin.bench.cpu_fpga.inputs import QUERIES
from streamjoin.bench.cpu_fpga.verdict import (
    answer,
    best,
    latency_us,
    latency_with_transfer_us,
    with_transfer,
)
from streamjoin.report import units
from streamjoin.report.stored import chart
from streamjoin.report.stored.distil import rounded, text_of
from streamjoin_common import storage
from streamjoin_common.documents import read_json

NAME = "cpu-fpga"
"""Its records are called by it and by the size."""

KEPT = (
    *("query", "window", "who", "is_fpga", "cycles_per_tuple", "clock_mhz", "rate_tuples_per_s"),
    *("latency_us", "joules_per_million", "transfer", "area", "comparisons_per_cycle", "measured"),
)
"""What is stored of a point."""

HEADINGS = (
    "window",
    "who",
    "rate",
    "through the port",
    "p50, p99 at 10 %",
    "at 50 %",
    "at 90 %",
    "p99 at 50 % with the transfer",
    "comparisons a cycle",
    "LUT, block RAM",
    "J per million",
)

FREE_LOAD = 2.0
"""Maximum load of a machine that nobody else uses: a run of one thread and its surroundings."""

Record = dict[str, Any]


def store(run: Mapping[str, Any], folder: Path) -> Path:
    """Write the stored record of a run, ``cpu-fpga-SIZE.json``; return its path."""
    small = {
        "benchmark": NAME,
        "size": run["size"],
        "environment": run["environment"],
        "points": [
            {name: each[name] for name in KEPT if each.get(name) is not None}
            for each in run["points"]
        ],
    }
    path = folder / f"{NAME}-{run['size']}.json"
    storage.write_text(path, text_of(rounded(small)), parents=True)
    return path


def runs(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the stored records of a folder by ``cpu-fpga-SIZE``."""
    return {path.stem: read_json(path) for path in sorted(folder.glob(f"{NAME}-*.json"))}


def table_row(record: Record) -> list[str]:
    """Return the figures of a point, as pages show them under :data:`HEADINGS`."""
    area, scanned = record.get("area"), record.get("comparisons_per_cycle")
    joules, through = record.get("joules_per_million"), "transfer" in record
    return [
        f"{record['window']:,}",
        record["who"],
        units.rate(record["rate_tuples_per_s"]),
        units.rate(with_transfer(record)) if through else units.MISSING,
        *(_latencies(record, load) for load in record["latency_us"]),
        units.microseconds(latency_with_transfer_us(record)) if through else units.MISSING,
        units.MISSING if scanned is None else f"{scanned:,.0f}",
        f"{area['lut']:.0%}, {area['ramb18']:.0%}" if area else units.MISSING,
        units.MISSING if joules is None else units.significant(joules),
    ]


def _latencies(record: Record, load: str) -> str:
    both = (latency_us(record, load, name) for name in ("p50", "p99"))
    return ", ".join(units.microseconds(value) for value in both)


def panels(records: Sequence[Record]) -> list[chart.Panel]:
    """Return two panels for each query: rates and latencies of the best of each side."""
    made = []
    for query in (each.name for each in QUERIES):
        mine = [each for each in records if each["query"] == query]
        if not mine:
            continue
        windows = sorted({each["window"] for each in mine})
        values = [f"{window:,}" for window in windows]
        rates = _lines(mine, windows, {"": with_transfer})
        made.append(
            chart.Panel(
                query,
                "window, tuples",
                "sustained rate, tuples/s; designs through their port",
                values,
                rates,
                units.count,
            )
        )
        latencies = _lines(
            mine, windows, {"": latency_with_transfer_us, ", without transfer": latency_us}
        )
        made.append(
            chart.Panel(
                query,
                "window, tuples",
                "p99 latency at half the rate, from arrival",
                values,
                {who: [(at, us / 1e6) for at, us in line] for who, line in latencies.items()},
                units.seconds,
            )
        )
    return made


def _lines(
    records: Sequence[Record],
    windows: Sequence[int],
    figures: Mapping[str, Callable[[Record], float | None]],
) -> dict[str, list[tuple[int, float]]]:
    """Return by board, and for the CPU core, the figures of the fastest at each window."""
    lines: dict[str, list[tuple[int, float]]] = {}
    for side in dict.fromkeys(_side(each) for each in records):
        for words, figure in figures.items():
            if words and side == _side({"who": "CPU core"}):
                continue
            line = []
            for at, window in enumerate(windows):
                here = [e for e in records if e["window"] == window and _side(e) == side]
                fastest = here and best(here, of_fpga=here[0]["is_fpga"], figure=with_transfer)
                if fastest and (value := figure(fastest)):
                    line.append((at, value))
            if line:
                lines[side + words] = line
    return lines


def _side(record: Mapping[str, Any]) -> str:
    return str(record["who"]).partition(",")[0]


def svg(records: Sequence[Record]) -> str:
    """Draw the answer: rates and latencies by window, the best of a core and of each board."""
    return chart.draw("CPU core beside FPGA", panels(records))


def page(stored: Mapping[str, Mapping[str, Any]]) -> str:
    """Write the page of the stored records."""
    lines = [
        "# When does the FPGA win?",
        "",
        "Generated by `make docs` from the records in `benchmarks/results/`, which",
        "`streamjoin bench cpu-fpga --size quick --record benchmarks/results` makes;",
        "[what it measures](../benchmarks.md#cpu-beside-fpga). Designs are simulated cycle for "
        "cycle: none has run on a board.",
    ]
    if not stored:
        return "\n".join([*lines, "", "No record is stored."]) + "\n"
    for name, run in stored.items():
        points = run["points"]
        lines += ["", f"## {name}", "", answer(points), ""]
        lines += [f"![Rates and latencies by window](charts/{name}.svg)", "", _machine(run), ""]
        lines += [ASSUMED]
        for query in (each.name for each in QUERIES):
            mine = sorted(
                (each for each in points if each["query"] == query),
                key=lambda each: each["window"],
            )
            if not mine:
                continue
            lines += ["", f"### {query}, {run['size']}", ""]
            lines += ["| " + " | ".join(HEADINGS) + " |", "|" + " --- |" * len(HEADINGS)]
            lines += ["| " + " | ".join(map(units.spaced, table_row(each))) + " |" for each in mine]
    return "\n".join(lines) + "\n"


def _machine(run: Mapping[str, Any]) -> str:
    environment, measured = run["environment"], [each["measured"] for each in run["points"]]
    loads = sorted(each["load_average"] for each in measured if each["load_average"] is not None)
    median = loads[len(loads) // 2] if loads else 0.0
    load = f"; load {median:.1f}" if loads else ""
    if median > FREE_LOAD:
        load += (
            ": others used it too, so that the core's rates are too low and its latencies too high"
        )
    revisions = ", ".join(dict.fromkeys(each["revision"] for each in measured))
    took_s = sum(each["took_s"] for each in measured)
    return units.spaced(
        f"{environment.get('cpu')}, one thread of {environment.get('cores')} processors{load}; "
        f"revision {revisions or 'unknown'}, {measured[-1]['at'][:10]}; "
        f"{units.plural(len(run['points']), 'point')} in {units.seconds(took_s)}."
    )
