"""The tests of host and data generation are tested: each fault fails the test named for it."""

import importlib.util
from pathlib import Path

import pytest
from tests.hw.mutations import MUTATIONS as DESIGN_MUTATIONS
from tests.mutations import MUTATIONS, run

FAULTS = [
    *(("streamjoin_hw.", name, each.fault) for name, each in DESIGN_MUTATIONS.items()),
    *(("", name, each.fault) for name, each in MUTATIONS.items()),
]


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTATIONS)
def test_a_fault_in_the_software_fails_its_test(name: str) -> None:
    done = run(name)
    # 1: tests ran and failed. 4, 5 and others would be a test that was not found or did not run.
    assert done.returncode == pytest.ExitCode.TESTS_FAILED, done.stdout + done.stderr
    assert "1 failed" in done.stdout.rstrip().splitlines()[-1], done.stdout
    assert MUTATIONS[name].shows in done.stdout, done.stdout


def test_every_fault_still_fits_the_source_that_it_changes() -> None:
    for package, name, fault in FAULTS:
        spec = importlib.util.find_spec(package + fault.module)
        assert spec is not None, name
        assert spec.origin is not None, name
        fault.apply_to(Path(spec.origin).read_text(encoding="utf-8"))
