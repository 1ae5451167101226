"""The suites that come with the project: every engine can do what it is listed for."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamjoin import run
from streamjoin.bench.suites import check_table
from streamjoin.bench.workloads import Comparison
from streamjoin.engines import catalog
from streamjoin.engines.job import Job
from streamjoin.tuples import Stream
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import parse_window

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "workloads"
PREDICATES = {
    "band": Predicate.parse(band=["x=a:10:10", "y=b:10:10"]),
    "equi": Predicate.parse(on="k"),
    "flights": Predicate.parse(on="k"),
}


def tables() -> list[Any]:
    found = []
    for path in sorted(FOLDER.glob("*.toml")):
        for table in tomllib.loads(path.read_text())["workload"]:
            name = table.get("name", table["kind"])
            found.append(pytest.param(path, table, id=f"{path.stem}-{name}"))
    return found


def one_tuple(source: str) -> Stream:
    whole, real = np.zeros(1, np.int32), np.zeros(1, np.float32)
    columns = {"x": whole, "a": whole, "k": whole, "y": real, "b": real}
    return Stream(columns, np.zeros(1, np.int64), source)


@pytest.mark.parametrize(("path", "table"), tables())
def test_every_listed_engine_can_do_the_workload(path: Path, table: dict[str, Any]) -> None:
    check_table(table, path.name)
    window = parse_window(table.get("window") or table.get("params", {}).get("window", "all"))
    predicate = PREDICATES[table["kind"]]
    for name in table["engines"]:
        job = Job(one_tuple("r"), one_tuple("s"), predicate, window)
        run.complete(catalog.get(name), job, table.get("knobs", {}).get(name, {}))


def test_there_is_a_suite_of_each_size() -> None:
    assert [path.stem for path in sorted(FOLDER.glob("*.toml"))] == ["large", "medium", "small"]
    assert Comparison.rounds == 5
