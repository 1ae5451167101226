"""Locks: waited for until a deadline, free when their process is killed."""

import os
import signal
import time
from pathlib import Path

from tests.common.children import in_a_child

from streamjoin_common import storage
from streamjoin_common.storage import owned


def test_a_lock_that_is_held_is_waited_for_until_the_deadline(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with storage.lock(path, 10) as held, storage.lock(path, 0.05) as twice:
        assert (held, twice) == (True, False)
    assert not path.exists()
    with storage.lock(path, 10) as again:
        assert again


def test_a_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    def die() -> None:
        with storage.lock(tmp_path / "lock", 1):
            os.kill(os.getpid(), signal.SIGKILL)

    assert in_a_child(die) == -signal.SIGKILL
    began = time.monotonic()
    with storage.lock(tmp_path / "lock", 60) as held:
        assert held
    assert time.monotonic() - began < 60


def test_only_one_of_many_is_in_a_lock(tmp_path: Path) -> None:
    """Every release removes the file: waiting processes must not lock different ones."""

    def work() -> None:
        for _ in range(20):
            with storage.lock(tmp_path / "lock", 60) as held:
                assert held
                (tmp_path / "inside").mkdir()  # fails if somebody is in
                (tmp_path / "inside").rmdir()

    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                work()
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
    assert owned.LOCK_NAME
