"""How much memory can still be taken."""

from streamjoin_common.system import system_file

SHARE = 0.8
"""Share of the free memory that an input or a result may take."""

_MEMORY = "/proc/meminfo"
_GROUP = "/sys/fs/cgroup/memory."


def available_bytes() -> int | None:
    """Bytes that can still be taken without swapping: the system's, or the control group's."""
    room_bytes = []
    try:
        _, found, after = system_file(_MEMORY).partition(b"MemAvailable:")
        if found:
            room_bytes.append(int(after.split(maxsplit=1)[0]) * 1024)
    except OSError:
        pass
    try:
        limit = system_file(f"{_GROUP}max").strip()
        if limit != b"max":
            room_bytes.append(int(limit) - int(system_file(f"{_GROUP}current")))
    except (OSError, ValueError):
        pass
    return max(0, min(room_bytes)) if room_bytes else None
