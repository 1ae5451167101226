"""Faults in the designs and, for each, the test that has to notice.

Run as a program (`python -m tests.hw.mutations NAME`) it runs that test in the faulty design.
"""

import multiprocessing
import os
import sys
from pathlib import Path

import pytest
from tests.hw.array_mutations import ARRAY_MUTATIONS
from tests.hw.forward_mutations import FORWARD_MUTATIONS
from tests.hw.group_mutations import GROUP_MUTATIONS
from tests.hw.hash_mutations import HASH_MUTATIONS
from tests.hw.index_mutations import INDEX_MUTATIONS
from tests.hw.index_plan_mutations import INDEX_PLAN_MUTATIONS
from tests.hw.index_side_mutations import INDEX_SIDE_MUTATIONS
from tests.hw.kind_mutations import KIND_MUTATIONS
from tests.hw.line_mutations import LINE_MUTATIONS
from tests.hw.part_mutations import PART_MUTATIONS
from tests.hw.point_mutations import POINT_MUTATIONS
from tests.hw.port_mutations import PORT_MUTATIONS
from tests.hw.reset_mutations import RESET_MUTATIONS
from tests.hw.sequencer_mutations import SEQUENCER_MUTATIONS
from tests.hw.shared_mutations import SHARED_MUTATIONS
from tests.hw.split_mutations import SPLIT_MUTATIONS
from tests.hw.split_way_mutations import SPLIT_WAY_MUTATIONS

from streamjoin_hw.formal.faults import applied

TABLES = (
    ARRAY_MUTATIONS,
    FORWARD_MUTATIONS,
    GROUP_MUTATIONS,
    HASH_MUTATIONS,
    INDEX_MUTATIONS,
    INDEX_PLAN_MUTATIONS,
    INDEX_SIDE_MUTATIONS,
    KIND_MUTATIONS,
    LINE_MUTATIONS,
    PART_MUTATIONS,
    POINT_MUTATIONS,
    PORT_MUTATIONS,
    RESET_MUTATIONS,
    SEQUENCER_MUTATIONS,
    SHARED_MUTATIONS,
    SPLIT_MUTATIONS,
    SPLIT_WAY_MUTATIONS,
)
MUTATIONS = {name: mutation for table in TABLES for name, mutation in table.items()}

PRELOADED = ["tests.hw.preloaded"]

# What is not needed takes longer than most of these tests: plugins, the other tests' fixtures,
# sources in the traceback, and garbage collected at the end.
OPTIONS = [
    *("-q", "--tb=native", "--noconftest", "--disable-plugin-autoload", "-p", "pytest_timeout"),
    *(f"-pno:{plugin}" for plugin in ("cacheprovider", "unraisableexception")),
]


def main(name: str) -> int:
    """Run a mutation's test in its design."""
    mutation = MUTATIONS[name]
    with applied(mutation.fault):
        return pytest.main([*OPTIONS, f"tests/hw/{mutation.test}"])


def _main_into(name: str, file: Path) -> None:
    """Run it in a process of its own; what it prints goes into a file."""
    printed = os.open(file, os.O_WRONLY | os.O_CREAT, 0o600)
    for standard in (1, 2):
        os.dup2(printed, standard)
    status = main(name)
    sys.stdout.flush()
    os._exit(status)


def run(name: str, file: Path, deadline_s: float) -> int | None:
    """Run a mutation's test in a process of its own; returns its status, None past the deadline."""
    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(PRELOADED)
    process = processes.Process(target=_main_into, args=(name, file))
    process.start()
    process.join(deadline_s)
    if process.is_alive():
        process.kill()
        process.join()
        return None
    return process.exitcode


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
