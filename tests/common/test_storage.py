"""Writes that are killed at every step, disks that are full or read-only, folders of others."""

import errno
import os
import pickle
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pytest
from tests.common.children import in_a_child

from streamjoin_common import storage
from streamjoin_common.storage import StorageError, TemporaryFolder, atomic, owned, steps

NOBODY = 65534


def killed_at(number: int, work: Callable[[], object]) -> int:
    """Have a fork that kills itself at a step; return its status."""

    def dying() -> int:
        left = number

        def count(_step: str) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)

        steps.at_step = count
        work()
        return 0

    return in_a_child(dying)


def names_of_steps(work: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    seen: list[str] = []
    with monkeypatch.context() as patched:
        patched.setattr(steps, "at_step", seen.append)
        work()
    return seen


def write_file(target: Path, content: str) -> None:
    storage.write_text(target, content)


def write_folder(target: Path, content: str) -> None:
    with storage.new_folder(target) as folder:
        (folder / "deep").mkdir()
        for name in ("a", "deep/b"):
            (folder / name).write_text(content)


def read_back(target: Path) -> str | None:
    """What was written; fails if it is in part old and in part new."""
    if not target.is_dir():
        return target.read_text() if target.exists() else None
    (content,) = {(target / name).read_text() for name in ("a", "deep/b")}
    return content


@pytest.mark.parametrize("exchanges", [True, False])
@pytest.mark.parametrize("write", [write_file, write_folder])
@pytest.mark.parametrize("old", ["old", None])
def test_a_write_that_is_killed_at_any_step_leaves_the_old_or_the_new_whole(
    write: Callable[[Path, str], None],
    old: str | None,
    exchanges: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not exchanges:
        monkeypatch.setattr(atomic, "exchange", lambda _one, _other: False)
    target, trial = tmp_path / "target", tmp_path / "trial"
    trial.mkdir()
    if old:
        write(trial / "x", old)
    taken = names_of_steps(lambda: write(trial / "x", "new"), monkeypatch)
    assert {"folder made", "folder locked", "synced", "named", "folder emptied"} <= set(taken)
    assert ("moved aside" in taken) == (write is write_folder and bool(old) and not exchanges)
    storage.remove(trial)
    for number, step in enumerate(taken):
        if old:
            write(target, old)
        status = killed_at(number, lambda: write(target, "new"))
        assert status == -signal.SIGKILL, step
        storage.recover(target)
        after = "new" if "named" in taken[: number + 1] else old
        assert read_back(target) == after, step
        write(target, "next")
        assert read_back(target) == "next"
        assert [path.name for path in tmp_path.iterdir()] == ["target"], step
        storage.remove(target) if target.is_dir() else target.unlink()
    assert killed_at(len(taken), lambda: write(target, "new")) == 0


def test_of_two_files_each_is_old_or_new(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    targets = [tmp_path / "a" / "one", tmp_path / "b" / "two"]

    def write(content: str = "new") -> None:
        with storage.new_files(targets) as drafts:
            for draft in drafts:
                draft.write_text(content)

    for target in targets:
        target.parent.mkdir()
    taken = names_of_steps(write, monkeypatch)
    for number in range(len(taken)):
        write("old")
        assert killed_at(number, write) == -signal.SIGKILL
        named = taken[: number + 1].count("named")
        assert [target.read_text() for target in targets] == ["new"] * named + ["old"] * (2 - named)
    write("last")
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == targets


def test_a_folder_is_replaced_in_one_step_where_linux_can(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).touch()
    if sys.platform == "linux":
        assert atomic.exchange(tmp_path / "one", tmp_path / "other")
        assert (tmp_path / "one" / "other").exists()
    with pytest.raises(FileNotFoundError):
        atomic.exchange(tmp_path / "one", tmp_path / "none")


def test_a_draft_of_a_living_process_stays(tmp_path: Path) -> None:
    with storage.new_file(tmp_path / "one") as draft:
        draft.write_text("mine")
        assert in_a_child(lambda: write_file(tmp_path / "other", "x")) == 0
        write_file(tmp_path / "third", "x")
        assert draft.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "other", "third"]


def test_what_another_user_left_stays(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    for above in tmp_path.parents:
        if above.owner() == "root" and above != Path("/") and not above.stat().st_mode & 1:
            above.chmod(above.stat().st_mode | 0o011)
    assert killed_at(3, lambda: write_file(tmp_path / "x", "new")) == -signal.SIGKILL
    (left,) = tmp_path.glob(".streamjoin-*.draft")
    assert in_a_child(lambda: write_file(tmp_path / "y", "new"), user=NOBODY) == 0
    assert left.is_dir()
    os.chown(left, NOBODY, NOBODY)
    write_file(tmp_path / "z", "new")
    assert left.is_dir()
    os.chown(left, 0, 0)
    write_file(tmp_path / "z", "new")
    assert not left.exists()


def test_what_looks_like_ours_and_has_no_lock_stays_for_some_minutes(tmp_path: Path) -> None:
    """Java that a killed process had started may make its folder again, without a lock."""
    other = tmp_path / ".streamjoin-0123456789ab.draft"
    other.mkdir()
    (other / "file").touch()
    write_file(tmp_path / "x", "new")
    assert (other / "file").exists()
    os.utime(other, (0, time.time() - owned.ORPHAN_S - 1))
    write_file(tmp_path / "x", "newer")
    assert not other.exists()


def test_what_was_left_goes_where_nothing_is_written(tmp_path: Path) -> None:
    left = tmp_path / ".streamjoin-0123456789ab.draft"
    left.mkdir()
    (left / owned.LOCK_NAME).touch()
    (tmp_path / "target").mkdir()
    storage.recover(tmp_path / "target")
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


def test_temporary_folders_of_killed_processes_go_and_those_of_living_stay(tmp_path: Path) -> None:
    with TemporaryFolder("spark", tmp_path) as mine:
        assert mine.stat().st_mode & 0o777 == 0o700

        def left() -> None:
            folder = TemporaryFolder("tpch", tmp_path)
            (folder.path / "deep").mkdir()
            (folder.path / "deep" / "file").touch()
            os.kill(os.getpid(), signal.SIGKILL)

        assert in_a_child(left) == -signal.SIGKILL
        assert len(list(tmp_path.glob("streamjoin-tpch-*/deep/file"))) == 1
        with TemporaryFolder("flights", tmp_path) as other:
            assert sorted(tmp_path.iterdir()) == sorted([mine, other])
    assert list(tmp_path.iterdir()) == []


def test_a_fork_that_ends_leaves_the_folder_to_its_parent(tmp_path: Path) -> None:
    with TemporaryFolder("spark", tmp_path) as folder:
        code = "import sys; sys.exit(0)"
        assert subprocess.run([sys.executable, "-c", code], timeout=60, check=True).returncode == 0
        made = TemporaryFolder("own", tmp_path)
        assert in_a_child(made.remove) == 0
        assert made.path.exists()
        made.remove()
        assert folder.exists()


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file beyond a hundred bytes, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)


@pytest.mark.usefixtures("small_files")
@pytest.mark.parametrize("write", [write_file, write_folder])
def test_a_full_disk_is_a_sentence_and_leaves_the_old(
    write: Callable[[Path, str], None], tmp_path: Path
) -> None:
    target = tmp_path / "target"
    write(target, "old")
    with pytest.raises(StorageError) as caught:
        write(target, "new" * 10_000)
    assert str(caught.value).startswith(f"{target}")
    assert str(caught.value).endswith(
        "cannot be written (File too large): raise the limit on file sizes (ulimit -f)"
    )
    assert caught.value.exit_status == 1
    assert read_back(target) == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["target"]


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o555)

    def refused() -> bool:
        try:
            write_file(closed / "file", "x")
        except StorageError as error:
            return not (
                str(error)
                == f"{closed}/file cannot be written (Permission denied): name a path "
                "in a folder that can be written, or change its permissions"
                and error.exit_status == 2
                and error.errno == errno.EACCES
            )
        return True

    for above in (tmp_path, *tmp_path.parents[:-1]):
        above.chmod(above.stat().st_mode | 0o011)
    assert in_a_child(refused, user=NOBODY) == 0
    assert list(closed.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("none/file", "there is no folder"),
        ("file/x", "name a path whose folders are folders and not files"),
        ("folder", "name a file in a folder that can be written"),
        ("pipe", "it is a device or a pipe: name a file"),
        ("x" * 300, "choose a shorter name"),
    ],
)
def test_what_cannot_be_a_file_is_refused_by_name(name: str, sentence: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(StorageError) as caught:
        storage.write_text(tmp_path / name, "content")
    assert str(caught.value).startswith(f"{tmp_path / name} cannot be written (")
    assert sentence in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_folder_that_must_be_new_is_not_replaced(tmp_path: Path) -> None:
    target = tmp_path / "target"

    def overtaken() -> None:
        with storage.new_folder(target, replace=False):
            write_folder(target, "another's")

    with pytest.raises(StorageError, match="name a path that is not taken"):
        overtaken()
    assert read_back(target) == "another's"


def test_modes_are_as_the_umask_says(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_file(tmp_path / "file", "x")
        write_folder(tmp_path / "folder", "x")
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.rglob("*")}
    assert modes == {"file": 0o640, "folder": 0o750, "a": 0o640, "deep": 0o750, "b": 0o640}


def test_data_are_on_the_disk_before_they_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    monkeypatch.setattr(steps, "at_step", done.append)
    monkeypatch.setattr(atomic, "_sync", lambda path: done.append(path.name))
    write_folder(tmp_path / "folder", "x")
    named = done.index("named")
    assert sorted(done[2 : named - 1]) == ["a", "b", "deep", "folder"]
    assert done[named + 1] == tmp_path.name


def test_what_cannot_be_written_is_refused_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for target in (tmp_path, tmp_path / "new", tmp_path / "a" / "b" / "c.html", tmp_path / "file"):
        storage.check_writable(target)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file"]
    below = tmp_path / "file" / "a" / "b.html"
    with pytest.raises(StorageError, match=r"Not a directory\): name a path whose folders are"):
        storage.check_writable(below)


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="no /proc here")
def test_a_folder_that_takes_no_file_is_refused_even_to_root() -> None:
    for target in (Path("/proc/x"), Path("/proc/x/y.json")):
        with pytest.raises(StorageError, match=rf"^{target} cannot be written \(.*\): name a path"):
            storage.check_writable(target)


