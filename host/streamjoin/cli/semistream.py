"""The part of ``streamjoin advise`` that is about semi-stream joins."""

import argparse
from typing import Any

from streamjoin import run
from streamjoin.advise import thresholds
from streamjoin.advise.semistream import Forecast, Model, values_of
from streamjoin.cli.terminal import print_json, print_table, progress, say, si
from streamjoin.engines import catalog
from streamjoin.engines.job import Job
from streamjoin.engines.semi import cost
from streamjoin.errors import InputError
from streamjoin.relations import KINDS
from streamjoin.relations.catalog import store_class

COMPONENTS = {
    "h_s": "H_S",
    "h_r": "H_R",
    "filter": "filter",
    "queue": "queue",
    "buffers": "disk buffers",
    "free": "free",
}
"""Bytes by component, as the metrics and as the paper call them."""

ENGINES = (("meshjoin", False), ("ssbj", True))
AS_KNOB = "default that of knob "


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    group = parser.add_argument_group("semi-stream joins: R in a store, S arriving")
    group.add_argument("--rate", type=float, metavar="TUPLES_PER_S", help="memory for this rate")
    group.add_argument("--memory-kib", type=int, metavar="N", help="rate with this budget")
    group.add_argument("--store", choices=KINDS, help=f"where R lies; {AS_KNOB}store")
    group.add_argument("--r-bytes", type=int, metavar="N", help=f"of a row; {AS_KNOB}r_bytes")
    group.add_argument("--s-bytes", type=int, metavar="N", help=f"of a tuple; {AS_KNOB}s_bytes")
    group.add_argument(
        "--calibrate-stores",
        action="store_true",
        help="measure the cost model's constants here, some minutes",
    )


def metric_rows(metrics: Any) -> list[list[str]]:
    """What a semi-stream join's metrics say, as rows of a table."""
    held, budget = metrics["memory_bytes"], metrics["budget_bytes"]
    by_name = [
        f"{name} {held[key] / 2**10:,.0f}" for key, name in COMPONENTS.items() if held.get(key)
    ]
    given = f"{budget / 2**10:,.0f} KiB" if budget is not None else "what the rate needed"
    rows = [
        ["R in store", metrics["store"]],
        ["service rate", _service_rate(metrics["service_rate_tuples_per_s"])],
        ["served by the cache", f"{metrics['cache_share']:.1%} of the stream"],
        *_filter_row(metrics),
        ["memory budget", given],
        ["of it, KiB", ", ".join(by_name) or "nothing"],
        [
            "cycles through R",
            f"{metrics['cycles']:,}, of {metrics['partitions']:,} partitions each",
        ],
    ]
    if metrics["shed_tuples"]:
        rows.append(["shed", f"{metrics['shed_tuples']} tuples: the result is not complete"])
    return rows


def _filter_row(metrics: Any) -> list[list[str]]:
    share = metrics.get("filter", {}).get("share")
    return [["left by the filter", f"{share:.1%} of the stream"]] if share else []


def _service_rate(rate: float | None) -> str:
    return "too few cycles to say" if rate is None else si(rate, "tuples/s")


def asked(args: argparse.Namespace) -> bool:
    """Whether any of them was given."""
    if args.rate is not None or args.memory_kib is not None:
        return True
    for name, value in _knobs(args).items():
        if value is not None:
            flag = name.replace("_", "-")
            raise InputError(f"--{flag} is for a semi-stream join: add --rate or --memory-kib")
    return False


def _knobs(args: argparse.Namespace) -> dict[str, Any]:
    """Knobs of the engines that are flags here; None where one was not given."""
    return {"store": args.store, "r_bytes": args.r_bytes, "s_bytes": args.s_bytes}


