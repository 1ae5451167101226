"""That kernels are compiled is said when they are, and only then."""

import itertools
import subprocess
import sys
from pathlib import Path

import pytest

from streamjoin.engines import compiling

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
