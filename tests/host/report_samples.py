"""Records for the report's tests: the form of a run, with figures that mean nothing."""

import copy
import functools

from streamjoin.report import render
from streamjoin.report.results import group

DIGEST = "0123456789abcdef"
ENGINES = (
    *("npj", "prj", "mway", "mpass", "shj-jm", "shj-jb", "pmj-jm", "pmj-jb", "kang"),
    *("handshake", "llhj", "splitjoin", "ibwj-bptree", "ibwj-chain", "ibwj-im", "ibwj-pim"),
)
PERCENTILES = ("p50", "p95", "p99", "max")
RATIOS = (1, 3, 9, 200)


def spread(median, low=0.9, high=1.2):
    return {"median": median, "min": median * low, "max": median * high}


def workload(name="band-uniform", **changes):
    return {
        "name": name,
        "kind": "band",
        "predicate": "x=a:10:10 and y=b:10:10",
        "window": "count:1024",
        "n_r": 20000,
        "n_s": 20000,
        "pairs": 163,
        "digest": DIGEST,
        "oracle": "oracle",
        "oracle_s": 2.1,
        "path": "data/band-uniform",
        **changes,
    }


def record(engine="kang", **changes):
    return {
        "workload": "band-uniform",
        "engine": engine,
        "platform": "cpu",
        "backend": None,
        "status": "ok",
        "error": None,
        "checked": True,
        "pairs": 163,
        "digest": DIGEST,
        "order": "inner",
        "threads": 2,
        "rounds": 5,
        "wall_s": spread(0.1),
        "cpu_s": spread(0.2),
        "throughput_tuples_per_s": spread(400_000.0),
        "latency_us": {"p50": 10.0, "p95": 20.0, "p99": 30.0, "max": 41.0},
        "latency_from": "run start",
        "progress": [[0.0, 0.0], [0.25, 20.1], [0.5, 40.0], [1.0, 90.0]],
        "phases_ms": {
            "wait": 20.0,
            "partition": 10.0,
            "build_or_sort": 30.0,
            "merge": 0.0,
            "probe": 120.0,
            "other": 18.0,
        },
        "peak_bytes": 1_000_000,
        "knobs": {},
        "cycles": None,
        "clock_hz": None,
        "clock_source": None,
        "results_backpressure_cycles": None,
        "input_stall_cycles": None,
        **changes,
    }


def fpga_record(**changes):
    return record(
        "fpga-handshake",
        **{
            "platform": "fpga",
            "backend": "model",
            "threads": 1,
            "rounds": 1,
            "wall_s": spread(2.3, 1.0, 1.0),
            "throughput_tuples_per_s": spread(12_500_000.0, 1.0, 1.0),
            "latency_us": {"p50": 1.2, "p95": 3.3, "p99": 8.1, "max": 12.0},
            "latency_from": "acceptance",
            "progress": [[0.0, 0.0], [0.5, 1.6], [1.0, 3.1]],
            "phases_ms": None,
            "peak_bytes": None,
            "knobs": {"cores": 16, "segment_tuples": 64, "lanes": 8},
            "cycles": 320_000,
            "clock_hz": 100_000_000,
            "clock_source": "assumed; simulated, not measured",
            "results_backpressure_cycles": 3200,
            "input_stall_cycles": 310_000,
            **changes,
        },
    )


def wrong_record(engine="ibwj-pim"):
    return record(
        engine,
        status="wrong",
        checked=False,
        error="1 pair is missing, the first (17, 401).",
        pairs=162,
        digest="fedcba9876543210",
        throughput_tuples_per_s=spread(1_200_000.0),
    )


def failed_record(engine="ibwj-im"):
    unmeasured = ("pairs", "digest", "wall_s", "cpu_s", "throughput_tuples_per_s", "latency_us")
    nothing = dict.fromkeys((*unmeasured, "phases_ms", "peak_bytes", "rounds"))
    return record(
        engine,
        status="failed",
        checked=False,
        error="The merge did not end within 60 s.",
        **nothing,
        progress=[],
    )


def run(records=None, workloads=None, **changes):
    """One run, a fresh copy each time; by default all that agree and every platform."""
    default = [record("kang"), record("splitjoin"), fpga_record()]
    return copy.deepcopy(
        {
            "format": 1,
            "title": "small",
            "created": "2026-11-20T23:30:00Z",
            "command": "streamjoin compare benchmarks/workloads/small.toml --out runs/small",
            "environment": {
                "cpu": "AMD EPYC",
                "cores": 2,
                "memory_bytes": 25_000_000_000,
                "system": "Linux 6.1",
                "python": "3.11.7",
                "java": "17.0.15",
                "packages": {"numpy": "2.4.6", "numba": "0.68.1", "pyspark": "4.0.0"},
                "revision": "abc1234",
                "load_average": 0.7,
            },
            "workloads": workloads if workloads is not None else [workload()],
            "records": records if records is not None else default,
            **changes,
        }
    )