def forecast(job: Job, args: argparse.Namespace) -> int:
    """Say what MESHJOIN and SSBJ need, or give."""
    if args.rate is not None and args.memory_kib is not None:
        raise InputError("give --rate or --memory-kib: each is the answer to the other")
    for flag, number in (("--rate", args.rate), ("--memory-kib", args.memory_kib)):
        if number is not None and not 0 < number < float("inf"):
            raise InputError(f"{flag} must be a number above 0, not {number}")
    given = {name: value for name, value in _knobs(args).items() if value is not None}
    for name, _ in ENGINES:
        knobs = run.complete(catalog.get(name), job, given).knobs  # refuses what the engine does
    store = str(knobs["store"])
    costs, path = cost.load(store)
    from streamjoin.engines.semi.layout import layout_bytes

    values, sizes = values_of(job), layout_bytes(int(knobs["r_bytes"]), int(knobs["s_bytes"]))
    relation_bytes = values.r_rows * sizes.row
    forecasts: dict[str, Forecast | None] = {}
    most_rows = max(1, values.r_rows)
    for name, caching in ENGINES:
        if args.memory_kib is not None:
            budget = args.memory_kib * 1024
            rows = min(cost.best_partition_rows(costs, budget, sizes.row), most_rows)
            forecasts[name] = Model(values, sizes, costs, rows, caching).rate_for(budget)
        else:
            rows = min(cost.best_partition_rows(costs, relation_bytes / 10, sizes.row), most_rows)
            forecasts[name] = Model(values, sizes, costs, rows, caching).memory_for(args.rate)
    plain = [_plain(name, each, relation_bytes) for name, each in forecasts.items()]
    if args.json:
        print_json({"store": store, "constants": str(path), "forecasts": plain})
        return 0
    headings = ["engine", "memory", "of R", "rate", "in the cache", "a loop"]
    rows_told = []
    for row in plain:
        if row["memory_bytes"] is None:
            none = "no memory is enough" if args.memory_kib is None else "too little for a chunk"
            rows_told.append([row["engine"], none, "-", "-", "-", "-"])
            continue
        rows_told.append(
            [
                row["engine"],
                f"{row['memory_bytes'] / 2**20:.2f} MiB",
                f"{row['share_of_r']:.1%}" if row["share_of_r"] is not None else "-",
                si(row["rate_tuples_per_s"], "tuples/s"),
                f"{row['cache_share']:.0%}",
                f"{row['loop_us']:.0f} us",
            ]
        )
    print_table(headings, rows_told, {*headings[1:]})
    if any((row.get("share_of_r") or 0) >= 1 for row in plain):
        say("R fits in less: an engine that takes it from a file, into memory, is faster")
    say(f"constants of store {store} from {path}")
    return 0


def calibrate(args: argparse.Namespace) -> int:
    """Measure the constants and keep them with their evidence."""
    from streamjoin.bench.calibrate_stores import calibrate as measure

    kinds = []
    for kind in KINDS:
        reason = store_class(kind).unwritable()
        if reason is None:
            kinds.append(kind)
        else:
            say(f"{kind} is skipped: {reason}")
    with progress("calibrating stores") as on_progress:
        document = measure(on_progress, kinds)
    path = cost.calibrated_path()
    thresholds.save(document, path)
    if args.json:
        print_json(document)
        return 0
    names = list(next(iter(document["costs"].values())))
    rows = [
        [kind, *(f"{constants[name]:.3g}" for name in names)]
        for kind, constants in document["costs"].items()
    ]
    print_table(["store", *(f"{name} ns" for name in names)], rows)
    say(f"kept with the evidence in {path}")
    return 0


def _plain(name: str, forecast: Forecast | None, relation_bytes: int) -> dict[str, Any]:
    if forecast is None:
        return {"engine": name, "memory_bytes": None}
    return {
        "engine": name,
        "memory_bytes": forecast.memory_bytes,
        "share_of_r": forecast.memory_bytes / relation_bytes if relation_bytes else None,
        "rate_tuples_per_s": forecast.rate,
        "cache_share": forecast.cache_share,
        "loop_us": forecast.loop_us,
    }
