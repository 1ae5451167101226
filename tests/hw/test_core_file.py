"""The core file beside the Verilog: names, files, digest; FuseSoC reads it in test_soc.py."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from streamjoin_common.contract.presets import PRESETS
from streamjoin_common.errors import MissingToolError
from streamjoin_hw.flow.core_file import CORE_NAME, core_file, core_identifier
from streamjoin_hw.flow.emit import emit_verilog
from streamjoin_hw.flow.litex import StreamJoin

ROOT = Path(__file__).resolve().parents[2]

KEYS = {"name", "description", "license", "filesets", "targets"}
FILESET_KEYS = {"files", "file_type", "depend"}
TARGET_KEYS = {"description", "filesets", "toplevel", "flow", "flow_options"}
FILE_TYPES = {"verilogSource-2005", "cSource", "cppSource"}
"""What FuseSoC's own schema allows, as far as our core files use it."""


def read(text: str) -> dict[str, Any]:
    """Read a core file as FuseSoC does, and refuse what its schema does."""
    first, _, rest = text.partition("\n")
    assert first == "CAPI=2:"
    facts: dict[str, Any] = yaml.safe_load(rest)
    assert set(facts) <= KEYS
    assert len(facts["name"].split(":")) == 4
    assert all(isinstance(facts[each], str) for each in ("name", "description", "license"))
    for fileset in facts["filesets"].values():
        assert set(fileset) <= FILESET_KEYS
    for target in facts["targets"].values():
        assert set(target) <= TARGET_KEYS
        assert set(target["filesets"]) <= set(facts["filesets"])
    return facts


def files(facts: dict[str, Any]) -> dict[str, str]:
    """Return the files of all filesets with their types."""
    typed: dict[str, str] = {}
    for fileset in facts["filesets"].values():
        for each in fileset["files"]:
            ((name, own),) = each.items() if isinstance(each, dict) else [(each, {})]
            typed[name] = own.get("file_type") or fileset["file_type"]
    return typed


@pytest.mark.parametrize("board", [False, True])
def test_the_core_file_names_what_lies_beside_it(tmp_path: Path, board: bool) -> None:
    verilog = emit_verilog(PRESETS["tiny"], tmp_path, board=board)
    facts = read((tmp_path / CORE_NAME).read_text())
    assert files(facts) == {verilog.name: "verilogSource-2005", "streamjoin.h": "cSource"}
    assert all((tmp_path / name).is_file() for name in files(facts))
    assert facts["name"] == core_identifier(verilog.stem)
    for target in facts["targets"].values():
        assert f"\nmodule {target['toplevel']}(" in verilog.read_text()


@pytest.mark.parametrize("preset", PRESETS)
def test_the_core_file_says_which_design_it_is(preset: str) -> None:
    params = PRESETS[preset]
    facts = read(core_file(params, "streamjoin_top.v"))
    assert facts["description"].endswith(f"digest {params.digest}")
    assert params.design in facts["description"]


def test_the_example_depends_on_the_core_by_its_name() -> None:
    facts = read((ROOT / "examples" / "verilated_driver.core").read_text())
    (depends,) = facts["filesets"]["driver"]["depend"]
    assert core_identifier("streamjoin_top").startswith(f"{depends}:")
    assert set(files(facts).values()) <= FILE_TYPES
    assert all((ROOT / "examples" / name).is_file() for name in files(facts))
    assert facts["targets"]["default"]["toplevel"] == "streamjoin_top"


def test_without_litex_a_sentence_says_what_to_type(tmp_path: Path) -> None:
    with pytest.raises(MissingToolError, match=r"^LiteX is needed for .*: type  pip install litex"):
        StreamJoin(None, tmp_path)
