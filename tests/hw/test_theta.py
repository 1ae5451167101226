"""A user's own predicate: its identity, what it sees, and that designs with it are exact."""

import dataclasses
import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from amaranth.hdl import Mux
from tests.hw.test_cli import run
from tests.hw.test_handshake import run_inputs

from streamjoin_common.contract import FORWARDS, SIDE_R, DesignParams, Theta, ThetaError, parse_term
from streamjoin_common.errors import UsageError
from streamjoin_hw.cli.options import design_from
from streamjoin_hw.flow.build import build_model
from streamjoin_hw.flow.emit import verilog_source
from streamjoin_hw.rtl.predicates import check_theta
from streamjoin_hw.sim import testing
from streamjoin_hw.sim.testing import Arrival, Workload, difference, reference

ROOT = Path(__file__).resolve().parents[2]
SEED = 23
FACTOR = 3


def scaled(key: Any) -> Any:
    return key * FACTOR


def skewed(r: Any, s: Any) -> Any:
    return (abs(scaled(r.key0) - s.key0) <= 2) | ((r.payload + s.payload) % 7 == 0)


def design(theta: Theta, *terms: str, forward: str = "step") -> DesignParams:
    parsed = tuple(parse_term(term) for term in terms)
    return DesignParams(
        cores=2,
        segment_tuples=4,
        lanes=2,
        terms=parsed,
        payload_bits=10,
        theta=theta,
        forward=forward,
    )


