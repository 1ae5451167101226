"""Every table of the command line fits a screen of 80 columns, and one of 120."""

import argparse
import io
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.host import report_samples as samples

from streamjoin.bench.call_cases import CASES
from streamjoin.bench.cpu_fpga.contestants import CONTESTANTS
from streamjoin.bench.sustained import LOADS, Attempt, Loaded, Sustained
from streamjoin.cli import (
    OTHER_VERBS,
    OWN_VERBS,
    bench,
    compare,
    figures,
    main,
    rate,
    semistream,
)
from streamjoin.cli.benchmarks import calls, cpu_fpga, live
from streamjoin.engines import catalog
from streamjoin_common.screen import display_width, for_screen
from streamjoin_hw.cli import HardwareVerb, latency, scale, synth
from streamjoin_hw.cli import terminal as hw_terminal
from streamjoin_hw.studies.power import page as power_page

ROOT = Path(__file__).parents[2]
LONG = "uniform threads=2 window_tuples=65536"


@pytest.fixture(scope="module")
def workload(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small workload with long names."""
    folder = tmp_path_factory.mktemp("a-workload-whose-folder-has-a-long-name")
    rng = np.random.default_rng(4)
    for side in "rs":
        columns = {"account": rng.integers(0, 90, 400).astype(np.int32), "ts": np.arange(400) * 10}
        pq.write_table(pa.table(columns), folder / f"{side}.parquet")
    description = {
        "format": 1,
        "name": LONG,
        "kind": "equi",
        "r": {"path": "r.parquet", "rows": 400},
        "s": {"path": "s.parquet", "rows": 400},
        "predicate": {"on": ["account"]},
        "window": "tumbling:1ms",
    }
    (folder / "workload.json").write_text(json.dumps(description))
    return folder


def of_compare() -> None:
    records = [samples.record(workload=LONG), samples.fpga_record(workload=LONG)]
    figures.print_apart(samples.run(records, [samples.workload(LONG)]), compare._print)


def of_bench() -> None:
    both = [samples.record(engine, workload=LONG) for engine in ("ibwj-bptree", "ibwj-pim")]
    run = samples.run(both, [samples.workload(LONG)])
    at = [{"point": LONG, "over": LONG, "ratio": 1.5}] * 4
    claim = {"text": "as was written " * 20, "published": 2.0, "of": "throughput", "by": "median"}
    claim |= {"here": 1.5, "min": 1.5, "max": 1.5, "points": at}
    run["experiment"] = {"baseline": "ibwj-bptree", "claims": [claim]}
    bench._print(run)


def of_calls() -> None:
    names = ("auto", "npj", "prj", "duckdb", "polars", "pyarrow")
    systems = {name: {"cpu_s": 0.1234} for name in names}
    calls._print(
        [{"case": max(CASES["quick"], key=len), "systems": systems}],
        {"size": "quick", "threads": 1, "rounds": 3, "order_seed": 3},
    )


def of_live() -> None:
    times = {"p50": 12345.0, "p99": 12345.0, "p99.9": 12345.0, "max": 12345.0}
    case = {
        "predicate": "equality and band",
        "tuples": 10_000,
        "tuples_per_s": 1.234e7,
        "cpu_us": times,
        "wall_us": times,
    }
    live._print([case] * 3, 5, 2)


def of_cpu_fpga() -> None:
    quantiles = {"p50": 12_345.0, "p99": 123_456.0}
    point = {
        "query": "equality",
        "window": 65_536,
        "who": max((c.name for c in CONTESTANTS), key=len),
    }
    point |= {"rate_tuples_per_s": 1.234e7, "is_fpga": True, "joules_per_million": 0.1234}
    point |= {"latency_us": {f"{load:.0%}": quantiles for load in LOADS}}
    point["transfer"] = {"rate_tuples_per_s": 1.234e7, "added_us": 40.0}
    cpu_fpga._print([point])


def of_rate() -> None:
    attempt = Attempt(1.5e6, 0.7, 0.1, 120.0, True)
    rate._print([Sustained("fpga-splitjoin-hash", 2, 5e6, (attempt,) * 9)])
    latency = {"p50": 12_345.0, "p99": 123_456.0}
    loaded = tuple(Loaded(load, 1e6, latency, "arrival") for load in LOADS)
    rate._print([Sustained("fpga-splitjoin-hash", 2, 5e6, (attempt,) * 9, loaded, at_least=True)])


def of_hw_latency() -> None:
    row = dict.fromkeys(("first_match_cycles", "first_formula", "last_match_cycles"), 12_345)
    row |= {"cycles_per_tuple": 2056.125, "formula": 2056, "last_formula": 12_345, "cores": 1024}
    named = {**row, "variant": "splitjoin", "window": 65_536, "agree": "yes"}
    cells = [latency._cells(named)]
    hw_terminal.print_table(latency.COLUMNS, cells, {*latency.COLUMNS} - {"variant", "agree"})


def of_hw_rate() -> None:
    row = {"window": "65536", "keys": "zipf-both", "match rate": "0.25", "owed per tuple": "0.245"}
    row |= {"cycles per tuple": "12.345", "comparisons per cycle": "12345.6", "seed": "12345"}
    row |= {"verdict": "exact"}
    hw_terminal.print_table([*row], [[*row.values()]], {*row} - {"keys", "verdict"})


def of_hw_stored() -> None:
    folder = Path(__file__).parents[2] / "benchmarks" / "synth"
    parser = argparse.ArgumentParser()
    synth.configure(parser)
    given = {"preset": None, "param": []}
    synth.run(parser.parse_args(["--stored", str(folder)], argparse.Namespace(**given)))


def of_hw_synth() -> None:
    file = next((Path(__file__).parents[2] / "benchmarks" / "synth").glob("*.json"))
    hw_terminal.print_table(("measure", "value"), synth.rows(json.loads(file.read_text())))


def of_hw_scale() -> None:
    cells = ["1024", "123,456", "123,456", "1234", "123.4 %", "123.4", "12345", "a path " * 20]
    hw_terminal.print_table(scale.COLUMNS, [cells], scale.COLUMNS[:-1])


def of_hw_power() -> None:
    columns = power_page.COLUMNS
    hw_terminal.print_table(columns, [["123,456.7"] * len(columns)], columns, ("registers", "LUT"))


def of_stores() -> None:
    metrics = {
        "memory_bytes": dict.fromkeys(semistream.COMPONENTS, 10**9),
        "budget_bytes": 10**10,
        "store": "postgres",
        "service_rate_tuples_per_s": 1e6,
        "cache_share": 0.5,
        "cycles": 10**6,
        "partitions": 10**6,
        "shed_tuples": 10**6,
    }
    hw_terminal.print_table(["metric", "value"], semistream.metric_rows(metrics))


PRINTED: dict[str, Callable[[], object]] = {
    name: value for name, value in globals().items() if name.startswith("of_")
}
TYPED = {
    "engines": ["engines"],
    **{f"engines {name}": ["engines", name] for name in catalog.names()},
    "bench list": ["bench", "list"],
    "stats": ["stats", "DIR"],
    "advise": ["advise", "DIR"],
    "advise for a rate": ["advise", "DIR", "--rate", "1e6", "--store", "raw"],
    "join": ["join", "--engine", "kang", "--r", "DIR/r.parquet", "--s", "DIR/s.parquet"],
    "compare": ["compare", "DIR", "--engines", "npj", "--rounds", "1", "--out", "DIR-run"],
}
TYPED["join"] += ["--on", "account", "--arrival", "instant", "--verify"]


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("screen", [*PRINTED, *TYPED])
def test_no_table_is_wider_than_the_screen(
    screen: str,
    width: int,
    workload: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    if screen in PRINTED:
        PRINTED[screen]()
    else:
        assert main([word.replace("DIR", str(workload)) for word in TYPED[screen]]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 2
    assert max(map(display_width, lines)) <= width


ACTIONS = [name for name, *_ in HardwareVerb._ACTIONS]


@pytest.mark.parametrize("width", [80, 120])
def test_no_help_is_wider_than_the_screen(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    helps = [["--help"], *([verb, "--help"] for verb in {**OWN_VERBS, **OTHER_VERBS})]
    for words in [*helps, *(["hw", action, "--help"] for action in ACTIONS)]:
        with pytest.raises(SystemExit):
            main(words)
        lines = capsys.readouterr().out.splitlines()
        wide = [line for line in lines if display_width(line) > width]
        assert lines, words
        assert not wide, words
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert max(map(display_width, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize("verb", ["hw", "data", "join"])
def test_a_bare_verb_shows_its_help_and_says_what_is_needed(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match=r"^2$"):
        main([verb])
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith(f"usage: streamjoin {verb} ")
    assert lines[-1].startswith(f"streamjoin {verb}: ")
    assert lines[-1].endswith(" needed")


def test_sentences_fold_on_a_terminal_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    sentence = (
        "streamjoin: " + "some words, " * 10 + "/a/path/that/is/longer/than/the/screen/itself"
    )
    plain, terminal = io.StringIO(), io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    assert for_screen(sentence, plain) == sentence
    lines = for_screen(sentence, terminal).split("\n")
    assert " ".join(lines) == sentence
    assert max(map(len, lines[:-1])) <= 40
    assert for_screen("  short\n  kept", terminal) == "  short\n  kept"


def test_every_verb_that_prints_a_table_is_among_them(tmp_path: Path) -> None:
    sources = [path for folder in ("host/streamjoin/cli", "hw/streamjoin_hw/cli")
               for path in (Path(__file__).parents[2] / folder).glob("*.py")]  # fmt: skip
    printing = {path.stem for path in sources if "print_table(" in path.read_text()}
    known = {"terminal", "prove", "semistream"}  # the printer, names of proofs, of advise
    named = {*TYPED, *(name.removeprefix("of_").removeprefix("hw_") for name in PRINTED), *known}
    assert printing <= named
