"""What an interrupted benchmark says, and what one that goes on shows."""

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from tests.host.test_bench import LITTLE, without_drawing

from streamjoin.bench import runner
from streamjoin.cli import main
from streamjoin.cli.benchmarks import cpu_fpga
from streamjoin.report.charts import bars, curves, stacked, sweeps
from streamjoin_common.installed import shipped

BOTH = pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"]
)


@pytest.fixture
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.getbasetemp() / "data"  # Spark makes it for the first test


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, where ``little`` is the only experiment."""
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "little.toml").write_text(LITTLE)
    monkeypatch.setattr(shipped, "EXPERIMENTS", tmp_path / "set")
    monkeypatch.setattr(cpu_fpga, "run", lambda _: 0)
    for module in (bars, curves, stacked, sweeps):
        monkeypatch.setattr(module, "draw_chart", without_drawing)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ended_by(number: int) -> Callable[..., Any]:
    """A measurement that a signal ends at the third point."""
    measure, calls = runner._measure, []

    def ended(*given: Any) -> Any:
        calls.append(given)
        if len(calls) == 3:
            signal.raise_signal(number)
        return measure(*given)

    return ended


@BOTH
@pytest.mark.parametrize("name", ["all", "little"])
def test_a_signal_says_how_to_go_on_with_what_was_typed(
    here: Path,
    data: Path,
    number: int,
    status: int,
    name: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["bench", name, "--size", "quick", "--threads", "1", "--record", "kept"]
    words += ["--data", str(data)]
    with mock.patch.object(runner, "_measure", ended_by(number)):
        assert main([*words, "--force"]) == status
    kept = "runs/bench" if name == "all" else "runs/bench/little-quick"
    said = capsys.readouterr().err
    assert f"finished points are kept in {kept}; to go on, type streamjoin {' '.join(words)}" in (
        " ".join(said.split())
    )
    assert said.count("to go on") == 1
    assert main(words) == 0
    first = capsys.readouterr()
    assert "little: 2 of 4 points are there already" in first.err
    assert "mway" in first.out
    assert main(words) == 0
    again = capsys.readouterr()
    assert "little: 4 of 4 points are there already" in again.err
    assert again.out == ("" if name == "all" else first.out), "all shows a table once"


def test_a_wrong_result_ends_with_1_also_where_a_record_is_asked_for(
    here: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measure = runner._measure

    def wrong(*given: Any) -> Any:
        content = measure(*given)
        content["records"][0] |= {"status": "wrong", "error": "a pair is missing"}
        return content

    words = ["bench", "little", "--threads", "1", "--data", str(data)]
    with mock.patch.object(runner, "_measure", wrong):
        assert main(words) == 1
        capsys.readouterr()
        assert main([*words, "--record", "kept"]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "no record is stored: npj on pairs duplicates=2 load=1 is wrong" in said
    assert not Path("kept").exists()
    assert json.loads(Path("runs/bench/little-quick/records.json").read_text())["records"]
