"""What helps before anything is joined: doctor, completion, what was probably meant."""

import json
import shutil
import subprocess
import sys
from importlib import import_module, metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamjoin import cli
from streamjoin.cli.installation import doctor
from streamjoin_common.installed.checks import Finding
from streamjoin_datagen.session import checks as spark_checks
from streamjoin_hw.flow import checks as hw_checks

HW, SPARK = hw_checks.CHECKS, spark_checks.CHECKS


@pytest.fixture
def entries(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the checks of the sources, whatever is installed."""
    groups = {"hw": HW, "spark": SPARK}
    loaded = [SimpleNamespace(name=name, load=lambda c=c: c) for name, c in groups.items()]
    monkeypatch.setattr(metadata, "entry_points", lambda **_: loaded)


@pytest.mark.usefixtures("entries")
def test_the_doctor_lists_parts_within_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.main(["doctor"]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert shown.endswith("The CPU engines work.\n")
    parts = ("numba", "cache", "processors", "pyarrow", "pyspark", "Java", "Verilator", "Yosys")
    for part in (*parts, "nextpnr", "Chromium", "C++ compiler", "memory", "kernels"):
        assert f"\n{part} " in shown, part


@pytest.mark.usefixtures("entries")
def test_what_is_lacking_comes_with_what_to_type(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def lacking_numba(name: str) -> Any:
        if name == "numba":
            raise ImportError("libllvmlite.so: cannot open shared object file")
        return import_module(name)

    def odd() -> Finding:
        raise RuntimeError("this check fails")

    absent = Finding("amaranth", False, "no", "hw", extra="hw")
    tool = Finding("make", False, "no", "hw", apt="make")
    monkeypatch.setattr(doctor, "import_module", lacking_numba)
    monkeypatch.setattr(doctor, "CHECKS", (*doctor.CHECKS, lambda: absent, lambda: tool, odd))
    assert cli.main(["doctor"]) == 1
    shown = capsys.readouterr().out
    assert "pip install 'streamjoin[hw]'" in shown
    assert "sudo apt-get install make" in shown
    assert "pip install numba" in shown
    assert "The CPU engines do not work without numba." in shown
    assert cli.main(["doctor", "--json"]) == 1
    found = {each["part"]: each for each in json.loads(capsys.readouterr().out)}
    assert "libllvmlite" in found["numba"]["here"]
    assert found["odd"]["here"] == "this check fails"


ASK = """
import argcomplete, io, json, os, sys
from streamjoin import cli

class Ended(BaseException): pass

def end(status=0): raise Ended

answers = []
for typed in json.load(sys.stdin):
    answer, line = io.StringIO(), f"streamjoin {typed}"
    os.environ.update(_ARGCOMPLETE="1", COMP_TYPE="9", COMP_LINE=line, COMP_POINT=str(len(line)))
    argcomplete.autocomplete = lambda parser: argcomplete.CompletionFinder()(
        parser, exit_method=end, output_stream=answer)
    try: cli.main([])
    except Ended: answers.append(answer.getvalue().rstrip())
print(json.dumps(answers))
"""
"""A process of its own: argcomplete closes the descriptors that shells give it."""

COMPLETED = (
    ("j", "join"),
    ("join --eng", "--engine"),
    ("join --engine splitj", "splitjoin"),
    ("join --engine splitjoin --set punc", "punctuation="),
    ("join --how se", "semi"),
    ("compare smal", "small"),
    ("compare small --engines kang,splitj", "kang,splitjoin"),
    ("bench iawj-mic", "iawj-micro"),
    ("bench --predi", "--predicates"),
    ("bench calls --thr", "--threads"),
    ("bench live --predicates two-b", "two-bands"),
    ("engines fpga-splitjoin-h", "fpga-splitjoin-hash"),
    ("hw ver", "verilog"),
    ("hw synth --preset pynq-z2-h", "pynq-z2-hash"),
    ("hw synth --target ecp", "ecp5-85k"),
    ("hw bitstream --board ulx", "ulx3s-85f"),
    ("hw verilog --param core", "cores="),
    ("data shifting", "shifting-gaussian"),
    ("data import fli", "flights"),
    ("data band --param rate_r=1 dur", "duration_s="),
    ("spark-join --how an", "anti"),
    ("join --r r.par", "r.parquet"),
)


def test_a_shell_completes_verbs_flags_and_values(tmp_path: Path) -> None:
    (tmp_path / "r.parquet").touch()
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        input=json.dumps([typed for typed, _ in COMPLETED]),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert dict(zip(dict(COMPLETED), json.loads(done.stdout), strict=True)) == dict(COMPLETED)


def test_every_shell_gets_its_script(capsys: pytest.CaptureFixture[str]) -> None:
    for shell in ("bash", "zsh", "fish"):
        assert cli.main(["completion", shell]) == 0
        script = capsys.readouterr().out
        assert "streamjoin" in script
        if shutil.which(shell):
            subprocess.run([shell, "-n"], input=script, text=True, timeout=60, check=True)
        if shell == "zsh":
            assert script.splitlines()[0].startswith("#compdef")
            assert "|| { autoload -Uz compinit && compinit -i }" in script.splitlines()[1]


MEANT = (
    ("jion", "join"),
    ("--verison", "--version"),
    ("hw verilgo", "verilog"),
    ("join --engien kang", "--engine"),
    ("join --windwo all --r a --s b", "--window"),
    ("spark-join --rr", "--r"),
    ("engines splitjion", "splitjoin"),
    ("bench iawj-mirco", "iawj-micro"),
    ("compare smal.toml --out o", "small"),
    ("data smal.toml --out o", "small"),
    ("data bnad --seed 1 --out o", "band"),
    ("hw manifest --preset tinny", "tiny"),
    ("hw manifest --preset tiny --param core=2", "cores"),
)


def test_what_was_probably_meant_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for given, meant in MEANT:
        try:
            status = cli.main(given.split())
        except SystemExit as ended:
            status = int(ended.code or 0)
        said = capsys.readouterr().err.splitlines()[-1]
        assert status == 2, given
        assert f"did you mean {meant}?" in said, (given, said)