@pytest.mark.parametrize("forward", FORWARDS)
def test_a_design_with_a_predicate_of_ones_own_is_exact(
    forward: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside a band, on signed keys, with numbers that must not wrap; another reference agrees."""
    params = design(Theta.of(skewed), "key:int32", "band:int32", forward=forward)
    rng = np.random.default_rng(SEED)
    arrivals = [
        Arrival(
            int(rng.integers(2)),
            (
                int(rng.choice([-2, -1, 0, 1, 2, 3, 0x7FFFFFFF, -0x80000000])) & 0xFFFFFFFF,
                int(rng.integers(3)),
            ),
            number,
        )
        for number in range(120)
    ]
    workload = Workload(params, arrivals, 7, 5, {"band_lo1": 1, "band_hi1": 0})

    def by_hand(_params: object, r: Arrival, s: Arrival) -> bool:
        a, b = (key - (key >> 31 << 32) for key in (r.keys[0], s.keys[0]))
        return -2 <= 3 * a - b <= 2 or (r.payload + s.payload) % 7 == 0

    mine = reference(workload)
    monkeypatch.setattr(testing, "own_condition", by_hand)
    assert difference(reference(workload), mine) == ""
    assert 20 < len(mine) < 400
    run_inputs(params, [workload], 0.0, 0.2)


def test_keys_are_seen_as_their_types_say() -> None:
    seen: dict[str, Any] = {}

    def look(r: Any, s: Any) -> Any:
        seen.update(r=r, s=s)
        return r.key1 == s.key1

    theta = Theta("look", "0" * 16, look)
    check_theta(design(theta, "equi:int32", "key:int32", "key:uint32", "key:float32"))
    shapes = [seen["r"].key1.shape(), seen["s"].key2.shape(), seen["r"].key3.shape()]
    assert [shape.signed for shape in shapes] == [True, False, False]
    assert [shape.width for shape in shapes] == [32, 32, 32]
    assert len(seen["s"].payload) == 10
    with pytest.raises(
        ThetaError,
        match=r"^theta can look at key1, .*, payload of R, not key0: give a term key:TYPE",
    ):
        _ = seen["r"].key0


def module_of(tmp_path: Path, source: str) -> Any:
    file = tmp_path / f"predicates{len(list(tmp_path.iterdir()))}.py"
    file.write_text(source)
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SOURCE = """
LIMIT = 3

def distance(r, s):
    return abs(r.key0 - s.key0)

def near(r, s, least=0):
    return (distance(r, s) <= LIMIT) & (r.key0 >= least)
"""


@pytest.mark.parametrize(
    ("right", "changed"),
    [
        ("LIMIT = 3", "LIMIT = 4"),
        ("abs(r.key0 - s.key0)", "abs(r.key0 - s.key1)"),
        ("<= LIMIT", "< LIMIT"),
        ("least=0", "least=1"),
        ("r, s, least=0", "r, s, *, least=0"),
        ("def near(r, s, least=0)", "def near(r, s, least=0.0)"),
    ],
)
def test_whatever_changes_the_predicate_changes_its_identity(
    tmp_path: Path, right: str, changed: str
) -> None:
    first = Theta.of(module_of(tmp_path, SOURCE).near)
    again = Theta.of(module_of(tmp_path, SOURCE).near)
    other = Theta.of(module_of(tmp_path, SOURCE.replace(right, changed)).near)
    assert first == again
    assert first != other
    assert design(first, "key:int32").digest != design(other, "key:int32").digest


def test_captured_values_are_part_of_the_identity() -> None:
    def within(limit: int) -> Theta:
        def near(r: Any, s: Any) -> Any:
            return Mux(r.key0 > s.key0, r.key0 - s.key0, s.key0 - r.key0) <= limit

        return Theta.of(near)

    assert within(1) == within(1)
    assert within(1) != within(2)


def test_what_cannot_be_a_predicate_is_refused_in_a_sentence() -> None:
    box = SimpleNamespace(limit=1)

    def boxed(r: Any, s: Any) -> Any:
        return r.key0 - s.key0 < box.limit

    namespace: dict[str, Any] = {}
    exec("def typed(r, s):\n    return r.key0 == s.key0", namespace)
    cases: list[tuple[Any, str]] = [
        (len, "theta must be a function made by a plain def, not <built-in function len>"),
        (namespace["typed"], "theta typed must be defined in a file: its source cannot be read"),
        (
            boxed,
            "theta boxed may take numbers, strings, tuples of them, functions and modules from "
            "outside, not box, a SimpleNamespace",
        ),
    ]
    for function, sentence in cases:
        with pytest.raises(ThetaError, match=f"^{re.escape(sentence)}$"):
            Theta.of(function)
    with pytest.raises(ThetaError, match=r"^theta must be a function made by a plain def, not <"):
        Theta.of(lambda r, s: r.key0 == s.key0)


def test_a_predicate_from_a_manifest_drives_but_does_not_build() -> None:
    params = design(Theta.of(skewed), "key:int32")
    read = DesignParams.from_dict(params.to_dict())
    assert read == params
    assert read.digest == params.digest
    sentence = "theta skewed is known by its name only: build the design where its function is"
    with pytest.raises(ThetaError, match=f"^{sentence}$"):
        verilog_source(read)


def test_a_predicate_that_returns_nothing_is_named() -> None:
    def nothing(_r: Any, _s: Any) -> Any:
        return None

    params = design(Theta.of(nothing), "key:int32")
    with pytest.raises(
        ThetaError, match=r"^theta nothing must return an Amaranth value, not None$"
    ):
        verilog_source(params)


def test_the_command_line_takes_a_predicate_from_a_file() -> None:
    file = ROOT / "examples" / "own_predicate.py"
    words = ["cores=1", "segment_tuples=2", "terms=key:int32,key:int32"]
    params = design_from(None, [*words, f"theta={file}:near"])
    assert params.theta is not None
    assert params.theta.name == "near"
    for string, sentence in (
        ("near", "--param theta must be FILE.py:FUNCTION, not 'near'"),
        (f"{file}:far", f"--param theta: {file} has no function 'far'"),
    ):
        with pytest.raises(UsageError, match=f"^{re.escape(sentence)}$"):
            design_from(None, [*words, f"theta={string}"])


def test_the_example_runs() -> None:
    command = [sys.executable, str(ROOT / "examples" / "own_predicate.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"design [0-9a-f]{16}: \d+ lines of Verilog\n", done.stdout)


def test_a_key_term_alone_never_matches_by_itself() -> None:
    """Two designs that differ in theta only give different results on the same input."""

    def always(r: Any, s: Any) -> Any:
        return (r.key0 == s.key0) | (r.key0 != s.key0)

    def never(r: Any, s: Any) -> Any:
        return (r.key0 == s.key0) & (r.key0 != s.key0)

    arrivals = [Arrival(SIDE_R, (1,), 1), Arrival(1 - SIDE_R, (2,), 2)]
    every = Workload(design(Theta.of(always), "key:int32"), arrivals, 2, 2)
    none = dataclasses.replace(every, params=design(Theta.of(never), "key:int32"))
    assert reference(every) == [(1, 2)]
    assert reference(none) == []
    for workload in (every, none):
        run_inputs(workload.params, [workload], 0.0, 0.0)


def test_a_long_input_is_held_against_the_function_itself(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ("--param", "terms=key:int32,key:int32", "--param")
    near = f"theta={ROOT / 'examples' / 'own_predicate.py'}:near"
    assert run("simulate", "--preset", "tiny", *words, near, "--tuples", "3000") == 0
    assert capsys.readouterr().out.rstrip().endswith("exact")


CLASS = """
class Limits:
    REACH = {reach}

def near(r, s):
    return abs(r.key0 - s.key0) <= Limits.REACH
"""


def test_a_model_is_built_anew_for_what_only_the_hardware_shows(tmp_path: Path) -> None:
    thetas = []
    for reach in (0, 3):
        folder = tmp_path / str(reach)
        folder.mkdir()
        thetas.append(Theta.of(module_of(folder, CLASS.format(reach=reach)).near))
    assert thetas[0] == thetas[1]
    folders = [build_model(design(theta, "key:int32")) for theta in thetas]
    assert folders[0] != folders[1]


def test_a_predicate_that_numbers_do_not_fit_cannot_be_checked(tmp_path: Path) -> None:
    source = (
        "from amaranth.hdl import Mux\n\ndef f(r, s):\n    return Mux(r.key0, 1, s.key0) == 1\n"
    )
    file = tmp_path / "own.py"
    file.write_text(source)
    words = ("--preset", "tiny", "--param", "terms=key:int32", "--param", f"theta={file}:f")
    with pytest.raises(
        ThetaError, match=r"^theta f cannot be evaluated on numbers, so its results"
    ):
        run("simulate", *words, "--tuples", "300")


FAILING = """
import sys

def conjunction(r, s):
    return r.key0 == s.key0 and r.key0 == 1

def chained(r, s):
    return 0 < r.key0 < s.key0

def alone(r):
    return r.key0

def endless(r, s):
    return endless(r, s)
"""


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("conjunction", r".*: use & and \| for and and or"),
        ("chained", r".*, and two comparisons for a < b < c$"),
        ("alone", r"alone\(\) takes 1 positional argument"),
        ("endless", "maximum recursion depth exceeded"),
    ],
)
def test_a_function_that_fails_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, name: str, why: str
) -> None:
    file, out = tmp_path / "own.py", tmp_path / "out"
    file.write_text(FAILING)
    words = ("--preset", "tiny", "--param", "terms=key:int32", "--param", f"theta={file}:{name}")
    with pytest.raises(ThetaError, match=rf"^theta {name} gives no expression: \w+: {why}"):
        run("verilog", *words, "--out", str(out))
    assert not out.exists()


def test_a_file_that_ends_the_program_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text("import sys\nsys.exit(0)\n")
    words = ("--param", "terms=key:int32", "--param", f"theta={file}:f")
    with pytest.raises(UsageError, match=r"own.py does not run: SystemExit\(0\)$"):
        run("verilog", "--preset", "tiny", *words, "--out", str(tmp_path / "out"))


def test_latency_is_of_equal_keys() -> None:
    words = ("--param", "terms=key:int32", "--param")
    near = f"theta={ROOT / 'examples' / 'own_predicate.py'}:near"
    with pytest.raises(UsageError, match=r"^the closed forms are of matches of equal keys"):
        run("latency", *words, near)
