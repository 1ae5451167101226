"""Waveforms of one input, with a save file that opens the interesting signals in groups."""

import re
from pathlib import Path
from typing import Any

from streamjoin_common import storage
from streamjoin_hw.sim.testing import Workload
from streamjoin_hw.studies.walk.recording import Recording, record

MAX_WAVE_TUPLES = 5000
"""Maximum tuples of an input whose waveforms are recorded: about 50 MB."""


def record_waves(workload: Workload, file: Path, **pauses: Any) -> tuple[Recording, Path]:
    """Run one input and write its waveforms as a VCD, with a GTKWave save file beside it.

    Parameters
    ----------
    workload : Workload
        The input.
    file : Path
        The VCD; the save file has the ending ``.gtkw`` instead. Both appear whole or not at all.
    **pauses
        As for :func:`~streamjoin_hw.studies.walk.recording.record`.

    Returns
    -------
    Recording, Path
        What happened, and the save file.

    Raises
    ------
    StorageError
        If a file cannot be written.
    RecordingError
        If the design does not end the input.
    """
    save = file.with_suffix(".gtkw")
    with storage.new_files([file, save], parents=True) as (made, made_save):
        recording = record(workload, waves=made, **pauses)
        # The save file names its dump; the two stay together wherever they are moved.
        content = re.sub(
            r"^\[dumpfile\].*$", f'[dumpfile] "{file.name}"', made_save.read_text(), flags=re.M
        )
        made_save.write_text(content)
    return recording, save
