"""Every fault that was put into the design fails the test named for it."""

from pathlib import Path

import pytest
from tests.hw.mutations import MUTATIONS, TABLES, run

DEADLINE_S = 240


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_fault_in_the_design_fails_its_test(name: str, tmp_path: Path) -> None:
    file = tmp_path / "printed"
    status = run(name, file, DEADLINE_S)
    printed = file.read_text()
    # 1: tests ran and failed. 4, 5 and others would be a test that is missing or did not run.
    assert status == pytest.ExitCode.TESTS_FAILED, printed
    assert printed.rstrip().splitlines()[-1].startswith("1 failed in"), printed
    assert MUTATIONS[name].shows in printed, printed


def test_no_fault_takes_the_name_of_another() -> None:
    assert len(MUTATIONS) == sum(map(len, TABLES))
