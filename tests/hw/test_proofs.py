"""The proofs, as deep as there is time for; `streamjoin hw prove` goes deeper."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest
from amaranth.hdl import Module, Signal

from streamjoin_hw.formal import prove
from streamjoin_hw.formal.faults import Fault, FaultError, applied
from streamjoin_hw.formal.harness import Harness
from streamjoin_hw.formal.proofs import PROOFS
from streamjoin_hw.rtl import streams

SHALLOW = {"split-stalls": 12}
"""Cycles that are always searched, where the tests' depth takes long."""

SLOW = (
    *SHALLOW,
    *(
        "meeting-stalls",
        "meeting-dense",
        "meeting-uneven",
        "fast-times",
        "lookup-links",
        "index-shown",
        "split-probes",
        "split-shared",
    ),
)
"""Proofs beside which a smaller one of the same design is always run, or the same less deep."""


@pytest.mark.parametrize(
    ("name", "depth"),
    [
        *((name, depth) for name, depth in SHALLOW.items()),
        *(
            pytest.param(name, None, marks=pytest.mark.slow if name in SLOW else ())
            for name in PROOFS
        ),
    ],
)
def test_a_proof_holds_and_finds_its_fault(name: str, depth: int | None, tmp_path: Path) -> None:
    verdict = prove.run(name, depth=depth, quick=True, kept=tmp_path)
    assert verdict.failed is None
    assert verdict.fault_found, f"not found: {verdict.fault}"
    assert verdict.claims > 0
    assert not list(tmp_path.iterdir())


class Counting(Harness):
    """Claims that a counter stays below five."""

    def prove(self, m: Module) -> None:
        count = Signal(4)
        m.d.sync += count.eq(count + 1)
        self.claim(m, count < 12, "the count is below twelve")
        self.claim(m, count < 5, "the count is below five")


def test_a_claim_that_fails_is_named_and_its_trace_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    false = replace(PROOFS["pipe-reg-passage"], harness=Counting, inductive=False)
    monkeypatch.setitem(PROOFS, "pipe-reg-passage", false)
    verdict = prove.run("pipe-reg-passage", depth=10, kept=tmp_path)
    assert verdict.failed == "the count is below five"
    assert not verdict.holds
    assert verdict.trace == str(tmp_path / "pipe-reg-passage.vcd")
    assert "$enddefinitions" in Path(verdict.trace).read_text()


def test_a_claim_that_only_holds_so_far_is_not_proven_by_induction(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = replace(PROOFS["pipe-reg-passage"], harness=Counting)
    monkeypatch.setitem(PROOFS, "pipe-reg-passage", short)
    assert prove.run("pipe-reg-passage", depth=3, kept=tmp_path).failed is not None


def test_a_fault_is_there_inside_and_gone_outside() -> None:
    before = sys.modules["streamjoin_hw.rtl.streams"]
    fault = Fault(
        "rtl.streams", "class PingPongReg(", "FAULTY = True\n\n\nclass PingPongReg(", "a mark"
    )
    with applied(fault):
        from streamjoin_hw.rtl import streams as faulty
        from streamjoin_hw.rtl.trees import PingPongReg

        assert faulty.FAULTY  # type: ignore[attr-defined]
        assert PingPongReg is faulty.PingPongReg is not before.PingPongReg
    assert sys.modules["streamjoin_hw.rtl.streams"] is before is streams
    assert not hasattr(before, "FAULTY")


@pytest.mark.parametrize("quoted", ["no such line", "self"])
def test_a_fault_that_fits_nowhere_or_twice_is_refused(quoted: str) -> None:
    with (
        pytest.raises(
            FaultError, match=rf"^'{quoted}' must be in the module rtl.streams once, not "
        ),
        applied(Fault("rtl.streams", quoted, "other", "nothing")),
    ):
        raise AssertionError("a fault that does not fit was applied")
