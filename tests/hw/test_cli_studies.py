"""``streamjoin hw prove``, ``latency`` and ``rate`` as a user types them."""

import dataclasses
import json
import re
from pathlib import Path

import numpy as np
import pytest
from tests.hw.commands import run

from streamjoin_common.contract import ParameterError
from streamjoin_common.contract.presets import PRESETS
from streamjoin_common.errors import UsageError
from streamjoin_hw.formal import prove
from streamjoin_hw.studies.rate.loads import SIDES, Load, draw, most_comparisons


def test_prove_prints_a_table_of_what_holds(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("pipe-reg-paths", "merger-passage")
    monkeypatch.setenv("COLUMNS", "200")  # seconds of two digits would leave no room for methods
    assert run("prove", *names, "--quick", "--out", str(tmp_path)) == 0
    printed = capsys.readouterr()
    assert printed.err == "proving pipe-reg-paths\nproving merger-passage\n"
    heading, _, *rows = (line.split() for line in printed.out.splitlines())
    assert heading[:2] == ["proof", "what"]
    assert [row[0] for row in rows] == list(names)
    assert [row[-5:-3] + row[-2:] for row in rows] == [
        ["structure", "any", "yes", "found"],
        ["induction", "any", "yes", "found"],
    ]


def test_a_proof_that_does_not_hold_is_exit_status_1_and_names_its_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = prove.Verdict(
        *("p", "a proof", 3, "bounded", 5, 1.0, None, None, "a fault", True, "a claim")
    )
    broken = dataclasses.replace(sound, failed="all is well", trace="p.vcd", fault_found=False)
    verdicts = [sound]
    monkeypatch.setattr(prove, "run_all", lambda *_, **__: verdicts)
    assert run("prove", "--out", str(tmp_path), "--json") == 0
    verdicts[0] = broken
    assert run("prove", "--out", str(tmp_path), "--json") == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out.splitlines()[1])[0]["holds"] is False
    assert printed.err == (
        "p does not hold, 'all is well' fails: see p.vcd\np does not find its fault (a fault)\n"
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("prove", "nothing"), f"NAME must be among {', '.join(prove.names())}, not 'nothing'"),
        (("prove", "--depth", "0"), "--depth must be at least 1, not 0"),
    ],
)
def test_a_mistake_about_proofs_is_one_sentence(words: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(sentence)}$"):
        run(*words)


