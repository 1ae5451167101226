"""Modules by the names that they had in the release before."""

import subprocess
import sys
import warnings
from importlib import import_module
from importlib.util import find_spec

import pytest

from streamjoin_common import moved


@pytest.mark.parametrize("old", sorted(moved.MOVED))
def test_a_moved_module_is_found_by_its_old_name_with_a_warning(old: str) -> None:
    with warnings.catch_warnings():  # what it lies in may have moved, too
        warnings.simplefilter("ignore", FutureWarning)
        import_module(old.rpartition(".")[0])
    sys.modules.pop(old, None)
    with pytest.warns(FutureWarning, match=f"{old} has moved: import {moved.MOVED[old]};"):
        module = import_module(old)
    assert module is import_module(moved.MOVED[old])


def test_old_names_give_the_same_objects() -> None:
    lines = (
        "from streamjoin_hw.contract import DesignParams",
        "from streamjoin_hw.contract.params import DesignParams as same",
        "import streamjoin_hw.contract, streamjoin_common.contract as new",
        "assert DesignParams is same is new.DesignParams is streamjoin_hw.contract.DesignParams",
        "import streamjoin_datagen.distributed.submit",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], check=False, timeout=60)
    assert done.returncode == 0


def test_a_name_that_never_was_is_not_found() -> None:
    assert find_spec("streamjoin_common.contract") is not None
    with pytest.raises(ModuleNotFoundError):
        import_module("streamjoin_hw.never")


def test_a_renamed_function_is_found_by_its_old_name_with_a_warning() -> None:
    from streamjoin_hw.flow import emit

    with pytest.warns(FutureWarning, match="verilog_text is now called verilog_source"):
        assert emit.verilog_text is emit.verilog_source
    with pytest.raises(AttributeError, match="has no attribute 'never'"):
        emit.never  # noqa: B018  (looking it up is the test)


def test_a_renamed_argument_is_taken_by_its_old_name_with_a_warning() -> None:
    from streamjoin_datagen.errors import SpecError
    from streamjoin_datagen.session import spark_session

    with (
        pytest.warns(FutureWarning, match="master= is now called spark_url="),
        pytest.raises(SpecError, match="not 'nowhere'"),
        spark_session(1, master="nowhere"),
    ):
        raise AssertionError("a session was started")


def test_what_is_run_by_its_old_name_says_so_once() -> None:
    command = [sys.executable, "-m", "streamjoin_datagen.distributed.submit", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr.count("has moved") == 1
    assert done.stderr.count("\n") == 1