def mixed_run(**changes):
    """Everything a chart may have to show: wrong, failed, unmeasured, twice the same engine."""
    records = [
        record("kang"),
        record("handshake", throughput_tuples_per_s=spread(110_000.0)),
        wrong_record(),
        failed_record(),
        record("duckdb", platform="yardstick", latency_us=None, progress=[], phases_ms=None),
        fpga_record(),
        fpga_record(knobs={"cores": 64, "segment_tuples": 16, "lanes": 8}, cycles=82_000),
        record("kang", workload="equi-zipf"),
        fpga_record(workload="equi-zipf", clock_hz=61e6, clock_source="post-route timing report"),
    ]
    workloads = [workload(), workload("equi-zipf", kind="equi", predicate="k", window="all")]
    return run(records, workloads, **changes)


def second_oracle_run(**changes):
    """A workload on which DuckDB gave the right result, with DuckDB itself among the engines."""
    large = workload("equi-large", predicate="k", n_r=2_000_000, oracle="duckdb")
    records = [record("kang"), fpga_record()]
    records += [record(engine, workload="equi-large") for engine in ("npj", "duckdb")]
    return run(records, [workload(), large], **changes)


def large_run():
    """Many engines over six decades, long names, long variants and a long clock source."""
    name = "a-name-with-every-parameter-in-it-uniform-20000-20000-w1024-seed42-and-no-spaces"
    records = [
        record(
            engine,
            throughput_tuples_per_s=spread(2000.0 * 2.1**place),
            latency_us={p: 0.1 * 2.6**place * k for p, k in zip(PERCENTILES, RATIOS, strict=True)},
            progress=[[i / 10, 2e4 / 2.1**place * (i / 10) ** 0.7] for i in range(11)],
        )
        for place, engine in enumerate(ENGINES)
    ]
    for cores, source in ((4, "assumed, not measured"), (16, "post-route timing report, " * 3)):
        knobs = {"cores": cores, "segment_tuples": 1024 // cores, "result_fifo_words": 16 * cores}
        records.append(fpga_record(knobs=knobs, clock_hz=61.3e6, clock_source=source.strip(", ")))
    records.append({**failed_record("spark"), "error": "x" * 300})
    return run([{**r, "workload": name} for r in records], [workload(name)], title=name)


def semi_stream_record(engine="ssbj", memory_kib=64, **changes):
    """A semi-stream join's record, as ``semi_stream`` of the metrics has it."""
    told = {
        "store": "raw",
        "service_rate_tuples_per_s": 1000.0 * memory_kib,
        "cycles": 12,
        "loops": 120,
        "partitions": 10,
        "loop_us": {"wait": 10.0, "cache": 20.0, "disk": 40.0, "expire": 5.0, "migrate": 5.0},
        "memory_bytes": {"h_s": 30_000, "h_r": 9_000, "queue": 1_000, "free": 5_000},
        "budget_bytes": 1024 * memory_kib,
        "cache_share": 0.6,
        "cost_model": {"loop_us": 100.0, "join_us": 70.0, "read_us": 100.0},
    }
    told["memory_bytes"]["buffers"] = 20_000
    if engine == "ssbj":
        told["cached"] = {"values": 5, "records": 6, "absent": 1}
    else:
        told |= {"cache_share": 0.0}
    settings = {"memory_kib": memory_kib}
    return record(
        engine,
        workload=f"memory_kib={memory_kib}",
        family="memory",
        settings=settings,
        semi_stream=told,
        **changes,
    )


def semi_stream_run(*values, arrival="instant"):
    """Both semi-stream joins at several settings of their memory."""
    values = values or (64, 1024)
    workloads = [
        workload(
            f"memory_kib={value}",
            family="memory",
            settings={"memory_kib": value},
            arrival=arrival,
            window="all",
        )
        for value in values
    ]
    origin = {"instant": "run start", "replay": "arrival"}[arrival]
    records = [
        semi_stream_record(engine, value, latency_from=origin)
        for value in values
        for engine in ("meshjoin", "ssbj")
    ]
    return run(records, workloads)


def results_of(run):
    """Return the results of a run's first workload."""
    return group(run)[0].results


@functools.cache
def page(*names):
    """The page of runs of this module, by name: drawing one takes up to a second."""
    return render([globals()[name]() for name in names])
