"""Run proofs: the claims in the design, then the same search in the design with a fault."""

import importlib
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamjoin_common import storage
from streamjoin_common.storage import TemporaryFolder, cache
from streamjoin_hw.formal import tools
from streamjoin_hw.formal.faults import Fault, applied

if TYPE_CHECKING:
    from streamjoin_hw.formal.harness import Harness

DEADLINE_S = 1800
"""Seconds that one search may take; the deepest takes minutes."""

STRIDE = 8
"""Cycles that a search for a fault looks at at once: half the time of one after another."""


@dataclass(frozen=True)
class Verdict:
    """What a proof gave.

    ``claims`` counts what is claimed, ``method`` is ``"structure"``, ``"induction"`` (both hold
    for any number of cycles) or ``"bounded"``, ``depth`` the cycles searched. ``failed`` is the
    claim that does not hold, None where all do, and ``trace`` the file that shows how.
    ``fault_found`` says whether the search finds the proof's fault, ``fault_claim`` by what.
    """

    name: str
    title: str
    claims: int
    method: str
    depth: int
    seconds: float
    failed: str | None
    trace: str | None
    fault: str
    fault_found: bool
    fault_claim: str | None

    @property
    def holds(self) -> bool:
        """Whether the claims hold and the fault was found."""
        return self.failed is None and self.fault_found

    def as_row(self) -> tuple[str, ...]:
        """Return the cells of its row in a table."""
        depth = str(self.depth) if self.depth else "any"
        if self.method == "induction":
            depth = "any"
        return (
            self.name,
            self.title,
            str(self.claims),
            self.method,
            depth,
            f"{self.seconds:.1f}",
            "yes" if self.failed is None else "no",
            "found" if self.fault_found else "not found",
        )

    def as_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {**asdict(self), "seconds": round(self.seconds, 2), "holds": self.holds}


@dataclass(frozen=True)
class _Outcome:
    claims: int
    failed: str | None = None
    trace: Path | None = None


def _proof(name: str) -> Any:
    """Return a proof of the design as it is imported now, with the fault if there is one."""
    return importlib.import_module("streamjoin_hw.formal.proofs").PROOFS[name]


def names() -> list[str]:
    """Names of all proofs."""
    return list(importlib.import_module("streamjoin_hw.formal.proofs").PROOFS)


def _examined(name: str, fault: Fault | None, depth: int, folder: Path) -> _Outcome:
    """Search for what breaks a proof, in the design or in one with a fault."""
    folder.mkdir()
    with applied(fault):
        proof = _proof(name)
        harness: Harness = proof.harness()
        if proof.paths:
            connected = tools.paths_among(
                harness, [(p.source, p.sink) for p in proof.paths], folder
            )
            broken = [p for p in proof.paths if (p.source, p.sink) in connected]
            why = f"{broken[0].why}: {broken[0].source} to {broken[0].sink}" if broken else None
            return _Outcome(len(proof.paths), why)
        tools.write_system(harness, folder)
    # Nobody reads the trace of a fault, which need not be the shortest.
    example = tools.search(folder, depth, DEADLINE_S, stride=STRIDE if fault else 1)
    if example is None and proof.inductive and fault is None:
        example = tools.search(folder, depth, DEADLINE_S, induct=True)
    if example is None:
        return _Outcome(len(harness.claims))
    claim = example.where if example.claim is None else harness.claims[example.claim - 1]
    return _Outcome(len(harness.claims), claim, example.trace)


def run(name: str, *, depth: int | None = None, quick: bool = False, kept: Path) -> Verdict:
    """Run one proof and its fault.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    depth : int, optional
        Cycles to search, instead of the proof's own.
    quick : bool
        Search the tests' depth and not the full one.
    kept : Path
        Folder for the trace of a claim that fails.

    Raises
    ------
    ToolError
        If a tool is missing, fails or takes too long.
    """
    proof = _proof(name)
    cycles = depth or (proof.quick_depth if quick else proof.depth)
    # Not in the system's temporary folder, which Yosys's sandbox hides behind one of its own.
    start = time.monotonic()
    with TemporaryFolder("proof", cache.folder("proofs")) as folder:
        outcome = _examined(name, None, cycles, folder / "design")
        seconds = time.monotonic() - start
        trace = None
        if outcome.trace is not None:
            trace = kept / f"{name}.vcd"
            with storage.new_files([trace], parents=True) as (draft,):
                shutil.copyfile(outcome.trace, draft)
        faulty = _examined(name, proof.fault, max(proof.depth, proof.fault_depth), folder / "fault")
    method = "structure" if proof.paths else "induction" if proof.inductive else "bounded"
    return Verdict(
        name=name,
        title=proof.title,
        claims=outcome.claims,
        method=method,
        depth=0 if proof.paths else cycles,
        seconds=seconds,
        failed=outcome.failed,
        trace=None if trace is None else str(trace),
        fault=proof.fault.meaning,
        fault_found=faulty.failed is not None,
        fault_claim=faulty.failed,
    )


def run_all(
    chosen: Sequence[str],
    *,
    depth: int | None,
    quick: bool,
    kept: Path,
    report: Callable[[str], None],
) -> list[Verdict]:
    """Run several proofs, telling what is being proven."""
    verdicts = []
    for name in chosen:
        report(f"proving {name}")
        verdicts.append(run(name, depth=depth, quick=quick, kept=kept))
    return verdicts
