"""How much memory can still be taken."""

from pathlib import Path

SHARE = 0.8
"""Share of the free memory that an input or a result may take."""

_MEMORY = Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")


def available_bytes() -> int | None:
    """Bytes that can still be taken without swapping: the system's, or the control group's."""
    room_bytes = []
    try:
        for line in _MEMORY.read_text().splitlines():
            if line.startswith("MemAvailable:"):
                room_bytes.append(int(line.split()[1]) * 1024)
    except OSError:
        pass
    try:
        limit = (_GROUP / "memory.max").read_text().strip()
        if limit != "max":
            room_bytes.append(int(limit) - int((_GROUP / "memory.current").read_text()))
    except (OSError, ValueError):
        pass
    return max(0, min(room_bytes)) if room_bytes else None
