"""The cache: who may write it, what is damaged, read-only and full."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from streamjoin_common.storage import CacheError, cache, steps, trust

ROOT = Path(__file__).resolve().parent.parent.parent
NOBODY = 65534
DEADLINE_S = 240


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, in folders that every user can look into."""
    for above in (tmp_path, *tmp_path.parents[:-1]):
        above.chmod(above.stat().st_mode | 0o011)
    chosen = tmp_path / "cache"
    monkeypatch.setenv("STREAMJOIN_CACHE", str(chosen))
    monkeypatch.setattr(cache, "_private", [])
    monkeypatch.setattr(cache, "_warned", set())
    return chosen


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda folder: folder.chmod(0o777), "can be written by every user"),
        (lambda folder: folder.chmod(0o1777), "can be written by every user"),
        (lambda folder: folder.parent.chmod(0o777), "can be written by every user"),
        (lambda folder: os.chown(folder, NOBODY, 0), "belongs to user nobody"),
        (lambda folder: os.chown(folder.parent, NOBODY, 0), "belongs to user nobody"),
        (lambda folder: (os.chown(folder, 0, 100), folder.chmod(0o775)), "can be written by group"),
    ],
)
def test_a_cache_that_others_can_write_is_refused_with_why_and_what_to_type(
    damage: Callable[[Path], None], why: str, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own.mkdir()
    assert cache.root() == own
    monkeypatch.setattr(trust, "_is_private_group", lambda group, _: group == 0)
    damage(own)
    with pytest.raises(CacheError) as caught:
        cache.root()
    assert caught.value.exit_status == 2
    assert why in str(caught.value)
    assert str(caught.value).startswith(f"the cache {own} is not used, as code in it is run and ")
    assert str(caught.value).endswith(": set STREAMJOIN_CACHE to a folder that you alone can write")


def test_a_cache_below_a_shared_sticky_folder_is_used(own: Path) -> None:
    own.parent.chmod(0o1777)
    assert cache.folder("kind") == own / "kind"
    assert own.stat().st_mode & 0o022 == 0


def test_a_link_of_another_user_on_the_way_is_refused(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own.mkdir()
    link = own.parent / "link"
    link.symlink_to(own)
    monkeypatch.setenv("STREAMJOIN_CACHE", str(link))
    assert cache.root() == link
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
    with pytest.raises(CacheError, match="is a link that belongs to user nobody"):
        cache.root()
    os.chown(link, 0, 0, follow_symlinks=False)
    own.chmod(0o777)
    with pytest.raises(CacheError, match=rf"{own} can be written by every user"):
        cache.root()


def test_the_default_cache_lies_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STREAMJOIN_CACHE", raising=False)
    assert cache.root() == Path(sys.prefix) / "share" / "streamjoin"


def fill(folder: Path) -> None:
    (folder / "file").write_text("whole")
    (folder / "deep").mkdir()
    (folder / "deep" / "code").write_text("code")


@pytest.mark.parametrize("mode", ["folder", "deep", "deep/code", "complete.json"])
def test_an_entry_that_others_can_write_is_made_anew(own: Path, mode: str) -> None:
    entry = cache.entry("kind", "name", fill)
    (entry / "file").write_text("whole")
    path = entry if mode == "folder" else entry / mode
    path.chmod(0o777)
    made: list[Path] = []
    assert cache.entry("kind", "name", lambda folder: (made.append(folder), fill(folder))) == entry
    assert made
    assert path.stat().st_mode & 0o022 == 0


def test_an_entry_is_made_once_and_others_can_read_it(own: Path) -> None:
    entry = cache.entry("kind", "name", fill)
    assert cache.entry("kind", "name", pytest.fail) == entry
    assert {path.stat().st_mode & 0o044 for path in entry.rglob("*")} == {0o044}
    assert entry.stat().st_mode & 0o077 == 0o055
    assert list(entry.parent.iterdir()) == [entry]


def test_a_file_is_read_again_only_when_it_has_changed(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    contents = cache._contents
    monkeypatch.setattr(cache, "_hashed", {})
    entry = cache.entry("kind", "name", fill)
    monkeypatch.setattr(
        cache, "_contents", lambda path: (read.append(path.name), contents(path))[1]
    )
    for _ in range(2):  # just written: another change might leave the times as they are
        assert cache.is_whole(entry)
    assert sorted(read) == ["code", "code", "file", "file"]
    monkeypatch.setattr(cache, "SETTLED_NS", -1)
    for _ in range(2):
        assert cache.is_whole(entry)
    assert sorted(read[4:]) == ["code", "file"]
    file, times = entry / "file", (entry / "file").stat()
    file.write_text("whale")
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert not cache.is_whole(entry)
    assert read[6:] == ["file"]
    draft = entry.parent / "draft"
    draft.write_text("whole")
    draft.replace(file)
    assert cache.is_whole(entry)


class KilledAt:
    """Kills this process at a step."""

    def __init__(self, number: int) -> None:
        self.left = number

    def __call__(self, _step: str) -> None:
        self.left -= 1
        if self.left < 0:
            os.kill(os.getpid(), signal.SIGKILL)


def test_an_entry_whose_maker_is_killed_is_made_by_the_next(own: Path) -> None:
    seen: list[str] = []
    steps.at_step, before = seen.append, steps.at_step
    try:
        cache.entry("kind", "other", fill)
    finally:
        steps.at_step = before
    for number in range(len(seen)):
        child = os.fork()
        if child == 0:
            steps.at_step = KilledAt(number)
            cache.entry("kind", f"name{number}", fill)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == signal.SIGKILL
        cache.entry("kind", f"name{number}", fill)
    cache.entry("kind", "last", fill)
    assert not list((own / "kind").glob(".*"))


def test_a_read_only_cache_is_read_and_the_rest_made_for_this_process(
    own: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As an install of root's is used by another user."""
    kept = cache.entry("kind", "kept", fill)

    def use() -> bool:
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        first = cache.entry("kind", "kept", pytest.fail) == kept
        made = cache.entry("kind", "new", fill)
        return (
            first
            and not made.is_relative_to(own)
            and cache.entry("kind", "new", pytest.fail) == made
            and not cache.write_checked(own / "k" / "x.nbc", b"x")
            and caplog.text.count("cannot be written") == 1
            and (cache.mirror("kind") / "kept" / "file").read_text() == "whole"
        )

    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = int(not use())
        finally:
            for folder in cache._private:
                folder.remove()
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0
    assert list(own.iterdir()) == [own / "kind"]


@pytest.fixture
def full_disk(own: Path) -> Iterator[Path]:
    """A cache on a file system of 64 KiB that is full."""
    own.mkdir()
    options = ["-t", "tmpfs", "-o", "size=64k,mode=755", "none", str(own)]
    subprocess.run(["mount", *options], check=True, timeout=60)
    try:
        with (own / "filler").open("wb") as filler:
            while True:
                try:
                    os.write(filler.fileno(), bytes(4096))
                except OSError:
                    break
        yield own
    finally:
        subprocess.run(["umount", str(own)], check=True, timeout=60)


def test_a_full_cache_is_gone_on_without(full_disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert not cache.write_checked(full_disk / "kernels" / "x.nbc", bytes(10_000))
    made = cache.entry("kind", "name", fill)
    assert (made / "deep" / "code").read_text() == "code"
    assert not made.is_relative_to(full_disk)
    assert cache.entry("kind", "name", pytest.fail) == made
    assert "No space left on device" in caplog.text
    assert f"the disk of the cache {full_disk} is full" in caplog.text


def test_a_maker_that_fails_for_another_reason_is_not_asked_twice(own: Path) -> None:
    calls: list[Path] = []

    def fail(folder: Path) -> None:
        calls.append(folder)
        raise RuntimeError("no tool")

    with pytest.raises(RuntimeError, match=r"^no tool$"):
        cache.entry("kind", "name", fail)
    assert len(calls) == 1
    assert list((own / "kind").iterdir()) == []


def test_a_checked_file_is_read_back_unless_one_bit_differs(own: Path) -> None:
    path = own / "kernels" / "file.nbc"
    assert cache.read_checked(path) is None
    assert cache.write_checked(path, b"machine code")
    assert cache.read_checked(path) == b"machine code"
    whole = path.read_bytes()
    for bit in range(8 * len(whole)):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        assert cache.read_checked(path) is None
    path.write_bytes(whole)
    path.chmod(0o666)
    assert cache.read_checked(path) is None


BECOME_NOBODY = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(8, 1, 0, 0, 0)  # keep capabilities: of them only to read all, as Python may be anywhere
os.setgroups([]), os.setgid(65534), os.setuid(65534)
words = (ctypes.c_uint32 * 6)(4, 4, 0, 0, 0, 0)
assert libc.capset((ctypes.c_uint32 * 2)(0x20080522, 0), words) == 0
os.environ["HOME"] = "/nonexistent"
"""
KERNEL = """
import numpy as np
from streamjoin.engines.kernels import jit
from streamjoin.engines.kernels.intra import radix
made = []
save = jit._Files.save
jit._Files.save = lambda self, key, payload: (made.append(key), save(self, key, payload))
out = np.zeros(4000, dtype=np.uint64)
ends = np.array([0, 2000])
radix.key_scatter(np.arange(2000, dtype=np.uint32), 0, 2000, 1, ends, out)
print(int(out.sum()) == sum((key << 32) + key for key in range(2000)), len(made))
"""


def run_kernel(cache_folder: Path, before: str = "") -> "subprocess.CompletedProcess[str]":
    env = {**os.environ, "STREAMJOIN_CACHE": str(cache_folder)}
    return subprocess.run(
        [sys.executable, "-c", before + KERNEL],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def test_kernel_files_with_flipped_bits_are_compiled_anew_and_installs_are_shared(
    own: Path,
) -> None:
    """One test, as each run compiles: fifty offsets are seen, and a run heals what is damaged."""
    done = run_kernel(own)
    assert done.stdout.split() == ["True", "1"], done.stderr
    (path,) = own.rglob("*.nb?")
    whole = path.read_bytes()
    for number in range(50):
        damaged = bytearray(whole)
        damaged[number * (len(whole) - 1) // 49] ^= 1 << number % 8
        path.write_bytes(damaged)
        assert cache.read_checked(path) is None
    done = run_kernel(own)
    assert done.stdout.split() == ["True", "1"], done.stderr
    assert cache.read_checked(path) is not None
    # Another user, without a home: reads what is there, and compiles what is not.
    filled = run_kernel(own, BECOME_NOBODY)
    assert (filled.stdout.split(), filled.stderr) == (["True", "0"], "")
    path.unlink()
    empty = run_kernel(own, BECOME_NOBODY)
    assert empty.stdout.split() == ["True", "1"], empty.stderr
    assert empty.stderr.count("STREAMJOIN_CACHE") == 1
