"""That kernels are compiled is said when they are, and only then."""

import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from streamjoin import run
from streamjoin.cli.join import compiled
from streamjoin.engines import catalog, codes, compiling
from streamjoin.engines.job import Job
from streamjoin.engines.kernels import integers
from streamjoin.engines.kernels.flat import bands, joining, plans, sharing
from streamjoin.tuples import Stream
from streamjoin_common.language.predicates import Predicate
from streamjoin_common.language.windows import AllWindow, parse_window

JOIN = """
import sys
import numpy as np
from streamjoin.engines import compiling
from streamjoin.engines.kernels import jit

@jit.kernel
def double(value):
    return 2 * value

said = []
with compiling.reported(said.append):
    double(np.int64(21))
print(said)
"""


def test_nothing_is_said_where_the_cache_holds_every_kernel(tmp_path: Path) -> None:
    script = tmp_path / "join.py"
    script.write_text(JOIN)
    said = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=True,
            env={**__import__("os").environ, "STREAMJOIN_CACHE": str(tmp_path / "cache")},
        )  # fmt: skip
        said.append(done.stdout.strip())
    assert said == ["['compiling kernels, which are kept for later runs']", "[]"]


def test_long_compilations_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(0, 6)
    monkeypatch.setattr(compiling, "monotonic", lambda: float(next(clock)))
    said: list[str] = []
    with compiling.reported(said.append):
        for _ in range(4):
            compiling.begins()
    compiling.begins()  # of no preparation: nobody is told
    assert said == [
        "compiling kernels, which are kept for later runs",
        "compiling kernels: 3 so far, 12 s",
    ]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_run_on_columns_of_a_file_compiles_nothing_after_its_preparation(threads: int) -> None:
    keys, ts = np.arange(3000) % 50, np.arange(3000)
    for column in (keys, ts):
        column.flags.writeable = False  # as those that Arrow lends
    r = Stream({"key": keys}, ts, "r")
    engine = catalog.get("ibwj-flat")
    for terms in ({"on": "key"}, {"band": "key=key:1:1"}):
        job = Job(r, r, Predicate.parse(**terms), parse_window("count:10"), threads=threads)
        job = run.complete(engine, job, {})
        prepared = run.prepare(engine, job)
        kernels = (plans.plan, joining.join_alone, sharing.join_apart, bands.code_points)
        before = [list(kernel.signatures) for kernel in kernels]
        run.run(engine, job, prepared=prepared)
        assert [list(kernel.signatures) for kernel in kernels] == before


@pytest.mark.parametrize("kind", [np.int64, np.uint64])
@pytest.mark.parametrize("step", [1, 1 << 40], ids=["near", "far apart"])
def test_a_run_on_wide_keys_compiles_nothing_after_its_preparation(
    kind: type[np.integer[Any]], step: int
) -> None:
    keys = np.arange(codes.LONG, dtype=kind) * kind(step)
    keys.flags.writeable = False  # as those that Arrow lends
    r = Stream({"key": keys}, np.zeros(len(keys), dtype=np.int64), "r")
    engine = catalog.get("npj")
    job = run.complete(engine, Job(r, r, Predicate.parse(on="key"), AllWindow()), {})
    prepared = run.prepare(engine, job)
    kernels = (integers.cut_integers, integers.number_integers, integers.find_integers)
    before = [list(kernel.signatures) for kernel in kernels]
    run.run(engine, job, prepared=prepared)
    assert [list(kernel.signatures) for kernel in kernels] == before


def test_what_a_run_compiles_itself_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = catalog.get("kang")
    stream = Stream({"key": np.arange(3)}, np.arange(3), "r")
    job = Job(stream, stream, Predicate.parse("key"), parse_window("count:10"))
    job, said, join = run.complete(engine, job, {}), [], engine.run

    def joining_late(*given: Any) -> None:
        compiling.begins()
        join(*given)

    run.run(engine, job)  # what is not compiled yet
    assert run.run(engine, job, report=said.append).metrics["kernels_compiled"] == 0
    monkeypatch.setattr(engine, "run", joining_late)
    assert said == []
    assert run.run(engine, job, report=said.append).metrics["kernels_compiled"] == 1
    assert said == ["kernels were compiled during the run, within its time: the next run is faster"]


@pytest.mark.parametrize(
    ("kernels", "said"),
    [
        (0, ""),
        (1, "; 1 kernel was compiled in it, which is kept"),
        (2, "; 2 kernels were compiled in it, which are kept"),
    ],
)
def test_one_kernel_is_not_several(kernels: int, said: str) -> None:
    assert compiled(kernels) == said
