"""The tests of host and data generation are tested: each fault fails the test named for it."""

import pytest
from tests.mutations import MUTATIONS, run

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_fault_in_the_software_fails_its_test(name: str) -> None:
    done = run(name)
    # 1: tests ran and failed. 4, 5 and others would be a test that was not found or did not run.
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    assert "1 failed" in done.stdout.rstrip().splitlines()[-1], done.stdout
    assert MUTATIONS[name].shows in done.stdout, done.stdout
