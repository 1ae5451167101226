"""How much memory can still be taken."""

import pytest

from streamjoin_common import free_memory

MEMORY = b"MemTotal:  9000 kB\nMemFree:  100 kB\nMemAvailable:   3000 kB\nBuffers:  7 kB\n"


@pytest.mark.parametrize(
    ("files", "available"),
    [
        ({"meminfo": MEMORY}, 3000 * 1024),
        ({"meminfo": MEMORY, "memory.max": b"max\n", "memory.current": b"5\n"}, 3000 * 1024),
        ({"meminfo": MEMORY, "memory.max": b"5000\n", "memory.current": b"3800\n"}, 1200),
        ({"meminfo": MEMORY, "memory.max": b"5000\n", "memory.current": b"5001\n"}, 0),
        ({"memory.max": b"5000\n", "memory.current": b"3800\n"}, 1200),
        ({"meminfo": b"MemTotal: 9000 kB\n"}, None),
        ({}, None),
    ],
)
def test_free_memory_is_the_systems_or_the_control_groups(
    files: dict[str, bytes], available: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(path: str) -> bytes:
        name = path.rpartition("/")[2]
        if name not in files:
            raise FileNotFoundError(path)
        return files[name]

    monkeypatch.setattr(free_memory, "system_file", read)
    assert free_memory.available_bytes() == available
