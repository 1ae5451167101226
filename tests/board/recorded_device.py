"""Register traffic of one run, kept and played back: the driver without any model.

``python tests/board/recorded_device.py FOLDER``, in ``.venv-board``, plays it with what is
installed in FOLDER, as ``pip install`` on a board does it; nothing else of the project is there.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

RECORDING = Path(__file__).with_name("recording.json")
ABSENT = ("pyarrow", "numba", "llvmlite", "amaranth", "pyspark", "duckdb", "matplotlib")
"""What has no wheels for 32-bit ARM, or does not belong on a board."""


def play(folder: Path) -> None:
    """Run the driver on the recording; ends with an error where it does anything else."""
    sys.path[:0] = [str(folder), str(RECORDING.parent)]
    sys.modules.update(dict.fromkeys(ABSENT))  # their import fails
    import numpy as np
    import streams
    from memory_device import ACCESS_S, BoardError, MemoryDevice, install

    import streamjoin
    from streamjoin.device import pynq as driver
    from streamjoin_common.contract import manifest
    from streamjoin_common.contract.presets import PRESETS

    assert Path(streamjoin.__file__).is_relative_to(folder)
    recording = json.loads(RECORDING.read_text())
    params = PRESETS[recording["preset"]]
    assert recording["digest"] == params.digest, "record it anew"
    log = iter(recording["log"])

    class RecordedBoard(MemoryDevice):
        def _next(self, kind: str, address: int) -> int:
            self.now_s += ACCESS_S
            for what, where, value in log:
                if what != "memory":
                    if (what, where) != (kind, address):
                        raise BoardError(f"{kind} at {address:#x}, recorded: {what} {where:#x}")
                    return int(value)
                data = np.frombuffer(bytes.fromhex(value), np.uint8)
                memory = self.memory_at(where)
                first = where - memory.address
                memory.dram[first : first + len(data)] = data
            raise BoardError("the recording is over")

        def read_registers(self, address: int, _bytes: int) -> bytes:
            return self._next("read", address).to_bytes(4, "little")

        def write_registers(self, address: int, data: Any) -> None:
            value = int.from_bytes(bytes(data), "little")
            if (recorded := self._next("write", address)) != value:
                raise BoardError(f"{value:#x} written at {address:#x}, recorded: {recorded:#x}")

    board = RecordedBoard(params, 26)
    install(board)
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "streamjoin.bit"
        path.write_bytes(b"")
        path.with_suffix(".hwh").write_bytes(b"")
        path.with_name("manifest.json").write_text(json.dumps(manifest(params)))
        with driver.PynqDevice(path, chunk_bytes=recording["chunk_bytes"]) as device:
            beats = streams.random_input(params, recording["tuples"], keys=5, seed=1)
            pairs = streams.check_exact(device, beats)
    assert next(log, None) is None
    assert not board.memories
    loaded = [name for name in ABSENT if sys.modules.get(name) is not None]
    assert not loaded, loaded
    sys.stdout.write(f"played {len(recording['log'])} accesses, {pairs} pairs\n")


if __name__ == "__main__":
    play(Path(sys.argv[1]).resolve())
