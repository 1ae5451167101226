"""Whole calls beside other systems: measured alike, and every result compared."""

import json
import re
from collections.abc import Iterator
from itertools import chain, combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamjoin.bench import calls, identity
from streamjoin.cli import main
from streamjoin.cli.benchmarks import calls as cli
from streamjoin.errors import MismatchError
from streamjoin.report.stored import others


@pytest.mark.parametrize("name", calls.CASES["quick"])
def test_all_systems_agree_on_every_case(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = calls.CASES["quick"][name]
    monkeypatch.setitem(calls.CASES["quick"], name, case._replace(quick=2000))
    result = calls.measure(name, "quick", rounds=1, threads=1)
    about = {"size": "quick", "threads": 1, "rounds": 1, "environment": {}}
    (path := tmp_path / "calls.json").write_text(json.dumps({**about, "cases": [result]}))
    assert len(others.read(path)["records"]) == len(result["systems"])
    assert set(result["systems"]) == {"auto", "npj", "prj", "duckdb", "polars", "pyarrow"}
    assert all(each["cpu_s"] > 0 for each in result["systems"].values())
    assert result["pairs"] > 0


@pytest.mark.parametrize("size", ["quick", "full"])
def test_a_case_is_called_by_the_tuples_that_it_joins(size: str) -> None:
    units = {"k": 1000, "M": 1_000_000}
    for name, case in calls.CASES[size].items():
        sides = case.make(np.random.default_rng(1), getattr(case, size) // 100)
        joined = {100 * len(columns["k"]) for columns in sides}
        counts = {int(n) * units[unit] for n, unit in re.findall(r"(\d+) ([kM])\b", name)}
        assert counts in (joined, set())
    unnumbered = [name for name in calls.CASES[size] if not re.search(r"\d", name)]
    taken = ["columns", "with keys"]
    assert unnumbered == [f"{each}, {kind}" for each in taken for kind in ("far apart", "strings")]


def test_full_names_are_those_of_earlier_records() -> None:
    page = (Path(__file__).parents[2] / "docs" / "benchmarks.md").read_text()
    table = page.partition("| case | `auto` |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| ([^|]*\w) \|", table, re.MULTILINE) == [*calls.CASES["full"]]


def test_a_system_with_another_result_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*_: object) -> pa.Table:
        row = np.zeros(1, dtype=np.uint32)
        return pa.table({"r_row": row, "s_row": row})

    monkeypatch.setattr(calls, "_polars", wrong)
    name = "10 k int32"
    case = calls.CASES["quick"][name]
    monkeypatch.setitem(calls.CASES["quick"], name, case._replace(quick=20))
    with pytest.raises(MismatchError, match=r"10 k int32: polars differs from auto: 1 pairs where"):
        calls.measure(name, "quick", rounds=1, threads=1)
    options = ["--size", "quick", "--rounds", "1", "--threads", "1"]
    monkeypatch.setattr("sys.argv", ["calls", name, *options])
    monkeypatch.setenv("POLARS_MAX_THREADS", "1")
    monkeypatch.setattr(pa, "set_cpu_count", lambda _: None)
    with pytest.raises(SystemExit, match="streamjoin: 10 k int32: polars differs from auto"):
        calls.main()


def test_no_system_always_runs_after_the_same_one() -> None:
    others = [each for count in range(4) for each in combinations(calls.OTHERS, count)]
    for names in ([*calls.OWN, *installed] for installed in others):
        for rounds in cli.ROUNDS.values():
            orders = calls.orders(names, rounds)
            assert orders == calls.orders(names, rounds)
            assert all(sorted(order) == sorted(names) for order in orders)
            turns = [*names, *chain.from_iterable(orders)]
            for name in names:
                before = {a for a, b in pairwise(turns[len(names) - 1 :]) if b == name}
                assert len(before - {name}) >= 2, (name, names, rounds)


def test_systems_are_measured_in_the_order_of_each_round(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[str] = []
    for_all = calls.systems(1)

    def noted(name: str, call: calls.Call) -> calls.Call:
        return lambda *given: (turns.append(name), call(*given))[1]

    monkeypatch.setattr(
        calls, "systems", lambda _: {name: noted(name, call) for name, call in for_all.items()}
    )
    name = "10 k int32"
    case = calls.CASES["quick"][name]
    monkeypatch.setitem(calls.CASES["quick"], name, case._replace(quick=20))
    calls.measure(name, "quick", rounds=3, threads=1)
    orders = calls.orders([*for_all], 3)
    assert turns == [*for_all, *chain.from_iterable(orders)]


def test_a_case_is_measured_once_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[list[str]] = []
    systems = {key: {"cpu_s": 0.25, "wall_s": 0.5} for key in (*calls.OWN, *calls.OTHERS)}

    def measured(cases: list[str], _settings: object) -> Iterator[dict[str, Any]]:
        asked.append(cases)
        for name in cases[: 4 if len(asked) == 1 else None]:
            yield {"case": name, "systems": systems}
        if len(asked) == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_measured", measured)
    command = ["bench", "calls", "--out", str(tmp_path / "run")]
    assert main(command) == 130
    assert main(command) == 0
    assert main(command) == 0
    names = [*calls.CASES["quick"]]
    assert asked == [names, names[4:], []]
    monkeypatch.setattr(identity, "sources", lambda: "others")
    assert main(command) == 0
    assert asked.pop() == names, "figures of other code are no figures of this one"
    said = capsys.readouterr()
    assert f"{len(names)} cases in" in said.err
    printed = " ".join(said.out.split())
    assert "250 ms" in printed
    assert "each in an order of its own (seed 3)" in printed
    assert main([*command, "--threads", "2"]) == 2
    assert "measured with other settings" in capsys.readouterr().err
    assert main([*command, "--threads", "2", "--force"]) == 0
    assert "500 ms" in capsys.readouterr().out
    (tmp_path / "run" / "calls.json").write_text("{")
    assert main(command) == 2
    (tmp_path / "run" / "calls.json").write_text("3")
    assert main(command) == 2
    assert "add --force to write new ones" in " ".join(capsys.readouterr().err.split())
