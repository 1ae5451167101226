"""Runs of experiments that are killed, compared or damaged on purpose."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamjoin.bench import points

KILLED = """
import os, signal, sys
from streamjoin.bench import runner
from streamjoin.cli import main
measure, calls = runner._measure, []
def killed(*arguments):
    calls.append(arguments)
    if len(calls) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return measure(*arguments)
runner._measure = killed
main(sys.argv[1:])
"""

TIMELESS = {
    "workloads": ("name", "family", "settings", "kind", "predicate", "window", "how", "n_r", "n_s",
                  "pairs", "comparisons", "digest", "oracle", "arrival", "speedup", "seed"),
    "records": ("workload", "engine", "platform", "backend", "status", "checked", "order",
                "threads", "knobs", "rounds", "pairs", "digest", "structure_bytes", "family",
                "settings"),
}  # fmt: skip


def timeless(run: Any) -> dict[str, list[list[Any]]]:
    """What two runs of one experiment share."""
    return {
        key: [[each[name] for name in names] for each in run[key]]
        for key, names in TIMELESS.items()
    }


def changed(point: Path, change: Callable[[Any], None]) -> None:
    plain = json.loads(point.read_text())
    change(plain)
    point.write_text(json.dumps(plain))


def with_another_check(plain: Any) -> None:
    plain["point"]["experiment"] = "another"
    plain["check"] = points.check_of(plain)


def sibling(point: Path) -> Path:
    return next(other for other in sorted(point.parent.iterdir()) if other != point)