@pytest.mark.parametrize("flag", [0, os.ST_RDONLY])
def test_a_closed_or_read_only_folder_is_refused_by_its_reason(
    flag: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)  # to root everything else is open
    monkeypatch.setattr(os, "statvfs", lambda _: mock.Mock(f_flag=flag))
    reason = "Read-only file system" if flag else "Permission denied"
    with pytest.raises(StorageError, match=rf"^{tmp_path}/a/b cannot be written \({reason}\)"):
        storage.check_writable(tmp_path / "a" / "b")


def test_folders_above_files_that_were_not_written_go(tmp_path: Path) -> None:
    targets = [tmp_path / "a" / "b" / "one", tmp_path / "c" / "two"]

    def fail() -> None:
        with storage.new_files(targets, parents=True) as drafts:
            drafts[0].write_text("x")
            raise ValueError("half done")

    with pytest.raises(ValueError, match="half done"):
        fail()
    assert list(tmp_path.iterdir()) == []
    storage.write_text(targets[0], "x", parents=True)
    assert [path.name for path in tmp_path.rglob("*")] == ["a", "b", "one"]


def test_a_copy_onto_a_full_disk_names_the_target(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_text("x")

    def copy() -> None:
        with storage.new_folder(tmp_path / "copy") as folder:
            raise OSError(errno.ENOSPC, "No space left", str(source), None, str(folder / "source"))

    with pytest.raises(StorageError, match=rf"^{tmp_path}/copy/source cannot be written \(No sp"):
        copy()
    assert [path.name for path in tmp_path.iterdir()] == ["source"]