def test_latency_prints_measurements_beside_closed_forms(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("latency", "--cores", "2", "--param", "segment_tuples=4", "--param", "lanes=2")
    assert run(*words, "--param", "payload_bits=16", "--json") == 0
    step, fast, split = json.loads(capsys.readouterr().out)
    assert [row["variant"] for row in (step, fast, split)] == ["step", "fast", "splitjoin"]
    assert split["last_match_cycles"] == split["last_formula"]
    assert step["last_match_cycles"] > fast["last_match_cycles"] == fast["last_formula"]
    assert run(*words, "--param", "payload_bits=16", "--variant", "fast") == 0
    _, heading, _, row = capsys.readouterr().out.splitlines()
    assert heading.startswith("variant")
    assert row.split()[:3] == ["fast", "2", "8"]


@pytest.mark.parametrize(
    ("chosen", "variants"),
    [
        (["--param", "design=splitjoin"], ["splitjoin"]),
        (["--param", "design=handshake"], ["step", "fast"]),
        (["--param", "forward=fast"], ["fast"]),
        (["--param", "design=handshake", "forward=step"], ["step"]),
        (["--preset", "tiny"], ["step"]),
        (["--preset", "tiny", "--param", "forward=fast"], ["fast"]),
        (["--preset", "tiny", "--variant", "fast"], ["fast"]),
        (["--preset", "tiny-split"], ["splitjoin"]),
    ],
)
def test_latency_is_measured_of_the_design_that_is_chosen(
    chosen: list[str], variants: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    small = ("cores=2", "segment_tuples=4", "lanes=2", "payload_bits=16")
    assert run("latency", *chosen, "--param", *small, "--json") == 0
    printed = capsys.readouterr()
    assert [row["variant"] for row in json.loads(printed.out)] == variants
    said = [line.split(", after ")[0] for line in printed.err.splitlines()]
    assert [line for line in said if "simulating" in line] == [
        f"{variant} cores=2: simulating" for variant in variants
    ]
    assert all(line.startswith(tuple(f"{each} cores=2: " for each in variants)) for line in said)


def test_latency_that_differs_from_its_closed_form_is_exit_status_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from streamjoin_hw.studies.latency import cases

    right = cases.latency_cycles
    monkeypatch.setattr(cases, "latency_cycles", lambda params, age: right(params, age) + 1)
    words = ("--param", "segment_tuples=4", "--param", "lanes=2", "--param", "payload_bits=16")
    assert run("latency", "--cores", "3", "--variant", "fast", *words) == 1
    assert capsys.readouterr().err.splitlines()[-1] == (
        "fast cores=3 does not agree with its closed forms"
    )


@pytest.mark.parametrize("counts", ["", "0", "1,,2", "x", "2;3"])
def test_counts_of_cores_that_are_none_are_refused(counts: str) -> None:
    sentence = f"--cores must be counts from 1 up, as in 1,2,4,8, not {counts!r}"
    with pytest.raises(UsageError, match=f"^{re.escape(sentence)}$"):
        run("latency", "--cores", counts)


@pytest.mark.parametrize("action", ["simulate", "animate"])
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--window-r", "0"), "--window-r must be an integer from 1 to 32, not 0"),
        (("--window-s", "0"), "--window-s must be an integer from 1 to 32, not 0"),
        (("--seed", "-1"), "--seed must be 0 or more, not -1"),
    ],
)
def test_a_window_or_seed_that_is_none_is_refused(
    tmp_path: Path, action: str, words: tuple[str, ...], sentence: str
) -> None:
    out = ("--out", str(tmp_path / "walk.html")) if action == "animate" else ()
    with pytest.raises((UsageError, ParameterError), match=f"^{re.escape(sentence)}$"):
        run(action, "--preset", "tiny", *words, *out)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--windows", "49"), "--windows must be at most 48, which the design holds, not 49"),
        (("--windows", "8,x"), "--windows must be integers from 1 up, as in 1,2,4, not 'x'"),
        (("--rates", "-1"), "--rates must be numbers from 0 up, as in 1,2,4, not '-1'"),
        (
            ("--windows", "8,2", "--rates", "1,3"),
            "--rates must be at most 2: a tuple owes no more matches than a window holds tuples; "
            "not 3",
        ),
        (
            ("--keys", "some"),
            "--keys must be among uniform, zipf, zipf-both, gauss, shifting, one, reference, "
            "not 'some'",
        ),
        (
            ("--sides", "runs-46"),
            "--sides must be among alternate, random, runs-64, bursts-1024, r-90, one-sided, not "
            "'runs-46': did you mean runs-64?",
        ),
        (("--windows", "8", "--tuples", "0"), "--tuples must be at least 1, not 0"),
        (
            ("--param", "timestamp_bits=12"),
            "--param terms must be equi and band, without timestamps and theta",
        ),
    ],
)
def test_a_mistake_about_rates_is_one_sentence(words: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(sentence)}$"):
        run("rate", "--preset", "tiny-hash", "--windows", "8", *words)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("animate", "--preset", "tiny-hash", "--out", "x.html"),
            "hw animate is about the array of cores: the design must be handshake, not "
            "splitjoin-hash",
        ),
        (
            ("latency", "--preset", "tiny-hash"),
            "hw latency is about arrays of cores: the design must not be splitjoin-hash",
        ),
        (
            ("latency", "--variant", "slow"),
            "--variant must be one of step, fast, splitjoin, not slow",
        ),
        (
            ("latency", "--variant", "fast", "--param", "design=splitjoin"),
            "--variant fast is not of --param design=splitjoin: drop one of them",
        ),
        (
            ("latency", "--preset", "tiny-split", "--variant", "fast", "--param", "forward=step"),
            "--variant fast is not of --param forward=step: drop one of them",
        ),
        (
            ("latency", "--cores", "2", "--param", "cores=4"),
            "--cores and --param cores=4 both count cores: drop one",
        ),
        (
            ("latency", "--cores", ""),
            "--cores must be counts from 1 up, as in 1,2,4,8, not ''",
        ),
        (
            ("latency", "--param", "design=splitjoin", "--param", "order=inner"),
            "under the inner order a match waits for others: --param order=outer",
        ),
    ],
)
def test_what_shows_an_array_wants_one(words: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(sentence)}$"):
        run(*words)


