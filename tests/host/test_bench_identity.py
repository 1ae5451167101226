"""What a kept point is of: its settings, all code that takes part, the machine and the versions."""

from pathlib import Path

import pytest
from tests.host.test_bench import LITTLE

from streamjoin.bench import experiments, identity


@pytest.fixture
def little(tmp_path: Path) -> Path:
    path = tmp_path / "little.toml"
    path.write_text(LITTLE)
    return path


def test_a_point_of_other_threads_is_another_point(little: Path) -> None:
    def definitions() -> set[str]:
        (point, *_) = experiments.read(str(little), "quick").points
        return {identity.definition(point, {}, threads) for threads in (1, 2)}

    assert len(definitions()) == 1
    little.write_text(LITTLE.replace("threads = 1\n", ""))
    assert len(definitions()) == 2


def test_a_point_depends_on_the_code_of_every_package_but_what_only_shows_figures() -> None:
    names = [name for name, _ in identity.source_files()]
    assert len(names) == len(set(names)) > 300
    for part in (
        *("streamjoin/engines/kernels/", "streamjoin/relations/", "streamjoin/verify.py"),
        *("streamjoin_hw/rtl/", "streamjoin_hw/flow/", "streamjoin_hw/sim/driver/driver.cpp"),
        *("streamjoin_common/language/", "streamjoin_datagen/kinds/", "streamjoin_spark/batch/"),
    ):
        assert any(name.startswith(part) for name in names), part
    assert not any(name.startswith(("streamjoin/report/", "streamjoin/cli/")) for name in names)


def test_other_code_or_another_machine_makes_another_point(
    little: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (point, *_) = experiments.read(str(little), "quick").points
    code = tmp_path / "rtl.py"
    monkeypatch.setattr(identity, "source_files", lambda: iter([("streamjoin_hw/rtl.py", code)]))
    found = []
    there = identity.environment()
    packages = there["packages"]
    for text, changes in (
        ("1", {}),
        ("2", {}),
        ("1", {"cpu": "another"}),
        ("1", {"cores": 99}),
        ("1", {"python": "9"}),
        ("1", {"packages": {**packages, "numba": "9"}}),
        ("1", {"load_average": 99.0}),
    ):
        code.write_text(text)
        monkeypatch.setattr(identity, "environment", lambda changes=changes: {**there, **changes})
        identity.sources.cache_clear()
        found.append(identity.definition(point, {}, 1))
    identity.sources.cache_clear()
    assert found[-1] == found[0]  # a load is of a moment
    assert len(set(found)) == len(found) - 1
