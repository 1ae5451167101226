"""Waveforms of one input, with a save file that opens the interesting signals in groups."""

import re
import tempfile
from pathlib import Path
from typing import Any

from streamjoin_hw.emit import OutputError
from streamjoin_hw.testing import Workload
from streamjoin_hw.walk.recording import Recording, record

MOST_TUPLES = 5000
"""Tuples of an input whose waveforms are still of use: about 50 MB."""


def record_waves(workload: Workload, file: Path, **pauses: Any) -> tuple[Recording, Path]:
    """Run one input and write its waveforms as a VCD, with a GTKWave save file beside it.

    Parameters
    ----------
    workload : Workload
        The input.
    file : Path
        The VCD; the save file has the ending ``.gtkw`` instead. Both appear whole or not at all.
    **pauses
        As for :func:`~streamjoin_hw.walk.recording.record`.

    Returns
    -------
    Recording, Path
        What happened, and the save file.

    Raises
    ------
    OutputError
        If a file cannot be written.
    RecordingError
        If the design does not end the input.
    """
    save = file.with_suffix(".gtkw")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{file.name}-", dir=file.parent) as scratch:
            made = Path(scratch) / "waves.vcd"
            recording = record(workload, waves=made, **pauses)
            made_save = made.with_suffix(".gtkw")
            # The save file names its dump; the two stay together wherever they are moved.
            text = re.sub(
                r"^\[dumpfile\].*$", f'[dumpfile] "{file.name}"', made_save.read_text(), flags=re.M
            )
            made_save.write_text(text)
            made.replace(file)
            made_save.replace(save)
    except OSError as error:
        raise OutputError(file, error, "name a file in a folder that can be written") from None
    return recording, save
