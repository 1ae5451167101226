"""The tests themselves are tested: each fault in the design fails the test named for it."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.hw.mutations import MUTATIONS

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 120


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_fault_in_the_design_fails_its_test(name: str) -> None:
    command = [sys.executable, "-m", "tests.hw.mutations", name]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )
    # 1: tests ran and failed. 4, 5 and others would be a test that was not found or did not run.
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    assert done.stdout.rstrip().splitlines()[-1].startswith("1 failed in"), done.stdout
    assert MUTATIONS[name].shows in done.stdout, done.stdout
