"""Every workload that an import writes is one that a comparison takes."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamjoin import run
from streamjoin.bench.workloads import read_workload
from streamjoin.engines import catalog
from streamjoin.engines.job import Job
from streamjoin.streams import read_streams
from streamjoin_common.errors import InputError
from streamjoin_common.language.arrivals import Arrivals
from streamjoin_common.language.predicates import Predicate
from streamjoin_datagen.imports.files import import_tables, tables_identity
from streamjoin_datagen.imports.readers import csv_table

SEED = int(os.environ.get("SEED", "1"))
CASES = 120

COLUMNS = {
    "whole": ["1", "2", "-7", "5000000000"],
    "real": ["1.5", "-0.25", "1e30", "nan"],
    "text": ["a", "b", "\u00e4", "x y"],
    "mixed": ["1", "2.5", "3", "4"],
}
WIDTHS = ["0", "10", "-5", "1_0", "007", "0.5", "1e3", "inf", "-inf", "nan", "1e400", " 1", "+1",
          ".5", str(1 << 70)]  # fmt: skip


def case(rng: np.random.Generator) -> tuple[dict[str, str], list[str], list[str]]:
    """Text of two CSV files, and strings of a predicate."""
    kinds = [str(rng.choice(list(COLUMNS))) for _ in range(2)]
    if rng.random() < 0.7:
        kinds[1] = kinds[0]
    timed = rng.random() < 0.5
    strings = {}
    for side, kind in zip("rs", kinds, strict=True):
        lines = [f"{side}k,ts" if timed else f"{side}k,v"]
        count = int(rng.integers(0, 5))
        lines += [f"{rng.choice(COLUMNS[kind])},{row}" for row in range(count)]
        strings[side] = "\n".join(lines) + "\n"
    on = [str(rng.choice(["rk=sk", "rk", "rk=sk,", "rk=sk=rk"], p=[0.7, 0.1, 0.1, 0.1]))]
    band = [f"rk=sk:{rng.choice(WIDTHS)}:{rng.choice(WIDTHS)}"]
    which = rng.integers(0, 3)
    return strings, on if which != 1 else [], band if which else []


def imported(folder: Path, strings: dict[str, str], on: list[str], band: list[str]) -> Path:
    paths = {side: folder / f"{side}.csv" for side in "rs"}
    for side, text in strings.items():
        paths[side].write_text(text)
    predicate = Predicate.parse(on, band)
    known = tables_identity("csv", paths, predicate, None)
    import_tables(known, paths, folder / "w", predicate, Arrivals(), reader=csv_table)
    return folder / "w"


@pytest.mark.filterwarnings("ignore:band .* is empty:streamjoin_common.errors.InputWarning")
def test_what_an_import_accepts_a_comparison_accepts(tmp_path: Path) -> None:
    rng = np.random.default_rng(SEED)
    accepted: list[dict[str, Any]] = []
    for number in range(CASES):
        (folder := tmp_path / f"seed{SEED}-case{number}").mkdir()
        strings, on, band = case(rng)
        try:
            made = imported(folder, strings, on, band)
        except InputError:
            continue
        workload = read_workload(made, ("oracle",), 1)
        arrivals = Arrivals.parse(window=workload.window)
        r, s = read_streams(workload.r, workload.s, workload.predicate, arrivals)
        workload.check_rows(r.rows, s.rows)
        oracle = catalog.get("oracle")
        job = run.complete(oracle, Job(r, s, workload.predicate, workload.window), {})
        workload.check_pairs(len(run.run(oracle, job).pairs))
        accepted.append(json.loads((made / "workload.json").read_text())["predicate"])
    assert len(accepted) >= CASES // 10
    assert {tuple(sorted(each)) for each in accepted} == {("on",), ("band",), ("band", "on")}


@pytest.mark.parametrize(
    ("band", "sentence"),
    [
        ("rk=sk:1_0:10", "the width '1_0' is not a number"),
        ("rk=sk:0.5:1", "the columns hold integers, so the widths must be integers too"),
    ],
)
def test_a_width_that_no_join_takes_is_refused_when_it_is_imported(
    band: str, sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=sentence):
        imported(tmp_path, {"r": "rk\n5\n", "s": "sk\n6\n"}, [], [band])
