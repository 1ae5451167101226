"""Help of each benchmark: the flags that it takes, and no others."""

import re

import pytest

from streamjoin.cli import main

EVERY = {"--size", "--threads", "--out", "--data", "--record", "--force", "--json"}
TAKEN = {
    "all": EVERY - {"--out"},
    "calls": {"--size", "--threads", "--out", "--force", "--json"},
    "claims": {"--size", "--out", "--json"},
    "cpu-fpga": {"--size", "--out", "--record", "--force", "--json"},
    "list": {"--json"},
    "live": {"--size", "--threads", "--predicates", "--out", "--json"},
    "regress": {"--json"},
    "iawj-micro": EVERY,
    "mine.toml": EVERY,
}


@pytest.mark.parametrize("name", TAKEN)
def test_help_of_a_benchmark_shows_what_it_takes(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = {"regress": [name, "a", "b"], "calls": ["--size", "full", name]}
    with pytest.raises(SystemExit) as stopped:
        main(["bench", *typed.get(name, [name]), "--help"])
    assert stopped.value.code == 0
    shown = capsys.readouterr().out
    as_shown = "NAME" if name.endswith(".toml") else name
    assert shown.startswith(f"usage: streamjoin bench {as_shown} [-h] ")
    options = shown.partition("\noptions:")[2].partition("\nexamples:")[0]
    assert {*re.findall(r"^  (--[a-z]+)", options, re.MULTILINE)} == TAKEN[name]
    assert ("RECORD" in shown) == (name == "regress")
    examples = re.findall(r"^  streamjoin bench (\S+)", shown, re.MULTILINE)
    assert {*examples} == {as_shown}


def test_help_of_all_benchmarks_names_that_of_one(capsys: pytest.CaptureFixture[str]) -> None:
    for typed in (["--help"], ["--help", "calls"]):
        with pytest.raises(SystemExit):
            main(["bench", *typed])
        shown = capsys.readouterr().out
        assert all(flag in shown for flag in {"--predicates", "RECORD", *EVERY})
        assert "streamjoin bench NAME --help shows the flags of one" in shown
    with pytest.raises(SystemExit):
        main(["bench", "calls", "--ouput"])
    assert capsys.readouterr().err == (
        "streamjoin bench calls: unrecognized arguments: --ouput: did you mean --out?; see "
        "streamjoin bench calls --help\n"
    )