def test_rates_are_a_row_for_each_load(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--windows", "6,48", "--rates", "0,2", "--keys", "uniform,zipf-both")
    assert run("rate", "--preset", "tiny-hash", *words, "--tuples", "3000", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["window"], row["keys"], row["match_rate"]) for row in rows] == [
        (window, keys, rate)
        for window in (6, 48)
        for keys in ("uniform", "zipf-both")
        for rate in (0.0, 2.0)
    ]
    assert all(row["cycles_per_tuple"] >= max(1, row["owed_per_tuple"]) for row in rows)
    assert {row["verdict"] for row in rows} == {"exact"}


def test_a_named_design_is_not_laid_over_the_usual_preset() -> None:
    sentence = "give --preset NAME, or --param cores=COUNT"
    with pytest.raises(UsageError, match=f"^{re.escape(sentence)}$"):
        run("rate", "--param", "design=splitjoin")


def test_a_rate_without_a_design_says_which_one_it_is_about() -> None:
    with pytest.raises(
        ParameterError, match=r"must be step in .*\(of pynq-z2-hash: give --preset, or --param des"
    ):
        run("rate", "--param", "forward=fast")


def test_rates_fit_a_screen_of_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    words = ("--windows", "48", "--rates", "0,2", "--keys", "uniform", "--tuples", "3000")
    assert run("rate", "--preset", "tiny-hash", *words) == 0
    shown = capsys.readouterr()
    lines = shown.out.splitlines()
    assert max(map(len, lines)) <= 80
    heading, _, *rows = lines[1:]
    assert heading.split()[:3] == ["window", "keys", "sides"]
    assert [row.split()[:4] for row in rows] == [
        ["48", "uniform", "random", rate] for rate in ("0.0", "2.0")
    ]
    assert "not shown in 80 columns" not in shown.err
    # An index does not compare what is in the window.
    assert "compared" not in shown.out


def test_rates_of_scanning_cores_hide_the_seed_in_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert run("rate", "--preset", "tiny-split", "--sides", "r-90", "--tuples", "1500") == 0
    shown = capsys.readouterr()
    heading, units, *_ = shown.out.splitlines()
    assert max(map(len, shown.out.splitlines())) <= 80
    assert "compared" in heading
    assert "/cycle" in units
    assert "not shown in 80 columns: seed" in shown.err


@pytest.mark.parametrize("preset", ["tiny-split", "tiny-band"])
def test_rates_of_scanning_cores_are_a_row_for_each_order_of_sides(
    preset: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("rate", "--preset", preset, "--tuples", "1500", "--json") == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["sides"] for row in rows] == list(SIDES)
    assert {row["verdict"] for row in rows} == {"exact"}
    for row in rows:
        assert row["comparisons_per_cycle"] <= 1.01 * row["at_most"]
        assert row["at_most"] <= row["peak"]
    if preset == "tiny-band":
        # A tuple a step, whatever its side: the closed form but for the way in and out.
        assert all(row["comparisons_per_cycle"] > 0.95 * row["at_most"] for row in rows)


def test_loads_have_the_sides_that_they_name() -> None:
    for kind, share in SIDES.items():
        filling, measured = draw(Load(40, 1, "uniform", 4096, 3, kind), PRESETS["tiny"])
        assert 0.3 < filling.sides.mean() < 0.7
        assert abs(np.count_nonzero(measured.sides == 0) / 4096 - share) < 0.03, kind
        edges = np.count_nonzero(np.diff(measured.sides))
        exact = {"alternate": 4095, "runs-64": 63, "bursts-1024": 3, "one-sided": 0}
        assert edges == exact.get(kind, edges)


def test_the_most_comparisons_are_what_the_busier_half_or_the_step_allows() -> None:
    def most(preset: str, sides: str) -> float:
        params = PRESETS[preset]
        return most_comparisons(params, Load(params.window_capacity, 1, "uniform", 1, 1, sides))

    assert most("kv260", "random") == 2 * 22 * 4 * 16
    assert most("kv260", "one-sided") == 22 * 4 * 16
    assert most("kv260", "r-90") == pytest.approx(22 * 4 * 16 / 0.9)
    assert most("pynq-z2", "random") == most("pynq-z2", "one-sided") == 17 * 8 * 8
    assert most("tiny", "one-sided") == most("tiny", "alternate") == 4 * 4
    assert most("tiny-split", "alternate") == 3 * 8, "a tuple a cycle"
