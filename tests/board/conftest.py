"""Boards to test on: a Verilated design behind a modelled DMA, and a folder like a build's."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from memory_device import install
from modelled_device import ModelledBoard

from streamjoin.device.pynq import PynqDevice
from streamjoin_common.contract import DesignParams, manifest
from streamjoin_common.contract.presets import PRESETS

MODELS = json.loads(os.environ["STREAMJOIN_BOARD_MODELS"])
"""Folders of models by preset; tests/test_board.py builds them."""


@pytest.fixture
def bitstream(tmp_path: Path) -> Callable[[DesignParams], Path]:
    """Write what a build leaves, as far as the driver looks at it."""

    def write(params: DesignParams) -> Path:
        (tmp_path / "manifest.json").write_text(json.dumps(manifest(params)))
        path = tmp_path / "streamjoin.bit"
        path.write_bytes(b"stands for a bitstream")
        path.with_suffix(".hwh").write_bytes(b"stands for what Vivado says of it")
        return path

    return write


@pytest.fixture
def board() -> Iterator[Callable[..., ModelledBoard]]:
    """Make the modelled board that pynq finds."""
    made: list[ModelledBoard] = []

    def make(preset: str = "tiny", **options: Any) -> ModelledBoard:
        made.append(ModelledBoard(PRESETS[preset], Path(MODELS[preset]), **options))
        install(made[-1])
        return made[-1]

    yield make
    for each in made:
        assert not each.memories, "buffers were not freed"
        each.stop()


@pytest.fixture
def opened(
    board: Callable[..., ModelledBoard], bitstream: Callable[[DesignParams], Path]
) -> Iterator[Callable[..., tuple[ModelledBoard, PynqDevice]]]:
    """Open a design on a board made for it."""
    devices: list[PynqDevice] = []

    def make(
        preset: str = "tiny", options: dict[str, Any] | None = None, **how: Any
    ) -> tuple[ModelledBoard, PynqDevice]:
        on = board(preset, **(options or {}))
        devices.append(PynqDevice(bitstream(PRESETS[preset]), **how))
        return on, devices[-1]

    yield make
    for device in devices:
        device.close()
