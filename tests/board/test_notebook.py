"""The board's notebook runs on the modelled board, is delivered by PYNQ, is kept without output."""

import json
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import nbformat
import pytest
from conftest import MODELS
from nbclient import NotebookClient
from recorded_device import ABSENT

from streamjoin_common.contract.presets import PRESETS

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = [ROOT / "notebooks" / "streamjoin_notebooks" / "streamjoin.ipynb"]
"""The others need no board: tests/test_sessions.py runs them."""

SETUP = """
import sys
sys.path[:0] = [{tests!r}]
sys.modules.update(dict.fromkeys({absent!r}))
from pathlib import Path
from memory_device import install
from modelled_device import ModelledBoard
from streamjoin_common.contract.presets import PRESETS
install(ModelledBoard(PRESETS[{preset!r}], Path({model!r})))
"""


def test_there_is_a_notebook() -> None:
    assert all(path.is_file() for path in NOTEBOOKS)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_kept_without_output(path: Path) -> None:
    for cell in json.loads(path.read_text())["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


@pytest.mark.filterwarnings("ignore")  # of the libraries that run notebooks
@pytest.mark.parametrize(
    "preset",
    ["tiny", *(pytest.param(each, marks=pytest.mark.slow) for each in ("tiny-split", "tiny-hash"))],
)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_on_the_board(path: Path, preset: str, bitstream: Any) -> None:
    book = nbformat.read(path, as_version=4)
    absent = tuple(name for name in ABSENT if name != "matplotlib")
    setup = SETUP.format(
        tests=str(Path(__file__).parent), absent=absent, preset=preset, model=MODELS[preset]
    )
    book.cells.insert(0, nbformat.v4.new_code_cell(setup))
    folder = bitstream(PRESETS[preset]).parent
    client = NotebookClient(book, timeout=120, resources={"metadata": {"path": str(folder)}})
    client.execute()
    outputs = [output for cell in book.cells for output in cell.get("outputs", ())]
    text = "".join(output.get("text", "") for output in outputs)
    assert "equal to the oracle" in text
    assert any("image/png" in output.get("data", {}) for output in outputs)


def test_the_wheel_offers_it_to_pynq() -> None:
    """Of the project's own metadata: it is not installed here."""
    text = (ROOT / "pyproject.toml").read_text()
    assert '[project.entry-points."pynq.notebooks"]\nstreamjoin = "streamjoin_notebooks"' in text
    assert not list(entry_points(group="pynq.notebooks", name="streamjoin"))
